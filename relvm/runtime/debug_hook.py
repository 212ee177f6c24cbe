"""The debugger of a machine: csrc/vm/debugger.c calls Python between the instructions of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relvm._native import ffi, lib
from relvm.data_classes import dataclass
from relvm.errors import RelvmError, RelvmUnsupportedError
from relvm.runtime.callbacks import calling_machine, handle_callback_error
from relvm.runtime.convert import NIL, to_python
from relvm.runtime.instrument import Opaque
from relvm.runtime.invoke import Invoker
from relvm.runtime.status import borrowed_failure, failure
from relvm.tables import TAGS

MAX_DEPTH = (1 << 63) - 1


@dataclass(frozen=True)
class CodeLocation:
    """A position in a function that is running.

    Attributes
    ----------
    function
        The name of the function, or "" for native code that was not built for debugging.
    instruction
        The index of the next instruction of the function.  If the function has called another function, this is the
        index of the call.
    """

    function: str
    instruction: int


class MachineDebugger:
    """A debugger that stops the runs of a machine between instructions.

    Parameters
    ----------
    runner
        The Invoker that runs the machine.  The machine must be idle.  A machine has at most one debugger; a new
        debugger replaces the previous one.
    stop
        A function that is called, on the thread of the run, whenever the run stops.  Before an instruction, its
        argument is None.  After an instruction that failed, its argument is the exception.  If `stop` raises an
        exception before an instruction, the run ends with this exception.  If `stop` raises an exception after a failed
        instruction, the run still ends with the error of the instruction.  The attributes and methods that inspect a
        run, such as `depth`, `place` and `register`, may be used only inside `stop`.

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
        """Remove the debugger from the machine.  Raise RelvmBusyError if the machine is running."""
        self._runner.install_debugger(ffi.NULL)
        self._runner.stop = None

    def break_at(self, function: int, instruction: int, stops: bool = True) -> None:
        """Set or remove a breakpoint before an instruction.

        Parameters
        ----------
        function
            The index of the function in the function table.
        instruction
            The index of the instruction, from 0.
        stops
            True to set the breakpoint, False to remove it.

        Raises
        ------
        RelvmIndexError
            There is no such function or instruction.
        """
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_break(self._machine, function, instruction, stops, error)
        if status:
            raise failure(status, error)

    def stop_within(self, depth: int) -> None:
        """Stop before every instruction of the outermost `depth` active functions, in addition to breakpoints.

        This method may be called from any thread.
        """
        lib.rvm_machine_stop_within(self._machine, depth)

    def stop_in_kernels(self, stops: bool) -> None:
        """Set whether runs also stop before the instructions inside kernels in bytecode.

        `stop_within` then treats kernels like functions.  The setting takes effect at the next call of a kernel.  This
        method may be called from any thread.

        Parameters
        ----------
        stops
            Whether runs stop inside kernels.
        """
        lib.rvm_machine_stop_in_kernels(self._machine, stops)

    @property
    def depth(self) -> int:
        """The number of active functions."""
        return lib.rvm_machine_depth(self._machine)

    def place(self, index: int) -> CodeLocation:
        """Return the current position in an active function.

        index: the number of the active function, where 0 is the outermost one.
        """
        place = lib.rvm_machine_place(self._machine, index)
        return CodeLocation(
            self._executable.function_name(place.function) if place.function >= 0 else "", place.instruction
        )

    def register(self, index: int, number: int) -> Any:
        """Return the value of a register, without a copy, or None if the register is empty or does not exist.

        Parameters
        ----------
        index
            The number of the active function, where 0 is the outermost one.
        number
            The number of the register.

        Returns
        -------
        object
            The value, an Opaque if the value cannot be converted to Python, or None.
        """
        place = lib.rvm_machine_place(self._machine, index)
        words = ffi.cast("int64_t *", place.registers)
        if not 0 <= number < place.count or words[2 * number] == NIL:
            return None
        try:
            return to_python(self._runner, words, number)
        except RelvmUnsupportedError:
            return Opaque(TAGS[words[2 * number]].name.lower())

    def kernel_register(self, index: int, number: int) -> tuple[memoryview, int] | None:
        """Return the memory of a register of a kernel, without a copy.

        Parameters
        ----------
        index
            The number of the active function, where 0 is the outermost one.
        number
            The number of the register.  The scalar registers come first.  Next come the strips, registers that hold a
            limited number of elements at a time.  The views, which are strips that lie in a buffer, come last.

        Returns
        -------
        tuple of (memoryview, int) or None
            The memory, which is valid until `stop` returns, and the number of elements that a strip or view holds at
            this time.  The result is None if the function is not a kernel in bytecode, or has no such register.
        """
        return _memory(lib.rvm_machine_kernel_register(self._machine, index, number))

    def kernel_buffer(self, index: int, number: int) -> memoryview | None:
        """Return the memory of buffer `number` of the active function `index`, where function 0 is the outermost one.

        Return None if the function is not a kernel in bytecode, or has no such buffer.
        """
        found = _memory(lib.rvm_machine_kernel_buffer(self._machine, index, number))
        return found and found[0]


def _memory(found: Any) -> tuple[memoryview, int] | None:
    if found.bytes == ffi.NULL:
        return None
    return memoryview(ffi.buffer(ffi.cast("char *", found.bytes), found.size_bytes)).toreadonly(), found.strip


@ffi.def_extern(onerror=handle_callback_error)
def relvm_py_stop(host: Any, failed: Any, result: Any) -> int:
    runner = calling_machine("the debugger")
    runner.stop(None if failed == ffi.NULL else borrowed_failure(failed))
    return 0
