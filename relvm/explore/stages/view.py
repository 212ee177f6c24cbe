"""One stage of a model, as lines of text."""

from __future__ import annotations

from dataclasses import dataclass

Origins = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A line of a stage's text.  origins: where in the source what is in it comes from
    (Var.origins)."""

    text: str
    origins: Origins = ()


@dataclass(frozen=True)
class View:
    """A model at one stage.

    Attributes
    ----------
    name
        The pass that made it, or "given", "routine", "bytecode", "c".
    about
        The first sentence of what the pass says that it does.
    seconds
        That it took.
    is_ir
        Whether it is a module, which lines of other such stages can be compared with.
    changed
        Whether the text differs from that of the stage before.
    lines
        Its text.
    """

    name: str
    about: str
    seconds: float
    is_ir: bool
    changed: bool
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """Its lines as one text."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def __str__(self) -> str:
        return self.text
