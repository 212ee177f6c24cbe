"""Parts of tensors: slices, gathered slices, and tensors with a margin."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I32, I64
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim, dim_op, format_dim
from relvm.ir.type_rules import expect_axes, expect_axis, expect_integers, expect_tensor
from relvm.ir.types import TensorType
from relvm.kernels.loop_ir import Buffer, KernelBuilder, Literal, Scalar, Select, as_scalar, larger, smaller
from relvm.kernels.lowering_rules import Lookup, Loops, Places, Rearrange, from_the_front, part_loops
from relvm.numpy_dtypes import STRINGS
from relvm.ops.gather import numpy_position, position

# A bound from here on means the end of the axis, in whichever direction: ONNX writes INT_MAX or INT64_MAX.
_FAR = 1 << 31


def _slice_dim(size: AnyDim, begin: int, end: int, step: int) -> AnyDim:
    """How many elements `range(size)[begin:end:step]` has, for every size >= 0."""
    begin, end = (max(-_FAR, min(_FAR, bound)) for bound in (begin, end))
    if isinstance(size, int):
        return len(range(size)[begin:end:step])
    if (begin, end) == ((0, _FAR) if step > 0 else (_FAR, -_FAR)):
        return dim_op("floordiv", size + abs(step) - 1, abs(step))
    if step < 0:  # from the last element down to the first one not taken
        start = _bound(size, begin, -1, dim_op("sub", size, 1))
        stop = _bound(size, end, -1, dim_op("sub", size, 1))
        return dim_op("max", dim_op("floordiv", start - stop - step - 1, -step), 0)
    start, stop = _bound(size, begin, 0, size), _bound(size, end, 0, size)
    if start == 0 and step == 1:
        return stop
    if stop == size and begin > 0 and step == 1:
        return dim_op("max", size - begin, 0)
    return dim_op("max", dim_op("floordiv", stop - start + step - 1, step), 0)


def _bound(size: AnyDim, position: int, low: int, high: AnyDim) -> AnyDim:
    """A bound as Python clamps it: counted from the end where negative, then brought into [low, high]."""
    if position >= _FAR:
        return high
    if position <= -_FAR:
        return low
    if position < 0:
        return dim_op("max", size + position, low)
    return low if position <= low else dim_op("min", high, position)


def _start(dim: AnyDim, begin: int, step: int) -> int | Scalar:
    """The first position taken, by the same rule; any where none is."""
    if isinstance(dim, int):
        return max(0, range(dim)[begin:None:step].start) if dim else 0
    size = as_scalar(dim, I64)
    if begin >= _FAR:
        return size - 1 if step < 0 else size
    if begin < 0:
        begin = max(begin, -_FAR)
        return larger(size + begin, 0)
    if step > 0:
        return begin
    return smaller(size - 1, begin)


def _numpy_slice(x: np.ndarray, *, begin, end, axes, steps) -> np.ndarray:
    index = [slice(None)] * x.ndim
    for axis, *bounds in zip(axes or range(len(begin)), begin, end, steps or (1,) * len(begin), strict=True):
        index[axis] = slice(*(bounds if bounds[2] > 0 or bounds[1] > -_FAR else (bounds[0], None, bounds[2])))
    return x[tuple(index)]


def _sliced(at: Places, x_shape, out_shape, *, begin, end, axes, steps) -> Places:
    places = list(at)
    for axis, first, step in zip(axes or range(len(begin)), begin, steps or (1,) * len(begin), strict=True):
        places[axis] = places[axis] * step + _start(x_shape[axis], first, step)
    return tuple(places)


@op("slice", numpy=_numpy_slice, lower=Rearrange(_sliced), moves=True)
def slice_(
    x: TensorType,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
) -> TensorType:
    """x[begin:end:step] along some axes.

    x: any tensor of known rank.   begin, end: one number for each axis, clamped as Python's slices are; negative ones
    count from the end; 2^31 and more, or -2^31 and less, mean the end reached.   axes: each in [-rank, rank), none
    twice; None: the first ones.   steps: not 0; None: 1.   Result: the dtype of x; every dimension is exact, symbolic
    ones too.
    Raises RelvmTypeError: an axis out of range or given twice.  RelvmArgumentError: lengths that differ, a step of 0.
    Source: ONNX Slice-13.
    """
    expect_tensor("slice", x=x)
    count = len(begin) if isinstance(begin, tuple) else None
    expect_integers("slice", "begin", begin)
    expect_integers("slice", "end", end, count)
    axes = tuple(range(count)) if axes is None else axes
    steps = (1,) * count if steps is None else steps
    expect_integers("slice", "axes", axes, count)
    expect_integers("slice", "steps", steps, count)
    expect(0 not in steps, "slice: steps are {}, expected none to be 0", steps, error=RelvmArgumentError)
    if x.rank is None:
        return x
    counted = expect_axes("slice", axes, x.rank)
    if x.shape is None:
        return x
    dims = list(x.shape)
    for axis, bounds in zip(counted, zip(begin, end, steps, strict=True), strict=True):
        dims[axis] = _slice_dim(dims[axis], *bounds)
    return TensorType(x.dtype, tuple(dims))


def _numpy_gather(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    for index in indices.flat:
        numpy_position("gather", index, axis % x.ndim, x.shape[axis])
    return np.take(x, indices, axis)


def _gather(k: KernelBuilder, inputs, outputs, *, axis: int) -> None:
    """Every index is checked before anything is copied."""
    (x, indices), (out,) = inputs, outputs
    axis %= len(x.shape)
    size, count, width = k.size(x.shape[axis : axis + 1]), k.size(indices.shape), k.size(x.shape[axis + 1 :])
    _check_indices(k, indices, x.shape[axis], axis)
    with part_loops(k, [k.size(x.shape[:axis]), count], width * 4 + 4) as (row, n):
        index = k.declare("index", indices.flat(n).to(I64))
        source = k.declare("source", (row * size + from_the_front(index, size)) * width)
        target = k.declare("target", (row * count + n) * width)
        with k.loop(width, simd=True) as i:
            k.store(out, (target + i,), x.flat(source + i))


def _check_indices(k: KernelBuilder, indices: Buffer, size: AnyDim, axis: int) -> None:
    with k.loop(k.size(indices.shape), name="n") as n:
        position(k, "gather", indices.flat(n), axis, size)


@op("gather", numpy=_numpy_gather, lower=Lookup(_gather, check=_check_indices), moves=True)
def gather(x: TensorType, indices: TensorType, *, axis: int = 0) -> TensorType:
    """The slices of x along an axis that the indices name.

    x: any tensor of rank >= 1.   indices: i32 or i64, each in [-n, n) for the axis's size n.   axis: in [-rank,
    rank).
    Result: the dtype of x; the shape of x with the shape of indices in the place of the axis.
    Raises RelvmTypeError: another dtype of indices, an axis out of range.  At run time RelvmIndexError: an index out
    of range.   Source: ONNX Gather-13.
    """
    expect_tensor("gather", x=x, indices=indices)
    expect(indices.dtype in (I32, I64), "gather: indices has dtype {}, expected i32 or i64", indices.dtype)
    if x.rank is None:
        return TensorType(x.dtype)
    at = expect_axis("gather", axis, x.rank)
    if x.shape is None or indices.shape is None:
        return TensorType(x.dtype, None, None if indices.rank is None else x.rank - 1 + indices.rank)
    return TensorType(x.dtype, (*x.shape[:at], *indices.shape, *x.shape[at + 1 :]))


def _numpy_pad(x: np.ndarray, *, pads: tuple[int, ...], value: float) -> np.ndarray:
    before, after = pads[: x.ndim], pads[x.ndim :]
    margin = "" if x.dtype == STRINGS else value
    result = np.full([n + b + a for n, b, a in zip(x.shape, before, after, strict=True)], margin, x.dtype)
    kept = x[tuple(slice(max(0, -b), max(0, n - max(0, -a))) for n, b, a in zip(x.shape, before, after, strict=True))]
    result[tuple(slice(max(0, b), max(0, b) + n) for n, b in zip(kept.shape, before, strict=True))] = kept
    return result


def _pad(k: KernelBuilder, inputs, outputs, *, pads: tuple[int, ...], value: float) -> None:
    (x,), (out,) = inputs, outputs
    with part_loops(k, out.shape, k.size(out.shape[2:]) * 4, simd=True) as counters:
        inside: Scalar | None = None
        source = []
        for counter, size, before in zip(counters, x.shape, pads, strict=False):
            source.append(counter - before)
            within = (counter >= before).both(counter < as_scalar(size, I64) + before)
            inside = within if inside is None else inside.both(within)
        margin = Literal(value, x.dtype)
        k.store(out, counters, x[()] if inside is None else Select(inside, x[tuple(source)], margin))


@op("pad", numpy=_numpy_pad, lower=Loops(_pad), moves=True)
def pad(x: TensorType, *, pads: tuple[int, ...], value: float = 0) -> TensorType:
    """x with a margin of one value.

    x: any tensor of known rank.   pads: how many elements are added before each axis, then after each; negative
    numbers take away.   value: a number that the dtype of x can hold; of strings 0, for the empty one.   Result: the
    dtype of x.
    Raises RelvmArgumentError: not two numbers for each axis, a value that is no such number.  RelvmShapeError: more
    is taken away than there is.   Source: ONNX Pad-21 (mode constant).
    """
    expect_tensor("pad", x=x)
    expect_integers("pad", "pads", pads, None if x.rank is None else 2 * x.rank)
    is_number = isinstance(value, int | float)
    expect(is_number, "pad: value is {!r}, expected a number", value, error=RelvmArgumentError)
    held = x.dtype.is_float or value == (0 if x.dtype.is_string else np.asarray(value).astype(x.dtype.numpy))
    expect(held, "pad: value is {!r}, no number of {}", value, x.dtype, error=RelvmArgumentError)
    if x.shape is None:
        return x
    dims = tuple(dim + b + a for dim, b, a in zip(x.shape, pads, pads[len(x.shape) :], strict=False))
    for axis, dim in enumerate(dims):
        negative = isinstance(dim, int) and dim < 0
        expect(not negative, "pad: dimension {} becomes {}", axis, format_dim(dim), error=RelvmShapeError)
    return TensorType(x.dtype, dims)
