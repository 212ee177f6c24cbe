"""Mutation of ONNX models: usually of a field of a protobuf message, rarely of single bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from frontend.onnx_models import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

NUMBERS = (0, 1, -1, 2, 3, 4, 5, 7, 16, 100, -2, 2**31 - 1, -(2**31), 2**31, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e30, -1e30, float("inf"), float("-inf"), float("nan"))
INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}


def messages(message: Message) -> Iterator[Message]:
    """Yield a message and all messages inside it, recursively."""
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for inner in value if field.is_repeated else [value]:
                yield from messages(inner)


def texts(model: onnx.ModelProto) -> list[str]:
    """Return all strings in the model, and some operator names that need not occur in it."""
    found = {node.op_type for node in model.graph.node} | {"", "é", "Add", "If", "Loop", "Reshape", "Cast", "Concat"}
    for message in messages(model):
        for field, value in message.ListFields():
            if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and field.type == FieldDescriptor.TYPE_STRING:
                found.update(value if field.is_repeated else [value])
    return sorted(found)


def scalar(field: FieldDescriptor, value: Any, names: Sequence[str], random: Random) -> Any:
    """Return a random new value for a field that is not a message.  value: the old value."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if field.cpp_type in INTEGERS:
        low, high = INTEGERS[field.cpp_type]
        number = random.choice(NUMBERS) if random.random() < 0.6 else value + random.randint(-2, 2)
        return min(max(number, low), high - 1)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return random.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        at = random.randrange(len(value) + 1)
        return value[:at] + random.randbytes(random.randrange(3)) + value[at + random.randrange(3) :]
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    return random.choice(names)


def change_repeated(field: FieldDescriptor, values: Any, names: Sequence[str], random: Random) -> None:
    at = random.randrange(len(values))
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    match random.randrange(4):
        case 0:
            del values[at]
        case 1:
            values.extend([values[at]])
        case 2 if len(values) > 1:
            kept = list(values)
            random.shuffle(kept)
            copies = [type(value).FromString(value.SerializeToString()) for value in kept] if is_message else kept
            del values[:]
            values.extend(copies)
        case _ if not is_message:
            values[at] = scalar(field, values[at], names, random)


def change(model: onnx.ModelProto, random: Random) -> None:
    """Mutate one field of one message in place: change or remove a value, or add or remove an element."""
    message, names = random.choice(list(messages(model))), texts(model)
    if random.random() < 0.15:  # set any field, even if it is not present
        field = random.choice(message.DESCRIPTOR.fields)
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name).SetInParent()
            return
        empty = b"" if field.type == FieldDescriptor.TYPE_BYTES else 0
        if field.is_repeated:
            getattr(message, field.name).append(scalar(field, empty, names, random))
        else:
            setattr(message, field.name, scalar(field, empty, names, random))
        return
    fields = message.ListFields()
    if not fields:
        return
    field, value = random.choice(fields)
    if field.is_repeated:
        change_repeated(field, value, names, random)
    elif random.random() < 0.2:
        message.ClearField(field.name)
    elif field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
        setattr(message, field.name, scalar(field, value, names, random))


def mutated(models: Sequence[onnx.ModelProto], random: Random) -> onnx.ModelProto | bytes:
    """Return a copy of one of the models with one to three changes.

    One result in twenty is instead the bytes of a model with further changes, which are often not a valid model.
    """
    model = onnx.ModelProto()
    model.CopyFrom(random.choice(models))
    for _ in range(random.randint(1, 3)):
        change(model, random)
    if random.random() > 0.05:
        return model
    content = bytearray(model.SerializeToString())
    for _ in range(random.randint(1, 3)):
        content[random.randrange(len(content))] = random.randrange(256)
    return bytes(content)
