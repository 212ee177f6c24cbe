"""Expressions of sizes in exported programs, such as `Mul(Integer(2), Symbol('s0', integer=True))`.

The text is parsed by its grammar, calls of names with arguments, and never evaluated as Python.
Source: sympy's srepr; torch/utils/_sympy/functions.py for the functions of PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted, shortened
from relvm.frontend.torch.limits import MAX_EXPRESSION, MAX_EXPRESSION_DEPTH
from relvm.ir.symbolic import AnyDim, ComplexDimError, dim_op, is_never_negative, product

_MAX_POWER = 8
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)|'([^'\\]*)'|([(),=]))")


@value_record
class Call:
    """A call of a function of sympy.   name: its name.   args: Calls, numbers and strings."""

    name: str
    args: tuple[Any, ...]


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Call:
    """Parse an expression.  Keyword arguments are ignored.

    Raises
    ------
    RelvmFormatError
        The text is malformed, too long or nested too deeply.
    """
    if len(text) > MAX_EXPRESSION:
        raise RelvmFormatError(
            f"the expression of a size has {counted(len(text), 'character')}, expected at most {MAX_EXPRESSION}"
        )
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise RelvmFormatError(f"the expression of a size is malformed at {shortened(text[at:])!r}")
        kind = ("name", "number", "string", "sign")[match.lastindex - 1 if match.lastindex else 3]
        tokens.append((kind, match[match.lastindex or 0]))
        at = match.end()
    parser = _Parser(tokens)
    result = parser.value(0)
    if parser.at != len(tokens) or not isinstance(result, Call):
        raise RelvmFormatError(f"the expression of a size is malformed: {shortened(text)}")
    return result


class _Parser:
    """The parser of one expression.   tokens: pairs (kind, text)."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = [*tokens, ("end", ""), ("end", "")]
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > MAX_EXPRESSION_DEPTH:
            raise RelvmFormatError(f"the expression of a size nests more than {MAX_EXPRESSION_DEPTH} calls")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return int(text) if re.fullmatch(r"-?\d{1,40}", text) else float(text)
        if kind == "string":
            return text
        if kind != "name":
            raise RelvmFormatError(f"the expression of a size is malformed at {shortened(text)!r}")
        if self.tokens[self.at] != ("sign", "("):
            return Call(text, ())
        self.at += 1
        args: list[Any] = []
        while self.tokens[self.at] != ("sign", ")"):
            is_keyword = self.tokens[self.at][0] == "name" and self.tokens[self.at + 1] == ("sign", "=")
            self.at += 2 * is_keyword
            value = self.value(depth + 1)
            if not is_keyword:
                args.append(value)
            if self.tokens[self.at] == ("sign", ","):
                self.at += 1
            elif self.tokens[self.at] != ("sign", ")"):
                raise RelvmFormatError("the expression of a size is malformed: a parenthesis is not closed")
        self.at += 1
        return Call(text, tuple(args))


def symbols_of(call: Call) -> list[str]:
    """Return the names of the symbols in an expression, in order."""
    if call.name == "Symbol" and call.args:
        return [str(call.args[0])]
    return [name for arg in call.args if isinstance(arg, Call) for name in symbols_of(arg)]


def as_size(call: Call, sizes: Mapping[str, AnyDim]) -> AnyDim:
    """Return the value of an expression of integers.

    sizes: the value of each symbol.

    Raises
    ------
    KeyError
        A symbol has no value yet.
    RelvmUnsupportedError
        The expression contains a function that sizes do not have, or is too complex.
    """
    try:
        return _size(call, sizes)
    except (ComplexDimError, ZeroDivisionError) as error:
        raise RelvmUnsupportedError(f"the expression of a size: {error}") from None


