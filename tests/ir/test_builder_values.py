"""Values that the builder converts to expressions, and those that it rejects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.modes import MODES, assert_same_bits, plain

from relvm import vm
from relvm.errors import RelvmTypeError, RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import BOOL, F32, F64, I64
from relvm.ir.expr import Module, constant, prim
from relvm.ir.symbolic import dim_var
from relvm.ir.type_inference import infer_types
from relvm.ir.types import PrimType, TensorType

VECTOR = TensorType(F32, (dim_var("n"),))
X = np.array([1, 2, 3], np.float32)


def module(body: Callable[..., Any], **params: Any) -> Module:
    b = Builder()
    with b.function("main", [("y", VECTOR), *params.items()]) as variables:
        body(b, *variables)
    return b.module()


def results(built: Module, *args: Any) -> list[Any]:
    return [plain(vm.VirtualMachine(vm.build(built, mode, "bytecode"))["main"](*args)) for mode in MODES]


def test_numbers_and_arrays_are_constants_everywhere() -> None:
    def body(b: Builder, y: Any, c: Any) -> None:
        added = b.op("add", y, np.float32(1))
        halved = b.op("multiply", added, np.array(0.5, np.float32))
        chosen = b.if_(c, lambda: 1, lambda: np.int64(2))
        total = b.prim("add", chosen, np.int64(3))
        function = b.local_function([("a", PrimType(I64))], lambda a: 7)
        b.ret(b.tuple_(halved, total, 2.5, np.bool_(True), np.uint8(9), b.call(function, 3)))

    for halved, *others in results(module(body, c=PrimType(BOOL)), X, True):
        np.testing.assert_array_equal(halved, (X + 1) / 2)
        assert others == [4, 2.5, True, 9, 7]


@pytest.mark.parametrize("value", [None, "text", [1], 1j, np.complex64(1), dict], ids=repr)
@pytest.mark.parametrize("place", ["op", "prim", "tuple", "call", "ret", "branch"])
def test_other_values_are_rejected(value: Any, place: str) -> None:
    def body(b: Builder, y: Any, c: Any) -> None:
        match place:
            case "op":
                b.ret(b.op("add", y, value))
            case "prim":
                b.ret(b.prim("add", c, value))
            case "tuple":
                b.ret(b.tuple_(y, value))
            case "call":
                b.ret(b.call(b.local_function([("a", VECTOR)], lambda a: a), value))
            case "ret":
                b.ret(value)
            case "branch":
                b.ret(b.if_(c, lambda: value, lambda: y))

    with pytest.raises((RelvmTypeError, RelvmVerifyError), match=r"an expression, a number or an array|result"):
        module(body, c=PrimType(BOOL))


def test_ret_belongs_to_functions_of_the_module() -> None:
    """In a branch, `ret` would look like a return from the function."""

    def branch(b: Builder, y: Any, c: Any) -> None:
        def then() -> Any:
            b.ret(b.op("exp", y))
            return y

        b.ret(b.if_(c, then, lambda: y))

    def local(b: Builder, y: Any, c: Any) -> None:
        b.ret(b.call(b.local_function([("a", VECTOR)], lambda a: b.ret(a)), y))

    for body in (branch, local):
        with pytest.raises(RelvmVerifyError, match="ret inside a branch or local function; return its result"):
            module(body, c=PrimType(BOOL))


@pytest.mark.parametrize("name", [3, None, "a\0b", "\ud800"], ids=repr)
def test_names_are_strings(name: Any) -> None:
    b = Builder()
    with pytest.raises(RelvmTypeError, match="function: "), b.function(name, []):
        pass
    with pytest.raises(RelvmTypeError, match="a parameter: "), b.function("main", [(name, VECTOR)]):
        pass
    with pytest.raises(RelvmTypeError, match="parameter x: expected a type"), b.function("other", [("x", 3)]):
        pass


@pytest.mark.parametrize("functions", [(3,), None, "main", [1]], ids=repr)
def test_a_module_contains_functions(functions: Any) -> None:
    with pytest.raises(RelvmTypeError, match="expected a tuple of Function as functions"):
        vm.build(Module(functions))


def test_scalars_and_constants() -> None:
    for value, dtype in ((np.int64(3), I64), (np.float32(2), F64), (np.bool_(True), BOOL)):
        assert (prim(value).value, prim(value).type) == (value.item(), PrimType(dtype))
    with pytest.raises(RelvmTypeError, match="prim: expected a bool, an integer or a float"):
        prim("3")
    with pytest.raises(RelvmTypeError, match="without a mask; use its method filled"):
        constant(np.ma.array([1.0, 2.0], mask=[0, 1]))
    for value in (np.ones(2, complex), np.longdouble(1), np.datetime64("2020-01-01"), None):
        with pytest.raises(RelvmTypeError):
            constant(value)


@pytest.mark.parametrize(
    "statements",
    [
        "r: object = add(x, x)\n  return add(r, x)",
        "r: f32[_] = add(x, x)\n  return add(r, x)",
        "r: (object, object) = (add(x, x), 1)\n  return add(r.0, x)",
        "r: object = if i == 0 then add(x, x) else x\n  return add(r, x)",
    ],
)
def test_an_annotation_that_is_wider_than_the_value_keeps_the_type_of_the_value(statements: str) -> None:
    text = f"def main(x: f32[n], i: i64) => object {{\n  {statements}\n}}\n"
    for result in results(parse_module(text), X, 0):
        np.testing.assert_array_equal(result, 3 * X)


def test_an_annotation_of_an_optional_is_kept() -> None:
    text = "def main(x: f32[n]) => object {\n  r: optional[f32[n]] = x\n  return r\n}\n"
    (binding,) = infer_types(parse_module(text)).functions[0].block.bindings
    assert str(binding.var.type) == "optional[f32[n]]"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("optional[f32[n]]", "add(x, x)"),
        ("optional[f32[n]]", "reshape(x, shape(n))"),
        ("optional[f32[_]]", "if i == 0 then add(x, x) else x"),
        ("(optional[f32[n]], i64)", "(add(x, x), i)"),
    ],
)
def test_results_of_operators_can_be_annotated_as_optionals(annotation: str, value: str) -> None:
    first, second = (
        results(parse_module(f"def main(x: f32[n], i: i64) => object {{\n  {r} = {value}\n  return r\n}}\n"), X, 0)
        for r in (f"r: {annotation}", "r")
    )
    assert_same_bits(first, second)
