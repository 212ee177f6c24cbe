"""Calls of a machine: convert the arguments, run, and return the result or raise the exception."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from relvm._native import ffi, lib
from relvm.errors import RelvmArgumentError
from relvm.quoting import terminal, terminal_message
from relvm.runtime import binding
from relvm.runtime.binding import Objects, Reference
from relvm.runtime.convert import new_words, release, store_all, value_at
from relvm.runtime.executable import Executable
from relvm.runtime.status import STATUS_NUMBERS, failure, read_failure, uncopyable

_CALLBACK_ERROR = STATUS_NUMBERS["CALLBACK_ERROR"]

# An instrument, called with (name, before, result, *arguments); see VirtualMachine.set_instrument.
Instrument = Callable[..., Any]


class Invoker(Objects):
    """A machine, with the callbacks that run before, during and after a call."""

    def __init__(self, machine: Any, executable: Executable, print_hook: Callable[..., Any], threads: int) -> None:
        super().__init__(int(ffi.cast("uintptr_t", machine)))
        self.machine = machine
        self.executable = executable
        self.print_hook = print_hook
        self.threads = threads
        self.callback: Instrument | None = None
        self.stop: Callable[..., None] | None = None  # callback of the debugger
        self.upgrade = executable.upgrade  # None after it has ended
        self.parts_in_use = 0  # number of parts of the upgrade in use
        self.needs_poll = self.upgrade is not None
        self.is_closed = False

    def close(self) -> None:
        """Close the machine.  Later calls from Python raise RelvmArgumentError."""
        self.is_closed = True
        self.begin = self.expect_open  # type: ignore[method-assign]

    def __del__(self) -> None:
        if self.upgrade:
            self.upgrade.run_time += self.take_run_time()  # another machine may begin the compilation

    def expect_open(self, what: Any) -> None:
        """Raise RelvmArgumentError if the machine is closed.

        what: the function that was called, or its name, for the message.
        """
        if self.is_closed:
            name = what if isinstance(what, str) else what.name
            raise RelvmArgumentError(f"{name}: the machine is closed; create a new VirtualMachine")

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def print(self, *values: Any) -> None:
        """Pass the values of a `vm.builtin.print` to the print hook."""
        self.print_hook(*values)

    def instrument(self, index: int, before: bool, result: Any, arguments: Sequence[Any]) -> Any:
        """Call the Python instrument before or after a call of function `index`, and return the instrument's result.

        before: whether the call has not begun yet.
        result: the result of the call, or None before the call.
        arguments: the arguments of the call.
        """
        assert self.callback is not None, "no instrument is set"
        return self.callback(self.executable.function_name(index), before, result, *arguments)

    def poll(self) -> None:
        """Count the time of runs, and switch to native code if it is ready.

        This method is called before a run and periodically during a run.
        """
        upgrade = self.upgrade
        if not upgrade:
            return
        if not upgrade.has_begun:
            upgrade.add_run_time(self.take_run_time())
        if upgrade.has_ended:
            self.upgrade = None
            self.needs_poll = False
            if upgrade.executable:
                self._switch_to(upgrade.executable)
            return
        while self.parts_in_use < len(upgrade.parts):
            self.parts_in_use += 1
            self._switch_to(upgrade.parts[self.parts_in_use - 1])

    def _switch_to(self, compiled: Executable) -> None:
        """Make the machine use the native code of the executable `compiled` for functions and kernels."""
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_upgrade(self.machine, compiled.pointer, error)
        if status:
            raise failure(status, error)

    def convert_result(self, name: str, result: Reference) -> Any:
        """Convert `result`, which PreparedCall.run returned, to a Python value.

        name: the name of the function, for messages.
        """
        outer = self.begin(name)
        try:
            words = ffi.new("int64_t[2]", (result.tag, result.address))
            return binding.take_result(self, int(ffi.cast("uintptr_t", words)))
        finally:
            self.end(outer)

    def install(self, name: str, instrument: Any) -> None:
        """Set the C instrument of the machine, which is called before and after each call.

        Raise RelvmBusyError if the machine is running.

        name: the name of the operation, for the message.
        """
        self._set_hook(name, lib.rvm_machine_instrument, instrument)

    def install_debugger(self, debugger: Any) -> None:
        """Set the C debugger of the machine.  Raise RelvmBusyError if the machine is running."""
        self._set_hook("the debugger", lib.rvm_machine_debug, debugger)

    def _set_hook(self, name: str, setter: Callable[..., int], what: Any) -> None:
        outer = self.begin(name)
        try:
            error = ffi.new("rvm_value *")
            status = setter(self.machine, what, error)
            if status:
                raise failure(status, error, name)
        finally:
            self.end(outer)

    # ---- what messages say ----

    def run_error(self, status: int, result: Any) -> BaseException:
        """Return the exception of a failed run: the exception that a callback raised, or that of the machine.

        status, result: the status of the run, and its result, which contains the error.
        """
        raised, self.exception = self.exception, None
        error, trace = read_failure(status, result)
        exception = raised if raised is not None and status == _CALLBACK_ERROR else error
        if trace:
            exception.add_note(terminal_message(self.annotate_trace(trace)))
        return exception

    def annotate_trace(self, trace: str) -> str:
        """Add information from the debug section to each frame of a stack trace.

        The information is the name of the value that the frame's instruction computes, and the source location of the
        instruction.

        trace: the stack trace of the machine, as text.
        """
        program, lines = self.executable.program, []
        for line in trace.split("\n"):
            if frame := re.fullmatch(r"  in (.*) at instruction ([0-9]+)", line):
                comment, origin = (say(frame[1], int(frame[2])) for say in (program.comment, program.origin))
                line += (f": {terminal(comment)}" if comment else "") + (f" ({terminal(origin)})" if origin else "")
            lines.append(line)
        return "\n".join(lines)


class PreparedCall:
    """A function and its arguments, which are converted once, for any number of runs.

    Arrays are not copied, so runs see later changes of the arrays.
    """

    def __init__(
        self, runner: Invoker, name: str, index: int, arguments: Sequence[Any], where: Callable[[int], str]
    ) -> None:
        self.runner = runner
        self.name = name
        self.index = index
        self.count = len(arguments)
        self._words = new_words(self.count)
        outer = runner.begin(name)
        try:
            owned = store_all(runner, arguments, self._words, where)
            references = [Reference(runner, self._words[2 * k], self._words[2 * k + 1]) for k in owned]
        finally:
            runner.end(outer)
        self._references = (arguments, references)  # the words refer to these objects

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def run(self) -> Reference:
        """Run the function once and return a reference to the result, for Invoker.convert_result."""
        outer = self.runner.begin(self.name)
        try:
            words = new_words(1)
            self._call(words)
            return Reference(self.runner, words[0], words[1])
        finally:
            self.runner.end(outer)

    def value(self) -> Any:
        """Run the function once and return the result as a Python value."""
        return self.runner.convert_result(self.name, self.run())

    def repeat(self, number: int) -> float:
        """Run the function `number` times.  Return the total time in seconds, without that of calls from Python."""
        words = new_words(1)
        outer = self.runner.begin(self.name)
        try:
            started = time.perf_counter()
            for _ in range(number):
                self._call(words)
                release(words, 0)
            return time.perf_counter() - started
        finally:
            self.runner.end(outer)

    def _call(self, words: Any) -> None:
        arguments, result = value_at(self._words, 0), value_at(words, 0)
        status = lib.rvm_machine_call(self.runner.machine, self.index, arguments, self.count, result)
        if status:
            raise self.runner.run_error(status, result)
