"""Kernels with constant operands."""

from __future__ import annotations

import numpy as np
import pytest

import relvm.ops as ops
from relvm import vm
from relvm.ir.builder import Builder
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import constant
from relvm.ir.symbolic import dim_var
from relvm.ir.types import TensorType


@pytest.mark.parametrize("exponent", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_constant_powers(dtype: str, exponent: int) -> None:
    """Squares and cubes become products.  Other powers call a function."""
    builder = Builder()
    type_ = TensorType(dtype_of(np.dtype(dtype)), (dim_var("n"),))
    with builder.function("main", [("x", type_)]) as (x,):
        builder.ret(builder.emit(ops.power(x, constant(np.array(exponent, dtype)))))
    executable = vm.build(builder.module(), "compiled")
    calls = "rvm_pow_" in executable.source or "rvm_power_" in executable.source
    assert calls == (exponent == 4)
    numbers = [0, 1, 2, 3, 7, 100] if dtype == "uint8" else [0, -1, 1, 2, -3, 7, 100]
    x = np.array(numbers, dtype)
    if x.dtype.kind == "f":
        x = np.concatenate((x, np.array([-0.0, np.inf, -np.inf, np.nan, 1e-30, 0.3], dtype)))
    with np.errstate(over="ignore"):
        wanted = np.power(x, np.array(exponent, dtype))
    got = vm.VirtualMachine(executable)["main"](x).numpy()
    np.testing.assert_allclose(got, wanted, rtol=4 * np.finfo(dtype).eps if x.dtype.kind == "f" else 0, atol=1e-45)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
