"""Kernels: loop nests over buffers, the low-level form that is printed as C.

A scalar expression knows its element type.  Sizes are the plain integers and variables that the buffers' shapes name: a
kernel has no other size parameter, and a shape holds no compound dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.cost import Work

_PART_WORK = 64_000  # of a part of a parallel loop: 8 microseconds, many times what handing it over takes
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


class Scalar:
    """Base of scalar expressions.  Python's operators build `Binary` nodes; a Python number takes the other side's
    dtype."""

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
        """Logical and of two bools; the right side is evaluated only where the left holds."""
        return self._binary("&&", other)

    def logical_or(self, other) -> Scalar:
        """Logical or of two bools."""
        return self._binary("||", other)

    def to(self, dtype: DType) -> Scalar:
        """The value converted as NumPy's astype does."""
        return self if dtype == self.dtype else Convert(self, dtype)


@dataclass(frozen=True, eq=False)
class Literal(Scalar):
    value: bool | int | float
    dtype: DType


@dataclass(frozen=True, eq=False)
class Local(Scalar):
    """A loop counter or a variable of the kernel.  Names are made unique by the builder."""

    name: str
    dtype: DType


@dataclass(frozen=True, eq=False)
class Size(Scalar):
    """A dimension, as an i64."""

    dim: AnyDim
    dtype: DType = I64


