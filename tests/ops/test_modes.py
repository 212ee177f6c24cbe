"""Run every operator sample in complete programs: in the reference interpreter, both modes and all kernel targets."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from harness import Call, Kernels, Library, function_of
from ops.samples import SAMPLES, Sample
from support.modes import WAYS, assert_same_bits, assert_same_numbers, machines_of_forms, plain
from test_operators import (
    assert_gives_what_numpy_gives,
    assert_result,
    static_type,
    symbolic_types,
)

from relvm import vm
from relvm.bytecode.program import Program, callees
from relvm.errors import RelvmError, RelvmTimeoutError
from relvm.ir.expr import Expr, KernelCall, Module
from relvm.ir.operator import find_operator
from relvm.ir.symbolic import evaluate_with
from relvm.ir.types import ShapeType, Type

GOOD = [sample for sample in SAMPLES if not sample.fails]
SYMBOLIC = [i for i, sample in enumerate(GOOD) if sample.keep is not None]


@cache
def calls() -> list[Call]:
    """Return the calls of all samples that succeed, with symbolic sizes where possible."""
    types = [
        tuple(map(static_type, sample.args)) if sample.keep is None else symbolic_types(sample)[0] for sample in GOOD
    ]
    return [Call(find_operator(sample.op), of, sample.attributes) for sample, of in zip(GOOD, types, strict=True)]


@cache
def machines() -> dict[tuple[str, str], vm.VirtualMachine]:
    """Return a machine for each execution mode and target, with one function for each sample."""
    module = Module(tuple(function_of(f"f{i}", call) for i, call in enumerate(calls())))
    return machines_of_forms(module, [*WAYS[:3], WAYS[-1]], verified=False)


@cache
def symbolic_kernels() -> dict[int, tuple[Expr, Library | None]]:
    """Return, for each sample with symbolic sizes, the expression to which it is lowered and the library of its kernel.

    The library is that of the machine.  If the passes after lower_to_kernels remove the kernel, the library is built
    from the result of lower_to_kernels.  It is None if the sample is not lowered to a kernel.
    """
    program = machines()["bytecode", "c"].executable.program
    legal = Kernels([calls()[i] for i in SYMBOLIC])
    runs = {i: legal.what_runs(number) for number, i in enumerate(SYMBOLIC)}
    called = {i: kernels_of(program, f"f{i}") for i, what in runs.items() if isinstance(what, KernelCall)}
    without = [i for i, kernels in called.items() if not kernels]
    alone = Kernels([calls()[i] for i in without])
    library = Library(program.native.library, [entry.name for entry in program.functions if entry.kind == "kernel"])
    found: dict[int, tuple[Expr, Library | None]] = {i: (what, None) for i, what in runs.items()}
    for i, kernels in called.items():
        if kernels:
            (kernel,) = kernels
            found[i] = (replace(runs[i], kernel=kernel), library)
        else:
            found[i] = (alone.what_runs(without.index(i)), alone.library)
    return found


def kernels_of(program: Program, name: str) -> list[str]:
    """Return the names of the kernels that a bytecode function calls."""
    (code,) = (entry.code for entry in program.functions if entry.name == name)
    called = (program.functions[place] for instruction in code for place in callees(instruction))
    return [entry.name for entry in called if entry.kind == "kernel"]


@pytest.mark.parametrize("index", SYMBOLIC, ids=lambda i: str(GOOD[i]))
def test_kernel_of_symbolic_sizes_gives_what_numpy_gives(index: int) -> None:
    runs, library = symbolic_kernels()[index]
    assert_gives_what_numpy_gives(GOOD[index], runs, library, symbolic_types(GOOD[index])[1])


@pytest.mark.parametrize("index", range(len(GOOD)), ids=lambda i: str(GOOD[i]))
def test_operator_in_every_mode(index: int) -> None:
    sample = GOOD[index]
    args = [vm.Shape(arg) if isinstance(arg, tuple) else arg for arg in sample.args]
    results = {way: plain(machine[f"f{index}"](*args)) for way, machine in machines().items()}
    assert_same_bits(results["bytecode", "c"], results["compiled", "c"])
    assert_same_numbers(results["bytecode", "bytecode"], results["bytecode", "c"])
    for target in ("c", "numpy"):
        assert_result(sample, results["bytecode", target])


def _bools_of(sample: Sample) -> list[np.ndarray]:
    return [arg for arg in sample.args if isinstance(arg, np.ndarray) and arg.dtype == np.bool_]


# For each operator that takes bools, the sample with the most true elements.
BOOL_SAMPLES = {
    sample.op: i
    for i, sample in sorted(enumerate(GOOD), key=lambda item: sum(map(np.count_nonzero, _bools_of(item[1]))))
    if any(np.any(array) for array in _bools_of(sample))
}


def _with_bytes(array: np.ndarray, first: int) -> np.ndarray:
    """Return a bool array whose true elements are the bytes first + 1, first + 2, ..., modulo 255."""
    elements = np.zeros(array.shape, np.uint8)
    elements[array] = (np.arange(np.count_nonzero(array)) + first) % 255 + 1
    return elements.view(np.bool_)


@pytest.mark.parametrize("op", sorted(BOOL_SAMPLES))
def test_any_byte_of_a_bool_is_true(op: str) -> None:
    """NumPy does not check the bytes of a bool array, for example when it loads an .npy file."""
    sample, name = GOOD[BOOL_SAMPLES[op]], f"f{BOOL_SAMPLES[op]}"
    count = max(np.count_nonzero(array) for array in _bools_of(sample))
    for machine in machines().values():
        args = [vm.Shape(arg) if isinstance(arg, tuple) else arg for arg in sample.args]
        expected = plain(machine[name](*args))
        for first in range(0, 255, count):
            given = [_with_bytes(arg, first) if any(arg is b for b in _bools_of(sample)) else arg for arg in args]
            assert_same_bits(plain(machine[name](*given)), expected)


def test_the_operators_of_bools_are_tested() -> None:
    taking = {s.op for s in GOOD if _bools_of(s)}
    assert taking == set(BOOL_SAMPLES) and {"nonzero", "where", "logical_and", "all"} & taking


@cache
def limited_machine() -> vm.VirtualMachine:
    """Return a machine in which a run of kernel bytecode ends after 5 million steps."""
    executable = machines()["bytecode", "bytecode"].executable
    return vm.VirtualMachine(executable, max_steps=5_000_000, max_bytes=10_000_000)


def _with_sizes(sample: Sample, types: tuple[Type, ...], sizes: dict) -> list | None:
    """Return arguments of a sample with other sizes, or None if an argument would have too many elements."""
    args: list = []
    for arg, type_ in zip(sample.args, types, strict=True):
        dims = type_.dims if isinstance(type_, ShapeType) else type_.shape
        shape = tuple(evaluate_with(dim, sizes.get) for dim in dims)
        if isinstance(type_, ShapeType):
            args.append(vm.Shape(shape))
        elif math.prod(filter(None, shape)) > 1 << 59:  # NumPy has no such array, even without elements
            return None
        elif math.prod(shape) < 10_000:
            args.append(np.zeros(shape, arg.dtype))
        else:
            return None
    return args


@pytest.mark.parametrize("index", SYMBOLIC, ids=lambda i: str(GOOD[i]))
def test_no_loop_without_elements_is_long(index: int) -> None:
    """For each dimension of size 0 and each dimension of size 2^26, the run ends soon: with a result or an error."""
    sample = GOOD[index]
    types, sizes = symbolic_types(sample)
    for empty, large in itertools.permutations(sizes, 2):
        for others in (False, True):
            changed = dict.fromkeys(sizes, 0) if others else dict(sizes)
            args = _with_sizes(sample, types, {**changed, empty: 0, large: 1 << 26})
            if args is None:
                continue
            try:
                limited_machine()[f"f{index}"](*args)
            except RelvmTimeoutError:
                raise
            except RelvmError:
                continue
