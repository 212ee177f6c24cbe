"""Rules of `canonicalize` for operators that move elements, and for operators with moved elements as arguments.

A rule takes a call and the definitions of its arguments, and returns the replacement of the call, or None if the rule
does not apply (relvm/passes/canonicalize/rule.py).  Each docstring shows the call, an arrow, and the replacement.
"""

from __future__ import annotations

import numpy as np

from relvm import ops
from relvm.ir.dtypes import I32, I64, STR
from relvm.ir.expr import Constant, Expr, OpCall, Shape, constant
from relvm.ir.operator import Operator
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import ShapeType
from relvm.kernels.conv.sliding_window import Window, window_of
from relvm.passes.canonicalize.rule import Definitions, Rule, all_equal, find_call

_VIEWS = (ops.reshape, ops.expand_dims, ops.squeeze)
_MAX_PARTS = 32  # maximum number of arguments of a merged concatenation
_FAR = 1 << 31  # the bound of a slice that ends at the end of the axis


def view_of_view(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two views, or remove a view that does not change the shape:

    reshape(reshape(x, s), t)   ->   reshape(x, t);   reshape(x, t)   ->   x,   if x has shape t

    The same holds for expand_dims and squeeze.
    """
    (x, *_), shape = call.args, call.tensor_type.shape
    if x.type == call.type:
        return x if shape is not None else None
    inner = find_call(definitions, x, *_VIEWS)
    if inner is None or shape is None:
        return None
    (source, *_) = inner.args
    return source if source.type == call.type else ops.reshape(source, Shape(shape))


def transpose_of_transpose(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two transpositions: transpose(transpose(x))   ->   transpose(x),   with both permutations combined"""
    inner = find_call(definitions, call.args[0], ops.transpose)
    if inner is None or call.tensor_type.rank is None:
        return None
    first, second = permutation_of(inner), permutation_of(call)
    return ops.transpose(inner.args[0], perm=tuple(first[axis] for axis in second))


def transpose_of_unit_axes(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a transposition that does not reorder elements:

    transpose(x)   ->   reshape(x) if it moves only axes of size 1,   or x if it moves no axis
    """
    x, shape = call.args[0], call.tensor_type.shape
    if shape is None:
        return None
    moved = [axis for axis in permutation_of(call) if x.tensor_type.known_shape[axis] != 1]
    if moved != sorted(moved):
        return None
    return x if permutation_of(call) == tuple(range(len(shape))) else ops.reshape(x, Shape(shape))


def permutation_of(call: OpCall) -> tuple[int, ...]:
    """Return the permutation of a transposition: the axis of the argument that becomes each axis of the result."""
    perm, rank = dict(call.attributes)["perm"], call.tensor_type.known_rank
    return tuple(range(rank))[::-1] if perm is None else tuple(axis % rank for axis in perm)


def slice_of_everything(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove a slice that takes all elements: slice(x)   ->   x"""
    if call.tensor_type.shape is None or any(step != 1 for _, _, step in _slice_bounds(call).values()):
        return None
    return call.args[0]


def _slice_bounds(call: OpCall) -> dict[int, tuple[int, int, int]]:
    """Return a mapping from each sliced axis, counted from 0, to the begin, end and step of its slice."""
    attributes = dict(call.attributes)
    begin, end = attributes["begin"], attributes["end"]
    axes, steps = attributes["axes"] or range(len(begin)), attributes["steps"] or (1,) * len(begin)
    bounds = zip(begin, end, steps, strict=True)
    return {axis % call.tensor_type.rank: bound for axis, bound in zip(axes, bounds, strict=True)}


def _slice(x: Expr, bounds: dict[int, tuple[int, int, int]]) -> Expr:
    axes = tuple(sorted(bounds))
    begin, end, steps = zip(*(bounds[axis] for axis in axes), strict=True)
    return ops.slice(x, begin=begin, end=end, axes=axes, steps=steps)


def _bounds_of_range(indices: range) -> tuple[int, int, int]:
    """Return the begin, end and step of the slice that selects `indices`, none of which is negative."""
    if not indices:
        return 0, 0, 1
    return indices.start, indices.stop if indices.stop >= 0 else -_FAR, indices.step


def slice_of_slice(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge two slices: slice(slice(x))   ->   slice(x),   if each axis that both slices affect has a known size"""
    inner = find_call(definitions, call.args[0], ops.slice)
    if inner is None or call.tensor_type.shape is None:
        return None
    (x,), bounds = inner.args, _slice_bounds(inner)
    for axis, bound in _slice_bounds(call).items():
        if axis not in bounds:
            bounds[axis] = bound
            continue
        size = x.tensor_type.known_shape[axis]
        if not isinstance(size, int):
            return None
        places = range(size)[_to_slice(bounds[axis])]
        bounds[axis] = _bounds_of_range(places[_to_slice(bound)])
    return _slice(x, bounds)


def _to_slice(bounds: tuple[int, int, int]) -> slice:
    """Convert `bounds`, the begin, end and step of a slice, to a Python slice object."""
    begin, end, step = bounds
    return slice(begin, None if step < 0 and end <= -_FAR else end, step)


def slice_of_broadcast(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove the slice of a broadcast axis:

    slice(broadcast_to(x, s))   ->   broadcast_to(x, t),   if the slice affects only axes along which x has size 1
    """
    inner = find_call(definitions, call.args[0], ops.broadcast_to)
    if inner is None or call.tensor_type.shape is None:
        return None
    x = inner.args[0]
    shape = x.tensor_type.shape
    if shape is None:
        return None
    own = (1,) * (call.tensor_type.known_rank - len(shape)) + shape
    if any(own[axis] != 1 for axis in _slice_bounds(call)):
        return None
    return ops.broadcast_to(x, Shape(call.tensor_type.shape))


def slice_of_concat(call: OpCall, definitions: Definitions) -> Expr | None:
    """Slice one operand of a concatenation instead of the result:

    slice(concat(x, y))   ->   slice(y),   if the slice takes only elements of y;   likewise for the other operands
    """
    inner = find_call(definitions, call.args[0], ops.concat)
    if inner is None or call.tensor_type.shape is None:
        return None
    axis, bounds = dict(inner.attributes)["axis"] % call.tensor_type.rank, _slice_bounds(call)
    shapes = [part.tensor_type.shape for part in inner.args]
    sizes = [shape[axis] if shape else None for shape in shapes]
    known = [size for size in sizes if isinstance(size, int)]
    if axis not in bounds or len(known) < len(sizes):
        return None
    indices = range(sum(known))[_to_slice(bounds[axis])]
    first = 0
    for part, size in zip(inner.args, known, strict=True):
        if indices and first <= min(indices) and max(indices) < first + size:
            moved = range(indices.start - first, indices.stop - first, indices.step)
            return _slice(part, {**bounds, axis: _bounds_of_range(moved)})
        first += size
    return None


def gather_of_constant_indices(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a gather with constant indices by a slice:

    gather(x, 2, axis=1)   ->   squeeze(slice(x, ...));   gather(x, (2, 4, 6))   ->   slice(x, ...)

    The indices must be constant, within the bounds of the axis, and increasing in equal steps.
    """
    x, indices = call.args
    if not isinstance(indices, Constant) or indices.value.size == 0 or indices.value.ndim > 1:
        return None
    if x.tensor_type.shape is None:
        return None
    attributes = dict(call.attributes)
    axis = attributes["axis"] % x.tensor_type.rank
    size, places = x.tensor_type.shape[axis], [int(index) for index in indices.value.flat]
    if not isinstance(size, int):
        return None
    lowest = -size if attributes["from_end"] else 0
    if not all(lowest <= place < size for place in places):
        return None
    places = [place % size for place in places]
    step = places[1] - places[0] if len(places) > 1 else 1
    if step < 1 or places != list(range(places[0], places[-1] + 1, step)):
        return None
    sliced = _slice(x, {axis: (places[0], places[-1] + 1, step)})
    return sliced if indices.value.ndim else ops.squeeze(sliced, axes=(axis,))


def concat_of_empty_operands(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove empty operands of a concatenation, and a concatenation of one operand:

    concat(x, y, empty)   ->   concat(x, y);   concat(x)   ->   x
    """
    axis = dict(call.attributes)["axis"]
    if any(part.tensor_type.shape is None for part in call.args):
        return None
    kept = [part for part in call.args if part.tensor_type.known_shape[axis] != 0] or list(call.args[:1])
    if len(kept) == 1:
        return kept[0]
    return ops.concat(*kept, axis=axis) if len(kept) < len(call.args) else None


def concat_of_concat(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge nested concatenations: concat(concat(x, y), z)   ->   concat(x, y, z)"""
    rank = call.tensor_type.rank
    if rank is None:
        return None
    axis = dict(call.attributes)["axis"] % rank
    parts: list[Expr] = []
    for part in call.args:
        inner = find_call(definitions, part, ops.concat)
        if inner is not None and dict(inner.attributes)["axis"] % rank == axis:
            parts += inner.args
        else:
            parts.append(part)
    if len(parts) == len(call.args) or len(parts) > _MAX_PARTS:
        return None
    return ops.concat(*parts, axis=axis)


def pad_of_width_zero(call: OpCall, definitions: Definitions) -> Expr | None:
    """Remove a pad with widths of 0: pad(x)   ->   x"""
    return None if any(dict(call.attributes)["pads"]) else call.args[0]


def reduction_of_unit_axes(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a reduction over axes of size 1 by a view:

    max(x, axes=(1,))   ->   a view of x,   if axis 1 has size 1;   also for sum, mean, prod and min

    A sum starts at 0, and 0 + -0 is 0.  For sums and means of floats, the rule therefore adds 0 to the view.
    """
    (x,) = call.args
    if x.tensor_type.shape is None:
        return None
    axes, is_sum = dict(call.attributes)["axes"], call.op in (ops.sum, ops.mean)
    reduced_dims = x.tensor_type.shape if axes is None else [x.tensor_type.shape[axis] for axis in axes]
    if any(dim != 1 for dim in reduced_dims) or (is_sum and not reduced_dims):
        return None
    view = x if x.type == call.type else ops.reshape(x, Shape(call.tensor_type.known_shape))
    return ops.add(view, constant(0, x.element_type)) if is_sum and x.known_element_type.is_float else view


def matmul_of_transpose(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace the transposition of a matmul operand by an attribute:

    matmul(a, transpose(b))   ->   matmul(a, b, transpose_b=true),   if `transpose` swaps only the last two axes
    """
    attributes, args = dict(call.attributes), list(call.args)
    for at, name in enumerate(("transpose_a", "transpose_b")):
        inner = find_call(definitions, args[at], ops.transpose)
        rank = inner.tensor_type.rank if inner is not None else None
        if inner is None or rank is None or rank < 2:
            continue
        if at == 0 and isinstance(args[1], Constant):
            continue  # a constant right side is packed only if the left side is not transposed
        *_, last, first = range(rank)
        if permutation_of(inner) == (*range(last), first, last):
            args[at], attributes[name] = inner.args[0], not attributes[name]
    return ops.matmul(*args, **attributes) if tuple(args) != call.args else None


def matmul_of_one_hot_rows(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace the product of rows that have at most a single 1, and otherwise zeros, by rows of the right matrix:

    matmul(cast(equal(i, [0, 1, ..., n - 1])), w)   ->   gather(concat(w, 0), where(i in [0, n), i, n))

    The rule requires that w is constant and finite, and that the last axis of i has size 1.  It also applies to
    where(equal(...), 1, 0).
    """
    a, w = call.args
    equality = _equality_of_ones(a, definitions)
    if equality is None or not isinstance(w, Constant) or w.value.ndim != 2 or any(dict(call.attributes).values()):
        return None
    classes, i = sorted(equality.args, key=lambda arg: not isinstance(arg, Constant))
    shape, dtype, count = i.tensor_type.shape, i.known_element_type, len(w.value)
    if not isinstance(classes, Constant) or dtype not in (I32, I64) or not shape or shape[-1] != 1:
        return None
    every = classes.value
    is_range = every.shape[-1:] == (count,) == (every.size,) and np.array_equal(every.ravel(), np.arange(count))
    if not is_range or every.ndim > len(shape) or not np.all(np.isfinite(w.value)):
        return None
    rows = np.concatenate([w.value + w.value.dtype.type(0), np.zeros_like(w.value[:1])])  # + 0: a sum is never -0
    index = ops.reshape(i, Shape(shape[:-1]))
    end = constant(count, dtype)
    is_inside = ops.logical_and(ops.greater_equal(index, constant(0, dtype)), ops.less(index, end))
    return ops.gather(constant(rows), ops.where(is_inside, index, end))


def _equality_of_ones(x: Expr, definitions: Definitions) -> OpCall | None:
    """If x is a comparison by `equal` converted to the numbers 1 and 0, return the call of `equal`, otherwise None."""
    chosen = find_call(definitions, x, ops.cast, ops.where)
    if chosen is None or (
        chosen.op is ops.where and not (all_equal(chosen.args[1], 1) and all_equal(chosen.args[2], 0))
    ):
        return None
    return find_call(definitions, chosen.args[0], ops.equal)


def conv_of_pad(call: OpCall, definitions: Definitions) -> Expr | None:
    """Merge zero padding into a convolution:

    conv(pad(x))   ->   conv(x, pads=...),   if `pad` adds zeros along spatial axes only

    The rule also applies if there is a transposition between `pad` and `conv`, as in conv(transpose(pad(x))), or a view
    that only inserts, removes or moves axes of size 1.
    """
    moved = find_call(definitions, call.args[0], ops.pad, ops.transpose, *_VIEWS)
    if moved is None:
        return None
    image = moved if moved.op is ops.pad else find_call(definitions, moved.args[0], ops.pad)
    if image is None or image.tensor_type.shape is None or moved.tensor_type.shape is None:
        return None
    (x,), margin, attributes = image.args, dict(image.attributes), dict(call.attributes)
    rank = image.tensor_type.rank
    sides, axes = (margin["pads"][:rank], margin["pads"][rank:]), _argument_axes(moved)
    if axes is None:
        return None
    outside = any(side[axis] for side in sides for axis in range(len(side)) if axis not in axes[2:])
    is_constant = margin["mode"] == "constant" and margin["value"] == 0
    if outside or not is_constant or min(margin["pads"]) < 0:
        return None
    added = [0 if axis is None else side[axis] for side in sides for axis in axes[2:]]
    attributes["pads"] = tuple(a + b for a, b in zip(attributes["pads"] or (0,) * len(added), added, strict=True))
    if moved.op is ops.transpose:
        x = ops.transpose(x, perm=axes)
    elif moved.op in _VIEWS:
        x = ops.reshape(x, Shape(tuple(1 if axis is None else x.tensor_type.known_shape[axis] for axis in axes)))
    return ops.conv(x, call.args[1], **attributes)


def conv_of_padding(call: OpCall, definitions: Definitions) -> Expr | None:
    """Drop the weights at the borders of a convolution's windows that are only multiplied by padding:

    conv(x, w, pads=...)   ->   conv(x, slice(w), pads=...),   with smaller pads

    The rule requires that w is constant and finite.  The product of a finite weight and a zero of the padding does not
    change a sum.
    """
    x, w = call.args
    dims, counts, attributes = x.tensor_type.shape, call.tensor_type.shape, dict(call.attributes)
    if dims is None or counts is None or not isinstance(w, Constant) or not np.all(np.isfinite(w.value)):
        return None
    window = window_of("conv", w.value.shape[2:], *(attributes[name] for name in ("strides", "pads", "dilations")))
    rank, pads, kept = len(dims) - 2, list(window.pads), [slice(None), slice(None)]
    for axis, (dim, count, size) in enumerate(zip(dims[2:], counts[2:], w.value.shape[2:], strict=True)):
        first, last = _useful_taps(dim, count, size, window, axis)
        before = pads[axis] - first * window.dilations[axis]
        behind = pads[rank + axis] - (size - 1 - last) * window.dilations[axis]
        if min(before, behind) < 0:
            first, last = 0, size - 1
        else:
            pads[axis], pads[rank + axis] = before, behind
        kept.append(slice(first, last + 1))
    weights = w.value[tuple(kept)]
    if weights.shape == w.value.shape:
        return None
    return ops.conv(x, constant(weights), **attributes | {"pads": tuple(pads)})


def _useful_taps(dim: AnyDim, count: AnyDim, size: int, window: Window, axis: int) -> tuple[int, int]:
    """Return the first and the last window position along an axis that reads the input for some output position.

    dim, count: the sizes of the input and of the output along the axis.  If one is unknown, or no window position reads
    the input, all positions count.
    """
    if isinstance(dim, int) and isinstance(count, int):
        offsets = [tap * window.dilations[axis] - window.pads[axis] for tap in range(size)]
        starts = [max(-(offset // window.strides[axis]), 0) for offset in offsets]  # first output position not before x
        useful = [
            tap
            for tap, (start, offset) in enumerate(zip(starts, offsets, strict=True))
            if start < count and start * window.strides[axis] + offset < dim
        ]
        if useful:
            return useful[0], useful[-1]
    return 0, size - 1


def conv_of_points(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace a depthwise convolution whose windows have a single element by a product:

    conv(x, w, groups=...)   ->   x * reshape(w) + 0

    The result of a convolution is never -0, because its sums start at 0.  Adding 0 has the same effect.
    """
    x, w = call.args
    shape, attributes = w.tensor_type.shape, dict(call.attributes)
    if shape is None or not all(isinstance(dim, int) for dim in shape) or not x.known_element_type.is_float:
        return None
    if (
        attributes["groups"] != shape[0]
        or set(shape[1:]) != {1}
        or x.type != call.type
        or any(attributes["pads"] or ())
    ):
        return None
    factors = ops.reshape(w, Shape((1, *shape[:1], *shape[2:])))
    return ops.add(ops.multiply(x, factors), constant(0, x.known_element_type))


def _argument_axes(call: OpCall) -> tuple[int | None, ...] | None:
    """Return, for each axis of the result of `call`, the corresponding axis of the argument.

    If `call` is a view, an axis of size 1 corresponds to no axis of the argument, and has None instead.  If `call` is a
    view that does more than insert, remove or move axes of size 1, return None.
    """
    if call.op is ops.transpose:
        return permutation_of(call)
    shape = call.args[0].tensor_type.known_shape
    if call.op not in _VIEWS:
        return tuple(range(len(shape)))
    kept = [axis for axis, dim in enumerate(shape) if dim != 1]
    if [shape[axis] for axis in kept] != [dim for dim in call.tensor_type.known_shape if dim != 1]:
        return None
    remaining = iter(kept)
    return tuple(None if dim == 1 else next(remaining) for dim in call.tensor_type.known_shape)


def expand_to_known_sizes(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace an expand with known sizes, except for strings, which no kernel moves:

    expand(x, s)   ->   broadcast_to(x, s),   if each size of x is 1 or the size in s;   or x if x has shape s
    """
    x, shape = call.args[0], call.tensor_type.shape
    if x.tensor_type.shape is None or shape is None or x.element_type == STR:
        return None
    own = shape[len(shape) - len(x.tensor_type.shape) :]
    if any(have not in (1, want) for have, want in zip(x.tensor_type.shape, own, strict=True)):
        return None
    return x if x.type == call.type else ops.broadcast_to(x, Shape(shape))


def shape_of_known_dims(call: OpCall, definitions: Definitions) -> Expr | None:
    """Replace the shape of a tensor by its known dimensions: shape_of(x)   ->   shape(n, m, ...)"""
    type_ = call.type
    return Shape(type_.dims) if isinstance(type_, ShapeType) and type_.dims is not None else None


RULES: dict[Operator, tuple[Rule, ...]] = {
    **dict.fromkeys(_VIEWS, (view_of_view,)),
    **dict.fromkeys((ops.sum, ops.mean, ops.prod, ops.max, ops.min), (reduction_of_unit_axes,)),
    ops.transpose: (transpose_of_unit_axes, transpose_of_transpose),
    ops.slice: (slice_of_everything, slice_of_slice, slice_of_broadcast, slice_of_concat),
    ops.gather: (gather_of_constant_indices,),
    ops.concat: (concat_of_empty_operands, concat_of_concat),
    ops.expand: (expand_to_known_sizes,),
    ops.pad: (pad_of_width_zero,),
    ops.matmul: (matmul_of_transpose, matmul_of_one_hot_rows),
    ops.conv: (conv_of_pad, conv_of_padding, conv_of_points),
    ops.shape_of: (shape_of_known_dims,),
}
