"""The type of rewrite rules of the pass `canonicalize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relvm.ir.expr import Expr, OpCall
from relvm.ir.operator import Operator


class Definitions:
    """The operator calls that compute variables, which rules can look up.

    Parameters
    ----------
    calls
        A mapping from variables to the calls that compute them.  It lacks the variables that rules must not look up.
    """

    def __init__(self, calls: Mapping[Expr, OpCall]) -> None:
        self.calls = calls

    def find_call(self, expr: Expr, *operators: Operator) -> OpCall | None:
        """Return the call that computes `expr` if it is known and its operator is one of `operators`, otherwise
        None."""
        call = self.calls.get(expr)
        return call if call is not None and call.op in operators else None


Rule = Callable[[OpCall, Definitions], Expr | None]
"""A rule returns the replacement of a call: an atom, or a call with atoms or calls as arguments.  It returns None if it
does not apply."""
