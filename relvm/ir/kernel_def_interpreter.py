"""Reference interpreter of kernel definitions.  It computes with NumPy scalars and runs every loop in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm.errors import RelvmIndexError
from relvm.ir import loop_ir as ir
from relvm.ir.dtypes import I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.operator import find_operator
from relvm.ir.scalar_ops import PYTHON_FUNCTIONS
from relvm.ir.symbolic import DimVar, evaluate_with


def _multiply_add(x: np.float32, y: np.float32, z: np.float32) -> np.float32:
    """Return x * y + z, rounded once.

    The product is exact in f64.  The sum is computed in f64 and rounded to odd.  Rounding it to f32 then gives the
    correctly rounded result.  Source: Boldo and Melquiond, Emulation of FMA and Correctly Rounded Sums, 2008.
    """
    product, added = np.float64(x) * np.float64(y), np.float64(z)
    total = product + added
    back = total - product
    error = (product - (total - back)) + (added - back)
    if np.isfinite(total) and error != 0 and total.view(np.int64) % 2 == 0:
        total = np.nextafter(total, np.copysign(np.inf, error))
    return np.float32(total)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **PYTHON_FUNCTIONS,
    "div": lambda x, y: x / y if isinstance(x, np.floating) else (x - np.fmod(x, y)) // y,
    "rem": np.fmod,
    "abs": np.abs,
    "copysign": np.copysign,
    "fmod": np.fmod,
    "trunc": np.trunc,
    "min": lambda x, y: x if x < y else y,
    "max": lambda x, y: x if x > y else y,
    "fma": _multiply_add,
}


def evaluate_kernel(
    kernel: KernelDef, sizes: Mapping[DimVar, int], inputs: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Run a kernel and return its outputs.

    Parameters
    ----------
    sizes
        The values of all dimension variables of the kernel.
    inputs
        An array for each input, which has the type of that input.

    Raises
    ------
    RelvmIndexError
        An index is outside its axis.
    """
    interpreter = _Interpreter(kernel, sizes)
    arrays = dict(zip(kernel.inputs, inputs, strict=True))
    for buffer in kernel.outputs:
        shape = tuple(interpreter.size(dim) for dim in buffer.shape)
        arrays[buffer] = np.zeros(shape, buffer.dtype.numpy)
    interpreter.arrays = arrays
    with np.errstate(all="ignore"):
        interpreter.run(kernel.body)
    return tuple(arrays[buffer] for buffer in kernel.outputs)


def evaluate_scalar(scalar: ir.Scalar, variables: Mapping[ir.Local, Any]) -> Any:
    """Return the value of an expression without loads and sizes.   variables: the values of its variables."""
    interpreter = _Interpreter(KernelDef("", (), (), ()), {})
    interpreter.variables = dict(variables)
    with np.errstate(all="ignore"):
        return interpreter.value(scalar)


class _Interpreter:
    def __init__(self, kernel: KernelDef, sizes: Mapping[DimVar, int]) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.arrays: dict[ir.Buffer, np.ndarray] = {}
        self.variables: dict[ir.Local, Any] = {}

    def size(self, dim) -> int:
        value = evaluate_with(dim, self.sizes.get)
        assert isinstance(value, int), f"size {dim} is not known"
        return value

    def run(self, body: tuple[ir.Statement, ...]) -> None:
        for statement in body:
            match statement:
                case ir.Loop(counter, start, stop, body=inner):
                    for number in range(int(self.value(start)), int(self.value(stop))):
                        self.variables[counter] = np.int64(number)
                        self.run(inner)
                case ir.Let(variable, value) | ir.Assign(variable, value):
                    self.variables[variable] = self.value(value)
                case ir.Store(buffer, indices, value):
                    place = self.place(buffer, indices)
                    self.arrays[buffer][place] = self.value(value)
                case ir.IfThen(cond, then, orelse):
                    self.run(then if self.value(cond) else orelse)

    def place(self, buffer: ir.Buffer, indices: tuple[ir.Scalar, ...]) -> tuple[int, ...]:
        place = tuple(int(self.value(index)) for index in indices)
        for axis, (index, size) in enumerate(zip(place, self.arrays[buffer].shape, strict=True)):
            if not 0 <= index < size:
                where = f"kernel {self.kernel.name}: index {index} is outside axis {axis} of {buffer.name}"
                raise RelvmIndexError(f"{where}, of size {size}")
        return place

    def value(self, scalar: ir.Scalar) -> Any:
        match scalar:
            case ir.Literal(value, dtype):
                return np.asarray(value).astype(dtype.numpy)[()]
            case ir.Local():
                return self.variables[scalar]
            case ir.Size(dim):
                return np.int64(self.size(dim))
            case ir.Load(buffer, indices):
                return self.arrays[buffer][self.place(buffer, indices)]
            case ir.Operation("and", (left, right), dtype) if dtype.is_bool:
                return self.value(left) and self.value(right)
            case ir.Operation("or", (left, right), dtype) if dtype.is_bool:
                return self.value(left) or self.value(right)
            case ir.Operation("select", (cond, then, orelse)):
                return self.value(then if self.value(cond) else orelse)
            case ir.Operation("cast", (operand,), dtype):
                return find_operator("cast").numpy(np.asarray(self.value(operand)), to=dtype)[()]
            case ir.Operation(function, operands, dtype):
                apply = _FUNCTIONS.get(function) or find_operator(function).numpy
                result = apply(*map(self.value, operands))
                return result if dtype == I64 else np.asarray(result).astype(dtype.numpy)[()]
        raise AssertionError(f"the reference interpreter does not know {type(scalar).__name__}")
