"""Runs a module in every way there is and holds the results against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm import vm
from relvm.ir.expr import Module
from relvm.ir.infer import infer_types
from relvm.ir.reference import evaluate
from relvm.vm.runtime import VirtualMachine, register_func

WAYS = [(mode, target) for target in ("c", "numpy") for mode in ("bytecode", "compiled")]


def machines(module: Module) -> dict[tuple[str, str], VirtualMachine]:
    """A machine for each mode and target, the module verified after every pass."""
    return {(mode, target): VirtualMachine(vm.build(module, mode, target, verified=True)) for mode, target in WAYS}


def run_everywhere(
    module: Module,
    *args: Any,
    name: str = "main",
    packed: Mapping[str, Callable] | None = None,
    tolerance: float = 1e-5,
) -> Any:
    """What the reference gives, after checking that every mode and target gives it too.

    The two modes of one target must agree bit for bit; floats may be `tolerance` apart from the reference, relative to
    the largest value.
    """
    for packed_name, function in (packed or {}).items():
        register_func(packed_name, lambda *a, function=function: function(*map(plain, a)), override=True)
    expected = evaluate(infer_types(module), name, *args, packed=packed)
    results = {way: plain(machine[name](*args)) for way, machine in machines(module).items()}
    for target in ("c", "numpy"):
        assert_same_bits(results["bytecode", target], results["compiled", target])
        assert_close(results["bytecode", target], expected, tolerance)
    return expected


def plain(value: Any) -> Any:
    """A machine's value as the reference has it: arrays, numbers, tuples."""
    if isinstance(value, vm.Tensor):
        return np.array(value.numpy())
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


def assert_same_bits(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same_bits(x, y)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    else:
        assert a == b or (a != a and b != b)


def assert_close(got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple):
        assert isinstance(got, tuple) and len(got) == len(expected)
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
