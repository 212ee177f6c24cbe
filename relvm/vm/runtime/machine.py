"""The virtual machine: runs the functions of an executable on Python values."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relvm.errors import RelvmArgumentError, RelvmBusyError, RelvmNameError, near_matches
from relvm.tables import KINDS, numbers
from relvm.vm.runtime._native import ffi, lib
from relvm.vm.runtime.executable import Executable
from relvm.vm.runtime.failure import STATUS_NUMBERS, failure, read_failure
from relvm.vm.runtime.lifetime import ACTIVE, Objects, Reference
from relvm.vm.runtime.packed import provide
from relvm.vm.runtime.values import NIL, new_words, release, store_all, take, value_at

_KINDS = numbers(KINDS)
_CALLBACK_ERROR = STATUS_NUMBERS["CALLBACK_ERROR"]
_ROW = 16  # arguments that the row which every machine keeps for its calls has room for


class _Row:
    """Room for a call: its result, then `count` arguments."""

    __slots__ = ("arguments", "result", "words")

    def __init__(self, count: int) -> None:
        self.words = new_words(count + 1)
        self.result = value_at(self.words, 0)
        self.arguments = self.result + 1


class _Runner(Objects):
    """A machine in C and what a call of it takes."""

    def __init__(self, machine: Any, executable: Executable, print_hook: Callable[..., Any]) -> None:
        super().__init__(machine, executable.shared)
        self.executable = executable
        self.print_hook = print_hook
        self.depth = 0  # calls under way: more than one when a packed function calls the machine
        self.row = _Row(_ROW)

    def print(self, *values: Any) -> None:
        self.print_hook(*values)

    def invoke(self, callee: Reference, arguments: Sequence[Any]) -> Any:
        word = ffi.new("int64_t[2]", (callee.tag, callee.address))
        return self.run("the function", arguments, lib.rvm_machine_invoke, value_at(word, 0)[0])

    def run(self, name: str, arguments: Sequence[Any], enter: Callable[..., int], callee: Any) -> Any:
        """Call `callee`, a function index or a value, by `enter`."""
        while not self.lock.acquire(False):
            if self.depth:
                raise RelvmBusyError(f"{name}: the machine is running in another thread; make one machine for each")
            time.sleep(0)  # another thread is only dropping a reference
        outer, ACTIVE.objects = ACTIVE.objects, self
        self.depth += 1
        try:
            count = len(arguments)
            row = self.row if self.depth == 1 and count <= _ROW else _Row(count)
            words = row.words
            words[0] = NIL
            owned = store_all(self, arguments, words, 1, lambda k: f"{name}: argument {self.parameter(name, k)}")
            status = enter(self.machine, callee, row.arguments, count, row.result)
            for k in owned:
                release(words, k)
            if status:
                raise self.ended(status, row.result)
            return take(self, words[0], words[1])
        finally:
            self.depth -= 1
            ACTIVE.objects = outer
            self.unlock()

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

    def parameter(self, function: str, k: int) -> str:
        """The name of a function's parameter, or its number where it has none."""
        entry = self.executable.functions.get(function)
        return entry.parameters[k] if entry and k < len(entry.parameters) else str(k)


class Function:
    """A function of an executable on a machine: callable with its arguments by position or by parameter name."""

    __slots__ = ("_machine", "_runner", "index", "name")

    def __init__(self, machine: VirtualMachine, runner: _Runner, name: str, index: int) -> None:
        self._machine = machine  # kept alive
        self._runner = runner
        self.name = name
        self.index = index

    @property
    def parameters(self) -> tuple[str, ...]:
        return self._runner.executable.functions[self.name].parameters

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named:
            arguments = self._bound(arguments, named)
        return self._runner.run(self.name, arguments, lib.rvm_machine_call, self.index)

    def _bound(self, arguments: tuple, named: Mapping[str, Any]) -> list[Any]:
        """All arguments in the order of the parameters."""
        parameters = self.parameters
        expected = f"{self.name} has the parameters {', '.join(parameters) or 'none'}"
        if len(arguments) > len(parameters):
            raise RelvmArgumentError(f"{len(arguments)} arguments by position, but {expected}")
        for name in named:
            if name not in parameters:
                raise RelvmArgumentError(f"unknown argument {name}: {expected}{near_matches(name, parameters)}")
            if name in parameters[: len(arguments)]:
                raise RelvmArgumentError(f"argument {name} is given by position and by name: {expected}")
        rest = parameters[len(arguments) :]
        missing = [name for name in rest if name not in named]
        if missing:
            raise RelvmArgumentError(f"missing {', '.join(missing)}: {expected}")
        return [*arguments, *(named[name] for name in rest)]

    def __repr__(self) -> str:
        return f"<function {self.name}({', '.join(self.parameters)}) of a machine>"


