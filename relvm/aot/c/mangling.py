"""C names of the functions, kernels and constants of an export.  All of them start with the name of the model."""

from __future__ import annotations

from relvm.aot.lower.ir import TensorStorage
from relvm.ir.expr import constant_key
from relvm.quoting import c_identifier_part


class Names:
    """The C names of functions, kernels and constants.

    prefix: the name of the model, with which all C names start.
    constants: the constants for which `constant` was called, in the order of the members of the C struct of constants.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.constants: list[TensorStorage] = []
        self._numbers: dict[object, int] = {}

    def function(self, name: str) -> str:
        return f"{self.prefix}_function_{c_identifier_part(name)}"

    def kernel(self, name: str) -> str:
        return f"{self.prefix}_kernel_{c_identifier_part(name)}"

    def extern(self, name: str) -> str:
        """Return the name of the C function that the user provides for the packed function `name`."""
        return f"{self.prefix}_extern_{c_identifier_part(name)}"

    def constant(self, storage: TensorStorage) -> str:
        """Return the C expression of the constant `storage`: a member of the struct of constants.

        A new constant is added to `constants`.  Equal constants of at most 256 bytes share a member.
        """
        key = constant_key(storage.array)
        if key not in self._numbers:
            self._numbers[key] = len(self.constants)
            self.constants.append(storage)
        return f"{self.prefix}_constants.c{self._numbers[key]}"
