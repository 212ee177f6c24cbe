"""The types that ONNX gives values, as relvm's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relvm.errors import RelvmUnsupportedError
from relvm.ir.dims import AnyDim
from relvm.ir.types import ListType, OptionalType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from relvm.frontend.onnx.importer import GraphImporter


def graph_input(graph: GraphImporter, info: Any) -> Type:
    """The type of a graph input (onnx.ValueInfoProto), with a dimension variable for each `dim_param` of a tensor,
    shared by name.

    Raises
    ------
    RelvmUnsupportedError
        A kind of value, or an element type, that relvm does not have.
    """
    if not info.type.HasField("tensor_type"):
        return type_of(graph, info.type, f"input {info.name}")
    tensor = info.type.tensor_type
    dtype = graph.element_type(tensor.elem_type, f"input {info.name}")
    if not tensor.HasField("shape"):
        return TensorType(dtype)
    return TensorType(dtype, tuple(graph.dimension(dim, info.name, i) for i, dim in enumerate(tensor.shape.dim)))


def type_of(graph: GraphImporter, proto: Any, what: str) -> Type:
    """The type that an onnx.TypeProto states.  Of a tensor inside a sequence or an optional value only the rank is kept
    where sizes have names: each may have others.

    Raises
    ------
    RelvmUnsupportedError
        A kind of value, or an element type, that relvm does not have; the message says `what` it is of.
    """
    match proto.WhichOneof("value"):
        case "tensor_type":
            return _tensor(graph, proto.tensor_type, what)
        case "sequence_type":
            return ListType(type_of(graph, proto.sequence_type.elem_type, what))
        case "optional_type":
            return OptionalType(type_of(graph, proto.optional_type.elem_type, what))
        case "map_type":
            return _map(graph, proto.map_type, what)
    raise RelvmUnsupportedError(
        f"{graph.place}: {what} is no tensor, sequence, map or optional value but {proto.WhichOneof('value')}"
    )


def _tensor(graph: GraphImporter, tensor: Any, what: str) -> TensorType:
    dtype = graph.element_type(tensor.elem_type, what)
    if not tensor.HasField("shape"):
        return TensorType(dtype)
    sizes = [_size(graph, dim) for dim in tensor.shape.dim]
    return TensorType(dtype, None if None in sizes else tuple(sizes), len(sizes))


def _map(graph: GraphImporter, map_: Any, what: str) -> TupleType:
    """A map is the tuple of its keys and its values, vectors (relvm/frontend/onnx/ml_labels.py)."""
    value = type_of(graph, map_.value_type, what)
    if not isinstance(value, TensorType):
        raise RelvmUnsupportedError(f"{graph.place}: {what} is a map of values of type {value}, expected tensors")
    return TupleType((TensorType(graph.element_type(map_.key_type, what), None, 1), TensorType(value.dtype, None, 1)))


def is_map(proto: Any) -> bool:
    """Whether an onnx.TypeProto is of a map, or of a sequence of maps."""
    inner = proto.sequence_type.elem_type if proto.HasField("sequence_type") else proto
    return inner.HasField("map_type")


def _size(graph: GraphImporter, dim: Any) -> AnyDim | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return graph.fixed_dims.get(dim.dim_param)
