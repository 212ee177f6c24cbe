"""Loop IR: kernels as loop nests over buffers, which are printed as C.

A scalar expression knows its dtype.  The shapes of the buffers consist of integers and variables, without compound
dimensions.  A kernel has no other size parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.cost import Work

_PART_WORK = 64_000  # the least work of a part of a parallel loop: 8 microseconds, many times the cost of starting it
SUM_LANES = 16  # csrc/codegen/reproducible.h
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class Scalar:
    """Base class of scalar expressions.  Python's operators build `Binary` nodes.  A Python number takes the dtype of
    the other operand."""

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
        """Return the logical or of two bools."""
        return self._binary("||", other)

    def to(self, dtype: DType) -> Scalar:
        """Return the value converted as by NumPy's astype."""
        return self if dtype == self.dtype else Convert(self, dtype)


@dataclass(frozen=True, eq=False)
class Literal(Scalar):
    value: bool | int | float
    dtype: DType


@dataclass(frozen=True, eq=False)
class Local(Scalar):
    """A loop counter or a variable of the kernel.  The builder makes names unique."""

    name: str
    dtype: DType


@dataclass(frozen=True, eq=False)
class Size(Scalar):
    """A dimension, as an i64."""

    dim: AnyDim
    dtype: DType = I64


@dataclass(frozen=True, eq=False)
class Load(Scalar):
    """The element `buffer[indices]`.  A single index into a buffer of another rank is a flat row-major position."""

    buffer: Buffer
    indices: tuple[Scalar, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@dataclass(frozen=True, eq=False)
class Binary(Scalar):
    """The expression `left function right` of C.  / and % round towards zero for integers, as in C."""

    function: str
    left: Scalar
    right: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Unary(Scalar):
    """The expression -x or !x."""

    function: str
    operand: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Select(Scalar):
    """The expression `cond ? then : orelse`.  Neither operand has side effects."""

    cond: Scalar
    then: Scalar
    orelse: Scalar

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@dataclass(frozen=True, eq=False)
class Convert(Scalar):
    operand: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Intrinsic(Scalar):
    """A function of C's <math.h>, by the name of its double version (exp, tanh, fmax), in the precision of the
    argument.

    fma is for f32 only.  It is one rounding if the processor has such an instruction (csrc/codegen/reproducible.h).
    """

    name: str
    args: tuple[Scalar, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Buffer:
    """A contiguous row-major array.  `buffer[i, j]` loads an element."""

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


@dataclass(frozen=True, eq=False)
class Loop(Statement):
    """The loop `for (counter = start; counter < stop; counter++)`.

    simd: whether the iterations may run as vector lanes.  They are then independent, except for reductions into the
    locals that `reduce` lists as (operator, local).

    A reduction of floats has a defined order.  In whole blocks of SUM_LANES iterations, iteration i combines its
    element into lane i % SUM_LANES.  Then pairs of lanes that are half of them apart are combined until one is left,
    and that one is combined into the local.  The last iterations, if there are less than SUM_LANES, are in order.
    """

    counter: Local
    start: Scalar
    stop: Scalar
    body: tuple[Statement, ...]
    simd: bool = False
    reduce: tuple[tuple[str, Local], ...] = ()


@dataclass(frozen=True, eq=False)
class Parallel(Statement):
    """A parallel loop over [0, count).  Threads run the body on parts [first, last), each of at least `grain` numbers,
    except for the last part.

    The effect for a number does not depend on the part that contains it.  The body assigns no local that is declared
    outside, has no Fail, and has no other Parallel in it.
    """

    first: Local
    last: Local
    count: Scalar
    grain: Scalar
    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False)
class Store(Statement):
    """The assignment `buffer[indices] = value`, with indices as in Load."""

    buffer: Buffer
    indices: tuple[Scalar, ...]
    value: Scalar


@dataclass(frozen=True, eq=False)
class Let(Statement):
    local: Local
    value: Scalar


@dataclass(frozen=True, eq=False)
class Assign(Statement):
    local: Local
    value: Scalar


@dataclass(frozen=True, eq=False)
class IfThen(Statement):
    cond: Scalar
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()


@dataclass(frozen=True, eq=False)
class Allocate(Statement):
    """An uninitialized, 64-byte aligned array on the C stack, until the end of the block.  Its shape is constant and
    small."""

    buffer: Buffer


@dataclass(frozen=True, eq=False)
class Address:
    """The address of the element of a buffer at a flat position."""

    buffer: Buffer
    position: Scalar


@dataclass(frozen=True, eq=False)
class Invoke(Statement):
    """A call of a C function of csrc/codegen/*.h."""

    function: str
    args: tuple[Scalar | Address, ...]


@dataclass(frozen=True, eq=False)
class Fail(Statement):
    """An early end of the kernel with an error.  status: a row of csrc/tables/status.def.  message: has a %lld for each
    of `values`, which are all i64."""

    status: str
    message: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel: a loop nest that reads `inputs` and writes every element of `outputs`.

    comment: the operators that it implements.   work: the work of a call, for profiles, or None if it is unknown.
    in_place: the numbers of the inputs whose memory the single output may reuse.  Each has the shape and dtype of the
    output, and each of its elements is read only for the output element in the same place.  Another input may share
    that memory if it has as many elements, because it is read in the same way.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    comment: str
    in_place: tuple[int, ...] = ()
    work: Work | None = None


@dataclass(frozen=True)
class ReferenceKernel:
    """A kernel of target "numpy": the packed function `reference.<op>`.  Its arguments are the attributes as JSON text,
    the inputs, and the tensors to write."""

    op: str
    attributes: str


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement, each before the statements inside it."""
    for statement in body:
        yield statement
        match statement:
            case Loop(body=inner) | Parallel(body=inner):
                yield from statements_in(inner)
            case IfThen(_, then, orelse):
                yield from statements_in(then)
                yield from statements_in(orelse)


def scalars_in(statement: Statement) -> Iterator[Scalar]:
    """Yield every scalar that a statement itself reads, each before its operands."""
    waiting: list[object] = []
    match statement:
        case Loop(_, start, stop, reduce=reduce):
            waiting = [start, stop, *(local for _, local in reduce)]
        case Parallel(count=count):
            waiting = [count]
        case IfThen(cond):
            waiting = [cond]
        case Let(_, value) | Assign(_, value):
            waiting = [value]
        case Store(_, indices, value):
            waiting = [*indices, value]
        case Invoke(_, args) | Fail(values=args):
            waiting = list(args)
    while waiting:
        scalar = waiting.pop()
        if isinstance(scalar, Scalar):
            yield scalar
        if isinstance(scalar, Scalar | Address):
            for value in vars(scalar).values():
                waiting += value if isinstance(value, tuple) else (value,)


def as_scalar(value, dtype: DType) -> Scalar:
    """Return `value` as a scalar: a scalar unchanged, a Python number as a literal of `dtype`, a symbolic dimension as
    a Size."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, bool | int | float):
        return Literal(value, dtype)
    return Size(value)


def constant_value(scalar: Scalar) -> int | None:
    """Return the value of an integer expression if it consists of constants, or None."""
    match scalar:
        case Literal(value=int() as value) | Size(dim=int() as value):
            return value
        case Binary("+" | "-" | "*" as function, left, right):
            a, b = constant_value(left), constant_value(right)
            return None if a is None or b is None else {"+": a + b, "-": a - b, "*": a * b}[function]
    return None


def trip_count(loop: Loop) -> int | None:
    """Return the number of iterations, or None if it is not constant."""
    start, stop = constant_value(loop.start), constant_value(loop.stop)
    return None if start is None or stop is None else max(0, stop - start)


def reduces_floats(loop: Loop) -> bool:
    return any(local.dtype.is_float for _, local in loop.reduce)


def identity_of(clause: str, dtype: DType) -> int | float:
    """Return the number that a reduction of no elements gives."""
    return {"+": 0, "*": 1, "|": 0, "max": dtype.lowest, "min": dtype.highest}[clause]


def minimum(number: Scalar, other: Scalar | int) -> Scalar:
    """Return the smaller of two numbers.  An int stands for an i64."""
    other = as_scalar(other, I64)
    return Select(number < other, number, other)


def maximum(number: Scalar, other: Scalar | int) -> Scalar:
    """Return the larger of two numbers.  An int stands for an i64."""
    other = as_scalar(other, I64)
    return Select(number > other, number, other)


def integer_quotient(x: Scalar, y: Scalar) -> Scalar:
    """Return x / y rounded towards 0, with C's undefined cases handled.

    It is 0 if y is 0.  The smallest integer divided by -1 wraps around.
    """
    quotient = x / y
    if x.dtype.is_signed:
        quotient = Select(y.eq(-1), -x, quotient)
    return Select(y.eq(0), Literal(0, x.dtype), quotient)


def integer_remainder(x: Scalar, y: Scalar) -> Scalar:
    """Return the remainder of that quotient, with the sign of x; 0 if y is 0."""
    rest = x % y
    if x.dtype.is_signed:
        rest = Select(y.eq(-1), Literal(0, x.dtype), rest)
    return Select(y.eq(0), Literal(0, x.dtype), rest)


@dataclass
class KernelBuilder:
    """Builder of a kernel's statements.  `with builder.loop(...) as i:` opens a loop.

    is_compact: whether the kernel should use little memory, even if it takes longer.
    """

    blocks: list[list[Statement]] = field(default_factory=lambda: [[]])
    names: dict[str, int] = field(default_factory=dict)
    is_compact: bool = False

    def local(self, name: str, dtype: DType) -> Local:
        """Return a new variable named after `name`."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return Local(f"{name}{count}" if count else name, dtype)

    def add(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    @contextmanager
    def loop(self, stop, *, start=0, name: str = "i", simd: bool = False, reduce=()) -> Iterator[Local]:
        """Open a loop over [start, stop).  A loop of one iteration is kept; the C compiler removes it."""
        counter = self.local(name, I64)
        self.blocks.append([])
        yield counter
        body = tuple(self.blocks.pop())
        self.add(Loop(counter, as_scalar(start, I64), as_scalar(stop, I64), body, simd, tuple(reduce)))

    @contextmanager
    def parallel(self, count, work, *, least=1) -> Iterator[tuple[Local, Local]]:
        """Open a parallel loop over [0, count), and give the bounds of a part [first, last) (see Parallel).

        work: the approximate time for one number, in eighths of a nanosecond.   least: the fewest numbers in a part.
        """
        first, last = self.local("first", I64), self.local("last", I64)
        grain = _PART_WORK / (as_scalar(work, I64) + 1) + as_scalar(least, I64)
        self.blocks.append([])
        yield first, last
        body = tuple(self.blocks.pop())
        self.add(Parallel(first, last, as_scalar(count, I64), grain, body))

    @contextmanager
    def branch(self, cond: Scalar) -> Iterator[None]:
        self.blocks.append([])
        yield
        self.add(IfThen(cond, tuple(self.blocks.pop())))

    def fail(self, cond: Scalar, status: str, message: str, *values) -> None:
        """End the kernel with an error if `cond` holds.  Not allowed inside a SIMD loop."""
        values = tuple(as_scalar(value, I64) for value in values)
        self.add(IfThen(cond, (Fail(status, message, values),)))

    def size(self, dims: tuple[AnyDim, ...]) -> Scalar:
        """Return the product of dimensions."""
        return as_scalar(product(dims), I64)

    def allocate(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """Return a new array on the stack."""
        buffer = Buffer(self.local(name, dtype).name, dtype, shape)
        self.add(Allocate(buffer))
        return buffer

    def let(self, name: str, value: Scalar) -> Local:
        """Return a new variable, initialized with `value`."""
        local = self.local(name, value.dtype)
        self.add(Let(local, value))
        return local

    def assign(self, local: Local, value: Scalar | int) -> None:
        self.add(Assign(local, as_scalar(value, local.dtype)))

    def invoke(self, function: str, *args: Scalar | Address | AnyDim) -> None:
        self.add(Invoke(function, tuple(arg if isinstance(arg, Address) else as_scalar(arg, I64) for arg in args)))

    def store(self, buffer: Buffer, indices, value) -> None:
        indices = tuple(as_scalar(index, I64) for index in indices)
        self.add(Store(buffer, indices, as_scalar(value, buffer.dtype)))

    def finish(self) -> tuple[Statement, ...]:
        assert len(self.blocks) == 1, "a loop is still open"
        return tuple(self.blocks[0])
