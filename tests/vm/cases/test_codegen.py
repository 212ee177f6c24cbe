"""Tests of code generation for each construct, case by case, in both modes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.codegen.lower_to_lir import lower_to_routines
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.ir.type_inference import infer_types
from relvm.kernels.kernel import Kernel
from relvm.lir.printer import format_module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.passes.to_anf import to_anf

X = np.float32([[1, -2, 3], [4, 5, -6]])

vm.register_func("test.codegen.add", lambda a, b: a.numpy() + b.numpy(), override=True)
vm.register_func("test.codegen.mul", lambda a, b: a.numpy() * b.numpy(), override=True)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def main_of(mode: str, text: str, name: str = "main", **options: Any) -> Callable[..., Any]:
    return vm.VirtualMachine(vm.build(parse_module(text), mode, "numpy", verified=True), **options)[name]


def routine(text: str) -> str:
    """Return the routines of the program `text` as text.  The program may call a kernel named `shape_func`."""
    kernels = (("shape_func", Kernel("shape_func", (), (), (), "")),)
    return format_module(lower_to_routines(replace(to_anf(infer_types(parse_module(text))), kernels=kernels)))


# ---- values ----


def test_copy(mode: str) -> None:
    text = "def main(x: f32[2, 3]) -> object {\n  y: object = builtin.copy(x)\n  return y\n}"
    main = main_of(mode, text, results_may_share=True)
    got = main(X)
    np.testing.assert_array_equal(got, X)
    assert got.numpy().ctypes.data == X.ctypes.data  # the same array, not a copy


def test_to_device(mode: str) -> None:
    text = "def main(x: f32[2, 3], to: i64) -> object {\n  y: object = builtin.to_device(x, to)\n  return y\n}"
    main = main_of(mode, text)
    assert main(X, 0).__dlpack_device__() == (1, 0)  # kDLCPU
    np.testing.assert_array_equal(main(X, 0), X)
    with pytest.raises(RelvmUnsupportedError, match="unknown device 1"):
        main(X, 1)


def test_the_constant_tuple(mode: str) -> None:
    text = "def main(x: i64[2]) -> object = (const(i64[2], [1, 2]), const(i64[2], [3, 4]), (x, 5, ()))"
    first, second, (third, number, empty) = main_of(mode, text)(np.int64([7, 8]))
    np.testing.assert_array_equal([first, second, third], [[1, 2], [3, 4], [7, 8]])
    assert number == 5 and empty == ()


def test_a_constant_as_call_argument(mode: str) -> None:
    text = """
    def main(x: f32[2]) => object {
      return packed("test.codegen.add", x, const(f32[2], [0.5, -1]))
    }"""
    np.testing.assert_array_equal(main_of(mode, text)(np.float32([1, 2])), [1.5, 1])


@pytest.mark.parametrize(
    ("written", "value"),
    [("3", 3), ("-9223372036854775808", -(1 << 63)), ("2.5", 2.5), ("-0.0", -0.0), ("true", True), ("null", None)],
)
def test_prim_value_returned_as_such(mode: str, written: str, value: Any) -> None:
    got = main_of(mode, f"def main() -> object = {written}")()
    assert type(got) is type(value) and repr(got) == repr(value)


def test_string_returned_as_such(mode: str) -> None:
    assert main_of(mode, 'def main() -> object = "a \\"text\\" \\u00e9 \\n"')() == 'a "text" é \n'


@pytest.mark.parametrize("name", ["f32", "i64", "bool", "u8"])
def test_dtype_returned_as_such(mode: str, name: str) -> None:
    got = main_of(mode, f"def main() -> object = dtype({name})")()
    assert np.dtype(got) == np.dtype({"f32": "float32", "i64": "int64", "u8": "uint8"}.get(name, name))


def test_reshape_builtin(mode: str) -> None:
    text = "def main(x: f32[n, m]) -> object {\n  y: object = builtin.reshape(x, shape(m, n))\n  return y\n}"
    got = main_of(mode, text, results_may_share=True)(X)
    np.testing.assert_array_equal(got, X.reshape(3, 2))
    assert got.numpy().ctypes.data == X.ctypes.data  # a view


# ---- ifs ----

IF = """
def main(cond: {type}, x: f32[2, 3]) => object {{
  w = if {cond} then {{ return packed("test.codegen.add", x, x) }} else {{ return packed("test.codegen.mul", x, x) }}
  return w
}}"""


@pytest.mark.parametrize(
    ("cond", "taken"),
    [("true", True), ("false", False), ("1", True), ("0", False), ("const(bool[], false)", False), ("2 < 3", True)],
)
def test_if_on_a_constant_condition(mode: str, cond: str, taken: bool) -> None:
    main = main_of(mode, IF.format(type="bool", cond=cond))
    np.testing.assert_array_equal(main(not taken, X), X + X if taken else X * X)


@pytest.mark.parametrize(
    ("type_", "value", "taken"),
    [
        ("i64[]", np.int64(1), True),
        ("bool[]", np.bool_(True), True),
        ("i64[]", np.int64(0), False),
        ("bool[]", np.bool_(False), False),
    ],
    ids=["0-d int 1", "bool True", "int 0", "bool False"],
)
def test_if_on_a_tensor_condition(mode: str, type_: str, value: Any, taken: bool) -> None:
    main = main_of(mode, IF.format(type=type_, cond="cond"))
    np.testing.assert_array_equal(main(np.array(value), X), X + X if taken else X * X)


# ---- memory and names ----


def test_kill_object_frees(mode: str) -> None:
    """A value is released before the first call after its last use."""
    made: list[weakref.ref] = []

    def make() -> np.ndarray:
        array = np.arange(3.0)
        made.append(weakref.ref(array))
        return array

    def is_alive() -> bool:
        gc.collect()
        return made[-1]() is not None

    vm.register_func("test.codegen.make", make, override=True)
    vm.register_func("test.codegen.is_alive", is_alive, override=True)
    vm.register_func("test.codegen.total", lambda x: float(x.numpy().sum()), override=True)
    text = """
    def main() => object {
      x = packed("test.codegen.make")
      before = packed("test.codegen.is_alive")
      total = packed("test.codegen.total", x)
      after = packed("test.codegen.is_alive")
      return (before, total, after)
    }"""
    main = main_of(mode, text)
    assert [main() for _ in range(2)] == [(True, 3.0, False)] * 2


def test_a_killed_register_may_be_reused() -> None:
    """The bytecode is built by hand, because programs in the text form cannot name registers."""
    given = [np.arange(3.0)]
    known = weakref.ref(given[0])
    vm.register_func("test.codegen.give", given.pop, override=True)
    vm.register_func("test.codegen.is_gone", lambda: known() is None, override=True)
    b = vm.ExecBuilder()
    with b.function("main", []):
        b.emit_call("test.codegen.give", [], dst=b.r(1))
        b.emit_call("test.codegen.is_gone", [], dst=b.r(2))
        b.emit_reset(b.r(1))
        b.emit_call("test.codegen.is_gone", [], dst=b.r(1))
        b.emit_call("vm.builtin.make_tuple", [b.r(2), b.r(1)], dst=b.r(1))
        b.emit_ret(b.r(1))
    assert vm.VirtualMachine(b.get())["main"]() == (False, True)


REBINDINGS = "def main(x: object) -> object {{\n  y = {copy}\n  z = y\n  return z\n}}"


def test_trivial_rebindings_kept_when_asked(mode: str) -> None:
    """A binding of a variable to another generates no code, but `builtin.copy` copies to a new register."""
    names, asked = (REBINDINGS.format(copy=copy) for copy in ("x", "builtin.copy(x) : object"))
    assert routine(names).count("anylist_setitem_call_packed") == 1
    assert routine(asked).count("anylist_setitem_call_packed") == 2
    for text in (names, asked):
        assert main_of(mode, text)("a value") == "a value"


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_saved_and_loaded_executable_prints_the_same_text(mode: str, target: str, tmp_path: Path) -> None:
    text = """
    def main(x: f32[n, 3], c: bool) -> (f32[n, 3], object) {
      return if c then (relu(x), "taken") else (add(x, const(f32[3], [1, 2, 3])), dtype(f32))
    }"""
    executable = vm.build(parse_module(text), mode, target)
    executable.save(tmp_path / "main.rvm")
    loaded = vm.load(tmp_path / "main.rvm")
    assert loaded.as_text() == executable.as_text()
    np.testing.assert_array_equal(vm.VirtualMachine(loaded)["main"](X, True)[0], np.maximum(X, 0))


# ---- golden tests: five routines are printed as expected, and run ----


def test_golden_routine_of_a_packed_call(mode: str) -> None:
    text = 'def main(x: object) => object {\n  z = packed("test.codegen.add", x, x)\n  return z\n}'
    assert (
        routine(text)
        == """\
