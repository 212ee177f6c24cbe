"""The messages of ONNX files, which are read in place from the bytes of a file.  The onnx package is not needed.

C code (csrc/readers/onnx.h) checks a whole file in one pass, and reads the fields of one message at a time.  The table
csrc/tables/onnx_messages.def describes the messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from relvm.errors import RelvmFormatError, RelvmMemoryError, RelvmUnsupportedError
from relvm.runtime.binding import check_onnx, onnx_table, read_onnx

_messages, _attribute_types, _ = onnx_table()

NAMES = tuple(name for name, _ in _messages)
_TYPES = {name: number for number, name in enumerate(NAMES)}
_MANY, _ONEOF = 1, 2  # labels of fields (csrc/readers/onnx.h)
_NUMBERS, _FLOATS, _STRING, _MESSAGE = range(6), (3, 4), 6, 9  # kinds of fields

ATTRIBUTE_TYPES = {name: number for name, number, _ in _attribute_types}  # of AttributeProto.type
ATTRIBUTE_TYPE_NAMES = {number: name for name, number, _ in _attribute_types}
ATTRIBUTE_FIELDS = {number: field for _, number, field in _attribute_types if number}  # the fields with the values
EXTERNAL = 1  # TensorProto.data_location of a tensor with external data


class OnnxLimits(NamedTuple):  # named tuples are created faster than data classes, when this module is imported
    """Limits on an ONNX file.  Within the limits, reading takes memory and time in proportion to the file's size.

    Attributes
    ----------
    file_bytes
        The size of the file.
    string_bytes
        The size of a string, such as a name or a doc_string.
    messages, strings
        The number of messages and of strings in the file.
    nodes
        The number of nodes in all graphs and functions.
    depth
        The nesting depth of messages.  A value above 200 has no effect.  The limit of protobuf itself is 100.
    """

    file_bytes: int = 1 << 36
    string_bytes: int = 1 << 26
    messages: int = 1 << 22
    strings: int = 1 << 25
    nodes: int = 1 << 20
    depth: int = 200


LIMITS = OnnxLimits()


class Message:
    """A message of an ONNX file, such as a NodeProto.

    The attributes are the fields of the message in onnx.proto.  They are read from the file when one of them is used.
    A field that the message does not have is its default: 0, "", an empty message or an empty tuple.  A string that is
    not UTF-8 is a bytes object.  Repeated numbers and raw_data are memoryviews, of the file itself where possible.

    A message does not change.  `message` makes messages that are not in a file.
    """

    __slots__ = ("__dict__", "_content", "_ranges", "_type")
    _content: memoryview | None  # the file, until the fields have been read
    _ranges: tuple[int, ...]  # start and end of each part of the message in the file
    _type: int  # the number in NAMES

    def __init__(self, type_: int, content: memoryview | None, ranges: tuple[int, ...]) -> None:
        self._type = type_
        self._content = content
        self._ranges = ranges

    def __getattr__(self, name: str) -> Any:
        """Return a field that is not in the __dict__: the message has not been read, or does not have the field."""
        if name.startswith("_"):
            raise AttributeError(name)
        if self._content is not None:
            self._read()
            if name in self.__dict__:
                return self.__dict__[name]
        try:
            return _DEFAULTS[self._type][name]
        except KeyError:
            raise AttributeError(f"{NAMES[self._type]} has no field {name}") from None

    def _read(self) -> None:
        content = self._content
        if content is None:
            return
        fields = read_onnx(self._type, content, self._ranges)
        for name, type_, is_many in _SUBMESSAGES[self._type]:
            if name in fields:
                found = fields[name]
                fields[name] = (
                    tuple([Message(type_, content, ranges) for ranges in found])
                    if is_many
                    else Message(type_, content, found)
                )
        self.__dict__.update(fields)
        self._content = None

    def fields(self) -> dict[str, Any]:
        """Return the fields that the message has, by name."""
        self._read()
        return dict(self.__dict__)

    def has(self, name: str) -> bool:
        """Return whether the message has a field.  A repeated field without values counts as missing."""
        self._read()
        return name in self.__dict__

    def which_oneof(self) -> str | None:
        """Return the name of the field that is set in the oneof of the message, or None.

        A oneof is a group of fields of which a message has at most one.
        """
        return next((name for name in _ONEOFS[self._type] if self.has(name)), None)

    def replace(self, **changes: Any) -> Message:
        """Return a copy of the message with other values of some fields."""
        return message(NAMES[self._type], **{**self.fields(), **changes})

    @property
    def size_bytes(self) -> int:
        """The size of the message: in the file, or of the values of a message that is not in a file."""
        if self._ranges:
            return sum(self._ranges[1::2]) - sum(self._ranges[::2])
        return sum(map(_size_bytes, self.__dict__.values()))

    def __repr__(self) -> str:
        """Show the fields that are neither messages nor repeated."""
        shown = ", ".join(
            f"{name}={value!r}" for name, value in self.fields().items() if isinstance(value, str | int | float)
        )
        return f"{NAMES[self._type]}({shown})"


def _size_bytes(value: Any) -> int:
    match value:
        case Message():
            return value.size_bytes
        case tuple() | list():
            return sum(map(_size_bytes, value))
        case memoryview():
            return value.nbytes
        case str() | bytes():
            return len(value)
    return 8


def message(name: str, /, **fields: Any) -> Message:
    """Make a message that is not in a file.

    name: the name of the message, such as "NodeProto".
    fields: the values of the fields that the message has.
    """
    made = Message(_TYPES[name], None, ())
    assert fields.keys() <= _DEFAULTS[made._type].keys(), f"{name} has no fields {fields.keys()}"
    made.__dict__.update(fields)
    return made


def read_message(name: str, content: bytes) -> Message:
    """Return a message that the onnx package has serialized.   name: the name of the message, such as "NodeProto"."""
    return Message(_TYPES[name], memoryview(content), (0, len(content)))


_SUBMESSAGES = tuple(
    tuple((field, type_, label == _MANY) for field, kind, label, type_ in fields if kind == _MESSAGE)
    for _, fields in _messages
)
_ONEOFS = tuple(tuple(field for field, _, label, _ in fields if label == _ONEOF) for _, fields in _messages)


def _default(kind: int, label: int, type_: int) -> Any:
    if label == _MANY:
        return ()
    if kind == _MESSAGE:
        return Message(type_, None, ())
    if kind in _NUMBERS:
        return 0.0 if kind in _FLOATS else 0
    return "" if kind == _STRING else b""


_DEFAULTS = tuple({field: _default(*rest) for field, *rest in fields} for _, fields in _messages)


class CheckedModel(NamedTuple):
    """An ONNX model whose file was checked.

    model: the ModelProto.
    external: the entries of external data of all tensors, as pairs of a key and a value.
    """

    model: Message
    external: tuple[tuple[Any, Any], ...]


def check_model(content: memoryview, place: str, limits: OnnxLimits = LIMITS) -> CheckedModel:
    """Check that the bytes are a serialized ONNX model, so that its protobuf messages can be read.

    Parameters
    ----------
    content
        The bytes, which must not change afterwards.
    place
        The name of the model in error messages.
    limits
        The limits on the file.

    Raises
    ------
    RelvmFormatError
        The bytes are not a serialized ModelProto.  The error message contains the path of the field and its position.
    RelvmUnsupportedError
        The file exceeds a limit.
    RelvmMemoryError
        There is not enough memory.
    """
    found = check_onnx(content, *limits)
    if len(found) == 2:
        status, reason = found
        match status:
            case 1:
                raise RelvmFormatError(f"{place} is not an ONNX model: {reason}")
            case 2:
                raise RelvmUnsupportedError(f"{place}: the model exceeds a limit of the reader: {reason}")
        raise RelvmMemoryError(f"{place}: there is not enough memory to read the model")
    entries = [Message(_TYPES["StringStringEntryProto"], content, ranges) for ranges in found[2]]
    model = Message(_TYPES["ModelProto"], content, (0, len(content)))
    return CheckedModel(model, tuple((entry.key, entry.value) for entry in entries))


def attribute_value(attribute: Message) -> Any:
    """Return the value of an AttributeProto, or None if its type is undefined.  Repeated values are lists.

    Raises
    ------
    ValueError
        The attribute refers to an attribute of a function.
    """
    if attribute.ref_attr_name:
        raise ValueError(f"attribute {attribute.name} refers to attribute {attribute.ref_attr_name} of a function")
    field = ATTRIBUTE_FIELDS.get(attribute.type)
    value = None if field is None else getattr(attribute, field)
    return list(value) if isinstance(value, tuple | memoryview) else value


def make_node(op_type: str, inputs: Any, outputs: Any, /, **attributes: Any) -> Message:
    """Make a NodeProto of ONNX's own domain.

    attributes: integers, floats, strings, lists of integers, and GraphProtos, by name.
    """
    return message(
        "NodeProto",
        op_type=op_type,
        input=tuple(inputs),
        output=tuple(outputs),
        attribute=tuple(_make_attribute(name, value) for name, value in attributes.items()),
    )


def _make_attribute(name: str, value: Any) -> Message:
    match value:
        case int():
            return message("AttributeProto", name=name, type=ATTRIBUTE_TYPES["INT"], i=value)
        case float():
            return message("AttributeProto", name=name, type=ATTRIBUTE_TYPES["FLOAT"], f=value)
        case str():
            return message("AttributeProto", name=name, type=ATTRIBUTE_TYPES["STRING"], s=value.encode())
        case Message():
            return message("AttributeProto", name=name, type=ATTRIBUTE_TYPES["GRAPH"], g=value)
    return message("AttributeProto", name=name, type=ATTRIBUTE_TYPES["INTS"], ints=tuple(value))


def make_graph(nodes: Any, inputs: Any, outputs: Any) -> Message:
    """Make a GraphProto.  inputs, outputs: their names.  Their types are not stated."""
    infos = [tuple(message("ValueInfoProto", name=name) for name in names) for names in (inputs, outputs)]
    return message("GraphProto", node=tuple(nodes), input=infos[0], output=infos[1])
