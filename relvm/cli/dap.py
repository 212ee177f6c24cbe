"""`relvm dap`: let an editor debug a program, through the Debug Adapter Protocol."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relvm.cli import debug
from relvm.cli.arguments import Parser
from relvm.cli.inputs import input_values, runner, signature_of
from relvm.cli.models import load_or_build
from relvm.compiler.adapt import adapt
from relvm.editors.debug_adapter import DebugAdapter, Launch
from relvm.errors import RelvmArgumentError
from relvm.explore.debugger.debugger import Debugger
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES

_TEXTS = {"function": "--function", "execMode": "--exec-mode", "target": "--target"}
_MAPPINGS = {"inputs": "--input", "dims": "--dim"}
_SWITCHES = {"random": "--random", "unfused": "--unfused"}


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm dap"
    parser.description = (
        "Speak the Debug Adapter Protocol on the standard streams. Editors start this command themselves."
    )


def run(options: argparse.Namespace) -> int:
    """Run the debug adapter on the standard streams until the editor ends it."""
    DebugAdapter(sys.stdin.buffer, sys.stdout.buffer, launch_program).serve()
    return 0


def launch_program(arguments: Mapping[str, Any]) -> Launch:
    """Build the program that an editor wants to debug.

    Parameters
    ----------
    arguments
        The arguments of the request "launch" of the Debug Adapter Protocol:
        "program" is the path of the model.
        "function", "execMode" and "target" are the values of the options --function, --exec-mode and --target of
        `relvm debug`.
        "inputs" maps the names of inputs to values or paths, as the option --input does.
        "dims" maps the names of symbolic dimensions to sizes, as the option --dim does.
        "random" states whether inputs that are not in "inputs" get random values.  It is true by default if there are
        no "inputs", and false otherwise.
        "unfused" states whether each operator has a kernel of its own, so that a program stops at each of its lines.
        It is true by default, except for an executable, which is already built.

    Raises
    ------
    RelvmArgumentError
        An argument is missing or of another type.
    RelvmError, OSError
        The program cannot be read or built.
    """
    if not isinstance(arguments.get("program"), str):
        raise RelvmArgumentError('launch: expected "program", the path of a model')
    words = [arguments["program"]]
    for name, option in _TEXTS.items():
        if name in arguments:
            words += [option, str(arguments[name])]
    for name, option in _MAPPINGS.items():
        values = arguments.get(name, {})
        if not isinstance(values, dict):
            raise RelvmArgumentError(f"launch: {name}: expected an object that maps names to values")
        words += [word for key, value in values.items() for word in (option, f"{key}={value}")]
    is_built = Path(arguments["program"]).suffix in EXECUTABLE_SUFFIXES
    defaults = {"random": not arguments.get("inputs"), "unfused": not is_built}
    for name, option in _SWITCHES.items():
        value = arguments.get(name, defaults[name])
        if not isinstance(value, bool):
            raise RelvmArgumentError(f"launch: {name}: expected true or false, got {value!r}")
        words += [option] * value
    parser = Parser("relvm debug")
    debug.add_arguments(parser)
    try:
        options = parser.parse_args(words)
    except SystemExit:
        raise RelvmArgumentError(f"launch: wrong arguments: {' '.join(words)}") from None
    executable = adapt(load_or_build(options, debug=True))
    debugger = Debugger(executable)
    debugger.machine[options.function]  # raises an error if there is no such function
    values = input_values(options, signature_of(executable, options.function), runner(executable, options.function))
    return Launch(debugger, options.function, values)
