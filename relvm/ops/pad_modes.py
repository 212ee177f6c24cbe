"""Tensors with a margin made of their own elements."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.dtypes import I64
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.type_rules import expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.loop_ir import KernelBuilder, Literal, Scalar, Select, as_scalar
from relvm.kernels.lowering_rules import Loops, flat_position, loop_nest

_MODES = ("edge", "reflect", "wrap")


def _numpy_extend(x: np.ndarray, *, pads: tuple[int, ...], mode: str) -> np.ndarray:
    margins = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    return np.pad(x, margins, mode) if margins else x


def _source(position: Scalar, size: Scalar, mode: str) -> Scalar:
    """The position in [0, size) whose element stands at `position`, which may be outside."""
    last = size - 1
    match mode:
        case "edge":
            return Select(position < 0, Literal(0, I64), Select(position > last, last, position))
        case "wrap":
            return (position % size + size) % size
    period = Select(last < 1, Literal(1, I64), last * 2)
    phase = (position % period + period) % period
    return Select(last < 1, Literal(0, I64), Select(phase > last, period - phase, phase))


def _extend(k: KernelBuilder, inputs, outputs, *, pads: tuple[int, ...], mode: str) -> None:
    """Row after row; the middle of a row is copied in order, its margins element by element."""
    (x,), (out,) = inputs, outputs
    rank = len(x.shape)
    sizes = [as_scalar(dim, I64) for dim in x.shape]
    if rank == 0:
        k.store(out, (), x[()])
        return
    with loop_nest(k, list(out.shape[:-1])) as row:
        places = [_source(at - pads[axis], sizes[axis], mode) for axis, at in enumerate(row)]
        source = k.declare("source", flat_position((*places, Literal(0, I64)), x.shape))
        target = k.declare("target", flat_position((*row, Literal(0, I64)), out.shape))
        before, after = pads[rank - 1], pads[-1]
        for start, count in ((-before, before), (sizes[-1], after)):
            with k.loop(count, name="j") as j:
                place = k.declare("place", j + start)
                k.store(out, (target + place + before,), x.flat(source + _source(place, sizes[-1], mode)))
        with k.loop(sizes[-1], name="j", simd=True) as j:
            k.store(out, (target + j + before,), x.flat(source + j))


@op("extend", numpy=_numpy_extend, lower=Loops(_extend), moves=True)
def extend(x: TensorType, *, pads: tuple[int, ...], mode: str) -> TensorType:
    """x with a margin made of its own elements.

    x: any tensor of known rank.   pads: how many elements are added before each axis, then after each, none below 0.
    mode: `edge`, the nearest element; `reflect`, x mirrored at its first and last elements, again and again; `wrap`,
    x repeated.   Result: the dtype of x.
    Raises RelvmArgumentError: not two numbers for each axis, a negative number, another mode.  RelvmShapeError: a
    margin at an axis without elements.   Source: ONNX Pad-25, numpy.pad.
    """
    expect_tensor("extend", x=x)
    expect_integers("extend", "pads", pads, None if x.rank is None else 2 * x.rank)
    message = "extend: pads are {}, expected none below 0"
    expect(all(count >= 0 for count in pads), message, pads, error=RelvmArgumentError)
    expect(
        mode in _MODES, "extend: mode is {!r}, expected one of {}", mode, ", ".join(_MODES), error=RelvmArgumentError
    )
    if x.shape is None:
        return x
    rank = len(x.shape)
    margins = [before + after for before, after in zip(pads[:rank], pads[rank:], strict=True)]
    for axis, (dim, margin) in enumerate(zip(x.shape, margins, strict=True)):
        if margin != 0:
            claim_at_most(1, dim, f"extend: a margin of axis {axis} of x needs at least {{}} element, it has {{}}")
    return TensorType(x.dtype, tuple(dim + margin for dim, margin in zip(x.shape, margins, strict=True)))
