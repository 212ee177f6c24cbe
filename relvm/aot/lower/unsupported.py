"""The constructs of a program that ahead-of-time export does not support."""

from __future__ import annotations

from typing import NoReturn

from relvm.errors import RelvmUnsupportedError, located

_LISTED = 10  # constructs in a message
_LISTED_UNBOUNDED = 2  # of these, constructs whose only problem is an unbounded size
_UNBOUNDED = "of unbounded size"


class Refused(Exception):
    """A value is not supported, or depends on one that is not.  `Refusals` contains the reason."""


class Refusals:
    """The unsupported constructs of a program.  They are collected so that one error can list all of them."""

    def __init__(self) -> None:
        self._errors: dict[str, RelvmUnsupportedError] = {}
        self.unbounded_sizes: dict[str, None] = {}  # sizes of the inputs that need an upper bound

    @property
    def is_empty(self) -> bool:
        return not self._errors

    def add(self, function: str, variable: str, what: str, origin: str) -> None:
        """Add an unsupported construct.

        Parameters
        ----------
        function
            The name of the function that contains the construct.
        variable
            The name of the variable that is bound to the construct.  In ONNX models, it is the name of a value.
        what
            The unsupported construct, and the alternative if there is one.
        origin
            The source location of the construct, or a location near it.  Empty if it is unknown.
        """
        text = f"{function}: {variable}: ahead-of-time export does not support {what}"
        error = located(RelvmUnsupportedError(text), origin)
        assert isinstance(error, RelvmUnsupportedError)
        self._errors.setdefault(str(error), error)

    def refuse(self, function: str, variable: str, what: str, origin: str) -> NoReturn:
        """Add an unsupported construct, and raise Refused.  The parameters are those of `add`."""
        self.add(function, variable, what, origin)
        raise Refused

    def raise_all(self) -> None:
        """Raise a RelvmUnsupportedError that lists at most 10 of the constructs.  Do nothing if there are none."""
        sizes = ", ".join(f'"{name}": 1' for name in self.unbounded_sizes)
        advice = f"; give the inputs sizes, dims={{{sizes}}} for an ONNX or .pt2 file, or upper_bounds in a program"
        advice = advice if sizes else ""
        if len(self._errors) == 1:
            (error,) = self._errors.values()
            raise RelvmUnsupportedError(f"{error}{advice}") if sizes else error
        if self._errors:
            unbounded = [text for text in self._errors if _UNBOUNDED in text]
            listed = [text for text in self._errors if text not in unbounded[_LISTED_UNBOUNDED:]][:_LISTED]
            lines = [f"\n  {text}" for text in listed]
            if len(lines) < len(self._errors):
                lines.append(f"\n  ... and {len(self._errors) - len(lines)} more")
            head = f"{len(self._errors)} parts of the program cannot be exported{advice}"
            raise RelvmUnsupportedError(f"{head}:{''.join(lines)}")
