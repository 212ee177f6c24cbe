"""`relvm` without a command and `relvm help`: what relvm is, the first commands, and all commands by purpose."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping

from relvm import __version__
from relvm.cli.arguments import Parser
from relvm.cli.output import put

_FIRST_STEPS = (
    ("relvm info model.onnx", "inputs, outputs, operators, parameters"),
    ("relvm run model.onnx --random", "run it on random inputs"),
    ("relvm bench model.onnx", "time it"),
    ("relvm compile model.onnx -o model.rvm", "save it as an executable"),
    ("relvm explore", "edit a program in the browser"),
)
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Run a model": {
        "info": "print a model's inputs, outputs, operators and parameters",
        "run": "run a model",
        "bench": "time a model on random inputs, beside other runtimes",
        "map": "run a model on many files, in several processes or on a Dask cluster",
        "run-python": "run a Python program that imports onnxruntime, on relvm",
    },
    "Build a model": {
        "compile": "build a model and save the executable",
        "bundle": "write a model as a Python package that needs no compiler",
        "export": "write a model as C sources without a virtual machine, or as a library",
        "quantize": "write an ONNX model with 8-bit or 4-bit integers, and report the errors",
        "verify": "verify an executable without running any of it",
        "cache": "show the folder and size of the build cache, or clear it",
    },
    "See what happens": {
        "show": "print a model at a compilation stage",
        "explore": "edit a program in the browser, beside its stages",
        "compare": "run a model in several modes and find the first value that differs",
        "debug": "run a model step by step, with commands from standard input",
    },
    "Write programs": {
        "fmt": "format .relvm files in place: indentation, spaces and blank lines",
        "lsp": "serve an editor: errors, types, definitions, completion and formatting of .relvm files",
        "dap": "let an editor step through a program",
        "config": "print what a C program needs to embed the runtime",
    },
    "Reference": {
        "ops": "list the operators, or describe some of them",
        "builtins": "list the runtime's own functions, or describe some of them",
        "opcodes": "list the instruction set, or describe some of them",
        "boards": "list the boards of `relvm export --board`, or describe some of them",
        "help": "describe a command and its options",
        "completion": "print code that completes commands and options in a shell",
    },
}
COMMANDS = {name: about for commands in _GROUPS.values() for name, about in commands.items()}
_WIDTH = 80  # columns
_INDENT = 15  # columns before the description of a command


class RootParser(Parser):
    """The parser of the command `relvm`.  Its help is the overview."""

    def format_help(self) -> str:
        return _overview()


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm help run"
    parser.add_argument("topic", nargs="?", metavar="COMMAND", choices=COMMANDS, help="default: an overview")


def run(options: argparse.Namespace) -> int:
    """Print the overview, or the help of the command that the user names."""
    parser = options.root if options.topic is None else options.parsers[options.topic]
    put(parser.format_help(), end="")
    return 0


def _overview() -> str:
    lines = [f"relvm {__version__}: compile and run tensor programs and ONNX models.", ""]
    width = max(len(command) for command, _ in _FIRST_STEPS)
    lines += ["First steps, with any ONNX model:"]
    lines += [f"  {command.ljust(width)}  {purpose}" for command, purpose in _FIRST_STEPS]
    for title, commands in _GROUPS.items():
        lines += ["", f"{title}:"]
        for name, about in commands.items():
            lines += textwrap.wrap(
                about, _WIDTH, initial_indent=f"  {name}".ljust(_INDENT), subsequent_indent=" " * _INDENT
            )
    lines += ["", "relvm help COMMAND describes a command and its options."]
    lines += ["relvm --version prints the version.  In Python: import relvm; help(relvm)", ""]
    return "\n".join(lines)
