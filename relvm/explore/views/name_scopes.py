"""Grouping of the items of a graph by hierarchical names of ONNX nodes, such as /encoder/layer.0/attention/MatMul."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from relvm.data_classes import dataclass
from relvm.errors import counted
from relvm.explore.draw.graph import Item, all_items
from relvm.ir.expr import Binding, Block, Fused

Scope = tuple[str, ...]

_NODE = re.compile(r": node '(.*)' \(")  # part of the source location of a value from an ONNX model


@dataclass
class _ScopeContents:
    """The contents of a name scope.

    contents: the items and the nested scopes, in order.  The key of an item is its index, and that of a scope is its
    name.
    """

    contents: dict[object, Item | _ScopeContents] = field(default_factory=dict)


def group_by_scope(items: tuple[Item, ...], prefix: object) -> tuple[Item, ...]:
    """Put a box around the items of each name scope.  Return the resulting items.

    The name scope of an item comes from the hierarchical name of its ONNX node: the scope of /encoder/layer.0/MatMul is
    /encoder/layer.0.  A kernel that computes operators of several scopes belongs to the innermost scope that contains
    all these operators.  A scope gets no box if the box would have only one item, or if all items with a scope are
    inside this scope.

    Parameters
    ----------
    items
        The items of a function.
    prefix
        The first component of the keys of the boxes.  It makes the keys unique in a graph of several functions.
    """
    scopes = [_scope_of(item) for item in items]
    shared = _common_scope([scope for scope in scopes if scope is not None])
    root = _ScopeContents()
    for number, item in enumerate(items):
        group, scope = root, scopes[number] or ()
        for length in range(len(shared), len(scope)):
            inner = group.contents.setdefault(scope[: length + 1], _ScopeContents())
            assert isinstance(inner, _ScopeContents)
            group = inner
        group.contents[number] = item
    return _boxes(root, len(shared), prefix)


def _boxes(group: _ScopeContents, depth: int, prefix: object) -> tuple[Item, ...]:
    found: list[Item] = []
    for scope, content in group.contents.items():
        if isinstance(content, Item):
            found.append(content)
            continue
        assert isinstance(scope, tuple)
        inside = _boxes(content, len(scope), prefix)
        if len(inside) == 1:
            found.extend(inside)
            continue
        count = sum(not each.inside for each in all_items(inside))
        found.append(Item((prefix, scope), "/".join(scope[depth:]), "scope", counted(count, "value"), inside=inside))
    return tuple(found)


def _scope_of(item: Item) -> Scope | None:
    """Return the name scope of an item, or None if the item comes from no ONNX node with a hierarchical name."""
    match item.binding:
        case Binding(value=Fused(Block() as body)):
            scopes = [_scope(each.var.origin) for each in body.bindings]
            return _common_scope([scope for scope in scopes if scope is not None]) if any(scopes) else None
        case Binding(var=var):
            return _scope(var.origin)
    return None


def _scope(origin: str) -> Scope | None:
    found = _NODE.search(origin)
    names = [part for part in found[1].split("/") if part] if found else []
    return tuple(names[:-1]) if len(names) > 1 else None


def _common_scope(scopes: Sequence[Scope]) -> Scope:
    """Return the innermost scope that contains all of `scopes`."""
    if not scopes:
        return ()
    low, high = min(scopes), max(scopes)
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:length]
