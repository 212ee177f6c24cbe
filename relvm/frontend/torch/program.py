"""An exported program, as the reader returns it: graphs of nodes, the signature and the weights.

Arguments of nodes remain as the JSON of torch.export's schema: a dict with one entry, whose key states the kind of the
argument, such as {"as_tensor": {"name": "x"}}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, counted, shortened
from relvm.frontend.torch.limits import MAX_GRAPH_DEPTH, MAX_NAME, MAX_NODES

Argument = dict[str, Any]

_FRAME = re.compile(r'File "([^"\n]*)", line (\d+), in ([^\n]*)')


@value_record
class GraphNode:
    """A node of a graph.

    target: the name of the operator, such as `torch.ops.aten.add.Tensor`.
    name: the name of the node, or "" if the file does not state it.
    inputs: (name of the parameter, argument) for each input.
    outputs: the results.
    stack_trace: the Python frames that made the node, or "".
    module: the path of the module that made the node, such as `layers.0.linear`, or "".
    """

    target: str
    name: str
    inputs: tuple[tuple[str, Argument], ...]
    outputs: tuple[Argument, ...]
    stack_trace: str
    module: str

    def source_line(self) -> str:
        """Return the innermost line of the user's code that made the node, as `FILE:LINE:1`, or ""."""
        frames = [frame for frame in _FRAME.findall(self.stack_trace) if not frame[0].startswith("<")]
        own = [
            frame for frame in frames if "site-packages/torch/" not in frame[0] and not frame[0].startswith("torch/")
        ]
        file, line, _ = (own or frames or [("", "", "")])[-1]
        return f"{file}:{line}:1" if file else ""


