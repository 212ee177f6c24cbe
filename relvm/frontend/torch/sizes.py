"""The sizes of an exported program: symbols, expressions and their ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmUnsupportedError, shortened
from relvm.frontend.torch.context import ImportContext
from relvm.frontend.torch.element_types import is_complex
from relvm.frontend.torch.program import Graph, Program, expect_union
from relvm.frontend.torch.scalar_values import ScalarValue
from relvm.frontend.torch.size_expressions import Call, as_size, parse_expression, symbols_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, as_var, evaluate_with, is_never_negative, node_count
from relvm.ir.types import PrimType, ShapeType
from relvm.ir.value_ranges import LOWER, UPPER

_SMALLEST_CHECKED = 2  # a lower bound of 2 only states that the exporter assumed no size of 0 or 1
_LARGEST_SIZE = (1 << 63) - 2  # an upper bound of this and more is no bound
_LONGEST_EXPRESSION = 40  # variables and operators of a size that needs no variable of its own


_SAMPLES = (64, 100, 1025)  # sizes at which an expression is evaluated


class SizeContext(ImportContext):
    """The part of the importer that knows sizes.

    problems: the messages about what could not be imported, in order.
    sizes: the value of each symbol that is known in the current block.
    """

    def __init__(self, program: Program, dims: Mapping[str, Any]) -> None:
        super().__init__(program)
        self.problems: dict[str, None] = {}
        self._fixed = {symbol: _fixed_size(program, symbol, size) for symbol, size in dims.items()}
        self._symbols: dict[str, None] = {}  # those of parameters
        self.sizes: MutableMapping[str, AnyDim] = dict(self._fixed)
        self._short_sizes: dict[AnyDim, AnyDim] = {}  # a long expression -> the variable with its value
        self._computed_sizes: dict[Call, AnyDim] = {}
        self._parameter_dims: list[tuple[Any, AnyDim, str]] = []

    def parameter_dim(self, size: Any, stem: str, *, signed: bool = False) -> AnyDim:
        """Return a size of a parameter: a number, the variable of a symbol, or a new variable for an expression."""
        kind, content = expect_union(f"{self.program.place}: a size", size)
        if kind == "as_int":
            return _plain_int(content)
        call = parse_expression(content["expr_str"])
        self._symbols.update(dict.fromkeys(symbols_of(call)))
        if call.name == "Symbol":
            symbol = symbols_of(call)[0]
            if symbol not in self.sizes:
                self.sizes[symbol] = self.new_dim(identifier(symbol), signed=signed)
            return self.sizes[symbol]
        if all(symbol in self._fixed for symbol in symbols_of(call)):
            return as_size(call, self.sizes)
        dim = self.new_dim(identifier(stem), signed=signed)
        self._parameter_dims.append((call, dim, stem))
        return dim

    def expect_known_dims(self) -> None:
        """Raise RelvmArgumentError if a size is given for a symbol that no parameter has."""
        for symbol in self._fixed:
            if symbol not in self._symbols:
                known = ", ".join(self._symbols) or "none"
                raise RelvmArgumentError(f"dims: unknown dimension {shortened(symbol)}; the model has {known}")

    def bind_symbols(self) -> None:
        """Solve for the symbols that occur only in expressions, and check their ranges at run time."""
        place = self.program.place
        for call, dim, stem in self._parameter_dims:
            unknown = sorted({name for name in symbols_of(call) if name not in self.sizes})
            if len(unknown) > 1:
                self.problems[f"{place}: the sizes {', '.join(unknown)} have no values"] = None
                return
            for symbol in unknown:
                solved = _solve(call, symbol, self.sizes, dim)
                if solved is None:
                    self.problems[f"{place}: the size {stem} is an expression that is not supported"] = None
                    return
                self.sizes[symbol] = self.new_dim(identifier(symbol))
                shape = self.builder.emit(Shape((solved,)))
                self.builder.match_cast(shape, ShapeType((self.sizes[symbol],)), identifier(symbol))
                self._check_symbol(symbol)

    def with_expressions(self, graph: Graph, name: str, variable: Expr) -> Expr:
        """Return a parameter with its declared shape.  Sizes that are expressions are checked at run time."""
        shape = self.declared_shape(graph, name)
        shape += (2,) if is_complex(graph.tensors[name].get("dtype")) else ()
        known = tuple(dim for dim in shape if dim is not None)
        return self.with_shape(variable, known) if len(known) == len(shape) else variable

    def bounds(self) -> tuple[tuple[str, Any], ...]:
        """Return the function attributes with the bounds of dimension variables."""
        limits: dict[str, dict[str, int]] = {LOWER: {}, UPPER: {}}
        for symbol, (low, high) in self.program.ranges.items():
            dim = self.sizes.get(symbol)
            var = None if dim is None else as_var(dim)
            if var is None:
                continue
            low = 0 if low is None or low <= _SMALLEST_CHECKED else low
            if low > 0:
                limits[LOWER][var.name] = low
            if high is not None and high < _LARGEST_SIZE:
                limits[UPPER][var.name] = high
        return tuple((kind, tuple(found.items())) for kind, found in limits.items() if found)

    def _check_symbol(self, symbol: str) -> None:
        """Check at run time that a symbol, which the sizes of parameters determine, is in its range.

        For symbols that the program computes, the program contains assertions.
        """
        low, high = self.program.ranges.get(symbol, (None, None))
        dim = self.sizes.get(symbol)
        if dim is None:
            return
        if low is not None and low > _SMALLEST_CHECKED:
            self.require("at_most", low, dim, f"expected {symbol} to be at least {{}}, got {{}}")
        if high is not None and high < _LARGEST_SIZE:
            self.require("at_most", dim, high, f"{symbol} is {{}}, expected at most {{}}")

    def declared_shape(self, graph: Graph, name: str) -> tuple[AnyDim | None, ...]:
        return tuple(self.declared_dim(size) for size in graph.tensors[name].get("sizes") or ())

    def declared_dim(self, size: Any) -> AnyDim | None:
        """Return a declared size as a dimension, or the variable that `computed_size` returned for it.

        If there is no such variable, return None if a symbol in the size has no value yet, or if the expression is not
        supported in dimensions.
        """
        kind, content = expect_union(f"{self.program.place}: a size", size)
        if kind == "as_int":
            return _plain_int(content)
        call = parse_expression(content["expr_str"])
        try:
            return self.short_size(as_size(call, self.sizes))
        except (KeyError, RelvmUnsupportedError):
            return self._known_size(call)

    def short_size(self, size: AnyDim) -> AnyDim:
        """Return a variable whose value is `size` if this is a long expression, otherwise `size` itself.

        PyTorch repeats the whole expression for each size that depends on it.  Products of such sizes would be too
        long for the compiler.  A size that may be negative is returned unchanged.
        """
        if isinstance(size, int) or node_count(size) <= _LONGEST_EXPRESSION or not is_never_negative(size):
            return size
        found = self._short_sizes.get(size)
        if found is None or as_var(found) not in self.builder.known_dims():
            found = self._short_sizes[size] = self.new_dim("size")
            shape = self.builder.emit(Shape((size,)))
            self.builder.match_cast(shape, ShapeType((found,)), "size")
        return found

    def computed_size(self, value: ScalarValue) -> AnyDim:
        """Return a variable with the value of an integer that dimensions cannot express, such as a rounded quotient.

        Raises
        ------
        RelvmUnsupportedError
            The expression contains a symbol without a value, or an unknown function.
        """
        found = self._known_size(value.call)
        if found is None:
            found = self._computed_sizes[value.call] = self.new_dim("size", signed=True)
            self.builder.match_cast(value.compute(self), PrimType(I64, found))
        return found

    def _known_size(self, call: Call) -> AnyDim | None:
        """Return the variable that `computed_size` returned for an expression, if it can be used here."""
        found = self._computed_sizes.get(call)
        return found if found is not None and as_var(found) in self.builder.known_dims() else None

    def new_symbol(self, size: Any) -> str:
        """Return the name of the symbol if a declared size is a single symbol, otherwise ""."""
        content = size.get("as_expr")
        call = parse_expression(content["expr_str"]) if isinstance(content, dict) else None
        return symbols_of(call)[0] if call is not None and call.name == "Symbol" else ""


def _fixed_size(program: Program, symbol: str, size: Any) -> int:
    """Return a size that the user gives a symbol, after checking it."""
    if type(size) is not int or size < 0:
        raise RelvmArgumentError(
            f"dims: {shortened(symbol)} is {shortened(repr(size))}, expected a size; the range of a symbol is part of"
            " an exported program"
        )
    low, high = program.ranges.get(symbol, (None, None))
    if low is not None and size < low > _SMALLEST_CHECKED:
        raise RelvmArgumentError(f"dims: {symbol} is {size}, expected at least {low}")
    if high is not None and size > high:
        raise RelvmArgumentError(f"dims: {symbol} is {size}, expected at most {high}")
    return size


def _plain_int(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise RelvmFormatError(f"expected a size, got {shortened(repr(value))}")
    return value


def _with_all(dim: AnyDim, value: int) -> AnyDim:
    """Return a size for which all variables have the same value."""
    return evaluate_with(dim, lambda _: value)


def seems_one(dim: AnyDim) -> bool:
    """Return whether a size is 1 for each of a few sample values of its variables.

    Return False if one of them causes a division by 0.
    """
    try:
        return all(_with_all(dim, value) == 1 for value in _SAMPLES)
    except ZeroDivisionError:
        return False


def _solve(call: Any, symbol: str, sizes: MutableMapping[str, AnyDim], value: AnyDim) -> AnyDim | None:
    """Solve `call == value` for a symbol.  Return None if `call` is not linear in the symbol."""
    try:
        at = [as_size(call, {**sizes, symbol: number}) for number in (0, 1, 2)]
    except (KeyError, RelvmUnsupportedError):
        return None
    step = at[1] - at[0]
    if not isinstance(step, int) or step == 0 or at[2] - at[1] != step:
        return None
    return (value - at[0]) // step


def identifier(name: str) -> str:
    """Return `name` with _ in place of each character that is not a letter, a digit or _, cut to 100 characters.

    If the name is empty or begins with a digit, _ is put before it.
    """
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return (text if text and not text[0].isdigit() else f"_{text}")[:100]
