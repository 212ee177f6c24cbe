"""Pooling.

With ceil_mode, the last window can extend past the padding at the end of an axis.  On an axis of size n with the
padding `before` and `after`, the last window must begin before the position `n + before`.  For stride s and window span
w the number of windows is therefore floor((n + before + min(after + s - 1, w - 1) - w) / s) + 1.  An end padding of
min(after + s - 1, w - 1) gives the same number of windows without ceil_mode.
"""

from __future__ import annotations

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmShapeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import (
    filled,
    sizes_of,
)
from relvm.frontend.onnx.ops.slice import dynamic_slice
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.sliding_window import dilated_sizes, pad_if_symbolic, padding_of, strides_and_dilations
from relvm.frontend.onnx.tensor_expr import (
    TensorExpr,
    input_tensor,
    pad_axes,
    shaped_input,
)
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, dim_op, known_sizes, product


@value_record
class _Pool:
    """The attributes of a pooling node.

    kernel, strides, dilations: one integer for each spatial axis.
    node_pads: the padding that the attributes of the node specify, before each spatial axis and then after each.
    pads: the same padding, plus that of ceil_mode.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    node_pads: tuple[AnyDim, ...]
    pads: tuple[AnyDim, ...]

    def attributes(self, pads: tuple[AnyDim, ...]) -> dict[str, tuple]:
        """Return the attributes for relvm's pooling operators, with `pads` as the padding."""
        return {"kernel": self.kernel, "strides": self.strides, "pads": pads, "dilations": self.dilations}


def _pool_of(node: OnnxNode) -> _Pool:
    kernel: tuple[int, ...] = tuple(node.attribute("kernel_shape"))
    rank = len(kernel)
    strides, dilations = strides_and_dilations(node, rank)
    node_pads = padding_of(node, kernel, strides, dilations)
    known = known_sizes(node_pads)
    if not node.attribute("ceil_mode", 0) or known is None:  # SAME always rounds up
        return _Pool(kernel, strides, dilations, node_pads, node_pads)
    before, after = known[:rank], known[rank:]
    rows = list(zip(after, strides, dilated_sizes(kernel, dilations), strict=True))
    behind = tuple(min(pad + stride - 1, span - 1) for pad, stride, span in rows)
    reached = tuple(min(pad, span - 1) for pad, _, span in rows)
    return _Pool(kernel, strides, dilations, (*before, *reached), (*before, *behind))


def _input_from_first_window(node: OnnxNode, pool: _Pool) -> TensorExpr:
    """Return input 0 without the elements before the first window.

    If a stride is above the window, the total padding of SAME_UPPER and SAME_LOWER can be negative.  AveragePool and
    LpPool of ONNX Runtime then skip elements on both sides of the axis.  The elements behind the last window need not
    be removed.
    """
    x, mode = input_tensor(node, 0), node.attribute("auto_pad", "NOTSET")
    if not mode.startswith("SAME"):
        return x
    spans = dilated_sizes(pool.kernel, pool.dilations)
    for axis, (stride, span) in enumerate(zip(pool.strides, spans, strict=True), 2):
        if stride < span + 2:  # at most one element is skipped, and it lies behind the last window
            continue
        size = x.shape[axis]
        skipped = dim_op("mod", size - 1, stride) - (span - 1)
        before = dim_op("floordiv", dim_op("max", skipped - (mode == "SAME_LOWER"), 0), 2)
        if before != 0:
            x = dynamic_slice(x, axis, before, size - before)
    return x


@converts("MaxPool")
def _max_pool(node: OnnxNode) -> tuple[Expr, ...]:
    pool = _pool_of(node)
    x, pads = pad_if_symbolic(input_tensor(node, 0), pool.pads, node.type(0).known_dtype.lowest)
    values = ops.max_pool(x.expr, **pool.attributes(pads))
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return (values,)
    if pads != pool.pads:
        raise RelvmUnsupportedError(f"the Indices output is not supported for symbolic pads: {pool.pads}")
    column_major = bool(node.attribute("storage_order", 0))
    return values, ops.max_pool_indices(x.expr, **pool.attributes(pads), column_major=column_major)


