"""Which functions an entry calls, and whether they end in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import networkx as nx

from relvm.aot.lower.unsupported import refuse
from relvm.ir.expr import Block, Call, Expr, Function, FunctionRef, If
from relvm.ir.node import walk


@dataclass(frozen=True)
class RecursiveGroup:
    """A function that others call, and those that it goes on with: functions that end with calls of each other."""

    head: str
    members: frozenset[str]


def call_order(functions: Mapping[str, Function], entry: str) -> list[RecursiveGroup]:
    """The entry and all that it uses, callers before callees.

    Of functions that call each other, those that are called from elsewhere are heads; a function that calls none which
    calls it is a loop of one.

    Raises
    ------
    RelvmUnsupportedError
        A call needs a stack whose depth is not known: recursion, but for functions that end with the calls.
    """
    graph = _graph(functions, entry)
    order = list(functions).index
    condensed = nx.condensation(graph)
    loops = []
    for number in nx.lexicographical_topological_sort(
        condensed, key=lambda n: min(map(order, condensed.nodes[n]["members"]))
    ):
        members = frozenset(condensed.nodes[number]["members"])
        for name in sorted(members, key=order):
            _expect_tail_calls(functions[name], members)
        called = {callee for caller, callee in graph.edges if caller not in members} | {entry}
        loops += [RecursiveGroup(head, members) for head in sorted(members & called, key=order)]
    return loops


def _graph(functions: Mapping[str, Function], entry: str) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_node(entry)
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        for used in _used(functions[name].body):
            if used not in graph:
                waiting.append(used)
            graph.add_edge(name, used)
    return graph


def _used(expr: Expr) -> Iterator[str]:
    """The functions that an expression names."""
    return (part.name for part in walk(expr) if isinstance(part, FunctionRef))


def _expect_tail_calls(function: Function, members: frozenset[str]) -> None:
    """Refuses uses of a loop's members other than calls that the function ends with."""
    tails = set(map(id, _tail_calls(function.block)))
    blocks = [function.block]
    while blocks:
        for binding in blocks.pop().bindings:
            value = binding.value
            if isinstance(value, If):
                blocks += [part for part in (value.then, value.orelse) if isinstance(part, Block)]
            elif id(value) not in tails and (used := members & set(_used(value))):
                names = ", ".join(sorted(used))
                what = f"recursion without a bound: {names} is used other than by a call that {function.name} ends with"
                refuse(function.name, binding.var.name, what, binding.var.origin)


def _tail_calls(block: Block) -> Iterator[Call]:
    """The calls whose result is the block's own."""
    if not block.bindings or block.bindings[-1].var is not block.result:
        return
    match block.bindings[-1].value:
        case Call() as call:
            yield call
        case If(_, Block() as then, Block() as orelse):
            yield from _tail_calls(then)
            yield from _tail_calls(orelse)
