"""How an operator becomes something the machine can run: the `lower=` of its declaration.

The forms:
    Loops(function)      a kernel of its own; `function(k, inputs, outputs, **attributes)` writes the loop nest
    elementwise(f)       the same for f(element, ...) -> element under NumPy broadcasting
    VIEW, ALIAS          no kernel: the argument's bytes under the result's shape; the argument itself
    Builtin(name)        no kernel: a builtin of the machine

Inside a kernel every shape is made of plain integers and variables: a compound dimension such as `n + m` has become a
variable of its own, equal dimensions the same one.  Arguments that are shapes are not buffers and are left out; what
they say is in the outputs' shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from relvm.ir.dims import AnyDim, product
from relvm.ir.dtypes import I64
from relvm.lir.kernel import Buffer, KernelBuilder, Load, Local, Scalar, Size, as_scalar


@dataclass(frozen=True)
class Loops:
    """A kernel written by `function(k: KernelBuilder, inputs, outputs, **attributes)`.

    pointwise: it has one output, each element of which is made of the elements at that place in the inputs, those of
    smaller shape broadcast.
    """

    function: Callable[..., None]
    pointwise: bool = False


@dataclass(frozen=True)
class View:
    """The first argument's bytes under the result's shape."""


@dataclass(frozen=True)
class Alias:
    """The first argument itself."""


@dataclass(frozen=True)
class Builtin:
    """The builtin of that name (csrc/builtins.def) on the same arguments, then these attributes, which are dtypes."""

    name: str
    attributes: tuple[str, ...] = ()


VIEW, ALIAS = View(), Alias()


def elementwise(point: Callable[..., Scalar]) -> Loops:
    """`out[i...] = point(x[i...], y[i...], ..., **attributes)` with NumPy broadcasting of the inputs."""

    def lower(k: KernelBuilder, inputs: tuple[Buffer, ...], outputs: tuple[Buffer, ...], **attributes: Any) -> None:
        (out,) = outputs
        axes = collapse(inputs, out)
        with loop_nest(k, [axis.extent for axis in axes], simd=True) as counters:
            elements = [Load(buffer, (flat_index(axes, n, counters),)) for n, buffer in enumerate(inputs)]
            k.store(out, (flat_index(axes, len(inputs), counters),), point(*elements, **attributes))

    return Loops(lower, pointwise=True)


@dataclass(frozen=True)
class Axis:
    """A loop over `extent` positions.  strides: how far each operand moves per step (0: it is broadcast)."""

    extent: AnyDim
    strides: tuple[AnyDim, ...]


def collapse(inputs: tuple[Buffer, ...], out: Buffer) -> list[Axis]:
    """The output's axes with each operand's stride under broadcasting, neighbours merged."""
    buffers, rank = (*inputs, out), len(out.shape)
    return merge(
        Axis(extent, tuple(_stride(buffer, position - rank) for buffer in buffers))
        for position, extent in enumerate(out.shape)
    )


def merge(axes: Iterable[Axis]) -> list[Axis]:
    """The same walk in fewer loops: axes of one step left out, neighbours joined where every operand steps through both
    as one.  Empty where there is one element only."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        if merged and all(a == b * axis.extent for a, b in zip(merged[-1].strides, axis.strides, strict=True)):
            merged[-1] = Axis(product((merged[-1].extent, axis.extent)), axis.strides)
        else:
            merged.append(axis)
    return merged


def _stride(buffer: Buffer, axis: int) -> AnyDim:
    """Elements between neighbours along `axis` (counted from the end); 0 where the buffer is broadcast along it."""
    if -axis > len(buffer.shape) or buffer.shape[axis] == 1:
        return 0
    return strides_of(buffer.shape)[axis]


def strides_of(shape: tuple[AnyDim, ...]) -> tuple[AnyDim, ...]:
    """Elements between neighbours along each axis of a compact row-major array."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def strided_copy(k: KernelBuilder, x: Buffer, out: Buffer, strides: tuple[AnyDim, ...], start: Scalar) -> None:
    """`out[i, j...] = x.flat[start + i * strides[0] + j * strides[1] + ...]`."""
    pairs = zip(out.shape, zip(strides, strides_of(out.shape), strict=True), strict=True)
    axes = merge(Axis(extent, pair) for extent, pair in pairs)
    with loop_nest(k, [axis.extent for axis in axes], simd=True) as counters:
        position = flat_index(axes, 0, counters)
        k.store(out, (flat_index(axes, 1, counters),), Load(x, (position + start,)))


@dataclass
class loop_nest:
    """Nested loops over `extents`, the innermost one `simd` with `reduce`; gives the counters, outermost first."""

    k: KernelBuilder
    extents: list[AnyDim]
    simd: bool = False
    reduce: tuple[tuple[str, Local], ...] = ()
    open: list = field(default_factory=list)

    def __enter__(self) -> list[Local]:
        counters = []
        for depth, extent in enumerate(self.extents):
            innermost = depth == len(self.extents) - 1
            loop = self.k.loop(extent, simd=self.simd and innermost, reduce=self.reduce if innermost else ())
            counters.append(loop.__enter__())
            self.open.append(loop)
        return counters

    def __exit__(self, *error) -> None:
        for loop in reversed(self.open):
            loop.__exit__(*error)


def flat_index(axes: list[Axis], operand: int, counters: list[Local]) -> Scalar:
    """The flat position of `operand` (its place in Axis.strides) at the counters."""
    total: Scalar | None = None
    for axis, counter in zip(axes, counters, strict=True):
        stride = axis.strides[operand]
        if stride == 0:
            continue
        term = counter if stride == 1 else counter * Size(stride)
        total = term if total is None else total + term
    return as_scalar(0, I64) if total is None else total


def flat_position(indices: tuple[Scalar, ...], shape: tuple[AnyDim, ...]) -> Scalar:
    """The row-major position of an element of an array of that shape."""
    total = indices[0]
    for index, dim in zip(indices[1:], shape[1:], strict=True):
        total = total * as_scalar(dim, I64) + index
    return total
