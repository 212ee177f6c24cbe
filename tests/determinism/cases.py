"""Cases of the tests of determinism: functions with their arguments, and the file of them that driver.c reads."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from frontend.onnx_excluded import RANDOM, REFUSED
from frontend.onnx_suite import node_cases
from onnx import numpy_helper

from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module
from relvm.numpy_dtypes import dtype_number, pack_strings, plain_array


@dataclass(frozen=True)
class Calls:
    """A module, and calls of its functions: pairs of a name and the arguments."""

    name: str
    module: Module
    calls: tuple[tuple[str, tuple[Any, ...]], ...]


def operator_cases(batch: int = 100, step: int = 1) -> Iterator[Calls]:
    """Yield the node cases of ONNX's backend suite that relvm runs and that draw no random numbers.

    batch: the number of functions of a module.   step: only every `step`-th case is used.
    """
    excluded = {name.removesuffix("_cpu") for name in (*REFUSED, *RANDOM)}
    cases = [(name, case) for name, case in sorted(node_cases().items()) if name not in excluded][::step]
    for first in range(0, len(cases), batch):
        functions, calls = [], []
        for name, case in cases[first : first + batch]:
            functions.append(replace(from_onnx(case.model)["main"], name=name))
            for inputs, _ in case.data_sets:
                calls.append((name, tuple(map(_input, inputs, case.model.graph.input))))
        yield Calls(f"operators{first:05}", Module(tuple(functions)), tuple(calls))


def _input(value: Any, port: Any) -> Any:
    """Return an input of a case as a value for a machine."""
    if hasattr(value, "SerializeToString"):
        return numpy_helper.to_array(value)
    return value


def encoded(calls: Sequence[tuple[str, tuple[Any, ...]]]) -> bytes:
    """Return the file with calls that driver.c reads."""
    parts: list[bytes] = []
    for name, arguments in calls:
        content = name.encode()
        parts += [struct.pack("<q", len(content)), content, struct.pack("<q", len(arguments))]
        for argument in arguments:
            _encode(argument, parts)
    return b"".join(parts)


def _encode(value: Any, parts: list[bytes]) -> None:
    def add(letter: str, *numbers: int) -> None:
        parts.append(struct.pack(f"<{1 + len(numbers)}q", ord(letter), *numbers))

    match value:
        case None:
            add("n")
        case bool():
            add("b", value)
        case int():
            add("i", value)
        case float():
            add("f")
            parts.append(struct.pack("<d", value))
        case str():
            content = value.encode()
            add("s", len(content))
            parts.append(content)
        case tuple() | list():
            add("l" if isinstance(value, list) else "u", len(value))
            for item in value:
                _encode(item, parts)
        case _:
            array = plain_array(np.asarray(value))
            add("t", dtype_number(array.dtype), array.ndim, *array.shape)
            content = array.tobytes() if array.dtype != object else pack_strings(array).tobytes()
            if array.dtype == object:
                parts.append(struct.pack("<q", len(content)))
            parts.append(content)
