"""Run a module in every mode and target, and compare the results."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from support.aot_export import results_ahead
from support.routine_forms import first_of_each_form

from relvm import vm
from relvm.compiler.build import assemble, lower, native_functions
from relvm.compiler.target import parse_target
from relvm.ir.expr import Module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types
from relvm.lir.routine import LirModule
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.debug_hook import MAX_DEPTH
from relvm.runtime.executable import Executable
from relvm.runtime.packed_func import register_func
from relvm.runtime.virtual_machine import VirtualMachine

MODES = ("bytecode", "compiled")  # the modes in which most tests run
ALL_MODES = (*MODES, "auto")  # for random programs, which "auto" can switch from bytecode to native code at any point
TARGETS = ("c", "bytecode", "numpy")
# Native functions call all kernels that are not C in the same way, so ("compiled", "bytecode") also covers "numpy".
WAYS = [(mode, target) for target in TARGETS for mode in MODES if (mode, target) != ("compiled", "numpy")]
C_WAYS = [(mode, "c") for mode in MODES]
FEWER_WAYS = [*C_WAYS, ("bytecode", "numpy")]  # for modules of hundreds of functions

# Whether the functions below compile C.  The fast stage sets this to False: then the mode "bytecode" replaces
# "compiled" and "auto", and the target "bytecode" replaces "c".
COMPILES = True
# Whether all programs are compiled that tests build together.  The full stage sets this to False.
COMPILES_ALL = True


def machines(module: Module, ways: Iterable[tuple[str, str]] = WAYS) -> dict[tuple[str, str], VirtualMachine]:
    """Build a machine for each mode and target, verifying the module after every pass."""
    build = Builds(module)
    return {(mode, target): VirtualMachine(build(mode, target)) for mode, target in ways}


def machines_of_forms(
    module: Module, ways: Iterable[tuple[str, str]] = WAYS, *, verified: bool = True
) -> dict[tuple[str, str], VirtualMachine]:
    """Build a machine for each mode and target of a module that has hundreds of functions.

    In modes other than bytecode, only the first function of each form (tests/support/routine_forms.py) is compiled to
    native code; the others remain bytecode.  For each target, `ways` must have the mode "bytecode" before other modes.
    """
    build = Builds(module, verified=verified)
    made: dict[tuple[str, str], VirtualMachine] = {}
    for mode, target in ways:
        chosen: str | dict[str, str] = mode
        if mode != "bytecode":
            chosen = dict.fromkeys(first_of_each_form(made["bytecode", target].executable), mode)
        made[mode, target] = VirtualMachine(build(chosen, target))
    return made


class Builds:
    """Builds a module in several modes, as `vm.build` does, but runs the passes only once for each target."""

    def __init__(self, module: Module, *, verified: bool = True) -> None:
        self.module = module
        self.verified = verified
        self.lowered: dict[str, LirModule] = {}

    def __call__(self, exec_mode: str | Mapping[str, str], target: str) -> Executable:
        if not COMPILES:
            exec_mode, target = "bytecode", "bytecode" if target == "c" else target
        if exec_mode == "auto":
            executable = vm.build(self.module, exec_mode, target, verified=self.verified)
            if executable.upgrade:  # there are functions to compile
                executable.upgrade.begin()  # runs of the test are too short to begin it
            return executable
        if target not in self.lowered:
            self.lowered[target] = lower(run_passes(self.module, build_pipeline(target), verified=self.verified))
        lir = self.lowered[target]
        program = assemble(lir, native_functions(lir, exec_mode), target=parse_target(target))
        return Executable.from_program(program, elsewhere=True)


def stepped(executable: Executable) -> VirtualMachine:
    """Return a machine with a debugger that stops before every bytecode instruction and resumes the run."""
    machine = VirtualMachine(executable)
    machine.attach_debugger(lambda failed: None).stop_within(MAX_DEPTH)
    return machine


def run_everywhere(
    module: Module,
    *args: Any,
    name: str = "main",
    packed: Mapping[str, Callable] | None = None,
    tolerance: float = 1e-5,
) -> Any:
    """Return the result of the reference interpreter, after checking that every mode and target has the same result.

    Results must be bit-identical for all modes of a target, for kernel bytecode and native kernels, and for an export
    (tests/support/aot_export.py) and the mode "compiled".  Floats may differ from the reference by `tolerance`,
    relative to the largest value.
    """
    for packed_name, function in (packed or {}).items():
        register_func(packed_name, lambda *a, function=function: function(*map(plain, a)), override=True)
    expected = evaluate(infer_types(module), name, *args, packed=packed)
    made = machines(module)
    results = {way: plain(machine[name](*args)) for way, machine in made.items()}
    slowly = stepped(made["bytecode", "c"].executable)
    assert_same_bits(plain(slowly[name](*args)), results["bytecode", "c"])
    for (_, target), result in results.items():
        assert_same_bits(result, results[MODES[0], target])
        assert_close(result, expected, tolerance)
    assert_same_numbers(results["bytecode", "bytecode"], results["bytecode", "c"])
    for result in results_ahead(module, name, args) if COMPILES else ():
        assert_same_bits(result, results["compiled", "c"])
    return expected


def run_script_everywhere(function: Any, *args: Any) -> None:
    """Check that a script returns the same result in every mode and target as in Python."""
    expected = function.python(*args)
    assert run_everywhere(function.module, *args, name=function.name) == expected


def plain(value: Any) -> Any:
    """Convert a machine's value to the reference interpreter's form: arrays, numbers, tuples, lists."""
    if isinstance(value, vm.Tensor):
        return np.array(value.numpy())
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list):
        return list(map(plain, value))
    return value


def assert_same_bits(a: Any, b: Any, place: str = "") -> None:
    """Check that two values are equal bit for bit, including the signs of zeros.  All scalar NaNs are equal."""
    assert type(a) is type(b), f"{place}: {a!r} and {b!r}"
    if isinstance(a, tuple | list):
        assert len(a) == len(b), f"{place}: {a!r} and {b!r}"
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same_bits(x, y, f"{place}.{i}")
    elif isinstance(a, np.ndarray):
        bits = [each.tolist() if each.dtype == object else each.tobytes() for each in (a, b)]
        assert (a.dtype, a.shape, bits[0]) == (b.dtype, b.shape, bits[1]), f"{place}: {a!r} and {b!r}"
    elif isinstance(a, float):
        assert struct.pack("d", a) == struct.pack("d", b) or (a != a and b != b), f"{place}: {a!r} and {b!r}"
    else:
        assert a == b, f"{place}: {a!r} and {b!r}"


def assert_same_numbers(a: Any, b: Any) -> None:
    """Check that two values are equal bit for bit, except for the bits of NaNs.

    Kernel bytecode and native kernels agree to this extent.
    """
    assert_same_bits(_with_one_nan(a), _with_one_nan(b))


def _with_one_nan(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_with_one_nan, value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.where(np.isnan(value), value.dtype.type(np.nan), value)
    return value


def assert_close(got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple | list):
        assert type(got) is type(expected) and len(got) == len(expected)
        for x, y in zip(got, expected, strict=True):
            assert_close(x, y, tolerance)
    elif isinstance(expected, np.ndarray | np.generic):
        expected = np.asarray(expected)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(got, expected)
            return
        finite = np.abs(expected[np.isfinite(expected)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)
    else:
        assert type(got) is type(expected) and got == expected
