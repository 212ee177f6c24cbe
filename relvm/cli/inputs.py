"""Arguments of a function from the command-line options `--input`, `--random` and `--seed`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names, scalar_kind, signature_entry
from relvm.cli.models import reads_sizes
from relvm.cli.output import note
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmUnsupportedError,
    near_matches,
)
from relvm.frontend.dim_settings import parse_dims
from relvm.ir.dtypes import dtype_of
from relvm.ir.input_chooser import ChosenInputs, InputChooser
from relvm.runtime.array_files import restore_dtype, translate_numpy_errors
from relvm.runtime.file_io import open_file
from relvm.vm import Executable, VirtualMachine

# The functions that parse the values of scalar types.
_SCALARS: dict[str, Callable[[str], bool | int | float]] = {
    "bool": {"true": True, "false": False}.__getitem__,
    "i64": int,
    "f64": float,
}


def signature_of(executable: Executable, function: str) -> dict[str, Any]:
    """Return the signature of a function, as stored in an executable.

    Raises
    ------
    RelvmUnsupportedError
        The executable contains no signature, for example, because ExecBuilder created it.
    RelvmFormatError
        The signature is malformed.
    """
    declared = signature_entry(executable.signature, function)
    if declared is None:
        raise RelvmUnsupportedError(f"{function}: the executable does not describe its inputs; call it from Python")
    return declared


def runner(executable: Executable, function: str) -> Callable[[list[Any]], Any]:
    """Return a function that runs a function of an executable on a list of arguments."""
    machine = VirtualMachine(executable)
    return lambda values: machine[function](*values)


def input_values(options: argparse.Namespace, signature: dict[str, Any], run: Callable[[list[Any]], Any]) -> list[Any]:
    """Return the arguments of a function.  See `chosen_inputs`."""
    return chosen_inputs(options, signature, run).values


def chosen_inputs(
    options: argparse.Namespace,
    signature: dict[str, Any],
    run: Callable[[list[Any]], Any],
    generator: Callable[[int], Any] = np.random.default_rng,
) -> ChosenInputs:
    """Return the arguments of a function: the inputs from --input, and with --random, random values for the others.

    A symbolic size of a random input has the value that --dim states, or else the value in the inputs from --input.
    The other symbolic sizes are chosen: typical ones first, then common ones, until `run` raises no shape or index
    error (relvm/ir/input_chooser.py).  A note on standard error lists the chosen sizes, and the inputs whose random
    elements are typical for their names or types.

    Parameters
    ----------
    options
        The command-line options.
    signature
        The signature of the function in an executable.
    run
        A function that runs the compiled function on a list of arguments.
    generator
        A function that makes a generator of random numbers from the seed.

    Raises
    ------
    RelvmArgumentError
        An input is missing, unknown, given twice, or cannot be generated at random.  With --random, the error is also
        raised if --dim names a size that no input has (unless --dim set it when the model was read), or if none of the
        tried sizes works.
    RelvmFormatError
        A file is not a .npy file.
    """
    params = signature["params"]
    names = input_names(signature)
    given_values = _read_inputs(options.input, names, params)
    missing = [f"{n} ({p['type']})" for n, p in zip(names, params, strict=True) if n not in given_values]
    if missing and not options.random:
        raise RelvmArgumentError(f"missing inputs: {', '.join(missing)}; give them with --input, or use --random")
    if not options.random:
        return ChosenInputs([given_values[name] for name in names], {}, {})
    chooser = _random_inputs(options, names, params, given_values, generator)
    try:
        chosen = chooser.choose(run)
    except RelvmArgumentError as error:
        raise RelvmArgumentError(f"--random: {error}; use --dim NAME=SIZE or --input") from None
    _note_choice(chosen)
    return chosen


def _random_inputs(
    options: argparse.Namespace,
    names: list[str],
    params: list[dict],
    given_values: dict[str, Any],
    generator: Callable[[int], Any],
) -> InputChooser:
    """Return the chooser of the inputs that are not given.  Raise RelvmArgumentError for unknown names in --dim."""
    from relvm.frontend.text.parser import parse_type

    types = [parse_type(param["type"]) for param in params]
    sizes = {name: max(n) if isinstance(n, tuple) else n for name, n in parse_dims(options.dim).items()}
    set_sizes = {name: n for name, n in sizes.items() if n is not None}
    chooser = InputChooser(names, types, given_values, set_sizes, options.seed, generator=generator)
    unknown = [name for name, n in sizes.items() if n is not None and name not in chooser.symbols]
    if unknown and not reads_sizes(options.model):
        symbols = chooser.symbols
        known = f"expected one of {', '.join(symbols)}" if symbols else "no input has a symbolic size"
        raise RelvmArgumentError(f"--dim {unknown[0]}: {known}{near_matches(unknown[0], symbols)}")
    return chooser


def _note_choice(chosen: ChosenInputs) -> None:
    """Print a note about sizes and values that were chosen."""
    sizes = ", ".join(f"{name}={size}" for name, size in chosen.sizes.items())
    elements = ", ".join(f"{name}: {text}" for name, text in chosen.described.items())
    if sizes or elements:
        changed = " and ".join(option for option, is_used in (("--dim", sizes), ("--input", elements)) if is_used)
        note(f"--random: {'; '.join(filter(None, (sizes, elements)))} (change with {changed})")


def _read_inputs(settings: list[str], names: list[str], params: list[dict]) -> dict[str, Any]:
    """Read the inputs from the values of --input, and return them by their names in the model.

    settings: the values of --input.   names: the input names of the model.   params: the parameters in the signature.
    """
    given_values: dict[str, Any] = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals:
            raise RelvmArgumentError(f"--input {setting}: expected NAME=FILE.npy, or NAME=NUMBER for a scalar")
        if name not in names:
            raise RelvmArgumentError(f"--input {name}: expected one of {', '.join(names)}{near_matches(name, names)}")
        if name in given_values:
            raise RelvmArgumentError(f"--input {name} is given twice")
        type_text = params[names.index(name)]["type"]
        kind = scalar_kind(type_text)
        if kind:
            given_values[name] = _scalar(setting, kind, file)
        elif type_text.endswith("[]") and (number := _number(file)) is not None:
            given_values[name] = restore_dtype(
                _number_as_array(setting, number, type_text.removesuffix("[]")), type_text
            )
        else:
            given_values[name] = restore_dtype(_array(file), type_text)
    return given_values


def _number(text: str) -> bool | int | float | None:
    """Parse a number, `true` or `false`.  Return None for any other text."""
    for read in _SCALARS.values():
        with contextlib.suppress(KeyError, ValueError):
            return read(text)
    return None


def _number_as_array(setting: str, number: bool | int | float, type_text: str) -> np.ndarray:
    """Convert a number to an array of rank 0, with the dtype that `type_text` names.  setting: the option, for
    messages.

    Raises
    ------
    RelvmArgumentError
        The type is an integer type or bool that cannot represent the number, or the number is too large for a float.
    """
    dtype = dtype_of(type_text)
    with contextlib.suppress(OverflowError, ValueError):
        element = np.asarray(number, dtype.numpy)
        if dtype.is_float or dtype.is_string or int(element) == number:
            return element
    raise RelvmArgumentError(f"--input {setting}: expected a number of type {dtype.name}")


def _array(file: str) -> np.ndarray:
    with open_file(file) as opened, translate_numpy_errors(f"{file} is not a .npy file"):
        found = np.load(opened, allow_pickle=False)
        if not isinstance(found, np.ndarray):
            with found:
                raise RelvmFormatError(
                    f"expected a .npy file, but {file} is an archive of {', '.join(found.files) or 'no arrays'}"
                )
        return found


def _scalar(setting: str, kind: str, text: str) -> bool | int | float:
    try:
        return _SCALARS[kind](text)
    except (KeyError, ValueError):
        expected = "true or false" if kind == "bool" else f"a number of type {kind}"
        raise RelvmArgumentError(f"--input {setting}: expected {expected}") from None
