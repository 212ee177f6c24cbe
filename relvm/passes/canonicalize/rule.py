"""The type of rewrite rules of the pass `canonicalize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relvm.ir.expr import Expr, OpCall
from relvm.ir.operator import Operator


class Definitions:
    """A table in which a rewrite rule can look up the operator call that computes a variable.

    Parameters
    ----------
    calls
        A mapping from variables to the calls that compute them.  A variable that rules must not look up is left out.
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
