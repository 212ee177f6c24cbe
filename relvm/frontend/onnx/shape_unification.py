"""Conversion of a node whose inputs' sizes must be equal and cannot be proven to be: that is checked at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.broadcasting import with_common_sizes
from relvm.frontend.onnx.registry import Converter, OnnxNode
from relvm.ir.expr import Expr, MatchCast, Var
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

_ROUNDS = 8  # that many pairs of sizes are made equal for one node


def converted(convert: Converter, node: OnnxNode) -> Any:
    """What the converter makes of the node.

    Where an operator needs two symbolic sizes to be equal, the node is converted again with other inputs.  Inputs that
    broadcast are expanded, which costs nothing where the sizes turn out to be equal.  Of others, as of a tensor and
    what was made of it by halving and doubling its sides, an input of the one size gets the other by a match_cast.

    Raises
    ------
    RelvmError
        What the converter raises; a RelvmShapeError where no input has the sizes in question.
    """
    bindings = node.graph.bindings
    for _ in range(_ROUNDS):
        before = len(bindings)
        try:
            return convert(node)
        except RelvmShapeError as error:
            if error.unproven is None:
                raise
            del bindings[before:]
            if (broadcast := with_common_sizes(node)) is not None:
                node = broadcast
                continue
            cast = _matched(node, *error.unproven)
            if cast is None:
                raise
            index, match = cast
            bindings.append(match)
            inputs = [*node.inputs[:index], match.var, *node.inputs[index + 1 :]]
            node = replace(node, inputs=inputs)
    return convert(node)


def _matched(node: OnnxNode, first: AnyDim, second: AnyDim) -> tuple[int, MatchCast] | None:
    """An input, by number, whose dimension `second` becomes `first`; or the other way round; or None."""
    for old, new in ((second, first), (first, second)):
        for index, value in enumerate(node.inputs):
            if not isinstance(value, Expr) or not isinstance(value.type, TensorType) or value.type.shape is None:
                continue
            if old not in value.type.shape or isinstance(old, int):
                continue
            dims = tuple(new if dim == old else dim for dim in value.type.shape)
            var = node.graph.var(value.name if isinstance(value, Var) else "x", TensorType(value.type.dtype, dims))
            return index, MatchCast(var, value, node.here)
    return None
