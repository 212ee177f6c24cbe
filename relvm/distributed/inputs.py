"""Conversion of arrays that are read from files to arguments of a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names, scalar_kind, signature_entry
from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, near_matches
from relvm.runtime.array_files import restore_dtype
from relvm.vm import Executable


@dataclass(frozen=True)
class FunctionSignature:
    """The signature of a function in an executable.

    types: the type of each parameter, by parameter name; empty if the executable has no signature.
    parameters: the parameter name for each input name.  The two names are equal unless the model, such as an ONNX
    model, has its own input names.
    outputs: the output names of the model, or None if it has none.
    """

    types: Mapping[str, str]
    parameters: Mapping[str, str]
    outputs: list[str] | None

    @classmethod
    def of(cls, executable: Executable, function: str) -> FunctionSignature:
        """Return the signature of `function` in `executable`.  Raise RelvmFormatError if the signature is malformed."""
        found = signature_entry(executable.signature, function) or {"params": (), "attributes": {}}
        attributes = found["attributes"]
        types = {each["name"]: each["type"] for each in found["params"]}
        names = [each["name"] for each in found["params"]]
        parameters = dict(zip(input_names(found), names, strict=True))
        return cls(types, parameters, attributes.get("output_names"))

    def named_arguments(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Convert arrays that were read from a file to arguments of the function, by parameter name.

        arrays: the arrays by the name of the input, which can differ from the name of the parameter.

        Raises
        ------
        RelvmArgumentError
            The function has no input of a given name, or the array for a scalar input does not have exactly 1 element.
        """
        for name in arrays:
            if self.types and name not in self.parameters:
                known = ", ".join(self.parameters)
                raise RelvmArgumentError(
                    f"unknown input {name}; the inputs are {known}{near_matches(name, self.parameters)}"
                )
        arguments = {self.parameters.get(name, name): array for name, array in arrays.items()}
        return {name: self._to_argument(name, array) for name, array in arguments.items()}

    def first_argument(self, array: np.ndarray) -> Any:
        """Convert an array to the first argument of the function.

        Raise RelvmArgumentError if the argument is a scalar and the array does not have exactly 1 element.
        """
        return self._to_argument(next(iter(self.types)), array) if self.types else array

    def _to_argument(self, parameter: str, array: np.ndarray) -> Any:
        """Convert an array that was read from a file to an argument.  For a scalar parameter, return the only
        element."""
        type_text = self.types.get(parameter, "")
        kind = scalar_kind(type_text)
        if not kind:
            return restore_dtype(array, type_text)
        if array.size != 1:
            raise RelvmArgumentError(
                f"input {parameter} has type {kind}: expected an array of 1 element, got {array.size}"
            )
        return array.item()
