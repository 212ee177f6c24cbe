"""The inputs, outputs and metadata of an ONNX model, read from its bytes without the onnx package.

Field numbers are those of onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relvm.errors import RelvmFormatError
from relvm.frontend.protobuf import LENGTH, VARINT, NotAMessage, fields, read_varint

# Names of TensorProto.DataType, by number, as ONNX Runtime spells them in types such as "tensor(float)".
ELEMENT_TYPES = (
    *("undefined", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16"),
    *("double", "uint32", "uint64", "complex64", "complex128", "bfloat16"),
    *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1"),
    *("float8e8m0", "uint2", "int2"),
)
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
    try:
        return _model(_Message(memoryview(content), 0, len(content)))
    except (NotAMessage, UnicodeDecodeError) as error:
        raise RelvmFormatError(f"{where} is not an ONNX model: {error}") from None


@dataclass(frozen=True)
class _Message:
    data: memoryview
    start: int
    end: int

    def __iter__(self) -> Iterator[tuple[int, _Message | int]]:
        """Yield the field number and the value of each field of the message.

        The value of a length-delimited field is a _Message, and the value of a varint is an int.  Other fields are
        skipped.
        """
        for number, wire, _, begin, stop in fields(self.data, self.start, self.end):
            if wire == LENGTH:
                yield number, _Message(self.data, begin, stop)
            elif wire == VARINT:
                yield number, read_varint(self.data, begin, stop)[0]

    def text(self) -> str:
        return str(self.data[self.start : self.end], "utf-8")

    def strings(self, *numbers: int) -> list[str]:
        """Return the strings in the fields `numbers`, in the order of `numbers`.  A missing string is ""."""
        return [parts[-1].text() if parts else "" for parts in self.fields_by_number(*numbers)]

    def messages(self, number: int) -> list[_Message]:
        return self.fields_by_number(number)[0]

    def fields_by_number(self, *numbers: int) -> list[list[_Message]]:
        """Return a list for each number in `numbers`: the values of the length-delimited fields of this number."""
        found: dict[int, list[_Message]] = {number: [] for number in numbers}
        for number, wire, _, begin, stop in fields(self.data, self.start, self.end):
            if wire == LENGTH and number in found:
                found[number].append(_Message(self.data, begin, stop))
        return list(found.values())

    def integer(self, number: int) -> int | None:
        """Return the value of the integer field `number`, or None if it is missing.

        If the field occurs several times, the last value counts, as protobuf requires.
        """
        found = [part for each, part in self if each == number and isinstance(part, int)]
        return _signed(found[-1]) if found else None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _model(model: _Message) -> OnnxInfo:
    graphs = model.messages(7)
    if not graphs:
        raise NotAMessage("it has no graph")
    graph = graphs[-1]
    tensors, inputs, outputs, sparse = graph.fields_by_number(5, 11, 12, 15)
    values = tuple(map(_value, inputs))
    given = {part.strings(8)[0] for part in (*tensors, *(values for part in sparse for values in part.messages(1)))}
    is_overridable = (model.integer(1) or 0) >= 4
    producer_name, producer_version, domain, description = model.strings(2, 3, 4, 6)
    graph_name, graph_description = graph.strings(2, 10)
    metadata: dict[str, str] = {}
    for part in model.messages(14):
        name, value = part.strings(1, 2)
        metadata[name] = value
    return OnnxInfo(
        tuple(value for value in values if value.name not in given),
        tuple(map(_value, outputs)),
        tuple(value for value in values if value.name in given and is_overridable),
        producer_name,
        producer_version,
        domain,
        description,
        graph_name,
        graph_description,
        model.integer(5),
        metadata,
    )


def _value(info: _Message) -> OnnxValue:
    (name,) = info.strings(1)
    for declared in info.messages(2):
        return OnnxValue(name, *_type(declared, 0))
    return OnnxValue(name, "")


def _type(proto: _Message, depth: int) -> tuple[str, tuple[int | str | None, ...] | None]:
    """Return the type of a TypeProto as a string, spelled as in ONNX Runtime, and the shape.

    The shape is None if the TypeProto has none.

    depth: the number of types around this one, to limit the recursion.
    """
    if depth > _MAX_DEPTH:
        raise NotAMessage("a type is nested too deeply")

    def inner(part: _Message, number: int) -> str:
        return next((_type(each, depth + 1)[0] for each in part.messages(number)), "")

    for number, part in proto:
        if not isinstance(part, _Message):
            continue
        match number:
            case 1 | 8:
                shapes = part.messages(2)
                kind = "tensor" if number == 1 else "sparse_tensor"
                return f"{kind}({_element(part)})", tuple(map(_dim, shapes[-1].messages(1))) if shapes else None
            case 4:
                return f"seq({inner(part, 1)})", None
            case 5:
                return f"map({_element(part)},{inner(part, 2)})", None
            case 9:
                return f"optional({inner(part, 1)})", None
    return "", None


def _element(part: _Message) -> str:
    number = part.integer(1) or 0
    return ELEMENT_TYPES[number] if 0 <= number < len(ELEMENT_TYPES) else str(number)


def _dim(dim: _Message) -> int | str | None:
    size = dim.integer(1)
    if size is not None:
        return size if size >= 0 else None
    return dim.strings(2)[0] or None
