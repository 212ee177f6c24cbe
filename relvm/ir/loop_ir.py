"""Loop IR: scalar expressions and statements, which are loops over the elements of buffers.

Each scalar expression has a dtype.  Two forms of kernels consist of these nodes:

- A kernel definition (relvm/ir/kernel_def.py) is written in the program.  Its buffers can have any dimensions, and it
  contains no checks of indices.
- A kernel (relvm/kernels/kernel.py) is printed as C or translated to kernel bytecode.  The dimensions of its buffers
  are integers or single variables.  These variables are the only sizes that it receives.  Parallel, Allocate, Invoke
  and Fail occur only in kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from relvm.data_classes import record
from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.scalar_ops import COMPARISONS, PYTHON_FUNCTIONS
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType
from relvm.tables import kernel_constant

SUM_LANES = kernel_constant("SUM_LANES")
# Functions on floats that <math.h> has under other names.  Most others, such as exp, have the same name there.
MATH_H_NAMES = {"abs": "fabs", "power": "pow", "round": "rint", "round_away": "round"}


class Scalar:
    """Base class of scalar expressions.

    Python operators on scalars build `Operation` nodes.  A Python number gets the dtype of the other operand.
    """

    if TYPE_CHECKING:

        @property
        def dtype(self) -> DType: ...

    def _binary(self, function: str, other, swapped: bool = False) -> Scalar:
        other = as_scalar(other, self.dtype)
        assert other.dtype == self.dtype, f"{function} of {self.dtype} and {other.dtype}"
        assert self.dtype.is_bool or (self.dtype.is_arithmetic and not self.dtype.is_narrow_float), (
            f"{function} of {self.dtype}"
        )
        left, right = (other, self) if swapped else (self, other)
        is_constant = isinstance(left, Literal) or isinstance(right, Literal)
        if is_constant and (simple := _simplify(function, left, right)) is not None:
            return simple
        return Operation(function, (left, right), BOOL if function in COMPARISONS else self.dtype)

    def __add__(self, other) -> Scalar:
        return self._binary("add", other)

    def __radd__(self, other) -> Scalar:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other) -> Scalar:
        return self._binary("sub", other)

    def __rsub__(self, other) -> Scalar:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other) -> Scalar:
        return self._binary("mul", other)

    def __rmul__(self, other) -> Scalar:
        return self._binary("mul", other, swapped=True)

    def __truediv__(self, other) -> Scalar:
        return self._binary("div", other)

    def __rtruediv__(self, other) -> Scalar:
        return self._binary("div", other, swapped=True)

    def __mod__(self, other) -> Scalar:
        return self._binary("rem", other)

    def __neg__(self) -> Scalar:
        return Operation("neg", (self,), self.dtype)

    def __lt__(self, other) -> Scalar:
        return self._binary("lt", other)

    def __le__(self, other) -> Scalar:
        return self._binary("le", other)

    def __gt__(self, other) -> Scalar:
        return self._binary("gt", other)

    def __ge__(self, other) -> Scalar:
        return self._binary("ge", other)

    def eq(self, other) -> Scalar:
        return self._binary("eq", other)

    def ne(self, other) -> Scalar:
        return self._binary("ne", other)

    def logical_and(self, other) -> Scalar:
        """Return the logical and of two bools.  The right operand is evaluated only if the left one holds."""
        return self._binary("and", other)

    def logical_or(self, other) -> Scalar:
        """Return the logical or of two bools.  The right operand is evaluated only if the left one does not hold."""
        return self._binary("or", other)

    def logical_not(self) -> Scalar:
        return Literal(not self.value, BOOL) if isinstance(self, Literal) else Operation("not", (self,), BOOL)

    def to(self, dtype: DType) -> Scalar:
        """Return the value converted to a dtype, as NumPy's astype does."""
        return self if dtype == self.dtype else Operation("cast", (self,), dtype)


@record
class Literal(Scalar):
    value: bool | int | float
    dtype: DType


