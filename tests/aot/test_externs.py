"""Calls of host functions in exports: by name in a hosted export, linked as C functions in a bare one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from exported import FLAGS

from relvm import aot, vm
from relvm.compiler.find_compiler import expect_compiler, find_compiler
from relvm.errors import RelvmNameError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

TEXT = """
def main(x: f32[n, 2], k: i64) => (f32[n, 2], i64, f64, bool[n], f32[2], bool) with (upper_bounds=(("n", 4),)) {
  y = packed("externs.scaled", x, k) : f32[n, 2]
  _ = packed("log", y)
  s = packed("sum", y) : f64
  i = packed("count", k, 2.5, k > 2) : i64
  m = packed("mask", x) : bool[n]
  r = if k > 3 then packed("first", y) : f32[2] else const(f32[2], [0, 0])
  b = packed("positive", dim(n)) : bool
  return (add(y, x), i, s, m, r, b)
}
"""
X = np.arange(6, dtype=np.float32).reshape(3, 2)
EXPECTED = [(X * 6).tolist(), 8, 75.0, [False, True, True], [0, 5], True]

C_FUNCTIONS = r"""
#include <stdio.h>
#include "externs.h"

static float scaled[8], logged;
static uint8_t mask[4];
static int64_t shape[2], two[1] = {2};
static rvm_tensor tensors[3];

static const float *elements(const rvm_value *value) { return value->as.tensor->dl.data; }

