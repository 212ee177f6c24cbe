"""Margins: Pad; and the rearrangements SpaceToDepth and DepthToSpace."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import Node, converts
from relvm.frontend.onnx.terms import Term, term, with_margins
from relvm.ir.dims import AnyDim, exact_quotient
from relvm.ir.expr import Constant, Expr, constant


@converts("Pad")
def _pad(node: Node) -> Expr:
    """By one kernel where the numbers are known; where they are made of dimensions, or the value is not known, by
    concatenation.  Numbers below 0 take away."""
    x, rank, mode = term(node, 0), node.type(0).rank, node.attribute("mode", "constant")
    before, after = _counts(node, rank)
    known = all(isinstance(count, int) for count in (*before, *after))
    if mode == "constant":
        value = _value(node)
        if known and isinstance(value, Constant):
            number = value.value.item()
            return ops.pad(x.expr, pads=(*before, *after), value=number if x.type.dtype.is_float else int(number))
        return with_margins(x, before, after, lambda x, axis, end: Term(node, value)).expr
    if mode not in ("edge", "reflect", "wrap"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    if any(isinstance(count, int) and count < 0 for count in (*before, *after)):
        raise RelvmUnsupportedError(f"mode {mode} with numbers below 0: {before}, {after}")
    if known:
        return ops.extend(x.expr, pads=(*before, *after), mode=mode)
    if mode != "edge":
        raise RelvmUnsupportedError(f"mode {mode} with a margin of symbolic size")

    def nearest(x: Term, axis: int, end: int) -> Term:
        return x.apply(ops.gather, constant(np.array([-1 if end else 0])), axis=axis)

    return with_margins(x, before, after, nearest).expr


def _counts(node: Node, rank: int) -> tuple[list[AnyDim], list[AnyDim]]:
    """How much is added before and after each axis."""
    stated = list(node.attribute("pads")) if node.opset < 11 else node.dims(1, "the pads of a Pad")
    axes = [int(axis) for axis in node.known(3, "the axes of a Pad").reshape(-1)] if node.has(3) else range(rank)
    if len(stated) != 2 * len(axes):
        raise RelvmShapeError(f"{len(stated)} pads for {len(axes)} axes, expected two for each")
    before: list[AnyDim] = [0] * rank
    after: list[AnyDim] = [0] * rank
    for i, axis in enumerate(axes):
        if not -rank <= axis < rank:
            raise RelvmShapeError(f"the axes name {axis}, outside [-{rank}, {rank})")
        before[axis], after[axis] = stated[i], stated[len(axes) + i]
    return before, after


def _value(node: Node) -> Expr:
    dtype = node.type(0).dtype.numpy
    if node.opset < 11:
        return constant(np.asarray(node.attribute("value", 0.0), dtype))
    if not node.has(2):
        return constant(np.zeros((), dtype))
    return term(node, 2).reshape().expr


@converts("DepthToSpace")
def _depth_to_space(node: Node) -> Expr:
    """Channels become blocks of size * size places; DCR: the block's position is the first part of the channel."""
    x, (batch, channels, height, width), size, mode = _blocks(node)
    depth = _quotient(channels, size * size, "channels")
    if mode == "DCR":
        apart, order = (batch, size, size, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        apart, order = (batch, depth, size, size, height, width), (0, 1, 4, 2, 5, 3)
    return x.reshape(*apart).apply(ops.transpose, perm=order).reshape(batch, depth, height * size, width * size).expr


@converts("SpaceToDepth")
def _space_to_depth(node: Node) -> Expr:
    x, (batch, channels, height, width), size, mode = _blocks(node)
    high, wide = _quotient(height, size, "rows"), _quotient(width, size, "columns")
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = x.reshape(batch, channels, high, size, wide, size).apply(ops.transpose, perm=order)
    return moved.reshape(batch, channels * (size * size), high, wide).expr


def _blocks(node: Node) -> tuple[Term, tuple[AnyDim, ...], int, str]:
    """The input, its four dimensions, the block size and the mode."""
    x, size, mode = term(node, 0), node.attribute("blocksize"), node.attribute("mode", "DCR")
    if x.type.shape is None or len(x.shape) != 4:
        raise RelvmUnsupportedError(f"{node.proto.op_type} of a tensor of type {x.type}, expected one of rank 4")
    if mode not in ("DCR", "CRD"):
        raise RelvmUnsupportedError(f"mode {mode!r} is not supported")
    return x, x.shape, size, mode


def _quotient(dim: AnyDim, divisor: int, what: str) -> AnyDim:
    """dim / divisor; of a symbolic dimension no more is known than that it must divide, which the view checks."""
    exact = exact_quotient(dim, divisor)
    if exact is None and isinstance(dim, int):
        raise RelvmShapeError(f"{dim} {what} are no multiple of {divisor}")
    return dim // divisor if exact is None else exact
