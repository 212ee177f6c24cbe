"""Symbolic integers, bools and floats that are computed at run time, as scalars."""

from __future__ import annotations

import math
from typing import Any, Protocol

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmUnsupportedError, shortened
from relvm.frontend.torch.size_expressions import RELATIONS, Call, fold
from relvm.ir.builder import Builder
from relvm.ir.dtypes import BOOL, F64, I64
from relvm.ir.expr import DimValue, Expr, Prim, PrimCall, prim
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import PrimType


class Emitter(Protocol):
    """The part of the importer that computes scalars."""

    builder: Builder

    @property
    def sizes(self) -> Any: ...


@value_record
class ScalarValue:
    """A scalar that an exported program states as an expression of sympy.

    kind: `as_sym_int`, `as_sym_bool` or `as_sym_float`.
    call: the expression.
    """

    kind: str
    call: Call

    def compute(self, importer: Emitter) -> Expr:
        """Return the scalar.

        Raises
        ------
        RelvmUnsupportedError
            The expression contains a symbol without a value, or an unknown function.
        """
        return compute_scalar(importer, self.call)


def compute_scalar(importer: Emitter, call: Call) -> Expr:
    """Return the value of an expression as a scalar.   The errors are those of `ScalarValue.compute`."""

    def leaf(symbol: str) -> Expr:
        size: AnyDim | None = importer.sizes.get(symbol)
        if size is None:
            raise RelvmUnsupportedError(f"the symbol {shortened(symbol)} has no value here")
        return DimValue(size)

    def function(name: str, args: list[Any]) -> Any:
        if name in ("Integer", "Float", "Rational", "Zero", "One", "NegativeOne", "Half"):
            return _literal(name, args)
        if name in ("true", "BooleanTrue", "false", "BooleanFalse"):
            return prim(name in ("true", "BooleanTrue"))
        if name == "Piecewise" and args:
            return _piecewise(importer, args)
        values = [prim(arg) if isinstance(arg, bool | int | float) else arg for arg in args]
        if name == "ExprCondPair" and len(values) == 2:
            return tuple(values)
        return call_function(importer, name, values)

    return fold(call, leaf, function)


def call_function(importer: Emitter, name: str, values: list[Expr]) -> Expr:
    """Return the value of a function of sympy, such as Add, for scalars.

    The errors are those of `ScalarValue.compute`.
    """
    return _call(lambda function, *args: importer.builder.emit(PrimCall(function, args)), importer, name, values)


def _literal(name: str, args: list[Any]) -> Prim:
    match name, args:
        case "Zero", _:
            return prim(0)
        case "One", _:
            return prim(1)
        case "NegativeOne", _:
            return prim(-1)
        case "Half", _:
            return prim(0.5)
        case "Integer", (int() as number,):
            return prim(number)
        case "Float", (str() | int() | float() as number, *_):
            return prim(float(number))
        case "Rational", (int() as top, int() as bottom):
            return prim(top / bottom)
    raise RelvmUnsupportedError(f"the number {shortened(name)} is not supported")


def _dtype(value: Expr) -> Any:
    assert isinstance(value.type, PrimType)
    return value.type.dtype


def _call(emit: Any, importer: Emitter, name: str, values: list[Expr]) -> Expr:
    def as_float(value: Expr) -> Expr:
        return value if _dtype(value) == F64 else emit("f64", value)

    def unified(items: list[Expr]) -> list[Expr]:
        return items if all(_dtype(item) == I64 for item in items) else [as_float(item) for item in items]

    def folded(function: str) -> Expr:
        items = unified(values)
        result = items[0]
        for item in items[1:]:
            result = emit(function, result, item)
        return result

    if name in RELATIONS and len(values) == 2:
        if all(_dtype(value) == BOOL for value in values):
            return emit(RELATIONS[name], *values)
        return emit(RELATIONS[name], *unified(values))
    simple = {"Add": "add", "Mul": "mul", "Max": "max", "Min": "min", "FloorDiv": "floordiv", "CleanDiv": "floordiv"}
    simple |= {"Mod": "mod", "PythonMod": "mod"}
    if name in simple and values:
        return folded(simple[name])
    if name in ("And", "Or") and values:
        result = values[0]
        for value in values[1:]:
            result = emit(name.lower(), result, value)
        return result
    match name, values:
        case "Not", (value,):
            return emit("not", value)
        case "ToFloat", (value,):
            return as_float(value)
        case "IntTrueDiv" | "FloatTrueDiv", (x, y):
            return emit("div", as_float(x), as_float(y))
        case "FloatPow" | "Pow" | "PowByNatural", (x, y):
            return _power(emit, importer, name, x, y, as_float)
        case "OpaqueUnaryFn_sqrt", (value,):
            return _through_tensor(importer, ops.sqrt, as_float(value))
        case "TruncToInt", (value,):
            return value if _dtype(value) == I64 else emit("i64", value)
        case "FloorToInt" | "CeilToInt" | "floor" | "ceiling", (value,):
            if _dtype(value) == I64:
                return value
            rounding = ops.floor if name.startswith(("F", "f")) else ops.ceil
            return emit("i64", _through_tensor(importer, rounding, value))
    raise RelvmUnsupportedError(f"a number that is computed by {shortened(name)} is not supported")


def _piecewise(importer: Emitter, pairs: list[Any]) -> Expr:
    """Return the value of the first of several pairs whose condition is true.   The last condition is always true."""
    if not all(isinstance(pair, tuple) for pair in pairs):
        raise RelvmUnsupportedError("a number that is computed by Piecewise is not supported")
    result: Expr = pairs[-1][0]
    for value, condition in pairs[-2::-1]:
        dtype = _dtype(value) if _dtype(value) == _dtype(result) else F64
        tensors = [
            importer.builder.emit(ops.to_tensor(each, dtype=each_dtype.name))
            for each, each_dtype in ((condition, BOOL), (value, dtype), (result, dtype))
        ]
        result = importer.builder.emit(ops.to_scalar(importer.builder.emit(ops.where(*tensors))))
    return result


def _power(emit: Any, importer: Emitter, name: str, x: Expr, y: Expr, as_float: Any) -> Expr:
    if isinstance(y, Prim) and isinstance(y.value, int) and 1 <= y.value <= 8 and name != "FloatPow":
        result = x
        for _ in range(y.value - 1):
            result = emit("mul", result, x)
        return result
    if isinstance(y, Prim) and math.isclose(float(y.value), 0.5, rel_tol=0, abs_tol=0):
        return _through_tensor(importer, ops.sqrt, as_float(x))
    base, exponent = (importer.builder.emit(ops.to_tensor(as_float(value), dtype="f64")) for value in (x, y))
    return importer.builder.emit(ops.to_scalar(importer.builder.emit(ops.power(base, exponent))))


def _through_tensor(importer: Emitter, function: Any, value: Expr) -> Expr:
    tensor = importer.builder.emit(ops.to_tensor(value, dtype="f64"))
    return importer.builder.emit(ops.to_scalar(importer.builder.emit(function(tensor))))
