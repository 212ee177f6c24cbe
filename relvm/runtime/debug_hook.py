"""A machine's debugger: what csrc/vm/debugger.c tells Python of between the instructions of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relvm._native import ffi, lib
from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.runtime.callbacks import active, carry
from relvm.runtime.convert import NIL, take_borrowed
from relvm.runtime.instrument import Opaque
from relvm.runtime.invoke import Invoker
from relvm.runtime.status import borrowed_failure, failure
from relvm.tables import TAGS

MAX_DEPTH = (1 << 63) - 1


@dataclass(frozen=True)
class CodeLocation:
    """A function that is being run.

    Attributes
    ----------
    function
        Its name; empty for native code that was not built for debugging.
    instruction
        That it comes to next; of one that called another: its call.
    """

    function: str
    instruction: int


class MachineDebugger:
    """Stops the runs of a machine between their instructions.

    Parameters
    ----------
    runner
        The machine, which is idle.  It has one debugger at most: this takes the place of the one before.
    stop
        Called on the run's own thread, in the middle of it, with None before an instruction at which the run stops, and
        with the exception after one that failed.  What it raises, but for after a failure, ends the run.  Only it may
        ask for `depth`, `place` and `register`.

    Raises
    ------
    RelvmBusyError
        The machine is running.
    """

    def __init__(self, runner: Invoker, stop: Callable[[RelvmError | None], None]) -> None:
        self._runner = runner
        self._machine = runner.machine
        self._executable = runner.executable
        self._runner.install_debugger(ffi.new("rvm_debugger *", {"stop": lib.relvm_py_stop}))
        self._runner.stop = stop

    def close(self) -> None:
        """Leave the machine without a debugger.  Raises RelvmBusyError: it is running."""
        self._runner.install_debugger(ffi.NULL)
        self._runner.stop = None

    def break_at(self, function: int, instruction: int, stops: bool = True) -> None:
        """Have runs stop before an instruction, or no longer.

        Parameters
        ----------
        function
            By its place in the function table.
        instruction
            By its number, from 0.
        stops
            Whether they do.

        Raises
        ------
        RelvmIndexError
            There is none.
        """
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_break(self._machine, function, instruction, stops, error)
        if status:
            raise failure(status, error)

    def stop_within(self, depth: int) -> None:
        """Have a run stop before every instruction of the outermost `depth` functions, too; from any thread."""
        lib.rvm_machine_stop_within(self._machine, depth)

    @property
    def depth(self) -> int:
        """How many functions are inside each other."""
        return lib.rvm_machine_depth(self._machine)

    def place(self, index: int) -> CodeLocation:
        """Where one of them is.  index: 0 is the outermost."""
        place = lib.rvm_machine_place(self._machine, index)
        return CodeLocation(
            self._executable.function_name(place.function) if place.function >= 0 else "", place.instruction
        )

    def register(self, index: int, number: int) -> Any:
        """What a register holds, in place; None where that is nothing.

        Parameters
        ----------
        index
            Of the function, as in `place`.
        number
            Of its register.

        Returns
        -------
        object
            Opaque where it has no Python form.
        """
        place = lib.rvm_machine_place(self._machine, index)
        words = ffi.cast("int64_t *", place.registers)
        if not 0 <= number < place.count or words[2 * number] == NIL:
            return None
        try:
            return take_borrowed(self._runner, words, number)
        except RelvmUnsupportedError:
            return Opaque(TAGS[words[2 * number]].name.lower())


@ffi.def_extern(onerror=carry)
def relvm_py_stop(host: Any, failed: Any, result: Any) -> int:
    runner = active("the debugger")
    runner.stop(None if failed == ffi.NULL else borrowed_failure(failed))
    return 0
