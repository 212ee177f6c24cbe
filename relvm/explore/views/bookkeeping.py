"""Bookkeeping in dataflow graphs: values that compute no tensor, such as sizes, checks and the items of tuples.

The page of a graph hides these items at first.  Edges then lead from the inputs of a hidden item to its users.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace

import networkx as nx

from relvm.explore.draw.graph import Arrow, Graph, Item, all_items
from relvm.ir.expr import (
    Binding,
    BuiltinCall,
    Call,
    Constant,
    DimValue,
    DTypeValue,
    Expr,
    If,
    MatchCast,
    Null,
    OpCall,
    PackedCall,
    Prim,
    PrimCall,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.types import VOID, PrimType, ShapeType, TensorType, Type
from relvm.tables import BUILTINS

_BUILTIN_COSTS = {row.name: row.cost for row in BUILTINS}


def _is_size(type_: Type) -> bool:
    return isinstance(type_, PrimType | ShapeType)


def _computes_size(value: Expr) -> bool:
    return _is_size(value.type)


def _is_check(value: Expr) -> bool:
    """Return whether a builtin only checks its arguments: it has no result, and does a constant amount of work."""
    return isinstance(value, BuiltinCall) and value.type == VOID and _BUILTIN_COSTS[value.name] == "CONSTANT"


def _always(_: Expr) -> bool:
    return True


# The kinds of expressions that are bookkeeping, each with the condition under which it is.  Kinds that are not listed,
# such as calls of functions and of the host, never are.
_RULES: tuple[tuple[type | tuple[type, ...], Callable[[Expr], bool]], ...] = (
    ((Constant, Prim, DimValue, String, DTypeValue, Null), _always),  # constants
    ((Var, Tuple, TupleItem), _always),  # other names of values, and the packing and unpacking of several values
    (Shape, _always),
    (PrimCall, _always),  # arithmetic of sizes
    (BuiltinCall, _is_check),
    ((OpCall, BuiltinCall), _computes_size),
)


def is_bookkeeping(binding: Binding | MatchCast) -> bool:
    """Return whether a binding computes no tensor, by the kind and the type of its value."""
    if isinstance(binding, MatchCast):
        return True
    return any(isinstance(binding.value, kinds) and holds(binding.value) for kinds, holds in _RULES)


def mark_size_tensors(graph: Graph) -> Graph:
    """Return the graph in which tensors that are only used to compute sizes are bookkeeping, too.

    ONNX models compute the shape of a reshape in integer tensors of rank 0 or 1.  Such a tensor is bookkeeping if all
    its users are, and at least one of them computes a size.
    """
    items = {item.key: item for item in all_items(graph.items)}
    users: dict[Hashable, list[Hashable]] = {}
    for arrow in graph.arrows:
        users.setdefault(arrow.source, []).append(arrow.target)
    sizes = {key for key, item in items.items() if item.is_bookkeeping and _is_size_binding(item)}
    box_of = {inner.key: item.key for item in items.values() if item.kind == "group" for inner in item.inside}
    waiting = [arrow.source for arrow in graph.arrows if arrow.target in sizes]
    found: set[Hashable] = set()
    sources = _sources_by_target(graph.arrows)
    while waiting:
        key = waiting.pop()
        item = items[key]
        if key in found or item.is_bookkeeping or not _is_size_tensor(item):
            continue
        if all(box_of.get(user, user) in found | sizes for user in users.get(key, ())):
            found.add(key)
            inner = {key, *(each.key for each in item.inside)}
            waiting.extend(source for each in inner for source in sources.get(each, ()))

    def marked(item: Item) -> Item:
        return replace(
            item, is_bookkeeping=item.is_bookkeeping or item.key in found, inside=tuple(map(marked, item.inside))
        )

    return replace(graph, items=tuple(map(marked, graph.items))) if found else graph


def _sources_by_target(arrows: Iterable[Arrow]) -> dict[Hashable, list[Hashable]]:
    found: dict[Hashable, list[Hashable]] = {}
    for arrow in arrows:
        found.setdefault(arrow.target, []).append(arrow.source)
    return found


def _is_size_binding(item: Item) -> bool:
    return isinstance(item.binding, Binding) and _is_size(item.binding.var.type)


def _is_size_tensor(item: Item) -> bool:
    if not isinstance(item.binding, Binding) or isinstance(item.binding.value, If | Call | PackedCall):
        return False
    type_ = item.binding.var.type
    return (
        isinstance(type_, TensorType)
        and type_.dtype is not None
        and type_.dtype.is_integer
        and type_.rank is not None
        and type_.rank <= 1
    )


def hide_bookkeeping(graph: Graph) -> Graph:
    """Return the graph without bookkeeping.  Edges lead from the inputs of a removed item to its users.

    If only a size leads from the source of such an edge to its target, the edge is left out where other edges already
    lead there, directly or not.  A box without other contents is removed, too.
    """
    hidden = bookkeeping_keys(graph)
    if not hidden:
        return graph
    kept = {item.key for item in all_items(graph.items)} - hidden
    arrows = {arrow: None for arrow in graph.arrows if arrow.source in kept and arrow.target in kept}
    arrows |= dict.fromkeys(_bypasses(graph, hidden, list(arrows)))
    return replace(graph, items=_visible(graph.items, hidden), arrows=tuple(arrows))


def bookkeeping_keys(graph: Graph) -> set[Hashable]:
    """Return the keys of the items that `hide_bookkeeping` removes.

    If a graph contains nothing but bookkeeping, inputs and results, none of them is removed.
    """
    hidden = {item.key for item in _hidden(graph.items)}
    rest = (item for item in all_items(graph.items) if item.key not in hidden)
    return hidden if any(item.kind not in ("end", "function") for item in rest) else set()


def _hidden(items: tuple[Item, ...]) -> Iterator[Item]:
    """Yield the items that are hidden: bookkeeping, boxes that contain only bookkeeping, and all that is inside."""
    for item in items:
        if item.is_bookkeeping or (item.inside and _contains_only_bookkeeping(item)):
            yield from all_items((item,))
        else:
            yield from _hidden(item.inside)


def _contains_only_bookkeeping(item: Item) -> bool:
    if not item.inside or item.is_bookkeeping:
        return item.is_bookkeeping
    return all(map(_contains_only_bookkeeping, item.inside))


def _visible(items: tuple[Item, ...], hidden: set[Hashable]) -> tuple[Item, ...]:
    return tuple(replace(item, inside=_visible(item.inside, hidden)) for item in items if item.key not in hidden)


def _bypasses(graph: Graph, hidden: set[Hashable], arrows: list[Arrow]) -> Iterator[Arrow]:
    """Yield the edges that replace paths through hidden items.

    arrows: the edges between visible items.
    """
    items = list(all_items(graph.items))
    # The operators inside the box of a kernel are between its inputs and the value of the box.
    last = [(each.key, item.key) for item in items if item.kind == "group" for each in item.inside]
    edges = nx.DiGraph([*((arrow.source, arrow.target) for arrow in graph.arrows), *last])
    order = list(nx.topological_sort(edges))
    bit = {key: 1 << number for number, key in enumerate(order)}
    sources: dict[Hashable, list[Hashable]] = {}  # between visible items
    for source, target in [*((arrow.source, arrow.target) for arrow in arrows), *last]:
        sources.setdefault(target, []).append(source)
    passes_value = {item.key for item in items if _passes_value(item)}
    before: dict[Hashable, int] = {}  # for each visible item, the set of items from which edges lead to it, as bits
    # For each hidden item, the visible items that it is computed from, and whether it contains their values.
    behind: dict[Hashable, dict[Hashable, bool]] = {}
    for key in order:
        through: dict[Hashable, bool] = {}
        for source in edges.pred[key]:
            if source in hidden:
                for each, is_value in behind[source].items():
                    through[each] = through.get(each, False) or is_value
            elif key in hidden:
                through[source] = True
        if key in hidden:
            behind[key] = {each: is_value and key in passes_value for each, is_value in through.items()}
            continue
        reached = 0
        for source in [*sources.get(key, ()), *(each for each, is_value in through.items() if is_value)]:
            reached |= bit[source] | before[source]
        # Later sources first, because earlier ones may lead to them.
        for source in sorted(through, key=lambda each: bit[each], reverse=True):
            if through[source] or not reached & bit[source]:
                reached |= bit[source] | before[source]
                yield Arrow(source, key)
        before[key] = reached


def _passes_value(item: Item) -> bool:
    """Return whether an item contains the values of its inputs, such as a cast or a tuple."""
    match item.binding:
        case MatchCast():
            return True
        case Binding(value=Var() | Tuple() | TupleItem()):
            return True
    return False
