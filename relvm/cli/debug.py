"""`relvm debug`: a command-line debugger."""

from __future__ import annotations

import argparse
import cmd
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.cli.arguments import Parser
from relvm.cli.common_arguments import add_function, add_inputs, add_model, add_trust_native
from relvm.cli.inputs import input_values, runner, signature_of
from relvm.cli.models import load_or_build
from relvm.cli.output import put
from relvm.compiler.adapt import adapt
from relvm.errors import RelvmArgumentError, RelvmError, RelvmNameError, near_matches
from relvm.explore.debugger.debugger import Debugger
from relvm.explore.debugger.frames import Stop
from relvm.explore.draw.format_value import describe_value
from relvm.frontend.dim_settings import parse_decimal
from relvm.quoting import terminal

_FRAMES = 20  # limit on the frames that `where` prints


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm debug model.onnx --random"
    add_model(parser)
    add_function(parser)
    add_inputs(parser)
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), help="default: bytecode")
    add_trust_native(parser)


def run(options: argparse.Namespace) -> int:
    """Run a function of a model step by step, controlled by commands from standard input."""
    executable = adapt(load_or_build(options, debug=True))
    with Debugger(executable) as debugger:
        debugger.machine[options.function]  # raises an error if there is no such function
        arguments = input_values(
            options, signature_of(executable, options.function), runner(executable, options.function)
        )
        Prompt(debugger, options.function, arguments).cmdloop()
    return 0


class Prompt(cmd.Cmd):
    """The prompt of the debugger: reads commands and prints their results.

    Parameters
    ----------
    function, arguments
        The function that the command `run` calls, and its arguments.
    """

    def __init__(self, debugger: Debugger, function: str, arguments: list[Any]) -> None:
        super().__init__()
        self.debugger = debugger
        self.function = function
        self.arguments = arguments
        self.frame = 0  # the selected frame: 0 is the innermost
        self.prompt = "(relvm) " if sys.stdin.isatty() else ""
        self.intro = f"{function} has not started yet; `help` lists the commands" if sys.stdin.isatty() else None

    # ---- breakpoints ----

    def do_break(self, text: str) -> None:
        """break [WHERE [in FUNCTION]]: stop at WHERE, or list the breakpoints.
        WHERE: a value, a function, a kernel, FUNCTION:INSTRUCTION, FILE:LINE, a line's number, or an ONNX node."""
        if not text:
            put("\n".join(map(str, self.debugger.breakpoints)) or "no breakpoints")
            return
        where, _, function = text.partition(" in ")
        line = parse_decimal(where)
        put(self.debugger.break_at(where if line is None else line, function.strip() or None))

    def do_delete(self, text: str) -> None:
        """delete NUMBER: remove a breakpoint."""
        self.debugger.delete(_number(text))

    def do_nan(self, text: str) -> None:
        """nan [off]: stop where the first NaN is computed, or no longer."""
        if text not in ("", "off"):
            raise RelvmArgumentError(f"nan {text}: expected `nan` or `nan off`")
        self.debugger.watch_nan(not text)

    # ---- running ----

    def do_run(self, text: str) -> None:
        """run: run from the beginning to a breakpoint or the end."""
        self._begin(self.debugger.run)

    def do_start(self, text: str) -> None:
        """start: begin a run, and stop before its first instruction."""
        self._begin(self.debugger.start)

    def do_continue(self, text: str) -> None:
        """continue: continue the run to the next breakpoint or its end."""
        self._show(self.debugger.resume())

    def do_step(self, text: str) -> None:
        """step: continue to the next value, also in a called function."""
        self._show(self.debugger.step())

    def do_next(self, text: str) -> None:
        """next: continue to the next value, without stopping in callees."""
        self._show(self.debugger.step_over())

    def do_stepi(self, text: str) -> None:
        """stepi: continue to the very next instruction."""
        self._show(self.debugger.step("instruction"))

    def do_nexti(self, text: str) -> None:
        """nexti: continue to the next instruction, not stopping in callees."""
        self._show(self.debugger.step_over("instruction"))

    def do_stepk(self, text: str) -> None:
        """stepk: continue to the next instruction, also inside bytecode kernels."""
        self._show(self.debugger.step("kernel"))

    def do_nextk(self, text: str) -> None:
        """nextk: continue to the next instruction of this kernel or function."""
        self._show(self.debugger.step_over("kernel"))

    def do_finish(self, text: str) -> None:
        """finish: continue until the current function has returned."""
        self._show(self.debugger.step_out())

    def do_quit(self, text: str) -> bool:
        """quit: leave the debugger."""
        return True

    # ---- inspection ----

    def do_where(self, text: str) -> None:
        """where: print the call stack, the innermost function first."""
        depth = self.debugger.stop.depth
        for number, frame in enumerate(self.debugger.stack(_FRAMES)):
            put(f"{'*' if number == self.frame else ' '} {number}: {frame}")
        if depth > _FRAMES:
            put(f"  and {depth - _FRAMES} more")

    def do_up(self, text: str) -> None:
        """up: select the function that called the selected function."""
        self._look(self.frame + 1)

    def do_down(self, text: str) -> None:
        """down: select the function that the selected function called."""
        self._look(self.frame - 1)

    def do_list(self, text: str) -> None:
        """list: print the instructions of the selected function."""
        frame = self.debugger.stack(self.frame + 1)[self.frame]
        put(self.debugger.listing(frame.function, frame.instruction))

    def do_registers(self, text: str) -> None:
        """registers: print the registers of the selected function."""
        rows = self.debugger.registers(self.frame)
        width = max((len(row.name) for row in rows), default=0)
        for row in rows:
            put(terminal(f"{row.label:<5} {row.name:{width}}  {row.shown}"))

    def do_print(self, text: str) -> None:
        """print NAME: print a value, given by its name or register."""
        value = self.debugger.value(text, self.frame)
        if isinstance(value, np.ndarray):
            put(
                f"{describe_value(value)}\n{np.array2string(value, threshold=200)}"
                if value.size > 4
                else describe_value(value)
            )
        else:
            put(value if isinstance(value, bool | int | float | str) else describe_value(value))

    def do_help(self, text: str) -> None:
        """help [COMMAND]: list the commands, or describe a command."""
        if not text:
            put(_overview())
            return
        if not hasattr(self, f"do_{text}"):
            self.default(text)
        command = getattr(self, f"do_{text}")
        name = command.__name__.removeprefix("do_")
        short = ", ".join(_short_names(name))
        put(
            inspect.cleandoc(command.__doc__) + (f"\nshort: {short}" if short else "") + f"\nexample: {_EXAMPLES[name]}"
        )

    # ---- parsing and errors ----

    do_b, do_r, do_c, do_s, do_n = do_break, do_run, do_continue, do_step, do_next
    do_sk, do_nk = do_stepk, do_nextk
    do_si, do_ni, do_bt, do_p, do_l = do_stepi, do_nexti, do_where, do_print, do_list
    do_q = do_EOF = do_quit

    def default(self, line: str) -> None:
        name = line.partition(" ")[0]
        near = near_matches(name, [each for names in _GROUPS.values() for each in names])
        raise RelvmNameError(f"unknown command {name}{near or '; `help` lists the commands'}")

    def onecmd(self, line: str) -> bool:
        """Run a command.  Print an error instead of raising it, so that the next command is read."""
        try:
            return bool(super().onecmd(line))
        except RelvmError as error:
            put(f"{type(error).__name__}: {error}", styles={0: "bad"})
        return False

    def emptyline(self) -> bool:
        """Ignore an empty line, instead of repeating the last command."""
        return False

    def _begin(self, begin: Callable[..., Stop]) -> None:
        self.debugger.close()
        self._show(begin(self.function, *self.arguments))

    def _show(self, stop: Stop) -> None:
        self.frame = 0
        put(stop)

    def _look(self, frame: int) -> None:
        found = self.debugger.stack(frame + 1)
        if not 0 <= frame < len(found):
            raise RelvmArgumentError("already at the " + ("outermost" if frame > 0 else "innermost") + " function")
        self.frame = frame
        put(found[frame])


