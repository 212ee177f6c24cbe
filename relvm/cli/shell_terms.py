"""Messages in the terms of the shell: `--dim n=4` where Python code would say `dims={"n": 4}`."""

from __future__ import annotations

import re
from collections.abc import Collection

_SWITCHES = {
    "debug=True": "--debug",
    "fused=False": "--unfused",
    "trust_native=True": "--trust-native",
}
_RENAMED = {"constants_limit_bytes": "constants_limit", "dims": "dim", "pools": "pool"}  # options with other names
_ALWAYS = ("exec_mode", "function", "target")
_QUOTES = ("'", '"')
_EITHER = re.compile(r"\b\w+=(?:True|False|\"[^\"]*\") or (?=relvm )")  # the message names a command, too
_AFTER_OPTION = re.compile(r"(--[\w-]+) \(\w+=\w+\)")
_SWITCH = re.compile(r"\b(?:" + "|".join(_SWITCHES) + r")(?!\w)")
_CALL = re.compile(r"\b[a-z_.]+\(\.\.\., ((?:" + "|".join(_SWITCHES) + r"))\)")
_VALUE = re.compile(r"\b([a-z_]+)=(\"[^\"]*\"|'[^']*'|\d+|True|False)(?![\w.])")
_NAME = re.compile(r"(?<![\w.-])[a-z]+(?:_[a-z]+)+(?![\w.=(])")
_DIMS = re.compile(r"\bdims=\{([^{}]*)\}")
_DIM = re.compile(r"[\"']([^\"']*)[\"']: ?([^,]+)")
_PARAMETER = re.compile(rf"^(dims|modes|pools|tolerance|{'|'.join(_ALWAYS)}): ")


def in_shell_terms(message: str, options: Collection[str]) -> str:
    """Return an error message reworded for the shell: arguments of Python functions become options of the command
    `relvm`.

    For example, `target="bytecode"` becomes `--target bytecode`, and `max_steps` becomes `--max-steps`.

    Parameters
    ----------
    message
        The message of an error.
    options
        The options of the command that was run, by their names in the namespace of argparse: "max_steps" for
        --max-steps.
    """

    def of_value(found: re.Match[str]) -> str:
        name, value = _RENAMED.get(found[1], found[1]), found[2]
        if name not in options and name not in _ALWAYS:
            return found[0]
        match value:
            case "True":
                return _option(name)
            case "False":
                return f"no {_option(name)}"
        return f"{_option(name)} {_shell_quoted(value.strip(value[0]) if value[0] in _QUOTES else value)}"

    message = _EITHER.sub("", message)
    message = _AFTER_OPTION.sub(r"\1", message)
    message = _CALL.sub(r"\1", message)
    message = _SWITCH.sub(lambda found: _SWITCHES[found[0]], message)
    message = _VALUE.sub(of_value, message)
    message = _DIMS.sub(
        lambda found: " ".join(f"--dim {name}={size}" for name, size in _DIM.findall(found[1])), message
    )
    message = _PARAMETER.sub(lambda found: f"{_option(_RENAMED.get(found[1], found[1]))}: ", message)
    return _NAME.sub(lambda found: _option(found[0]) if found[0] in options else found[0], message)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _shell_quoted(value: str) -> str:
    """Return a value as one writes it in a shell.  `value` may contain spaces, as in `c -march=native`."""
    return f"'{value}'" if " " in value or not value else value
