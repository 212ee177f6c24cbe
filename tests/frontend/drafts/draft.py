"""A random ONNX node under construction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

DTYPES = ("float32", "float64", "int32", "int64", "float32")
FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
MOVED = (*DTYPES, "float16", "uint8", "int8", "uint16", "int16", "uint32", "uint64", "bool")  # of data movement


@dataclass
class Draft:
    """A node under construction.

    arrays: its inputs, with None for an omitted input.
    known: the numbers of the inputs whose shapes are always known, because the rank of a result depends on a size.
    sequence: the number of first arrays that are the items of a sequence, which is the node's first input.
    """

    random: np.random.Generator
    opset: int
    arrays: list[np.ndarray | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    outputs: int = 1
    sequence: int = 0

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def shape(self, least: int = 0, most: int = 4) -> list[int]:
        """Draw a shape of a rank from `least` to `most`.  Few shapes have an axis of size 0."""
        sizes = self.positive_shape(least, most)
        if sizes and self.number(0, 9) == 0:
            sizes[self.number(0, len(sizes) - 1)] = 0
        return sizes

    def positive_shape(self, least: int = 0, most: int = 4) -> list[int]:
        return [self.number(1, 4) for _ in range(self.number(least, most))]

    def broadcast(self, shape: list[int]) -> list[int]:
        """Draw a shape that broadcasts to `shape`: some sizes are 1, and some of the first axes are missing."""
        sizes = [size if self.number(0, 3) else 1 for size in shape]
        return sizes[self.number(0, len(sizes)) if self.number(0, 2) == 0 else 0 :]

    def tensor(self, shape: list[int], dtype: str = "float32", low: float = -4, high: float = 4) -> np.ndarray:
        self.arrays.append(np.asarray(self.random.uniform(low, high, shape).round(1)).astype(dtype))
        return self.arrays[-1]

    def numbers(self, *values: int) -> None:
        self.known.add(len(self.arrays))
        self.arrays.append(np.array(values, np.int64))

    def list_of(self, name: str, first_opset: int, values: list[int]) -> None:
        """Add a list of integers: an input from `first_opset` on, and the attribute `name` before."""
        if self.opset >= first_opset:
            self.numbers(*values)
        else:
            self.attributes[name] = values

    def axis(self, shape: list[int]) -> int:
        """Draw an axis, counted from the end in half of the cases.  Old opsets count from the beginning only."""
        return self.number(-len(shape) if self.opset >= 13 else 0, len(shape) - 1)

    def axes(self, shape: list[int], count: int) -> list[int]:
        """Draw different axes, in any order."""
        chosen = self.random.permutation(len(shape))[:count]
        return [int(axis) - (self.one_of(0, len(shape)) if self.opset >= 13 else 0) for axis in chosen]
