"""The wire format of protobuf: reading and writing of single fields, without the protobuf package.

See https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, LENGTH = 0, 2  # wire types


class NotAMessage(Exception):
    """Raised if bytes are not a protobuf message."""


def fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield a tuple for each field of the serialized message data[start:end].

    The tuple consists of the field number, the wire type, the offset of the field, and the start and end of its
    content.
    """
    at = start
    while at < end:
        tag, begin = read_varint(data, at, end)
        match tag & 7:
            case 0:
                _, stop = read_varint(data, begin, end)
            case 1:
                stop = begin + 8
            case 2:
                size, begin = read_varint(data, begin, end)
                stop = begin + size
            case 5:
                stop = begin + 4
            case wire:
                raise NotAMessage(f"unknown wire type {wire} at byte {at}")
        if stop > end:
            raise NotAMessage(f"the file ends inside the field at byte {at}")
        yield tag >> 3, tag & 7, at, begin, stop
        at = stop


def read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Read the varint (integer of variable length) that begins at data[at].

    Return its value and the position after it.

    end: the end of the message.
    """
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise NotAMessage(f"invalid varint at byte {at}")


def varint(value: int) -> bytes:
    """Encode a non-negative integer as a varint (integer of variable length)."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def key(number: int, wire: int) -> bytes:
    """Encode the key with which a serialized field begins.  number: the field number.  wire: the wire type."""
    return varint(number << 3 | wire)


def string(number: int, text: str) -> bytes:
    """Encode a field with a string.  number: the field number.  text: the string, which must be ASCII."""
    return key(number, LENGTH) + varint(len(text)) + text.encode()
