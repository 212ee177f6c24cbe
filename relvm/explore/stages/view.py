"""One stage of a model, as lines of text."""

from __future__ import annotations

from relvm.data_classes import dataclass
from relvm.display import Displayed, html_lines, short_text

Origins = tuple[str, ...]
_SHOWN_LINES = 40


@dataclass(frozen=True)
class Line:
    """A line of a stage's text.  origins: the source locations of the code from which the line was compiled."""

    text: str
    origins: Origins = ()


@dataclass(frozen=True, repr=False)
class View(Displayed):
    """A model at one stage.

    Attributes
    ----------
    name
        Name of the pass that produced the stage, or "given", "routine", "bytecode", "kernels", "c" or "assembly".
    about
        Description of the stage.  For a pass it is the first sentence of the pass's docstring.
    seconds
        Time that the stage took.
    is_ir
        Whether the text is that of a module.  The page shows differences only between two modules.
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
        """The lines as one string."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return short_text(self.text, _SHOWN_LINES)  # who asks for a stage asks for its text

    def _repr_html_(self) -> str:
        return html_lines(self.text, f"{self.name}: {self.about}")
