"""Call graph of an entry function, and a check that all recursion needs only bounded memory."""

from __future__ import annotations

from collections.abc import Mapping

from relvm.aot.lower.unsupported import Refusals
from relvm.data_classes import dataclass
from relvm.directed_graph import DirectedGraph
from relvm.ir.expr import Function, If
from relvm.ir.visitor import function_references, inner_blocks, tail_calls


@dataclass(frozen=True)
class RecursiveGroup:
    """A set of functions that call each other in tail position.

    head: the function with which the execution of the group begins.  It is the entry function, or a member that a
    function outside the group calls.
    """

    head: str
    members: frozenset[str]


def call_order(functions: Mapping[str, Function], entry: str, refusals: Refusals) -> list[RecursiveGroup]:
    """Return the recursive groups of the entry function and of all functions that it uses, callers before callees.

    Mutually recursive functions form one group.  A function without recursion forms a group of its own.  A group has
    one or more heads: the entry function, and members that functions outside the group call.  The result contains one
    RecursiveGroup for each head.

    A recursive call that is not in tail position is added to `refusals`, because the depth of the stack has no bound.
    """
    graph = _graph(functions, entry)
    order = list(functions).index
    component_of = {name: members for members in graph.components() for name in members}
    edges = ((component_of[caller], component_of[callee]) for caller, callee in graph.edges())
    between = (edge for edge in edges if edge[0] != edge[1])
    condensed = DirectedGraph(component_of.values(), between)
    groups = []
    for members in condensed.topological_order(key=lambda members: min(map(order, members))):
        for name in sorted(members, key=order):
            _expect_tail_calls(functions[name], members, refusals)
        called = {callee for caller, callee in graph.edges() if caller not in members} | {entry}
        groups += [RecursiveGroup(head, members) for head in sorted(members & called, key=order)]
    return groups


def _graph(functions: Mapping[str, Function], entry: str) -> DirectedGraph[str]:
    graph = DirectedGraph([entry])
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        for used in function_references(functions[name].body):
            if used not in graph:
                waiting.append(used)
            graph.add_edge(name, used)
    return graph


def _expect_tail_calls(function: Function, members: frozenset[str], refusals: Refusals) -> None:
    """Check that a function uses the `members` of its recursive group only in tail calls.

    Other uses are added to `refusals`.
    """
    tails = set(map(id, tail_calls(function.block)))
    blocks = [function.block]
    while blocks:
        for binding in blocks.pop().bindings:
            value = binding.value
            if isinstance(value, If):
                blocks += inner_blocks(value)
            elif id(value) not in tails and (used := members & set(function_references(value))):
                names = ", ".join(sorted(used))
                what = f"recursion other than tail calls: {function.name} must call {names} only as its last step"
                refusals.add(function.name, binding.var.name, what, binding.var.origin)
