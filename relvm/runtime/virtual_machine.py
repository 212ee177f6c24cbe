"""The virtual machine: runs the functions of an executable on Python values."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NoReturn

import relvm.runtime.binding_hooks  # noqa: F401  the functions that the binding calls
from relvm._native import ffi, lib
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmError,
    RelvmNameError,
    RelvmUnsupportedError,
    expect_name,
    expect_type,
    near_matches,
)
from relvm.quoting import terminal
from relvm.runtime.binding import Reference
from relvm.runtime.callbacks import print_values
from relvm.runtime.convert import TUPLE
from relvm.runtime.debug_hook import MachineDebugger
from relvm.runtime.executable import Executable
from relvm.runtime.function import Function, SavedFunction
from relvm.runtime.instrument import python_instrument
from relvm.runtime.invoke import Instrument, Invoker, PreparedCall
from relvm.runtime.packed_func import provide
from relvm.runtime.profiler import Profile, measure
from relvm.runtime.status import failure, uncopyable
from relvm.runtime.time_evaluator import TimeEvaluator
from relvm.tables import KINDS


class VirtualMachine:
    """Runs an executable.  `machine["main"](x, y)`, `machine["main"](x, y=y)`.

    Arguments and results are NumPy arrays and whatever speaks DLPack, out as Tensor; bool, int of 64 bits, float,
    str, None, np.dtype, Shape; tuples and lists of these; functions and closures of the machine.
    A dense row-major array is not copied on its way in: a closure that holds it sees what is written to it later.  A
    result owns its memory.

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
        Called with the values of a `vm.builtin.print`; None: print them, control
        characters in texts as escapes.
    num_threads
        At most so many threads work on a kernel at once, the caller's among them; results do not depend on it.  None:
        the environment variable RELVM_NUM_THREADS, or as many as this process has processors.  The process has one team
        of threads: while it works for one machine, the kernels of others run on their own thread.
    max_bytes
        The most that one run may allocate beyond what it frees, the value stack aside; RelvmMemoryError.  0: no limit.
        The objects that its result becomes in Python count, arrays that Python functions make on the way do not.
    max_steps
        The most calls and backward jumps of one run; RelvmTimeoutError.  0: no limit.  64 words of code that one leads
        over are 1 more, a kernel and a Python function are 8,192, and 64 bytes that are allocated are 1.  A builtin
        counts what it does in loops: about 1 for each value looked at or 64 bytes moved.
    max_seconds
        The most time of one run; RelvmTimeoutError.  A kernel or a Python function that has begun ends.  0: no limit.
    results_may_share
        Do not copy a result that is an argument, or a view of one, to memory of its own.

    Raises
    ------
    RelvmTypeError
        `executable` is no Executable, or `print_hook` cannot be called.
    RelvmArgumentError
        `num_threads` is not an integer of 1 to 256, or a limit is negative.
    RelvmNameError
        A packed function that nobody has registered.
    RelvmUnsupportedError
        No machine here can run the executable (`Executable.unsupported_reason`).

    Examples
    --------
    >>> import numpy as np
    >>> from relvm import vm
    >>> from relvm.frontend.text import parse_module
    >>> module = parse_module("def main(x: f32[n], y: f32[n]) -> f32[n] { return add(x, y) }")
    >>> machine = vm.VirtualMachine(vm.build(module, target="numpy"))
    >>> machine["main"](np.float32([1, 2]), y=np.float32([3, 4]))
    Tensor([4., 6.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        executable: Executable,
        *,
        stack_values: int = 0,
        call_depth: int = 0,
        print_hook: Callable[..., Any] | None = None,
        num_threads: int | None = None,
        max_bytes: int = 0,
        max_steps: int = 0,
        max_seconds: float = 0,
        results_may_share: bool = False,
    ) -> None:
        expect_type("VirtualMachine", executable, Executable, "an Executable")
        print_hook = print_values if print_hook is None else print_hook
        expect_type("print_hook", print_hook, Callable, "a callable")
        if unsupported_reason := executable.unsupported_reason:
            raise RelvmUnsupportedError(unsupported_reason)
        self.executable = executable
        pointer = executable.pointer
        indices = range(executable.function_count)
        provide(executable.function_name(index) for index in indices if executable.function_kind(index) == "packed")
        hooks = {"poll": lib.relvm_py_poll, "print": lib.relvm_py_print}
        sizes = {
            "stack_values": _limit("stack_values", stack_values),
            "call_depth": _limit("call_depth", call_depth),
            "threads": thread_count("num_threads", num_threads),
        }
        sizes |= {"max_bytes": _limit("max_bytes", max_bytes), "max_steps": _limit("max_steps", max_steps)}
        sizes |= {"max_nanoseconds": _nanoseconds(max_seconds)}
        options = ffi.new("rvm_machine_options *", {**sizes, **hooks})
        machine = ffi.new("rvm_machine **")
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_new(pointer, options, machine, error)
        if status:
            raise failure(status, error)
        self._runner = Invoker(machine[0], executable, print_hook, sizes["threads"])
        self._runner.shares = bool(results_may_share)
        self._functions: dict[str, Function] = {}
        self._saved: dict[str, SavedFunction] = {}
        self._inputs: dict[str, PreparedCall] = {}
        self._outputs: dict[str, Reference] = {}

    # ---- functions ----

    def __getitem__(self, name: str) -> Function | SavedFunction:
        """The function `name`.

        Raises RelvmNameError: there is none; the message lists near matches.  RelvmTypeError: it is no name.
        """
        return (isinstance(name, str) and self._saved.get(name)) or self._function(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._saved or name in self.functions)

    @property
    def functions(self) -> list[str]:
        """The names of the executable's functions that can be called."""
        indices = range(self.executable.function_count)
        return [self.executable.function_name(index) for index in indices if self._is_callable(index)]

    @property
    def function_kinds(self) -> dict[str, str]:
        """How each function that can be called is run now: "bytecode" or "native"."""
        machine = self._runner.machine
        indices = [index for index in range(self.executable.function_count) if self._is_callable(index)]
        kinds = {index: KINDS[lib.rvm_machine_function_kind(machine, index)].name for index in indices}
        return {self.executable.function_name(index): kind for index, kind in kinds.items()}

    def wait_compiled(self, timeout: float | None = None) -> bool:
        """Wait for the native code of an executable that was built with exec_mode="auto".

        Without this it is taken up when it is there, by the next call or in the middle of a long one.

        Parameters
        ----------
        timeout
            Seconds; None: as long as it takes.

        Returns
        -------
        bool
            Whether the machine runs native code: False when the time is over.  At once True where the executable was
            built with native code for all functions.

        Raises
        ------
        RelvmToolchainError
            It could not be compiled; bytecode goes on.
        RelvmUnsupportedError
            This is a child of fork, and the process that built the executable was still compiling it.
        RelvmArgumentError
            The executable was built with exec_mode="bytecode": no native code will come.

        Examples
        --------
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def main(x: i64) -> i64 { return x * 2 }")
        >>> machine = vm.VirtualMachine(vm.build(module, exec_mode="auto"))
        >>> machine["main"](21)
        42
        >>> machine.wait_compiled(), machine.function_kinds, machine["main"](21)
        (True, {'main': 'native'}, 42)
        """
        upgrade = self.executable.upgrade
        if upgrade is None:
            if "bytecode" in self.function_kinds.values():
                raise RelvmArgumentError('wait_compiled: the executable was not built with exec_mode="auto"')
            return True
        if not upgrade.wait(timeout):
            return False
        self._runner.end(self._runner.begin("wait_compiled"))  # which takes it up
        return True

    def seed(self, number: int) -> None:
        """Say where the machine's random numbers begin: machines of the same seed give the same ones.

        Parameters
        ----------
        number
            Of 64 bits, others are taken modulo 2^64.  A machine that was not given one has one of its own.

        Raises RelvmTypeError: it is no integer.
        """
        expect_type("seed", number, Integral, "an integer")
        lib.rvm_machine_seed(self._runner.machine, int(number) % 2**64)

    def interrupt(self) -> None:
        """End the run under way, from another thread or a signal handler: it raises RelvmInterrupted."""
        lib.rvm_machine_interrupt(self._runner.machine)

    def save_function(
        self, name: str, saved_name: str, /, *arguments: Any, include_return: bool = True, **named: Any
    ) -> None:
        """Give a function all its arguments: `machine[saved_name]()` runs it with them.

        The arguments are converted here, once, and arrays among them are used in place: what is written to them later
        is what later runs see.

        Parameters
        ----------
        name
            The function.
        saved_name
            A name of your own.  A saved function of that name is replaced.
        *arguments, **named
            By position or by parameter name.
        include_return
            False: the saved function returns None, for timing what the function itself does.

        Raises
        ------
        RelvmBusyError
            The executable has a function called `saved_name`.
        RelvmArgumentError
            The arguments do not fit the parameters.

        Examples
        --------
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def pair(x: i64, y: i64) -> (i64, i64) { return (x, y) }")
        >>> machine = vm.VirtualMachine(vm.build(module))
        >>> machine.save_function("pair", "one_two", 1, y=2)
        >>> machine["one_two"]()
        (1, 2)
        """
        function = self._function(name)
        expect_type("save_function: saved_name", saved_name, str, "a name")
        if saved_name in self.functions:
            raise RelvmBusyError(f"save_function: the executable has a function {saved_name} of its own")
        prepared = function.prepared(arguments, named)
        self._saved[saved_name] = SavedFunction(saved_name, prepared, include_return)

    # ---- inputs that are set ----

    def set_input(self, name: str, /, *arguments: Any, **named: Any) -> None:
        """Set the inputs of the function `name` for `invoke_stateful`, by position (`arguments`) or name (`named`).

        They are converted here, once; arrays are used in place, so that writing to one changes the input.  Until
        `clear_input`, calling `machine[name](...)` is an error, lest one of the two ways of passing arguments be
        ignored.  What an earlier run left for `get_outputs` is dropped.

        Raises
        ------
        RelvmNameError
            No such function.
        RelvmArgumentError
            The arguments do not fit the parameters.
        RelvmTypeError
            A value that a machine does not take.  Dtypes and shapes are checked by the run.

        Examples
        --------
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def pair(x: i64, y: i64) -> (i64, i64) { return (x, y) }")
        >>> machine = vm.VirtualMachine(vm.build(module))
        >>> machine.set_input("pair", 1, y=2)
        >>> machine.invoke_stateful("pair")
        >>> machine.get_outputs("pair"), machine.get_output_arity("pair")
        ((1, 2), 2)
        """
        function = self._function(name)
        self._inputs[name] = function.prepared(arguments, named)
        self._outputs.pop(name, None)
        function.direct = False

    def clear_input(self, name: str) -> None:
        """Forget the inputs, and the outputs, of the function `name`; nothing where there are none."""
        self._function(name).direct = True
        self._inputs.pop(name, None)
        self._outputs.pop(name, None)

    def invoke_stateful(self, name: str) -> None:
        """Run the function `name` on the inputs that are set, and keep what it returns for `get_outputs`.

        Raises
        ------
        RelvmArgumentError
            Its inputs are not set.
        RelvmError
            What the run raises; then there are no outputs.
        """
        self._function(name)
        if name not in self._inputs:
            raise RelvmArgumentError(f"{name}: no inputs are set; call set_input({name!r}, ...) first")
        try:
            self._outputs[name] = self._inputs[name].run()
        except RelvmBusyError:  # it has not run
            raise
        except BaseException:
            self._outputs.pop(name, None)
            raise

    def get_outputs(self, name: str) -> Any:
        """What the last `invoke_stateful` of `name` returned: a value, or a tuple, nested as the function has it.

        Raises
        ------
        RelvmArgumentError
            It has not run since its inputs were set.
        """
        return self._runner.value_of(name, self._output(name))

    def get_output_arity(self, name: str) -> int:
        """The number of fields of the tuple that `get_outputs` gives for `name`, or -1: no tuple.  Raises as it."""
        held = self._output(name)
        return ffi.cast("rvm_tuple *", held.address).size if held.tag == TUPLE else -1

    # ---- measuring and watching ----

    def time_evaluator(self, name: str, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0) -> TimeEvaluator:
        """What times a function: `machine.time_evaluator("main")(x, y)` is a Timing.

        It converts the arguments once, runs the function once without timing it, and then measures `repeat` times the
        mean of `number` runs, without what a call from Python costs.  Without arguments it takes the inputs that are
        set, if they are.

        Parameters
        ----------
        name
            A function, or a saved one.
        number
            Runs in each repeat.
        repeat
            How many results.
        min_repeat_ms
            A repeat that took fewer milliseconds is done again with more runs.

        Raises
        ------
        RelvmNameError
            No such function.
        RelvmArgumentError
            `number` or `repeat` below 1, `min_repeat_ms` below 0.

        Examples
        --------
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> machine = vm.VirtualMachine(vm.build(parse_module("def main(x: i64) -> i64 { return x }")))
        >>> timing = machine.time_evaluator("main", number=5, repeat=3)(7)
        >>> len(timing.results), timing.min <= timing.median <= timing.max
        (3, True)
        """
        self[name]
        prepare = lambda arguments, named: self._prepared(name, arguments, named)  # noqa: E731
        return TimeEvaluator(prepare, number, repeat, min_repeat_ms)

    def profile(self, name: str, /, *arguments: Any, **named: Any) -> Profile:
        """Run a function once and say which kernels, packed functions and builtins it called, how often and how long.

        The machine measures in C; Python is not told of each call, and neither is what `set_instrument` has set.

        Parameters
        ----------
        name
            A function, or a saved one.
        *arguments, **named
            As for a call; none: the inputs that are set, if they are.

        Raises
        ------
        RelvmBusyError
            The machine is running.
        RelvmError
            What the run raises.

        Examples
        --------
        >>> import numpy as np
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def main(x: f32[n]) -> f32[n] { return add(x, x) }")
        >>> machine = vm.VirtualMachine(vm.build(module, target="numpy"))
        >>> profile = machine.profile("main", np.zeros(100, np.float32))
        >>> [(row.count, row.bytes) for row in profile.rows if row.name == "reference.add"]
        [(1, 1200)]
        """
        return measure(self._prepared(name, arguments, named))

    def set_instrument(self, callback: Instrument | None) -> None:
        """Have `callback` told of every call of a kernel, packed function, builtin or function of the module.

        It is called as `callback(name, before, result, *arguments)`: before the call with before=True and result=None,
        and, unless the call raised, after it with before=False and its result.  What it returns before a call is None,
        or vm.SKIP: then the call is not made, its result is None, and there is no call after it.  What a skipped kernel
        would have written is left as it was.  What the callback raises ends the run, and reaches its caller.

        A call through `vm.builtin.invoke_closure` is seen as the call of the function itself, with the captured values
        behind its arguments.  The machine itself, which some builtins are given, is left out; values without a Python
        form come as Opaque.  Tensors are shown in place, and their memory is used again later: copy what is to be
        kept.  Calls that the callback itself makes are not seen.

        Parameters
        ----------
        callback
            None: no longer any.

        Raises
        ------
        RelvmBusyError
            The machine is running.
        RelvmTypeError
            It cannot be called.

        Examples
        --------
        >>> import numpy as np
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def main(x: f32[n]) -> f32[n] { return exp(x) }")
        >>> machine = vm.VirtualMachine(vm.build(module, target="numpy"))
        >>> seen = []
        >>> machine.set_instrument(lambda name, before, result, *arguments: seen.append((name, before)))
        >>> y = machine["main"](np.zeros(2, np.float32))
        >>> seen[0], seen[-1], ("reference.exp", True) in seen
        (('main', True), ('main', False), True)
        """
        if callback is not None:
            expect_type("set_instrument", callback, Callable, "a callable or None")
        self._runner.install("set_instrument", ffi.NULL if callback is None else python_instrument())
        self._runner.callback = callback

    def attach_debugger(self, stop: Callable[[RelvmError | None], None]) -> MachineDebugger:
        """Have runs stop between their instructions: what relvm.explore.Debugger is made of.

        It takes the place of the debugger that the machine had.  Of native functions only those stop that are built
        with debug=True.

        Parameters
        ----------
        stop
            See MachineDebugger.

        Raises
        ------
        RelvmBusyError
            The machine is running.

        Examples
        --------
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> machine = vm.VirtualMachine(vm.build(parse_module("def main(x: i64) -> i64 { return x * x + 1 }")))
        >>> seen = []
        >>> debugger = machine.attach_debugger(lambda failed: seen.append(debugger.place(0).instruction))
        >>> debugger.stop_within(1)
        >>> machine["main"](3), seen
        (10, [0, 1, 2, 3])
        """
        return MachineDebugger(self._runner, stop)

    # ---- for all of these ----

    def _function(self, name: str) -> Function:
        if isinstance(name, str) and name in self._functions:
            return self._functions[name]
        expect_type("function", name, str, "a name")
        expect_name("function", name)
        index = lib.rvm_executable_find(self.executable.pointer, name.encode())
        if index < 0 or not self._is_callable(index):
            what = "no function" if index < 0 else "not to be called from Python: a packed function or kernel,"
            raise RelvmNameError(f"{what} {name}{near_matches(name, [*self.functions, *self._saved])}")
        self._functions[name] = Function(self._runner, name, index, self._inputs)
        return self._functions[name]

    def _prepared(self, name: str, arguments: tuple, named: dict[str, Any]) -> PreparedCall:
        """A function, or a saved one, with these arguments; without any, with the inputs that are set."""
        given = bool(arguments or named)
        function = self[name]
        if isinstance(function, SavedFunction):
            if given:
                raise function.is_complete()
            return function.prepared
        if name not in self._inputs:
            return function.prepared(arguments, named)
        if given:
            raise function.is_set()
        return self._inputs[name]

    def _output(self, name: str) -> Reference:
        self._function(name)
        if name not in self._outputs:
            raise RelvmArgumentError(f"{name}: there are no outputs yet; call set_input and invoke_stateful first")
        return self._outputs[name]

    def _is_callable(self, index: int) -> bool:
        if self.executable.function_kind(index) not in ("bytecode", "native"):
            return False
        name = self.executable.function_name(index).encode()
        return lib.rvm_executable_find(self.executable.pointer, name) == index  # not private

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def __repr__(self) -> str:
        return terminal(f"<VirtualMachine of {', '.join(self.functions)}>")


def thread_count(name: str, wanted: int | None) -> int:
    """What the parameter `name` says of a number of threads; None: RELVM_NUM_THREADS, or as many as this process has
    processors.  Raises RelvmArgumentError: not an integer of 1 to 256."""
    source, number = name, wanted  # type: str, Any
    if wanted is None:
        source, number = "RELVM_NUM_THREADS", os.environ.get("RELVM_NUM_THREADS") or _processors()
        if isinstance(number, str) and number.isascii() and number.isdigit():
            number = int(number)
    is_integer = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_integer or not 1 <= number <= lib.RVM_MAX_THREADS:
        raise RelvmArgumentError(f"{source} is {number!r}, expected an integer of 1 to {lib.RVM_MAX_THREADS}")
    return int(number)


def expect_options(num_threads: int | None, max_bytes: int, max_steps: int, max_seconds: float) -> None:
    """Raises RelvmArgumentError: a machine would refuse one of these."""
    thread_count("num_threads", num_threads)
    _limit("max_bytes", max_bytes)
    _limit("max_steps", max_steps)
    _nanoseconds(max_seconds)


def _limit(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < 1 << 63:
        raise RelvmArgumentError(f"{name} is {value!r}, expected an integer of 64 bits, not below 0")
    return int(value)


def _nanoseconds(seconds: float) -> int:
    """0: as many as it likes, as are those that no clock counts."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds >= 0:
        raise RelvmArgumentError(f"max_seconds is {seconds!r}, expected a number, not below 0")
    return 0 if seconds >= 9e9 else math.ceil(seconds * 1e9)


def _processors() -> int:
    """Those that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, lib.RVM_MAX_THREADS)