@converts("MaxUnpool")
def _max_unpool(node: OnnxNode) -> Expr:
    """Writes each element to the position that it had before the pooling, and sets all other elements to 0.

    If the output shape is larger than the size that the window implies, zeros are appended.
    """
    x, rank = shaped_input(node, 0), node.type(0).known_rank
    kernel = node.attribute("kernel_shape")
    if len(kernel) != rank - 2:
        raise RelvmShapeError(
            f"kernel_shape is {kernel}, expected {counted(rank - 2, 'element')} for a tensor of rank {rank}"
        )
    strides, pads = node.integers("strides", rank - 2, 1, least=1), node.integers("pads", 2 * (rank - 2), 0)
    spatial = zip(x.shape[2:], strides, kernel, pads[: rank - 2], pads[rank - 2 :], strict=True)
    own = [*x.shape[:2], *((n - 1) * step + size - before - after for n, step, size, before, after in spatial)]
    flat = TensorExpr(node, filled(node, node.type(0).known_dtype.numpy.type(0), product(own)))
    rows = [each.reshape(product(x.shape)) for each in (input_tensor(node, 1), x)]
    whole = flat.apply(ops.scatter_elements, *rows, axis=0, from_end=False).reshape(*own)
    if not node.has(2):
        return whole.expr
    stated = sizes_of(node, 2, "output_shape")
    if len(stated) != rank:
        raise RelvmShapeError(f"output_shape has {counted(len(stated), 'element')}, expected {rank}, the rank of X")
    added = [size - had for size, had in zip(stated, own, strict=True)]
    zero = TensorExpr(node, whole.operand(0))
    return pad_axes(whole, [0] * rank, added, lambda x, axis, end: zero).expr


@converts("AveragePool")
def _average_pool(node: OnnxNode) -> Expr:
    """Computes the mean of each window.

    The node's padding counts as zeros if count_include_pad is set.  Padding that ceil_mode adds never counts.
    """
    pool = _pool_of(node)
    x = _input_from_first_window(node, pool)
    counted = bool(node.attribute("count_include_pad", 0))
    wide, pads = pad_if_symbolic(x, pool.pads, 0)
    attributes = pool.attributes(pads)
    if pads != pool.pads:
        total = wide.apply(ops.average_pool, **attributes)
        if counted:
            return total.expr
        one = TensorExpr(node, x.operand(1)).apply(ops.broadcast_to, node.shape(list(x.shape)))
        return (total / pad_if_symbolic(one, pool.pads, 0)[0].apply(ops.average_pool, **attributes)).expr
    if not counted:
        return ops.average_pool(x.expr, **attributes)
    guessed = any(not isinstance(n, int) and step > 1 for n, step in zip(x.shape[2:], pool.strides, strict=True))
    if guessed and node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        raise RelvmUnsupportedError(
            "count_include_pad with auto_pad is not supported for symbolic dimensions and strides above 1"
        )
    if pool.pads == pool.node_pads:
        return ops.average_pool(x.expr, **attributes, count_include_pad=True)
    rank = len(pool.kernel)
    before, after = ((0, 0, *part) for part in (pool.node_pads[:rank], pool.node_pads[rank:]))
    added = tuple(pad - own for pad, own in zip(pool.pads, pool.node_pads, strict=True))
    return x.apply(ops.pad, pads=(*before, *after)).apply(ops.average_pool, **pool.attributes(added)).expr


@converts("LpPool")
def _lp_pool(node: OnnxNode) -> Expr:
    """Computes the Lp norm of each window: sum(abs(x)^p)^(1/p)."""
    pool, p, size = _pool_of(node), node.integer("p", 2, least=1), 1
    for extent in pool.kernel:
        size *= extent
    powers, pads = pad_if_symbolic(_powers(_input_from_first_window(node, pool), p), pool.pads, 0)
    means = powers.apply(ops.average_pool, **pool.attributes(pads), count_include_pad=True)
    return (means * size).power(1 / p).expr


@converts("GlobalLpPool")
def _global_lp_pool(node: OnnxNode) -> Expr:
    x, p = input_tensor(node, 0), node.integer("p", 2, least=1)
    return _powers(x, p).sum(tuple(range(2, node.type(0).known_rank))).power(1 / p).expr


def _powers(x: TensorExpr, p: int) -> TensorExpr:
    return (x if p % 2 == 0 else x.apply(ops.abs)).power(p)


@converts("GlobalMaxPool", "GlobalAveragePool")
def _global_pool(node: OnnxNode) -> Expr:
    op = ops.max if node.proto.op_type == "GlobalMaxPool" else ops.mean
    return op(node.tensor(0), axes=tuple(range(2, node.type(0).known_rank)), keepdims=True)
