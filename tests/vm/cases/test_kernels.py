"""Tests of kernel calls: in place, on dynamic shapes, by name, and for side effects."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.modes import WAYS, run_everywhere
from support.pipeline_parts import module_after

from relvm import vm
from relvm.codegen.c.kernel import print_kernel
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32
from relvm.ir.expr import Binding, BuiltinCall, KernelRun, Module
from relvm.ir.loop_ir import Buffer
from relvm.ir.node import walk
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage, verify
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.passes.memory.plan_memory import plan_memory
from relvm.tables import include_flags

X = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)


def planned(text: str) -> Module:
    return module_after("plan_memory", parse_module(text), fused=False)


def allocations(module: Module) -> list[str]:
    """Return the names of the tensors that main allocates."""
    made = (item for item in walk(module["main"]) if isinstance(item, Binding))
    return [b.var.name for b in made if isinstance(b.value, BuiltinCall) and b.value.name == "alloc_tensor"]


# ---- in place ----


def test_a_kernel_writes_over_its_input_where_that_dies() -> None:
    text = """def main(x: f32[n, 5], y: f32[n, 5]) -> f32[n, 5] {
  a = add(x, y)
  b = exp(a)
  c = add(x, b)
  d = multiply(c, c)
  return negative(d)
}"""
    assert allocations(planned(text)) == ["a"]
    run_everywhere(parse_module(text), X, X + 1)


def test_a_kernel_writes_over_the_one_input_that_may_be() -> None:
    text = """def main(x: f32[3, 5]) -> f32[3, 5] {
  row = max(x, axes=(0,), keepdims=true)
  whole = softmax(x, axis=1)
  return subtract(row, whole)
}"""
    assert allocations(planned(text)) == ["row", "whole"]
    run_everywhere(parse_module(text), X)


def test_no_alias_where_the_input_is_still_needed() -> None:
    text = """def main(x: f32[3, 5]) -> f32[3, 5] {
  a = softmax(x, axis=1)
  b = exp(a)
  return add(softmax(b, axis=1), a)
}"""
    assert "b" in allocations(planned(text))
    run_everywhere(parse_module(text), X)


def test_no_alias_where_the_input_leaves_the_function() -> None:
    text = """def main(x: f32[3, 5]) -> (f32[3, 5], f32[3, 5]) {
  a = softmax(x, axis=1)
  b = exp(a)
  return (a, b)
}"""
    assert allocations(planned(text)) == ["a", "b"]
    run_everywhere(parse_module(text), X)


def test_no_alias_of_a_parameter_or_of_a_view_of_one() -> None:
    text = """def main(x: f32[3, 5]) -> f32[5, 3] {
  view = reshape(x, shape(5, 3))
  return exp(view)
}"""
    assert len(allocations(planned(text))) == 1
    x = X.copy()
    for way in WAYS:
        vm.VirtualMachine(vm.build(parse_module(text), *way))["main"](x)
    np.testing.assert_array_equal(x, X)


def test_a_view_is_written_over_where_what_it_views_dies() -> None:
    text = """def main(x: f32[3, 5]) -> f32[5, 3] {
  a = softmax(x, axis=1)
  view = reshape(a, shape(5, 3))
  return add(exp(view), reshape(x, shape(5, 3)))
}"""
    assert allocations(planned(text)) == ["a"]
    run_everywhere(parse_module(text), X)


def test_no_alias_of_another_dtype_or_shape() -> None:
    text = """def main(x: f32[3, 5]) -> f32[3, 5] {
  a = softmax(x, axis=1)
  b = cast(a, to=i32)
  c = cast(b, to=f32)
  d = max(c, axes=(0,), keepdims=true)
  return add(d, x)
}"""
    assert len(allocations(planned(text))) == 5
    run_everywhere(parse_module(text), X * 9)


def test_no_alias_where_other_elements_are_read() -> None:
    text = """def main(x: f32[4, 4]) -> f32[4, 4] {
  a = softmax(x, axis=1)
  b = transpose(a, perm=(1, 0))
  return gather(b, const(i64[4], [3, 1, 0, 2]))
}"""
    assert len(allocations(planned(text))) == 3
    run_everywhere(parse_module(text), np.arange(16, dtype=np.float32).reshape(4, 4))


def two_outputs() -> Kernel:
    """Return a kernel that splits a matrix of two columns into its columns."""
    x = Buffer("x_", F32, (4, 2))
    outs = (Buffer("out0_", F32, (4,)), Buffer("out1_", F32, (4,)))
    k = KernelBuilder(names={"x_": 1, "out0_": 1, "out1_": 1})
    with k.loop(4) as i:
        k.store(outs[0], (i,), x[i, 0])
        k.store(outs[1], (i,), x[i, 1])
    return Kernel("split", (x,), outs, k.finish(), "split")


def test_several_outputs_are_several_tensors_each_for_as_long_as_it_is_needed() -> None:
    text = """def main(x: f32[4, 2]) -> f32[4] {
  t = kernel split(x) : (f32[4], f32[4])
  first = t.0
  second = t.1
  u = kernel split(x) : (f32[4], f32[4])
  third = u.0
  v = kernel split(x) : (f32[4], f32[4])
  last = v.0
  return first
}"""
    legal = infer_types(parse_module(text))
    kernels = (("split", two_outputs()),)
    module = Module(legal.functions, kernels)
    verify(module, Stage.LOWERED)
    result = plan_memory(module)
    verify(result, Stage.PLANNED)
    runs = [item.args for item in walk(result["main"]) if isinstance(item, KernelRun)]
    assert [len({*args}) for args in runs] == [3, 3, 3]
    place = {}
    for item in walk(result["main"]):
        match item:
            case Binding(var, BuiltinCall("alloc_tensor", (storage, offset, *_))):
                place[var.name] = (storage.name, offset.value)
    assert set(place) == {"t_0", "t_1", "u_0", "u_1", "v_0", "v_1"}
    assert place["t_0"] not in [where for name, where in place.items() if name != "t_0"]  # t_0 is returned
    assert {place["t_1"], place["u_0"], place["u_1"]} >= {place["v_0"], place["v_1"]}
    assert place["u_0"] != place["u_1"] and place["v_0"] != place["v_1"]


def test_only_outputs_that_are_never_aliased_are_restrict() -> None:
    kernels = dict(planned("def main(x: f32[n]) -> f32[n] = softmax(exp(x), axis=0)").kernels)
    assert "*restrict out_" in print_kernel(kernels["softmax_f32"], "softmax")
    assert "restrict" not in print_kernel(kernels["exp_f32"], "exp")


# ---- by name ----

SOURCE = """
#include "relvm.h"