__vmtir__main(ctx_ptr, r, c, f):  # r[0..0] = x
  anylist_setitem_call_packed(r, 2, "test.codegen.add", anylist_getitem(r, 0), anylist_getitem(r, 0))
  anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 2))
"""
    )
    np.testing.assert_array_equal(main_of(mode, text)(X), X + X)


def test_golden_routine_of_a_kernel_without_a_result(mode: str) -> None:
    text = "def main(x: f32[4]) => object {\n  _ = run shape_func(x)\n  return x\n}"
    assert (
        routine(text)
        == """\
__vmtir__main(ctx_ptr, r, c, f):  # r[0..0] = x
  call_cpacked("shape_func", anylist_getitem(r, 0), null)
  anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 0))
"""
    )
    module = parse_module("def main(x: f32[2, 3]) -> f32[2, 3] = relu(x)")
    lowered = format_module(lower_to_routines(run_passes(module, build_pipeline("c", fused=False))))
    assert '  call_cpacked("relu_f32", anylist_getitem(r, 0), anylist_getitem(r, ' in lowered
    np.testing.assert_array_equal(vm.VirtualMachine(vm.build(module, mode, "c"))["main"](X), np.maximum(X, 0))


def test_golden_routine_of_an_if(mode: str) -> None:
    text = """
    def ife(cond: object, x: object) => object {
      w = if cond then { return packed("test.codegen.add", x, x) } else { return packed("test.codegen.mul", x, x) }
      return w
    }"""
    assert (
        routine(text)
        == """\
