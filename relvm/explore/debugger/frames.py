"""The state of a debugged run: the stop, the call stack, and the values of registers."""

from __future__ import annotations

from typing import Any

from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.explore.draw.format_value import describe_value
from relvm.quoting import terminal, terminal_lines, terminal_message


@dataclass(frozen=True, repr=False)
class Frame(Displayed):
    """A stack frame: a call of a function that has not returned yet.

    Attributes
    ----------
    function
        Name of the function.
    instruction
        Number of the next instruction, or of the call if the function has called another function.
    text
        The instruction as text.
    value
        Names of the values that the instruction computes, separated by commas, or empty if they are unknown.
    origins
        Source locations of the instruction.  Empty if the executable was not built for debugging.
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


@dataclass(frozen=True, repr=False)
class RegisterValue(Displayed):
    """A register that contains a value, or a buffer of a kernel.

    Attributes
    ----------
    number
        Number of the register in its function.
    name
        Name of the value in the program.  Empty if the value has no name, or if the name is ambiguous.
    shown
        Summary of the value: for a tensor its dtype, shape and range.
    label
        Name of the register in the listing: "r3", or in a kernel "s3", "v0", "w1" or, for a buffer, "b2".
    """

    number: int
    name: str
    shown: str
    label: str

    def __str__(self) -> str:
        return terminal(f"{self.label}  {self.name or '-'}  {self.shown}")


@dataclass(frozen=True, repr=False)
class Stop(Displayed):
    """A point at which a run has stopped, or the end of the run.

    Attributes
    ----------
    reason
        "breakpoint", "step", "nan", "error", "interrupt" or "end".
    frame
        The innermost frame, or None at the end.
    depth
        Number of frames on the call stack.
    about
        Details of the reason: for "nan" the value with NaN, for "error" the error message.  Empty for other reasons.
    source
        The source line of the next instruction of `frame`, or "" if the line is not known or its file cannot be read.
    listing
        The instructions around the next one, as text.
    result
        Result of the run if the reason is "end", otherwise None.
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
            return f"the run has ended: {describe_value(self.result)}"
        place = f", {self.frame.origins[0]}" if self.frame.origins else ""
        about = f": {self.about}" if self.about else ""
        source = f":  {self.source}" if self.source else ""
        head = f"in {self.frame.function}{place}{source}"
        return terminal_lines(f"{terminal_message(f'{self.reason}{about}')}\n{terminal(head)}\n{self.listing}")
