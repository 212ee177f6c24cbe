"""The packed functions that programs call, and the log to which they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.modes import plain

from relvm import vm


class Host:
    """The host functions of one run, and their log.

    log: the entries in order; values are represented as in the reference interpreter.
    """

    def __init__(self) -> None:
        self.log: list[tuple] = []
        self.kept: Callable | None = None

    def reset(self) -> None:
        self.__init__()

    def tell(self, *values: Any) -> int:
        self.log.append(tuple(map(plain, values)))
        return len(self.log)

    def echo(self, value: Any) -> Any:
        return value

    def part(self, x: Any) -> np.ndarray:
        self.log.append(("part", plain(x)))
        return np.ravel(plain(x))[:3]

    def pure(self, value: int) -> int:
        return value // 3 - 5

    def pick(self, index: int, *values: int) -> int:
        self.log.append(("pick", index))
        if not 0 <= index < len(values):
            raise IndexError(f"pick: index {index} of {len(values)} values")
        return values[index]

    def call(self, function: Callable, value: int) -> int:
        self.log.append(("call", value))
        result = function(value)
        self.log.append(("called", result))
        return result

    def keep(self, function: Callable) -> None:
        self.kept = function

    def call_kept(self, value: int) -> int:
        return -1 if self.kept is None else self.call(self.kept, value)


HOST = Host()
NAMES = ("tell", "echo", "part", "pure", "pick", "call", "keep", "call_kept")
PACKED = {f"random.{name}": getattr(HOST, name) for name in NAMES}


def register() -> None:
    """Register the packed functions."""
    for name, function in PACKED.items():
        vm.register_func(name, function, override=True)
