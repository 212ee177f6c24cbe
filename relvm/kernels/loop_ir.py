"""Loop IR: kernels as loop nests over buffers, which are printed as C or translated to kernel bytecode.

Each scalar expression has a dtype.  The dimensions of the buffers are integers or single variables.  These variables
are the only sizes that a kernel receives.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relvm.data_classes import record, value_record
from relvm.display import Displayed
from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.symbolic import AnyDim
from relvm.kernels.cost import Work
from relvm.tables import kernel_constant

SUM_LANES = kernel_constant("SUM_LANES")
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class Scalar:
    """Base class of scalar expressions.  Python operators on scalars build `Binary` nodes.  If an operand is a Python
    number, it gets the dtype of the other operand."""

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
        return Binary(function, left, right, BOOL if function in _COMPARISONS else self.dtype)

    def __add__(self, other) -> Scalar:
        return self._binary("+", other)

    def __radd__(self, other) -> Scalar:
        return self._binary("+", other, swapped=True)

    def __sub__(self, other) -> Scalar:
        return self._binary("-", other)

    def __rsub__(self, other) -> Scalar:
        return self._binary("-", other, swapped=True)

    def __mul__(self, other) -> Scalar:
        return self._binary("*", other)

    def __rmul__(self, other) -> Scalar:
        return self._binary("*", other, swapped=True)

    def __truediv__(self, other) -> Scalar:
        return self._binary("/", other)

    def __rtruediv__(self, other) -> Scalar:
        return self._binary("/", other, swapped=True)

    def __mod__(self, other) -> Scalar:
        return self._binary("%", other)

    def __neg__(self) -> Scalar:
        return Unary("-", self, self.dtype)

    def __lt__(self, other) -> Scalar:
        return self._binary("<", other)

    def __le__(self, other) -> Scalar:
        return self._binary("<=", other)

    def __gt__(self, other) -> Scalar:
        return self._binary(">", other)

    def __ge__(self, other) -> Scalar:
        return self._binary(">=", other)

    def eq(self, other) -> Scalar:
        return self._binary("==", other)

    def ne(self, other) -> Scalar:
        return self._binary("!=", other)

    def logical_and(self, other) -> Scalar:
        """Return the logical and of two bools.  The right operand is evaluated only if the left one holds."""
        return self._binary("&&", other)

    def logical_or(self, other) -> Scalar:
        """Return the logical or of two bools.  The right operand is evaluated only if the left one does not hold."""
        return self._binary("||", other)

    def to(self, dtype: DType) -> Scalar:
        """Return the value converted to a dtype, as NumPy's astype does."""
        return self if dtype == self.dtype else Convert(self, dtype)


@record
class Literal(Scalar):
    value: bool | int | float
    dtype: DType


_INTEGER_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_LARGEST_FOLDED = 1 << 62  # i64 results up to this absolute value are computed at compile time


def _simplify(function: str, left: Scalar, right: Scalar) -> Scalar | None:
    """Return a simpler expression with the value of `left function right`, or None if there is none.

    Operations on i64 literals are computed.  Identities such as x + 0 = x are applied, also to the logical operators.
    Results that wrap around, and divisions that do not have two positive operands, are left to the run time.
    """
    a = left.value if isinstance(left, Literal) else None
    b = right.value if isinstance(right, Literal) else None
    if left.dtype is BOOL:
        if function not in ("&&", "||"):
            return None
        neutral = function == "&&"
        if a is not None:
            return right if a == neutral else left
        return left if b == neutral else right
    if left.dtype is not I64 or function not in _INTEGER_OPERATIONS:
        return None
    if a is not None and b is not None:
        if function in "/%" and (a < 0 or b <= 0):
            return None
        result = _INTEGER_OPERATIONS[function](int(a), int(b))
        is_small = abs(result) <= _LARGEST_FOLDED
        return Literal(result, BOOL if function in _COMPARISONS else I64) if is_small else None
    if (b == 0 and function in "+-") or (b == 1 and function in "*/"):
        return left
    if (a == 0 and function == "+") or (a == 1 and function == "*"):
        return right
    if (function == "*" and 0 in (a, b)) or (function == "%" and b == 1):
        return Literal(0, I64)
    return None


@record
class Local(Scalar):
    """A loop counter or another variable of the kernel.  `KernelBuilder` makes the names unique."""

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
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@record
class Binary(Scalar):
    """The C expression `left function right`.  For integers, / and % truncate, as in C."""

    function: str
    left: Scalar
    right: Scalar
    dtype: DType


@record
class Unary(Scalar):
    """The expression -x or !x."""

    function: str
    operand: Scalar
    dtype: DType


@record
class Select(Scalar):
    """The expression `cond ? then : orelse`.  The operands have no side effects."""

    cond: Scalar
    then: Scalar
    orelse: Scalar

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@record
class Convert(Scalar):
    operand: Scalar
    dtype: DType


@record
class Intrinsic(Scalar):
    """A call of a C function of <math.h>, in the precision of the argument.

    The function `fma` is for f32 only.  It rounds once where C code is compiled to an FMA instruction, and twice
    elsewhere (csrc/codegen/reproducible.h).

    name: the name of the function for double, such as exp, tanh or fmax.
    """

    name: str
    args: tuple[Scalar, ...]
    dtype: DType


