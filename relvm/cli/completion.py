"""`relvm completion`: completion of commands and options in shells."""

from __future__ import annotations

import argparse

from argcomplete import shellcode

from relvm.cli.output import put


def print_completion(options: argparse.Namespace) -> int:
    """Print the code that adds completion of `relvm` to a shell."""
    put(shellcode(["relvm"], shell=options.shell), end="")
    return 0
