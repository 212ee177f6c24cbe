"""Arguments of a function from the command-line options `--input`, `--random` and `--seed`."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names, scalar_kind, signature_entry
from relvm.cli.output import note
from relvm.cli.typical_inputs import typical_array, typical_sizes
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmIndexError,
    RelvmShapeError,
    RelvmUnsupportedError,
    near_matches,
)
from relvm.frontend.dim_settings import parse_dims
from relvm.ir.dtypes import dtype_of
from relvm.ir.random_inputs import random_array
from relvm.ir.symbolic import as_var, evaluate_with, known_size
from relvm.ir.types import TensorType, type_vars
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
    """Return the arguments of a function: the inputs from --input, and with --random, random values for the others.

    A symbolic size of a random input has the value that --dim states, or else the value in the inputs from --input.
    The other symbolic sizes are chosen: typical ones first (relvm/cli/typical_inputs.py), then common ones, until `run`
    raises no shape or index error.  A note on standard error lists them, and values that are not the usual ones.

    Parameters
    ----------
    options
        The command-line options.
    signature
        The signature of the function in an executable.
    run
        A function that runs the compiled function on a list of arguments.

    Raises
    ------
    RelvmArgumentError
        An input is missing, unknown, given twice, or cannot be generated at random.  With --random, the error is also
        raised if --dim names a size that no input has (unless the model is an .onnx file), or if none of the tried
        sizes works.
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
        return [given_values[name] for name in names]
    return _RandomInputs(options, names, params, given_values).values(run)


class _RandomInputs:
    """Generator of random values for the inputs that are not given."""

    def __init__(
        self, options: argparse.Namespace, names: list[str], params: list[dict], given_values: dict[str, Any]
    ) -> None:
        from relvm.frontend.text.parser import parse_type

        self.names, self.given_values, self.seed = names, given_values, options.seed
        self.types = [parse_type(param["type"]) for param in params]
        symbols = list(dict.fromkeys(var.name for type_ in self.types for var in type_vars(type_)))
        sizes = {name: max(n) if isinstance(n, tuple) else n for name, n in parse_dims(options.dim).items()}
        self.sizes = {name: n for name, n in sizes.items() if n is not None}
        unknown = [name for name in self.sizes if name not in symbols]
        if unknown and not options.model.endswith(".onnx"):  # an ONNX model may have used --dim when it was read
            known = f"expected one of {', '.join(symbols)}" if symbols else "no input has a symbolic size"
            raise RelvmArgumentError(f"--dim {unknown[0]}: {known}{near_matches(unknown[0], symbols)}")
        for name, type_ in zip(names, self.types, strict=True):
            if name in given_values and isinstance(type_, TensorType):
                for dim, size in zip(type_.shape or (), np.shape(given_values[name]), strict=False):
                    if (var := as_var(dim)) is not None:
                        self.sizes.setdefault(var.name, size)
        self.free = [symbol for symbol in symbols if symbol not in self.sizes]

    def values(self, run: Callable[[list[Any]], Any]) -> list[Any]:
        failed = None
        tried: list[tuple[dict[str, int], bool]] = []
        for candidate in self.candidates():
            if candidate in tried:
                continue
            tried.append(candidate)
            sizes, is_typical = candidate
            if failed and self.element_count(self.sizes | sizes) > _MAX_ELEMENTS:
                continue
            values, described = self.draw(self.sizes | sizes, is_typical)
            try:
                if self.free or described:
                    run(values)
            except (RelvmShapeError, RelvmIndexError) as error:
                failed = failed or error
                continue
            if sizes or described:
                chosen = ", ".join(f"{name}={size}" for name, size in sizes.items())
                elements = ", ".join(f"{name}: {text}" for name, text in described.items())
                changed = " and ".join(
                    option for option, is_used in (("--dim", sizes), ("--input", described)) if is_used
                )
                note(f"--random: {'; '.join(filter(None, (chosen, elements)))} (change with {changed})")
            return values
        message = f"--random: found no working sizes for {', '.join(self.free)}; set them with --dim NAME=SIZE"
        raise RelvmArgumentError(f"{message}.  First: {failed}") from failed

    def candidates(self) -> Iterator[tuple[dict[str, int], bool]]:
        """Yield candidates for the sizes that neither the inputs nor --dim determine, and whether values are typical.

        The first candidate has typical sizes, and 1 for others, with typical values.  It follows with the usual values,
        and 1 for all sizes.  For each usual size, such as 32, two candidates follow: 1 for batch sizes and 32 for the
        others, then 32 for all.  Batch sizes are those with a name like `batch` or `n`.  If no size has such a name,
        the first size counts as a batch size.
        """
        typical = {name: size for name, size in typical_sizes(self.names, self.types).items() if name in self.free}
        for is_typical in (True, False):
            yield dict.fromkeys(self.free, 1) | typical, is_typical
        yield dict.fromkeys(self.free, 1), False
        batches = [name for name in self.free if re.search("batch|^n$|^b$", name.lower())] or self.free[:1]
        for size in _USUAL_SIZES:
            yield dict.fromkeys(self.free, size) | dict.fromkeys(batches, 1), False
            yield dict.fromkeys(self.free, size), False

    def element_count(self, sizes: dict[str, int]) -> int:
        """Return the total number of elements of all inputs for the given sizes."""
        dims = [type_.shape or () for type_ in self.types if isinstance(type_, TensorType)]
        return sum(
            math.prod(known_size(evaluate_with(dim, lambda var: sizes[var.name])) for dim in shape) for shape in dims
        )

    def draw(self, sizes: dict[str, int], is_typical: bool) -> tuple[list[Any], dict[str, str]]:
        """Return a value for each input, and descriptions of those that are typical but not usual, by name."""
        rng = np.random.default_rng(self.seed)
        values: list[Any] = []
        described: dict[str, str] = {}
        for name, type_ in zip(self.names, self.types, strict=True):
            if name in self.given_values:
                values.append(self.given_values[name])
                continue
            try:
                typical, text = typical_array(name, type_, sizes, rng) if is_typical else (None, "")
                values.append(random_array(type_, sizes, rng) if typical is None else typical)
            except RelvmArgumentError as error:
                raise RelvmArgumentError(f"--random: input {name}: {error}; use --input or --dim") from None
            if text:
                described[name] = text
        return values, described


_MAX_ELEMENTS = 1 << 23  # limit on the total elements of the inputs when sizes are chosen
_USUAL_SIZES = (2, 4, 8, 16, 32, 64, 128, 224, 256, 320, 512, 1024, 4096, 16000)


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
