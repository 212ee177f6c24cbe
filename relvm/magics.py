"""The IPython extension: `%load_ext relvm` adds `%%relvm` and `%relvm_profile`.

Only `relvm.load_ipython_extension` imports this module, because IPython is optional.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, needs_local_scope
from IPython.display import display

from relvm.compiler.build import build
from relvm.errors import RelvmArgumentError, RelvmError, RelvmTypeError, not_a_choice, shortened
from relvm.explore.stages.exploration import MODES, explore
from relvm.frontend.text import parse_module
from relvm.model import Model
from relvm.passes.pipeline import TARGETS
from relvm.runtime.function import Function, SavedFunction
from relvm.runtime.profiler import Profile, measure
from relvm.vm import VirtualMachine


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magics to a shell.  IPython calls this function for `%load_ext relvm`."""
    shell.register_magics(RelvmMagics)


class CellError(Exception):
    """An error in a cell.  IPython shows the message of the original error, without Python stack frames."""

    def __init__(self, error: RelvmError) -> None:
        super().__init__(str(error))
        self.kind = type(error).__name__

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints instead of a traceback."""
        return [f"{self.kind}: {self}"]


class _Parser(argparse.ArgumentParser):
    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, not_a_choice(value, action.choices))

    def error(self, message: str) -> NoReturn:
        raise RelvmArgumentError(f"%%{self.prog}: {message}; {' '.join(self.format_usage().split())}")


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser("relvm", add_help=False, allow_abbrev=False)
    parser.add_argument("--stage", action="append", default=[])
    parser.add_argument("--exec-mode", choices=MODES, default="bytecode")
    parser.add_argument("--target", choices=TARGETS, default="c")
    parser.add_argument("--name", type=_identifier, default="module")
    parser.add_argument("--machine", type=_identifier, default="machine")
    return parser


def _identifier(text: str) -> str:
    if not text.isidentifier():
        raise argparse.ArgumentTypeError(f"expected a Python name, got {text!r}")
    return text


@magics_class
class RelvmMagics(Magics):
    """The magics of relvm."""

    shell: InteractiveShell  # the shell in which the magics are registered

    @cell_magic("relvm")
    def program(self, line: str, cell: str) -> None:
        """Compile a cell that contains a program in the text form, and show its stages.

        %%relvm [--stage NAME]... [--exec-mode MODE] [--target TARGET] [--name NAME] [--machine NAME]

        --stage     a stage to show, such as fuse_ops or bytecode, or "all"; by default, the module is shown
        --exec-mode bytecode or compiled
        --target    c, bytecode or numpy
        --name      the variable for the module, by default `module`
        --machine   the variable for a machine that runs the program, by default `machine`
        """
        with _without_traceback():
            options = _make_parser().parse_args(_words(line))
            # The line of the magic is line 1 of the cell, as in the line numbers that an editor shows.
            module = parse_module("\n" + cell, f"In[{self.shell.execution_count}]")
            chosen = {"exec_mode": options.exec_mode, "target": options.target}
            stages = explore(module, **chosen, title=options.name) if options.stage else None
            shown = [module if stages is None else stages if name == "all" else stages[name] for name in options.stage]
            machine = VirtualMachine(build(module, **chosen))
        self.shell.push({options.name: module, options.machine: machine})
        display(*(shown or [module]))

    @needs_local_scope
    @line_magic("relvm_profile")
    def profile(self, line: str, local_ns: dict[str, Any] | None = None) -> Profile:
        """Profile one call of a model, or of a function of a machine.  Return the profile.

        %relvm_profile [--kernels] machine["main"](x, y)

        --kernels   also measure the instructions of kernels in bytecode
        """
        option = re.match(r"\s*--kernels\b", line)
        expression = line[option.end() if option else 0 :].strip()
        with _without_traceback():
            tree = _expect_call(expression)
        names = {**self.shell.user_ns, **(local_ns or {})}
        called = eval(compile(ast.Expression(tree.func), "<relvm_profile>", "eval"), names)
        tree.func = ast.copy_location(ast.Name("__relvm_arguments", ast.Load()), tree.func)
        arguments, named = eval(
            compile(ast.Expression(tree), "<relvm_profile>", "eval"),
            {**names, "__relvm_arguments": lambda *arguments, **named: (arguments, named)},
        )
        with _without_traceback():
            return _profile_call(called, expression, arguments, named, kernels=option is not None)


def _profile_call(called: Any, expression: str, arguments: tuple, named: dict[str, Any], *, kernels: bool) -> Profile:
    match called:
        case Function():
            return measure(called.prepare(arguments, named), kernels=kernels)
        case SavedFunction():
            return measure(called.prepared_call(arguments, named), kernels=kernels)
        case Model() if kernels:
            example = '%relvm_profile --kernels model.machine()["main"](x)'
            raise RelvmArgumentError(f"%relvm_profile: --kernels needs a machine's function; write {example}")
        case Model():
            return called.profile(*arguments, **named)
    raise RelvmTypeError(
        f"%relvm_profile: expected a call of a machine's function or of a Model, got a call of {type(called).__name__}:"
        f" {shortened(expression)}"
    )


def _expect_call(expression: str) -> ast.Call:
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError as error:
        raise RelvmArgumentError(f"%relvm_profile: {shortened(expression)!r} is not an expression: {error}") from None
    if not isinstance(tree, ast.Call):
        example = '%relvm_profile machine["main"](x)'
        raise RelvmArgumentError(f"%relvm_profile: expected a call, such as {example}, got {shortened(expression)!r}")
    return tree


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise RelvmArgumentError(f"%%relvm: {line!r}: {error}") from None


@contextmanager
def _without_traceback() -> Iterator[None]:
    """A context manager that shows only the message of a relvm error, without a traceback."""
    try:
        yield
    except RelvmError as error:
        raise CellError(error) from None
