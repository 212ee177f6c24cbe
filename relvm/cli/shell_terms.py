"""Messages in the terms of the shell: `--dim n=4` where Python code would say `dims={"n": 4}`."""

from __future__ import annotations

import re

_SWITCHES = {
    "debug=True": "--debug",
    "fused=False": "--unfused",
    "trust_native=True": "--trust-native",
}
_VALUES = ("exec_mode", "function", "target")  # options that have the names of parameters, with hyphens
_EITHER = re.compile(r"\b\w+=(?:True|False|\"[^\"]*\") or (?=relvm )")  # the message names a command, too
_SWITCH = re.compile(r"\b(?:" + "|".join(_SWITCHES) + r")(?!\w)")
_CALL = re.compile(r"\b[a-z_.]+\(\.\.\., ((?:" + "|".join(_SWITCHES) + r"))\)")
_VALUE = re.compile(rf"\b({'|'.join(_VALUES)})=(\"[^\"]*\"|'[^']*')")
_DIMS = re.compile(r"\bdims=\{([^{}]*)\}")
_DIM = re.compile(r"[\"']([^\"']*)[\"']: ?([^,]+)")
_PARAMETER = re.compile(rf"^(dims|modes|tolerance|{'|'.join(_VALUES)}): ")


def in_shell_terms(message: str) -> str:
    """Return a message with options of the command `relvm` in place of arguments of Python functions.

    For example, `target="bytecode"` becomes `--target bytecode`.
    """
    message = _EITHER.sub("", message)
    message = _CALL.sub(r"\1", message)
    message = _SWITCH.sub(lambda found: _SWITCHES[found[0]], message)
    message = _VALUE.sub(lambda found: f"{_option(found[1])} {_quoted(found[2][1:-1])}", message)
    message = _DIMS.sub(
        lambda found: " ".join(f"--dim {name}={size}" for name, size in _DIM.findall(found[1])), message
    )
    return _PARAMETER.sub(lambda found: f"{_option(found[1])}: ", message)


def _option(parameter: str) -> str:
    return "--dim" if parameter == "dims" else f"--{parameter.replace('_', '-')}"


def _quoted(value: str) -> str:
    """Return a value as one writes it in a shell.  `value` may contain spaces, as in `c -march=native`."""
    return f"'{value}'" if " " in value else value
