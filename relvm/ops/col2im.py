"""col2im: sum overlapping windows (the adjoint of im2col)."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Scalar, as_scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import known_size
from relvm.ir.type_rules import expect_equal_dims, expect_numeric, expect_shape
from relvm.ir.types import ShapeType, TensorType
from relvm.kernels.conv.sliding_window import Window, valid_range, window_of
from relvm.kernels.flop_count import one_per_element
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, flat_position, loop_nest


def _window(x_shape: tuple, strides, pads, dilations) -> Window:
    """Return the window of a `col2im` whose argument has shape `x_shape`.

    pads: the padding before each axis.  The returned window has the same padding after each axis, but col2im ignores
    it: the shape of the result already determines that padding.
    """
    spatial = (len(x_shape) - 2) // 2
    return window_of("col2im", x_shape[2 : 2 + spatial], strides, None if pads is None else (*pads, *pads), dilations)


def _numpy_col2im(x: np.ndarray, shape: tuple[int, ...], *, strides, pads, dilations) -> np.ndarray:
    window, spatial = _window(x.shape, strides, pads, dilations), len(shape) - 2
    indices = x.shape[2 + spatial :]
    result = np.zeros(shape, x.dtype)
    for tap in np.ndindex(*map(known_size, window.sizes)):
        for place in np.ndindex(*indices):
            at = tuple(
                p * s + t * d - b
                for p, s, t, d, b in zip(place, window.strides, tap, window.dilations, window.pads, strict=False)
            )
            if all(0 <= position < size for position, size in zip(at, shape[2:], strict=True)):
                result[(..., *at)] += x[(slice(None), slice(None), *tap, *place)]
    return result


def _col2im(k: KernelBuilder, inputs, outputs, *, strides, pads, dilations) -> None:
    """Generate the kernel of `col2im`, which computes one row of the result at a time.

    For each window position, it adds a row of x to the row of the result.
    """
    (x,), (out,) = inputs, outputs
    window, spatial = _window(x.shape, strides, pads, dilations), len(out.shape) - 2
    indices = [as_scalar(dim, I64) for dim in x.shape[2 + spatial :]]
    wide, last = as_scalar(out.shape[-1], I64), spatial - 1
    with loop_nest(k, list(out.shape[:-1])) as (image, channel, *row):
        target = k.let("target", flat_position((image, channel, *row, Literal(0, I64)), out.shape))
        with k.loop(wide, simd=True) as i:
            k.store(out, (target + i,), 0)
        with ExitStack() as loops:
            taps: list[Scalar] = []
            met: list[Scalar] = []
            for axis, size in enumerate(window.sizes):
                taps.append(loops.enter_context(k.loop(size, name="at")))
                offset = k.let("offset", taps[axis] * window.dilations[axis] - window.pads[axis])
                if axis < last:  # find the output position at which this window position reads the row
                    apart, step = k.let("apart", row[axis] - offset), window.strides[axis]
                    meets = (apart >= 0).logical_and((apart % step).eq(0)).logical_and(apart / step < indices[axis])
                    loops.enter_context(k.branch(meets))
                    met.append(apart / step)
            first, stop = valid_range(wide, indices[last], window.strides[last], offset)
            first, stop = k.let("first", first), k.let("stop", stop)
            start = flat_position((image, channel, *taps, *met, Literal(0, I64)), x.shape)
            source, onto = k.let("source", start), k.let("onto", target + offset)
            with k.loop(stop, start=first, name="o", simd=True) as o:
                at = onto + o * window.strides[last]
                k.store(out, (at,), out.flat(at) + x.flat(source + o))


@op("col2im", numpy=_numpy_col2im, lower=CustomKernel(_col2im, one_per_element))
def col2im(
    x: TensorType,
    shape: ShapeType,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> TensorType:
    """col2im, the sum of overlapping windows.  Element i of the result is a sum of elements of x.  The element at
    window position k and output position o is added if `o * stride + k * dilation - pad == i` along every spatial
    axis.  The sum of no elements is 0.

    x: a tensor of shape (batch, channels, window..., output positions...) and of an integer or float dtype.
    shape: the shape of the result, (batch, channels, spatial...).
    strides, dilations: one number >= 1 for each spatial axis, or None for 1.
    pads: the padding (>= 0) before each spatial axis, or None for 0.
    Result: a tensor with the dtype of x and the shape `shape`.
    Raises RelvmTypeError if x has dtype bool, or the ranks do not fit together.  Raises RelvmArgumentError if an
    attribute has the wrong length or an invalid value.  Raises RelvmShapeError if x and `shape` differ in batch size or
    number of channels.
    Source: ONNX Col2Im-18, ConvTranspose-22.

    Examples:

        >>> run("col2im(x, shape(1, 1, 4))", x=[[[[1, 2, 3], [10, 20, 30]]]])
        [[[ 1 12 23 30]]]
    """
    expect_numeric("col2im", x=x)
    expect_shape("col2im", "shape", shape)
    fits = x.rank is None or (x.rank >= 4 and x.rank % 2 == 0)
    expect(fits, "col2im: x has rank {}, expected 2 and 2 more for each spatial axis", x.rank)
    expect(shape.rank is None or shape.rank >= 3, "col2im: shape has rank {}, expected at least 3", shape.rank)
    if x.rank is not None and shape.rank is not None:
        expect(
            x.rank == 2 * shape.rank - 2,
            "col2im: x has rank {}, expected {} for a shape of rank {}",
            x.rank,
            2 * shape.rank - 2,
            shape.rank,
        )
    if x.shape is not None:
        _window(x.shape, strides, pads, dilations)
        for axis, (got, expected) in enumerate(zip(x.shape[:2], shape.dims or (), strict=False)):
            expect_equal_dims("col2im", f"dimension {axis} of x and of shape differs", got, expected)
    return TensorType(x.dtype, shape.dims, shape.rank)
