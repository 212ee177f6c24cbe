"""Control flow: If becomes an If whose branches see the values around them.

Of an If on a known condition only that branch is imported.  A branch whose shapes cannot be right fails when it is
taken.  Where the branches give tensors of different ranks, which operators need to know, all that follows becomes a
part of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmShapeError, RelvmTypeError
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.registry import MAX_RANK_SPLITS, OnnxNode, RankSplit, converts
from relvm.frontend.onnx.values import Value
from relvm.ir.dtypes import DType
from relvm.ir.expr import Block, Constant, Expr, If, MatchCast, Null, TupleItem
from relvm.ir.types import TensorType, TupleType, Type, join
from relvm.ops import reshape


@converts("If")
def _if(node: OnnxNode) -> tuple[Any, ...]:
    cond = node.tensor(0)
    branches = node.attribute("then_branch"), node.attribute("else_branch")
    for branch in branches:
        if branch.input or len(branch.output) != len(node.proto.output):
            counts = f"{len(branch.input)} inputs and {len(branch.output)} outputs"
            raise RelvmFormatError(
                f"a branch with {counts}, expected none and {len(node.proto.output)} as the node has"
            )
    if isinstance(cond, Constant) and cond.value.size == 1:
        return _taken(node.graph, branches[0 if cond.value.item() else 1])
    if isinstance(cond.type, TensorType) and cond.type.rank != 0:  # ONNX allows any tensor of one element
        cond = node.emit(reshape(cond, node.shape([])))
    then, orelse = _both(node.graph, [partial(node.graph.subgraph, branch) for branch in branches], RelvmShapeError)
    if node.graph.forks < MAX_RANK_SPLITS and _ranks(then.type) != _ranks(orelse.type):
        raise RankSplit(cond, tuple(partial(_follow, branch) for branch in branches))
    return _merged(node.graph, cond, then, orelse)


def _follow(branch: Any, graph: ImportContext) -> list[Value]:
    graph.initializers(branch)
    return graph.outputs(branch)


def _dtypes(type_: Type) -> list[DType | None]:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return [field.dtype if isinstance(field, TensorType) else None for field in fields]


def _ranks(type_: Type) -> list[int | None]:
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    return [field.rank if isinstance(field, TensorType) else None for field in fields]


def _taken(graph: ImportContext, branch: Any) -> tuple[Value, ...]:
    """The outputs of a branch that is known to be taken; its bindings join those around it."""
    inner = graph.inner(branch)
    values = inner.outputs(branch)
    graph.bindings += inner.bindings
    graph.own_dims |= inner.own_dims
    return tuple(values)


def _merged(graph: ImportContext, cond: Expr, then: Block, orelse: Block) -> tuple[Expr, ...]:
    """The values of an If."""
    type_ = join(then.type, orelse.type)
    if type_ is None or _dtypes(then.type) != _dtypes(orelse.type):
        raise RelvmTypeError(f"the branches give {then.type} and {orelse.type}")
    merged = graph.emit(If(cond, then, orelse, type=type_), "merged")
    if not isinstance(type_, TupleType):
        return (merged,)
    return tuple(TupleItem(merged, i, type=field) for i, field in enumerate(type_.fields))


def if_then_else(
    node: OnnxNode, cond: Expr, then: Callable[[OnnxNode], Expr], orelse: Callable[[OnnxNode], Expr]
) -> Expr:
    """What the one function of the node gives where a bool of rank 0 holds, else what the other does."""
    blocks = []
    for way in (then, orelse):
        inner = node.graph.inner_block()
        blocks.append(inner.block([inner.emit(way(replace(node, graph=inner)), "way")]))
    return _merged(node.graph, cond, *blocks)[0]


def parted(
    graph: ImportContext, fork: RankSplit, outputs: list[str], nodes: list[Any], names: list[str]
) -> list[Value]:
    """The values of those names at the end: an If, each way of it followed by the nodes after it.

    outputs: what the values of a way are called.
    """

    def followed(way: Callable[[ImportContext], list[Value]]) -> Block:
        inner = graph.inner_block()
        inner.forks += 1
        inner.values.update(zip(outputs, way(inner), strict=True))
        return inner.block(inner.rest(nodes, names))

    errors = RelvmArgumentError, RelvmShapeError, RelvmTypeError
    then, orelse = _both(graph, [partial(followed, way) for way in fork.ways], *errors)
    return [graph.emit(value, "merged") for value in _merged(graph, fork.cond, then, orelse)]


def _both(graph: ImportContext, makers: list[Callable[[], Block]], *errors: type[RelvmError]) -> tuple[Block, ...]:
    """What the makers make.

    A way with which the shapes of its nodes cannot be right fails when it is taken, which exporters rule out by the
    condition, or who fixes sizes by what is given; both cannot be so.   errors: those that say that.
    """
    blocks: list[Block | RelvmError] = []
    for make in makers:
        try:
            blocks.append(make())
        except errors as error:
            blocks.append(error)
    good = [block for block in blocks if isinstance(block, Block)]
    if not good:
        raise blocks[0]
    return tuple(block if isinstance(block, Block) else _failing(graph, block, good[0].type) for block in blocks)


def _failing(graph: ImportContext, error: RelvmError, type_: Type) -> Block:
    """A block that ends with that error where a value of the type is expected."""
    never = graph.var("never", type_)
    return Block((MatchCast(never, Null(), str(error)),), never, type=type_)
