"""Test data of an export: inputs and expected outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from relvm.aot.lower.ir import LoweredFunction, LoweredModule, Port, ScalarVar
from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError, counted
from relvm.ir.dtypes import I64, DType, dtype_of
from relvm.ir.expr import Function
from relvm.ir.symbolic import AnyDim, DimVar, as_var, evaluate_with
from relvm.ir.types import PrimType, ShapeType, TupleType, Type

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Trial:
    """Inputs and expected outputs of a self-test, by C name.  A tensor is an array, and a scalar is a number."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


def make_trial(function: Function, module: LoweredModule, inputs: Sequence[Any], outputs: Sequence[Any]) -> Trial:
    """Return the inputs and expected outputs of a self-test.

    The inputs are the arguments of a call of the entry function, and the expected outputs are the result of the call.

    Parameters
    ----------
    function
        The entry function from which `module` was lowered.
    inputs, outputs
        The arguments of the call, and the values that it returns, each in order: arrays, numbers and tuples of these,
        as in calls of the VM.

    Raises
    ------
    RelvmArgumentError
        The number of values is wrong.
    RelvmTypeError, RelvmShapeError
        An array does not have the dtype or shape of its parameter or result.  This error is also raised if an input
        is a number that states the size of a dimension, but an array has another size in this dimension.  The message
        names the parameter or result.
    """
    arguments, sizes = make_inputs(function, module, inputs)
    return Trial(
        arguments, _check_values(module.functions[-1], module.outputs, list(_flatten(outputs)), "output", sizes)
    )


def make_inputs(
    function: Function, module: LoweredModule, inputs: Sequence[Any]
) -> tuple[dict[str, Any], dict[DimVar, int]]:
    """Return two dicts: the inputs by C name, and the values of the sizes of the entry function.

    function: the entry function from which `module` was lowered.
    inputs: the arguments of a call of the function, in order: arrays, numbers and tuples of these.

    Raises
    ------
    RelvmArgumentError
        The number of values is wrong.
    RelvmTypeError, RelvmShapeError
        An array does not have the dtype or shape of its parameter.  This error is also raised if an input is a number
        that states the size of a dimension, but an array has another size in this dimension.
    """
    passed_sizes: list[tuple[str, AnyDim, int]] = []
    if len(inputs) != len(function.params):
        raise RelvmArgumentError(f"{function.name}: expected {len(function.params)} input values, got {len(inputs)}")
    values: list[Any] = []
    for param, value in zip(function.params, inputs, strict=True):
        values += _flatten_input(param.type, value, f"{function.name}: input {param.name}", passed_sizes)
    sizes: dict[DimVar, int] = {}
    for _, dim, size in passed_sizes:
        if var := as_var(dim):
            sizes.setdefault(var, size)
    arguments = _check_values(module.functions[-1], module.inputs, values, "input", sizes)
    for where, dim, size in passed_sizes:
        known: AnyDim = evaluate_with(dim, sizes.get)
        if known != size:
            raise RelvmShapeError(f"{where}: expected a size of {known}, got {size}")
    arguments |= {port.name: sizes[port.value] for port in module.inputs if isinstance(port.value, DimVar)}
    return arguments, sizes


def _flatten_input(type_: Type, value: Any, where: str, passed_sizes: list[tuple[str, AnyDim, int]]) -> Iterator[Any]:
    """Yield the tensors and scalars in `value` that are inputs of the C function, in order.

    An integer that only passes a size, such as an item of a shape, is not yielded, but appended to `passed_sizes`.

    type_: the type of `value`.
    where: the name of `value` in messages.
    passed_sizes: a list of tuples (name in messages, dimension in the type, passed integer).
    """
    match type_:
        case TupleType(fields):
            for item_name, field, part in _match_items(fields, value, where):
                yield from _flatten_input(field, part, item_name, passed_sizes)
        case ShapeType(dims) if dims is not None:
            for item_name, dim, part in _match_items(dims, value, where):
                passed_sizes.append((item_name, dim, int(expect_number(item_name, I64, part))))
        case PrimType(value=dim) if dim is not None and as_var(dim) is not None:
            passed_sizes.append((where, dim, int(expect_number(where, I64, value))))
        case _:
            yield value


