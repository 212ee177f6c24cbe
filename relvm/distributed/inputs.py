"""The inputs of a function, for arrays that come from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm.bytecode.program import scalar_kind, stated_signature
from relvm.errors import RelvmArgumentError, near_matches
from relvm.runtime.array_files import from_file
from relvm.vm import Executable


@dataclass(frozen=True)
class FunctionSignature:
    """What an executable says of a function.

    types: parameter -> its type; empty where the executable says nothing.  parameters: input -> parameter, which have
    the same names but in models with names of their own.  outputs: their names, if the model has any.
    """

    types: Mapping[str, str]
    parameters: Mapping[str, str]
    outputs: list[str] | None

    @classmethod
    def of(cls, executable: Executable, function: str) -> FunctionSignature:
        """Raises RelvmFormatError: what it says is malformed."""
        found = stated_signature(executable.signature, function) or {"params": (), "attributes": {}}
        attributes = found["attributes"]
        types = {each["name"]: each["type"] for each in found["params"]}
        names = [each["name"] for each in found["params"]]
        parameters = dict(zip(attributes.get("input_names", names), names, strict=True))
        return cls(types, parameters, attributes.get("output_names"))

    def named(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Arrays by input as arguments by parameter.

        Raises
        ------
        RelvmArgumentError
            There is no such input, or not one element for a scalar.
        """
        for name in arrays:
            if self.types and name not in self.parameters:
                known = ", ".join(self.parameters)
                raise RelvmArgumentError(f"unknown input {name}: they are {known}{near_matches(name, self.parameters)}")
        arguments = {self.parameters.get(name, name): array for name, array in arrays.items()}
        return {name: self._fitting(name, array) for name, array in arguments.items()}

    def first(self, array: np.ndarray) -> Any:
        """An array as the first argument.  Raises as `named`."""
        return self._fitting(next(iter(self.types)), array) if self.types else array

    def _fitting(self, parameter: str, array: np.ndarray) -> Any:
        """An array of a file as an argument; its only element for a parameter that is a scalar."""
        type_text = self.types.get(parameter, "")
        kind = scalar_kind(type_text)
        if not kind:
            return from_file(array, type_text)
        if array.size != 1:
            raise RelvmArgumentError(f"input {parameter} is of type {kind}: expected 1 element, got {array.size}")
        return array.item()
