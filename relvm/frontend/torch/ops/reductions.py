"""Reductions, cumulative operators, softmax, sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.ops.elementwise import as_bool, is_nan, lerp, log_add_exp, operands, wide_operands
from relvm.frontend.torch.ops.shapes import concatenated, sliced
from relvm.frontend.torch.registry import Node, axes_of, axis_of, converts, known_int, shape_of
from relvm.ir.dtypes import BOOL, F32, F64, I64, DType
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, dim_op, product
from relvm.ir.type_rules import broadcast_dims

Axes = int | Sequence[int] | None


def _reduced(node: Node, function: Callable[..., Expr], x: Expr, axes: tuple[int, ...], keepdim: bool) -> Expr:
    """Return x reduced along axes.  A tensor of rank 0 is returned unchanged."""
    if not shape_of(x) or not axes:
        return x
    return function(x, axes=axes, keepdims=bool(keepdim))


def _total(node: Node, x: Expr, dtype: DType, axes: tuple[int, ...], keepdim: bool, function: Any = ops.sum) -> Expr:
    computed = F32 if dtype.is_narrow_float else I64 if dtype.is_bool else dtype
    return _reduced(node, function, node.cast(x, computed), axes, keepdim)


@converts("sum", "sum.dim_IntList")
def _sum(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return _total(node, self, node.out_dtype(), axes_of(dim, len(shape_of(self))), keepdim)


@converts("nansum")
def _nansum(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    x = node.emit(node.wide(self))
    if x.known_element_type.is_float:
        x = node.emit(ops.where(is_nan(x), 0, x))
    return _sum(node, x, dim, keepdim)


@converts("mean", "mean.dim")
def _mean(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return _total(node, self, node.out_dtype(), axes_of(dim, len(shape_of(self))), keepdim, ops.mean)


@converts("nanmean")
def _nanmean(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    x = node.emit(node.wide(self))
    axes = axes_of(dim, len(shape_of(x)))
    present = node.cast(node.emit(ops.equal(x, x)), x.known_element_type)
    count = _reduced(node, ops.sum, present, axes, keepdim)
    return ops.divide(_nansum(node, x, dim, keepdim), count)


@converts("prod", "prod.dim_int")
def _prod(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return _total(node, self, node.out_dtype(), axes_of(dim, len(shape_of(self))), keepdim, ops.prod)


def extreme(node: Node, x: Expr, axes: tuple[int, ...], keepdim: bool, *, largest: bool) -> Expr:
    """Return the largest or the smallest elements along axes."""
    if x.known_element_type.is_bool:
        return node.cast(node.emit(extreme(node, node.cast(x, I64), axes, keepdim, largest=largest)), BOOL)
    return _reduced(node, ops.max if largest else ops.min, node.wide(x), axes, keepdim)


@converts("amax", "max")
def _amax(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return extreme(node, self, axes_of(dim, len(shape_of(self))), keepdim, largest=True)


@converts("amin", "min")
def _amin(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return extreme(node, self, axes_of(dim, len(shape_of(self))), keepdim, largest=False)


@converts("aminmax")
def _aminmax(node: Node, self: Expr, *, dim: int | None = None, keepdim: bool = False) -> tuple[Expr, Expr]:
    axes = axes_of(dim, len(shape_of(self)))
    return tuple(extreme(node, self, axes, keepdim, largest=largest) for largest in (False, True))  # type: ignore[return-value]


def _first_extreme(node: Node, x: Expr, axis: int, keepdim: bool, *, largest: bool) -> Expr:
    """Return the position of the first extreme element along an axis.  If there is a NaN, this is the first NaN."""
    if x.known_element_type.is_bool:
        x = node.cast(x, I64)
    x = node.emit(node.wide(x))
    if not x.known_element_type.is_float:
        return (ops.argmax if largest else ops.argmin)(x, axis=axis, keepdims=keepdim)
    nan = node.emit(ops.cast(is_nan(x), to="i64"))
    has_nan = ops.greater(ops.max(nan, axes=(axis,), keepdims=keepdim), 0)
    clean = node.emit(ops.where(is_nan(x), 0, x))
    found = (ops.argmax if largest else ops.argmin)(clean, axis=axis, keepdims=keepdim)
    return ops.where(has_nan, ops.argmax(nan, axis=axis, keepdims=keepdim), found)


def _position(largest: bool, name: str) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
        shape = shape_of(self)
        if not shape:
            return node.full(0, (), I64)
        if dim is None:
            flat = node.reshaped(self, (product(shape),))
            found = node.emit(_first_extreme(node, flat, 0, False, largest=largest))
            return node.reshaped(found, (1,) * len(shape)) if keepdim else found
        return _first_extreme(node, self, axis_of(dim, len(shape)), keepdim, largest=largest)


_position(True, "argmax")
_position(False, "argmin")


def _with_position(largest: bool, name: str) -> None:
    @converts(name)
    def convert(node: Node, self: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
        shape = shape_of(self)
        if not shape:
            return self, node.full(0, (), I64)
        axis = axis_of(dim, len(shape))
        position = node.emit(_first_extreme(node, self, axis, True, largest=largest))
        value = node.emit(ops.gather_elements(self, position, axis=axis))
        if keepdim:
            return value, position
        kept = (*shape[:axis], *shape[axis + 1 :])
        return node.reshaped(value, kept), node.reshaped(position, kept)


_with_position(True, "max.dim")
_with_position(False, "min.dim")


@converts("any", "any.dim", "any.dims", "_is_any_true")
def _any(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return _truth(node, self, axes_of(dim, len(shape_of(self))), keepdim, largest=True)


@converts("all", "all.dim", "all.dims", "_is_all_true")
def _all(node: Node, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    return _truth(node, self, axes_of(dim, len(shape_of(self))), keepdim, largest=False)


def _truth(node: Node, x: Expr, axes: tuple[int, ...], keepdim: bool, *, largest: bool) -> Expr:
    """Return whether any element (`largest`) or every element (not `largest`) along axes differs from 0."""
    flags = node.cast(as_bool(node, x), I64)
    if not shape_of(x):
        return node.cast(flags, BOOL)
    total = node.emit(ops.sum(flags, axes=axes, keepdims=keepdim))
    if largest:
        return ops.greater(total, 0)
    missing = node.emit(ops.sum(ops.cast(ops.equal(flags, 0), to="i64"), axes=axes, keepdims=keepdim))
    return ops.equal(missing, 0)


@converts("count_nonzero", "count_nonzero.dim_IntList")
def _count_nonzero(node: Node, self: Expr, dim: Axes = None) -> Expr:
    return _total(node, as_bool(node, self), I64, axes_of(dim, len(shape_of(self))), False)


def variance(node: Node, x: Expr, axes: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Expr, Expr]:
    """Return the variance and the mean along axes."""
    x = node.emit(node.wide(x))
    shape = shape_of(x)
    if not shape:
        x, shape, axes, keepdim = node.reshaped(x, (1,)), (1,), (0,), False
    dtype = x.known_element_type
    mean = node.emit(ops.mean(x, axes=axes, keepdims=True))
    distance = node.emit(ops.subtract(x, mean))
    total = ops.sum(ops.multiply(distance, distance), axes=axes, keepdims=bool(keepdim))
    count = node.number(product([shape[axis] for axis in axes]), dtype)
    divisor = node.emit(ops.maximum(ops.subtract(count, float(correction)), 0.0))
    kept = shape if keepdim else tuple(size for axis, size in enumerate(shape) if axis not in axes)
    mean_shape = tuple(1 if axis in axes else size for axis, size in enumerate(shape)) if keepdim else kept
    return ops.divide(total, divisor), node.reshaped(mean, mean_shape)


def _correction(unbiased: Any, correction: Any, has_correction: bool) -> float:
    if has_correction:
        return 1 if correction is None else correction
    return 1 if unbiased is None or unbiased else 0


def _declare_variance(name: str, *, root: bool, with_mean: bool) -> None:
    @converts(name, f"{name}.dim", f"{name}.correction")
    def convert(
        node: Node, self: Expr, dim: Axes = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None
    ) -> Any:
        by = _correction(unbiased, correction, node.node.target.endswith(".correction"))
        found, mean = variance(node, self, axes_of(dim, len(shape_of(self))), by, keepdim)
        found = ops.sqrt(found) if root else found
        return (found, mean) if with_mean else found


_declare_variance("var", root=False, with_mean=False)
_declare_variance("std", root=True, with_mean=False)
_declare_variance("var_mean", root=False, with_mean=True)
_declare_variance("std_mean", root=True, with_mean=True)


@converts("logsumexp", "special_logsumexp")
def _logsumexp(node: Node, self: Expr, dim: Axes, keepdim: bool = False) -> Expr:
    x = node.emit(node.wide(node.cast(self, node.out_dtype())))
    axes = axes_of(dim, len(shape_of(x)))
    if not shape_of(x):
        return x
    high = node.emit(ops.max(x, axes=axes, keepdims=True))
    high = node.emit(ops.where(ops.equal(ops.abs(high), math.inf), 0, high))
    total = node.emit(ops.log(ops.sum(ops.exp_ftz(ops.subtract(x, high)), axes=axes, keepdims=True)))
    result = node.emit(ops.add(total, high))
    return result if keepdim else node.emit(ops.squeeze(result, axes=axes))


def vector_norm(node: Node, x: Expr, order: Any, axes: tuple[int, ...], keepdim: bool) -> Expr:
    """Return the norm of vectors along axes."""
    x = node.emit(ops.abs(x))
    if order == math.inf:
        return _reduced(node, ops.max, x, axes, keepdim)
    if order == -math.inf:
        return _reduced(node, ops.min, x, axes, keepdim)
    if order == 0:
        return _reduced(node, ops.sum, node.cast(node.emit(ops.not_equal(x, 0)), x.known_element_type), axes, keepdim)
    if order == 1:
        return _reduced(node, ops.sum, x, axes, keepdim)
    if order == 2:
        return ops.sqrt(_reduced(node, ops.sum, node.emit(ops.multiply(x, x)), axes, keepdim))
    powers = node.emit(ops.power(x, node.number(float(order), x.known_element_type)))
    total = node.emit(_reduced(node, ops.sum, powers, axes, keepdim))
    return ops.power(total, node.number(1 / order, x.known_element_type))


@converts("linalg_vector_norm")
def _linalg_vector_norm(
    node: Node, self: Expr, ord: Any = 2, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Expr:
    x = node.wide(node.cast(self, node.out_dtype()))
    axes, shape = axes_of(dim, len(shape_of(x))), shape_of(x) or (1,)
    if ord != 0 and all(shape[axis] == 1 for axis in axes):  # no power, which could overflow
        ord = 1
    return vector_norm(node, x, ord, axes, keepdim)


@converts("norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim_dtype")
def _norm(node: Node, self: Expr, p: Any = 2, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Expr:
    return _linalg_vector_norm(node, self, 2 if p is None else p, dim, keepdim)


@converts("pairwise_distance")
def _pairwise_distance(node: Node, x1: Expr, x2: Expr, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Expr:
    x, y = (node.emit(each) for each in wide_operands(node, x1, x2))
    difference = node.emit(ops.add(ops.subtract(x, y), node.number(eps, x.known_element_type)))
    return vector_norm(node, difference, p, (len(shape_of(difference)) - 1,), keepdim)


@converts("cosine_similarity")
def _cosine_similarity(node: Node, x1: Expr, x2: Expr, dim: int = 1, eps: float = 1e-8) -> Expr:
    xs = operands(node, x1, x2)
    shape = broadcast_dims("cosine_similarity", tuple(map(shape_of, xs)))
    axes = (axis_of(dim, len(shape)),)

    def rounded(value: Expr) -> Expr:
        return node.emit(node.wide(node.cast(node.emit(value), node.out_dtype())))

    units = []
    for x in xs:
        x = node.broadcast(node.emit(node.wide(x)), shape)
        norm = rounded(vector_norm(node, x, 2, axes, True))
        units.append(rounded(ops.divide(x, ops.maximum(norm, node.number(eps, x.known_element_type)))))
    return _reduced(node, ops.sum, rounded(ops.multiply(*units)), axes, False)


def _quantile(*names: str, ignores_nan: bool) -> None:
    @converts(*names)
    def convert(
        node: Node,
        self: Expr,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Expr:
        shape = shape_of(self)
        axis = 0 if dim is None else axis_of(dim, len(shape))
        x = node.reshaped(self, (product(shape),)) if dim is None or not shape else self
        rank, dtype = len(shape_of(x)), x.known_element_type
        count = shape_of(x)[axis]
        sorted_x = node.emit(_sort(node, x, axis)[0])
        last = node.emit(ops.subtract(node.number(count, F64), 1.0))
        places = node.number(q, F64)
        found_q = shape_of(places)
        points = node.reshaped(places, (product(found_q), *(1 for _ in range(rank))))
        unknown = node.cast(node.emit(is_nan(x)), F64)
        number = node.emit(ops.sum(unknown, axes=(axis,), keepdims=True))
        if ignores_nan:
            ranks = node.emit(ops.multiply(points, ops.maximum(ops.subtract(last, number), 0.0)))
        else:  # NaN, which is sorted last, is the result if there is one
            ranks = node.emit(ops.where(ops.greater(number, 0.0), last, ops.multiply(points, last)))
        low = node.emit(ops.floor(ranks))
        ends = [low, node.emit(ops.ceil(ranks))]
        if interpolation in ("lower", "higher", "nearest"):
            ends = [node.emit(ops.round(ranks)) if interpolation == "nearest" else ends[interpolation == "higher"]]
        stacked = node.broadcast(node.emit(ops.expand_dims(sorted_x, axes=(0,))), (product(found_q), *shape_of(x)))
        values = [
            node.emit(ops.gather_elements(stacked, node.cast(end, I64), axis=axis + 1, from_end=False)) for end in ends
        ]
        result = values[0]
        if len(values) == 2:
            part = 0.5 if interpolation == "midpoint" else node.cast(node.emit(ops.subtract(ranks, low)), dtype)
            result = node.emit(lerp(node, *values, part))
        kept = shape_of(result)[1:]
        if dim is None and keepdim:
            kept = (1,) * len(shape)
        elif not keepdim:
            kept = (*kept[:axis], *kept[axis + 1 :])
        return node.reshaped(result, (*found_q, *(kept if shape else ())))


_quantile("quantile", "quantile.scalar", ignores_nan=False)
_quantile("nanquantile", "nanquantile.scalar", ignores_nan=True)


def _numbered(node: Node, x: Expr, axis: int) -> Expr:
    """Return the positions along an axis, in the shape of x."""
    shape = shape_of(x)
    ones: list[AnyDim] = [1] * len(shape)
    ones[axis] = shape[axis]
    return node.broadcast(node.reshaped(node.emit(ops.iota(Shape((shape[axis],)))), ones), shape)


@converts("cumsum")
def _cumsum(node: Node, self: Expr, dim: int, *, dtype: Any = None) -> Expr:
    x = node.wide(node.cast(self, node.out_dtype()))
    return x if not shape_of(x) else ops.cumsum(x, axis=axis_of(dim, len(shape_of(x))))


@converts("cumprod")
def _cumprod(node: Node, self: Expr, dim: int, *, dtype: Any = None) -> Expr:
    x = node.wide(node.cast(self, node.out_dtype()))
    return x if not shape_of(x) else ops.cumprod(x, axis=axis_of(dim, len(shape_of(x))))


def scan_along(node: Node, x: Expr, axis: int, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """Return the cumulative results of an associative function along an axis.

    The number of steps is logarithmic: in each step, the distance of the combined elements doubles.

    combine: the function, called with the earlier and the later elements.
    """
    size = known_int(shape_of(x)[axis], "the size of the axis")
    step = 1
    while step < size:
        earlier = node.emit(ops.slice(x, begin=(0,), end=(size - step,), axes=(axis,)))
        later = node.emit(ops.slice(x, begin=(step,), end=(size,), axes=(axis,)))
        first = node.emit(ops.slice(x, begin=(0,), end=(step,), axes=(axis,)))
        x = node.emit(ops.concat(first, node.emit(combine(earlier, later)), axis=axis))
        step *= 2
    return x


@converts("logcumsumexp", "_logcumsumexp")
def _logcumsumexp(node: Node, self: Expr, dim: int) -> Expr:
    x = node.emit(node.wide(self))
    if not shape_of(x):
        return x
    return scan_along(node, x, axis_of(dim, len(shape_of(x))), lambda a, b: log_add_exp(node, a, b))


def _cumulative_extreme(largest: bool, *names: str) -> None:
    @converts(*names)
    def convert(node: Node, self: Expr, dim: int) -> tuple[Expr, Expr]:
        """Returns the extreme elements so far, and the position of the last of these elements."""
        shape = shape_of(self)
        if not shape:
            return self, node.full(0, (), I64)
        axis = axis_of(dim, len(shape))
        x = node.emit(node.wide(node.cast(self, I64) if self.known_element_type.is_bool else self))
        size = known_int(shape[axis], "the size of the axis")
        positions = _numbered(node, x, axis)
        step = 1
        while step < size:
            parts = []
            for each in (x, positions):
                parts.append(
                    tuple(
                        node.emit(ops.slice(each, begin=(low,), end=(high,), axes=(axis,)))
                        for low, high in ((0, size - step), (step, size), (0, step))
                    )
                )
            (earlier, later, first), (place, other, start) = parts
            better = ops.greater_equal(later, earlier) if largest else ops.less_equal(later, earlier)
            if x.known_element_type.is_float:
                better = ops.logical_or(better, is_nan(later))
                better = ops.logical_and(better, ops.logical_or(is_nan(later), ops.logical_not(is_nan(earlier))))
            keep = node.emit(better)
            x = node.emit(ops.concat(first, node.emit(ops.where(keep, later, earlier)), axis=axis))
            positions = node.emit(ops.concat(start, node.emit(ops.where(keep, other, place)), axis=axis))
            step *= 2
        return x, positions


_cumulative_extreme(True, "cummax", "_cummax_helper")
_cumulative_extreme(False, "cummin", "_cummin_helper")


@converts("softmax.int", "_softmax", "special_softmax", "_safe_softmax")
def _softmax(node: Node, self: Expr, dim: int, dtype: Any = None, half_to_float: bool = False) -> Expr:
    x = node.emit(node.wide(node.cast(self, node.out_dtype())))
    if not shape_of(x):
        return ops.where(is_nan(x), x, 1)
    axis = axis_of(dim, len(shape_of(x)))
    result = ops.softmax(x, axis=axis)
    if "_safe_softmax" in node.node.target:
        hidden = ops.equal(ops.max(x, axes=(axis,), keepdims=True), -math.inf)
        result = ops.where(hidden, 0, result)
    return result


@converts("log_softmax.int", "_log_softmax", "special_log_softmax")
def _log_softmax(node: Node, self: Expr, dim: int, dtype: Any = None, half_to_float: bool = False) -> Expr:
    return log_softmax(node, node.cast(self, node.out_dtype()), dim)


def log_softmax(node: Node, x: Expr, dim: int) -> Expr:
    """Return log(softmax(x)) without overflow."""
    x = node.emit(node.wide(x))
    if not shape_of(x):
        return ops.multiply(x, 0)
    axis = axis_of(dim, len(shape_of(x)))
    shifted = node.emit(ops.subtract(x, ops.max(x, axes=(axis,), keepdims=True)))
    return ops.subtract(shifted, ops.log(ops.sum(ops.exp_ftz(shifted), axes=(axis,), keepdims=True)))


@converts("softmin.int")
def _softmin(node: Node, self: Expr, dim: int, dtype: Any = None) -> Expr:
    return _softmax(node, node.emit(ops.negative(self)), dim)


# ---- sorting ----


def _sortable(node: Node, x: Expr) -> Expr:
    return node.cast(x, I64) if x.known_element_type.is_bool else node.wide(x)


def sorted_positions(node: Node, x: Expr, axis: int, count: AnyDim, *, largest: bool) -> Expr:
    """Return the positions of the first `count` elements in descending or ascending order.  The order is stable."""
    shape = shape_of(x)
    result = (*shape[:axis], count, *shape[axis + 1 :])
    return node.emit(ops.argtopk(node.emit(_sortable(node, x)), Shape(result), axis=axis, largest=largest))


@converts("sort", "sort.stable")
def _sort(
    node: Node, self: Expr, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[Expr, Expr]:
    if not shape_of(self):
        return self, node.full(0, (), I64)
    axis = axis_of(dim, len(shape_of(self)))
    positions = sorted_positions(node, self, axis, shape_of(self)[axis], largest=descending)
    return ops.gather_elements(self, positions, axis=axis), positions


@converts("argsort", "argsort.stable")
def _argsort(node: Node, self: Expr, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Expr:
    if not shape_of(self):
        return node.full(0, (), I64)
    axis = axis_of(dim, len(shape_of(self)))
    return sorted_positions(node, self, axis, shape_of(self)[axis], largest=descending)


@converts("msort")
def _msort(node: Node, self: Expr) -> Expr:
    return _sort(node, self, 0)[0]


@converts("topk")
def _topk(
    node: Node, self: Expr, k: AnyDim, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Expr, Expr]:
    """Returns sorted elements in any case.  Of equal elements, the first ones are taken."""
    if not shape_of(self):
        return self, node.full(0, (), I64)
    axis = axis_of(dim, len(shape_of(self)))
    positions = sorted_positions(node, self, axis, k, largest=largest)
    return ops.gather_elements(self, positions, axis=axis), positions


@converts("kthvalue")
def _kthvalue(node: Node, self: Expr, k: AnyDim, dim: int = -1, keepdim: bool = False) -> tuple[Expr, Expr]:
    shape = shape_of(self)
    if not shape:
        return self, node.full(0, (), I64)
    axis = axis_of(dim, len(shape))
    positions = sorted_positions(node, self, axis, k, largest=False)
    last = node.emit(sliced(node, positions, axis, k - 1, k))
    value = node.emit(ops.gather_elements(self, last, axis=axis))
    if keepdim:
        return value, last
    kept = (*shape[:axis], *shape[axis + 1 :])
    return node.reshaped(value, kept), node.reshaped(last, kept)


def _median(node: Node, x: Expr, axis: int, keepdim: bool, *, ignores_nan: bool) -> tuple[Expr, Expr]:
    """Return the lower median along an axis and its position.

    ignores_nan: whether to ignore NaN.  If not, the result is NaN if an element is NaN.
    """
    shape = shape_of(x)
    size = shape[axis]
    order = sorted_positions(node, x, axis, size, largest=False)
    place: Expr = node.full((size - 1) // 2, (*shape[:axis], 1, *shape[axis + 1 :]), I64)
    if x.known_element_type.is_float:
        nan = node.emit(ops.cast(is_nan(node.wide(x)), to="i64"))
        count = node.emit(ops.sum(nan, axes=(axis,), keepdims=True))
        if ignores_nan:
            left = node.emit(ops.divide(ops.subtract(ops.subtract(node.number(size, I64), count), 1), 2))
            place = node.emit(ops.maximum(left, 0))
        else:
            first = node.emit(ops.subtract(node.number(size, I64), count))
            place = node.emit(ops.where(ops.greater(count, 0), first, place))
    return _sorted_element(node, x, order, place, axis, keepdim)


def _sorted_element(node: Node, x: Expr, order: Expr, place: Expr, axis: int, keepdim: bool) -> tuple[Expr, Expr]:
    """Return one element of each row along an axis, and its position in the row.

    order: the positions that sort the rows of x.
    place: the index in `order`, of size 1 along the axis.
    keepdim: whether the results keep the axis.
    """
    shape = shape_of(x)
    position = node.emit(ops.gather_elements(order, place, axis=axis))
    value = node.emit(ops.gather_elements(x, position, axis=axis))
    if keepdim:
        return value, position
    kept = (*shape[:axis], *shape[axis + 1 :])
    return node.reshaped(value, kept), node.reshaped(position, kept)


def _declare_median(name: str, *, ignores_nan: bool) -> None:
    @converts(name)
    def whole(node: Node, self: Expr) -> Expr:
        count = product(shape_of(self))
        flat = node.reshaped(self, (count,))
        if self.known_element_type.is_float:  # the median of no elements is NaN
            missing = node.full(math.nan, (dim_op("max", 1 - count, 0),), self.known_element_type)
            flat = concatenated(node, [flat, missing], 0)
        return _median(node, flat, 0, False, ignores_nan=ignores_nan)[0]

    @converts(f"{name}.dim")
    def along(node: Node, self: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
        if not shape_of(self):
            return self, node.full(0, (), I64)
        return _median(node, self, axis_of(dim, len(shape_of(self))), keepdim, ignores_nan=ignores_nan)


_declare_median("median", ignores_nan=False)
_declare_median("nanmedian", ignores_nan=True)


@converts("mode")
def _mode(node: Node, self: Expr, dim: int = -1, keepdim: bool = False) -> tuple[Expr, Expr]:
    """Returns the smallest of the most frequent elements, and its last position."""
    shape = shape_of(self)
    if not shape:
        return self, node.full(0, (), I64)
    axis = axis_of(dim, len(shape))
    order = sorted_positions(node, self, axis, shape[axis], largest=False)
    x = node.emit(ops.gather_elements(self, order, axis=axis))
    places = _numbered(node, x, axis)
    before = node.emit(ops.gather_elements(x, node.emit(ops.maximum(ops.subtract(places, 1), 0)), axis=axis))
    is_new = node.emit(ops.logical_and(ops.not_equal(x, before), ops.greater(places, 0)))
    groups = node.emit(ops.cumsum(node.cast(is_new, I64), axis=axis))  # the number of the group of equal elements
    none, one = node.full(0, shape, I64), node.full(1, shape, I64)
    counts = node.emit(ops.scatter_elements(none, groups, one, axis=axis, reduction="add"))
    most = node.emit(ops.argmax(counts, axis=axis, keepdims=True))
    last = node.emit(ops.subtract(ops.gather_elements(ops.cumsum(counts, axis=axis), most, axis=axis), 1))
    return _sorted_element(node, self, order, last, axis, keepdim)


@converts("dist")
def _dist(node: Node, self: Expr, other: Expr, p: Any = 2) -> Expr:
    x, y = (node.wide(node.cast(each, node.out_dtype())) for each in (self, other))
    difference = node.emit(ops.subtract(x, y))
    return vector_norm(node, difference, p, tuple(range(len(shape_of(difference)))), False)


@converts("equal")
def _equal(node: Node, self: Expr, other: Expr) -> Expr:
    if shape_of(self) != shape_of(other):
        raise RelvmUnsupportedError("a comparison of tensors of different shapes is not supported")
    return _truth(node, ops.equal(*node.promoted(self, other)), tuple(range(len(shape_of(self)))), False, largest=False)
