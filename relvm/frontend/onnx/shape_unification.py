"""Size unification: conversion of nodes with inputs whose sizes must be equal but are not proven equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx.broadcasting import with_broadcast_inputs
from relvm.frontend.onnx.registry import Converter, OnnxNode
from relvm.ir.expr import Expr, MatchCast, Var
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType


def convert_with_unified_sizes(convert: Converter, node: OnnxNode) -> Any:
    """Convert a node, even if its operator requires two symbolic sizes to be equal and this cannot be proven.

    An example is the addition of an image and a copy whose sides were halved and then doubled.

    If the conversion fails for this reason, the inputs of the node are modified, and the node is converted again.  If
    the operator broadcasts its inputs, the inputs are expanded to their common shape.  This costs nothing if the sizes
    are equal at run time.  Otherwise, a match_cast is added for each input that has one of the two sizes.  It replaces
    that size by the other, and checks at run time that they are equal.

    Raises
    ------
    RelvmError
        The converter raised an error.  The error is a RelvmShapeError if the two sizes cannot be made equal, because
        neither of them is a symbolic size of an input.
    """
    bindings = node.graph.bindings
    given, start = node, len(bindings)
    unified: dict[AnyDim, AnyDim] = {}  # a size of the inputs -> the size that replaces it
    while True:
        try:
            return convert(node)
        except RelvmShapeError as error:
            if error.unproven is None:
                raise
            del bindings[start:]
            if not unified and (broadcast := with_broadcast_inputs(node)) is not None:
                given, node, start = broadcast, broadcast, len(bindings)
                continue
            first, second = error.unproven
            sizes = _symbolic_sizes(node)
            if second not in sizes:
                first, second = second, first
            if second not in sizes or len(unified) == len(_symbolic_sizes(given)):  # as with n and n * n
                raise
            unified = {size: first if new == second else new for size, new in unified.items()} | {second: first}
            node = replace(given, inputs=[_cast_sizes(given, value, unified) for value in given.inputs])


def _symbolic_sizes(node: OnnxNode) -> set[AnyDim]:
    types = [value.type for value in node.inputs if isinstance(value, Expr)]
    shapes = [type_.shape or () for type_ in types if isinstance(type_, TensorType)]
    return {dim for shape in shapes for dim in shape if not isinstance(dim, int)}


def _cast_sizes(node: OnnxNode, value: Any, unified: Mapping[AnyDim, AnyDim]) -> Any:
    """Return an input with its sizes replaced as `unified` states.  A match_cast checks the new sizes at run time."""
    type_ = value.type if isinstance(value, Expr) else None
    if not isinstance(type_, TensorType) or type_.shape is None or unified.keys().isdisjoint(type_.shape):
        return value
    dims = tuple(unified.get(dim, dim) for dim in type_.shape)
    var = node.graph.var(value.name if isinstance(value, Var) else "x", TensorType(type_.dtype, dims))
    node.graph.bindings.append(MatchCast(var, value, node.here))
    return var