_GROUPS = {
    "Breakpoints": ("break", "delete", "nan"),
    "Run": ("run", "start", "continue", "finish"),
    "Step": ("step", "next", "stepi", "nexti", "stepk", "nextk"),
    "Look": ("where", "up", "down", "list", "registers", "print"),
    "Debugger": ("help", "quit"),
}
_EXAMPLES = {
    "break": "`break y` stops when y is computed, and `break y in f` only in the function f",
    "delete": "`delete 1` removes the first breakpoint; `break` lists them with their numbers",
    "nan": "`nan`, then `run`, stops where the first NaN is computed",
    "run": "`break y`, then `run`, stops when y is computed",
    "start": "`start`, then `step` again and again, shows each value that is computed",
    "continue": "`continue` after a stop runs to the next breakpoint",
    "finish": "`finish` in a called function stops in its caller",
    "step": "`step` at a call of f stops at the first value of f",
    "next": "`next` at a call of f stops at the value after the call",
    "stepi": "`stepi` also stops at instructions that allocate memory",
    "nexti": "`nexti` at the instruction that calls f stops at the instruction after it",
    "stepk": "`stepk` at a kernel stops at its first instruction",
    "nextk": "`nextk` inside a kernel stops at its next instruction",
    "where": "`where` in f prints f, the function that called it, and so on",
    "up": "`up`, then `print x`, prints the x of the caller",
    "down": "`down` after `up` selects the called function again",
    "list": "`list` marks the instruction at which the run has stopped",
    "registers": "`registers` prints each register with the name of its value",
    "print": "`print y`, or `print r3` for a register, or `print v0` inside a kernel",
    "help": "`help break`",
    "quit": "`quit`, or Ctrl-D",
}
_INDENT = 16  # columns before the description of a command


def _short_names(name: str) -> list[str]:
    command = getattr(Prompt, f"do_{name}")
    names = [each.removeprefix("do_") for each, value in vars(Prompt).items() if value is command]
    return [each for each in names if each not in (name, "EOF")]


def _overview() -> str:
    """Return the commands by group, with a line about each."""
    lines = []
    for title, names in _GROUPS.items():
        lines += ["", f"{title}:"]
        for name in names:
            _, _, meaning = getattr(Prompt, f"do_{name}").__doc__.split("\n")[0].partition(": ")
            head = "  " + ", ".join([name, *_short_names(name)])
            lines.append(f"{head.ljust(_INDENT)}{meaning.removesuffix('.')}")
    return "\n".join([*lines[1:], "", "`help COMMAND` describes a command, with an example."])


def _number(text: str) -> int:
    number = parse_decimal(text)
    if number is None:
        raise RelvmArgumentError(f"expected a breakpoint number, got {text or 'nothing'}")
    return number
