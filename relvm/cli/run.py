"""`relvm run`."""

from __future__ import annotations

import argparse
import statistics
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from relvm.cli.models import EXECUTABLES, build_model, note, parse_dims, read_module
from relvm.errors import RelvmArgumentError, RelvmFormatError, near_matches
from relvm.vm.runtime import Executable, Tensor, VirtualMachine, load


def run(options: argparse.Namespace) -> int:
    """Runs a function of a model on inputs from files, or random ones; prints or saves its outputs."""
    if options.repeat < 1:
        raise RelvmArgumentError(f"--repeat {options.repeat}: expected at least 1")
    if options.seed < 0:
        raise RelvmArgumentError(f"--seed {options.seed}: expected at least 0")
    if options.save_outputs and Path(options.save_outputs).suffix != ".npz":
        raise RelvmArgumentError(f"--save-outputs {options.save_outputs}: the file's name must end in .npz")
    executable = _executable(options)
    machine = VirtualMachine(executable)
    function = machine[options.function]
    signature = executable.signature[options.function]
    attributes = signature["attributes"]
    params = signature["params"]
    names = list(attributes.get("input_names", [param["name"] for param in params]))
    if options.random:
        given = parse_dims(options.dim).items()
        sizes = {name: max(size) if isinstance(size, tuple) else size for name, size in given}
        values = random_inputs(params, names, sizes, options.seed)
    else:
        values = _read_inputs(options.input, names, params)
    seconds = []
    for _ in range(options.repeat):
        started = time.perf_counter()
        result = function(*values)
        seconds.append(time.perf_counter() - started)
    outputs = named_outputs(result, attributes.get("output_names"))
    if options.save_outputs:
        save_arrays(options.save_outputs, outputs)
        note(f"wrote {', '.join(outputs)} to {options.save_outputs}")
    else:
        for name, value in outputs.items():
            print(_shown(name, value))
    if options.profile:
        print(machine.profile(options.function, *values))
    runs = f", median of {options.repeat} runs" if options.repeat > 1 else ""
    note(f"{statistics.median(seconds) * 1e3:.3f} ms{runs}")
    return 0


def save_arrays(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Writes a .npz file; unlike np.savez it takes any name."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _executable(options: argparse.Namespace) -> Executable:
    if Path(options.model).suffix in EXECUTABLES:
        if options.exec_mode or options.target != "auto" or options.unfused:
            building = "--exec-mode, --target and --unfused are for building"
            raise RelvmArgumentError(f"{building}; {options.model} is built already")
        return load(options.model, trust_native=options.trust_native)
    return build_model(read_module(options), options, options.exec_mode or "bytecode")


def _read_inputs(settings: list[str], names: list[str], params: list[dict]) -> list[np.ndarray]:
    given = {}
    for setting in settings:
        name, equals, file = setting.partition("=")
        if not equals:
            raise RelvmArgumentError(f"--input {setting}: expected NAME=FILE.npy")
        if name not in names:
            raise RelvmArgumentError(f"--input {name}: the inputs are {', '.join(names)}{near_matches(name, names)}")
        if name in given:
            raise RelvmArgumentError(f"--input {name} is given twice")
        try:
            given[name] = np.load(file, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise RelvmFormatError(f"{file} is not a .npy file: {error}") from None
    missing = [f"{n} ({p['type']})" for n, p in zip(names, params, strict=True) if n not in given]
    if missing:
        raise RelvmArgumentError(f"no --input for {', '.join(missing)}; or give --random")
    return [given[name] for name in names]


def random_inputs(params: list[dict], names: list[str], sizes: dict[str, int], seed: int) -> list[Any]:
    """An array for each tensor parameter: floats from the normal distribution, integers in [0, 2), symbolic sizes 1.

    Raises
    ------
    RelvmArgumentError
        A parameter that is no tensor of known rank.
    """
    from relvm.frontend.text import parse_type
    from relvm.ir.dims import evaluate_with
    from relvm.ir.types import TensorType

    rng = np.random.default_rng(seed)
    arrays = []
    for param, name in zip(params, names, strict=True):
        type_ = parse_type(param["type"])
        if not isinstance(type_, TensorType) or type_.dtype is None or type_.rank is None:
            raise RelvmArgumentError(f"--random: input {name} is of type {param['type']}; give it with --input")
        dims = type_.shape if type_.shape is not None else (1,) * type_.rank
        shape = [evaluate_with(dim, lambda var: sizes.get(var.name, 1)) for dim in dims]
        if any(not isinstance(size, int) or size < 0 for size in shape):
            raise RelvmArgumentError(f"--random: input {name} of type {param['type']} has no such sizes; give --dim")
        values = rng.standard_normal(shape) if type_.dtype.is_float else rng.integers(0, 2, shape)
        arrays.append(np.asarray(values).astype(type_.dtype.numpy))
    return arrays


def named_outputs(result: Any, names: list[str] | None) -> dict[str, np.ndarray]:
    """The result as arrays by name: the model's own names, or output, output0, output1..."""
    values = list(result) if isinstance(result, tuple) else [result]
    if names is None:
        names = ["output"] if not isinstance(result, tuple) else [f"output{i}" for i in range(len(values))]
    outputs = {name: _plain(name, value) for name, value in zip(names, values, strict=True)}
    if len(outputs) < len(values):
        raise RelvmArgumentError(f"two outputs have one name: {', '.join(names)}")
    return outputs


def _plain(name: str, value: Any) -> np.ndarray:
    if not isinstance(value, Tensor | bool | int | float):
        raise RelvmArgumentError(f"output {name} is a {type(value).__name__}; only tensors and numbers can be shown")
    return np.asarray(value)


def _shown(name: str, value: np.ndarray) -> str:
    text = np.array2string(value, threshold=40, edgeitems=3, precision=6)
    return f"{name}: {value.dtype}{list(value.shape)}\n{text}"
