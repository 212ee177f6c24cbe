"""Where a run that is debugged stands: a stop, the functions inside each other, what their registers hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relvm.explore.draw.format_value import shown_value
from relvm.quoting import terminal, terminal_lines, terminal_message


@dataclass(frozen=True)
class Frame:
    """A function that is being run.

    Attributes
    ----------
    function
        Its name.
    instruction
        The number of the instruction that it comes to next; of one that called another: of its call.
    text
        That instruction.
    value
        The names of the values that it computes, separated by commas; empty where nothing says it.
    origins
        The places in the source that it comes from; empty where the executable is not built for debugging.
    """

    function: str
    instruction: int
    text: str
    value: str
    origins: tuple[str, ...]

    def __str__(self) -> str:
        value = f"  ; {self.value}" if self.value else ""
        place = f"  ({self.origins[0]})" if self.origins else ""
        return terminal(f"{self.function}:{self.instruction}  {self.text}{value}{place}")


@dataclass(frozen=True)
class RegisterValue:
    """A register that holds something.

    Attributes
    ----------
    number
        Of the function's registers.
    name
        That of its value in the program; empty where it has none, or one of several.
    shown
        The value in short: dtype, shape and range of a tensor.
    """

    number: int
    name: str
    shown: str

    def __str__(self) -> str:
        return terminal(f"r{self.number}  {self.name or '-'}  {self.shown}")


@dataclass(frozen=True)
class Stop:
    """Where a run has stopped, or how it ended.

    Attributes
    ----------
    reason
        "breakpoint", "step", "nan", "error", "interrupt" or "end".
    frame
        The innermost function; None at the end.
    depth
        How many functions are inside each other.
    about
        What there is to say: of "nan" which value, of "error" the message.
    source
        The line of the source that it comes from, where that can be read.
    listing
        The instructions around it, as text.
    result
        At the end: of the run.
    """

    reason: str
    frame: Frame | None = None
    depth: int = 0
    about: str = ""
    source: str = ""
    listing: str = ""
    result: Any = None

    def __str__(self) -> str:
        if self.frame is None:
            return f"the run has ended: {shown_value(self.result)}"
        place = f", {self.frame.origins[0]}" if self.frame.origins else ""
        about = f": {self.about}" if self.about else ""
        source = f":  {self.source}" if self.source else ""
        head = f"in {self.frame.function}{place}{source}"
        return terminal_lines(f"{terminal_message(f'{self.reason}{about}')}\n{terminal(head)}\n{self.listing}")

    __repr__ = __str__
