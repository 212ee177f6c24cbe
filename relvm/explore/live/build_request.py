"""A request of the page: a program, the build options, and the passes to leave out."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError


@dataclass(frozen=True)
class BuildRequest:
    """A request to build a program: the program and its build options.

    Attributes
    ----------
    text
        The program.  Empty for an ONNX model.
    dims
        The sizes of symbolic dimensions of an ONNX model, written as after `--dim` in a shell: "batch=4 'seq len=8'".
    exec_mode
        "bytecode" or "compiled": whether the generated code of functions is bytecode or C.
    target
        "c", "bytecode" or "numpy": the form of kernels.
    fused
        Whether operators are fused into common kernels.
    without
        Names of optional passes to leave out, such as "cse".
    assembly
        Whether to show the assembly code of kernels.
    """

    text: str
    exec_mode: str = "bytecode"
    target: str = "c"
    fused: bool = True
    dims: str = ""
    without: tuple[str, ...] = ()
    assembly: bool = False

    @classmethod
    def from_json(cls, data: bytes | str) -> BuildRequest:
        """Parse a request.  Raise RelvmArgumentError unless it is a JSON object with the fields of this class."""
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RelvmArgumentError(f"expected a JSON object, got other data: {error}") from None
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or sorted(values) != sorted(names):
            raise RelvmArgumentError(f"expected a JSON object with the fields {', '.join(names)}")
        for name, value in values.items():
            _expect_form(name, value)
        return cls(**values | {"without": tuple(values["without"])})

    def to_json(self) -> str:
        """Return the request as JSON, in ASCII."""
        return json.dumps(asdict(self))


def _expect_form(name: str, value: Any) -> None:
    match name:
        case "fused" | "assembly":
            if not isinstance(value, bool):
                raise RelvmArgumentError(f"{name}: expected true or false, got {type(value).__name__}")
        case "without":
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise RelvmArgumentError("`without`: expected a list of pass names")
        case _:
            if not isinstance(value, str):
                raise RelvmArgumentError(f"{name}: expected a string, got {type(value).__name__}")
            if not _is_utf8(value):
                raise RelvmArgumentError(f"{name}: expected text, got an unpaired surrogate")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
