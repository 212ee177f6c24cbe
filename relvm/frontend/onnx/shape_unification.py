"""Size unification: conversion of nodes with inputs whose sizes must be equal but are not proven equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.broadcasting import with_broadcast_inputs
from relvm.frontend.onnx.registry import Converter, OnnxNode
from relvm.ir.expr import Expr, MatchCast, Var
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

_ROUNDS = 8  # maximum number of pairs of sizes unified for one node


def convert_with_unified_sizes(convert: Converter, node: OnnxNode) -> Any:
    """Convert a node, even if its operator requires two symbolic sizes to be equal and this cannot be proven.

    An example is the addition of an image and a copy whose sides were halved and then doubled.

    If the conversion fails for this reason, the inputs of the node are modified, and the node is converted again.  If
    the operator broadcasts its inputs, the inputs are expanded to their common shape.  This costs nothing if the sizes
    are equal at run time.  Otherwise, a match_cast of an input is added.  It replaces one of the two sizes by the
    other, and checks at run time that the two sizes are equal.

    Raises
    ------
    RelvmError
        The converter raised an error.  The error is a RelvmShapeError if the two sizes cannot be made equal, because
        neither of them is a symbolic size of an input.
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
            if (broadcast := with_broadcast_inputs(node)) is not None:
                node = broadcast
                continue
            cast = _cast_size(node, *error.unproven)
            if cast is None:
                raise
            index, match = cast
            bindings.append(match)
            inputs = [*node.inputs[:index], match.var, *node.inputs[index + 1 :]]
            node = replace(node, inputs=inputs)
    return convert(node)


def _cast_size(node: OnnxNode, first: AnyDim, second: AnyDim) -> tuple[int, MatchCast] | None:
    """Find an input of the node that has one of the sizes `first` and `second`, and cast this size to the other.

    Return the index of the input, and the match_cast.  Only a symbolic size is replaced.  Return None if no input has
    such a size.
    """
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
