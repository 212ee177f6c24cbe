"""Cumulative sums and products."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.dynamic_axes import merge_around_axis
from relvm.frontend.onnx.dynamic_sizes import is_known
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor
from relvm.ir.expr import Expr


@converts("CumSum", "CumProd")
def _cumulation(node: OnnxNode) -> Expr:
    op = ops.cumsum if node.proto.op_type == "CumSum" else ops.cumprod
    flags = {name: bool(node.attribute(name, 0)) for name in ("exclusive", "reverse")}
    if is_known(node, 1):
        (axis,) = node.known_array(1, "axis").reshape(-1).tolist()
        return op(node.tensor(0), axis=axis, **flags)
    x = TensorExpr(node, node.known_shape(0))
    return merge_around_axis(x, input_tensor(node, 1)).apply(op, axis=1, **flags).reshape(*x.shape).expr
