"""What `--input`, `--random` and `--seed` say of a function's arguments."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from relvm.cli.models import parse_dims
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmUnsupportedError, near_matches
from relvm.vm.runtime import Executable
from relvm.vm.runtime.arrays import from_file, reading_arrays
from relvm.vm.runtime.program import scalar_kind, stated_signature

# How the values of scalar types are read.
_SCALARS = {"bool": {"true": True, "false": False}.__getitem__, "i64": int, "f64": float}


def signature_of(executable: Executable, function: str) -> dict[str, Any]:
    """What an executable says of a function's parameters.

    Raises
    ------
    RelvmUnsupportedError
        It says nothing, as where ExecBuilder made it.
    RelvmFormatError
        What it says is malformed.
    """
    stated = stated_signature(executable.signature, function)
    if stated is None:
        raise RelvmUnsupportedError(f"{function}: the executable does not say what its inputs are; call it from Python")
    return stated


def input_values(options: argparse.Namespace, signature: dict[str, Any]) -> list[np.ndarray]:
    """The arguments.  signature: the function's, of an executable.

    Raises
    ------
    RelvmArgumentError
        An input is missing, not known or given twice, or cannot be made at random.
    RelvmFormatError
        A file is no .npy file.
    """
    if options.seed < 0:
        raise RelvmArgumentError(f"--seed {options.seed}: expected at least 0")
    params = signature["params"]
    names = list(signature["attributes"].get("input_names", [param["name"] for param in params]))
    if not options.random:
        return _read_inputs(options.input, names, params)
    given = parse_dims(options.dim).items()
    sizes = {name: max(size) if isinstance(size, tuple) else size for name, size in given}
    return random_inputs(params, names, sizes, options.seed)


def _read_inputs(settings: list[str], names: list[str], params: list[dict]) -> list[np.ndarray]:
    given = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals:
            raise RelvmArgumentError(f"--input {setting}: expected NAME=FILE.npy, or NAME=NUMBER for a scalar")
        if name not in names:
            raise RelvmArgumentError(f"--input {name}: the inputs are {', '.join(names)}{near_matches(name, names)}")
        if name in given:
            raise RelvmArgumentError(f"--input {name} is given twice")
        type_text = params[names.index(name)]["type"]
        kind = scalar_kind(type_text)
        given[name] = _scalar(setting, kind, file) if kind else from_file(_array(file), type_text)
    missing = [f"{n} ({p['type']})" for n, p in zip(names, params, strict=True) if n not in given]
    if missing:
        raise RelvmArgumentError(f"no --input for {', '.join(missing)}; or give --random")
    return [given[name] for name in names]


def _array(file: str) -> np.ndarray:
    with reading_arrays(f"{file} is not a .npy file"):
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.ndarray):
            with found:
                raise RelvmFormatError(
                    f"{file} is not a .npy file but an archive of {', '.join(found.files) or 'none'}"
                )
        return found


def _scalar(setting: str, kind: str, text: str) -> bool | int | float:
    try:
        return _SCALARS[kind](text)
    except (KeyError, ValueError):
        expected = "true or false" if kind == "bool" else f"a number of type {kind}"
        raise RelvmArgumentError(f"--input {setting}: expected {expected}") from None


def random_inputs(params: list[dict], names: list[str], sizes: dict[str, int], seed: int) -> list[Any]:
    """An array for each tensor parameter: floats from the normal distribution, integers in [0, 2), symbolic sizes 1.

    Raises
    ------
    RelvmArgumentError
        A parameter that is no tensor of known rank.
    """
    from relvm.frontend.text import parse_type
    from relvm.ir.random_values import random_array

    rng = np.random.default_rng(seed)
    arrays = []
    for param, name in zip(params, names, strict=True):
        try:
            arrays.append(random_array(parse_type(param["type"]), sizes, rng))
        except RelvmArgumentError as error:
            raise RelvmArgumentError(f"--random: input {name}: {error}; give it with --input, or --dim") from None
    return arrays
