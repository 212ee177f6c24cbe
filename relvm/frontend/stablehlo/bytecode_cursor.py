"""A position in MLIR bytecode, and the encodings of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from relvm.errors import RelvmFormatError, counted

_T = TypeVar("_T")


class ByteCursor:
    """A position in a part of a file.

    data: the bytes of the whole file.
    at, end: the position, and the end of the part.
    place: the name of the file, for messages.
    """

    def __init__(self, data: bytes, at: int, end: int, place: str) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.place = place

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        raise RelvmFormatError(f"{self.place}: offset {self.at if at is None else at}: {reason}")

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return self.end - self.at

    def byte(self) -> int:
        if self.at >= self.end:
            self.fail("the file ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def bytes(self, count: int) -> bytes:
        """Read `count` bytes."""
        if count > self.left:
            self.fail(f"expected {counted(count, 'byte')}, got {self.left}")
        self.at += count
        return self.data[self.at - count : self.at]

    def part(self, count: int) -> ByteCursor:
        """Return a cursor over the next `count` bytes, and move behind them."""
        if count > self.left:
            self.fail(f"expected {counted(count, 'byte')}, got {self.left}")
        self.at += count
        return ByteCursor(self.data, self.at - count, self.at, self.place)

    def varint(self) -> int:
        """Read an unsigned integer of at most 64 bits.

        The number of zero bits below the lowest 1 bit of the first byte is the number of bytes that follow it.
        """
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.bytes(8), "little")
        more = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.bytes(more), "little") << 8) >> (more + 1)

    def flagged(self) -> tuple[int, bool]:
        """Read an integer whose lowest bit is a flag."""
        value = self.varint()
        return value >> 1, bool(value & 1)

    def signed(self) -> int:
        """Read a signed integer in zigzag encoding."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def count(self, what: str) -> int:
        """Read the number of items that follow.

        Fail if it exceeds the number of bytes left, because each item takes at least one byte.

        what: the items, in the plural, for the message.
        """
        at, value = self.at, self.varint()
        if value > self.left:
            self.fail(f"expected {value} {what}, but only {self.left} bytes are left", at)
        return value

    def items(self, what: str, item: Callable[[], _T]) -> list[_T]:
        """Read a number of items, then the items."""
        return [item() for _ in range(self.count(what))]

    def text(self) -> str:
        """Read a string that ends with a zero byte."""
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            self.fail("a string does not end")
        found = self.data[self.at : stop]
        self.at = stop + 1
        return found.decode("utf-8", "replace")

    def integer_of(self, bits: int) -> int:
        """Read an integer of `bits` bits, at most 64, and return its bits as an unsigned number."""
        value = self.byte() if bits <= 8 else self.signed()
        return value & ((1 << bits) - 1)