__vmtir__ife(ctx_ptr, r, c, f):  # r[0..1] = cond, x
  if bool(call_packed("vm.builtin.read_if_cond", anylist_getitem(r, 0))):
    anylist_setitem_call_packed(r, 4, "test.codegen.add", anylist_getitem(r, 1), anylist_getitem(r, 1))
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", anylist_getitem(r, 4))
  else:
    anylist_setitem_call_packed(r, 5, "test.codegen.mul", anylist_getitem(r, 1), anylist_getitem(r, 1))
    anylist_setitem_call_packed(r, 3, "vm.builtin.copy", anylist_getitem(r, 5))
  anylist_setitem_call_packed(r, 2, "vm.builtin.copy", anylist_getitem(r, 3))
"""
    )
    ife = main_of(mode, text, "ife")
    np.testing.assert_array_equal(ife(True, X), X + X)
    np.testing.assert_array_equal(ife(0, X), X * X)


def test_golden_routine_of_a_tuple_with_constants(mode: str) -> None:
    text = """
    def main(x: object) -> object {
      y = const(i64[2], [1, 2])
      z = (y, const(i64[2], [3, 4]), x)
      return z
    }"""
    constants = "anylist_getitem(c, 0), anylist_getitem(c, 1), anylist_getitem(r, 0)"
    assert (
        routine(text)
        == f"""\
__vmtir__main(ctx_ptr, r, c, f):  # r[0..0] = x
  anylist_setitem_call_packed(r, 2, "vm.builtin.make_tuple", {constants})
  anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 2))
"""
    )
    first, second, third = main_of(mode, text)("x")
    assert first.numpy().tolist() == [1, 2] and second.numpy().tolist() == [3, 4] and third == "x"


def test_golden_routine_of_a_constant_as_an_argument(mode: str) -> None:
    text = """
    def main(x: object) => object {
      z = packed("test.codegen.add", x, const(f32[2], [1, 2]))
      return z
    }"""
    assert (
        routine(text)
        == """\
__vmtir__main(ctx_ptr, r, c, f):  # r[0..0] = x
  anylist_setitem_call_packed(r, 2, "test.codegen.add", anylist_getitem(r, 0), anylist_getitem(c, 0))
  anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 2))
"""
    )
    np.testing.assert_array_equal(main_of(mode, text)(np.float32([5, 5])), [6, 7])
