"""Runs a machine: arguments in, a call, the result or the exception out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from relvm.errors import RelvmBusyError
from relvm.vm.runtime._native import ffi, lib
from relvm.vm.runtime.executable import Executable
from relvm.vm.runtime.failure import STATUS_NUMBERS, failure, read_failure
from relvm.vm.runtime.lifetime import ACTIVE, Objects, Reference
from relvm.vm.runtime.values import NIL, new_words, release, store_all, take, take_borrowed, value_at

_CALLBACK_ERROR = STATUS_NUMBERS["CALLBACK_ERROR"]
_ROW = 16  # arguments that the row which every machine keeps for its calls has room for

# An instrument: called with (name, before, result, *arguments); see VirtualMachine.set_instrument.
Instrument = Callable[..., Any]


class _Row:
    """Room for a call: its result, then `count` arguments."""

    __slots__ = ("arguments", "result", "words")

    def __init__(self, count: int) -> None:
        self.words = new_words(count + 1)
        self.result = value_at(self.words, 0)
        self.arguments = self.result + 1


class Runner(Objects):
    """A machine in C and what a call of it takes."""

    def __init__(self, machine: Any, executable: Executable, print_hook: Callable[..., Any]) -> None:
        super().__init__(machine, executable.shared)
        self.executable = executable
        self.print_hook = print_hook
        self.callback: Instrument | None = None
        self.upgrade = executable.upgrade  # until it is done
        self.depth = 0  # calls under way: more than one when a packed function calls the machine
        self.row = _Row(_ROW)

    def print(self, *values: Any) -> None:
        self.print_hook(*values)

    def instrument(self, index: int, before: bool, result: Any, arguments: Sequence[Any]) -> Any:
        assert self.callback is not None, "an instrument is told of calls only where there is one"
        return self.callback(self.executable.function_name(index), before, result, *arguments)

    # ---- who is inside ----

    def begin(self, name: str) -> Objects | None:
        """Enter the machine; what it returns is for `end`.  Raises RelvmBusyError: another thread is running it."""
        while not self.lock.acquire(False):
            if self.depth:
                raise RelvmBusyError(f"{name}: the machine is running in another thread; make one machine for each")
            time.sleep(0)  # another thread is only dropping a reference
        outer, ACTIVE.objects = ACTIVE.objects, self
        self.depth += 1
        if self.upgrade is not None:
            self.take_upgrade()
        return outer

    def poll(self) -> None:
        if self.upgrade is not None:
            self.take_upgrade()

    def take_upgrade(self) -> None:
        """Have the machine run native code where it is there by now.  To be called inside it."""
        compiled = self.upgrade and self.upgrade.executable
        if not compiled:
            return
        self.upgrade = None
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_upgrade(self.machine, compiled.shared.pointer, error)
        if status:
            raise failure(status, error)
        compiled.shared.retain()
        self._executables.append(compiled.shared)

    def end(self, outer: Objects | None) -> None:
        """Leave it."""
        self.depth -= 1
        ACTIVE.objects = outer
        self.unlock()

    # ---- calls ----

    def invoke(self, callee: Reference, arguments: Sequence[Any]) -> Any:
        word = ffi.new("int64_t[2]", (callee.tag, callee.address))
        return self.run("the function", arguments, lib.rvm_machine_invoke, value_at(word, 0)[0])

    def run(self, name: str, arguments: Sequence[Any], enter: Callable[..., int], callee: Any) -> Any:
        """Call `callee`, a function index or a value, by `enter`."""
        outer = self.begin(name)
        try:
            count = len(arguments)
            row = self.row if self.depth == 1 and count <= _ROW else _Row(count)
            words = row.words
            words[0] = NIL
            owned = store_all(self, arguments, words, 1, lambda k: self.described(name, k))
            status = enter(self.machine, callee, row.arguments, count, row.result)
            for k in owned:
                release(words, k)
            if status:
                raise self.ended(status, row.result)
            return take(self, words[0], words[1])
        finally:
            self.end(outer)

    def value_of(self, name: str, held: Reference) -> Any:
        """The Python value of a result that is kept."""
        outer = self.begin(name)
        try:
            return take_borrowed(self, ffi.new("int64_t[2]", (held.tag, held.address)), 0)
        finally:
            self.end(outer)

    def install(self, name: str, instrument: Any) -> None:
        """Give the machine an instrument of C.  Raises RelvmBusyError: it is running."""
        outer = self.begin(name)
        try:
            error = ffi.new("rvm_value *")
            status = lib.rvm_machine_instrument(self.machine, instrument, error)
            if status:
                raise failure(status, error, name)
        finally:
            self.end(outer)

    # ---- what messages say ----

    def ended(self, status: int, result: Any) -> BaseException:
        """The exception that a failed run ends with: the one raised in a callback, if that is what ended it."""
        raised, self.exception = self.exception, None
        error, trace = read_failure(status, result)
        exception = raised if raised is not None and status == _CALLBACK_ERROR else error
        if trace:
            exception.add_note(self.explained(trace))
        return exception

    def explained(self, trace: str) -> str:
        """The trace with what the debug section says of each instruction."""
        lines = []
        for line in trace.split("\n"):
            frame = re.fullmatch(r"  in (.*) at instruction ([0-9]+)", line)
            comment = self.executable.program.comment(frame[1], int(frame[2])) if frame else ""
            lines.append(f"{line}: {comment}" if comment else line)
        return "\n".join(lines)

    def described(self, function: str, k: int) -> str:
        """What messages call argument k of a function: by its name, or its number where it has none."""
        entry = self.executable.functions.get(function)
        return f"{function}: argument {entry.parameters[k] if entry and k < len(entry.parameters) else k}"


class Prepared:
    """A function with its arguments, converted once, to be run any number of times.

    Arrays are arguments in place: a run sees what has been written to them since.
    """

    def __init__(self, runner: Runner, name: str, index: int, arguments: Sequence[Any]) -> None:
        self.runner = runner
        self.name = name
        self.index = index
        self.count = len(arguments)
        self._words = new_words(self.count)
        outer = runner.begin(name)
        try:
            owned = store_all(runner, arguments, self._words, 0, lambda k: runner.described(name, k))
            references = [Reference(runner, self._words[2 * k], self._words[2 * k + 1]) for k in owned]
        finally:
            runner.end(outer)
        self._kept = (arguments, references, Reference(runner, NIL, 0))  # with the words: these, and the machine

    def run(self) -> Reference:
        """Run it once; the result, for Runner.value_of."""
        runner, row = self.runner, _Row(0)
        outer = runner.begin(self.name)
        try:
            self._enter(row)
            return Reference(runner, row.words[0], row.words[1])
        finally:
            runner.end(outer)

    def value(self) -> Any:
        """Run it once; the result."""
        return self.runner.value_of(self.name, self.run())

    def repeat(self, number: int) -> float:
        """Run it `number` times; the seconds that took, what a call from Python costs otherwise left out."""
        row = _Row(0)
        outer = self.runner.begin(self.name)
        try:
            started = time.perf_counter()
            for _ in range(number):
                self._enter(row)
                release(row.words, 0)
            return time.perf_counter() - started
        finally:
            self.runner.end(outer)

    def _enter(self, row: _Row) -> None:
        arguments = value_at(self._words, 0)
        status = lib.rvm_machine_call(self.runner.machine, self.index, arguments, self.count, row.result)
        if status:
            raise self.runner.ended(status, row.result)
