"""Matrix products, einsum, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.grouped_products import grouped_product_kernel
from relvm.frontend.common.products import DotDimensions, dot_general
from relvm.frontend.torch.ops.shapes import diagonal, sliced, transposed
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import BOOL, F32, I64
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import TensorType

_MOST_ATTENTION = 256  # the largest width of a head that the fused operator accepts


def matmul(node: Node, x: Expr, y: Expr) -> Expr:
    """Return the matrix product of two tensors, as torch.matmul.  Narrow floats are summed in f32."""
    dtype = x.known_element_type
    if dtype.is_bool:
        return ops.greater(matmul(node, node.cast(x, I64), node.cast(y, I64)), 0)
    x, y = node.wide(x), node.wide(y)
    left, right = shape_of(x), shape_of(y)
    if len(left) == 1 and len(right) == 1:
        return ops.sum(ops.multiply(x, y), axes=(0,))
    if len(left) == 1:
        product_ = node.emit(ops.matmul(node.reshaped(x, (1, left[0])), y))
        shape = shape_of(product_)
        return node.reshaped(product_, (*shape[:-2], shape[-1]))
    if len(right) == 1:
        product_ = node.emit(ops.matmul(x, node.reshaped(y, (right[0], 1))))
        return node.reshaped(product_, shape_of(product_)[:-1])
    if len(left) > 2 and len(right) == 2 and left[-1] != 0:  # one large product instead of many small ones
        rows = node.reshaped(x, (product(left[:-1]), left[-1]))
        return node.reshaped(node.emit(ops.matmul(rows, y)), (*left[:-1], right[-1]))
    return ops.matmul(x, y)


@converts("mm", "bmm", "matmul", "mv", "dot", "vdot", "linalg_matmul")
def _matmul(
    node: Node,
    self: Expr,
    other: Expr | None = None,
    mat2: Expr | None = None,
    vec: Expr | None = None,
    tensor: Expr | None = None,
) -> Expr:
    right = next(each for each in (other, mat2, vec, tensor) if each is not None)
    return matmul(node, self, right)


@converts("_int_mm")
def _int_mm(node: Node, self: Expr, mat2: Expr) -> Expr:
    """Multiplies integers of 8 bits, and adds the products as i32."""
    x, y = node.emit(self), node.emit(mat2)
    return ops.matmul_integer(x, y, *(node.number(0, each.known_element_type) for each in (x, y)))


def _grouped_product(node: Node, x: Expr, matrices: Expr, ends: Expr) -> Expr:
    """Return rows times the matrices of their groups.   ends: the row at which each group ends."""
    x, matrices = node.emit(node.wide(x)), node.emit(node.wide(matrices))
    result = TensorType(x.known_element_type, (shape_of(x)[0], shape_of(matrices)[2]))
    name = node.kernel_name("grouped_product")
    kernel = grouped_product_kernel(name, x.tensor_type, matrices.tensor_type, ends.tensor_type)
    return node.call_kernel(kernel, [x, matrices, node.emit(ends)], [result])


@converts("transformers.grouped_mm_fallback.default")
def _grouped_mm_fallback(node: Node, input: Expr, weight: Expr, offs: Expr) -> Expr:
    """Multiplies each row by the matrix of its expert.  The package transformers defines this operator."""
    return _grouped_product(node, input, weight, offs)


@converts("_grouped_mm")
def _grouped_mm(
    node: Node, self: Expr, mat2: Expr, offs: Expr | None = None, bias: Expr | None = None, out_dtype: Any = None
) -> Expr:
    """Multiplies each row by the matrix of its group.  Supports rows of rank 2, or batches without offsets."""
    if offs is None:
        found = node.emit(matmul(node, self, mat2))
    elif len(shape_of(self)) == 2 and len(shape_of(mat2)) == 3:
        found = node.emit(_grouped_product(node, self, mat2, offs))
    else:
        raise RelvmUnsupportedError("groups of columns, or of rows of several matrices, are not supported")
    return found if bias is None else ops.add(found, node.wide(bias))


@converts("bmm.dtype", "mm.dtype")
def _matmul_to(node: Node, self: Expr, mat2: Expr, out_dtype: Any) -> Expr:
    return matmul(node, node.wide(self), node.wide(mat2))


def _scaled_sum(node: Node, x: Expr, y: Expr, beta: Any, alpha: Any) -> Expr:
    """Return beta * x + alpha * y.  x is ignored if beta is 0, also where it is NaN."""
    y = node.emit(y)
    dtype = y.known_element_type
    if dtype.is_bool:
        raise RelvmUnsupportedError("products of bools are not supported here")
    scaled = y if alpha == 1 else ops.multiply(y, node.number(alpha, dtype))
    if beta == 0:
        return ops.broadcast_to(scaled, Shape(node.out_shape()))
    x = node.cast(x, dtype)
    return ops.add(scaled, x if beta == 1 else ops.multiply(x, node.number(beta, dtype)))


@converts("addmm", "baddbmm", "addmv")
def _addmm(
    node: Node,
    self: Expr,
    mat1: Expr | None = None,
    mat2: Expr | None = None,
    *,
    beta: Any = 1,
    alpha: Any = 1,
    batch1: Expr | None = None,
    batch2: Expr | None = None,
    mat: Expr | None = None,
    vec: Expr | None = None,
) -> Expr:
    left = next(each for each in (mat1, batch1, mat) if each is not None)
    right = next(each for each in (mat2, batch2, vec) if each is not None)
    return _scaled_sum(node, self, matmul(node, left, right), beta, alpha)


@converts("addbmm")
def _addbmm(node: Node, self: Expr, batch1: Expr, batch2: Expr, *, beta: Any = 1, alpha: Any = 1) -> Expr:
    return _scaled_sum(node, self, ops.sum(matmul(node, batch1, batch2), axes=(0,)), beta, alpha)


@converts("outer", "ger")
def _outer(node: Node, self: Expr, vec2: Expr) -> Expr:
    x, y = node.cast(self, node.out_dtype()), node.cast(vec2, node.out_dtype())
    column = node.reshaped(x, (shape_of(x)[0], 1))
    return ops.logical_and(column, y) if x.known_element_type.is_bool else ops.multiply(column, y)


@converts("addr")
def _addr(node: Node, self: Expr, vec1: Expr, vec2: Expr, *, beta: Any = 1, alpha: Any = 1) -> Expr:
    dtype = node.out_dtype()
    column = node.reshaped(node.cast(vec1, dtype), (shape_of(vec1)[0], 1))
    if dtype.is_bool:
        found = ops.logical_and(column, vec2)
        found = found if alpha else ops.logical_and(found, node.number(False, BOOL))
        return ops.logical_or(found, self) if beta else found
    return _scaled_sum(node, self, ops.multiply(column, node.cast(vec2, dtype)), beta, alpha)


@converts("linear")
def _linear(node: Node, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    if len(shape_of(weight)) == 1:
        result = matmul(node, input, weight)
    else:
        result = matmul(node, input, node.emit(ops.transpose(weight, perm=(1, 0))))
    if bias is None:
        return result
    result = node.emit(result)
    return ops.add(result, node.cast(bias, result.known_element_type))


@converts("bilinear")
def _bilinear(node: Node, input1: Expr, input2: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """Returns the sum over i and j of x[i] * w[o, i, j] * y[j] for each o."""
    x, y, w = node.wide(input1), node.wide(input2), node.wide(weight)
    outputs, m, n = shape_of(w)
    batch = shape_of(x)[:-1]
    flat = node.reshaped(node.emit(ops.transpose(w, perm=(1, 0, 2))), (m, outputs * n))
    partial = node.reshaped(node.emit(matmul(node, x, flat)), (*batch, outputs, n))
    wide = node.reshaped(y, (*batch, 1, n))
    result = ops.sum(ops.multiply(partial, wide), axes=(len(batch) + 1,))
    return result if bias is None else ops.add(result, node.wide(bias))


@converts("einsum", may_view=True)
def einsum(node: Node, equation: str, tensors: Sequence[Expr], *, path: Any = None) -> Expr:
    """Multiplies the operands from left to right."""
    terms, result = _labels(equation, [len(shape_of(x)) for x in tensors])
    operands = [_with_distinct_labels(node, node.wide(x), term) for x, term in zip(tensors, terms, strict=True)]
    sizes: dict[str, AnyDim] = {}
    for x, labels in operands:
        for label, size in zip(labels, shape_of(x), strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    total, labels = operands[0]
    for at, (y, other) in enumerate(operands[1:], 1):
        later = {*result, *(label for _, each in operands[at + 1 :] for label in each)}
        total, labels = _contracted(node, (total, labels), (y, other), later, sizes)
    removed = tuple(axis for axis, label in enumerate(labels) if label not in result)
    if removed:
        total = node.emit(ops.sum(total, axes=removed))
        labels = "".join(label for label in labels if label in result)
    return transposed(total, [labels.index(label) for label in result])


def _labels(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return a label for each axis of each operand and of the result.  An ellipsis gets labels of its own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        raise RelvmFormatError(f"the equation {equation!r} has {counted(len(texts), 'operand')}, expected {len(ranks)}")
    hidden = [rank - len(text.replace("...", "")) for text, rank in zip(texts, ranks, strict=True)]
    longest = max([0, *(count for text, count in zip(texts, hidden, strict=True) if "..." in text)])
    own = "".join(chr(0x3B1 + i) for i in range(longest))
    terms = [text.replace("...", own[longest - count :]) for text, count in zip(texts, hidden, strict=True)]
    if any(len(term) != rank for term, rank in zip(terms, ranks, strict=True)):
        raise RelvmFormatError(f"the equation {equation!r} does not match the ranks {list(ranks)}")
    letters = "".join(terms)
    if arrow:
        return terms, right.replace("...", own)
    return terms, own + "".join(sorted(x for x in set(letters) if letters.count(x) == 1 and x not in own))


def _with_distinct_labels(node: Node, x: Expr, labels: str) -> tuple[Expr, str]:
    """Replace the axes of x with the same label by one axis, their diagonal.  Return the result and its labels."""
    for label in labels:
        if labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = node.emit(diagonal(node, x, 0, first, second))
            rest = "".join(each for axis, each in enumerate(labels) if axis not in (first, second))
            return _with_distinct_labels(node, x, rest + label)
    return x, labels


def _contracted(
    node: Node, left: tuple[Expr, str], right: tuple[Expr, str], later: set[str], sizes: dict[str, AnyDim]
) -> tuple[Expr, str]:
    """Return the product of two operands, summed over the labels that are not in `later`."""
    (x, a), (y, b) = left, right
    for operand, labels, others in ((0, a, b), (1, b, a)):
        value = (x, y)[operand]
        alone = tuple(axis for axis, label in enumerate(labels) if label not in others and label not in later)
        if alone:
            value = node.emit(ops.sum(value, axes=alone))
            labels = "".join(label for axis, label in enumerate(labels) if axis not in alone)
        value = node.broadcast(
            value,
            [sizes[label] if label in others else size for label, size in zip(labels, shape_of(value), strict=True)],
        )
        if operand == 0:
            x, a = value, labels
        else:
            y, b = value, labels
    batch = [label for label in a if label in b and label in later]
    summed = [label for label in a if label in b and label not in later]
    dims = DotDimensions(
        tuple(a.index(label) for label in batch),
        tuple(b.index(label) for label in batch),
        tuple(a.index(label) for label in summed),
        tuple(b.index(label) for label in summed),
    )
    result = dot_general(node.emit, x, y, dims)
    common = {*batch, *summed}
    return result, "".join(
        [*batch, *(each for each in a if each not in common), *(each for each in b if each not in common)]
    )


@converts("tensordot")
def _tensordot(node: Node, self: Expr, other: Expr, dims_self: Sequence[int], dims_other: Sequence[int]) -> Expr:
    rank, other_rank = len(shape_of(self)), len(shape_of(other))
    dims = DotDimensions((), (), tuple(d % rank for d in dims_self), tuple(d % other_rank for d in dims_other))
    return dot_general(node.emit, node.wide(self), node.wide(other), dims)


# ---- convolutions ----


def _each(values: Any, count: int, default: int = 1) -> tuple[int, ...]:
    """Return one number for each spatial axis.  One number stands for all axes."""
    if values is None or (isinstance(values, tuple) and not values):
        return (default,) * count
    found = (values,) if isinstance(values, int) else tuple(known_int(value, "an argument") for value in values)
    return found * count if len(found) == 1 else found


def convolved(
    node: Node, x: Expr, w: Expr, bias: Expr | None, strides: Any, padding: Any, dilation: Any, groups: int
) -> Expr:
    """Return a convolution.  The batch axis of x can be missing.

    padding: numbers, or "same" or "valid".
    """
    rank = len(shape_of(w)) - 2
    x, w = node.wide(x), node.wide(w)
    if len(shape_of(x)) == rank + 1:
        wide = node.emit(ops.expand_dims(x, axes=(0,)))
        result = node.emit(convolved(node, wide, w, bias, strides, padding, dilation, groups))
        return ops.squeeze(result, axes=(0,))
    steps, spread = _each(strides, rank), _each(dilation, rank)
    if padding == "valid":
        padding = (0,) * rank
    if padding == "same":
        totals = [known_int(size - 1, "the window") * step for size, step in zip(shape_of(w)[2:], spread, strict=True)]
        before = tuple(total // 2 for total in totals)
        after = tuple(total - total // 2 for total in totals)
    else:
        before = after = _each(padding, rank, 0)
    if any(size < 0 for size in before):
        raise RelvmUnsupportedError("negative padding is not supported")
    result = ops.conv(x, w, strides=steps, pads=(*before, *after), dilations=spread, groups=groups)
    return _with_bias(node, result, bias, rank)


def _with_bias(node: Node, x: Expr, bias: Expr | None, rank: int) -> Expr:
    if bias is None:
        return x
    x = node.emit(x)
    shifts = node.reshaped(node.cast(bias, x.known_element_type), (shape_of(bias)[0], *(1,) * rank))
    return ops.add(x, shifts)


@converts("conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def _conv(
    node: Node,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Expr:
    return convolved(node, input, weight, bias, stride, padding, dilation, groups)


def convolved_backwards(
    node: Node,
    x: Expr,
    w: Expr,
    bias: Expr | None,
    strides: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Expr:
    """Return a transposed convolution."""
    rank = len(shape_of(w)) - 2
    x, w = node.wide(x), node.wide(w)
    if len(shape_of(x)) == rank + 1:
        wide = node.emit(ops.expand_dims(x, axes=(0,)))
        result = node.emit(convolved_backwards(node, wide, w, bias, strides, padding, output_padding, dilation, groups))
        return ops.squeeze(result, axes=(0,))
    steps, spread, before = _each(strides, rank), _each(dilation, rank), _each(padding, rank, 0)
    extra = _each(output_padding, rank, 0)
    sizes = [
        (n - 1) * step + (k - 1) * d + 1 + more - 2 * pad
        for n, step, k, d, more, pad in zip(shape_of(x)[2:], steps, shape_of(w)[2:], spread, extra, before, strict=True)
    ]
    return _with_bias(node, _adjoint(node, x, w, sizes, steps, before, spread, groups), bias, rank)


def _adjoint(
    node: Node,
    x: Expr,
    w: Expr,
    sizes: Sequence[AnyDim],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Expr:
    """Return the adjoint of a convolution: a matrix product followed by col2im.   sizes: those of the result."""
    batch, channels, *dims = shape_of(x)
    _, filters, *window = shape_of(w)
    depth = node.exact_quotient(channels, groups, "the number of channels")
    weights = node.reshaped(w, (groups, depth, product((filters, *window))))
    columns = node.reshaped(x, (batch, groups, depth, product(dims)))
    windows = node.emit(ops.matmul(weights, columns, transpose_a=True))
    windows = node.reshaped(windows, (batch, groups * filters, *window, *dims))
    shape = Shape((batch, groups * filters, *sizes))
    return ops.col2im(windows, shape, strides=tuple(strides), pads=tuple(pads), dilations=tuple(dilations))


@converts("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def _conv_transpose(
    node: Node,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Expr:
    return convolved_backwards(node, input, weight, bias, stride, padding, output_padding, dilation, groups)


@converts("convolution", "_convolution", "_convolution.deprecated")
def _convolution(
    node: Node,
    input: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    benchmark: Any = None,
    deterministic: Any = None,
    cudnn_enabled: Any = None,
    allow_tf32: Any = None,
) -> Expr:
    if transposed:
        return convolved_backwards(node, input, weight, bias, stride, padding, output_padding, dilation, groups)
    return convolved(node, input, weight, bias, stride, padding, dilation, groups)


@converts("convolution_backward")
def _convolution_backward(
    node: Node,
    grad_output: Expr,
    input: Expr,
    weight: Expr,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Expr | None, ...]:
    gradient, x, w = node.wide(grad_output), node.wide(input), node.wide(weight)
    rank = len(shape_of(w)) - 2
    steps, before, spread = _each(stride, rank), _each(padding, rank, 0), _each(dilation, rank)
    sizes, window = shape_of(x)[2:], shape_of(w)[2:]
    of_x = of_w = of_bias = None
    if output_mask[0]:
        if transposed:
            of_x = _cut(node, convolved(node, gradient, w, None, steps, before, spread, groups), sizes)
        else:
            of_x = _adjoint(node, gradient, w, sizes, steps, before, spread, groups)
    if output_mask[1]:
        wide, narrow = (gradient, x) if transposed else (x, gradient)
        of_w = _gradient_of_weights(node, wide, narrow, window, steps, before, spread, groups)
    if output_mask[2]:
        of_bias = ops.sum(gradient, axes=(0, *range(2, 2 + rank)))
    return of_x, of_w, of_bias


def _gradient_of_weights(
    node: Node,
    x: Expr,
    gradient: Expr,
    window: Sequence[AnyDim],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Expr:
    """Return the gradient of the weights of a convolution of x.

    It is a convolution, too: its windows are the elements of `gradient`, and it sums over the batch.

    gradient: the gradient of the result of the convolution.
    window: the spatial sizes of the weights.
    """
    batch, channels, *sizes = shape_of(x)
    spatial = tuple(range(len(sizes)))
    depth = node.exact_quotient(channels, groups, "the number of channels")
    grouped = node.reshaped(x, (batch, groups, depth, *sizes))
    rows = node.emit(ops.transpose(grouped, perm=(2, 1, 0, *(3 + axis for axis in spatial))))
    rows = node.reshaped(rows, (depth, groups * batch, *sizes))
    swapped = (1, 0, *(2 + axis for axis in spatial))
    gradient = node.importer.with_shape(node.emit(gradient), (batch, *shape_of(gradient)[1:]))
    filters = node.emit(ops.transpose(gradient, perm=swapped))
    found = ops.conv(
        rows, filters, strides=tuple(dilations), pads=(*pads, *pads), dilations=tuple(strides), groups=groups
    )
    return ops.transpose(node.emit(_cut(node, found, window)), perm=swapped)


def _cut(node: Node, x: Expr, sizes: Sequence[AnyDim]) -> Expr:
    """Return the first elements of x along its spatial axes, as many as `sizes` states."""
    for axis, size in enumerate(sizes, 2):
        x = node.emit(x)
        if shape_of(x)[axis] != size:
            x = sliced(node, x, axis, 0, size)
    return node.importer.with_shape(node.emit(x), (*shape_of(x)[:2], *sizes))


# ---- attention ----


def _causal_mask(node: Node, rows: AnyDim, columns: AnyDim) -> Expr:
    at = node.reshaped(node.emit(ops.iota(Shape((rows,)))), (rows, 1))
    return node.emit(ops.greater_equal(at, ops.iota(Shape((columns,)))))


def _with_sizes(node: Node, x: Expr, sizes: Sequence[AnyDim | None]) -> Expr:
    """Return x with the given sizes as its last sizes.  A size that is 1, or is given as 1 or None, stays.

    If a size of x is a symbol that differs from the given size, their equality is checked at run time.  An example
    is the lengths of two caches.
    """
    shape = list(shape_of(x))
    for axis, size in zip(range(-1, -len(shape) - 1, -1), reversed(sizes), strict=False):
        if size is not None and 1 not in (size, shape[axis]) and not (isinstance(size, int) and shape[axis] == size):
            shape[axis] = size
    return node.importer.with_shape(node.emit(x), shape)


def attention(
    node: Node, query: Expr, key: Expr, value: Expr, mask: Expr | None, is_causal: bool, scale: float | None
) -> Expr:
    """Return scaled dot-product attention.  The result for a query whose keys are all masked is 0."""
    dtype = query.known_element_type
    q, k, v = node.wide(query), node.wide(key), node.wide(value)
    *batch, queries, _ = shape_of(q)
    k = _with_sizes(node, k, (*batch, None, None))
    v = _with_sizes(node, v, (*batch, shape_of(k)[-2], None))
    if mask is not None:
        mask = _with_sizes(node, mask, (*batch, queries, shape_of(k)[-2]))
    width, value_width = shape_of(q)[-1], shape_of(v)[-1]
    factor: Any = scale
    if scale is None and isinstance(width, int):
        factor = 1 / math.sqrt(width) if width else 1.0
    elif scale is None:
        factor = ops.divide(1.0, ops.sqrt(node.number(width, q.known_element_type)))
    allowed: Expr = node.number(True, BOOL)
    bias: Expr = node.number(0, q.known_element_type)
    if is_causal:
        allowed = _causal_mask(node, shape_of(q)[-2], shape_of(k)[-2])
    if mask is not None:
        if mask.known_element_type.is_bool:
            allowed = mask if not is_causal else node.emit(ops.logical_and(allowed, mask))
        else:
            bias = node.cast(mask, q.known_element_type)
    fits = all(isinstance(size, int) and 1 <= size <= _MOST_ATTENTION for size in (width, value_width))
    keys = shape_of(k)[-2]
    if q.known_element_type == F32 and fits and dtype == F32 and keys != 0:
        if len(shape_of(bias)) and shape_of(bias)[-1] == 1 and keys != 1:
            bias = node.broadcast(bias, (*shape_of(bias)[:-1], keys))
        return ops.attention(q, k, v, allowed, bias, scale=factor, absent="zero")
    rank = len(shape_of(k))
    order = (*range(rank - 2), rank - 1, rank - 2)
    scores: Expr = ops.multiply(ops.matmul(q, node.emit(ops.transpose(k, perm=order))), factor)
    scores = node.emit(ops.where(allowed, ops.add(scores, bias), -math.inf))
    shares = ops.softmax(scores, axis=-1)
    hidden = ops.equal(ops.max(scores, axes=(-1,), keepdims=True), -math.inf)
    return ops.matmul(node.emit(ops.where(hidden, 0, shares)), v)


@converts("scaled_dot_product_attention")
def _attention(
    node: Node,
    query: Expr,
    key: Expr,
    value: Expr,
    attn_mask: Expr | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Expr:
    if dropout_p:
        raise RelvmUnsupportedError("random numbers are not supported (dropout_p is not 0)")
    if enable_gqa:
        key, value = (_repeated_heads(node, x, shape_of(query)[-3]) for x in (key, value))
    return attention(node, query, key, value, attn_mask, is_causal, scale)


def _repeated_heads(node: Node, x: Expr, heads: AnyDim) -> Expr:
    *batch, own, length, width = shape_of(x)
    if own == heads:
        return x
    count = node.exact_quotient(heads, own, "the number of heads")
    spread = node.reshaped(x, (*batch, own, 1, length, width))
    return node.reshaped(node.broadcast(spread, (*batch, own, count, length, width)), (*batch, heads, length, width))


@converts("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention")
def _flash_attention(
    node: Node,
    query: Expr,
    key: Expr,
    value: Expr,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Expr | None = None,
    scale: float | None = None,
    return_debug_mask: bool = False,
) -> tuple[Any, ...]:
    """Computes only the first result."""
    if dropout_p:
        raise RelvmUnsupportedError("random numbers are not supported (dropout_p is not 0)")
    result = attention(node, query, key, value, attn_mask, is_causal, scale)
    return (result, *(None,) * (len(node.output_names()) - 1))