# Operators on i64 that are computed at compile time -> the functions of Python that compute them.  Quotients and
# remainders are computed only for positive operands, for which truncating is rounding down.
_FOLDED = {name: PYTHON_FUNCTIONS[name] for name in ("add", "sub", "mul", *COMPARISONS)}
_FOLDED |= {"div": PYTHON_FUNCTIONS["floordiv"], "rem": PYTHON_FUNCTIONS["mod"]}
_LARGEST_FOLDED = 1 << 62  # i64 results up to this absolute value are computed at compile time


def _simplify(function: str, left: Scalar, right: Scalar) -> Scalar | None:
    """Return a simpler expression with the value of `left function right`, or None if there is none.

    Operations on i64 literals are computed.  Identities such as x + 0 = x are applied, also to the logical operators.
    Results that wrap around, and divisions that do not have two positive operands, are left to the run time.
    """
    a = left.value if isinstance(left, Literal) else None
    b = right.value if isinstance(right, Literal) else None
    if left.dtype is BOOL:
        if function not in ("and", "or"):
            return None
        neutral = function == "and"
        if a is not None:
            return right if a == neutral else left
        return left if b == neutral else right
    if left.dtype is not I64 or function not in _FOLDED:
        return None
    if a is not None and b is not None:
        if function in ("div", "rem") and (a < 0 or b <= 0):
            return None
        result = _FOLDED[function](int(a), int(b))
        is_small = abs(result) <= _LARGEST_FOLDED
        return Literal(result, BOOL if function in COMPARISONS else I64) if is_small else None
    if (b == 0 and function in ("add", "sub")) or (b == 1 and function in ("mul", "div")):
        return left
    if (a == 0 and function == "add") or (a == 1 and function == "mul"):
        return right
    if (function == "mul" and 0 in (a, b)) or (function == "rem" and b == 1):
        return Literal(0, I64)
    return None


@record
class Local(Scalar):
    """A loop counter or another variable.  Its name is unique in a kernel, but not in a kernel definition."""

    name: str
    dtype: DType


@record
class Size(Scalar):
    """The value of the dimension `dim`, as an i64 scalar."""

    dim: AnyDim
    dtype: DType = I64


