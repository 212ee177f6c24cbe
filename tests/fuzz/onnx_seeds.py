"""The initial inputs of the fuzzer of the ONNX reader: small models of ONNX's test suite, and one with every field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from frontend.onnx_suite import suite_models
from google.protobuf.descriptor import FieldDescriptor

LARGEST_BYTES = 600
COUNT = 40


def write(folder: Path) -> list[Path]:
    """Write the inputs to a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, model in enumerate(models()):
        paths.append(folder / f"{number:03}.onnx")
        paths[-1].write_bytes(model.SerializeToString())
    return paths


def models() -> list[onnx.ModelProto]:
    """Return the models."""
    small = [model for model in suite_models() if model.ByteSize() <= LARGEST_BYTES]
    return [whole_model(), *small[:: max(1, len(small) // COUNT)]]


def whole_model() -> onnx.ModelProto:
    """Return a model in which every field of each message is set at least once.  A repeated field has two values."""
    model = onnx.ModelProto()
    fill(model, 0, set())
    return model


def fill(message: Any, depth: int, seen: set[str]) -> None:
    """Set all fields of a message.  seen: the names of the messages around it, which are not nested again."""
    name = message.DESCRIPTOR.full_name
    for number, field in enumerate(message.DESCRIPTOR.fields):
        if field.message_type is not None:
            if field.message_type.full_name in seen | {name}:
                continue
            for _ in range(2 if field.is_repeated else 1):
                value = getattr(message, field.name)
                inner = value.add() if field.is_repeated else value
                inner.SetInParent()
                fill(inner, depth + 1, seen | {name})
            continue
        value = scalar(field, number)
        if field.is_repeated:
            getattr(message, field.name).extend([value, value])
        else:
            setattr(message, field.name, value)


def scalar(field: FieldDescriptor, number: int) -> Any:
    """Return a value for a field that is not a message."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = f"{field.name}{number}"
            return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return number + 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return 1
    return number + 130
