"""A debugger for bytecode and native code."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from relvm.compiler.build import build
from relvm.compiler.build_model import expect_to_build
from relvm.display import Displayed
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmError,
    RelvmIndexError,
    RelvmNameError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_choice,
    expect_type,
    known_names,
    near_matches,
)
from relvm.explore.debugger.breakpoints import Breakpoint, find_places, parse_line_location
from relvm.explore.debugger.debug_info import FunctionCode, ProgramCode, is_version
from relvm.explore.debugger.frames import Frame, RegisterValue, Stop
from relvm.explore.debugger.kernel_code import KernelCode, KernelValues
from relvm.explore.debugger.run_thread import PausedRun
from relvm.explore.draw.format_value import copy_value, describe_value, nan_count
from relvm.explore.selection import as_module
from relvm.frontend.script import Script
from relvm.ir.expr import HasModule, Module
from relvm.quoting import terminal
from relvm.runtime.debug_hook import MAX_DEPTH
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.vm import Executable, VirtualMachine


class Debugger(Displayed):
    """A debugger that runs a program step by step.

    A run stops before an instruction is executed.  Native functions stop at the same places as the equivalent bytecode,
    and are shown as bytecode.  The virtual machine runs on its own thread, one run at a time.  `close`, or the end of a
    `with` block, aborts an unfinished run.  The time limits of the virtual machine include the time during which a run
    is stopped.

    Parameters
    ----------
    program
        A module or the path of an .onnx, .relvm, .mlir or .pt2 file, which is built with debug=True; or an executable
        or its path.  If an executable was built without debug=True, it has no source locations, and its native
        functions do not stop.
    exec_mode, target, fused
        Build options, as for `vm.build` and with its defaults.  Not allowed if `program` is an executable.
    dims
        Sizes of symbolic dimensions of an ONNX model or a .pt2 file, as for `from_onnx` and `from_pt2`.
    trust_native
        Whether to load native code that was not compiled on this machine.
    machine_options
        Options of VirtualMachine: num_threads, call_depth, ...

    Raises
    ------
    RelvmArgumentError
        `exec_mode`, `target`, `fused` or `dims` is given for an executable, which is already built; `dims` is given for
        a module or for a .relvm or .mlir file, whose source states the sizes; or the executable was built with
        exec_mode="auto".
    RelvmUnsupportedError
        The executable has only native functions that were not built for debugging, so that no run can stop.

    Examples
    --------
    >>> from relvm.explore import Debugger
    >>> from relvm.frontend.text import parse_module
    >>> debugger = Debugger(parse_module("def main(x: i64) -> i64 {\\n  y = x * x\\n  return y + 1\\n}", "f.relvm"))
    >>> debugger.break_at("f.relvm:3").places
    ('main:2',)
    >>> stop = debugger.run("main", 3)
    >>> stop.reason, stop.frame.text, debugger["y"]
    ('breakpoint', 'prim r1 = add_i64(r2, 1)', 9)
    >>> debugger.resume().result
    10
    """

    def __init__(
        self,
        program: Module | HasModule | Executable | str | Path,
        *,
        exec_mode: str | Mapping[str, str] | None = None,
        target: str | None = None,
        fused: bool | None = None,
        dims: Mapping[str, int | tuple[int, int]] | None = None,
        trust_native: bool = False,
        **machine_options: Any,
    ) -> None:
        options = {"exec_mode": exec_mode, "target": target, "fused": fused}
        self.executable = _executable(program, options, dims, trust_native)
        self.machine = VirtualMachine(self.executable, **machine_options)
        self.code = ProgramCode(self.executable.program)
        _expect_stops(self.executable, self.code)
        self.breakpoints: list[Breakpoint] = []
        self._breakpoint_count = 0
        self._debugger = self.machine.attach_debugger(self._on_instruction)
        self._run: PausedRun | None = None
        self._stop: Stop | None = None
        self._stepping_depth = 0  # the number of outermost frames that stop before every instruction
        self._skips_housekeeping = True
        self._in_kernels = False  # whether these frames include kernels
        self._interrupted = self._is_running = False
        self._watches_nan = False
        self._previous: list[tuple[FunctionCode, int] | None] = []  # the last instruction of each frame

    # ---- breakpoints ----

    def break_at(
        self, where: str | int, function: str | None = None, when: Callable[[Any], Any] | None = None
    ) -> Breakpoint:
        """Set a breakpoint at a value, a function, an instruction, a source line or an ONNX node.

        Parameters
        ----------
        where
            A location in one of these forms.  "y" is the instruction that computes the value y.  If y has no register
            of its own, the location is the instruction compiled from y's definition, such as the call of a fused
            kernel.  "main" is the first instruction of a function or of a kernel in bytecode, and "main:5" its
            instruction 5.  "model.relvm:3" is line 3 of a source file, and the integer 3 is line 3 of any source.  The
            name of an ONNX node is also accepted.
        function
            Name of the only function in which to stop.  By default, the run stops in every function.
        when
            Condition under which the run stops.  It is called with a mapping from names to values, as in
            `lambda at: at["k"] > 3`.  An exception that the condition raises ends the run.

        Raises
        ------
        RelvmTypeError
            `where` is neither a str nor an int, or `when` is not callable.
        RelvmNameError
            The location does not exist.  The message lists near matches.
        RelvmIndexError
            The function has no such instruction.
        """
        if isinstance(where, bool) or not isinstance(where, str | int):
            raise RelvmTypeError(f"break at {where!r}: expected a str or a line number, got {type(where).__name__}")
        if when is not None:
            expect_type(f"break at {where}", when, Callable, "a callable condition")
        places = find_places(self.code, where, function)
        self._breakpoint_count += 1
        locations = tuple(f"{code.name}:{i}" for code, i in places)
        breakpoint = Breakpoint(self._breakpoint_count, str(where), locations, when)
        self.breakpoints.append(breakpoint)
        for code, instruction in places:
            self._debugger.break_at(code.index, instruction)
        return breakpoint

    def delete(self, breakpoint: Breakpoint | int) -> None:
        """Remove a breakpoint.  Raise RelvmIndexError if it does not exist.  breakpoint: a Breakpoint or its number."""
        number = breakpoint.number if isinstance(breakpoint, Breakpoint) else breakpoint
        found = [each for each in self.breakpoints if each.number == number]
        if not found:
            numbers = [str(each.number) for each in self.breakpoints]
            raise RelvmIndexError(f"no breakpoint {number}; the breakpoints are: {', '.join(numbers) or 'none'}")
        self.breakpoints.remove(found[0])
        kept = {place for each in self.breakpoints for place in each.places}
        for place in set(found[0].places) - kept:
            name, _, instruction = place.rpartition(":")
            code = self.code.find(name)
            assert code is not None, "the breakpoint is at one of its instructions"
            self._debugger.break_at(code.index, int(instruction), False)

    def watch_nan(self, watched: bool = True) -> None:
        """Stop after the first instruction that computes a NaN in a tensor, a scalar, or a tuple or list of these.

        Every computed value is checked, which slows the run down.  Arguments and constants are not checked.

        Parameters
        ----------
        watched
            Whether to watch for NaNs.  False undoes an earlier call.
        """
        self._watches_nan = watched
        self._previous = []
        frame = None if self._stop is None else self._stop.frame
        if self._stop is not None and frame is not None and frame.function in self.code.functions:
            here = self.code.functions[frame.function], frame.instruction  # this instruction runs next
            self._previous = [None] * (self._stop.depth - 1) + [here]
        self._set_depth()

    # ---- running ----

    def run(self, function: str = "main", *arguments: Any, **named: Any) -> Stop:
        """Run a function until it stops or ends.

        Parameters
        ----------
        function
            Name of the function.
        *arguments, **named
            Arguments of the call.

        Raises
        ------
        RelvmArgumentError
            Another run is unfinished, or the arguments are invalid.
        RelvmNameError
            The function does not exist.
        RelvmError
            The run failed, and did not stop at the error.  If it stops at the error, this call returns the stop, and
            the call that resumes the run raises the error.
        """
        return self._begin(function, arguments, named, 0)

    def start(self, function: str = "main", *arguments: Any, **named: Any) -> Stop:
        """Begin a run of `function`, and stop before its first instruction.  arguments, named: the call's arguments."""
        return self._begin(function, arguments, named, MAX_DEPTH)

    def resume(self) -> Stop:
        """Continue until the next stop or the end of the run."""
        return self._go(0, True)

    def step(self, by: str = "value") -> Stop:
        """Continue to the next instruction.  If a function is called, stop inside the called function.

        Parameters
        ----------
        by
            "value": stop only at instructions that compute a value of the program.  "instruction": stop at any
            instruction of a function, even if it only allocates memory, checks an argument, or releases a value.
            "kernel": like "instruction", but also stop at the instructions inside kernels in bytecode.
        """
        return self._go(MAX_DEPTH, _skips(by), by == "kernel")

    def step_over(self, by: str = "value") -> Stop:
        """Continue to the next instruction of the innermost function, or of its caller if the function returns.

        In functions that the innermost function calls, the run stops only at breakpoints.  If the instruction is a tail
        call, the called function replaces the innermost one, so the run stops in the called function.

        Parameters
        ----------
        by
            "value", "instruction" or "kernel": the instructions at which to stop.  `step` describes these values.
        """
        return self._go(self._paused().depth, _skips(by), by == "kernel")

    def step_out(self) -> Stop:
        """Continue until the innermost function has returned to its caller."""
        return self._go(self._paused().depth - 1, True)

    @property
    def is_running(self) -> bool:
        """Whether a run is in progress and not stopped."""
        return self._is_running

    def interrupt(self) -> None:
        """Stop the run before its next instruction.  Has no effect unless `is_running`.

        Call this method from a thread other than the one that waits for the run.
        """
        if self.is_running:
            self._interrupted = True
            self._set_depth()

    def close(self) -> None:
        """Abort the run if it is unfinished."""
        if self._run is not None and not self._run.is_over:
            self._interrupted = True  # so that the run stops again if it does not end
            self._set_depth()
            self._run.abort()
            self._interrupted = False
        self._run, self._stop, self._is_running = None, None, False

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- inspection ----

    @property
    def stop(self) -> Stop:
        """The current stop.  Raises RelvmArgumentError if no run is stopped."""
        return self._paused()

    def stack(self, limit: int = 100) -> tuple[Frame, ...]:
        """Return the innermost `limit` frames of the call stack, the innermost first."""
        depth = self._paused().depth
        numbers = range(depth - 1, max(-1, depth - 1 - limit), -1)
        return self._ask(lambda: tuple(self._frame(number) for number in numbers))

    def listing(self, function: str, instruction: int, around: int = 3) -> str:
        """Return the instructions of a function near `instruction` as text, one line each.

        Parameters
        ----------
        function
            Name of a function, or of a kernel in bytecode.
        instruction
            Number of the instruction to mark with an arrow.
        around
            Number of instructions to show before and after the marked one.

        Raises
        ------
        RelvmNameError
            The program has no such function, or the instructions of the function are not known.
        """
        code = self.code.find(function)
        if code is None:
            known = [*self.code.functions, *self.code.kernels]
            raise RelvmNameError(f"no function {function}{known_names(function, known)}")
        lines = []
        for number in range(max(0, instruction - around), min(len(code.code), instruction + around + 1)):
            mark = "->" if number == instruction else "  "
            value = f"  ; {', '.join(code.names[number])}" if code.names[number] else ""
            lines.append(terminal(f"{mark} {number}: {code.texts[number]}{value}"))
        return "\n".join(lines)

    def registers(self, frame: int = 0) -> tuple[RegisterValue, ...]:
        """Return the registers of a frame that hold a value.

        Parameters
        ----------
        frame
            Number of the frame: 0 is the innermost, 1 its caller.

        Raises
        ------
        RelvmIndexError
            There is no such frame.
        """
        number = self._number(frame)

        return self._ask(lambda: self._registers(number))

    def value(self, name: str | int, frame: int = 0) -> Any:
        """Return a value by its name in the program, or by its register, given as "r3" or 3.

        In a kernel, the names are those of its listing: "s3" is a scalar, "v0" a strip, "w1" a view, and "b2" or the
        name of a parameter a buffer.  A strip or view contains only the elements that are processed at this time.

        Tensors are copied to arrays.  A value without a Python representation is returned as Opaque.

        Raises
        ------
        RelvmNameError
            The value is not in a register where the run is stopped: not computed yet, already released, or used only
            inside a kernel.
        RelvmIndexError
            There is no such frame.
        """
        number = self._number(frame)
        return self._ask(lambda: self._value(name, number))

    def __getitem__(self, name: str | int) -> Any:
        """Return a value of the innermost frame."""
        return self.value(name)

    def _ipython_key_completions_(self) -> list[str]:
        if self._stop is None or self._stop.frame is None:
            return []
        return sorted({register.name or register.label for register in self.registers()})

    def __str__(self) -> str:
        frame = None if self._stop is None else self._stop.frame
        state = "no run" if self._run is None else "running" if frame is None else f"stopped at {frame}"
        return terminal(f"<Debugger: {len(self.breakpoints)} breakpoints, {state}>")

    # ---- called on the thread of the run ----

    def _on_instruction(self, failed: RelvmError | None) -> None:
        if self._run is None:  # direct calls of the machine do not stop
            return
        depth = self._debugger.depth
        place = self._debugger.place(depth - 1)
        code = self.code.find(place.function)
        assert code is not None, "only functions with instructions stop"
        reason, about = self._find_stop_reason(failed, depth, code, place.instruction)
        if not reason:
            return
        self._interrupted = False
        frame = self._frame(depth - 1)
        source = _source_line(frame.origins[0]) if frame.origins else ""
        self._run.pause(Stop(reason, frame, depth, about, source, self.listing(code.name, place.instruction)))

    def _find_stop_reason(
        self, failed: RelvmError | None, depth: int, code: FunctionCode | KernelCode, instruction: int
    ) -> tuple[str, str]:
        """Return the reason to stop the run here, and the details (`Stop.about`), or ("", "") to continue the run.

        failed: the last instruction's exception, or None.  depth: the number of frames.  code: code of the last frame.
        """
        if failed is not None:
            return "error", f"{type(failed).__name__}: {failed}"
        if self._watches_nan and isinstance(code, FunctionCode) and (nans := self._new_nans(depth, code, instruction)):
            return "nan", nans
        if self._interrupted:
            return "interrupt", ""
        place = f"{code.name}:{instruction}"
        if any(place in each.places and self._condition_holds(each, depth) for each in self.breakpoints):
            return "breakpoint", ""
        if isinstance(code, KernelCode) and not self._in_kernels:
            return "", ""
        if depth <= self._stepping_depth and not (self._skips_housekeeping and code.is_housekeeping(instruction)):
            return "step", ""
        return "", ""

    def _condition_holds(self, breakpoint: Breakpoint, depth: int) -> bool:
        return breakpoint.when is None or bool(breakpoint.when(_Values(self, depth - 1)))

    def _new_nans(self, depth: int, code: FunctionCode, instruction: int) -> str:
        """Return a description of the NaNs that the previous instruction of the innermost frame computed, or "".

        Also record the next instruction of the frame.  The result of a call is checked when the caller continues.
        """
        last = self._previous[depth - 1] if depth <= len(self._previous) else None
        self._previous[depth - 1 :] = [None] * (depth - 1 - len(self._previous)) + [(code, instruction)]
        if last is None:
            return ""
        ran, number = last
        if ran.code[number].op not in ("call", "prim") or ran.is_housekeeping(number):
            return ""
        for register in ran.written_registers(number):
            value = self._debugger.register(depth - 1, register)
            if count := nan_count(value):
                name = ", ".join(ran.names[number]) or f"r{register}"
                return f"{name} has {count} NaN, made by {ran.name}:{number}  {ran.texts[number]}"
        return ""

    def _frame(self, number: int) -> Frame:
        place = self._debugger.place(number)
        code, at = self.code.find(place.function), place.instruction
        if code is None:
            return Frame("native code that was not built for debugging", 0, "", "", ())
        return Frame(code.name, at, code.texts[at], ", ".join(code.names[at]), code.origins[at])

    def _code_at(self, number: int) -> tuple[FunctionCode | None, int]:
        place = self._debugger.place(number)
        return self.code.functions.get(place.function), place.instruction

    def _kernel_values(self, number: int) -> KernelValues | None:
        """Return the values of frame `number` if it runs a kernel in bytecode, otherwise None."""
        place = self._debugger.place(number)
        kernel = self.code.kernels.get(place.function)
        return None if kernel is None else KernelValues(kernel, place.instruction, self._debugger, number)

    def _registers(self, number: int) -> tuple[RegisterValue, ...]:
        if (kernel := self._kernel_values(number)) is not None:
            return tuple(replace(register, shown=describe_value(value)) for register, value in kernel.nonempty_values())
        return tuple(
            RegisterValue(k, name, describe_value(value), f"r{k}") for k, name, value in self._register_values(number)
        )

    def _register_values(self, number: int) -> list[tuple[int, str, Any]]:
        """Return index, name and value (not a copy) of each register of frame `number` that has a value."""
        code, instruction = self._code_at(number)
        if code is None:
            return []
        names = code.register_names(instruction)
        values = ((each, self._debugger.register(number, each)) for each in sorted(names))
        return [(each, names[each], value) for each, value in values if value is not None]

    def _value(self, name: str | int, number: int) -> Any:
        if (kernel := self._kernel_values(number)) is not None:
            return kernel.value(name)
        wanted = int(name[1:]) if isinstance(name, str) and re.fullmatch("r[0-9]{1,9}", name) else name
        nonempty = self._register_values(number)
        found = [value for register, called, value in nonempty if wanted in (register, called)]
        if isinstance(wanted, str) and (not found or self._is_script(number)):
            code, instruction = self._code_at(number)
            latest = {} if code is None else code.last_writes(instruction)
            versions = [
                (latest.get(register, -1), k)
                for k, (register, called, _) in enumerate(nonempty)
                if is_version(called, wanted)
            ]
            found = [nonempty[max(versions)[1]][2]] if versions else []
        if found:
            return copy_value(found[-1])
        names = sorted({called for _, called, _ in nonempty if called})
        raise RelvmNameError(
            f"no register holds {name} here; the named values are: {', '.join(names) or 'none'}"
            f"{near_matches(str(name), names)}; a missing value is not computed yet, is already"
            " released, or exists only inside a kernel"
        )

    def _is_script(self, number: int) -> bool:
        """Return whether frame `number` runs a function of a Python script, which can assign a name several times."""
        code, _ = self._code_at(number)
        return code is not None and any(".py:" in origin for origins in code.origins for origin in origins[:1])

    # ---- helpers ----

    def _begin(self, function: str, arguments: tuple, named: dict[str, Any], within: int) -> Stop:
        if self._run is not None:
            raise RelvmArgumentError("a run is already in progress; call `close` to abandon it")
        called = self.machine[function]
        self._run = PausedRun(lambda: called(*arguments, **named))
        self._previous = []
        return self._go(within, within == 0)

    def _go(self, within: int, skips_housekeeping: bool, in_kernels: bool = False) -> Stop:
        if self._run is None:
            raise RelvmArgumentError("no run is in progress; call `run` or `start` first")
        self._stepping_depth, self._skips_housekeeping, self._in_kernels = within, skips_housekeeping, in_kernels
        self._interrupted = False  # an interrupt that arrived while the run was stopping had its effect
        self._set_depth()
        self._stop, self._is_running = None, True  # last, because an interrupt before this would be lost
        try:
            what, value = self._run.resume()
        except KeyboardInterrupt:
            self.interrupt()
            what, value = self._run.resume()
        if what == "paused":
            self._stop, self._is_running = value, False
            return value
        self._run, self._stop, self._is_running = None, None, False
        if what == "failed":
            raise value
        return Stop("end", result=value)

    def _set_depth(self) -> None:
        everywhere = self._watches_nan or self._interrupted
        self._debugger.stop_in_kernels(self._in_kernels or self._interrupted)
        self._debugger.stop_within(MAX_DEPTH if everywhere else max(self._stepping_depth, 0))

    def _paused(self) -> Stop:
        if self._stop is None and self._run is not None:
            raise RelvmBusyError(
                "the run has not stopped; call `resume` to wait until it stops, or `close` to abandon it"
            )
        if self._stop is None:
            raise RelvmArgumentError("no run is in progress; call `run` or `start` first")
        return self._stop

    def _ask(self, question: Callable[[], Any]) -> Any:
        self._paused()
        assert self._run is not None
        return self._run.call_while_paused(question)

    def _number(self, frame: int) -> int:
        depth = self._paused().depth
        if not 0 <= frame < depth:
            raise RelvmIndexError(f"no frame {frame}; the frames are 0 to {depth - 1}")
        return depth - 1 - frame