@value_record
class Graph:
    """A graph.

    tensors, sym_ints, sym_bools, sym_floats: the description of each value of this kind in the JSON, by name.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    nodes: tuple[GraphNode, ...]
    tensors: Mapping[str, dict[str, Any]]
    sym_ints: Mapping[str, dict[str, Any]]
    sym_bools: Mapping[str, dict[str, Any]]
    sym_floats: Mapping[str, dict[str, Any]]


@value_record
class Program:
    """An exported program.

    place: the path of the file, for messages.
    graph: the main graph.
    input_specs, output_specs: the signature, as in the schema.
    ranges: the smallest and the largest value of each symbol, or None where there is no limit.
    tensors: parameters, buffers and constants, by name.
    refused: for each tensor that cannot be read, the reason.
    output_paths: the path of each output in the value that the module returned, or None if it is not known.
    torch_version: the version of PyTorch that wrote the program.
    guards: conditions on the sizes of inputs, as text.
    is_decomposed: whether PyTorch has decomposed the operators that consist of others, as run_decompositions() does.
    """

    place: str
    graph: Graph
    input_specs: tuple[dict[str, Any], ...]
    output_specs: tuple[dict[str, Any], ...]
    ranges: Mapping[str, tuple[int | None, int | None]]
    tensors: Mapping[str, np.ndarray]
    refused: Mapping[str, str]
    output_paths: tuple[str, ...] | None
    torch_version: str
    guards: tuple[str, ...] = ()
    is_decomposed: bool = True


def expect_fields(what: str, value: Any, **types: type | tuple[type, ...]) -> list[Any]:
    """Return fields of a JSON object.

    types: the type of each field.

    Raises
    ------
    RelvmFormatError
        `value` is not an object, or a field is missing or has another type.
    """
    if not isinstance(value, dict):
        raise RelvmFormatError(f"{what}: expected an object, got {shortened(repr(value))}")
    found = []
    for name, type_ in types.items():
        if not isinstance(value.get(name), type_):
            raise RelvmFormatError(f"{what}: the field {name} is {shortened(repr(value.get(name)))}")
        found.append(value[name])
    return found


def expect_union(what: str, value: Any) -> tuple[str, Any]:
    """Return the kind and the value of a union, a JSON object with one entry that is not null."""
    kind, content = _entry(value)
    if not isinstance(kind, str) or not kind:
        raise RelvmFormatError(f"{what}: expected an object with one entry, got {shortened(repr(value))}")
    return kind, content


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _entry(value: Any) -> tuple[str, Any]:
    """Return the key and the value of the only entry that is not null, or ("", None) if there is not exactly one."""
    entries = [(k, v) for k, v in value.items() if v is not None] if isinstance(value, dict) else []
    return entries[0] if len(entries) == 1 else ("", None)


def _is_optional_tensor(value: Any) -> bool:
    kind, content = _entry(value)
    return kind == "as_none" or (kind == "as_tensor" and _is_tensor(content))


def _is_scalar(value: Any) -> bool:
    kind, content = _entry(value)
    if kind == "as_name":
        return isinstance(content, str)
    return kind in ("as_int", "as_bool", "as_float") and isinstance(content, int | float | str)


def _is_size(value: Any) -> bool:
    kind, content = _entry(value)
    if kind == "as_expr":
        return isinstance(content, dict) and isinstance(content.get("expr_str"), str)
    return kind in ("as_int", "as_bool", "as_float") and isinstance(content, int | float | str)


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _is_a(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


# For each kind of argument, whether its content is valid.
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "as_tensor": _is_tensor,
    "as_tensors": _list_of(_is_tensor),
    "as_nested_tensors": _list_of(_list_of(_is_tensor)),
    "as_optional_tensor": _is_optional_tensor,
    "as_optional_tensors": _list_of(_is_optional_tensor),
    **{f"as_sym_{name}": _is_scalar for name in ("int", "bool", "float")},
    **{f"as_sym_{name}s": _list_of(_is_scalar) for name in ("int", "bool", "float")},
    "as_int": _is_a(int),
    "as_ints": _list_of(_is_a(int)),
    "as_bool": _is_a(bool),
    "as_bools": _list_of(_is_a(bool)),
    "as_float": _is_a(int, float, str),
    "as_floats": _list_of(_is_a(int, float, str)),
    "as_string": _is_a(str),
    "as_strings": _list_of(_is_a(str)),
    "as_device": _is_a(dict),
}


class GraphReader:
    """Reads graphs from JSON.   place: the beginning of messages."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._nodes = 0
        self._depth = 0

    def graph(self, value: Any) -> Graph:
        """Return a graph.

        Raises
        ------
        RelvmFormatError
            The JSON violates the schema, or a limit is exceeded.
        """
        what = f"{self.place}: a graph"
        inputs, outputs, nodes, tensors, sym_ints, sym_bools = expect_fields(
            what,
            value,
            inputs=list,
            outputs=list,
            nodes=list,
            tensor_values=dict,
            sym_int_values=dict,
            sym_bool_values=dict,
        )
        sym_floats = value.get("sym_float_values") or {}
        self._nodes += len(nodes)
        self._depth += 1
        if self._nodes > MAX_NODES or self._depth > MAX_GRAPH_DEPTH:
            raise RelvmFormatError(
                f"{self.place}: the program has more than {MAX_NODES} nodes, or nests graphs deeper than"
                f" {MAX_GRAPH_DEPTH} levels"
            )
        for names in (tensors, sym_ints, sym_bools, sym_floats):
            expect_fields(what, names)
            for name, each in names.items():
                if len(name) > MAX_NAME:
                    raise RelvmFormatError(f"{what}: the name of a value has {counted(len(name), 'character')}")
                expect_fields(f"{what}: {shortened(name)}", each)
                is_valid = _list_of(_is_size)(each.get("sizes")) if names is tensors else _is_size(each)
                if not is_valid:
                    raise RelvmFormatError(f"{what}: {shortened(name)} is {shortened(repr(each))}")
        result = Graph(
            self._arguments(what, inputs),
            self._arguments(what, outputs),
            tuple(self._node(node) for node in nodes),
            *(tensors, sym_ints, sym_bools, sym_floats),
        )
        self._depth -= 1
        return result

    def _node(self, value: Any) -> GraphNode:
        what = f"{self.place}: a node"
        target, inputs, outputs = expect_fields(what, value, target=str, inputs=list, outputs=list)
        metadata = value.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        found = []
        for each in inputs:
            name, argument = expect_fields(f"{what} {shortened(target)}", each, name=str, arg=dict)
            found.append((name, self._argument(what, argument)))
        return GraphNode(
            target,
            str(value.get("name") or ""),
            tuple(found),
            self._arguments(what, outputs),
            str(metadata.get("stack_trace") or ""),
            _module_path(str(metadata.get("nn_module_stack") or "")),
        )

    def _arguments(self, what: str, values: list[Any]) -> tuple[Argument, ...]:
        return tuple(self._argument(what, value) for value in values)

    def _argument(self, what: str, value: Any) -> Argument:
        kind, content = expect_union(what, value)
        if kind == "as_graph":
            name, graph = expect_fields(what, content, name=str, graph=dict)
            return {kind: (name, self.graph(graph))}
        if kind == "as_string_to_argument":
            expect_fields(what, content)
            self._depth += 1
            if self._depth > MAX_GRAPH_DEPTH:
                raise RelvmFormatError(f"{what}: arguments are nested deeper than {MAX_GRAPH_DEPTH} levels")
            found = {name: self._argument(what, each) for name, each in content.items()}
            self._depth -= 1
            return {kind: found}
        if kind in _CHECKS and not _CHECKS[kind](content):
            raise RelvmFormatError(f"{what}: {kind} is {shortened(repr(content))}")
        return {kind: content}


def _module_path(stack: str) -> str:
    """Return the path of the innermost module in the metadata `nn_module_stack`: `key,path,type;key,path,type`."""
    parts = stack.rpartition(";")[2].split(",")
    return parts[1] if len(parts) == 3 and not parts[1].startswith("_empty") else ""


def leaf_paths(spec: Any, path: str = "", depth: int = 0) -> list[str] | None:
    """Return the path of each leaf of a tree specification of torch.utils._pytree, such as `logits` or `state.0`.

    Return None if the specification is not understood.
    """
    if not isinstance(spec, dict) or depth > MAX_GRAPH_DEPTH or not isinstance(spec.get("children_spec"), list):
        return None
    if spec.get("type") is None:
        return [path]
    children = spec["children_spec"]
    keys = _keys(spec, len(children))
    found: list[str] = []
    for key, child in zip(keys, children, strict=True):
        inner = leaf_paths(child, f"{path}.{key}" if path else key, depth + 1)
        if inner is None:
            return None
        found += inner
    return found


def _keys(spec: dict[str, Any], count: int) -> list[str]:
    """Return the names of the children of a node of a tree: keys of a dict, otherwise numbers."""
    if spec.get("type") in ("builtins.dict", "collections.OrderedDict"):
        try:
            context = json.loads(spec["context"])
        except (KeyError, TypeError, ValueError, RecursionError):
            context = None
        if isinstance(context, list) and len(context) == count:
            return [str(key) for key in context]
    return [str(i) for i in range(count)]
