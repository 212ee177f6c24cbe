"""relvm: a functional IR for tensor programs, compiled to register bytecode or to native code, run by a small C
runtime."""

from __future__ import annotations

__version__ = "0.1.0"


def __getattr__(name: str):
    # Imported at first use: a program that only loads an executable never imports the compiler.
    if name == "script":
        from relvm.frontend.script import script

        return script
    raise AttributeError(f"module {__name__} has no attribute {name}")
