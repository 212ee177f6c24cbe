"""The type of a rule of `canonicalize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relvm.ir.expr import Expr, OpCall
from relvm.ir.operator import Operator


class Definitions:
    """The operator calls that compute variables.

    Parameters
    ----------
    calls
        A variable -> the call that computes it, for the variables that a rule may look at.
    """

    def __init__(self, calls: Mapping[Expr, OpCall]) -> None:
        self.calls = calls

    def call_of(self, expr: Expr, *operators: Operator) -> OpCall | None:
        """Return the call that computes `expr`, or None if that is unknown or calls another operator than these."""
        call = self.calls.get(expr)
        return call if call is not None and call.op in operators else None


Rule = Callable[[OpCall, Definitions], Expr | None]
"""Return the replacement of a call: an atom, or a call whose arguments may be calls.  None: the rule does not apply."""
