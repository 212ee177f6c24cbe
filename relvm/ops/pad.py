"""Padding with a constant value, or with elements of the tensor itself."""

from __future__ import annotations

import typing

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.loop_ir import Literal, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.symbolic import AnyDim, format_dim, product
from relvm.ir.type_rules import expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, clip_to_block, flat_position, loop_nest
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
    """Generate the kernel of `pad` for mode `constant`, plane by plane.  A plane consists of the last two axes.

    The margins are filled, and the rows between them are copied.
    """
    (x,), (out,) = inputs, outputs
    rank = len(x.shape)
    margin = Literal(value, x.dtype)
    if rank == 0:
        k.store(out, (), x[()])
        return
    high, wide = (1, *out.shape)[-2:]
    height, width, x_height, x_width = (as_scalar(dim, I64) for dim in (high, wide, *(1, *x.shape)[-2:]))
    planes = as_scalar(product(out.shape[:-2]), I64)
    left, right = _kept_range(width, pads[rank - 1], pads[-1])
    above, below = _kept_range(height, pads[rank - 2], pads[-2]) if rank > 1 else _kept_range(height, 0, 0)
    with (
        k.parallel(planes * height, width * 4) as (first, last),
        k.loop((last - 1) / height + 1, start=first / height, name="plane") as plane,
    ):
        low, stop = clip_to_block(k, first, last, plane, height)
        low, stop = k.let("low", low), k.let("stop", stop)
        source, is_inside = _source_plane(k, plane, x.shape[:-2], out.shape[:-2], pads)
        start = k.let("start", select(is_inside, minimum(maximum(low, above), stop), stop))
        end = k.let("end", select(is_inside, maximum(minimum(stop, below), start), stop))
        target = k.let("target", plane * height)

        def fill(row: Scalar, begin: Scalar, stop: Scalar) -> None:
            with k.loop(stop, start=begin, name="j", simd=True) as j:
                k.store(out, (row + j,), margin)

        fill(target * width, low * width, start * width)
        with k.loop(end, start=start, name="i") as i:
            row = k.let("row", (target + i) * width)
            kept = (source * x_height + (i - (pads[rank - 2] if rank > 1 else 0))) * x_width - pads[rank - 1]
            kept = k.let("kept", kept)
            fill(row, Literal(0, I64), left)
            with k.loop(right, start=left, name="j", simd=True) as j:
                k.store(out, (row + j,), x.flat(kept + j))
            fill(row, right, width)
        fill(target * width, end * width, stop * width)


def _kept_range(size: Scalar, before: int, after: int) -> tuple[Scalar, Scalar]:
    """Return the range of indices of the result, along an axis, whose elements are not added by padding.

    size: the size of the axis of the result.
    """
    start, stop = Literal(max(before, 0), I64), size - max(after, 0)
    if before >= 0 and after >= 0:
        return start, stop
    first = minimum(start, size)
    return first, maximum(stop, first)


def _source_plane(
    k: KernelBuilder, plane: Scalar, dims: tuple[AnyDim, ...], out_dims: tuple[AnyDim, ...], pads: tuple[int, ...]
) -> tuple[Scalar, Scalar]:
    """Return the number of the plane of x from which a plane of the result is copied, and whether there is one.

    plane: the number of the plane of the result.
    dims, out_dims: the dimensions of x and of the result before those of a plane.
    """
    rank = len(pads) // 2
    is_inside: Scalar = Literal(True, BOOL)
    if not any(pads[axis] or pads[rank + axis] for axis in range(len(dims))):
        return plane, is_inside
    indices: list[Scalar] = []
    for axis, dim in reversed(list(enumerate(out_dims))):
        size = as_scalar(dim, I64)
        at = k.let("at", plane % size if axis else plane)
        plane = k.let("rest", plane / size) if axis else plane
        start, stop = _kept_range(size, pads[axis], pads[rank + axis])
        is_inside = is_inside.logical_and((at >= start).logical_and(at < stop))
        indices.insert(0, at - pads[axis])
    return k.let("source", flat_position(tuple(indices), dims)), k.let("inside", is_inside)


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
