"""Size unification: conversion of nodes with inputs whose sizes must be equal but are not proven equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.broadcasting import with_common_sizes
from relvm.frontend.onnx.registry import Converter, OnnxNode
from relvm.ir.expr import Expr, MatchCast, Var
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType

_ROUNDS = 8  # maximum number of pairs of sizes unified for one node


def converted(convert: Converter, node: OnnxNode) -> Any:
    """Convert a node, and unify sizes that must be equal.

    If an operator requires two symbolic sizes to be equal and they are not proven equal, the node is converted again
    with modified inputs.  Inputs that broadcast are expanded, which costs nothing if the sizes are equal.  For other
    inputs, a match_cast replaces one size by the other, and checks at run time that they are equal.  An example is an
    image added to a copy whose sides were halved and then doubled.

    Raises
    ------
    RelvmError
        The converter raised an error.  It is a RelvmShapeError if two sizes cannot be unified, because no input has one
        of them.
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
    """Find an input that has one of two sizes, and cast it to the other size.

    Return the index of the input, and the match_cast.  Only a symbolic size is replaced.  Return None if no input has
    such a size.

    first, second: the sizes.
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
