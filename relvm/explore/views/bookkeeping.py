"""Bookkeeping in dataflow graphs: bindings that compute sizes, check values, or pack and unpack tuples.

The page of a graph hides these items at first.  Edges then lead from the inputs of a hidden item to its users.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace

from relvm.directed_graph import DirectedGraph
from relvm.explore.draw.graph import Arrow, Graph, Item, all_items
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    DimValue,
    DTypeValue,
    Expr,
    Fused,
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
from relvm.ir.operator import Effect
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
    """Return whether a binding computes no tensor, by the kind and the type of its value.

    `mark_size_tensors` adds tensors that belong to the computation of sizes.
    """
    if isinstance(binding, MatchCast):
        return True
    return any(isinstance(binding.value, kinds) and holds(binding.value) for kinds, holds in _RULES)


def mark_size_tensors(graph: Graph) -> Graph:
    """Return the graph in which tensors that belong to the computation of sizes are bookkeeping, too.

    ONNX models compute sizes in integer tensors.  There are two kinds of such tensors:

    - Integer and boolean tensors that are computed only from sizes and constants, such as the indices of a slice, and
      constants that an operator repeats or moves, such as padding.
    - Integer tensors of rank 0 or 1 of which all users compute sizes, such as a length that the model computes.
    """
    items = {item.key: item for item in all_items(graph.items)}
    box_of = {inner.key: item.key for item in items.values() if item.kind == "group" for inner in item.inside}
    sources = _sources_of_values(graph, box_of)
    sizes: set[Hashable] = set()
    for key, item in items.items():  # in topological order
        if key not in box_of and _is_size_if(item, all(source in sizes for source in sources.get(key, ()))):
            sizes.add(key)
    users: dict[Hashable, list[Hashable]] = {}
    for target, inputs in sources.items():
        for source in inputs:
            users.setdefault(source, []).append(target)
    waiting = [source for key in sizes for source in sources.get(key, ())]
    while waiting:
        key = waiting.pop()
        if key in sizes or not _is_short_integers(items[key]) or not all(user in sizes for user in users[key]):
            continue
        sizes.add(key)
        waiting.extend(sources.get(key, ()))

    def marked(item: Item) -> Item:
        is_bookkeeping = item.is_bookkeeping or item.key in sizes
        return replace(item, is_bookkeeping=is_bookkeeping, inside=tuple(map(marked, item.inside)))

    return replace(graph, items=tuple(map(marked, graph.items)))


def _sources_of_values(graph: Graph, box_of: Mapping[Hashable, Hashable]) -> dict[Hashable, list[Hashable]]:
    """Return the values from which each value is computed.  The operators inside a kernel count as the kernel."""
    found: dict[Hashable, list[Hashable]] = {}
    for arrow in graph.arrows:
        source, target = box_of.get(arrow.source, arrow.source), box_of.get(arrow.target, arrow.target)
        if source != target:
            found.setdefault(target, []).append(source)
    return found


def _is_size_if(item: Item, from_sizes: bool) -> bool:
    """Return whether an item is a size, or belongs to the computation of sizes.

    from_sizes: whether it is computed only from sizes and constants.
    """
    if not isinstance(item.binding, Binding | MatchCast):
        return False
    if item.is_bookkeeping and _is_size(item.binding.var.type):
        return True
    if not from_sizes:
        return False
    if item.is_bookkeeping:
        return True
    match item.binding:
        case Binding(value=OpCall(op)):
            ops = [op]
        case Binding(value=Fused(Block(bindings))):
            ops = [each.value.op for each in bindings if isinstance(each.value, OpCall)]
        case _:
            return False
    type_ = item.binding.var.type
    is_index = isinstance(type_, TensorType) and type_.dtype is not None and not type_.dtype.is_float
    return all(op.effect is Effect.PURE and (is_index or op.moves) for op in ops)


def _is_short_integers(item: Item) -> bool:
    """Return whether an item computes an integer tensor of rank 0 or 1, other than by an if or a call."""
    if not isinstance(item.binding, Binding) or isinstance(item.binding.value, If | Call | PackedCall):
        return False
    type_ = item.binding.var.type
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.rank is None:
        return False
    return type_.dtype.is_integer and type_.rank <= 1


def hide_bookkeeping(graph: Graph) -> Graph:
    """Return the graph without bookkeeping.  Edges lead from the inputs of a removed item to its users.

    Such an edge is left out if only a size passes along it, and other edges already lead from its source to its target,
    directly or through other items.  A box that contains only bookkeeping is removed, too.
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
    edges = DirectedGraph(edges=[*((arrow.source, arrow.target) for arrow in graph.arrows), *last])
    order = edges.topological_order()
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
        for source in edges.predecessors[key]:
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
    """Return whether an item, such as a cast or a tuple, contains the values of its inputs."""
    match item.binding:
        case MatchCast():
            return True
        case Binding(value=Var() | Tuple() | TupleItem()):
            return True
    return False
