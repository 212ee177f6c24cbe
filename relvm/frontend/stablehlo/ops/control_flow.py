"""Calls, tuples and control flow."""

from __future__ import annotations

from functools import partial

from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.control_flow import choose, if_else, while_loop
from relvm.frontend.stablehlo.program import Block, Symbol, Value
from relvm.frontend.stablehlo.registry import Node, converts, refuses
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import Expr, Tuple, TupleItem
from relvm.ir.types import TensorType, TupleType, Type


@converts("func.call", "composite")
def _call(node: Node) -> tuple[Expr, ...]:
    """Calls the function.  A composite becomes a call of the function that decomposes it."""
    name = node.attribute("callee", node.attribute("decomposition"))
    name = name.name if isinstance(name, Symbol) else name
    if not isinstance(name, str):
        raise RelvmFormatError(f"the callee is {name!r}, expected the name of a function")
    return node.importer.call(name, node.operands)


@converts("tuple")
def _tuple(node: Node) -> Expr:
    return Tuple(tuple(node.operands), type=TupleType(tuple(operand.type for operand in node.operands)))


@converts("get_tuple_element")
def _get_tuple_element(node: Node) -> Expr:
    index = node.integer("index")
    type_ = node.operands[0].type
    if not isinstance(type_, TupleType) or not 0 <= index < len(type_.fields):
        raise RelvmFormatError(f"item {index} of {type_} does not exist")
    return TupleItem(node.operands[0], index, type=type_.fields[index])


def run_block(node: Node, block: Block, args: list[Expr]) -> list[Expr]:
    """Import a block with the given arguments, and return its results.

    The block can also use the values of the block that contains the node.
    """
    values: dict[Value, Expr] = {**node.values, **dict(zip(block.arguments, args, strict=True))}
    return node.importer.import_block(block, values)


def _as_results(node: Node, value: Expr) -> tuple[Expr, ...]:
    count = len(node.operation.results)
    if not count:
        return ()
    return (node.emit(value),) if count == 1 else node.items(node.emit(value))


@converts("if")
def _if(node: Node) -> tuple[Expr, ...]:
    node.expect_operands(1)
    then, orelse = (partial(run_block, node, node.block(i, 0), []) for i in (0, 1))
    return _as_results(node, if_else(node.importer.builder, node.operands[0], then, orelse))


@converts("case")
def _case(node: Node) -> tuple[Expr, ...]:
    """Runs the branch that the index selects, or the last one if the index is out of range."""
    node.expect_operands(1)
    branches = [partial(run_block, node, node.block(i, 0), []) for i in range(len(node.operation.regions))]
    if not branches:
        raise RelvmFormatError("expected at least one branch")
    return _as_results(node, choose(node.importer.builder, node.operands[0], branches))


@converts("while")
def _while(node: Node) -> tuple[Expr, ...]:
    """The loop becomes a tail-recursive function, which runs in constant stack space."""
    count = len(node.operands)
    condition, body = node.block(0, count), node.block(1, count)
    if not count:
        raise RelvmUnsupportedError("a loop without values never changes its condition")
    types: list[Type] = []
    for operand in node.operands:
        type_ = operand.type
        if isinstance(type_, TensorType) and (type_.shape is None or not all(isinstance(d, int) for d in type_.shape)):
            type_ = TensorType(type_.dtype, type_.shape, type_.rank)
        types.append(type_)
    names = [f"{argument.name or 'state'}_{i}" for i, argument in enumerate(body.arguments)]
    names = ["".join(c if c.isalnum() and c.isascii() else "_" for c in name) for name in names]
    names = [name if name[0].isalpha() or name[0] == "_" else f"_{name}" for name in names]

    def runs_again(*state: Expr) -> Expr:
        (go,) = run_block(node, condition, list(state))
        if go.type != TensorType(BOOL, ()):
            raise RelvmFormatError(f"the condition has type {go.type}, expected a tensor of i1 and rank 0")
        return go

    def iteration(*state: Expr) -> list[Expr]:
        results = run_block(node, body, list(state))
        if len(results) != count:
            raise RelvmFormatError(f"the body returns {counted(len(results), 'value')}, expected {count}")
        return [
            node.importer.with_shape(result, type_.shape)
            if isinstance(type_, TensorType) and type_.shape is not None
            else result
            for result, type_ in zip(results, types, strict=True)
        ]

    params = list(zip(names, types, strict=True))
    return _as_results(node, while_loop(node.importer.builder, node.operands, params, runs_again, iteration))


refuses(
    "communication between processes is not supported",
    *("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "cross-replica-sum"),
    *("collective_reduce", "reduce_scatter", "send", "recv", "infeed", "outfeed", "replica_id", "partition_id"),
    *("async_start", "async_done"),
)
refuses("tokens are not supported", "after_all", "create_token")
refuses("the specification does not define the operation; use dot_general", "einsum", "unary_einsum")
refuses("the specification does not define the operation; use gather", "torch_index_select")