class _Values:
    """The values of a frame by their names, as passed to the condition of a breakpoint."""

    def __init__(self, debugger: Debugger, number: int) -> None:
        self._debugger = debugger
        self._number = number

    def __getitem__(self, name: str | int) -> Any:
        return self._debugger._value(name, self._number)


def _executable(
    program: Any,
    options: Mapping[str, Any],
    dims: Mapping[str, int | tuple[int, int]] | None,
    trust_native: bool,
) -> Executable:
    is_file = isinstance(program, str | Path)
    if isinstance(program, Module | Script) or (is_file and Path(program).suffix not in EXECUTABLE_SUFFIXES):
        given = {name: value for name, value in options.items() if value is not None}
        return build(as_module(program, dims), **given, debug=True)
    if is_file or isinstance(program, Executable):
        expect_to_build(program if is_file else "the executable", {**options, "dims": dims or None})
    if is_file:
        program = Executable.open(program, trust_native=trust_native)
    expect_type("Debugger", program, Executable, "a module, an executable or a path")
    if program.upgrade is not None:
        raise RelvmArgumentError('Debugger: the executable was built with exec_mode="auto"; build it with debug=True')
    return program


def _expect_stops(executable: Executable, code: ProgramCode) -> None:
    if not code.functions and any(entry.kind == "native" for entry in executable.program.functions):
        raise RelvmUnsupportedError(
            "Debugger: all functions of the executable are native code without debug information;"
            " build it with debug=True or relvm compile --debug"
        )


_LARGEST_SOURCE_BYTES = 1 << 24


def _source_line(origin: str) -> str:
    """Return the source line at a source location, or "" if it cannot be read."""
    path, line = parse_line_location(origin) or ("", 0)  # untrusted: an executable may name any file
    is_readable = path in linecache.cache or (os.path.isfile(path) and os.path.getsize(path) <= _LARGEST_SOURCE_BYTES)
    return linecache.getline(path, line).strip() if is_readable else ""


def _skips(by: str) -> bool:
    expect_choice("by", by, ("value", "instruction", "kernel"))
    return by == "value"
