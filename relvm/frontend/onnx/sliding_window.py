"""Attributes of sliding windows, shared by convolution and pooling nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import OnnxNode
from relvm.frontend.onnx.tensor_expr import TensorExpr, pad_axes
from relvm.ir.symbolic import AnyDim, dim_op, known_sizes
from relvm.ir.value_ranges import range_of

Size = TypeVar("Size", int, AnyDim)


def expect_kernel_shape(node: OnnxNode, window: Sequence[AnyDim]) -> None:
    """Raise RelvmShapeError if the attribute kernel_shape, which is optional, contradicts the window of the weights."""
    stated = node.attribute("kernel_shape")
    if stated is not None and (
        len(stated) != len(window)
        or any(isinstance(size, int) and size != own for size, own in zip(window, stated, strict=True))
    ):
        raise RelvmShapeError(f"kernel_shape is {stated}, but the window of the weights is {list(window)}")


def dilated_sizes(window: Sequence[Size], dilations: Sequence[int]) -> list[Size]:
    """Return the number of positions that a dilated window spans along each axis.

    window: the number of elements of the window along each axis.
    """
    return [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]


def strides_and_dilations(node: OnnxNode, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the attributes strides and dilations, which have one positive integer for each of `rank` spatial axes."""
    return node.integers("strides", rank, 1, least=1), node.integers("dilations", rank, 1, least=1)


def padding_of(
    node: OnnxNode, window: Sequence[AnyDim], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[AnyDim, ...]:
    """Return the padding before each spatial axis of input 0, followed by the padding after each spatial axis.

    The attributes auto_pad and pads determine the padding.  With SAME_UPPER and SAME_LOWER, an axis of size n gets
    enough padding for ceil(n / stride) output positions.

    If n is symbolic and only the padding after the axis depends on n, that padding is replaced by a number: the largest
    padding that any n requires.  The number of output positions stays the same, because the additional padding lies
    beyond the last window.
    """
    rank, mode = len(window), node.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return node.integers("pads", 2 * rank, 0)
    if mode == "VALID":
        return (0,) * (2 * rank)
    extents = dilated_sizes(window, dilations)
    totals = [_same_padding(node, axis, extents[axis], stride) for axis, stride in enumerate(strides)]
    pads = split_pads(mode, totals)
    after = list(pads[rank:])
    for axis, before in enumerate(pads[:rank]):
        if isinstance(before, int) and not isinstance(after[axis], int):
            after[axis] = extents[axis] - 1 - before
    return (*pads[:rank], *after)


def _same_padding(node: OnnxNode, axis: int, span: AnyDim, stride: int) -> AnyDim:
    """Return the total padding of a spatial axis for auto_pad SAME_UPPER or SAME_LOWER.

    With this padding, an axis of size n has ceil(n / stride) output positions.  The padding is
    max(span - 1 - (n - 1) % stride, 0).

    axis: the axis, counted from the first spatial one.   span: the number of positions that a window spans.
    """
    if stride == 1:
        return span - 1
    shape = node.type(0).shape
    if shape is None:
        raise RelvmUnsupportedError("auto_pad requires an input of known rank")
    return dim_op("max", span - 1 - dim_op("mod", shape[2 + axis] - 1, stride), 0)


def split_pads(mode: str, totals: Sequence[Size]) -> tuple[Size, ...]:
    """Split the total padding of each axis into the padding before and after the axis.

    mode: SAME_UPPER or SAME_LOWER.  If the total is odd, the extra element is added after the axis for SAME_UPPER, and
    before it for SAME_LOWER.
    """
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise RelvmUnsupportedError(f"auto_pad {mode!r} is not supported")
    small: list[Size] = [0 if range_of(total, {}).high <= 1 else total // 2 for total in totals]
    large: list[Size] = [total - half for total, half in zip(totals, small, strict=True)]
    return tuple(small + large if mode == "SAME_UPPER" else large + small)


def pad_if_symbolic(x: TensorExpr, pads: tuple[AnyDim, ...], value: float) -> tuple[TensorExpr, tuple[int, ...]]:
    """Pad the spatial axes of x with `value` if some of the padding is symbolic.

    Return the tensor, and the padding that the operator must still apply.  If all of `pads` is known, these are x
    itself and `pads`, otherwise the padded tensor and zeros.
    """
    numbers = known_sizes(pads)
    if numbers is not None:
        return x, numbers
    rank = len(pads) // 2
    margin = TensorExpr(x.node, x.operand(value))
    wide = pad_axes(x, (0, 0, *pads[:rank]), (0, 0, *pads[rank:]), lambda x, axis, end: margin)
    return wide, (0,) * len(pads)
