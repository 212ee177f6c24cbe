"""Comparison of messages that relvm reads (relvm/frontend/onnx_messages.py) with those of the onnx package."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from relvm.frontend.onnx_messages import Message

FLOATS = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)


def differences(found: Message, expected: Any, path: str) -> Iterator[str]:
    """Yield the path of each field that differs, also in the messages inside.

    found: a message that relvm has read.   expected: the same message of the onnx package.   path: its path.
    """
    present = {field.name: value for field, value in expected.ListFields()}
    if found.fields().keys() != present.keys():
        yield f"{path}: the fields are {sorted(found.fields())}, expected {sorted(present)}"
        return
    for field in expected.DESCRIPTOR.fields:
        here, value, wanted = f"{path}.{field.name}", getattr(found, field.name), getattr(expected, field.name)
        if field.is_repeated and len(value) != len(wanted):
            yield f"{here}: {len(value)} values, expected {len(wanted)}"
        elif field.message_type is not None:
            if field.is_repeated:
                for i, pair in enumerate(zip(value, wanted, strict=True)):
                    yield from differences(*pair, f"{here}[{i}]")
            elif field.name in present:
                yield from differences(value, wanted, here)
        elif _plain(field, value) != _plain(field, wanted):
            yield f"{here}: {value}, expected {wanted}"


def _plain(field: FieldDescriptor, value: Any) -> Any:
    """Return a value that can be compared: floats as their bits."""
    values = list(value) if field.is_repeated else [bytes(value) if isinstance(value, memoryview) else value]
    return struct.pack(f"{len(values)}d", *values) if field.cpp_type in FLOATS else values
