"""The inputs, outputs and metadata of an ONNX model, read from its bytes."""

from __future__ import annotations

from dataclasses import field

from relvm.data_classes import dataclass
from relvm.errors import RelvmFormatError
from relvm.frontend.onnx_element_types import ELEMENT_TYPES
from relvm.frontend.onnx_messages import Message, check_model

_MAX_DEPTH = 16  # limit on the nesting depth of types


@dataclass(frozen=True)
class OnnxValue:
    """An input or output of a graph.

    Attributes
    ----------
    name
        The name in the graph.
    type
        The type as ONNX Runtime spells it: "tensor(float)", "seq(tensor(int64))", "map(string,tensor(float))", ...
    shape
        For each dimension its size, its symbolic name, or None if it has neither.  The whole shape is None if the model
        does not state it.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None = None


@dataclass(frozen=True)
class OnnxInfo:
    """The inputs, outputs and metadata of an ONNX model.

    Attributes
    ----------
    inputs, outputs
        The inputs that have no initializer, and the outputs, in the order of the graph.
    overridable
        The inputs that have an initializer, for which a call may pass another value.  Empty for IR versions below 4, in
        which an initializer is a constant.
    producer_name, producer_version, domain, description, graph_name, graph_description
        The fields of these names in the model.  A missing field is "".
    version
        The version of the model, or None.
    metadata
        The metadata_props of the model, as a dict.
    """

    inputs: tuple[OnnxValue, ...] = ()
    outputs: tuple[OnnxValue, ...] = ()
    overridable: tuple[OnnxValue, ...] = ()
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    description: str = ""
    graph_name: str = ""
    graph_description: str = ""
    version: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)


def onnx_info(content: bytes | memoryview, where: str = "model") -> OnnxInfo:
    """Read the inputs, outputs and metadata of a model.

    Parameters
    ----------
    content
        The bytes of an .onnx file.
    where
        The name of the model in messages.

    Raises
    ------
    RelvmFormatError
        The bytes are not an ONNX model.
    """
    return info_of(check_model(memoryview(content), where).model, where)


def info_of(model: Message, where: str = "model") -> OnnxInfo:
    """Return the inputs, outputs and metadata of a ModelProto.

    where: the name of the model in messages.

    Raises
    ------
    RelvmFormatError
        The model has no graph, a type is nested too deeply, or a string is not UTF-8.
    """
    if not model.has("graph"):
        raise RelvmFormatError(f"{where} is not an ONNX model: it has no graph")
    try:
        return _info_of(model)
    except ValueError as error:
        raise RelvmFormatError(f"{where} is not an ONNX model: {error}") from None


def _info_of(model: Message) -> OnnxInfo:
    graph = model.graph
    values = tuple(map(_value, graph.input))
    given = {_text(tensor.name) for tensor in (*graph.initializer, *(each.values for each in graph.sparse_initializer))}
    is_overridable = model.ir_version >= 4
    return OnnxInfo(
        tuple(value for value in values if value.name not in given),
        tuple(map(_value, graph.output)),
        tuple(value for value in values if value.name in given and is_overridable),
        _text(model.producer_name),
        _text(model.producer_version),
        _text(model.domain),
        _text(model.doc_string),
        _text(graph.name),
        _text(graph.doc_string),
        model.model_version if model.has("model_version") else None,
        {_text(entry.key): _text(entry.value) for entry in model.metadata_props},
    )


def _text(text: str | bytes) -> str:
    """Return a string of a message.  If it is a bytes object, because it is not UTF-8, raise ValueError."""
    return text if isinstance(text, str) else str(text, "utf-8")


def _value(info: Message) -> OnnxValue:
    return OnnxValue(_text(info.name), *_type(info.type, 0))


def _type(proto: Message, depth: int) -> tuple[str, tuple[int | str | None, ...] | None]:
    """Return the type of a TypeProto as a string, spelled as in ONNX Runtime, and the shape.

    The shape is None if the TypeProto has none.

    depth: the number of types around this one, to limit the recursion.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("a type is nested too deeply")
    match proto.which_oneof():
        case "tensor_type" | "sparse_tensor_type" as kind:
            part = getattr(proto, kind)
            shape = tuple(map(_dim, part.shape.dim)) if part.has("shape") else None
            return f"{kind.removesuffix('_type')}({_element(part.elem_type)})", shape
        case "sequence_type":
            return f"seq({_type(proto.sequence_type.elem_type, depth + 1)[0]})", None
        case "map_type":
            key, value = proto.map_type.key_type, proto.map_type.value_type
            return f"map({_element(key)},{_type(value, depth + 1)[0]})", None
        case "optional_type":
            return f"optional({_type(proto.optional_type.elem_type, depth + 1)[0]})", None
    return "", None


def _element(number: int) -> str:
    return ELEMENT_TYPES[number].text if 0 <= number < len(ELEMENT_TYPES) else str(number)


def _dim(dim: Message) -> int | str | None:
    if dim.has("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return _text(dim.dim_param) or None
