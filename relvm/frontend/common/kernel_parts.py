"""Parts of the kernels in this folder: buffers, loops and index arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from relvm.errors import RelvmUnsupportedError
from relvm.ir.dtypes import I64, U64
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, as_scalar
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import loop_nest


def buffer(name: str, type_: TensorType, *, is_output: bool = False) -> Buffer:
    """Return a parameter of a kernel for a tensor of known dtype and shape.

    A symbolic dimension becomes a new dimension variable of the kernel, which gets its value from the argument.
    """
    if type_.shape is None or type_.dtype is None or type_.dtype.is_string:
        raise RelvmUnsupportedError(f"a tensor of type {type_} is not supported here; expected a known shape")
    shape = tuple(dim if isinstance(dim, int) else dim_var(f"{name}_size{i}") for i, dim in enumerate(type_.shape))
    return Buffer(name, type_.dtype, shape, is_output)


def buffers(name: str, types: Sequence[TensorType], *, is_output: bool = False) -> list[Buffer]:
    """Return a parameter for each type.  Their names are `name`, with a number appended if there are several."""
    if len(types) == 1:
        return [buffer(name, types[0], is_output=is_output)]
    return [buffer(f"{name}{i}", type_, is_output=is_output) for i, type_ in enumerate(types)]


@contextmanager
def loops(k: KernelBuilder, extents: Sequence[AnyDim | Scalar]) -> Iterator[tuple[Scalar, ...]]:
    """A context manager that opens nested loops over `extents`, and yields their counters, outermost first."""
    with loop_nest(k, list(extents)) as counters:
        yield tuple(counters)


def size(dim: AnyDim) -> Scalar:
    """Return a dimension as a scalar."""
    return as_scalar(dim, I64)


def smaller(x: Scalar, y: Scalar) -> Scalar:
    if isinstance(x, Literal) and isinstance(y, Literal):
        return min(x, y, key=lambda each: each.value)
    return Operation("min", (x, y), x.dtype)


def larger(x: Scalar, y: Scalar) -> Scalar:
    if isinstance(x, Literal) and isinstance(y, Literal):
        return max(x, y, key=lambda each: each.value)
    return Operation("max", (x, y), x.dtype)


def quotient(x: Scalar, y: int) -> Scalar:
    """Return x / y, rounded down."""
    return x if y == 1 else Operation("floordiv", (x, Literal(y, I64)), I64)


def remainder(x: Scalar, y: int) -> Scalar:
    """Return the remainder of x / y, which is not negative."""
    return Literal(0, I64) if y == 1 else Operation("mod", (x, Literal(y, I64)), I64)


def index_of(x: Scalar) -> Scalar:
    """Return an integer element as an index.  An element that exceeds the range of i64 becomes a large index."""
    if x.dtype == U64:
        x = Operation("min", (x, Literal(1 << 62, U64)), U64)
    return x.to(I64)


def clamped(index: Scalar, highest: Scalar) -> Scalar:
    """Return an index clamped to [0, highest], or 0 if `highest` is negative."""
    return larger(smaller(index, highest), Literal(0, I64))


def is_inside(index: Scalar, extent: AnyDim) -> Scalar:
    """Return whether 0 <= index < extent."""
    return (index >= 0).logical_and(index < size(extent))


def copy(k: KernelBuilder, source: Buffer, target: Buffer) -> None:
    """Copy all elements of a buffer to another one of the same shape."""
    with loops(k, target.shape) as at:
        k.store(target, at, source[at] if at else source[()])