class VirtualMachine:
    """Runs an executable.  `machine["main"](x, y)`, `machine["main"](x, y=y)`.

    Arguments and results are NumPy arrays and whatever speaks DLPack, out as Tensor; bool, int of 64 bits, float,
    str, None, np.dtype, Shape; tuples and lists of these (lists become tuples); closures of the machine.  A dense
    row-major array is not copied on its way in: a result, or a closure, that holds it sees what is written to it
    later.

    A machine is used by one thread at a time; threads take one machine each, over one executable.

    Parameters
    ----------
    executable
        Shared with other machines.
    stack_values
        Size of the value stack; 0: about a million.
    call_depth
        Most calls inside each other; 0: 200,000.
    print_hook
        Called with the values of a `vm.builtin.print`; None: Python's print.

    Raises
    ------
    RelvmNameError
        A packed function that nobody has registered.
    """

    def __init__(
        self,
        executable: Executable,
        *,
        stack_values: int = 0,
        call_depth: int = 0,
        print_hook: Callable[..., Any] | None = None,
    ) -> None:
        self.executable = executable
        pointer = executable.shared.pointer
        indices = range(lib.rvm_executable_function_count(pointer))
        provide(self._name(index) for index in indices if self._kind(index) == _KINDS["packed"])
        hooks = {"poll": lib.relvm_py_poll, "print": lib.relvm_py_print}
        options = ffi.new("rvm_machine_options *", {"stack_values": stack_values, "call_depth": call_depth, **hooks})
        machine = ffi.new("rvm_machine **")
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_new(pointer, options, machine, error)
        if status:
            raise failure(status, error)
        self._runner = _Runner(machine[0], executable, print_hook or print)
        self._kept = Reference(self._runner, NIL, 0)  # to no object: of the machine itself

    def __getitem__(self, name: str) -> Function:
        """The function `name`.  Raises RelvmNameError: there is none; the message lists near matches."""
        index = lib.rvm_executable_find(self.executable.shared.pointer, name.encode())
        if index < 0 or not self._is_callable(index):
            what = "no function" if index < 0 else "not to be called from Python: a packed function or kernel,"
            raise RelvmNameError(f"{what} {name}{near_matches(name, self.functions)}")
        return Function(self, self._runner, name, index)

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    @property
    def functions(self) -> list[str]:
        """The names of the functions that can be called."""
        indices = range(lib.rvm_executable_function_count(self.executable.shared.pointer))
        return [self._name(index) for index in indices if self._is_callable(index)]

    def interrupt(self) -> None:
        """End the run under way, from another thread or a signal handler: it raises RelvmInterrupted."""
        lib.rvm_machine_interrupt(self._runner.machine)

    def _name(self, index: int) -> str:
        return ffi.string(lib.rvm_executable_function_name(self.executable.shared.pointer, index)).decode()

    def _kind(self, index: int) -> int:
        return lib.rvm_executable_function_kind(self.executable.shared.pointer, index)

    def _is_callable(self, index: int) -> bool:
        found = (
            lib.rvm_executable_find(self.executable.shared.pointer, self._name(index).encode()) == index
        )  # not private
        return found and self._kind(index) in (_KINDS["bytecode"], _KINDS["native"])

    def __repr__(self) -> str:
        return f"<VirtualMachine of {', '.join(self.functions)}>"
