"""Squeeze, also for sizes and axes that are only known at run time."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.dynamic_axes import axis_mask, unmasked_elements
from relvm.frontend.onnx.dynamic_sizes import assert_all_false, dims_as_tensor, is_known, known_count, run_time_sizes
from relvm.frontend.onnx.registry import MAX_RANK_SPLITS, OnnxNode, RankSplit, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import DimValue, Expr, PrimCall, prim
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import PrimType
from relvm.ir.value_ranges import range_of


@converts("Squeeze")
def _squeeze(node: OnnxNode) -> Expr:
    if node.opset >= 13 and node.has(1) and not is_known(node, 1):
        return _squeezed_at_run_time(node).expr
    if node.opset < 13:
        axes = node.attribute("axes")
    else:
        axes = node.known_array(1, "axes").tolist() if node.has(1) else None
    x = node.tensor(0)
    if axes is None:
        return _squeeze_all(node.graph, x)
    if x.tensor_type.shape is not None:  # a size not proven to be 1 is checked at run time
        dims = list(x.tensor_type.shape)
        for axis in axes:
            dims[axis] = 1
        x = node.graph.with_shape(x, tuple(dims))
    return ops.squeeze(x, axes=tuple(axes))


def _squeezed_at_run_time(node: OnnxNode) -> TensorExpr:
    x, axes = TensorExpr(node, node.known_shape(0)), input_tensor(node, 1)
    rank, count = len(x.shape), known_count(axes, "axes")
    is_chosen, sizes = axis_mask(axes.reshape(count), rank), dims_as_tensor(node, x.shape)
    assert_all_false(
        is_chosen.apply(ops.logical_and, sizes.apply(ops.not_equal, 1)), "axes to squeeze whose size is not 1"
    )
    return x.reshape(*run_time_sizes(unmasked_elements(sizes, is_chosen, rank - count)))


def _squeeze_all(graph: ImportContext, x: Expr, kept: frozenset[int] = frozenset()) -> Expr:
    """Convert a Squeeze without axes, which removes every axis of size 1.

    If the size of an axis is symbolic and can be 1, raise RankSplit.  The rest of the graph is then imported for both
    cases: the size is 1, or it is not.

    kept: axes whose sizes are symbolic and not 1.
    """
    dims = x.tensor_type.shape
    if dims is None:
        return ops.squeeze(x)
    undecided = [axis for axis, dim in enumerate(dims) if axis not in kept and _is_undecided(dim)]
    if not undecided or graph.rank_splits >= MAX_RANK_SPLITS:
        return ops.squeeze(x, axes=None if undecided else tuple(i for i, dim in enumerate(dims) if dim == 1))
    axis = undecided[0]
    is_one = graph.emit(PrimCall("eq", (DimValue(dims[axis]), prim(1)), type=PrimType(BOOL)), "is_one")

    def squeezed(branch: ImportContext) -> list[Expr]:
        one = branch.with_shape(x, (*dims[:axis], 1, *dims[axis + 1 :]))
        return [branch.emit(_squeeze_all(branch, one, kept), "squeezed")]

    def unsqueezed(branch: ImportContext) -> list[Expr]:
        return [branch.emit(_squeeze_all(branch, x, kept | {axis}), "squeezed")]

    raise RankSplit(is_one, (squeezed, unsqueezed))


def _is_undecided(dim: AnyDim) -> bool:
    """Return whether it is known only at run time whether `dim` is 1."""
    sizes = range_of(dim, {})
    return sizes.low <= 1 <= sizes.high and sizes.low != sizes.high