@record
class Load(Scalar):
    """The element `buffer[indices]`.

    indices: the index along each axis, or a single item, which is the flat row-major position.
    origin: the source location, in kernel definitions.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    origin: str = ""

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@record
class Operation(Scalar):
    """A function applied to scalars.

    function: one of these, most of which are functions of csrc/tables/scalar_operators.def:
        add, sub, mul, neg; and, or, xor, shl, shr on integers; lt, le, gt, ge, eq, ne
        div: division of floats, or of integers with truncation, as in C.   rem: the remainder of the latter.
        floordiv, mod: division that rounds down, and its remainder.  The result is 0 if an integer divisor is 0.
        not, and, or on bools: the second operand is evaluated only if it is needed.
        select(cond, then, orelse): only one of `then` and `orelse` is evaluated.
        cast: conversion to `dtype`, as by NumPy's astype
        min, max, abs
        functions on floats, such as exp, in the precision of their operands (kernel_def.MATH); of two nearest integers,
            round returns the even one
        round_away: the nearest integer; of two, the one farther from 0
        fma: x * y + z, for f32 only.  It is rounded once where C code is compiled to an FMA instruction, and twice
            elsewhere (csrc/codegen/reproducible.h).
        functions of the C headers of the runtime, whose names begin with `rvm_`

    Kernel definitions do not contain round_away.  Kernels do not contain floordiv, mod, min, max, and abs of integers.
    """

    function: str
    operands: tuple[Scalar, ...]
    dtype: DType


@record
class Buffer:
    """A contiguous row-major array in memory.  In Python, `buffer[i, j]` is the load of an element.

    In kernel definitions, each buffer is a parameter, and a scalar parameter is a buffer of rank 0.

    is_output: whether a kernel definition writes it as a new tensor.
    is_inout: whether a kernel definition updates the argument, which it can read and write.
    """

    name: str
    dtype: DType
    shape: tuple[AnyDim, ...]
    is_output: bool = False
    is_inout: bool = False

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def __getitem__(self, indices) -> Load:
        indices = indices if isinstance(indices, tuple) else (indices,)
        return Load(self, tuple(as_scalar(index, I64) for index in indices))

    def flat(self, position: Scalar) -> Load:
        """Return the load of the element at a flat row-major position."""
        return Load(self, (position,))


class Statement:
    """Base class of statements."""


@record
class Loop(Statement):
    """A loop over [start, stop).

    kind: "range", "simd" or "parallel".  The iterations of a "range" loop run in order.  Those of a "simd" loop are
    independent, except for reductions, and can run in vector lanes.  Those of a "parallel" loop are independent, and
    can run in several threads; a kernel contains a `Parallel` instead.
    reduce: a pair (function, local) for each reduction of a "simd" loop.  The function is "add", "mul", "or", "max" or
    "min".  In kernel definitions, it is empty.
    origin: the source location, in kernel definitions.

    Kernel definitions evaluate both bounds once, before the loop.  Kernels evaluate `stop` before each iteration.

    A reduction of floats has a defined order.  In whole blocks of SUM_LANES iterations, the element of iteration i is
    combined into lane i % SUM_LANES.  Then the second half of the lanes is combined into the first half, and so on,
    until one lane is left.  This lane is combined into the local.  The remaining iterations, fewer than SUM_LANES,
    follow in order.
    """

    counter: Local
    start: Scalar
    stop: Scalar
    body: tuple[Statement, ...]
    kind: str = "range"
    reduce: tuple[tuple[str, Local], ...] = ()
    origin: str = ""


@record
class Parallel(Statement):
    """A parallel loop over [0, count).  Each thread runs the body for one or more subranges, called parts: the body
    processes the iterations [first, last).  Each part except the last has at least `grain` iterations.

    The effect of an iteration does not depend on the part that contains it.  The body does not assign locals that are
    declared outside the body, and it contains no Fail and no other Parallel.
    """

    first: Local
    last: Local
    count: Scalar
    grain: Scalar
    body: tuple[Statement, ...]


@record
class Store(Statement):
    """The assignment `buffer[indices] = value`.

    indices: the index along each axis, or a single item, which is the flat row-major position.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    value: Scalar
    origin: str = ""


@record
class Let(Statement):
    """The definition of a variable.  Its scope ends at the end of the enclosing block."""

    local: Local
    value: Scalar


@record
class Assign(Statement):
    local: Local
    value: Scalar
    origin: str = ""


@record
class IfThen(Statement):
    cond: Scalar
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    origin: str = ""


@record
class Allocate(Statement):
    """The declaration of an uninitialized, 64-byte aligned array on the C stack.  The array exists until the end of the
    block.  Its shape is constant and small."""

    buffer: Buffer


@record
class Address:
    """The address of the element at flat position `position` of a buffer, as an argument of an `Invoke`."""

    buffer: Buffer
    position: Scalar


@record
class Invoke(Statement):
    """A call of a micro-kernel of csrc/tables/micro_kernels.def.

    args: the arguments, in the order of the table.
    """

    function: str
    args: tuple[Scalar | Address, ...]


@record
class Fail(Statement):
    """A statement that ends the kernel with an error.

    status: a name in csrc/tables/status.def.
    message: a format string with a %lld for each of the i64 scalars `values`.
    """

    status: str
    message: str
    values: tuple[Scalar, ...]


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement, each before its nested statements."""
    for statement in body:
        yield statement
        match statement:
            case Loop(body=inner) | Parallel(body=inner):
                yield from statements_in(inner)
            case IfThen(_, then, orelse):
                yield from statements_in(then)
                yield from statements_in(orelse)


def operands_of(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the operands of the expression `scalar`, in order."""
    if isinstance(scalar, Operation):
        return scalar.operands
    return scalar.indices if isinstance(scalar, Load) else ()


def parts_of(scalar: Scalar) -> Iterator[Scalar]:
    """Yield the expression `scalar` and all expressions inside it."""
    waiting: list[Scalar] = [scalar]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += operands_of(part)


