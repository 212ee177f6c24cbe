"""Functions and closures returned by a machine, as Python callables."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.runtime.binding import Callable
from relvm.runtime.convert import located
from relvm.tables import TAGS


class Closure(Callable):
    """A function or closure of a machine.

    Call it as `closure(*arguments)`, or pass it to a function of the same machine.

    A call raises the same exceptions as a call of a function of the machine; see VirtualMachine.
    """

    __slots__ = ("__weakref__",)

    name = "the function"  # the name in messages

    def call_indirect(self, /, *arguments: Any, **named: Any) -> Any:
        """Reject a call with `named` arguments.  The C binding (binding.c) handles all other calls.

        Raises
        ------
        RelvmArgumentError
            Always, because the parameters of a closure have no names.
        """
        raise RelvmArgumentError(f"{self.name}: expected arguments by position, got {', '.join(named)}")

    def plain_argument(self, k: int, value: np.generic) -> Any:
        """Return `value` as the number that argument k should be, or unchanged if it should be a tensor."""
        return value  # the parameters of a closure have no known types

    def run_error(self, arguments: tuple, status: int, result: Any) -> BaseException:
        """Return the exception of a failed run.

        arguments: the arguments of the run.   status, result: its status, and its result, which contains the error.
        """
        return self.objects.run_error(status, result)

    def argument_name(self, k: int) -> str:
        """Return the name of argument k for messages."""
        return f"{self.name}: argument {k}"

    def __repr__(self) -> str:
        return f"<{TAGS[self.tag].name.lower()} of a machine>"


def argument_error(callee: Closure, k: int, error: BaseException) -> BaseException:
    """Return `error` with the name of argument k of `callee` in its message.

    error: the exception that was raised when the argument was converted.
    """
    return located(error, callee.argument_name(k))
