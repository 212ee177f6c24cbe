"""Counts of values, and histograms."""

from __future__ import annotations

from collections.abc import Sequence

import relvm.ops as ops
from relvm.frontend.torch.ops.indexing import as_dim, scattered
from relvm.frontend.torch.ops.searching import searched
from relvm.frontend.torch.ops.shapes import selected, sliced
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product


@converts("bincount")
def _bincount(node: Node, self: Expr, weights: Expr | None = None, minlength: AnyDim = 0) -> Expr:
    x = node.cast(self, I64)
    values = node.full(1, shape_of(x), I64) if weights is None else weights
    most = node.number(minlength, I64)
    if shape_of(x) != (0,):
        most = node.emit(ops.maximum(ops.add(ops.max(x), 1), most))
    count = as_dim(node, most)
    zeros = node.full(0, (count,), values.known_element_type)
    return scattered(node, zeros, 0, x, values, "add")


@converts("histc")
def _histc(node: Node, self: Expr, bins: AnyDim = 100, min: float = 0, max: float = 0) -> Expr:
    """Counts elements in bins of equal width between `min` and `max`, or the extreme elements if both are equal."""
    x = node.reshaped(node.emit(node.wide(self)), (product(shape_of(self)),))
    low, high = _ends(node, x, (min, max) if min != max else None, 1)
    inside, place = _equal_bins(node, x, low, high, bins)
    counts = node.full(0, (bins,), x.known_element_type)
    found = scattered(node, counts, 0, place, node.cast(inside, x.known_element_type), "add")
    return node.cast(node.emit(found), self.known_element_type)


def _ends(node: Node, x: Expr, ends: Sequence[float] | None, distance: float) -> tuple[Expr, Expr]:
    """Return the outer edges of bins: `ends`, or the extreme elements of a vector, which are 0 and 1 if it is empty.

    distance: how far edges that are equal are moved apart.
    """
    dtype = x.known_element_type
    if ends is not None:
        low, high = (node.number(float(end), dtype) for end in ends)
    elif shape_of(x) == (0,):
        low, high = node.number(0, dtype), node.number(1, dtype)
    else:
        low, high = node.emit(ops.min(x)), node.emit(ops.max(x))
    apart = node.emit(ops.where(ops.equal(low, high), node.number(distance, dtype), node.number(0, dtype)))
    return node.emit(ops.subtract(low, apart)), node.emit(ops.add(high, apart))


def _equal_bins(node: Node, x: Expr, low: Expr, high: Expr, bins: AnyDim) -> tuple[Expr, Expr]:
    """Return whether each element of a vector is in a bin of equal width between two edges, and the number of its bin.

    An element outside the bins gets the number 0.
    """
    dtype = x.known_element_type
    inside = node.emit(ops.logical_and(ops.greater_equal(x, low), ops.less_equal(x, high)))
    scaled = ops.divide(ops.multiply(ops.subtract(x, low), node.number(bins, dtype)), ops.subtract(high, low))
    place = node.cast(node.emit(ops.where(inside, scaled, node.number(0, dtype))), I64)
    return inside, node.emit(ops.minimum(place, ops.subtract(node.number(bins, I64), 1)))


def _found_bins(node: Node, x: Expr, edges: Expr) -> tuple[Expr, Expr]:
    """Return the results of `_equal_bins` for bins between sorted edges.  The last bin includes both of its edges."""
    (count,) = shape_of(edges)
    first, last = (node.emit(selected(node, edges, 0, at)) for at in (0, -1))
    inside = node.emit(ops.logical_and(ops.greater_equal(x, first), ops.less_equal(x, last)))
    after = searched(node, edges, x, right=True)
    place = ops.minimum(ops.subtract(after, 1), ops.subtract(node.number(count, I64), 2))
    return inside, node.emit(ops.where(inside, place, node.number(0, I64)))


