"""Every sample of every operator through the whole system: reference = bytecode = compiled, on both targets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from harness import Call, function_of
from modes import WAYS, assert_same_bits, plain
from ops.samples import SAMPLES
from test_operators import assert_same, numpy_result, outputs_of, static_result, static_type, symbolic_types

from relvm import vm
from relvm.ir.expr import Module
from relvm.ir.operator import find_operator
from relvm.ir.types import ListType, PrimType, TensorType, TupleType

GOOD = [sample for sample in SAMPLES if not sample.fails]


@cache
def machines() -> dict[tuple[str, str], vm.VirtualMachine]:
    """One machine for each way, over a module with a function for each sample, its sizes symbolic where they can be."""
    functions = []
    for i, sample in enumerate(GOOD):
        types = tuple(map(static_type, sample.args)) if sample.keep is None else symbolic_types(sample)[0]
        functions.append(function_of(f"f{i}", Call(find_operator(sample.op), types, sample.attributes)))
    module = Module(tuple(functions))
    return {(mode, target): vm.VirtualMachine(vm.build(module, mode, target)) for mode, target in WAYS}


@pytest.mark.parametrize("index", range(len(GOOD)), ids=lambda i: str(GOOD[i]))
def test_operator_in_every_mode(index: int) -> None:
    sample = GOOD[index]
    args = [vm.Shape(arg) if isinstance(arg, tuple) else arg for arg in sample.args]
    results = {way: plain(machine[f"f{index}"](*args)) for way, machine in machines().items()}
    expected, type_ = numpy_result(sample), static_result(sample)
    for target in ("c", "numpy"):
        assert_same_bits(results["bytecode", target], results["compiled", target])
        if isinstance(type_, ListType):
            for part, wanted in zip(results["bytecode", target], expected, strict=True):
                assert_same(part, np.asarray(wanted))
        elif isinstance(type_, TensorType | TupleType):
            got = results["bytecode", target]
            for part, (_, wanted) in zip(
                got if isinstance(got, tuple) else (got,), outputs_of(sample, expected), strict=True
            ):
                assert_same(part, wanted)
        elif isinstance(type_, PrimType):
            assert_same_bits(results["bytecode", target], expected)
        else:
            assert tuple(results["bytecode", target]) == expected
