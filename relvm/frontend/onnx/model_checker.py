"""Checks of the structure of an ONNX model, independent of its operators: versions, unique names, nesting depth.

Source: onnx/docs/IR.md.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from relvm.errors import RelvmFormatError, RelvmUnsupportedError, shortened
from relvm.frontend.onnx.node_schemas import newest_opsets
from relvm.frontend.onnx_messages import Message

DEEPEST = 50  # limit on the nesting depth of graphs, and of function calls
NEWEST_IR_VERSION = 14  # the version of onnx.proto that csrc/tables/onnx_messages.def describes
_NEWEST_OPSET = 2**31 - 1  # of any domain; the onnx package stores opsets in an int
_MAX_NODES = 10**5  # nodes allowed after inlining, in addition to a few times the nodes of the model
_GIVEN = "the graph"  # the description of what defines inputs and initializers, for messages

Key = tuple[str, str, str]  # identifies a function: domain, name, overload


def plain_domain(domain: str) -> str:
    """Return the canonical name of an operator domain: "" for ONNX's own domain, also if it is named "ai.onnx"."""
    return "" if domain == "ai.onnx" else domain


def opset_versions(imports: Iterable[Any], here: str) -> dict[str, int]:
    """Return a dict from each imported domain to its opset version.

    imports: OperatorSetIdProtos.   here: the beginning of error messages.

    Raises
    ------
    RelvmFormatError
        A version is out of range, or a domain has two versions.
    RelvmUnsupportedError
        The model imports a version of one of ONNX's own domains that is newer than those that relvm knows.
    """
    found: dict[str, int] = {}
    for entry in imports:
        domain, version = plain_domain(entry.domain), entry.version
        name = shortened(domain) or "ai.onnx"
        newest = newest_opsets().get(domain)
        if not 1 <= version <= _NEWEST_OPSET:
            raise RelvmFormatError(f"{here}: opset {version} of {name}, expected an integer of 1 to {_NEWEST_OPSET}")
        if found.setdefault(domain, version) != version:
            raise RelvmFormatError(f"{here}: opset_import contains both {found[domain]} and {version} for {name}")
        if newest is not None and version > newest:
            raise RelvmUnsupportedError(
                f"{here}: opset {version} of {name} is not supported: relvm supports up to {newest}"
            )
    return found


def expect_model(model: Any, place: str) -> None:
    """Check a ModelProto whose nodes have been sorted by `sort_nodes`.

    place: the name of the model, with which error messages begin.

    Raises
    ------
    RelvmFormatError
        A value is defined twice, the nodes form a cycle, a name is not UTF-8, or two functions share a name.
    RelvmUnsupportedError
        The IR version is newer than those that relvm knows, graphs are nested too deeply, or calls of model functions
        expand to too many nodes.
    """
    if not 0 <= model.ir_version <= NEWEST_IR_VERSION:
        raise RelvmUnsupportedError(
            f"{place}: ir_version {model.ir_version} is not supported: relvm supports 0 to {NEWEST_IR_VERSION}"
        )
    _expect_graph(model.graph, place, ChainMap(), 0)
    for function in model.functions:
        here = f"{place}: function {shortened(str(function.name))}"
        for name in (function.domain, function.name):
            _expect_text(name, here)
        inputs = _expect_once(function.input, "inputs", here)
        _expect_nodes(function.node, dict.fromkeys(inputs, _GIVEN), here, ChainMap(), 0)
    _expect_bounded_calls(model, place)


def _expect_graph(graph: Any, place: str, outer_values: ChainMap, depth: int) -> None:
    """Check that the names in a graph are unique, and that its nodes are sorted.

    place: the beginning of error messages.
    outer_values: a dict from the names of the values of enclosing graphs to descriptions of what defines them.
    depth: the number of enclosing graphs.
    """
    if depth > DEEPEST:
        raise RelvmUnsupportedError(f"{place}: subgraphs are nested more than {DEEPEST} levels deep")
    inputs = _expect_once((info.name for info in graph.input), "inputs", place)
    dense, sparse = (each.name for each in graph.initializer), (each.values.name for each in graph.sparse_initializer)
    initializers = _expect_once((*dense, *sparse), "initializers", place)
    _expect_nodes(graph.node, dict.fromkeys((*inputs, *initializers), _GIVEN), place, outer_values, depth)


def _expect_once(names: Iterable[str], what: str, here: str) -> list[str]:
    found: set[str] = set()
    for name in (names := list(names)):
        _expect_text(name, here)
        if name in found:
            raise RelvmFormatError(f"{here}: two {what} are named {shortened(name)!r}")
        found.add(name)
    return names


def _expect_nodes(nodes: Any, definitions: dict[str, str], place: str, outer_values: ChainMap, depth: int) -> None:
    """Check that the names in the nodes of a graph or function are unique, and that the nodes are sorted.

    definitions: a dict from the names of the inputs and initializers to descriptions of what defines them.  This
    function adds the outputs of the nodes.
    place: the beginning of error messages.
    outer_values: a dict like `definitions` for the values of enclosing graphs.
    depth: the number of enclosing graphs.
    """
    later = {name: node for node in nodes for name in node.output}
    inside = outer_values.new_child(definitions)
    for node in nodes:
        here = f"{place}: {node_name(node)}"
        for name in (*node.input, *node.output, node.name, node.op_type, node.domain):
            _expect_text(name, here)
        for name in node.input:
            if name and name not in inside and name in later:
                raise RelvmFormatError(
                    f"{here} uses {shortened(name)!r} before {node_name(later[name])} computes it:"
                    " nodes must be topologically sorted and acyclic"
                )
        for graph in node_graphs(node):
            _expect_graph(graph, place, inside, depth + 1)
        for name in node.output:
            if name and name in definitions:
                raise RelvmFormatError(
                    f"{here} redefines {shortened(name)!r}, which {definitions[name]} already defines"
                )
            definitions[name] = node_name(node)


