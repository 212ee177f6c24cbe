"""Outputs of a model, by position and by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from relvm.display import MAX_LINES, short_text
from relvm.errors import RelvmNameError, counted, known_names


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

    def __contains__(self, key: object) -> bool:
        """Return whether `key` is the name of an output or, if `key` is not a string, one of the values."""
        return key in self.names if isinstance(key, str) else tuple.__contains__(self, key)

    def __getattr__(self, name: str) -> Any:
        """Raise an AttributeError that says how to get the output of that name."""
        hint = f"write outputs[{name!r}]" if name in self.names else f"the outputs are {', '.join(self.names)}"
        raise AttributeError(f"no attribute {name}; {hint}", name=name, obj=self)

    def __repr__(self) -> str:
        items = [short_text(f"  {name}: {_one_line(value)}", 1) for name, value in self.items()]
        if len(items) >= MAX_LINES:
            items[MAX_LINES - 2 :] = [f"  ... {len(items) - MAX_LINES + 2} more"]
        return "\n".join([counted(len(self), "output"), *items])

    def get(self, name: str, default: Any = None) -> Any:
        """Return the output of that name, or `default` if there is none."""
        return tuple.__getitem__(self, self.names.index(name)) if name in self.names else default

    def values(self) -> tuple[Any, ...]:
        """Return the values of the outputs, in order."""
        return tuple(self)

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


def _one_line(value: Any) -> str:
    """Return the dtype, the shape and the first elements of an array, or the repr of another value."""
    if isinstance(value, np.ndarray):
        elements = ", ".join(str(element) for element in value.flat[:4]) + ", ..." * (value.size > 4)
        return f"{value.dtype}{list(value.shape)} {elements}"
    return repr(value)


def outputs_class(names: Iterable[str]) -> type[Outputs]:
    """Return the subclass of Outputs for a model whose outputs have the given names."""
    return type("Outputs", (Outputs,), {"__slots__": (), "__module__": __name__, "names": tuple(names)})


def _restored(names: tuple[str, ...], values: tuple[Any, ...]) -> Outputs:
    return outputs_class(names)(values)