def _equal_edges(node: Node, low: Expr, high: Expr, bins: int) -> Expr:
    """Return the edges of bins of equal width, as torch.linspace computes them."""
    dtype = low.known_element_type
    at = node.emit(ops.iota(Shape((bins + 1,))))
    step = node.emit(ops.divide(ops.subtract(high, low), node.number(bins, dtype)))
    up = ops.add(low, ops.multiply(step, ops.cast(at, to=dtype.name)))
    down = ops.subtract(high, ops.multiply(step, ops.cast(ops.subtract(bins, at), to=dtype.name)))
    return node.emit(ops.where(ops.less(at, (bins + 1) // 2), up, down))


def _columns(node: Node, x: Expr) -> list[Expr]:
    """Return the coordinates of points, which are rows of a tensor: one vector for each."""
    width = known_int(shape_of(x)[-1], "the number of coordinates")
    points = node.reshaped(x, (product(shape_of(x)[:-1]), width))
    return [node.emit(selected(node, points, 1, at)) for at in range(width)]


def _histogram(
    node: Node,
    found: Sequence[tuple[Expr, Expr]],
    edges: Sequence[Expr],
    weight: Expr | None,
    density: bool,
) -> Expr:
    """Return the sums of the weights of the points in each bin.

    found: for each coordinate, whether it is in a bin, and the number of its bin.
    edges: for each coordinate, the edges of the bins.
    weight: the weights of the points, by default 1.
    density: whether to divide the sums by their total and by the sizes of the bins.
    """
    dtype = edges[0].known_element_type
    bins = [shape_of(each)[0] - 1 for each in edges]
    inside, flat = found[0]
    for count, (is_inside, place) in zip(bins[1:], found[1:], strict=True):
        inside = node.emit(ops.logical_and(inside, is_inside))
        flat = node.emit(ops.add(ops.multiply(flat, node.number(count, I64)), place))
    zero = node.number(0, dtype)
    weights = node.number(1, dtype) if weight is None else node.reshaped(node.cast(weight, dtype), shape_of(flat))
    values = node.emit(ops.where(inside, weights, zero))
    place = node.emit(ops.where(inside, flat, node.number(0, I64)))
    sums = node.emit(scattered(node, node.full(0, (product(bins),), dtype), 0, place, values, "add"))
    sums = node.reshaped(sums, bins)
    if density:
        sums = node.emit(ops.divide(sums, ops.sum(sums)))
        for axis, each in enumerate(edges):
            upper, lower = sliced(node, each, 0, 1, None), sliced(node, each, 0, 0, bins[axis])
            widths = node.emit(ops.subtract(upper, lower))
            sums = node.emit(ops.divide(sums, node.reshaped(widths, (bins[axis], *(1,) * (len(bins) - axis - 1)))))
    return sums


@converts("histogram.bin_ct")
def _histogram_of_count(
    node: Node,
    self: Expr,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Expr | None = None,
    density: bool = False,
) -> tuple[Expr, Expr]:
    x = node.reshaped(self, (product(shape_of(self)),))
    edges = _equal_edges(node, *_ends(node, x, range, 0.5), known_int(bins, "the number of bins"))
    return _histogram(node, [_found_bins(node, x, edges)], [edges], weight, density), edges


@converts("histogram.bins_tensor")
def _histogram_of_edges(
    node: Node, self: Expr, bins: Expr, *, weight: Expr | None = None, density: bool = False
) -> tuple[Expr, Expr]:
    x = node.reshaped(self, (product(shape_of(self)),))
    return _histogram(node, [_found_bins(node, x, bins)], [bins], weight, density), bins


def _counted_points(
    node: Node, x: Expr, bins: Sequence[int], ends: Sequence[float] | None, weight: Expr | None, density: bool
) -> tuple[Expr, list[Expr]]:
    """Return the result of `_histogram` for bins of equal width, and the edges of the bins of each coordinate."""
    grid = _grid(node, x, bins, ends)
    edges = [_equal_edges(node, low, high, count) for count, (_, low, high) in zip(bins, grid, strict=True)]
    found = [_equal_bins(node, *each, count) for count, each in zip(bins, grid, strict=True)]
    return _histogram(node, found, edges, weight, density), edges


def _grid(node: Node, x: Expr, bins: Sequence[int], ends: Sequence[float] | None) -> list[tuple[Expr, Expr, Expr]]:
    """Return the coordinates of points, and the outer edges of the bins of each coordinate."""
    parts = [None if ends is None else ends[2 * at : 2 * at + 2] for at, _ in enumerate(bins)]
    return [(column, *_ends(node, column, part, 0.5)) for column, part in zip(_columns(node, x), parts, strict=True)]


@converts("_histogramdd_bin_edges")
def _histogramdd_bin_edges(
    node: Node,
    self: Expr,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Expr | None = None,
    density: bool = False,
) -> tuple[Expr, ...]:
    grid = _grid(node, self, bins, range)
    return tuple(_equal_edges(node, low, high, count) for count, (_, low, high) in zip(bins, grid, strict=True))


@converts("_histogramdd_from_bin_cts")
def _histogramdd_from_bin_cts(
    node: Node,
    self: Expr,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Expr | None = None,
    density: bool = False,
) -> Expr:
    return _counted_points(node, self, bins, range, weight, density)[0]


@converts("_histogramdd_from_bin_tensors")
def _histogramdd_from_bin_tensors(
    node: Node, self: Expr, bins: Sequence[Expr], *, weight: Expr | None = None, density: bool = False
) -> Expr:
    found = [_found_bins(node, column, edges) for column, edges in zip(_columns(node, self), bins, strict=True)]
    return _histogram(node, found, bins, weight, density)


@converts("histogramdd", "histogramdd.int_bins")
def _histogramdd(
    node: Node,
    self: Expr,
    bins: int | Sequence[int],
    range: Sequence[float] | None = None,
    weight: Expr | None = None,
    density: bool = False,
) -> tuple[Expr, ...]:
    counts = (bins,) * known_int(shape_of(self)[-1], "the number of coordinates") if isinstance(bins, int) else bins
    sums, edges = _counted_points(node, self, counts, range, weight, density)
    return sums, *edges


@converts("histogramdd.TensorList_bins")
def _histogramdd_of_edges(
    node: Node,
    self: Expr,
    bins: Sequence[Expr],
    range: Sequence[float] | None = None,
    weight: Expr | None = None,
    density: bool = False,
) -> tuple[Expr, ...]:
    return _histogramdd_from_bin_tensors(node, self, bins, weight=weight, density=density), *bins
