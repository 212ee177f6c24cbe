"""The virtual machine: runs the functions of an executable on Python values."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

import relvm.runtime.binding_hooks  # noqa: F401  the functions that the binding calls
from relvm._native import ffi, lib
from relvm.display import Displayed
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmError,
    RelvmNameError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_name,
    expect_type,
    known_names,
)
from relvm.quoting import terminal
from relvm.runtime.binding import set_exchange
from relvm.runtime.convert import TUPLE
from relvm.runtime.executable import Executable
from relvm.runtime.function import Function, SavedFunction
from relvm.runtime.instrument import python_instrument
from relvm.runtime.invoke import Instrument, Invoker
from relvm.runtime.machine_limits import expect_limit, nanoseconds, requested_level, thread_count
from relvm.runtime.packed_func import provide_all
from relvm.runtime.print_values import print_values
from relvm.runtime.signature import signature_table
from relvm.runtime.status import failure, uncopyable
from relvm.tables import KINDS

if TYPE_CHECKING:
    from relvm.runtime.debug_hook import MachineDebugger
    from relvm.runtime.profiler import Profile
    from relvm.runtime.time_evaluator import TimeEvaluator


class VirtualMachine(Displayed):
    """Runs an executable.  Call a function as `machine["main"](x, y)`, or `machine["main"](x, y=y)`.

    An argument can be a NumPy array or any object that supports DLPack; a bool, 64-bit int, float, str, None, np.dtype
    or Shape; a tuple or list of these; or a function or closure of the machine.  Tensors are returned as Tensor.  A
    dense row-major array is not copied, so a closure that captured it sees later writes to it.  A result owns its
    memory.

    Only one thread may use a machine at a time.  Use one machine for each thread.  They can share an executable.

    `close`, or the end of a `with` block, frees the machine.  Otherwise it is freed like any Python object.

    Parameters
    ----------
    executable
        The executable to run.  Several machines can share it.
    stack_values
        The size of the value stack, in values.  0 means about a million.
    call_depth
        The maximum nesting of calls.  0 means 200,000.
    print_hook
        A function that is called with the values of a `vm.builtin.print`.  If it is None, the values are printed, with
        control characters in strings escaped.
    num_threads
        The maximum number of threads that work on a kernel at once, including the calling thread.  Results do not
        depend on this number.  The default is RELVM_NUM_THREADS, or else the number of processors of this process.  All
        machines of a process share one team of threads.  While the team works for one machine, other machines run
        kernels on their own thread only.
    max_bytes
        The maximum memory in use by a run at any time, without the value stack, or 0 for no limit.  Python objects
        created for the result count, but arrays created by Python functions do not.  A run beyond the limit raises
        RelvmMemoryError.
    max_steps
        The maximum number of steps of a run, or 0 for no limit.  A run beyond the limit raises RelvmTimeoutError.  Each
        call and each backward jump is a step.  In addition, 64 words of executed code count as 1 step, a call of a
        kernel or Python function as 8,192, and 64 allocated bytes as 1.  A builtin counts the work of its loops: about
        1 step for each value read or 64 bytes moved.
    max_seconds
        The maximum time of a run, or 0 for no limit.  A run beyond the limit raises RelvmTimeoutError.  A running
        kernel or Python function completes first.
    results_may_share
        Whether a result is allowed to share memory with an argument.  If not, a result that is an argument, or a view
        of an argument, is copied.

    Raises
    ------
    RelvmTypeError
        `executable` is not an Executable, or `print_hook` is not callable.
    RelvmArgumentError
        `num_threads` is not an integer from 1 to 256, or a limit is negative.
    RelvmNameError
        A packed function is not registered.
    RelvmUnsupportedError
        This host cannot run the executable (`Executable.unsupported_reason`).

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
        provide_all(executable.function_name(index) for index in indices if executable.function_kind(index) == "packed")
        hooks = {"poll": lib.relvm_py_poll, "print": lib.relvm_py_print}
        sizes = {
            "stack_values": expect_limit("stack_values", stack_values),
            "call_depth": expect_limit("call_depth", call_depth),
            "threads": thread_count("num_threads", num_threads),
        }
        sizes |= {"max_bytes": expect_limit("max_bytes", max_bytes), "max_steps": expect_limit("max_steps", max_steps)}
        sizes |= {"max_nanoseconds": nanoseconds(max_seconds)}
        level = requested_level()
        cpu = {"cpu": ffi.new("char[]", level.encode())} if level else {}
        options = ffi.new("rvm_machine_options *", {**sizes, **hooks, **cpu})
        machine = ffi.new("rvm_machine **")
        error = ffi.new("rvm_value *")
        status = lib.rvm_machine_new(pointer, options, machine, error)
        if status:
            raise failure(status, error)
        self._open: Invoker | None = Invoker(machine[0], executable, print_hook, sizes["threads"])
        self._runner.shares = bool(results_may_share)
        self._functions: dict[str, Function] = {}
        self._saved: dict[str, SavedFunction] = {}

    # ---- functions ----

    def __getitem__(self, name: str) -> Function | SavedFunction:
        """Return the function, or the saved function, `name`.

        Raise RelvmNameError, with similar names in the message, if there is no such function.  Raise RelvmTypeError if
        `name` is not a string.
        """
        return (isinstance(name, str) and self._saved.get(name)) or self._function(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._saved or name in self.functions)

    @property
    def functions(self) -> list[str]:
        """The names of the functions that can be called."""
        indices = range(self.executable.function_count)
        return [self.executable.function_name(index) for index in indices if self._is_callable(index)]

    @property
    def function_kinds(self) -> dict[str, str]:
        """The name of each function that can be called, mapped to how it currently runs: "bytecode" or "native"."""
        machine = self._runner.machine
        indices = [index for index in range(self.executable.function_count) if self._is_callable(index)]
        kinds = {index: KINDS[lib.rvm_machine_function_kind(machine, index)].name for index in indices}
        return {self.executable.function_name(index): kind for index, kind in kinds.items()}

    def wait_compiled(self, timeout: float | None = None) -> bool:
        """Start the compilation of an executable that was built with exec_mode="auto", and wait for the native code.

        Waiting is optional: the compilation also starts after the program has run for some time.  When the native code
        is ready, the machine switches to it at the next call, or during a long call.

        Parameters
        ----------
        timeout
            The maximum time to wait, in seconds, or None for no limit.

        Returns
        -------
        bool
            True if the machine now runs native code, False after a timeout.  If the executable was built with native
            code for all functions, the result is True immediately.

        Raises
        ------
        RelvmToolchainError
            Compilation failed; the machine continues with bytecode.
        RelvmUnsupportedError
            This process was forked while its parent was still compiling the executable.
        RelvmArgumentError
            The executable has bytecode functions, and was not built with exec_mode="auto".

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
        self._runner.end(self._runner.begin("wait_compiled"))  # switches to native code
        return True

    def set_array_type(self, array_type: type | None) -> None:
        """Set the array type, such as torch.Tensor, in which tensors are returned.

        Arguments of this type and results are passed without a copy and without Python code.  Results that are tensors,
        and tuples of tensors, are converted.  Other values, such as lists, still contain instances of Tensor.

        The machine reads the elements as they are in memory, so a negation that PyTorch has delayed (`Tensor.is_neg`)
        is ignored: call `resolve_neg` before you pass such a tensor.  Results never require gradients.

        Parameters
        ----------
        array_type
            A type with the C exchange API of DLPack 1 (`__dlpack_c_exchange_api__`), or None for Tensor.

        Raises
        ------
        RelvmTypeError
            The type does not have this API.
        """
        outer = self._runner.begin("set_array_type")
        try:
            set_exchange(self._runner, array_type)
        except TypeError as error:
            raise RelvmTypeError(f"set_array_type: {error}") from None
        finally:
            self._runner.end(outer)

    def seed(self, number: int) -> None:
        """Seed the machine's random numbers.  Machines with the same seed produce the same sequence.

        Raise RelvmTypeError if `number` is not an integer.

        Parameters
        ----------
        number
            The seed, taken modulo 2^64.  If `seed` is not called, each machine has a different seed.
        """
        expect_type("seed", number, Integral, "an integer")
        lib.rvm_machine_seed(self._runner.machine, int(number) % 2**64)

    def interrupt(self) -> None:
        """Interrupt the current run from another thread or a signal handler; the run raises RelvmInterrupted."""
        lib.rvm_machine_interrupt(self._runner.machine)

    def save_function(
        self, name: str, saved_name: str, /, *arguments: Any, include_return: bool = True, **named: Any
    ) -> None:
        """Save a function together with all its arguments.  `machine[saved_name]()` then runs it.

        The arguments are converted only once.  Arrays are not copied, so a run sees later writes to them.

        Parameters
        ----------
        name
            The name of the function.
        saved_name
            The name of the saved function.  An earlier saved function of this name is replaced.
        *arguments, **named
            The arguments, by position or by parameter name.
        include_return
            Whether the saved function returns the result.  If False, the saved function returns None without converting
            the result, for example, to measure only the time of the run.

        Raises
        ------
        RelvmTypeError
            `saved_name` is not a str.
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
            raise RelvmBusyError(
                f"save_function: the executable already has a function named {saved_name}; choose another name"
            )
        prepared = function.prepare(arguments, named)
        self._saved[saved_name] = SavedFunction(saved_name, prepared, include_return)

    # ---- pre-bound inputs ----

    def set_input(self, name: str, /, *arguments: Any, **named: Any) -> None:
        """Bind the inputs of the function `name` for `invoke_stateful`, by position (`arguments`) or name (`named`).

        The inputs are converted only once.  Arrays are not copied, so writing to an array changes the input.  Until
        `clear_input` is called, calling `machine[name](...)` is an error, so that no arguments are silently ignored.
        The outputs of an earlier run are discarded.

        Raises
        ------
        RelvmNameError
            There is no such function.
        RelvmArgumentError
            The arguments do not fit the parameters.
        RelvmTypeError
            A value cannot be converted to a machine value.  Dtypes and shapes are checked later, by the run.

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
        self._function(name).set_inputs(arguments, named)

    def clear_input(self, name: str) -> None:
        """Remove the pre-bound inputs and the stored outputs of the function `name`, if it has any."""
        self._function(name).clear_inputs()

    def invoke_stateful(self, name: str) -> None:
        """Run the function `name` on its pre-bound inputs, and store the result for `get_outputs`.

        Raises
        ------
        RelvmArgumentError
            The inputs of the function are not bound.
        RelvmError
            The run failed.  In this case, the function has no outputs.
        """
        self._function(name).run_on_inputs()

    def get_outputs(self, name: str) -> Any:
        """Return the result of the last `invoke_stateful` of the function `name`, in the same form as the result of a
        call: a value, or a (nested) tuple.

        Raises
        ------
        RelvmArgumentError
            The function has not run since its inputs were bound.
        """
        return self._runner.convert_result(name, self._function(name).expect_output())

    def get_output_arity(self, name: str) -> int:
        """Return the number of fields of the tuple that `get_outputs` returns for `name`, or -1 if the result is not a
        tuple.  Raise RelvmArgumentError if the function has not run since its inputs were bound."""
        reference = self._function(name).expect_output()
        return ffi.cast("rvm_tuple *", reference.address).size if reference.tag == TUPLE else -1

    # ---- measuring and watching ----

    def time_evaluator(self, name: str, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0) -> TimeEvaluator:
        """Return a timer for a function.  `machine.time_evaluator("main")(x, y)` calls the timer and returns a Timing.

        The timer converts the arguments once and runs the function once as a warm-up.  Then it makes `repeat`
        measurements, each the mean time of `number` runs without the overhead of calls from Python.  If the timer is
        called without arguments, it uses the pre-bound inputs, if there are any.

        Parameters
        ----------
        name
            The name of a function or of a saved function.
        number
            The number of runs in each repeat.
        repeat
            The number of measurements, each of `number` runs.
        min_repeat_ms
            The minimum duration of a repeat in milliseconds.  A shorter repeat is measured again with more runs.

        Raises
        ------
        RelvmNameError
            There is no such function.
        RelvmArgumentError
            `number` or `repeat` is below 1, or `min_repeat_ms` is below 0.

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
        from relvm.runtime.time_evaluator import TimeEvaluator  # most programs measure nothing

        return TimeEvaluator(lambda *call: self[name].prepared_call(*call), number, repeat, min_repeat_ms)

    def profile(
        self, name: str, /, *arguments: Any, kernels: bool = False, timeline: bool = False, **named: Any
    ) -> Profile:
        """Run a function once, and count and time its calls of kernels, packed functions and builtins, in C.

        An instrument set by `set_instrument` is not called.  Raises RelvmBusyError if the machine is running.

        Parameters
        ----------
        name
            The name of a function or of a saved function.
        *arguments, **named
            The arguments, as for a call.  If there are none, the pre-bound inputs are used, if there are any.  If the
            function has a parameter called `kernels` or `timeline`, pass its argument by position.
        kernels
            Whether to also count and time each instruction of the kernels in bytecode (`Profile.kernels`).  The kernels
            then run more slowly, and on one thread.
        timeline
            Whether to also record when each call started and ended (`Profile.timeline`).

        Examples
        --------
        >>> import numpy as np
        >>> from relvm import vm
        >>> from relvm.frontend.text import parse_module
        >>> module = parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)")
        >>> machine = vm.VirtualMachine(vm.build(module, target="numpy"))
        >>> profile = machine.profile("main", np.zeros(100, np.float32))
        >>> [(row.count, row.bytes) for row in profile.rows if row.name == "reference.add"]
        [(1, 1200)]
        """
        from relvm.runtime.profiler import measure  # most programs measure nothing

        return measure(self[name].prepared_call(arguments, named), kernels=bool(kernels), timeline=bool(timeline))

    def set_instrument(self, callback: Instrument | None) -> None:
        """Set a callback that the machine calls before and after every call of a kernel, packed function, builtin or
        function of the module.

        The callback is called as `callback(name, before, result, *arguments)`.  Before a call, `before` is True and
        `result` is None.  After a call that did not raise an exception, `before` is False and `result` is the result of
        the call.

        Before a call, the callback returns None or vm.SKIP.  If the callback returns vm.SKIP, the call is skipped: its
        result is None, and there is no callback after it.  A skipped kernel leaves its outputs unchanged.  If the
        program uses the result of a skipped call, for example as a tensor, the run ends with an error, normally a
        RelvmTypeError.  If the callback raises an exception, the run ends with this exception.

        A call through `vm.builtin.invoke_closure` is reported as a call of the function itself, with the captured
        values after its arguments.  The machine itself, which some builtins receive as an argument, is omitted from
        `arguments`.  A value that cannot be converted to Python is passed as Opaque.  Tensors are not copied, and their
        memory is reused later, so copy the tensors that you want to keep.  Calls that the callback itself makes are not
        reported.

        Parameters
        ----------
        callback
            The instrument, or None to remove it.

        Raises
        ------
        RelvmBusyError
            The machine is running.
        RelvmTypeError
            `callback` is not callable.

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
        """Attach a debugger that stops runs between instructions.  relvm.explore.Debugger uses this method.

        An earlier debugger of the machine is replaced.  Native functions stop only if they are built with debug=True.

        Parameters
        ----------
        stop
            A function that is called whenever a run stops, with None or an exception (see MachineDebugger).

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
        from relvm.runtime.debug_hook import MachineDebugger  # most programs use no debugger

        return MachineDebugger(self._runner, stop)

    # ---- the end ----

    def close(self) -> None:
        """Free the machine.  Later calls of its functions raise RelvmArgumentError.

        Tensors and closures that the machine returned stay usable.  The memory that they share is freed when the last
        of these tensors and closures is freed.

        Raises
        ------
        RelvmBusyError
            The machine is running.
        """
        if self._open is None:
            return
        self._open.end(self._open.begin("close"))
        for function in self._functions.values():
            function.direct = False  # so that each call checks whether the machine is closed
        self._open.close()
        self._open = None
        self._functions, self._saved = {}, {}

    def __enter__(self) -> VirtualMachine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- common to all of these ----

    @property
    def _runner(self) -> Invoker:
        if self._open is None:
            raise RelvmArgumentError("the machine is closed; create a new VirtualMachine")
        return self._open

    def _function(self, name: str) -> Function:
        if isinstance(name, str) and name in self._functions:
            return self._functions[name]
        expect_type("function", name, str, "a name")
        expect_name("function", name)
        index = lib.rvm_executable_find(self.executable.pointer, name.encode())
        if index < 0 or not self._is_callable(index):
            what = "no function" if index < 0 else "Python cannot call a packed function or kernel:"
            raise RelvmNameError(f"{what} {name}{known_names(name, [*self.functions, *self._saved])}")
        self._functions[name] = Function(self._runner, name, index)
        return self._functions[name]

    def _is_callable(self, index: int) -> bool:
        if self.executable.function_kind(index) not in ("bytecode", "native"):
            return False
        name = self.executable.function_name(index).encode()
        return lib.rvm_executable_find(self.executable.pointer, name) == index  # not private

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.functions, *self._saved]

    def __str__(self) -> str:
        return terminal(f"<VirtualMachine of {', '.join(self.functions)}{'' if self._open else ', closed'}>")

    def _repr_html_(self) -> str:
        return signature_table(
            {name: self.executable.signature.get(name) for name in self.functions},
            "VirtualMachine" if self._open else "VirtualMachine, closed",
        )
