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
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Run a model": ("info", "run", "bench", "map", "run-python"),
    "Build a model": ("compile", "export", "quantize", "verify", "cache"),
    "See what happens": ("show", "explore", "compare", "debug"),
    "Write programs": ("fmt", "lsp", "dap", "config"),
    "Reference": ("ops", "builtins", "opcodes", "help", "completion"),
}
EXAMPLES: Mapping[str, str] = {
    "bench": "relvm bench model.onnx --against onnxruntime",
    "builtins": "relvm builtins alloc_storage",
    "cache": "relvm cache --clear",
    "compare": "relvm compare model.onnx --modes bytecode,compiled",
    "compile": "relvm compile model.onnx --exec-mode compiled -o model.rvm",
    "completion": 'eval "$(relvm completion bash)"',
    "config": "cc program.c $(relvm config --cflags --libs) -o program",
    "dap": "relvm dap",
    "debug": "relvm debug model.onnx --random",
    "explore": "relvm explore program.relvm",
    "export": "relvm export model.onnx --dim batch=1 --random -o folder",
    "fmt": "relvm fmt program.relvm",
    "help": "relvm help run",
    "info": "relvm info model.onnx",
    "lsp": "relvm lsp",
    "map": "relvm map model.onnx --inputs 'in/*.npy' -o out",
    "opcodes": "relvm opcodes call",
    "ops": "relvm ops matmul conv",
    "quantize": "relvm quantize model.onnx -o model.int8.onnx",
    "run": "relvm run model.onnx --random --profile",
    "run-python": "relvm run-python --as-onnxruntime program.py",
    "show": "relvm show model.onnx --stage fuse_ops",
    "verify": "relvm verify model.rvm",
}
_WIDTH = 80  # columns
_INDENT = 15  # columns before the description of a command


class RootParser(Parser):
    """The parser of the command `relvm`.  Its help is the overview."""

    def format_help(self) -> str:
        (commands,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return overview({each.dest: each.help or "" for each in commands._choices_actions})


def overview(commands: Mapping[str, str]) -> str:
    """Return the overview.   commands: the description of each command."""
    lines = [f"relvm {__version__}: compile and run tensor programs and ONNX models.", ""]
    width = max(len(command) for command, _ in _FIRST_STEPS)
    lines += ["First steps, with any ONNX model:"]
    lines += [f"  {command.ljust(width)}  {purpose}" for command, purpose in _FIRST_STEPS]
    for title, names in _GROUPS.items():
        lines += ["", f"{title}:"]
        for name in names:
            lines += textwrap.wrap(
                commands[name], _WIDTH, initial_indent=f"  {name}".ljust(_INDENT), subsequent_indent=" " * _INDENT
            )
    lines += ["", "relvm help COMMAND describes a command and its options."]
    lines += ["relvm --version prints the version.  In Python: import relvm; help(relvm)", ""]
    return "\n".join(lines)


def print_help(options: argparse.Namespace) -> int:
    """Print the overview, or the help of the command that the user names."""
    parser = options.root if options.topic is None else options.parsers[options.topic]
    put(parser.format_help(), end="")
    return 0