/* out = a * x + y, all of f32 and of one size; a is a float. */
rvm_status axpy(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  if (count != 4 || arguments[0].tag != RVM_TAG_FLOAT) return RVM_TYPE_ERROR;
  const rvm_tensor *x = arguments[1].as.tensor, *y = arguments[2].as.tensor, *out = arguments[3].as.tensor;
  int64_t size = 1;
  for (int32_t axis = 0; axis < x->dl.ndim; axis++) size *= x->dl.shape[axis];
  for (int64_t i = 0; i < size; i++)
    ((float *)out->dl.data)[i] = (float)arguments[0].as.f * ((float *)x->dl.data)[i] + ((float *)y->dl.data)[i];
  result->tag = RVM_TAG_NIL;
  return RVM_OK;
}
"""


@pytest.fixture(scope="module")
def axpy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile a kernel in C, register it, and return its name."""
    folder: Path = tmp_path_factory.mktemp("c")
    (folder / "axpy.c").write_text(SOURCE)
    command = ["cc", "-shared", "-fPIC", *include_flags(), "axpy.c", "-o", "axpy.so"]
    subprocess.run(command, cwd=folder, check=True)
    address = ctypes.cast(ctypes.CDLL(str(folder / "axpy.so")).axpy, ctypes.c_void_p).value
    vm.register_c_func("test.kernels.axpy", address, override=True)
    return "test.kernels.axpy"


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_an_external_kernel_in_c_by_name(axpy: str, way: tuple[str, str]) -> None:
    text = f"""def main(x: f32[n, 5], y: f32[n, 5]) => f32[n, 5] {{
  out = add(x, x)
  _ = packed("{axpy}", 2.0, x, y, out) : object
  return out
}}"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), *way))
    np.testing.assert_allclose(machine["main"](X, X + 1).numpy(), 2 * X + X + 1, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_an_external_kernel_writes_over_its_argument(axpy: str, way: tuple[str, str]) -> None:
    text = f"""def main(x: f32[n, 5]) => f32[n, 5] {{
  a = exp(x)
  _ = packed("{axpy}", 2.0, a, a, a) : object
  return softmax(a, axis=1)
}}"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), *way))
    want = np.exp(3 * np.exp(X))
    np.testing.assert_allclose(machine["main"](X).numpy(), want / want.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_kernel_called_for_its_effect_is_not_removed(axpy: str, way: tuple[str, str]) -> None:
    seen = []
    vm.register_func("test.kernels.note", lambda tensor: seen.append(tensor.shape), override=True)
    text = """def main(x: f32[n, 5]) => f32[n, 5] {
  a = exp(x)
  _ = packed("test.kernels.note", a) : object
  unused = packed_pure("test.kernels.note", a) : object
  return x
}"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), *way))
    machine["main"](X)
    assert seen == [(3, 5)]


# ---- arguments of kernels ----


def test_concatenation() -> None:
    text = "def main(x: f32[n, 5], y: f32[m, 5]) -> f32[n + m, 5] = concat(x, y, axis=0)"
    for rows in (0, 1, 4):
        run_everywhere(parse_module(text), X, np.ones((rows, 5), np.float32))


def test_a_change_of_dtype() -> None:
    text = "def main(x: f32[n, 5]) -> (i32[n, 5], f64[n, 5], bool[n, 5]) {\n"
    text += "  return (cast(x, to=i32), cast(x, to=f64), cast(x, to=bool))\n}"
    run_everywhere(parse_module(text), X * 9)


def test_the_floor_of_a_symbolic_size() -> None:
    text = "def main(x: f32[n, 5], y: f32[n // 2, 5]) -> f32[n // 2, 5] = relu(softmax(y, axis=1))"
    for rows in (0, 1, 4, 5):
        x, y = np.ones((rows, 5), np.float32), np.ones((rows // 2, 5), np.float32)
        run_everywhere(parse_module(text), x, y)


def test_a_constant_parameter() -> None:
    text = "def main(x: f32[n, 2]) -> f32[n, 2] = add(multiply(x, const(f32[2], [2, 3])), const(f32[], 1))"
    run_everywhere(parse_module(text), X[:, :2].copy())


def test_a_kernel_on_dynamic_shapes() -> None:
    text = """def main(x: f32[n, m], y: f32[m, k]) -> f32[n, k] {
  a = matmul(x, y)
  return add(a, max(a, axes=(1,), keepdims=true))
}"""
    module = parse_module(text)
    for n, m, k in ((1, 1, 1), (3, 5, 2), (2, 0, 3), (7, 4, 9)):
        rng = np.random.default_rng(n)
        x, y = rng.standard_normal((n, m)), rng.standard_normal((m, k))
        run_everywhere(module, x.astype(np.float32), y.astype(np.float32))