def attribute_graphs(attribute: Message) -> list[Message]:
    """Return the graphs that an AttributeProto contains."""
    return [*([attribute.g] if attribute.has("g") else []), *attribute.graphs]


def map_graphs(node: Message, change: Callable[[Message], Message]) -> Message:
    """Return a node whose attributes contain change(graph) instead of each graph."""
    if not any(True for _ in node_graphs(node)):
        return node
    return node.replace(attribute=tuple(map_attribute_graphs(attribute, change) for attribute in node.attribute))


def map_attribute_graphs(attribute: Message, change: Callable[[Message], Message]) -> Message:
    """Return an AttributeProto that contains change(graph) instead of each graph."""
    changes: dict[str, Any] = {"g": change(attribute.g)} if attribute.has("g") else {}
    if attribute.graphs:
        changes["graphs"] = tuple(map(change, attribute.graphs))
    return attribute.replace(**changes) if changes else attribute


def node_graphs(node: Any) -> Iterator[Any]:
    """Yield the graphs that are attributes of a node."""
    for attribute in node.attribute:
        yield from attribute_graphs(attribute)


def node_name(node: Any) -> str:
    """Return a description of a node for messages: its name and its operator.

    A node without a name is described by its first output.
    """
    name = node.name or next(iter(node.output), "")
    return f"node {shortened(str(name))!r} ({shortened(str(node.op_type))})"


def _expect_text(name: Any, here: str) -> None:
    if not isinstance(name, str):  # a string that is not UTF-8 is read as bytes
        raise RelvmFormatError(f"{here}: the name {bytes(name)[:40]!r} is not UTF-8")


# ---- functions ----


def function_key(node: Any) -> Key:
    """Return the key by which to search for the function that `node` calls: domain, operator type, overload.

    The model has a function with this key only if it defines the operator of the node itself.
    """
    return plain_domain(node.domain), node.op_type, node.overload


def functions_by_key(model: Any) -> dict[Key, Any]:
    """Return the functions (FunctionProtos) that the model defines, by key (see `function_key`)."""
    return {(plain_domain(f.domain), f.name, f.overload): f for f in model.functions}


def _expect_bounded_calls(model: Any, place: str) -> None:
    """Check the limits on inlining: the number of nodes after all calls are inlined, and the depth of nested calls."""
    functions = functions_by_key(model)
    if len(functions) != len(model.functions):
        raise RelvmFormatError(f"{place}: the model defines a function twice")
    total, _ = _inlined_size(model.graph.node, functions, {}, (), place)
    if total > (most := max_imported_nodes(model)):
        raise RelvmUnsupportedError(
            f"{place}: the model has {total} nodes after inlining its functions; expected at most {most}"
        )


def max_imported_nodes(model: Any) -> int:
    """Return the limit on the number of nodes that are imported for `model`.

    It is larger than the number of nodes in the model, because some nodes are imported several times: the nodes of
    functions, and the nodes after an If whose branches have different ranks.
    """
    lists = (model.graph.node, *(function.node for function in model.functions))
    return _MAX_NODES + 4 * sum(1 for nodes in lists for _ in _all_nodes(nodes))


def _inlined_size(
    nodes: Any,
    functions: dict[Key, Any],
    known: dict[Key, tuple[int, int]],
    calls: tuple[Key, ...],
    place: str,
) -> tuple[int, int]:
    """Return the number of nodes that result from inlining all calls in `nodes`, and the nesting depth of these calls.

    functions: the functions of the model, by key.
    known: a cache of the results for function bodies, by key, to which this function adds.
    calls: the keys of the functions whose bodies contain `nodes`, outermost first.
    place: the beginning of error messages.
    """
    total = deepest = 0
    for node in _all_nodes(nodes):
        total += 1
        key = function_key(node)
        function = functions.get(key)
        if function is None:
            continue
        here = f"{place}: {node_name(node)}"
        if key in calls:
            raise RelvmFormatError(f"{here}: function {'.'.join(part for part in key if part)} calls itself")
        if key not in known and len(calls) < DEEPEST:
            known[key] = _inlined_size(function.node, functions, known, (*calls, key), place)
        count, depth = known.get(key, (0, DEEPEST))
        total, deepest = total + count, max(deepest, depth + 1)
        if len(calls) + deepest > DEEPEST:
            raise RelvmUnsupportedError(f"{here}: function calls are nested more than {DEEPEST} levels deep")
    return total, deepest


def _all_nodes(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        yield node
        yield from nested_nodes(node)


def nested_nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes of the graphs that are attributes of a node, recursively."""
    for graph in node_graphs(node):
        yield from _all_nodes(graph.node)