@dataclass(frozen=True, eq=False)
class Load(Scalar):
    """buffer[indices], or the element at a flat row-major position where `indices` is one index into a buffer of
    another rank."""

    buffer: Buffer
    indices: tuple[Scalar, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@dataclass(frozen=True, eq=False)
class Binary(Scalar):
    """`left function right` in C's notation; / and % are C's (towards zero for integers)."""

    function: str
    left: Scalar
    right: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Unary(Scalar):
    """-x or !x."""

    function: str
    operand: Scalar
    dtype: DType


@dataclass(frozen=True, eq=False)
class Select(Scalar):
    """cond ? then : orelse, both sides free of effects."""

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
    """A function of C's <math.h> by its double name (exp, tanh, fmax...), in the argument's precision."""

    name: str
    args: tuple[Scalar, ...]
    dtype: DType


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array, compact and row-major.  `buffer[i, j]` loads."""

    name: str
    dtype: DType
    shape: tuple[AnyDim, ...]

    def __getitem__(self, indices) -> Load:
        indices = indices if isinstance(indices, tuple) else (indices,)
        return Load(self, tuple(as_scalar(index, I64) for index in indices))

    def flat(self, position: Scalar) -> Load:
        """The element at a flat row-major position."""
        return Load(self, (position,))


class Statement:
    """Base of statements."""


@dataclass(frozen=True, eq=False)
class Loop(Statement):
    """for (counter = start; counter < stop; counter++).  simd: the iterations are independent, or only reduce into
    locals that the loop names in `reduce` (operator, local), and may run as vector lanes."""

    counter: Local
    start: Scalar
    stop: Scalar
    body: tuple[Statement, ...]
    simd: bool = False
    reduce: tuple[tuple[str, Local], ...] = ()


@dataclass(frozen=True, eq=False)
class Parallel(Statement):
    """The body for parts [first, last) of [0, count), which may be worked on at the same time, each of `grain` at least
    but the last.  What it does for one number does not depend on the part that this is in.  It assigns no local that is
    declared outside, does not Fail, and has no other Parallel in it."""

    first: Local
    last: Local
    count: Scalar
    grain: Scalar
    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False)
class Store(Statement):
    """buffer[indices] = value, the indices as in Load."""

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
    """An array of the kernel's own until the block ends, not cleared, 64-byte aligned.  Its shape is constant and
    small: it is on the C stack."""

    buffer: Buffer


@dataclass(frozen=True, eq=False)
class Address:
    """The address of the element of a buffer at a flat position."""

    buffer: Buffer
    position: Scalar


@dataclass(frozen=True, eq=False)
class Invoke(Statement):
    """A call of a C function of csrc/codegen/gemm_f32.h or csrc/codegen/gemm_int8.h."""

    function: str
    args: tuple[Scalar | Address, ...]


@dataclass(frozen=True, eq=False)
class Fail(Statement):
    """The kernel ends with an error.  status: a row of csrc/tables/status.def.  message: a %lld for each of `values`,
    all i64."""

    status: str
    message: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loop nest that reads `inputs` and writes every element of `outputs`.

    comment: the operator it came from.  in_place: the inputs, by number, over which a single output may be written:
    each has its shape and dtype, and every element is read only where the same element of the output is written then.
    Any other input that happens to share that memory has as many elements, so that it is read at the same ones.
    work: what a call does, for profiles; None: it is not known.
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
    """A kernel of target "numpy": the packed function `reference.<op>`, called with the attributes as JSON text, then
    the arguments, then the tensors to write."""

    op: str
    attributes: str


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, those inside of one after it."""
    for statement in body:
        yield statement
        match statement:
            case Loop(body=inner) | Parallel(body=inner):
                yield from statements_in(inner)
            case IfThen(_, then, orelse):
                yield from statements_in(then)
                yield from statements_in(orelse)


def scalars_in(statement: Statement) -> Iterator[Scalar]:
    """Every scalar that a statement itself reads, those inside of one after it."""
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
    """`value` itself, or a Python number as a literal of `dtype`, or a symbolic dimension as a size."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, bool | int | float):
        return Literal(value, dtype)
    return Size(value)


def minimum(number: Scalar, other: Scalar | int) -> Scalar:
    """The smaller of two numbers; an int stands for an i64."""
    other = as_scalar(other, I64)
    return Select(number < other, number, other)


def maximum(number: Scalar, other: Scalar | int) -> Scalar:
    """The larger of two numbers; an int stands for an i64."""
    other = as_scalar(other, I64)
    return Select(number > other, number, other)


@dataclass
class KernelBuilder:
    """Collects a kernel's statements; `with builder.loop(...) as i:` nests.

    is_compact: a kernel of little memory is wanted, even where it takes longer.
    """

    blocks: list[list[Statement]] = field(default_factory=lambda: [[]])
    names: dict[str, int] = field(default_factory=dict)
    is_compact: bool = False

    def local(self, name: str, dtype: DType) -> Local:
        """A new variable named after `name`."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return Local(f"{name}{count}" if count else name, dtype)

    def add(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    @contextmanager
    def loop(self, stop, *, start=0, name: str = "i", simd: bool = False, reduce=()) -> Iterator[Local]:
        """A loop over [start, stop); a loop of exactly one iteration is kept, the C compiler removes it."""
        counter = self.local(name, I64)
        self.blocks.append([])
        yield counter
        body = tuple(self.blocks.pop())
        self.add(Loop(counter, as_scalar(start, I64), as_scalar(stop, I64), body, simd, tuple(reduce)))

    @contextmanager
    def parallel(self, count, work, *, least=1) -> Iterator[tuple[Local, Local]]:
        """A part [first, last) of [0, count), see Parallel.

        work: of one number, in eighths of a nanosecond, about; least: numbers that a part has at least.
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
        """Ends the kernel with an error where `cond` holds; not inside a simd loop."""
        values = tuple(as_scalar(value, I64) for value in values)
        self.add(IfThen(cond, (Fail(status, message, values),)))

    def size(self, dims: tuple[AnyDim, ...]) -> Scalar:
        """The product of some dimensions."""
        return as_scalar(product(dims), I64)

    def allocate(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Buffer:
        """A new array on the stack."""
        buffer = Buffer(self.local(name, dtype).name, dtype, shape)
        self.add(Allocate(buffer))
        return buffer

    def let(self, name: str, value: Scalar) -> Local:
        """A new variable that starts as `value`."""
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
