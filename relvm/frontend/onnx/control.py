"""Control flow: If becomes an If whose branches see the values around them; of one on a known condition, the branch."""

from __future__ import annotations

from typing import Any

from relvm.errors import RelvmTypeError
from relvm.frontend.onnx.registry import Node, converts
from relvm.ir.expr import Constant, If, TupleItem
from relvm.ir.types import TensorType, TupleType, join
from relvm.ops import reshape


@converts("If")
def _if(node: Node) -> object:
    cond = node.tensor(0)
    if isinstance(cond, Constant):
        return _taken(node, node.attribute("then_branch" if cond.value.item() else "else_branch"))
    if isinstance(cond.type, TensorType) and cond.type.rank != 0:  # ONNX allows any tensor of one element
        cond = node.emit(reshape(cond, node.shape([])))
    then = node.graph.subgraph(node.attribute("then_branch"))
    orelse = node.graph.subgraph(node.attribute("else_branch"))
    type_ = join(then.type, orelse.type)
    if type_ is None:
        raise RelvmTypeError(f"the branches give {then.type} and {orelse.type}")
    result = If(cond, then, orelse, type=type_)
    if not isinstance(type_, TupleType):
        return result
    merged = node.emit(result)
    return tuple(TupleItem(merged, i, type=field) for i, field in enumerate(type_.fields))


def _taken(node: Node, branch: Any) -> tuple:
    """The outputs of a branch that is known to be taken; its bindings join those around it."""
    inner = node.graph.inner(branch)
    inner.outputs(branch)
    node.graph.bindings += inner.bindings
    node.graph.own_dims |= inner.own_dims
    return tuple(inner.lookup(info.name, node.here) for info in branch.output)
