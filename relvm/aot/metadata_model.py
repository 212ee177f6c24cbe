"""Metadata of an export: its inputs, its outputs, the memory that a run needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from relvm.aot.c.kernels import scratch_bytes
from relvm.aot.config import AotConfig, CallKind
from relvm.aot.lower.assign_storage import MemoryKind, TensorStorage
from relvm.aot.lower.ir import LoweredFunction, LoweredModule, Port, ScalarVar
from relvm.aot.lower.place_storage import FunctionPlacement
from relvm.ir.expr import constant_key
from relvm.ir.symbolic import AnyDim, DimVar, as_var, format_dim
from relvm.quoting import c_identifier

VERSION = 1  # RVM_METADATA_VERSION in csrc/include/relvm_metadata.h
_NUMBERS = {"i": "i64", "f": "f64", "b": "bool"}


@dataclass(frozen=True)
class TensorInfo:
    """A tensor that a run takes, gives or uses.

    Attributes
    ----------
    name
        In C.
    shape
        Each dimension: a number, or its text ("n", "n * 2") where it depends on sizes.  A number has none.
    dtype
        The name in csrc/tables/dtypes.def.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class SizeInfo:
    """A size that only a run knows, its name in C, and its bounds, `least` and `most`; most: None where it has none."""

    name: str
    least: int
    most: int | None


@dataclass(frozen=True)
class Metadata:
    """Metadata of an export; in C, constants of the types of csrc/include/relvm_metadata.h.

    Attributes
    ----------
    mod_name
        What all that it defines begins with.
    inputs, outputs
        In the order in which the entry takes them.
    pools
        The memory that a run needs besides, as bytes.
    sizes
        Those that the dimensions of inputs and outputs name.
    alignment
        Of pools, in bytes.
    version
        Of this description.
    """

    mod_name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    pools: tuple[TensorInfo, ...]
    sizes: tuple[SizeInfo, ...]
    alignment: int
    version: int = VERSION


def metadata_of(module: LoweredModule, config: AotConfig, pool_bytes: tuple[int, ...]) -> Metadata:
    """The metadata of an export."""
    entry = module.functions[-1]
    ports = module.inputs if config.interface == "c" else packed_inputs(module)
    return Metadata(
        config.name,
        tuple(_port(port, entry) for port in ports),
        tuple(_port(port, entry) for port in module.outputs),
        tuple(TensorInfo(pool.name, (size,), "u8") for pool, size in zip(config.pools, pool_bytes, strict=True)),
        tuple(SizeInfo(c_identifier(var.name), low, high) for var, low, high in entry.sizes),
        config.base_alignment,
    )


def packed_inputs(module: LoweredModule) -> tuple[Port, ...]:
    """Return the inputs of a packed entry: all inputs except sizes that are also dimensions of input tensors."""
    entry = module.functions[-1]
    known = {as_var(dim) for number in entry.inputs for dim in entry.storages[number].shape}
    return tuple(port for port in module.inputs if port.value not in known)


def port_shape(port: Port, entry: LoweredFunction) -> tuple[AnyDim, ...]:
    """The dimensions of an input or output; a number has none."""
    return entry.storages[port.value].shape if isinstance(port.value, int) else ()


def port_dtype(port: Port, entry: LoweredFunction) -> str:
    """The name of its element type."""
    match port.value:
        case ScalarVar(letter=letter):
            return _NUMBERS[letter]
        case DimVar():
            return _NUMBERS["i"]
    return entry.storages[port.value].dtype.name


def dim_text(dim: AnyDim) -> str:
    """A dimension with the names of sizes that C has."""
    return format_dim(dim, lambda var: c_identifier(var.name))


def _port(port: Port, entry: LoweredFunction) -> TensorInfo:
    shape = (dim if isinstance(dim, int) else dim_text(dim) for dim in port_shape(port, entry))
    return TensorInfo(port.name, tuple(shape), port_dtype(port, entry))


def metadata_json(
    metadata: Metadata,
    module: LoweredModule,
    placements: Mapping[str, FunctionPlacement],
    constants: Sequence[TensorStorage],
) -> str:
    """The metadata and the memory of every function as JSON, for programs that read an archive.

    Parameters
    ----------
    constants
        In the order in which the export has them.
    """
    numbers = {constant_key(storage.array): number for number, storage in enumerate(constants)}
    pools = [pool.name for pool in metadata.pools]

    def memory(function: LoweredFunction) -> dict:
        used = {constant_key(s.array): s.array.nbytes for s in function.storages if s.place is MemoryKind.CONSTANT}
        return {
            "ram_bytes": dict(zip(pools, placements[function.name].size_bytes, strict=True)),
            "ram_lower_bound_bytes": dict(zip(pools, placements[function.name].lower_bound_bytes, strict=True)),
            "flash_constants_bytes": sum(used.values()),
            "constants": sorted(f"c{numbers[key]}" for key in used if key in numbers),
        }

    described = asdict(metadata) | {
        "constants": [
            asdict(TensorInfo(f"c{number}", storage.array.shape, storage.dtype.name))
            for number, storage in enumerate(constants)
        ],
        "functions": {function.name: memory(function) for function in module.functions},
    }
    if module.calls is CallKind.UNPACKED:
        described["kernels"] = {name: {"ram_bytes": scratch_bytes(k)} for name, k in module.kernels.items()}
    return json.dumps(described, indent=1) + "\n"
