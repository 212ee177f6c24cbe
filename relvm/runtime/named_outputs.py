"""Outputs of a model, by position and by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from relvm.errors import RelvmNameError, known_names


class Outputs(tuple):
    """The outputs of a model: a tuple whose items can also be found by name, as in `outputs["scores"]`.

    `dict(outputs)` is a dict of all outputs.  `outputs_class` makes a subclass for the names of a model.
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self, key: Any) -> Any:
        """Return an output by its index or its name, or a tuple for a slice.

        Raises
        ------
        RelvmNameError
            There is no output of that name.
        """
        if isinstance(key, str):
            if key not in self.names:
                raise RelvmNameError(f"no output {key}{known_names(key, self.names)}")
            key = self.names.index(key)
        return tuple.__getitem__(self, key)

    def keys(self) -> tuple[str, ...]:
        """Return the names of the outputs, in order."""
        return self.names

    def items(self) -> list[tuple[str, Any]]:
        """Return pairs of the name and the value of each output, in order."""
        return list(zip(self.names, self, strict=True))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _restored, (self.names, tuple(self))


def outputs_class(names: Iterable[str]) -> type[Outputs]:
    """Return the subclass of Outputs for a model whose outputs have the given names."""
    return type("Outputs", (Outputs,), {"__slots__": (), "__module__": __name__, "names": tuple(names)})


def _restored(names: tuple[str, ...], values: tuple[Any, ...]) -> Outputs:
    return outputs_class(names)(values)