def _match_items(expected: Sequence[_Item], value: Any, where: str) -> list[tuple[str, _Item, Any]]:
    """Return, for each item of the tuple `value`, its name in messages, its expected type or dimension, and its value.

    expected: the expected types or dimensions.   where: the name of the tuple in messages.
    """
    if not isinstance(value, tuple | list) or len(value) != len(expected):
        raise RelvmArgumentError(f"{where}: expected a tuple of {counted(len(expected), 'item')}, got {value!r}")
    return [(f"{where}, item {i}", *pair) for i, pair in enumerate(zip(expected, value, strict=True))]


def _check_values(
    entry: LoweredFunction, ports: tuple[Port, ...], values: Sequence[Any], what: str, sizes: dict[DimVar, int]
) -> dict[str, Any]:
    ports = tuple(port for port in ports if not isinstance(port.value, DimVar))
    if len(values) != len(ports):
        raise RelvmArgumentError(f"{entry.name}: expected {len(ports)} {what} values, got {len(values)}")
    found = {}
    for port, value in zip(ports, values, strict=True):
        found[port.name] = _check_value(entry, port, value, f"{entry.name}: {what} {port.name}", sizes)
    for port in ports:
        _expect_sizes(entry, port, found[port.name], f"{entry.name}: {what} {port.name}", sizes)
    return found


def _flatten(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flatten(value)
        else:
            yield value


def _check_value(entry: LoweredFunction, port: Port, value: Any, where: str, sizes: dict[DimVar, int]) -> Any:
    """Check the value of the input or output `port`, and return it as an array or a number.

    where: the name of the value in messages.
    sizes: the known values of dimension variables.  Sizes that the shape of an array determines are added to this dict.
    """
    if isinstance(port.value, ScalarVar):
        return expect_number(where, port.value.dtype, value)
    assert isinstance(port.value, int)  # `_check_values` omits sizes
    storage = entry.storages[port.value]
    array = np.ascontiguousarray(value).reshape(np.shape(value))
    if dtype_of(array.dtype) != storage.dtype:
        raise RelvmTypeError(f"{where}: expected dtype {storage.dtype}, got {array.dtype}")
    if array.ndim != len(storage.shape):
        raise RelvmShapeError(f"{where}: expected rank {len(storage.shape)}, got shape {array.shape}")
    for dim, size in zip(storage.shape, array.shape, strict=True):
        var = as_var(dim)
        if var is not None:
            sizes.setdefault(var, size)
    return array


def _expect_sizes(entry: LoweredFunction, port: Port, value: Any, where: str, sizes: dict[DimVar, int]) -> None:
    if not isinstance(port.value, int):
        return
    for dim, size in zip(entry.storages[port.value].shape, value.shape, strict=True):
        known: AnyDim = evaluate_with(dim, sizes.get)
        if known != size:
            raise RelvmShapeError(f"{where}: expected a dimension of {known}, got shape {value.shape}")


def expect_number(where: str, dtype: DType, value: Any) -> bool | int | float:
    """Convert a value to a Python number that a dtype can represent.

    Raises
    ------
    RelvmTypeError
        The value is not a number, or the dtype cannot represent it.  The message begins with `where`.
    """
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0 else value
    is_fitting = isinstance(plain, bool | int | float) and isinstance(plain, bool) == dtype.is_bool
    if is_fitting and dtype.is_integer:
        low, high = dtype.limits
        is_fitting = isinstance(plain, int) and low <= plain <= high
    if is_fitting and dtype.is_float:
        is_fitting = _can_represent(dtype, plain)
    if not is_fitting:
        raise RelvmTypeError(f"{where}: expected a number of dtype {dtype}, got {value!r}")
    return float(plain) if dtype.is_float else plain


def _can_represent(dtype: DType, number: int | float) -> bool:
    """Return whether `number` can be converted to the float dtype `dtype` without overflow.

    The result is true for infinities and NaN.
    """
    try:
        with np.errstate(over="ignore"):
            return np.isfinite(dtype.numpy.type(number)) or not np.isfinite(float(number))
    except OverflowError:
        return False