rvm_status externs_extern_externs_x2E_scaled(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  if (self || count != 2 || arguments[1].tag != RVM_TAG_INT) return RVM_ARGUMENT_ERROR;
  shape[0] = arguments[0].as.tensor->dl.shape[0], shape[1] = 2;
  for (int64_t i = 0; i < 2 * shape[0]; i++) scaled[i] = elements(arguments)[i] * (float)arguments[1].as.i;
  *result = rvm_view(&tensors[0], RVM_DTYPE_f32, 2, shape, scaled);
  return RVM_OK;
}
rvm_status externs_extern_log(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count, (void)result;
  logged = elements(arguments)[1];
  return RVM_OK;
}
rvm_status externs_extern_sum(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  result->tag = RVM_TAG_FLOAT, result->as.f = 0;
  for (int64_t i = 0; i < 2 * arguments[0].as.tensor->dl.shape[0]; i++) result->as.f += (double)elements(arguments)[i];
  return result->as.f > 1000 ? RVM_INDEX_ERROR : RVM_OK;
}
rvm_status externs_extern_count(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  result->tag = arguments[0].as.i == 9 ? RVM_TAG_BOOL : RVM_TAG_INT;
  result->as.i = (int64_t)((double)arguments[0].as.i + arguments[1].as.f + (double)arguments[2].as.i);
  return RVM_OK;
}
rvm_status externs_extern_mask(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  for (int64_t i = 0; i < arguments[0].as.tensor->dl.shape[0]; i++) mask[i] = elements(arguments)[2 * i] > 1 ? 7 : 0;
  *result = rvm_view(&tensors[1], RVM_DTYPE_bool, 1, arguments[0].as.tensor->dl.shape, mask);
  return RVM_OK;
}
rvm_status externs_extern_first(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  *result = rvm_view(&tensors[2], RVM_DTYPE_f32, 1, two, elements(arguments));
  return RVM_OK;
}
rvm_status externs_extern_positive(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  result->tag = RVM_TAG_BOOL, result->as.i = arguments[0].as.i > 0;
  return RVM_OK;
}
"""
STRUCT_MAIN = r"""
int main(void) {
  float x[6] = {0, 1, 2, 3, 4, 5}, sums[6], first[2];
  int64_t count, positive;
  double sum;
  uint8_t masked[3];
  struct externs_inputs in = {x, 5, 3};
  struct externs_outputs out = {sums, &count, &sum, masked, first, &positive};
  int status = externs_run(&in, &out);
  printf("%d %g %g %lld %g %d%d%d %g %lld %g\n", status, (double)sums[0], (double)sums[5], (long long)count, sum,
         masked[0], masked[1], masked[2], (double)first[1], (long long)positive, (double)logged);
  in.k = 1000;
  printf("%d ", externs_run(&in, &out));
  in.k = 9;
  printf("%d\n", externs_run(&in, &out));
  return 0;
}
"""
PACKED_MAIN = r"""
int main(void) {
  float x[6] = {0, 1, 2, 3, 4, 5}, sums[6], first[2];
  int64_t k = 5, count, by_two[2] = {3, 2}, three[1] = {3}, pair[1] = {2};
  double sum;
  uint8_t masked[3], positive;
  rvm_tensor views[8];
  rvm_value result = {RVM_TAG_NIL, {0}}, values[8];
  values[0] = rvm_view(&views[0], RVM_DTYPE_f32, 2, by_two, x);
  values[1] = rvm_view(&views[1], RVM_DTYPE_i64, 0, 0, &k);
  values[2] = rvm_view(&views[2], RVM_DTYPE_f32, 2, by_two, sums);
  values[3] = rvm_view(&views[3], RVM_DTYPE_i64, 0, 0, &count);
  values[4] = rvm_view(&views[4], RVM_DTYPE_f64, 0, 0, &sum);
  values[5] = rvm_view(&views[5], RVM_DTYPE_bool, 1, three, masked);
  values[6] = rvm_view(&views[6], RVM_DTYPE_f32, 1, pair, first);
  values[7] = rvm_view(&views[7], RVM_DTYPE_bool, 0, 0, &positive);
  int status = externs_run(0, values, 8, &result);
  printf("%d %g %g %lld %g %d%d%d %g %lld %g\n", status, (double)sums[0], (double)sums[5], (long long)count, sum,
         masked[0], masked[1], masked[2], (double)first[1], (long long)positive, (double)logged);
  k = 1000;
  printf("%d ", externs_run(0, values, 8, &result));
  k = 9;
  printf("%d\n", externs_run(0, values, 8, &result));
  return 0;
}
"""


@pytest.mark.parametrize(
    ("options", "main"),
    [({}, STRUCT_MAIN), ({"unpacked": False}, PACKED_MAIN), ({"interface": "packed"}, PACKED_MAIN)],
    ids=["struct", "cpacked", "packed"],
)
def test_a_bare_export_calls_linked_functions(options: dict, main: str, tmp_path: Path) -> None:
    program = aot.build(parse_module(TEXT), aot.AotConfig(name="externs", **options))
    program.write(tmp_path)
    (tmp_path / "user.c").write_text(C_FUNCTIONS + main)
    flags = [*FLAGS.split(), "-g", "-O1", "-fsanitize=address,undefined", "-Iinclude", "-Isrc"]
    sources = ["user.c", *(str(path) for path in tmp_path.glob("src/*.c"))]
    command = [*expect_compiler().command, *flags, *sources, "-lm", "-o", "user"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./user"], cwd=tmp_path, capture_output=True, text=True, check=True)
    # RVM_INDEX_ERROR of `sum`, then RVM_TYPE_ERROR because `count` returns a bool
    assert done.stdout.split("\n")[:2] == ["0 0 30 8 75 011 5 1 5", "4 1"]


@pytest.fixture
def registered():
    logged: list[list] = []
    functions = {
        "externs.scaled": lambda x, k: x.numpy() * k,
        "log": lambda y: logged.append(y.numpy().tolist()),
        "sum": lambda y: float(y.numpy().sum()),
        "count": lambda k, f, b: int(k + f + b),
        "mask": lambda x: x.numpy()[:, 0] > 1,
        "first": lambda y: y.numpy()[0],
        "positive": lambda n: n > 0,
    }
    for name, function in functions.items():
        vm.register_func(name, function)
    yield logged
    for name in functions:
        vm.unregister_func(name)


def test_a_hosted_export_calls_registered_functions(registered: list, tmp_path: Path) -> None:
    program = aot.build(parse_module(TEXT), aot.AotConfig(name="externs", runtime="hosted"))
    aot.compile_library(program).export_library(tmp_path / "externs.so")
    factory = aot.load_module(tmp_path / "externs.so", trust_native=True)
    assert factory.calls_host_functions
    executor = aot.AotExecutor(factory)
    executor.run(x=X, k=5)
    assert [executor.get_output(i).tolist() for i in range(6)] == EXPECTED
    machine = vm.VirtualMachine(vm.build(parse_module(TEXT)))
    assert [np.asarray(each).tolist() for each in machine["main"](X, 5)] == EXPECTED
    assert registered == [(X * 5).tolist()] * 2
    for function, error, message in (
        (lambda y: 3, RelvmTypeError, "main: the result of sum does not have the type that the program states"),
        (lambda y: y, RelvmTypeError, "main: the result of sum does not have"),
        (lambda y: 1 / 0, ZeroDivisionError, "division by zero"),
    ):
        vm.register_func("sum", function, override=True)
        with pytest.raises(error, match=message):
            executor.run()
    vm.register_func("sum", lambda y: 1.0, override=True)
    vm.register_func("mask", lambda x: np.zeros(2, bool), override=True)
    with pytest.raises(RelvmTypeError, match="the result of mask does not have the type"):
        executor.run()
    vm.unregister_func("mask")
    try:
        with pytest.raises(RelvmNameError, match="no packed function mask is registered"):
            executor.run()
    finally:
        vm.register_func("mask", lambda x: x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('packed("f", x)', "y: .* a result of type object of the host function f; state a tensor"),
        ('packed("f", x) : f32[m]', "y: .* a result of the host function f with a size that only the function knows"),
        ('packed("f", (x, x)) : f32[n]', r"an argument of type \(f32\[n\], f32\[n\]\) of the host function f"),
        ('packed("f", x) : i64(n)', r"a result of type i64\(n\) of the host function f; state a tensor"),
        ('packed("f", x) : (f32[n], f32[n])', r"a result of type \(f32\[n\], f32\[n\]\) of the host function f"),
    ],
)
def test_what_an_export_cannot_pass_is_refused(call: str, message: str) -> None:
    text = f'def main(x: f32[n]) => object with (upper_bounds=(("n", 4),)) {{ y = {call}; return y }}'
    with pytest.raises(RelvmUnsupportedError, match=message):
        aot.build(parse_module(text), aot.AotConfig())
