"""How an operator becomes something the machine can run: the `lower=` of its declaration.

The forms:
    Loops(function)      a kernel of its own; `function(k, inputs, outputs, **attributes)` writes the loop nest
    elementwise(f)       the same for f(element, ...) -> element under NumPy broadcasting
    VIEW, ALIAS          no kernel: the argument's bytes under the result's shape; the argument itself
    Builtin(name)        no kernel: a builtin of the machine

Inside a kernel every shape is made of plain integers and variables: a compound dimension such as `n + m` has become a
variable of its own, equal dimensions the same one.  Arguments that are shapes are not buffers and are left out; what they
say is in the outputs' shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relvm.ir.dims import AnyDim, product
from relvm.ir.dtypes import I64
from relvm.lir.kernel import Buffer, KernelBuilder, Load, Local, Scalar, Size, as_scalar


@dataclass(frozen=True)
class Loops:
    """A kernel written by `function(k: KernelBuilder, inputs, outputs, **attributes)`."""

    function: Callable[..., None]


@dataclass(frozen=True)
class View:
    """The first argument's bytes under the result's shape."""


@dataclass(frozen=True)
class Alias:
    """The first argument itself."""


@dataclass(frozen=True)
class Builtin:
    """The builtin of that name (csrc/builtins.def) on the same arguments."""

    name: str


VIEW, ALIAS = View(), Alias()


def elementwise(point: Callable[..., Scalar]) -> Loops:
    """`out[i...] = point(x[i...], y[i...], ..., **attributes)` with NumPy broadcasting of the inputs."""

    def lower(k: KernelBuilder, inputs: tuple[Buffer, ...], outputs: tuple[Buffer, ...], **attributes: Any) -> None:
        (out,) = outputs
        axes = collapse(inputs, out)
        with loop_nest(k, [axis.extent for axis in axes], simd=True) as counters:
            elements = [Load(buffer, (flat_index(axes, n, counters),)) for n, buffer in enumerate(inputs)]
            k.store(out, (flat_index(axes, len(inputs), counters),), point(*elements, **attributes))

    return Loops(lower)


@dataclass(frozen=True)
class Axis:
    """A loop over `extent` positions; strides: how far each input, and last the output, moves per step (0: broadcast)."""

    extent: AnyDim
    strides: tuple[AnyDim, ...]


def collapse(inputs: tuple[Buffer, ...], out: Buffer) -> list[Axis]:
    """The output's axes with each operand's stride, neighbours merged where every operand steps through both as one."""
    axes: list[Axis] = []
    buffers = (*inputs, out)
    rank = len(out.shape)
    for position in range(rank):
        extent = out.shape[position]
        if extent == 1:
            continue
        axis = Axis(extent, tuple(_stride(buffer, position - rank) for buffer in buffers))
        if axes and all(a == b * extent for a, b in zip(axes[-1].strides, axis.strides, strict=True)):
            axes[-1] = Axis(product((axes[-1].extent, extent)), axis.strides)
        else:
            axes.append(axis)
    return axes or [Axis(1, (0,) * len(buffers))]


def _stride(buffer: Buffer, axis: int) -> AnyDim:
    """Elements between neighbours along `axis` (counted from the end); 0 where the buffer is broadcast along it."""
    if -axis > len(buffer.shape) or buffer.shape[axis] == 1:
        return 0
    return product(buffer.shape[len(buffer.shape) + axis + 1 :])


@dataclass
class loop_nest:
    """Nested loops over `extents`, the innermost one `simd`; gives the counters, outermost first."""

    k: KernelBuilder
    extents: list[AnyDim]
    simd: bool = False
    open: list = field(default_factory=list)

    def __enter__(self) -> list[Local]:
        counters = []
        for depth, extent in enumerate(self.extents):
            innermost = depth == len(self.extents) - 1
            loop = self.k.loop(extent, simd=self.simd and innermost)
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
