"""32-bit loop counters and offsets, for 32-bit processors.

Kernels compute counters and positions as i64.  On a 32-bit processor, each such operation takes several instructions.
Interval arithmetic proves that every i64 value of a kernel, also of each subexpression, fits in an i32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from relvm.codegen.kernel_registers import buffer_position
from relvm.data_classes import value_record
from relvm.ir.dtypes import I32, I64, DType
from relvm.ir.loop_ir import (
    Address,
    Assign,
    IfThen,
    Invoke,
    Let,
    Literal,
    Load,
    Local,
    Loop,
    Operation,
    Parallel,
    Scalar,
    Size,
    Statement,
    Store,
)
from relvm.kernels.kernel import Kernel

_LOW, _HIGH = I32.limits


class _NotProvenError(Exception):
    """A value may not fit in an i32."""


@value_record
class _Interval:
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def join(self, other: _Interval) -> _Interval:
        return _Interval(min(self.low, other.low), max(self.high, other.high))


def narrow_counters(kernel: Kernel) -> Kernel:
    """Return the kernel with i32 in place of i64 variables and operations.

    Return the kernel itself if it has a symbolic size, reads i64 elements, or computes a value that may not fit.
    """
    try:
        return replace(kernel, body=_Narrowing().block(kernel.body))
    except _NotProvenError:
        return kernel


class _Narrowing:
    """Narrows statements.   known: the interval of each i64 variable, by name."""

    def __init__(self) -> None:
        self.known: dict[str, _Interval] = {}

    def block(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(self.statement, body))

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Loop(counter, start, stop, body, reduce=reduce):
                if any(local.dtype is I64 for _, local in reduce):
                    raise _NotProvenError
                first, end = self.interval(start), self.interval(stop)
                self.known[counter.name] = _Interval(first.low, max(first.low, end.high - 1))
                bounds = _narrowed(start), _narrowed(stop)
                return replace(
                    statement, counter=_narrowed(counter), start=bounds[0], stop=bounds[1], body=self.block(body)
                )
            case Parallel(first, last, count, _, body):
                for bound in (first, last):
                    self.known[bound.name] = _Interval(0, max(0, self.interval(count).high))
                parts = {"first": _narrowed(first), "last": _narrowed(last), "count": _narrowed(count)}
                return replace(statement, **parts, body=self.block(body))
            case Let(local, value):
                self.checked(value)
                if local.dtype is I64:
                    self.known[local.name] = self.interval(value)
                return Let(_narrowed(local), _narrowed(value))
            case Assign(local, value):
                if local.dtype is I64:
                    raise _NotProvenError
                self.checked(value)
                return replace(statement, value=_narrowed(value))
            case Store(buffer, indices, value):
                position = buffer_position(buffer, indices)
                self.checked(position, value)
                return replace(statement, indices=(_narrowed(position),), value=_narrowed(value))
            case IfThen(cond, then, orelse):
                self.checked(cond)
                return replace(statement, cond=_narrowed(cond), then=self.block(then), orelse=self.block(orelse))
            case Invoke(_, args):
                self.checked(*(arg.position if isinstance(arg, Address) else arg for arg in args))
                return replace(statement, args=tuple(map(_narrowed_argument, args)))
        return statement  # an Allocate, or a Fail, whose values are not printed

    def checked(self, *scalars: Scalar) -> None:
        """Check that all i64 parts of scalars fit in an i32.  Raise _NotProvenError otherwise."""
        for scalar in scalars:
            if scalar.dtype is I64:
                self.interval(scalar)
            elif isinstance(scalar, Load):
                self.interval(buffer_position(scalar.buffer, scalar.indices))
            elif isinstance(scalar, Operation):
                self.checked(*scalar.operands)

    def interval(self, scalar: Scalar) -> _Interval:
        """Return an interval that contains the value of an i64 scalar.

        Raise _NotProvenError if the value, or that of a part of the scalar, may not fit in an i32.
        """
        match scalar:
            case Literal(value=int() as value) | Size(dim=int() as value):
                found = _Interval(value, value)
            case Local(name) if name in self.known:
                found = self.known[name]
            case Operation("cast", (operand,)) if operand.dtype is not I64:
                self.checked(operand)
                found = _interval_of_dtype(operand.dtype)
            case Operation("select", (cond, then, orelse)):
                self.checked(cond)
                found = _selected(cond, (then, self.interval(then)), (orelse, self.interval(orelse)))
            case Operation(function, operands) if function in _FUNCTIONS:
                found = _FUNCTIONS[function](*map(self.interval, operands))
            case _:
                raise _NotProvenError
        if found.low < _LOW or found.high > _HIGH:
            raise _NotProvenError
        return found


def _interval_of_dtype(dtype: DType) -> _Interval:
    if dtype.is_bool:
        return _Interval(0, 1)
    if not dtype.is_integer:
        raise _NotProvenError
    return _Interval(*dtype.limits)


def _selected(cond: Scalar, then: tuple[Scalar, _Interval], orelse: tuple[Scalar, _Interval]) -> _Interval:
    """Return the interval of `cond ? then : orelse`, which is often the minimum or maximum of its operands."""
    (left, first), (right, second) = then, orelse
    match cond:
        case Operation("lt", (a, b)) if (a, b) == (left, right):
            return _Interval(min(first.low, second.low), min(first.high, second.high))
        case Operation("gt", (a, b)) if (a, b) == (left, right):
            return _Interval(max(first.low, second.low), max(first.high, second.high))
    return first.join(second)


def _product(left: _Interval, right: _Interval) -> _Interval:
    products = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _Interval(min(products), max(products))


def _quotient(left: _Interval, right: _Interval) -> _Interval:
    if right.low < 1:
        raise _NotProvenError
    quotients = [abs(a) // b * (1 if a >= 0 else -1) for a in (left.low, left.high) for b in (right.low, right.high)]
    return _Interval(min(quotients), max(quotients))


def _remainder(left: _Interval, right: _Interval) -> _Interval:
    if right.low < 1:
        raise _NotProvenError
    most = right.high - 1
    return _Interval(max(-most, min(left.low, 0)), min(most, max(left.high, 0)))


_FUNCTIONS: dict[str, Callable[..., _Interval]] = {
    "add": lambda left, right: _Interval(left.low + right.low, left.high + right.high),
    "sub": lambda left, right: _Interval(left.low - right.high, left.high - right.low),
    "mul": _product,
    "div": _quotient,
    "rem": _remainder,
    "neg": lambda operand: _Interval(-operand.high, -operand.low),
}


def _narrowed_argument(argument: Scalar | Address) -> Scalar | Address:
    if isinstance(argument, Address):
        return replace(argument, position=_narrowed(argument.position))
    return _narrowed(argument)


def _narrowed(scalar):
    """Return a scalar in which i32 replaces i64, whose elements are read at row-major positions."""
    dtype = I32 if scalar.dtype is I64 else scalar.dtype
    match scalar:
        case Literal() | Local():
            return replace(scalar, dtype=dtype)
        case Size(dim=int() as value):
            return Literal(value, I32)
        case Load(buffer, indices):
            return replace(scalar, indices=(_narrowed(buffer_position(buffer, indices)),))
        case Operation("cast", (operand,)):
            return _narrowed(operand).to(dtype)
        case Operation(operands=operands):
            return replace(scalar, operands=tuple(map(_narrowed, operands)), dtype=dtype)
    raise AssertionError(f"cannot narrow {type(scalar).__name__}")
