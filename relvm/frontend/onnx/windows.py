"""How ONNX nodes state windows that slide over spatial axes, as convolution and pooling have them."""

from __future__ import annotations

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node
from relvm.ir.dims import AnyDim


def spans(window: tuple[int, ...], dilations: tuple[int, ...]) -> list[int]:
    """From the first to the last position of a dilated window, along each axis."""
    return [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]


def pads_of(
    node: Node, window: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[int, ...]:
    """The padding before each spatial axis of input 0, then after each, as auto_pad and pads say.

    Raises
    ------
    RelvmUnsupportedError
        The padding depends on a symbolic dimension; no such auto_pad.
    """
    rank, mode = len(window), node.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return tuple(node.attribute("pads", [0] * (2 * rank)))
    if mode == "VALID":
        return (0,) * (2 * rank)
    totals: list[AnyDim] = []
    for axis, (span, stride) in enumerate(zip(spans(window, dilations), strides, strict=True)):
        if stride == 1:
            totals.append(span - 1)
            continue
        shape = node.type(0).shape
        if shape is None:
            raise RelvmUnsupportedError(f"auto_pad {mode} of a tensor whose shape is not known")
        dim = shape[2 + axis]
        total = ((dim + stride - 1) // stride - 1) * stride + span - dim
        if not isinstance(total, int):
            raise RelvmUnsupportedError(f"auto_pad {mode} of a symbolic dimension {dim} with stride {stride}")
        totals.append(max(0, total))
    return split_pads(mode, totals)


def split_pads(mode: str, totals: list[int]) -> tuple[int, ...]:
    """The padding of each axis divided into before and after, the odd one where auto_pad `mode` says."""
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise RelvmUnsupportedError(f"auto_pad {mode!r} is not supported")
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return (*small, *large) if mode == "SAME_UPPER" else (*large, *small)