def has_load(scalar: Scalar) -> bool:
    """Return whether the expression `scalar` reads an element of a buffer."""
    return any(isinstance(part, Load) for part in parts_of(scalar))


def scalars_in(statement: Statement) -> Iterator[Scalar]:
    """Yield every scalar that a statement reads, each before its operands.  Nested statements are not visited."""
    scalars: list[Scalar] = []
    match statement:
        case Loop(_, start, stop, reduce=reduce):
            scalars = [start, stop, *(local for _, local in reduce)]
        case Parallel(count=count):
            scalars = [count]
        case IfThen(cond):
            scalars = [cond]
        case Let(_, value) | Assign(_, value):
            scalars = [value]
        case Store(_, indices, value):
            scalars = [*indices, value]
        case Invoke(_, args):
            scalars = [arg.position if isinstance(arg, Address) else arg for arg in args]
        case Fail(values=args):
            scalars = list(args)
    for scalar in reversed(scalars):
        yield from parts_of(scalar)


def as_scalar(value, dtype: DType) -> Scalar:
    """Convert `value` to a scalar.  Scalars are returned unchanged, a Python number becomes a Literal of `dtype`, and a
    symbolic dimension becomes a Size."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, bool | int | float):
        return Literal(value, dtype)
    return Size(value)


def constant_value(scalar: Scalar) -> int | None:
    """Return the value of the integer expression `scalar`.

    Return None if the expression is not constant, or if its value does not fit in an i64 and would wrap around.
    """
    match scalar:
        case Literal(value=int() as value) | Size(dim=int() as value):
            return value
        case Operation("add" | "sub" | "mul" as function, (left, right)):
            a, b = constant_value(left), constant_value(right)
            if a is not None and b is not None:
                value = _FOLDED[function](a, b)
                return value if -(1 << 63) <= value < 1 << 63 else None
    return None


def trip_count(loop: Loop) -> int | None:
    """Return the number of iterations of a loop, or None if it is not constant."""
    start, stop = constant_value(loop.start), constant_value(loop.stop)
    return None if start is None or stop is None else max(0, stop - start)


def reduces_floats(loop: Loop) -> bool:
    return any(local.dtype.is_float for _, local in loop.reduce)


def identity_of(clause: str, dtype: DType) -> int | float:
    """Return the identity element of the reduction operator `clause`, which is the result of reducing no elements."""
    return {"add": 0, "mul": 1, "or": 0, "max": dtype.lowest, "min": dtype.highest}[clause]


def minimum(number: Scalar, other: Scalar | int) -> Scalar:
    """Return the smaller of two numbers.  A Python int is converted to an i64."""
    other = as_scalar(other, I64)
    return select(number < other, number, other)


def maximum(number: Scalar, other: Scalar | int) -> Scalar:
    """Return the larger of two numbers.  A Python int is converted to an i64."""
    other = as_scalar(other, I64)
    return select(number > other, number, other)


def select(cond: Scalar, then: Scalar, orelse: Scalar) -> Scalar:
    """Return the expression `cond ? then : orelse`, or one of its operands if `cond` is a literal."""
    if isinstance(cond, Literal):
        return then if cond.value else orelse
    return Operation("select", (cond, then, orelse), then.dtype)


def integer_quotient(x: Scalar, y: Scalar) -> Scalar:
    """Return the integer quotient x / y, truncated, with a defined result where C has none.

    The quotient is 0 if y is 0.  The smallest integer divided by -1 wraps around.
    """
    quotient = x / y
    if constant_value(y) not in (None, 0, -1):
        return quotient
    if x.dtype.is_signed:
        quotient = select(y.eq(-1), -x, quotient)
    return select(y.eq(0), Literal(0, x.dtype), quotient)


def integer_remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder of the division x / y in `integer_quotient`.  It has the sign of x, and is 0 if y is 0."""
    rest = x % y
    if constant_value(y) not in (None, 0, -1):
        return rest
    if x.dtype.is_signed:
        rest = select(y.eq(-1), Literal(0, x.dtype), rest)
    return select(y.eq(0), Literal(0, x.dtype), rest)
