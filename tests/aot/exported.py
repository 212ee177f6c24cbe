"""Run exported programs: in this process, as a library called through ctypes, or with the Makefile of the export."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relvm import aot
from relvm.aot.lower.ir import ScalarVar
from relvm.aot.project.self_test import make_inputs
from relvm.compiler.find_compiler import expect_compiler
from relvm.compiler.target import host_options
from relvm.ir.dtypes import BOOL, F64, I64
from relvm.ir.symbolic import evaluate_with
from relvm.ir.types import PrimType, ShapeType, TensorType, TupleType, Type

FLAGS = "-std=c99 -Wall -Wextra -Werror -pedantic -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off"
SIMD = "-fopenmp-simd -DRVM_OPENMP_SIMD"
_SCALARS = {I64: ctypes.c_int64, F64: ctypes.c_double, BOOL: ctypes.c_int64}
_MARGIN, _UNTOUCHED = 256, 0xA5  # number of guard bytes on each side of an output, and their value
_KINDS = {I64: int, F64: float, BOOL: bool}


class Failed(Exception):
    """A run returned another status than RVM_OK."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def compile_programs(programs: Sequence[aot.AotProgram], folder: Path, *options: str) -> ctypes.CDLL:
    """Compile programs with different names to one library."""
    includes, units = [], []
    for program in programs:
        place = folder / program.config.name
        program.write(place)
        includes += [f"-I{place}/include", f"-I{place}/src"]
        units += sorted(place.glob("src/*.c"))
    host = host_options("x86_64")
    wide = ["-mprefer-vector-width=512"] if "-march=x86-64-v4" in host else []
    flags = [*FLAGS.split(), *SIMD.split(), "-O3", *host, *wide, *options, "-fPIC", *includes]
    _compile([*flags, "-c", *map(str, units)], folder)
    _compile(["-shared", *(f"{unit.stem}.o" for unit in units), "-lm", "-o", "library.so"], folder)
    return ctypes.CDLL(str(folder / "library.so"), mode=os.RTLD_NOW)


def _compile(arguments: list[str], folder: Path) -> None:
    command = [*expect_compiler().command, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make(folder: Path, *arguments: str) -> str:
    """Run make in the folder of an export, which must succeed, and return its output."""
    done = subprocess.run(["make", "-s", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_program(library: ctypes.CDLL, program: aot.AotProgram, *args: Any) -> Any:
    """Run a program of a library and return its result as the reference interpreter does: arrays, numbers, tuples.

    Check that the program does not write outside the output arrays.

    Raises
    ------
    Failed
        Its status was not RVM_OK.
    """
    given, sizes = make_inputs(program.entry, program.lowered, args)
    inputs, keep = {}, []
    for port in program.lowered.inputs:
        value = given[port.name]
        if isinstance(port.value, int):
            keep.append(np.ascontiguousarray(value) if np.size(value) else np.zeros(1, value.dtype))
            inputs[port.name] = (ctypes.c_void_p, keep[-1].ctypes.data)
        else:
            dtype = port.value.dtype if isinstance(port.value, ScalarVar) else I64
            inputs[port.name] = (_SCALARS[dtype], value)
    outputs, made, margins = {}, {}, []
    for port in program.lowered.outputs:
        if isinstance(port.value, ScalarVar):
            made[port.name] = _SCALARS[port.value.dtype]()
            outputs[port.name] = (ctypes.c_void_p, ctypes.addressof(made[port.name]))
        else:
            storage = program.lowered.functions[-1].storages[port.value]
            shape = tuple(evaluate_with(dim, sizes.get) for dim in storage.shape)
            keep.append(_memory(math.prod(shape) * storage.dtype.size_bytes))
            made[port.name] = keep[-1][_MARGIN:-_MARGIN].view(storage.dtype.numpy).reshape(shape)
            outputs[port.name] = (ctypes.c_void_p, keep[-1].ctypes.data + _MARGIN)
            margins.append((port.name, keep[-1]))
    run = getattr(library, f"{program.config.name}_run")
    status = run(ctypes.byref(_struct(inputs)), ctypes.byref(_struct(outputs)))
    for name, memory in margins:
        assert {*memory[:_MARGIN], *memory[-_MARGIN:]} == {_UNTOUCHED}, f"what is around output {name} was written"
    if status:
        raise Failed(status)
    flat = [
        _KINDS[port.value.dtype](made[port.name].value) if isinstance(port.value, ScalarVar) else made[port.name]
        for port in program.lowered.outputs
    ]
    return _shaped(program.entry.result_type, iter(flat))


def _memory(size_bytes: int) -> np.ndarray:
    """Return an array of `size_bytes` bytes with _MARGIN guard bytes on both sides."""
    return np.full(size_bytes + 2 * _MARGIN, _UNTOUCHED, np.uint8)


def _struct(fields: dict[str, tuple[Any, Any]]) -> ctypes.Structure:
    kind = type("Struct", (ctypes.Structure,), {"_fields_": [(name, ctype) for name, (ctype, _) in fields.items()]})
    return kind(*(value for _, value in fields.values()))


def _shaped(type_: Type, flat) -> Any:
    match type_:
        case TupleType(fields):
            return tuple(_shaped(field, flat) for field in fields)
        case TensorType() | PrimType():
            return next(flat)
        case ShapeType(rank=rank):
            return tuple(next(flat) for _ in range(rank))
    raise AssertionError(f"no result of type {type_}")
