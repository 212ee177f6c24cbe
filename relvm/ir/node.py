"""Base class of the IR nodes, and generic operations that visit the fields of a node.

`@node` makes a class a frozen dataclass that is compared by identity.  `@value_node` makes a class, such as a type, a
frozen dataclass that is compared by its fields.  The recursion depth of the functions below depends on the nesting
depth of a program, not on its length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, dataclass_transform

_Node = TypeVar("_Node", bound="Node")

_field_names: dict[type, tuple[str, ...]] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """Base class of IR nodes."""


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_Node]) -> type[_Node]:
    """Class decorator for nodes that are compared by identity: a node is equal only to itself."""
    return _register(dataclasses.dataclass(frozen=True, eq=False)(cls))


@dataclass_transform(frozen_default=True)
def value_node(cls: type[_Node]) -> type[_Node]:
    """Class decorator for nodes with value semantics: nodes of the class with equal fields are equal."""
    return _register(dataclasses.dataclass(frozen=True)(cls))


def _register(cls: type[_Node]) -> type[_Node]:
    # A field marked metadata={"derived": True} is not a part of the node: it is neither visited nor compared.
    _field_names[cls] = tuple(f.name for f in dataclasses.fields(cls) if not f.metadata.get("derived"))
    return cls


def fields_of(item: Node) -> tuple[str, ...]:
    """Return the names of a node's fields, in order.  Derived fields are left out."""
    return _field_names[type(item)]


def children(item: Node) -> list[Node]:
    """Return the child nodes of `item`, in field order."""
    found: list[Node] = []
    for name in _field_names[type(item)]:
        value = getattr(item, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)
    return found


def _collect(values: tuple, found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def map_children(function: Callable[[Any], Node], item: _Node) -> _Node:
    """Return `item` with `function` applied to each child node, or `item` itself if nothing changed."""
    changes = {}
    for name in _field_names[type(item)]:
        old = getattr(item, name)
        new = _map_value(function, old)
        if new is not old:
            changes[name] = new
    return dataclasses.replace(item, **changes) if changes else item


def _map_value(function: Callable[[Any], Node], value: Any) -> Any:
    if isinstance(value, Node):
        return function(value)
    if isinstance(value, tuple):
        mapped = []  # a plain loop, because a generator would need a stack frame for every level of nesting
        for part in value:
            mapped.append(function(part) if isinstance(part, Node) else _map_value(function, part))
        return value if all(a is b for a, b in zip(mapped, value, strict=True)) else tuple(mapped)
    return value


def walk(item: Node) -> Iterator[Node]:
    """Yield `item` and every node inside it, in pre-order, which is program order."""
    stack = [item]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))
