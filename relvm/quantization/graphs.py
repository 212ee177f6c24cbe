"""Access to the graphs, constants and weights of an onnx.ModelProto."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from relvm.data_classes import dataclass
from relvm.directed_graph import DirectedGraph
from relvm.errors import RelvmUnsupportedError

INTEGER_FORMS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}  # the float operator of each integer operator
FLOAT = 1  # TensorProto.FLOAT
_FLOATS = (FLOAT, 10, 16)  # also FLOAT16, BFLOAT16
_DEFAULTS_IR_VERSION = 4  # the first in which an initializer that is also an input is a default value
_BYTES = (2, 3)  # TensorProto.UINT8, INT8
_HALF_BYTES = (21, 22)  # TensorProto.UINT4, INT4
_MOVES = ("Identity", "Transpose", "Reshape", "Unsqueeze", "Slice", "Concat", "Cast")  # operators that keep elements


@dataclass(frozen=True)
class Axes:
    """The axes of a weight.

    channel: the axis along which each index has its own scale.
    reduction: the axis that is summed over, which is divided into blocks.
    """

    channel: int
    reduction: int


def _matmul(node: Any, index: int, rank: int) -> Axes | None:
    if index > 1 or rank < 2:
        return None
    return Axes(rank - 1, rank - 2) if index else Axes(rank - 2, rank - 1)


def _gemm(node: Any, index: int, rank: int) -> Axes | None:
    if index > 1 or rank != 2:
        return None
    is_transposed = bool(attribute(node, ("transA", "transB")[index], 0))
    return Axes(1, 0) if bool(index) != is_transposed else Axes(0, 1)


def _gather(node: Any, index: int, rank: int) -> Axes | None:
    if index or rank < 2:
        return None
    axis = attribute(node, "axis", 0) % rank
    return Axes(axis, rank - 2 if axis == rank - 1 else rank - 1)


# For each operator with weights: a function of the node, the index of an input and its rank, which returns the axes of
# the input, or None if the input is no weight.
_AXES: dict[str, Callable[[Any, int, int], Axes | None]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Gather": _gather,
    "Conv": lambda node, index, rank: Axes(0, 1) if index == 1 and rank > 2 else None,
    "ConvTranspose": lambda node, index, rank: Axes(1, 0) if index == 1 and rank > 2 else None,
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN"), lambda node, index, rank: Axes(1, 2) if index in (1, 2) and rank == 3 else None
    ),
}

WEIGHTED = tuple(_AXES)


def axes_of(node: Any, index: int, rank: int) -> Axes | None:
    """Return the axes of input `index` of a node, or None if the input is not a weight.   rank: its rank."""
    return _AXES[node.op_type](node, index, rank) if is_standard(node) and node.op_type in _AXES else None


def attribute(node: Any, name: str, default: Any) -> Any:
    """Return the value of an attribute of a node."""
    from onnx import helper

    return next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), default)


def is_standard(node: Any) -> bool:
    """Return whether the operator of a node belongs to the default domain of ONNX."""
    return node.domain in ("", "ai.onnx")


def subgraphs(node: Any) -> Iterator[Any]:
    """Yield the graphs in the attributes of a node."""
    for each in node.attribute:
        if each.HasField("g"):
            yield each.g
        yield from each.graphs


def all_graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and the graphs inside it."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from all_graphs(inner)


def all_nodes(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of the graphs inside it."""
    for each in all_graphs(graph):
        yield from each.node


