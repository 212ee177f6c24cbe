"""Building of kernels: a builder that collects the statements of a loop nest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import field

from relvm.data_classes import dataclass
from relvm.ir.dtypes import I64, DType
from relvm.ir.loop_ir import (
    Address,
    Allocate,
    Assign,
    Buffer,
    Fail,
    IfThen,
    Invoke,
    Let,
    Literal,
    Local,
    Loop,
    Parallel,
    Scalar,
    Statement,
    Store,
    as_scalar,
    constant_value,
)
from relvm.ir.symbolic import AnyDim, product
from relvm.tables import micro_kernel_arguments

# The goals of a kernel.  "memory": little memory.  "size": little code and little memory.
FAVOURS = ("memory", "speed", "size")
# The minimum work of a part of a parallel loop: 2 microseconds, several times the cost of starting a part.
_PART_WORK = 16_000


@dataclass
class KernelBuilder:
    """Builder of a kernel's statements.  `with builder.loop(...) as i:` opens a loop.

    favour: the goal of the kernel, one of FAVOURS.
    values: a dict from the name of a variable or array to the IR values whose computation it belongs to.
    """

    blocks: list[list[Statement]] = field(default_factory=lambda: [[]])
    names: dict[str, int] = field(default_factory=dict)
    favour: str = "speed"
    values: dict[str, tuple[Hashable, ...]] = field(default_factory=dict)

    @property
    def is_compact(self) -> bool:
        """Whether the kernel should use little memory, even if it is slower."""
        return self.favour != "speed"

    @property
    def is_small(self) -> bool:
        """Whether the kernel should have little code and use little memory, even if it is slower."""
        return self.favour == "size"

    def local(self, name: str, dtype: DType) -> Local:
        """Return a new variable.  Its name is `name`, with a number appended if the name is already used."""
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return Local(f"{name}{count}" if count else name, dtype)

    def add(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    @contextmanager
    def loop(self, stop, *, start=0, name: str = "i", simd: bool = False, reduce=()) -> Iterator[Scalar]:
        """A context manager that opens a loop over [start, stop), and yields the loop counter.

        name: the name of the counter.
        simd: whether the loop is a SIMD loop (see Loop).
        reduce: a pair (operator, local) for each reduction of the loop.

        If the loop has exactly one iteration and no reduction, and is not a SIMD loop, only its body is generated.  The
        counter is then a literal.
        """
        start, stop = as_scalar(start, I64), as_scalar(stop, I64)
        first, end = constant_value(start), constant_value(stop)
        if first is not None and end is not None and end - first == 1 and not simd and not reduce:
            yield Literal(first, I64)
            return
        counter = self.local(name, I64)
        self.blocks.append([])
        yield counter
        body = tuple(self.blocks.pop())
        self.add(Loop(counter, start, stop, body, "simd" if simd else "range", tuple(reduce)))

    @contextmanager
    def parallel(self, count, work, *, least=1) -> Iterator[tuple[Local, Local]]:
        """A context manager that opens a parallel loop over [0, count), and yields the bounds of a part (see Parallel).

        work: the approximate time of one iteration, in eighths of a nanosecond.
        least: the minimum number of iterations in a part.
        """
        first, last = self.local("first", I64), self.local("last", I64)
        grain = _PART_WORK / (as_scalar(work, I64) + 1) + as_scalar(least, I64)
        self.blocks.append([])
        yield first, last
        body = tuple(self.blocks.pop())
        self.add(Parallel(first, last, as_scalar(count, I64), grain, body))

    @contextmanager
    def branch(self, cond: Scalar) -> Iterator[None]:
        """A context manager for statements that run only if `cond` holds.

        If `cond` is a literal, no branch is generated: the statements always run, or are dropped.
        """
        self.blocks.append([])
        yield
        body = self.blocks.pop()
        if not isinstance(cond, Literal):
            self.add(IfThen(cond, tuple(body)))
        elif cond.value:
            self.blocks[-1] += body

    def fail(self, cond: Scalar, status: str, message: str, *values) -> None:
        """Generate code that ends the kernel with an error if `cond` holds.  This is not allowed inside a SIMD loop.

        status: the name of the error in csrc/tables/status.def.
        message: a format string with a %lld for each of the i64 scalars `values`.
        """
        values = tuple(as_scalar(value, I64) for value in values)
        with self.branch(cond):
            self.add(Fail(status, message, values))

    def size(self, dims: tuple[AnyDim, ...]) -> Scalar:
        """Return the product of the dimensions `dims`, as a scalar."""
        return as_scalar(product(dims), I64)

    def allocate(self, name: str, dtype: DType, shape: tuple[int, ...], of: tuple[Hashable, ...] = ()) -> Buffer:
        """Return a new array on the C stack.

        of: the IR values whose elements the array contains, to record their source locations.
        """
        buffer = Buffer(self.local(name, dtype).name, dtype, shape)
        if of:
            self.values[buffer.name] = of
        self.add(Allocate(buffer))
        return buffer

    def let(self, name: str, value: Scalar, of: tuple[Hashable, ...] = ()) -> Scalar:
        """Return a new variable with the value `value`.  Do not assign to it: `variable` returns one for assignments.

        If `value` is an i64 literal, return the literal itself instead of a variable.

        of: the IR values whose computation the variable belongs to, to record their source locations.
        """
        return value if isinstance(value, Literal) and value.dtype is I64 else self.variable(name, value, of)

    def variable(self, name: str, value: Scalar, of: tuple[Hashable, ...] = ()) -> Local:
        """Return a new variable that is initialized with `value`, and can be assigned.

        of: the IR values whose computation the variable belongs to, to record their source locations.
        """
        local = self.local(name, value.dtype)
        if of:
            self.values[local.name] = of
        self.add(Let(local, value))
        return local

    def assign(self, local: Local, value: Scalar | int) -> None:
        self.add(Assign(local, as_scalar(value, local.dtype)))

    def invoke(self, function: str, **arguments: Scalar | Address | AnyDim) -> None:
        """Add a call of a micro-kernel.

        function: the name of a row of csrc/tables/micro_kernels.def.
        arguments: the arguments by name, in any order: addresses for READ and WRITE, otherwise scalars.
        """
        expected = micro_kernel_arguments(function)
        assert {argument.name for argument in expected} == arguments.keys(), function
        values: list[Scalar | Address] = []
        for argument in expected:
            value = arguments[argument.name]
            assert argument.is_address == isinstance(value, Address), f"{function}: {argument.name}"
            values.append(value if isinstance(value, Address) else as_scalar(value, I64))
        self.add(Invoke(function, tuple(values)))

    def store(self, buffer: Buffer, indices, value) -> None:
        indices = tuple(as_scalar(index, I64) for index in indices)
        self.add(Store(buffer, indices, as_scalar(value, buffer.dtype)))

    def finish(self) -> tuple[Statement, ...]:
        assert len(self.blocks) == 1, "a loop is still open"
        return tuple(self.blocks[0])
