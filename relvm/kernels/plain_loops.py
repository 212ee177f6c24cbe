"""Contractions and poolings as plain loops: one loop for each axis, without blocks, copies and micro-kernels.

Kernels that favour "size" use them (relvm/kernels/kernel_builder.py), because their code is several times smaller than
that of the other loop nests.  Each sum adds the same products in the same order as those, so the results have the same
bits, with the exceptions that docs/aot.md lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise

from relvm.data_classes import value_record
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, as_scalar, constant_value
from relvm.ir.symbolic import AnyDim
from relvm.kernels.conv.sliding_window import Window
from relvm.kernels.epilogue import Epilogue
from relvm.kernels.gemm.gemm import Counters
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import flat_position, loop_nest

Factors = Callable[[Scalar], tuple[Scalar, Scalar]]
_COLUMNS = 4  # columns of a matrix product that are computed together


@value_record
class RowsOfColumn:
    """Rows of a window that are visited in each of its columns: the rows `start + n * step` for n < count, for each
    start in `starts`.
    """

    starts: tuple[int, ...]
    count: int
    step: int


def multiply_add(total: Scalar, left: Scalar, right: Scalar) -> Scalar:
    """Return `total + left * right`, fused for f32 as in the micro-kernels of matrix products."""
    return Operation("fma", (left, right, total), F32) if total.dtype is F32 else total + left * right


def multiply_plainly(
    k: KernelBuilder,
    batch: Sequence[AnyDim],
    sizes: tuple[Scalar, Scalar, Scalar],
    result: Epilogue,
    operands: Callable[[tuple[Scalar, ...]], tuple[Callable[[Scalar, Scalar], Factors], Counters]],
) -> None:
    """Generate a batch of matrix products.

    batch: the batch dimensions.
    sizes: the number of rows and of columns of a product, and the depth, which is the number of summed products.
    operands(indices): returns `factors` and `counters` for the product at `indices` in the batch.  factors(i, j)
    returns a function from p to the factors of product p in element (i, j).  counters(i, j) returns the indices at
    which the epilogue stores the element.
    """
    rows, columns, depth = sizes
    known = constant_value(columns)
    width = _COLUMNS if known is not None and known % _COLUMNS == 0 else 1
    with loop_nest(k, list(batch)) as place:
        factors, counters = operands(tuple(place))
        with k.loop(rows, name="i") as i, k.loop(columns / width, name="group") as group:
            column = k.let("column", group * width)
            of_elements = [factors(i, column + n) for n in range(width)]
            totals = [k.variable("total", Literal(0, result.dtype)) for _ in range(width)]
            with k.loop(depth, name="p") as p:
                for total, of_element in zip(totals, of_elements, strict=True):
                    k.assign(total, multiply_add(total, *of_element(p)))
            if width == 1:
                result.store(k, counters(i, column), totals[0])
                return
            sums = k.allocate("sums", result.dtype, (width,))
            for n, total in enumerate(totals):
                k.store(sums, (n,), total)
            with k.loop(width, name="j") as j:
                result.store(k, counters(i, column + j), sums[j])


def convolve_plainly(
    k: KernelBuilder,
    x: Buffer,
    w: Buffer,
    result: Epilogue,
    window: Window,
    groups: int,
    element: Callable[[Scalar], Scalar],
    order: Sequence[RowsOfColumn | None] = (None,),
    *,
    is_fused: bool = True,
) -> None:
    """Generate a convolution that skips padding, so that no weight is multiplied by padding, not even an infinite one.

    is_fused: whether products of f32 are added by fused multiply-adds.
    element(position): returns the factor from the element of x at a flat position.
    order: the order of the products of a channel (see `_for_each_position`).  Each part adds its products of all
    channels.
    """
    channels, filters, dims = as_scalar(w.shape[1], I64), k.size(w.shape[:1]) / groups, result.shape[2:]
    with loop_nest(k, result.shape) as (image, filter_, *place):
        total = k.variable("total", Literal(0, result.dtype))
        group = image * groups if groups == 1 else image * groups + filter_ / filters
        for rows in order:
            with k.loop(channels, name="channel") as channel:
                plane, row = group * channels + channel, filter_ * channels + channel

                def add(tap: Scalar, source: Scalar, row: Scalar = row, plane: Scalar = plane) -> None:
                    at_w, at_x = row * k.size(window.sizes) + tap, plane * k.size(x.shape[2:]) + source
                    weight = w.flat(at_w).to(result.dtype)
                    added = multiply_add(total, weight, element(at_x)) if is_fused else total + weight * element(at_x)
                    k.assign(total, added)

                _for_each_position(k, window, x.shape[2:], place, rows, add)
        result.store(k, (image, filter_, flat_position(tuple(place), dims)), total)


def pool_plainly(
    k: KernelBuilder,
    x: Buffer,
    out: Buffer,
    window: Window,
    start: float,
    combine: Callable[[Scalar, Scalar], Scalar],
) -> None:
    """Generate a pooling kernel: combine the elements of each window, beginning with `start`.

    combine(total, element): returns the combination of two values.
    """
    with loop_nest(k, out.shape) as (image, channel, *place):
        total = k.variable("total", Literal(start, x.dtype))
        plane = image * as_scalar(x.shape[1], I64) + channel

        def take(tap: Scalar, source: Scalar) -> None:
            k.assign(total, combine(total, x.flat(plane * k.size(x.shape[2:]) + source)))

        _for_each_position(k, window, x.shape[2:], place, None, take)
        k.store(out, (image, channel, *place), total)


def _for_each_position(
    k: KernelBuilder,
    window: Window,
    dims: Sequence[AnyDim],
    place: Sequence[Scalar],
    rows: RowsOfColumn | None,
    body: Callable[[Scalar, Scalar], None],
) -> None:
    """Generate loops over the window positions of an output position, with the code that `body` generates.

    At run time, the loops skip positions outside of the input.

    dims: the spatial dimensions of the input.
    place: the output position.
    rows: None for all window positions in row-major order.  Otherwise, the window has two axes, and the positions are
    those of these rows, column by column.
    body(tap, source): generates the code for the window position `tap`, a row-major index.  `source` is the flat
    position in an input channel that it reads.
    """
    sizes = tuple(window.sizes)
    with ExitStack() as loops:
        at: dict[int, Scalar] = {}
        sources: dict[int, Scalar] = {}

        def enter(axis: int, index: Scalar) -> None:
            at[axis] = index
            sources[axis] = _skip_padding(k, loops, window, dims, axis, place[axis], index)

        def finish() -> None:
            indices, positions = (tuple(given[axis] for axis in range(len(sizes))) for given in (at, sources))
            body(flat_position(indices, sizes), flat_position(positions, tuple(dims)))

        if rows is None:
            for axis, size in enumerate(sizes):
                enter(axis, loops.enter_context(k.loop(size, name="at")))
            finish()
            return
        enter(1, loops.enter_context(k.loop(sizes[1], name="at")))
        for start in _starts(k, loops, rows.starts):
            with k.loop(rows.count, name="row") as row, ExitStack() as loops:
                enter(0, start + row * rows.step)
                finish()


def _starts(k: KernelBuilder, loops: ExitStack, starts: tuple[int, ...]) -> list[Scalar]:
    """Return `starts` as scalars.

    If they are evenly spaced, open a loop over them, and return a single scalar: the start of an iteration.
    """
    steps = {below - above for above, below in pairwise(starts)}
    if len(steps) != 1:
        return [Literal(start, I64) for start in starts]
    return [loops.enter_context(k.loop(len(starts), name="group")) * steps.pop() + starts[0]]


def _skip_padding(
    k: KernelBuilder,
    branches: ExitStack,
    window: Window,
    dims: Sequence[AnyDim],
    axis: int,
    place: Scalar,
    at: Scalar,
) -> Scalar:
    """Return the input position along an axis that an output position reads at an index of the window.

    If the position can be outside of the input, open a branch in which it is inside.
    """
    position = place * window.strides[axis] + at * window.dilations[axis]
    before, behind = window.pads[axis], window.pads[len(window.sizes) + axis]
    if before or behind:
        position = k.let("position", position - before)
        inside = position < as_scalar(dims[axis], I64)
        branches.enter_context(k.branch((position >= 0).logical_and(inside) if before else inside))
    return position