def readers(graph: Any) -> dict[str, list[tuple[Any, int]]]:
    """Return the nodes that read each value in a graph and the graphs inside it, with the index of the input."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for node in all_nodes(graph):
        for index, name in enumerate(node.input):
            found.setdefault(name, []).append((node, index))
    return found


def weights(graph: Any) -> dict[str, Axes]:
    """Return the float initializers of a graph that are weights, with their axes.

    The operator that reads a weight can belong to a graph inside the graph, or follow operators such as Transpose.
    """
    read_by = readers(graph)
    results = {output.name for each in all_graphs(graph) for output in each.output}
    found = {}
    for tensor in graph.initializer:
        if tensor.data_type in _FLOATS and tensor.name not in results:
            axes = _weight_axes(graph, tensor.name, tuple(range(len(tensor.dims))), read_by)
            if axes:
                found[tensor.name] = axes
    return found


def _weight_axes(
    graph: Any, name: str, order: tuple[int | None, ...], read_by: dict[str, list[tuple[Any, int]]]
) -> Axes | None:
    """Return the axes of a weight, or None if no operator reads it as a weight.

    name: a value with the elements of the weight.
    order: for each axis of this value, the axis of the weight, or None for a new axis of size 1.
    """
    for node, index in read_by.get(name, ()):
        if not is_standard(node):
            continue
        if axes := axes_of(node, index, len(order)):
            channel, reduction = order[axes.channel], order[axes.reduction]
            return None if channel is None or reduction is None else Axes(channel, reduction)
        if node.op_type in _MOVES and (index == 0 or node.op_type == "Concat"):
            moved = _moved_axes(graph, node, order)
            if moved and (axes := _weight_axes(graph, node.output[0], moved, read_by)):
                return axes
    return None


def _moved_axes(graph: Any, node: Any, order: tuple[int | None, ...]) -> tuple[int | None, ...] | None:
    """Return `order` after an operator that moves elements, or None if it is not known."""
    match node.op_type:
        case "Transpose":
            return tuple(order[axis] for axis in attribute(node, "perm", range(len(order))[::-1]))
        case "Unsqueeze":
            axes = attribute(node, "axes", None) or _constant_integers(graph, node.input[1] if node.input[1:] else "")
            if axes is None:
                return None
            rank, rest = len(order) + len(axes), iter(order)
            new = {axis % rank for axis in axes}
            return tuple(None if axis in new else next(rest) for axis in range(rank))
        case "Reshape":
            return None
    return order


def _constant_integers(graph: Any, name: str) -> list[int] | None:
    """Return the elements of the integer constant `name`, or None if there is no such constant.

    The constant is an initializer or a Constant node, in `graph` or in the graphs inside it.
    """
    from onnx import numpy_helper

    for each in all_graphs(graph):
        found = [tensor for tensor in each.initializer if tensor.name == name]
        found += [attribute(node, "value", None) for node in each.node if name in node.output]
        if found and found[0] is not None:
            return numpy_helper.to_array(found[0]).ravel().tolist()
    return None


def weight_dtypes(graph: Any) -> set[int]:
    """Return the dtypes of the weights of a graph and of the graphs inside it, as numbers of TensorProto."""
    found = set()
    for each in all_graphs(graph):
        names = weights(each)
        found |= {tensor.data_type for tensor in each.initializer if tensor.name in names}
    return found


def integer_weights(graph: Any) -> list[str]:
    """Return the names of the integer weights that a Cast converts to floats.

    An integer weight is an initializer of rank 2 or more with integers of 4 or 8 bits.
    """
    integers = {
        tensor.name
        for each in all_graphs(graph)
        for tensor in each.initializer
        if tensor.data_type in (*_BYTES, *_HALF_BYTES) and len(tensor.dims) > 1
    }
    casts = (node for node in all_nodes(graph) if node.op_type == "Cast" and attribute(node, "to", 0) in _FLOATS)
    return [node.input[0] for node in casts if node.input[0] in integers]


def tensor_bytes(model: Any) -> int:
    """Return the size of the initializers of a model in bytes."""
    return sum(
        len(tensor.raw_data) or tensor.ByteSize() for each in all_graphs(model.graph) for tensor in each.initializer
    )


def sort_nodes(graph: Any) -> None:
    """Sort the nodes of a graph topologically, in place.  Nodes that are in order keep their order."""
    producers = {name: number for number, node in enumerate(graph.node) for name in node.output if name}
    uses: DirectedGraph[int] = DirectedGraph(range(len(graph.node)))
    for number, node in enumerate(graph.node):
        read = {*node.input, *(name for inner in subgraphs(node) for name in _read_names(inner))}
        for name in read & producers.keys():
            uses.add_edge(producers[name], number)
    nodes = [graph.node[number] for number in uses.topological_order(key=int)]
    del graph.node[:]
    graph.node.extend(nodes)


def _read_names(graph: Any) -> Iterator[str]:
    """Yield the names of the values that a graph and the graphs inside it read."""
    for each in all_graphs(graph):
        yield from (name for node in each.node for name in node.input)
        yield from (output.name for output in each.output)


def with_constant_weights(model: Any) -> Any:
    """Return a model in a form in which all weights are initializers, which no input can replace.

    Functions of the model are inlined, and Constant nodes become initializers.
    """
    import onnx.inliner

    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    has_defaults = model.ir_version >= _DEFAULTS_IR_VERSION
    constants = set(weights(model.graph)) if has_defaults else {tensor.name for tensor in model.graph.initializer}
    for stated in [each for each in model.graph.input if each.name in constants]:
        model.graph.input.remove(stated)
    model.ir_version = max(model.ir_version, _DEFAULTS_IR_VERSION)
    for graph in all_graphs(model.graph):
        results = {output.name for output in graph.output}
        nodes = []
        for node in graph.node:
            value = attribute(node, "value", None) if node.op_type == "Constant" and is_standard(node) else None
            if value is None or value.data_type not in _FLOATS or len(value.dims) < 2 or node.output[0] in results:
                nodes.append(node)
                continue
            tensor = graph.initializer.add()
            tensor.CopyFrom(value)
            tensor.name = node.output[0]
        del graph.node[:]
        graph.node.extend(nodes)
    return model


def with_opset(model: Any, opset: int) -> Any:
    """Return a model with at least the given version of the default opset.

    Raise RelvmUnsupportedError if a model with an older opset cannot be converted.
    """
    from onnx import helper, version_converter

    own = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=1)
    if own < opset:
        try:
            model = version_converter.convert_version(model, opset)
        except Exception as error:  # the converter raises RuntimeError and others
            reason = str(error).strip().split("\n")[0]
            raise RelvmUnsupportedError(
                f"quantize: this mode needs opset {opset}, the model has opset {own}, and its conversion failed; "
                f"export the model with opset {opset}: {reason}"
            ) from None
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True))
    return model


def remove_unused_domains(model: Any) -> None:
    """Remove the opset imports of domains to which no operator of the model belongs."""
    used = {node.domain for node in all_nodes(model.graph)} | {"", "ai.onnx"}
    kept = [each for each in model.opset_import if each.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def count_operators(graph: Any) -> dict[str, tuple[int, int]]:
    """Count the operators of a quantized graph by type: the quantized ones, and the others.

    An operator is quantized if its weights are quantized, or if its inputs and results are quantized.  The result
    contains the types that have weights, and those with at least one quantized operator.
    """
    counts: dict[str, list[int]] = {}
    _count(graph, {}, {}, counts)
    found = {name: (quantized, plain) for name, (quantized, plain) in sorted(counts.items())}
    return {name: each for name, each in found.items() if each[0] or name in _AXES}


def _count(graph: Any, producers: dict[str, Any], dtypes: dict[str, int], counts: dict[str, list[int]]) -> None:
    """Add the operators of a graph to `counts`.

    producers, dtypes: the nodes that produce the values of the graphs around it, and the dtypes of their initializers.
    """
    producers = producers | {name: node for node in graph.node for name in node.output}
    dtypes = dtypes | {tensor.name: tensor.data_type for tensor in graph.initializer}
    rounded = {node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"}
    for node in graph.node:
        for inner in subgraphs(node):
            _count(inner, producers, dtypes, counts)
        if not is_standard(node) or node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            continue
        name = INTEGER_FORMS.get(node.op_type, node.op_type)
        read = list(node.input) if name not in _AXES else node.input[name != "Gather" :][:1]
        is_quantized = name != node.op_type or any(_is_dequantized(each, producers, dtypes) for each in read)
        if name in ("MatMul", "Gemm"):  # the first factor can be the weight
            is_quantized |= _is_dequantized(node.input[0], producers, dtypes, is_direct=False)
        if name not in _AXES:
            is_quantized &= any(each in rounded for each in node.output)
        elif name == "Gather" and not is_quantized:
            data = dtypes.get(node.input[0])
            if data not in (*_FLOATS, *_BYTES):
                continue  # of indices, or of a computed value such as a shape
            is_quantized = data in _BYTES
        counts.setdefault(name, [0, 0])[not is_quantized] += 1


def _is_dequantized(name: str, producers: dict[str, Any], dtypes: dict[str, int], is_direct: bool = True) -> bool:
    """Return whether a value is the result of DequantizeLinear, or contains moved elements of dequantized constants.

    producers: the node that computes each value.   dtypes: the dtypes of the initializers, the constants of the graph.
    is_direct: whether the result of DequantizeLinear counts even if its input is not a constant.
    """
    node = producers.get(name)
    if node is None:
        return False
    if node.op_type == "DequantizeLinear":
        return is_direct or node.input[0] in dtypes
    sources = node.input if node.op_type == "Concat" else node.input[:1]
    return node.op_type in _MOVES and any(_is_dequantized(each, producers, dtypes, False) for each in sources)
