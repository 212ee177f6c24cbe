"""C names of the symbols of an export, which all start with the model's name."""

from __future__ import annotations

from relvm.aot.lower.assign_storage import TensorStorage
from relvm.ir.expr import constant_key
from relvm.quoting import c_identifier_part


class Names:
    """C names of functions, kernels and constants.  prefix: the model's name.  constants: those named so far."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.constants: list[TensorStorage] = []
        self._numbers: dict[object, int] = {}

    def function(self, name: str) -> str:
        return f"{self.prefix}_function_{c_identifier_part(name)}"

    def kernel(self, name: str) -> str:
        return f"{self.prefix}_kernel_{c_identifier_part(name)}"

    def constant(self, storage: TensorStorage) -> str:
        """Return the C expression of a constant."""
        key = constant_key(storage.array)
        if key not in self._numbers:
            self._numbers[key] = len(self.constants)
            self.constants.append(storage)
        return f"{self.prefix}_constants.c{self._numbers[key]}"
