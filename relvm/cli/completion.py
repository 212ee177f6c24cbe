"""`relvm completion`: completion of commands and options in shells."""

from __future__ import annotations

import argparse

from relvm.cli.arguments import Parser
from relvm.cli.output import put
from relvm.errors import RelvmUnsupportedError


def add_arguments(parser: Parser) -> None:
    parser.example = 'eval "$(relvm completion bash)"'
    parser.description = (
        'Print code for a shell. For bash: eval "$(relvm completion bash)". Completion needs the package argcomplete '
        "(pip install 'relvm[completion]')."
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> int:
    """Print the code that adds completion of `relvm` to a shell.

    Raises
    ------
    RelvmUnsupportedError
        argcomplete is not installed.
    """
    try:
        from argcomplete import shellcode
    except ImportError:
        raise RelvmUnsupportedError("completion requires argcomplete: pip install 'relvm[completion]'") from None
    put(shellcode(["relvm"], shell=options.shell), end="")
    return 0
