"""What an export is tried on: values for its inputs, and what should come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm.aot.lowered import LoweredFunction, LoweredModule, Port, ScalarVar
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.ir.dims import AnyDim, DimVar, as_var, evaluate_with
from relvm.ir.dtypes import dtype_of

_KINDS = {"i": int, "f": float, "b": bool}


@dataclass(frozen=True)
class Trial:
    """inputs, outputs: by the names of the ports, an array for a tensor, else a number."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


def make_trial(module: LoweredModule, inputs: Sequence[Any], outputs: Sequence[Any]) -> Trial:
    """A trial of values in the order of an entry's parameters and of its results.

    Parameters
    ----------
    inputs, outputs
        Arrays, numbers and tuples of them, as a machine takes and gives them.  Parameters that are only sizes may be
        anything.

    Raises
    ------
    RelvmArgumentError
        There are more or fewer values than the entry has.
    RelvmTypeError, RelvmShapeError
        An array of another dtype or shape; the message names it.
    """
    given, sizes = make_inputs(module, inputs)
    return Trial(given, _values(module.functions[-1], module.outputs, outputs, "output", sizes))


def make_inputs(module: LoweredModule, inputs: Sequence[Any]) -> tuple[dict[str, Any], dict[DimVar, int]]:
    """The inputs of `make_trial` by name, and the entry's sizes.  Raises what that does."""
    entry = module.functions[-1]
    sizes: dict[DimVar, int] = {}
    given = _values(entry, module.inputs, inputs, "input", sizes)
    given |= {port.name: sizes[port.value] for port in module.inputs if isinstance(port.value, DimVar)}
    return given, sizes


def _values(
    entry: LoweredFunction, ports: tuple[Port, ...], values: Sequence[Any], what: str, sizes: dict[DimVar, int]
) -> dict[str, Any]:
    ports = tuple(port for port in ports if not isinstance(port.value, DimVar))
    flat = list(_flat(values))
    if len(flat) != len(ports):
        raise RelvmArgumentError(f"{entry.name}: expected {len(ports)} values of {what}s, got {len(flat)}")
    found = {}
    for port, value in zip(ports, flat, strict=True):
        found[port.name] = _value(entry, port, value, f"{entry.name}: {what} {port.name}", sizes)
    for port in ports:
        _expect_sizes(entry, port, found[port.name], f"{entry.name}: {what} {port.name}", sizes)
    return found


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _flat(value)
        else:
            yield value


def _value(entry: LoweredFunction, port: Port, value: Any, where: str, sizes: dict[DimVar, int]) -> Any:
    """The value as an array or a number; its dimensions that are a variable's first give that its size."""
    if isinstance(port.value, ScalarVar):
        return _KINDS[port.value.letter](value)
    storage = entry.storages[port.value]
    array = np.ascontiguousarray(value).reshape(np.shape(value))
    if dtype_of(array.dtype) != storage.dtype:
        raise RelvmTypeError(f"{where}: expected dtype {storage.dtype}, got {array.dtype}")
    if array.ndim != len(storage.shape):
        raise RelvmShapeError(f"{where}: expected rank {len(storage.shape)}, got shape {array.shape}")
    for want, have in zip(storage.shape, array.shape, strict=True):
        var = as_var(want)
        if var is not None:
            sizes.setdefault(var, have)
    return array


def _expect_sizes(entry: LoweredFunction, port: Port, value: Any, where: str, sizes: dict[DimVar, int]) -> None:
    if isinstance(port.value, ScalarVar):
        return
    for want, have in zip(entry.storages[port.value].shape, value.shape, strict=True):
        known: AnyDim = evaluate_with(want, sizes.get)
        if known != have:
            raise RelvmShapeError(f"{where}: expected a dimension of {known}, got shape {value.shape}")
