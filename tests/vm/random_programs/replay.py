"""Conversion of a module and its runs to text and back.

A failed test prints this text, and `python -m random_programs FILE` repeats the runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.expr import FunctionRef, Module
from relvm.ir.node import walk
from relvm.ir.printer import print_module

_RUN = "# run "


@dataclass(frozen=True)
class Run:
    """One call of an entry function.  args: the arguments, as passed to a VirtualMachine."""

    name: str
    args: tuple


def as_text(module: Module, runs: Iterable[Run]) -> str:
    """Return the module as text, preceded by its runs as comments."""
    lines = [f"{_RUN}{run.name}({', '.join(map(_written, run.args))})" for run in runs]
    return "\n".join(lines) + "\n\n" + print_module(module)


def from_text(text: str) -> tuple[Module, tuple[Run, ...]]:
    """Parse a module and its runs from text that `as_text` wrote."""
    lines = [line.strip().removeprefix(_RUN) for line in text.splitlines() if line.strip().startswith(_RUN)]
    return parse_module(text), tuple(Run(line.partition("(")[0], _read(line)) for line in lines)


def only(module: Module, name: str) -> Module:
    """Return a module of the function `name` and all functions that it calls, in breadth-first order."""
    names = [name]
    for met in names:  # the loop body appends to the list
        called = (item.name for item in walk(module[met]) if isinstance(item, FunctionRef))
        names.extend(dict.fromkeys(other for other in called if other not in names))
    return module.with_functions(tuple(module[met] for met in names))


def canonical_text(module: Module, name: str) -> str:
    """Return the text of the function `name` and all functions that it calls, with canonical names.

    Programs that differ only in the names of functions have the same text.
    """
    needed = only(module, name)
    order = {function.name: str(i) for i, function in enumerate(needed.functions)}
    return re.sub(r"\bf\d+(?=_|\b)", lambda found: f"f{order.get(found[0], found[0])}", print_module(needed))


def _written(value: Any) -> str:
    match value:
        case np.ndarray():
            return f"np.array({value.tolist()}, '{value.dtype}').reshape({value.shape})"
        case vm.Shape():
            return f"Shape({tuple(value)})"
        case tuple():
            return f"({', '.join(map(_written, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _read(line: str) -> tuple:
    names = {"np": np, "Shape": vm.Shape, "inf": float("inf"), "nan": float("nan")}
    return eval(f"(lambda *args: args){line[line.index('(') :]}", names)
