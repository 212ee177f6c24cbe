"""Cumulative sums and products."""

from __future__ import annotations

import relvm.ops as ops
from relvm.frontend.onnx.registry import Node, converts
from relvm.ir.expr import Expr


@converts("CumSum", "CumProd")
def _cumulation(node: Node) -> Expr:
    op = ops.cumulative_sum if node.proto.op_type == "CumSum" else ops.cumulative_product
    (axis,) = node.known(1, "the axis").reshape(-1).tolist()
    flags = {name: bool(node.attribute(name, 0)) for name in ("exclusive", "reverse")}
    return op(node.tensor(0), axis=axis, **flags)
