"""Tests of kernels with inout parameters: updates reach the caller's array, and no other value changes."""

# ruff: noqa: F821, F722, UP037 (scripts are not Python)
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.modes import machines

from relvm import aot, kernel, script, simd, vm
from relvm.errors import RelvmArgumentError, RelvmError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import I64
from relvm.ir.expr import Module
from relvm.ir.interpreter import evaluate
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.runtime.executable import Executable

KERNELS = """
kernel bump(inout h: i64[n]) { h[0] = h[0] + 1 }
kernel bump_both(inout a: i64[n], inout b: i64[n]) -> (sum: i64) { a[0] += 1; b[0] += 10; sum = a[0] + b[0] }
kernel add_to(inout h: i64[n], x: i64[n]) { for i in simd(n) { h[i] += x[n - 1 - i] } }
kernel fill(inout h: i64[n, m + 1], x: i64[m]) -> (first: i64[n], twice: i64[m]) {
  for i in range(n) { first[i] = h[i, 0]; for j in simd(m) { h[i, j] = x[j] + i } }
  for j in simd(m) { twice[j] = 2 * x[j] }
}
"""
# For each program: functions, arguments of main, the result, and the arguments after the call.  None: like the result.
PROGRAMS: dict[str, tuple[str, tuple, Any, tuple]] = {
    "a call without a result": (
        "def main(x: i64[4]) => i64[4] { _ = kernel bump(x); return x }",
        (np.arange(4),),
        [1, 1, 2, 3],
        ([1, 1, 2, 3],),
    ),
    "an update whose result is unused": (
        "def main(x: i64[4]) => i64 { _ = kernel bump(x); return 7 }",
        (np.arange(4),),
        7,
        ([1, 1, 2, 3],),
    ),
    "another name keeps the old value": (
        """def main(x: i64[4]) => (i64[4], i64[4], i64[4]) {
  y = x
  t = (x, 1)
  v = reshape(x, shape(2, 2))
  _ = kernel bump(x); _ = kernel bump(x)
  return (y, t.0, reshape(v, shape(4)))
}""",
        (np.arange(4),),
        ([0, 1, 2, 3],) * 3,
        ([2, 1, 2, 3],),
    ),
    "operators see the value at their place": (
        """def main(x: i64[4]) => (i64[4], i64[4]) {
  a = negative(x)
  _ = kernel bump(x)
  b = negative(x)
  return (a, b)
}""",
        (np.arange(4),),
        ([0, -1, -2, -3], [-1, -1, -2, -3]),
        ([1, 1, 2, 3],),
    ),
    "an updated view leaves its tensor alone": (
        "def main(x: i64[4]) -> (i64[4], i64[4]) { v = reshape(x, shape(4)); _ = kernel bump(v); return (x, v) }",
        (np.arange(4),),
        ([0, 1, 2, 3], [1, 1, 2, 3]),
        ([0, 1, 2, 3],),
    ),
    "equal expressions are updated separately": (
        """def main(x: i64[4]) -> (i64[4], i64[4]) {
  a = negative(x); b = negative(x)
  _ = kernel bump(a)
  return (a, b)
}""",
        (np.arange(4),),
        ([1, -1, -2, -3], [0, -1, -2, -3]),
        ([0, 1, 2, 3],),
    ),
    "a computed constant can be updated, and stays constant": (
        "def main() -> i64[2] { a = negative(const(i64[2], [5, 6])); _ = kernel bump(a); return a }",
        (),
        [-4, -6],
        (),
    ),
    "an argument that is also an input": (
        "def main(x: i64[3]) => i64[3] { _ = kernel add_to(x, x); return x }",
        (np.arange(3),),
        [2, 2, 2],
        ([2, 2, 2],),
    ),
    "two updates and a result": (
        "def main(x: i64[2], y: i64[2]) => i64[] { s = kernel bump_both(x, y); return s }",
        (np.arange(2), np.arange(2)),
        11,
        ([1, 1], [10, 1]),
    ),
    "several results and a compound size": (
        "def main(h: i64[n, m + 1], x: i64[m]) => (i64[n], i64[m]) = kernel fill(h, x)",
        (np.arange(6).reshape(2, 3), np.array([7, 8])),
        ([0, 3], [14, 16]),
        ([[7, 8, 2], [8, 9, 5]], [7, 8]),
    ),
    "one branch": (
        """def main(x: i64[4], c: bool) => i64[4] {
  _ = if c then { _ = kernel bump(x); return 0 } else 0
  return multiply(x, x)
}""",
        (np.arange(4) + 1, True),
        [4, 4, 9, 16],
        ([2, 2, 3, 4], True),
    ),
    "the other branch": (
        """def main(x: i64[4], c: bool) => i64[4] {
  _ = if c then { _ = kernel bump(x); return 0 } else 0
  return multiply(x, x)
}""",
        (np.arange(4) + 1, False),
        [1, 4, 9, 16],
        ([1, 2, 3, 4], False),
    ),
    "a branch that never runs": (
        "def main(x: i64[4]) => i64[4] { y = if false then { _ = kernel bump(x); return x } else x; return y }",
        (np.arange(4),),
        [0, 1, 2, 3],
        ([0, 1, 2, 3],),
    ),
    "a tail recursion": (
        """def main(x: i64[4], n: i64) => i64[4] {
  w = if n == 0 then x else { _ = kernel bump(x); return @main(x, n - 1) }
  return w
}""",
        (np.arange(4), 20_000),
        [20_000, 1, 2, 3],
        ([20_000, 1, 2, 3], 20_000),
    ),
    "a called function updates the argument of its caller": (
        """private def twice(h: i64[4]) => i64[4] { old = h; _ = kernel bump(h); _ = kernel bump(h); return old }
def once(h: i64[4]) => i64 { _ = kernel bump(h); return 3 }
def main(x: i64[4]) => (i64[4], i64, i64[4]) { a = @twice(x); b = @once(x); return (a, b, x) }""",
        (np.arange(4),),
        ([0, 1, 2, 3], 3, [3, 1, 2, 3]),
        ([3, 1, 2, 3],),
    ),
    "a function that swaps what it updates": (
        """private def f(a: i64[2], b: i64[2], n: i64) => i64 {
  r = if n == 0 then 0 else { _ = kernel bump(a); return @f(b, a, n - 1) }
  return r
}
def main(x: i64[2], y: i64[2]) => i64 = @f(x, y, 5)""",
        (np.zeros(2, int), np.ones(2, int)),
        0,
        ([3, 0], [3, 1]),
    ),
    "a closure keeps the value that it captured": (
        """def main(x: i64[4]) => (i64[4], i64[4]) {
  f = fn () -> i64[4] = negative(x)
  _ = kernel bump(x)
  return (f(), x)
}""",
        (np.arange(4),),
        ([0, -1, -2, -3], [1, 1, 2, 3]),
        ([1, 1, 2, 3],),
    ),
    "a closure updates what it computes": (
        """def main(x: i64[4]) -> (i64[4], i64[4]) {
  f = fn (y: i64[4]) -> i64[4] { z = negative(y); _ = kernel bump(z); return z }
  return (f(x), f(x))
}""",
        (np.arange(4),),
        ([1, -1, -2, -3],) * 2,
        ([0, 1, 2, 3],),
    ),
    "a field of a tuple is a value of its own once it has a name": (
        """def main(t: (i64[2], i64[2])) -> (i64[2], i64[2]) { a = t.0; _ = kernel bump(a); return (a, t.0) }""",
        ((np.arange(2), np.arange(2)),),
        ([1, 1], [0, 1]),
        (([0, 1], [0, 1]),),
    ),
    "no elements": (
        """kernel nothing(inout h: i64[n]) { for i in range(n) { h[i] = 1 } }
def main(x: i64[n]) => i64[n] { _ = kernel nothing(x); return x }""",
        (np.zeros(0, int),),
        [],
        ([],),
    ),
}


