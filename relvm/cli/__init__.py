"""The command line."""

from relvm.cli.main import main

__all__ = ["main"]
