"""Names that differ from names in use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

IDENTIFIER = re.compile(r"[^\W\d]\w*")


def unique_name(name: str, used_names: set[str]) -> str:
    """Return `name`, with a number appended if it is in `used_names`, and add the result to `used_names`."""
    unique, count = name, 0
    while unique in used_names:
        count += 1
        unique = f"{name}_{count}"
    used_names.add(unique)
    return unique


class UniqueNames:
    """A callable that returns a unique name for each object of a printed text.

    The result is the `name` of the object, changed to a valid identifier if necessary.  A number is appended if the
    name is already in use.
    """

    def __init__(self, reserved: Iterable[str], default: str) -> None:
        self.used_names = set(reserved)
        self.default = default
        self.given: dict[Any, str] = {}
        self.last: Counter[str] = Counter()

    def __call__(self, item: Any) -> str:
        if item not in self.given:
            self.given[item] = self.unique(item.name)
            self.used_names.add(self.given[item])
        return self.given[item]

    def release(self, items: Iterable[Any]) -> None:
        """Make the names of `items` available again, because the items are out of scope."""
        self.used_names -= {self.given[item] for item in items}

    def unique(self, name: str) -> str:
        if not IDENTIFIER.fullmatch(name):
            name = re.sub(r"\W+", "_", name)
            name = name if IDENTIFIER.fullmatch(name) else f"{self.default}{name.rstrip('_')}"
        if name not in self.used_names:
            return name
        base = re.sub(r"_\d+$", "", name)
        base = self.default if base in ("", "_") else base
        while True:
            self.last[base] += 1
            name = f"{base}_{self.last[base]}"
            if name not in self.used_names:
                return name
