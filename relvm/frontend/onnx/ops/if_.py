"""Conversion of If to an If expression, whose branches can use the values of the enclosing graph.

If the condition is constant, only the branch taken is imported.  A branch with a node that always fails, for example
because its shapes are inconsistent, raises the error at run time if it is taken.  Operators need to know the ranks of
tensors.  If the branches return tensors of different ranks, the rest of the graph is therefore imported into each
branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relvm.errors import RelvmError, RelvmFormatError, RelvmTypeError, counted
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.failing_blocks import NODE_FAILURES, failing_block
from relvm.frontend.onnx.registry import MAX_RANK_SPLITS, OnnxNode, RankSplit, converts
from relvm.frontend.onnx.values import Value
from relvm.ir.dtypes import DType
from relvm.ir.expr import Block, Constant, Expr, If, TupleItem, constant
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType, TupleType, Type, join
from relvm.ir.value_ranges import range_of
from relvm.ops import equal, reshape


@converts("If")
def _if(node: OnnxNode) -> tuple[Any, ...]:
    cond = node.tensor(0)
    branches = node.attribute("then_branch"), node.attribute("else_branch")
    for branch in branches:
        if branch.input or len(branch.output) != len(node.proto.output):
            counts = f"{counted(len(branch.input), 'input')} and {counted(len(branch.output), 'output')}"
            outputs = counted(len(node.proto.output), "output")
            raise RelvmFormatError(f"a branch has {counts}, expected 0 inputs and {outputs}, as the node has")
    if isinstance(cond, Constant) and cond.value.size == 1:
        return _import_taken_branch(node.graph, branches[0 if cond.value.item() else 1])
    if isinstance(cond.type, TensorType) and cond.type.rank != 0:  # ONNX allows any tensor of one element
        cond = node.emit(reshape(cond, node.shape([])))
    then, orelse = _build_branches(node.graph, [partial(node.graph.import_subgraph, branch) for branch in branches])
    if node.graph.rank_splits < MAX_RANK_SPLITS and _ranks(then.type) != _ranks(orelse.type):
        raise RankSplit(cond, tuple(partial(_import_branch, branch) for branch in branches))
    return _add_if(node.graph, cond, then, orelse)


def _import_branch(branch: Any, graph: ImportContext) -> list[Value]:
    graph.initializers(branch)
    return graph.import_outputs(branch)


def _dtypes(type_: Type) -> list[DType | None]:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return [field.dtype if isinstance(field, TensorType) else None for field in fields]


def _ranks(type_: Type) -> list[int | None]:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return [field.rank if isinstance(field, TensorType) else None for field in fields]


def _import_taken_branch(graph: ImportContext, branch: Any) -> tuple[Value, ...]:
    """Import the branch of an If with a constant condition.  Return the outputs of the branch.

    The bindings of the branch are added to the enclosing block, so no If remains.
    """
    inner = graph.subgraph_context(branch)
    values = inner.import_outputs(branch)
    graph.bindings += inner.bindings
    graph.own_dims |= inner.own_dims
    return tuple(values)


def _add_if(graph: ImportContext, cond: Expr, then: Block, orelse: Block) -> tuple[Expr, ...]:
    """Add an If with the given condition and branches to the graph.  Return the values of the If."""
    type_ = join(then.type, orelse.type)
    if type_ is None or _dtypes(then.type) != _dtypes(orelse.type):
        raise RelvmTypeError(f"the branches return incompatible types: {then.type} and {orelse.type}")
    merged = graph.emit(If(cond, then, orelse, type=type_), "merged")
    if not isinstance(type_, TupleType):
        return (merged,)
    return tuple(TupleItem(merged, i, type=field) for i, field in enumerate(type_.fields))


def if_then_else(
    node: OnnxNode, cond: Expr, then: Callable[[OnnxNode], Expr], orelse: Callable[[OnnxNode], Expr]
) -> Expr:
    """Add an If to the graph of `node`, and return the value of the If.

    cond: the condition, a bool tensor of rank 0.
    then, orelse: functions that return the result of a branch.  Each is called with a copy of `node` whose graph is the
    context of the branch.
    """
    blocks = []
    for convert_branch in (then, orelse):
        inner = node.graph.nested_context()
        blocks.append(inner.finish_block([inner.emit(convert_branch(replace(node, graph=inner)), "way")]))
    return _add_if(node.graph, cond, *blocks)[0]


def unless_empty(node: OnnxNode, size: AnyDim, convert: Callable[[OnnxNode], Expr]) -> Expr:
    """Return the result of `convert`, or input 0 if `size` is 0 and the result therefore has no elements.

    node: a node whose output has the type of its input 0, whose shape is known.
    size: a product of sizes of input 0.
    convert: see `if_then_else`.
    """
    if size == 0:
        return node.tensor(0)
    if range_of(size, {}).low > 0:
        return convert(node)
    is_empty = node.emit(equal(node.graph.integers((size,)), constant(np.array([0]))))
    cond = node.emit(reshape(is_empty, node.shape([])))
    result = if_then_else(node, cond, lambda inner: inner.tensor(0), convert)
    return node.graph.with_shape(result, node.type(0).known_shape)


def import_into_branches(
    graph: ImportContext, split: RankSplit, outputs: list[str], nodes: list[Any], names: list[str]
) -> list[Value]:
    """Import the rest of a graph into both branches of an If.  Return the values with the given names.

    split: the exception raised for the current node, whose outputs have different ranks in the two branches.
    outputs: the names of the outputs of the current node.
    nodes: the nodes after the current node.
    names: the names of the values to return.
    """

    def build_branch(import_node: Callable[[ImportContext], list[Value]]) -> Block:
        inner = graph.nested_context()
        inner.rank_splits += 1
        try:
            values = import_node(inner)
        except RankSplit as nested:  # the ranks depend on another condition, too
            return inner.finish_block(import_into_branches(inner, nested, outputs, nodes, names))
        inner.values.update(zip(outputs, values, strict=True))
        return inner.finish_block(inner.import_nodes(nodes, names))

    then, orelse = _build_branches(graph, [partial(build_branch, import_node) for import_node in split.branches])
    return [graph.emit(value, "merged") for value in _add_if(graph, split.cond, then, orelse)]


def _build_branches(graph: ImportContext, builders: list[Callable[[], Block]]) -> tuple[Block, ...]:
    """Build both blocks of an If.

    If a node in one of the blocks fails whenever it runs, replace the block by one that raises the error at run time.
    Often such a block never runs, because its condition is false for the actual sizes.  If both blocks fail, raise the
    first error now.

    builders: the functions that build the blocks.
    """
    blocks: list[Block | RelvmError] = []
    for build in builders:
        try:
            blocks.append(build())
        except NODE_FAILURES as error:
            blocks.append(error)
    good = [block for block in blocks if isinstance(block, Block)]
    failed = [block for block in blocks if isinstance(block, RelvmError)]
    if not good:
        raise failed[0]
    return tuple(block if isinstance(block, Block) else failing_block(graph, block, good[0].type) for block in blocks)
