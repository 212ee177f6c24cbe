"""Sizes of dimensions, as users write them: `batch=4`, `n=1..32`, `m=?`."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.errors import RelvmArgumentError


def parse_dims(settings: Iterable[str]) -> dict[str, int | tuple[int, int] | None]:
    """Parse the values of options --dim: `NAME=SIZE`, `NAME=LOW..HIGH` or `NAME=?`.

    Return a dict from each name to its size, a pair (low, high), or None for `?`.  `from_onnx` accepts this dict as
    `dims`.
    """
    sizes: dict[str, int | tuple[int, int] | None] = {}
    for setting in settings:
        name, equals, size = setting.partition("=")
        if name in sizes:
            raise RelvmArgumentError(f"--dim {setting}: {name} is given twice")
        if name and size == "?":
            sizes[name] = None
            continue
        low, dots, high = size.partition("..")
        limits = (low, high) if dots else (size,)
        numbers = [number for number in map(parse_decimal, limits) if number is not None]
        if not name or not equals or len(numbers) < len(limits) or numbers != sorted(numbers):
            raise RelvmArgumentError(f"--dim {setting}: expected NAME=SIZE, NAME=LOW..HIGH or NAME=?")
        sizes[name] = (numbers[0], numbers[1]) if dots else numbers[0]
    return sizes


def parse_decimal(text: str) -> int | None:
    """Parse a string of decimal digits.

    Return None if the string contains anything else, or if the number does not fit a signed 64-bit integer.
    """
    number = int(text) if text.isdecimal() and len(text) < 20 else -1
    return number if 0 <= number < 1 << 63 else None
