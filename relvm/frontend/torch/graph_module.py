"""Import of graph modules of torch.fx, such as the graphs of torch.compile.  This needs PyTorch.

A graph consists of ATen operators that update nothing in place.  Its nodes have the metadata `val` of AOTAutograd.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from relvm.errors import RelvmUnsupportedError, shortened
from relvm.frontend.common.problems import expect_no_problems
from relvm.frontend.torch.program import Argument, Graph, GraphReader, Program
from relvm.frontend.torch.traced import array_of, reason_of_serializer


def program_of_graph(graph_module: Any, place: str, constants: Mapping[str, np.ndarray]) -> Program:
    """Return a graph module in the form that the reader of files returns.

    Parameters
    ----------
    graph_module
        A torch.fx.GraphModule.  Its tensors that are attributes become constants.
    place
        The name of the graph in messages.
    constants
        The placeholders that are constants of the program, and not parameters of `main`, by name.

    Returns
    -------
    Program
        A program for `import_program`.  Its inputs are the other placeholders, and its results the outputs.

    Raises
    ------
    RelvmUnsupportedError
        A tensor is not on the CPU, or PyTorch cannot serialize the graph.
    """
    _expect_cpu(graph_module, place)
    tensors = dict(constants)
    lifted = _lift_attributes(graph_module, tensors, place)
    for module in graph_module.modules():
        _name_modules(module)
        _add_sizes(module)
    graph = _read(graph_module, place)
    return Program(
        place,
        graph,
        tuple(_input_spec(argument, tensors) for argument in graph.inputs),
        tuple({"user_output": {"arg": argument}} for argument in graph.outputs),
        _ranges(lifted),
        tensors,
        {},
        None,
        "",
    )


def expand_flex_attention(graph_module: Any) -> None:
    """Replace calls of flex_attention in a graph of TorchDynamo by PyTorch's own composition of operators.

    The composition applies the functions of the user to all scores with torch.vmap.
    """
    from torch._higher_order_ops.flex_attention import flex_attention, math_attention

    for module in graph_module.modules():
        nodes = module.graph.nodes if hasattr(module, "graph") else ()
        calls = [node for node in nodes if node.target is flex_attention]
        for node in calls:
            node.target = math_attention
        if calls:
            module.recompile()


def _expect_cpu(graph_module: Any, place: str) -> None:
    """Raise RelvmUnsupportedError if a tensor is on another device than the CPU."""
    problems: dict[str, None] = {}
    for node in graph_module.graph.nodes:
        device = getattr(node.meta.get("val"), "device", None)
        if device is not None and device.type != "cpu":
            problems[f"{place}: {node.name} is on the device {device}, expected the CPU"] = None
    expect_no_problems(place, problems, "nodes")


def _lift_attributes(graph_module: Any, tensors: dict[str, np.ndarray], place: str) -> Any:
    """Replace tensors that are attributes by placeholders, and add their elements to `tensors`.

    Return the graph.
    """
    import torch

    graph = graph_module.graph
    problems: dict[str, None] = {}
    for node in list(graph.nodes):
        if node.op != "get_attr":
            continue
        value = graph_module
        for part in node.target.split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            continue
        with graph.inserting_before(next(iter(graph.nodes))):
            placeholder = graph.placeholder(f"{node.name}_attribute")
        placeholder.meta["val"] = node.meta.get("val", value)
        try:
            tensors[placeholder.name] = array_of(value)
        except RelvmUnsupportedError as error:
            problems[f"{place}: {shortened(node.target)}: {error}"] = None
        node.replace_all_uses_with(placeholder)
        graph.erase_node(node)
    expect_no_problems(place, problems, "tensors")
    graph_module.recompile()
    return graph


def _name_modules(graph_module: Any) -> None:
    """Replace the classes in the metadata `nn_module_stack` by their names, which the serializer expects."""
    for node in graph_module.graph.nodes if hasattr(graph_module, "graph") else ():
        stack = node.meta.get("nn_module_stack")
        if stack:
            node.meta["nn_module_stack"] = {
                key: (path, kind if isinstance(kind, str) else kind.__qualname__) for key, (path, kind) in stack.items()
            }


def _add_sizes(graph_module: Any) -> None:
    """Replace sums of several sizes, which the serializer does not know, by additions of two."""
    import torch

    for node in list(graph_module.graph.nodes) if hasattr(graph_module, "graph") else ():
        if node.target is not getattr(torch, "sym_sum", None):
            continue
        with graph_module.graph.inserting_before(node):
            total, *rest = node.args[0]
            for each in rest:
                values = [getattr(x, "meta", {}).get("val", x) for x in (total, each)]
                total = graph_module.graph.call_function(operator.add, (total, each))
                total.meta = {**node.meta, "val": values[0] + values[1]}
        node.replace_all_uses_with(total)
        graph_module.graph.erase_node(node)


def _read(graph_module: Any, place: str) -> Graph:
    """Return the graph in the form that the reader of files returns."""
    from torch._export.serde.serialize import GraphModuleSerializer, SerializeError, _to_json_bytes
    from torch.export.graph_signature import ExportGraphSignature

    serializer = GraphModuleSerializer(ExportGraphSignature([], []), [])
    try:
        graph = serializer.serialize_graph(graph_module)
    except SerializeError as error:
        raise RelvmUnsupportedError(f"{place}: {reason_of_serializer(error, graph_module)}") from error
    return GraphReader(place).graph(json.loads(_to_json_bytes(graph)))


def _input_spec(argument: Argument, tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the specification of an input in torch.export's schema."""
    ((kind, content),) = argument.items()
    if kind == "as_tensor" and content["name"] in tensors:
        return {"tensor_constant": {"arg": content, "tensor_constant_name": content["name"]}}
    return {"user_input": {"arg": argument}}


def _ranges(graph: Any) -> dict[str, tuple[int | None, int | None]]:
    """Return the smallest and the largest value of each symbol, or None where there is no limit."""
    for node in graph.nodes:
        for size in (*getattr(node.meta.get("val"), "shape", ()), node.meta.get("val")):
            environment = getattr(getattr(size, "node", None), "shape_env", None)
            if environment is not None:
                return {
                    str(symbol): (_bound(limits.lower), _bound(limits.upper))
                    for symbol, limits in environment.var_to_range.items()
                }
    return {}


def _bound(value: Any) -> int | None:
    """Return a bound of a range as an integer, or None if it is infinite."""
    return int(value) if isinstance(value, int) or value.is_Integer else None