_FEW = [("bytecode", "bytecode"), ("compiled", "bytecode")]


def copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def plain(value: Any) -> Any:
    """Return a result or an argument as numbers, lists and tuples."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value if isinstance(value, bool | int) else np.asarray(value).tolist()


ENTRIES = {name: f"main{number}" for number, name in enumerate(PROGRAMS)}  # in a module of all programs


@pytest.fixture(scope="module")
def all_programs() -> Module:
    texts = (text.replace("main", ENTRIES[name]) for name, (text, *_) in PROGRAMS.items())
    return parse_module("\n".join([KERNELS, *texts]))


@pytest.fixture(scope="module")
def all_machines(all_programs: Module) -> dict[tuple[str, str], vm.VirtualMachine]:
    return machines(all_programs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_updates_reach_the_arguments_and_no_other_value(name: str, all_programs: Module, all_machines: dict) -> None:
    _, args, result, after = PROGRAMS[name]
    given = copied(args)
    if name != "a tail recursion":  # the reference interpreter is slow
        assert plain(evaluate(all_programs, ENTRIES[name], *given)) == result
        assert plain(given) == after
    for way, machine in all_machines.items():
        given = copied(args)
        assert plain(machine[ENTRIES[name]](*given)) == result, way
        assert plain(given) == after, way


def test_the_text_of_each_stage_reads_back(all_programs: Module) -> None:
    text = print_module(all_programs)
    assert "kernel bump(inout h: i64[n]) -> ()" in text
    assert print_module(parse_module(text)) == text
    typed = print_module(infer_types(all_programs))
    assert "inout" not in typed
    assert print_module(infer_types(parse_module(typed))) == typed


def test_a_saved_executable_updates_its_arguments() -> None:
    module = parse_module(KERNELS + PROGRAMS["two updates and a result"][0])
    for mode, target in _FEW:
        loaded = Executable.from_bytes(vm.build(module, mode, target).to_bytes(), trust_native=True)
        x, y = np.arange(2), np.arange(2)
        assert plain(vm.VirtualMachine(loaded)["main"](x, y)) == 11
        assert plain((x, y)) == ([1, 1], [10, 1])


def test_an_export_updates_its_inputs() -> None:
    text, args, result, after = PROGRAMS["a tail recursion"]
    program = aot.build(parse_module(KERNELS + text), aot.AotConfig(name="updates", runtime="hosted"))
    executor = aot.AotExecutor(aot.compile_library(program))
    assert executor.get_input_info()["x"].is_updated
    executor.run(x=args[0], n=args[1])
    assert executor.get_output(0).tolist() == result
    assert executor.get_input("x").tolist() == after[0]
    assert args[0].tolist() == [0, 1, 2, 3]  # set_input copies
    bound = args[0].copy()
    executor.set_input_zero_copy("x", bound)
    executor.run()
    assert bound.tolist() == after[0]
    bound.flags.writeable = False
    with pytest.raises(RelvmTypeError, match="input x is updated: expected a writable array, got a read-only one"):
        executor.set_input_zero_copy("x", bound)


def test_the_inputs_of_an_export_must_not_overlap() -> None:
    text = PROGRAMS["two updates and a result"][0]
    program = aot.build(parse_module(KERNELS + text), aot.AotConfig(name="updates", runtime="hosted"))
    executor = aot.AotExecutor(aot.compile_library(program))
    both = np.arange(2)
    executor.set_input_zero_copy("x", both)
    executor.set_input_zero_copy("y", both)
    with pytest.raises(RelvmArgumentError, match="input x is updated, but its array shares memory"):
        executor.run()


def test_a_bare_export_declares_an_updated_input_as_writable() -> None:
    text = PROGRAMS["a tail recursion"][0]
    program = aot.build(parse_module(KERNELS + text), aot.AotConfig(name="updates"))
    assert "\n  int64_t *x; /* i64[4] */" in program.files()["include/updates.h"].decode()


BUMP = (
    "kernel bump(inout h: i64[n]) { h[0] = h[0] + 1 }\n"
    + "def main(x: i64[4], t: (i64[2], i64[4])) => i64 { _ = kernel bump(x); return 0 }"
)


def test_memory_that_must_not_change_is_refused() -> None:
    whole = np.arange(8)
    read_only = np.arange(4)
    read_only.flags.writeable = False
    other = (np.arange(2), np.arange(4))
    for machine in machines(parse_module(BUMP), _FEW).values():
        for array in (read_only, whole[::2], np.arange(4).astype(">i8")):
            with pytest.raises(RelvmTypeError, match="main: argument x is updated: expected a writable tensor"):
                machine["main"](array, other)
        with pytest.raises(RelvmArgumentError, match="main: argument x is updated, but shares memory with another"):
            machine["main"](whole[:4], (np.arange(2), whole[2:6]))
    assert whole.tolist() == list(range(8))


@pytest.mark.parametrize(
    ("other", "wrong", "right"),
    [
        ("optional[i64[4]]", lambda x: x, lambda x: None),
        ("object", lambda x: x, lambda x: 7),
        ("object", lambda x: (0, (x,)), lambda x: x.copy()),
        ("list[i64[4]]", lambda x: [x], None),
        ("optional[(i64[4], i64)]", lambda x: (x, 0), lambda x: None),
    ],
)
def test_other_arguments_that_can_share_memory(other: str, wrong: Any, right: Any) -> None:
    module = parse_module(KERNELS + f"def main(x: i64[4], o: {other}) => i64 {{ _ = kernel bump(x); return 0 }}")
    for machine in machines(module, _FEW).values():
        x = np.arange(4)
        with pytest.raises(
            (RelvmArgumentError, RelvmTypeError), match=r"argument x is updated, but .*another argument"
        ):
            machine["main"](x, wrong(x))
        with pytest.raises(
            (RelvmArgumentError, RelvmTypeError), match=r"argument x is updated, but .*another argument"
        ):
            evaluate(infer_types(module), "main", x, wrong(x))
        assert x.tolist() == [0, 1, 2, 3]
        if right:
            machine["main"](x, right(x))
            assert x.tolist() == [1, 1, 2, 3]


def test_a_constant_that_the_program_returned_is_refused() -> None:
    text = "def main(x: i64[4]) => i64 { _ = kernel bump(x); return 0 }\ndef fixed() = const(i64[4], [1, 2, 3, 4])"
    for machine in machines(parse_module(KERNELS + text), _FEW).values():
        with pytest.raises(RelvmTypeError, match="found a read-only one"):
            machine["main"](machine["fixed"]())
        assert plain(machine["fixed"]()) == [1, 2, 3, 4]


def test_a_failed_call_changes_nothing() -> None:
    text = """def main(x: i64[4], i: i64) => i64 {
  _ = kernel bump(x)
  _ = builtin.assert(i < 3, "i must be small")
  return 0
}"""
    for machine in machines(parse_module(KERNELS + text), _FEW).values():
        x = np.arange(4)
        with pytest.raises(RelvmError, match="i must be small"):
            machine["main"](x, 5)
        assert x.tolist() == [0, 1, 2, 3]


MAIN = "def main(x: i64[4], t: (i64[4], i64[4]), c: i64) => i64 {{ {} return 0 }}"
REFUSED = [
    (MAIN.format("_ = kernel bump(const(i64[2], [1, 2]));"), "inout parameter h: .* found a constant"),
    (MAIN.format("k = const(i64[2], [1, 2]); l = k; _ = kernel bump(l);"), "found l, which is a constant"),
    (MAIN.format("_ = kernel bump(t.0);"), "inout parameter h: .* found an expression; bind a computed tensor"),
    (MAIN.format("_ = kernel bump(negative(x));"), "found an expression"),
    (MAIN.format("s = kernel bump_both(x, x);"), "kernel bump_both updates x twice"),
    (MAIN.format("y = add(kernel bump_both(x, x), 1);"), "kernel bump_both updates an argument; bind the call"),
    (MAIN.format("f = fn () => i64 { _ = kernel bump(x); return 0 };"), "found x, which a local function gets from"),
    (MAIN.format("f = fn (y: i64[4]) => i64 { _ = kernel bump(y); return 0 };"), "found y, which a local function"),
    ("def main(x: i64[4]) -> i64 { _ = kernel bump(x); return 0 }", "declared as pure with ->, but parameter x is"),
    ("def main(x: object) => i64 { _ = kernel bump(x); return 0 }", "expected a tensor of known dtype and shape"),
    (
        "kernel flip(inout m: bool[n]) { m[0] = true }\ndef main(m: bool[3]) => i64 { _ = kernel flip(m); return 0 }",
        "parameter m is updated: expected a dtype of at least 8 bits other than bool",
    ),
    (
        "def f(x: i64[4]) => i64 { _ = kernel bump(x); return 0 }\ndef main(x: i64[4]) => i64 { g = @f; return g(x) }",
        "f updates a parameter, so it can only be called directly",
    ),
    ("def main(x: i64[4]) => i64 { _ = kernel bump(); return 0 }", "kernel bump takes 1 argument, got 0"),
    ("def main(x: f32[4]) => i64 { _ = kernel bump(x); return 0 }", "kernel bump: argument h"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_cannot_be_updated_is_refused(text: str, message: str) -> None:
    with pytest.raises((RelvmTypeError, RelvmArgumentError), match=message) as failure:
        infer_types(parse_module(KERNELS + text.replace("{{", "{").replace("}}", "}"), "m.relvm"))
    assert "m.relvm:" in str(failure.value)


@script
class Script:
    @kernel
    def accumulate(total: "inout i64[n]", x: "i64[n]"):
        for i in simd(n):
            total[i] += x[i]

    def main(total: "i64[3]", x: "i64[3]", twice: "bool"):
        accumulate(total, x)
        if twice:
            accumulate(total, x)
        return total * 2


def test_scripts_update_arguments() -> None:
    for machine in machines(Script, _FEW).values():
        total = np.zeros(3, int)
        assert plain(machine["main"](total, np.arange(3), True)) == [0, 4, 8]
        assert plain(machine["main"](total, np.arange(3), False)) == [0, 6, 12]
        assert total.tolist() == [0, 3, 6]


def test_the_builder_calls_kernels_that_update() -> None:
    builder = Builder()
    for _, definition in parse_module(KERNELS).kernels:
        builder.kernel(definition)
    with builder.function("main", [("x", TensorType(I64, (4,)))]) as (x,):
        builder.call_kernel("bump", x)
        builder.ret(x)
    module: Module = builder.module()
    x = np.arange(4)
    assert plain(vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](x)) == [1, 1, 2, 3]
    assert x.tolist() == [1, 1, 2, 3]