@record
class Buffer:
    """A contiguous row-major array in memory.  In Python, `buffer[i, j]` is the load of an element."""

    name: str
    dtype: DType
    shape: tuple[AnyDim, ...]

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
    """The loop `for (counter = start; counter < stop; counter++)`.

    simd: whether the iterations can run in vector lanes.  If so, they are independent, except for reductions.
    reduce: a pair (operator, local) for each reduction.

    A reduction of floats has a defined order.  In whole blocks of SUM_LANES iterations, the element of iteration i is
    combined into lane i % SUM_LANES.  Then the second half of the lanes is combined into the first half, and so on,
    until one lane is left.  This lane is combined into the local.  The remaining iterations, fewer than SUM_LANES,
    follow in order.
    """

    counter: Local
    start: Scalar
    stop: Scalar
    body: tuple[Statement, ...]
    simd: bool = False
    reduce: tuple[tuple[str, Local], ...] = ()


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


@record
class Let(Statement):
    local: Local
    value: Scalar


@record
class Assign(Statement):
    local: Local
    value: Scalar


@record
class IfThen(Statement):
    cond: Scalar
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


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


@value_record
class Provenance:
    """A map from the variables and statements of a kernel to the operators for which they were generated.

    Operators are given as indices into `members`.

    members: for each operator of the kernel, its source locations in all operator calls that share the kernel.
    values: a dict from the name of a variable, array or output to its operators.
    default: the operators of statements that compute none of these values.  If it is None, such a statement belongs to
    the operators that use its result.
    """

    members: tuple[tuple[str, ...], ...]
    values: Mapping[str, tuple[int, ...]]
    default: tuple[int, ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Displayed):
    """A kernel: a loop nest that reads `inputs` and writes every element of `outputs`.

    comment: the operators that the kernel implements.
    work: the work of a call, for profiles, or None if it is unknown.
    provenance: the operators that the statements come from, or None for a kernel that is not composed of operators.

    relations: pairs (size variable, expression of other size variables) that are equal in each correct call.  A kernel
    has such a variable for each compound dimension, such as `n * 2`.  Native kernels check these relations, because the
    accesses of their loops are not checked.
    in_place: the indices of the inputs that the output may overwrite, if there is only one output.  Such an input has
    the shape and dtype of the output, and each of its elements is read only to compute the output element with the same
    indices.  A caller may also pass, as another input, a view of the overwritten tensor with the same number of
    elements.  This is safe because the kernel reads each input of this size at the flat position of the output element.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    comment: str
    in_place: tuple[int, ...] = ()
    work: Work | None = None
    provenance: Provenance | None = None
    relations: tuple[tuple[AnyDim, AnyDim], ...] = ()

    def __str__(self) -> str:
        inputs, outputs = (", ".join(buffer.name for buffer in side) for side in (self.inputs, self.outputs))
        return f"<kernel {self.name}({inputs}) -> ({outputs}): {self.comment}>"


@value_record
class ReferenceKernel:
    """A kernel of target "numpy": a call of the registered Python function `reference.<op>`.

    The arguments of the function are the attributes as JSON text, the input tensors, and the output tensors.
    """

    op: str
    attributes: str


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


_OPERANDS: dict[type, Callable[[Any], tuple[Scalar, ...]]] = {
    Load: lambda load: load.indices,
    Binary: lambda binary: (binary.left, binary.right),
    Unary: lambda unary: (unary.operand,),
    Select: lambda select: (select.cond, select.then, select.orelse),
    Convert: lambda convert: (convert.operand,),
    Intrinsic: lambda intrinsic: intrinsic.args,
}


def operands_of(scalar: Scalar) -> tuple[Scalar, ...]:
    """Return the operands of the expression `scalar`, in order."""
    operands = _OPERANDS.get(type(scalar))
    return operands(scalar) if operands else ()


def parts_of(scalar: Scalar) -> Iterator[Scalar]:
    """Yield the expression `scalar` and all expressions inside it."""
    waiting: list[Scalar] = [scalar]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += operands_of(part)


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
        case Binary("+" | "-" | "*" as function, left, right):
            a, b = constant_value(left), constant_value(right)
            if a is not None and b is not None:
                value = _INTEGER_OPERATIONS[function](a, b)
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
    return {"+": 0, "*": 1, "|": 0, "max": dtype.lowest, "min": dtype.highest}[clause]


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
    return Select(cond, then, orelse)


def integer_quotient(x: Scalar, y: Scalar) -> Scalar:
    """Return the integer quotient x / y, truncated, with a defined result where C has none.

    The quotient is 0 if y is 0.  The smallest integer divided by -1 wraps around.
    """
    quotient = x / y
    if x.dtype.is_signed:
        quotient = select(y.eq(-1), -x, quotient)
    return select(y.eq(0), Literal(0, x.dtype), quotient)


def integer_remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder of the division x / y in `integer_quotient`.  It has the sign of x, and is 0 if y is 0."""
    rest = x % y
    if x.dtype.is_signed:
        rest = select(y.eq(-1), Literal(0, x.dtype), rest)
    return select(y.eq(0), Literal(0, x.dtype), rest)
