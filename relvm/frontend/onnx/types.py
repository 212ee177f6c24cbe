"""Conversion of ONNX types to types of relvm."""

from __future__ import annotations

from typing import Any

from relvm.errors import RelvmArgumentError, RelvmTypeError, RelvmUnsupportedError, shortened
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.values import HostValue
from relvm.frontend.onnx_element_types import element_name, element_number
from relvm.frontend.onnx_messages import Message
from relvm.ir.types import ListType, OptionalType, TensorType, TupleType, Type


def graph_input_type(graph: ImportContext, info: Message, rank: int | None = None) -> Type:
    """Return the type of a graph input.

    Each `dim_param` of a tensor becomes a dimension variable, which all inputs with the same `dim_param` share.

    info: the ValueInfoProto of the input.
    rank: the rank of a tensor whose shape the model does not state, or None if it is not known.

    Raises
    ------
    RelvmUnsupportedError
        relvm does not support this kind of value or this element type.
    RelvmArgumentError
        `rank` is not the rank that the model states.
    """
    if not info.type.has("tensor_type"):
        if rank is not None:
            raise RelvmArgumentError(f"ranks: input {shortened(info.name)} is not a tensor, so it has no rank")
        return declared_type(graph, info.type, f"input {info.name}")
    tensor = info.type.tensor_type
    dtype = graph.element_type(tensor.elem_type, f"input {info.name}")
    if not tensor.has("shape"):
        if rank is None:
            return TensorType(dtype)
        return TensorType(dtype, tuple(graph.named_dimension(f"{info.name}_dim{axis}") for axis in range(rank)))
    if rank not in (None, len(tensor.shape.dim)):
        raise RelvmArgumentError(
            f"ranks: input {shortened(info.name)} has rank {len(tensor.shape.dim)} in the model, got {rank}"
        )
    return TensorType(dtype, tuple(graph.dimension(dim, info.name, i) for i, dim in enumerate(tensor.shape.dim)))


def expect_declared(value: Any, proto: Message, here: str) -> None:
    """Check that a value has the type that the model declares for it.

    Two things are compared: whether the value is a sequence and, for a tensor, the element type.  Declared sizes are
    ignored, because the sizes that exporters declare for node outputs are often wrong.

    value: an expression, or a HostValue, which is a tensor whose elements are known at import time.
    proto: the declared type, as a TypeProto.

    Raises
    ------
    RelvmTypeError
        The value does not have the declared type.  The message begins with `here`.
    """
    is_host = isinstance(value, HostValue)
    got = TensorType(value.dtype, value.array.shape) if is_host else value.type
    kind = proto.which_oneof()
    if kind is None or not isinstance(got, TensorType | ListType):
        return
    if (kind == "sequence_type") != isinstance(got, ListType) and kind != "optional_type":
        raise RelvmTypeError(f"{here} is {got}, but the model declares a {kind}")
    if kind != "tensor_type" or not isinstance(got, TensorType):
        return
    stated = proto.tensor_type
    number = stated.elem_type
    if number and got.dtype and number != element_number(got.dtype.numpy):
        raise RelvmTypeError(f"{here} is {got}, but the model declares the element type {element_name(number)}")


def declared_type(graph: ImportContext, proto: Message, what: str) -> Type:
    """Convert a TypeProto to a type of relvm.

    A tensor keeps its shape only if the model, or the option `dims` of `from_onnx`, states all sizes as numbers.  If a
    size is only a name, such as "batch", the result has the rank of the tensor but no sizes.  The reason is that the
    items of a sequence can differ in such a size.

    Raises
    ------
    RelvmUnsupportedError
        relvm does not support this kind of value or this element type.  `what` describes the value in the message.
    """
    match proto.which_oneof():
        case "tensor_type":
            return _tensor(graph, proto.tensor_type, what)
        case "sequence_type":
            return ListType(declared_type(graph, proto.sequence_type.elem_type, what))
        case "optional_type":
            return OptionalType(declared_type(graph, proto.optional_type.elem_type, what))
        case "map_type":
            return _map_type(graph, proto.map_type, what)
    raise RelvmUnsupportedError(
        f"{graph.place}: {what} is {proto.which_oneof()}, expected a tensor, sequence, map or optional"
    )


def _tensor(graph: ImportContext, tensor: Message, what: str) -> TensorType:
    dtype = graph.element_type(tensor.elem_type, what)
    if not tensor.has("shape"):
        return TensorType(dtype)
    sizes = [_fixed_size(graph, dim) for dim in tensor.shape.dim]
    known = tuple(size for size in sizes if size is not None)
    return TensorType(dtype, known if len(known) == len(sizes) else None, len(sizes))


def _map_type(graph: ImportContext, map_: Message, what: str) -> TupleType:
    """Return the type that represents a map: a tuple of two vectors, the keys and the values.

    See relvm/frontend/onnx/ops/ml/label_encoder.py.
    """
    value = declared_type(graph, map_.value_type, what)
    if not isinstance(value, TensorType):
        raise RelvmUnsupportedError(f"{graph.place}: {what} is a map with values of type {value}, expected tensors")
    return TupleType((TensorType(graph.element_type(map_.key_type, what), None, 1), TensorType(value.dtype, None, 1)))


def is_map(proto: Message) -> bool:
    """Return whether a TypeProto is a map or a sequence of maps."""
    inner = proto.sequence_type.elem_type if proto.has("sequence_type") else proto
    return inner.has("map_type")


def _fixed_size(graph: ImportContext, dim: Message) -> int | None:
    """Return the size of an ONNX dimension if the model or the user fixes it, otherwise None."""
    if dim.has("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    size = graph.fixed_dims.get(dim.dim_param)
    return size if isinstance(size, int) else None
