"""Base class of the IR nodes, and generic operations that visit the fields of a node.

`@node` makes a class a frozen dataclass that is compared by identity.  `@value_node` makes a class a frozen dataclass
that is compared by its fields.  Types, for example, are compared by their fields.  The recursion depth of the functions
below depends on the nesting depth of a program, not on its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, ClassVar, TypeVar, dataclass_transform

from relvm.data_classes import dataclass
from relvm.display import Displayed, html_lines, short_text

_Node = TypeVar("_Node", bound="Node")

_field_names: dict[type, tuple[str, ...]] = {}
_printers: list[Callable[[Any, bool], str]] = []


def register_printer(printer: Callable[[Any, bool], str]) -> None:
    """Set the function that prints nodes and kernels.

    printer: a function that returns text.  Its arguments are the node or kernel, and whether to elide long constants.

    The function is registered here because this module cannot import the printer, which itself imports this module.
    """
    _printers[:] = [printer]


class Printed(Displayed):
    """Base class of objects that have a text form.  `str` returns the complete text, `repr` its first and last
    lines."""

    __slots__ = ()

    def __str__(self) -> str:
        return _printers[0](self, False)

    def __repr__(self) -> str:
        return short_text(self._elided())

    def _repr_html_(self) -> str:
        return html_lines(self._elided())

    def _elided(self) -> str:
        try:
            return _printers[0](self, True)
        except Exception as error:  # a node that breaks the rules of the IR, but appears in a message
            return f"<{type(self).__name__} that cannot be printed: {type(error).__name__}: {error}>"


@dataclass(frozen=True, eq=False, repr=False)
class Node(Printed):
    """Base class of IR nodes."""

    _children: ClassVar[tuple[Node, ...] | None] = None  # the cache of `children`


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_Node]) -> type[_Node]:
    """A class decorator for nodes that are compared by identity: a node is equal only to itself."""
    return _register(dataclass(frozen=True, eq=False, repr=False)(cls))


@dataclass_transform(frozen_default=True)
def value_node(cls: type[_Node]) -> type[_Node]:
    """A class decorator for nodes that are compared by value: two nodes of the class are equal if their fields are
    equal."""
    return _register(dataclass(frozen=True)(cls))


def _register(cls: type[_Node]) -> type[_Node]:
    # A field marked metadata={"derived": True} is not a part of the node: it is neither visited nor compared.
    _field_names[cls] = tuple(f.name for f in fields(cls) if not f.metadata.get("derived"))
    return cls


def fields_of(item: Node) -> tuple[str, ...]:
    """Return the names of a node's fields, in order.  Fields marked as derived, such as origins (source locations), are
    omitted."""
    return _field_names[type(item)]


def children(item: Node) -> tuple[Node, ...]:
    """Return the child nodes of `item`, in field order.

    The result is cached in the node, because passes visit a node many times.
    """
    kept = item._children
    if kept is None:
        found: list[Node] = []
        for name in _field_names[type(item)]:
            value = getattr(item, name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                _collect(value, found)
        kept = tuple(found)
        object.__setattr__(item, "_children", kept)
    return kept


def _collect(values: tuple, found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def map_children(function: Callable[[Any], Node], item: _Node) -> _Node:
    """Return `item` with `function` applied to each child node, or `item` itself if nothing changed."""
    old = children(item)
    new = []  # a plain loop, because a generator would need a stack frame for every level of nesting
    changed = False
    for child in old:
        mapped = function(child)
        new.append(mapped)
        changed = changed or mapped is not child
    return _with_children(item, iter(new)) if changed else item


def _with_children(item: _Node, new: Iterator[Node]) -> _Node:
    """Return a copy of `item` with the nodes of `new` as its children, in field order."""
    changes = {}
    for name in _field_names[type(item)]:
        value = getattr(item, name)
        if isinstance(value, Node | tuple):
            changes[name] = _replace_nodes(value, new)
    return replace(item, **changes)


def _replace_nodes(value: Any, new: Iterator[Node]) -> Any:
    """Replace each node in `value`, a node or a nested tuple of nodes, by the next node of `new`."""
    if isinstance(value, Node):
        return next(new)
    return tuple(_replace_nodes(part, new) for part in value) if isinstance(value, tuple) else value


def walk(item: Node) -> Iterator[Node]:
    """Yield `item` and every node inside it, in preorder, which is program order."""
    stack = [item]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))
