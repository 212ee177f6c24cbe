"""Padding with a constant value, or with elements of the tensor itself."""

from __future__ import annotations

import typing

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Scalar, as_scalar, select
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.symbolic import format_dim
from relvm.ir.type_rules import expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, flat_position, loop_nest, parallel_loop_nest
from relvm.numpy_dtypes import STRINGS

_Mode = typing.Literal["constant", "edge", "reflect", "wrap"]
_MODES = typing.get_args(_Mode)


def _numpy_pad(x: np.ndarray, *, pads: tuple[int, ...], value: float, mode: _Mode) -> np.ndarray:
    if mode != "constant":
        margins = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
        return np.pad(x, margins, mode) if margins else x
    before, after = pads[: x.ndim], pads[x.ndim :]
    margin = "" if x.dtype == STRINGS else value
    result = np.full([n + b + a for n, b, a in zip(x.shape, before, after, strict=True)], margin, x.dtype)
    kept = x[tuple(slice(max(0, -b), max(0, n - max(0, -a))) for n, b, a in zip(x.shape, before, after, strict=True))]
    result[tuple(slice(max(0, b), max(0, b) + n) for n, b in zip(kept.shape, before, strict=True))] = kept
    return result


def _pad_with_value(k: KernelBuilder, inputs, outputs, *, pads: tuple[int, ...], value: float) -> None:
    (x,), (out,) = inputs, outputs
    with parallel_loop_nest(k, out.shape, k.size(out.shape[2:]) * 4, simd=True) as counters:
        inside: Scalar | None = None
        source = []
        for counter, size, before in zip(counters, x.shape, pads, strict=False):
            source.append(counter - before)
            within = (counter >= before).logical_and(counter < as_scalar(size, I64) + before)
            inside = within if inside is None else inside.logical_and(within)
        margin = Literal(value, x.dtype)
        k.store(out, counters, x[()] if inside is None else select(inside, x[tuple(source)], margin))


def _source_index(position: Scalar, size: Scalar, mode: str) -> Scalar:
    """Return the index of the element that padding in mode `mode` copies to `position`.

    The axis has `size` elements.  A position before it is negative, and a position after it is at least `size`.
    """
    last = size - 1
    match mode:
        case "edge":
            return select(position < 0, Literal(0, I64), select(position > last, last, position))
        case "wrap":
            return (position % size + size) % size
    period = select(last < 1, Literal(1, I64), last * 2)
    phase = (position % period + period) % period
    return select(last < 1, Literal(0, I64), select(phase > last, period - phase, phase))


def _pad_with_elements(k: KernelBuilder, inputs, outputs, *, pads: tuple[int, ...], mode: str) -> None:
    """Generate the kernel of `pad` for modes that pad with elements of the tensor, row by row.

    The middle of a row is copied as a whole, and the margins element by element.
    """
    (x,), (out,) = inputs, outputs
    rank = len(x.shape)
    sizes = [as_scalar(dim, I64) for dim in x.shape]
    if rank == 0:
        k.store(out, (), x[()])
        return
    with loop_nest(k, list(out.shape[:-1])) as row:
        indices = [_source_index(at - pads[axis], sizes[axis], mode) for axis, at in enumerate(row)]
        source = k.let("source", flat_position((*indices, Literal(0, I64)), x.shape))
        target = k.let("target", flat_position((*row, Literal(0, I64)), out.shape))
        before, after = pads[rank - 1], pads[-1]
        for start, count in ((-before, before), (sizes[-1], after)):
            with k.loop(count, name="j") as j:
                place = k.let("place", j + start)
                k.store(out, (target + place + before,), x.flat(source + _source_index(place, sizes[-1], mode)))
        with k.loop(sizes[-1], name="j", simd=True) as j:
            k.store(out, (target + j + before,), x.flat(source + j))


def _pad(k: KernelBuilder, inputs, outputs, *, pads: tuple[int, ...], value: float, mode: str) -> None:
    if mode == "constant":
        _pad_with_value(k, inputs, outputs, pads=pads, value=value)
    else:
        _pad_with_elements(k, inputs, outputs, pads=pads, mode=mode)


@op("pad", numpy=_numpy_pad, lower=CustomKernel(_pad), moves=True)
def pad(x: TensorType, *, pads: tuple[int, ...], value: float = 0, mode: str = "constant") -> TensorType:
    """Pad each axis of x.

    x: a tensor of known rank.
    pads: the number of elements to add before each axis, then after each axis.  In mode `constant`, a negative number
    removes elements.
    value: the element that mode `constant` adds, a number that the dtype of x can represent.  For strings it must be 0,
    which means the empty string.
    mode: `constant` adds `value`.  `edge` repeats the nearest element.  `reflect` mirrors x at its first and last
    elements, as often as needed.  `wrap` repeats x.
    Result: a tensor of the dtype of x.  Each dimension grows by the two pads of its axis.
    Raises RelvmArgumentError if `pads` does not have two numbers for each axis, `mode` is unknown, or the dtype of x
    cannot represent `value`.  In a mode other than `constant`, also raises RelvmArgumentError if a pad is negative
    or `value` is not 0.  Raises RelvmShapeError if more elements are removed than an axis has, or if a mode other
    than `constant` pads an axis that has no elements.
    Source: ONNX Pad-25, numpy.pad.

    Examples:

        >>> run("pad(x, pads=(1, 2), value=0.0)", x=[1.0, 2.0])
        [0. 1. 2. 0. 0.]
    """
    expect_tensor("pad", x=x)
    expect_integers("pad", "pads", pads, None if x.rank is None else 2 * x.rank)
    is_number = isinstance(value, int | float)
    expect(is_number, "pad: value is {!r}, expected a number", value, error=RelvmArgumentError)
    is_representable = x.known_dtype.is_float or value == (
        0 if x.known_dtype.is_string else np.asarray(value).astype(x.known_dtype.numpy)
    )
    expect(is_representable, "pad: value is {!r}, which {} cannot represent", value, x.dtype, error=RelvmArgumentError)
    expect(mode in _MODES, "pad: mode is {!r}, expected one of {}", mode, ", ".join(_MODES), error=RelvmArgumentError)
    if mode != "constant":
        message = "pad: pads are {}; mode {} does not allow negative ones"
        expect(all(count >= 0 for count in pads), message, pads, mode, error=RelvmArgumentError)
        expect(value == 0, "pad: value is {!r}, but mode {} does not use it", value, mode, error=RelvmArgumentError)
    if x.shape is None:
        return x
    dims = tuple(dim + b + a for dim, b, a in zip(x.shape, pads, pads[len(x.shape) :], strict=False))
    for axis, (old, new) in enumerate(zip(x.shape, dims, strict=True)):
        negative = isinstance(new, int) and new < 0
        expect(
            not negative, "pad: dimension {} of the result would be {}", axis, format_dim(new), error=RelvmShapeError
        )
        if mode != "constant" and new != old:
            claim_at_most(1, old, f"pad: mode {mode} needs at least {{}} element along axis {axis} of x, got {{}}")
    return TensorType(x.dtype, dims)