def _size(value: Any, sizes: Mapping[str, AnyDim]) -> AnyDim:
    if isinstance(value, int):
        return value
    if not isinstance(value, Call):
        raise RelvmFormatError(f"the expression of a size contains {shortened(str(value))!r}")
    match value:
        case Call("Symbol", (str() as name, *_)):
            return sizes[name]
        case Call("Integer", (int() as number,)):
            return number
        case Call("Zero" | "One" | "NegativeOne", ()):
            return {"Zero": 0, "One": 1, "NegativeOne": -1}[value.name]
        case Call("Rational", (int() as top, int() as bottom)) if bottom and top % bottom == 0:
            return top // bottom
        case Call("Pow" | "PowByNatural", (base, exponent)):
            power = _size(exponent, sizes)
            if not isinstance(power, int) or not 0 <= power <= _MAX_POWER:
                raise RelvmUnsupportedError(f"a size with the exponent {power} is not supported")
            return product([_size(base, sizes)] * power)
        case Call("FloorToInt" | "CeilToInt" as name, (Call("IntTrueDiv", (top, bottom)),)):
            return _combined(
                "FloorDiv" if name == "FloorToInt" else "CeilDiv", [_size(top, sizes), _size(bottom, sizes)]
            )
        case Call("TruncToInt", (Call("IntTrueDiv", (top, bottom)),)):
            numbers = [_size(top, sizes), _size(bottom, sizes)]
            if not all(map(is_never_negative, numbers)):
                raise RelvmUnsupportedError("a quotient of sizes that can be negative is not supported")
            return _combined("FloorDiv", numbers)
        case Call("ToFloat" | "TruncToInt" | "CeilToInt" | "FloorToInt" | "Identity", (inner,)):
            return _size(inner, sizes)  # a quotient of integers inside is refused below
        case Call("Add" | "Mul" | "Max" | "Min" | "FloorDiv" | "Mod" | "PythonMod" | "CleanDiv" | "CeilDiv", args):
            numbers = [_size(arg, sizes) for arg in args]
            return _combined(value.name, numbers)
        case Call("floor" | "ceiling", (Call("Mul", args),)):
            return _rounded_quotient(value.name, args, sizes)
    raise RelvmUnsupportedError(f"a size that is computed by {shortened(value.name)} is not supported")


def _combined(name: str, numbers: list[AnyDim]) -> AnyDim:
    function = {"Add": "add", "Mul": "mul", "Max": "max", "Min": "min", "Mod": "mod", "PythonMod": "mod"}.get(name)
    if function is None:
        if len(numbers) != 2:
            raise RelvmFormatError(f"{name} in the expression of a size has {counted(len(numbers), 'argument')}")
        if name == "CeilDiv":
            return -dim_op("floordiv", -numbers[0], numbers[1])
        function = "floordiv"
    if not numbers:
        raise RelvmFormatError(f"{name} in the expression of a size has no arguments")
    result = numbers[0]
    for number in numbers[1:]:
        result = dim_op(function, result, number)
    return result


def _rounded_quotient(name: str, args: tuple[Any, ...], sizes: Mapping[str, AnyDim]) -> AnyDim:
    """Return a product with a rational factor, rounded down or up."""
    factors: list[AnyDim] = []
    bottom = 1
    for arg in args:
        match arg:
            case Call("Rational", (int() as numerator, int() as denominator)):
                factors.append(numerator)
                bottom *= denominator
            case _:
                factors.append(_size(arg, sizes))
    top = product(factors)
    return dim_op("floordiv", top, bottom) if name == "floor" else -dim_op("floordiv", -top, bottom)


# Relations of two integers -> the name of the scalar operator.
RELATIONS = {
    **{"Equality": "eq", "Eq": "eq", "Unequality": "ne", "Ne": "ne"},
    **{"StrictLessThan": "lt", "LessThan": "le", "StrictGreaterThan": "gt", "GreaterThan": "ge"},
}


def fold(call: Call, leaf: Callable[[str], Any], function: Callable[[str, list[Any]], Any]) -> Any:
    """Compute an expression bottom up.

    leaf: returns the value of a symbol.
    function: returns the value of a call of another function, from the values of its arguments and numbers.
    """
    if call.name == "Symbol" and call.args and isinstance(call.args[0], str):
        return leaf(call.args[0])
    return function(call.name, [fold(arg, leaf, function) if isinstance(arg, Call) else arg for arg in call.args])
