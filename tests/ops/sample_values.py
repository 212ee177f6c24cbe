"""The class of sample calls of operators, and random arrays as arguments."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relvm.ir.operator import operators
from relvm.ops.elementwise import Kind

FLOATS = ("f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NUMBERS = FLOATS + INTEGERS
NUMPY_NAMES = {"bool": "bool", "f32": "float32", "f64": "float64"} | {
    name: ("int" if name[0] == "i" else "uint") + name[1:] for name in INTEGERS
}


@dataclass(frozen=True, eq=False)
class Sample:
    """A call of an operator.

    args: arrays, tuples of int for shapes, scalars, lists of these, or None for null.  keep: the sizes that cannot be
    symbolic, or None if no size can be.  fails: the class of the error that the kernel raises, or None if it succeeds.
    """

    op: str
    args: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    keep: frozenset[int] | None = frozenset()
    fails: type[Exception] | None = None

    def __str__(self) -> str:
        attributes = [f"{name}={value}" for name, value in self.attributes.items()]
        return f"{self.op}({', '.join([*map(_text, self.args), *attributes])})"


def names_of(*kinds: Kind) -> list[str]:
    """Return the names of the elementwise operators of the given kinds."""
    rules = [kind.type_rule for kind in kinds]
    return [name for name, op in operators().items() if getattr(op.type_rule, "func", None) in rules]


def _text(arg: Any) -> str:
    match arg:
        case np.ndarray():
            return f"{arg.dtype}{list(arg.shape)}"
        case tuple():
            return f"shape{list(arg)}"
        case list():
            return f"[{', '.join(map(_text, arg))}]"
    return repr(arg)


_seeds = itertools.count()


def array(dtype: str, *shape: int, special: bool = True, low: float = -5, high: float = 6) -> np.ndarray:
    """Return an array of random numbers in [low, high).

    If `special` is set and the array is large enough, it also contains extreme numbers of the dtype, such as NaN.
    """
    random, kind = np.random.default_rng(next(_seeds)), np.dtype(NUMPY_NAMES[dtype])
    if kind.kind == "f":
        made = random.uniform(low, high, shape).astype(kind)
        extremes = [np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -1.5, 2.5]
    elif kind.kind == "b":
        return np.asarray(random.integers(0, 2, shape), bool)
    else:
        info = np.iinfo(kind)
        made = np.asarray(random.integers(max(info.min, int(low)), int(high), shape), kind)
        extremes = [info.min, info.max, 0, 1, info.max, info.min, 3, 7]
    if special and made.size >= 12:
        made.reshape(-1)[: len(extremes)] = extremes
        random.shuffle(made.reshape(-1))
    return made
