"""One stage of a model, as lines of text."""

from __future__ import annotations

from dataclasses import dataclass

Origins = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """A line of a stage's text.  origins: the source locations of its contents, as in Var.origins."""

    text: str
    origins: Origins = ()


@dataclass(frozen=True)
class View:
    """A model at one stage.

    Attributes
    ----------
    name
        The pass that made it, or "given", "routine", "bytecode" or "c".
    about
        The first sentence of the pass's docstring.
    seconds
        Time that the stage took.
    is_ir
        Whether it is a module, whose lines can be compared with those of other modules.
    changed
        Whether the text differs from that of the previous stage.
    lines
        The lines of the text.
    """

    name: str
    about: str
    seconds: float
    is_ir: bool
    changed: bool
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def __str__(self) -> str:
        return self.text
