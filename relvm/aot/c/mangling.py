"""What an export defines in C, all of it with the model's name in front."""

from __future__ import annotations

from relvm.aot.lower.assign_storage import TensorStorage
from relvm.ir.expr import constant_key
from relvm.quoting import c_identifier_part


class Names:
    """Names by what they are for.  prefix: the model's.  constants: those that were asked for, each once."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.constants: list[TensorStorage] = []
        self._numbers: dict[object, int] = {}

    def function(self, name: str) -> str:
        return f"{self.prefix}_function_{c_identifier_part(name)}"

    def kernel(self, name: str) -> str:
        return f"{self.prefix}_kernel_{c_identifier_part(name)}"

    def constant(self, storage: TensorStorage) -> str:
        """Where a constant is."""
        key = constant_key(storage.array)
        if key not in self._numbers:
            self._numbers[key] = len(self.constants)
            self.constants.append(storage)
        return f"{self.prefix}_constants.c{self._numbers[key]}"
