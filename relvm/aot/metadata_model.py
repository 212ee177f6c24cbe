"""Metadata of an export: its inputs and outputs, and the memory that a run needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from relvm.aot.config import AotConfig, CallKind
from relvm.aot.lower.ir import LoweredFunction, LoweredModule, MemoryKind, Port, ScalarVar, TensorStorage
from relvm.aot.lower.kernel_scratch import KernelScratch
from relvm.aot.lower.place_storage import FunctionPlacement
from relvm.data_classes import dataclass
from relvm.ir.dtypes import I64
from relvm.ir.expr import constant_key
from relvm.ir.symbolic import AnyDim, DimVar, as_var, format_dim

VERSION = 1  # of the metadata structs of an export


@dataclass(frozen=True)
class TensorInfo:
    """Metadata of an input, an output or a memory pool of an export.

    Attributes
    ----------
    name
        The name in C.
    shape
        The dimensions.  A dimension is a number, or a text such as "n" or "n * 2" if it is known only at run time.  The
        shape of a scalar is empty.
    dtype
        The name of the dtype in csrc/tables/dtypes.def.
    is_updated
        Whether it is an input that each run updates.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    is_updated: bool = False


@dataclass(frozen=True)
class SizeInfo:
    """A size that is known only at run time.

    name: its name in C.  It is also the name of the input that passes the size, if there is one.
    least, most: its bounds.  `most` is None if there is no upper bound.  `least` is -2**63 if the size can be negative,
    because it is the value of a scalar.
    """

    name: str
    least: int
    most: int | None


@dataclass(frozen=True)
class Metadata:
    """Metadata of an export.  In C, the metadata are constants of the types in csrc/include/relvm_metadata.h.

    Attributes
    ----------
    mod_name
        Name of the model in C, and prefix of the symbols of the model.
    inputs, outputs
        The inputs and outputs, in the order of the entry point.
    pools
        The memory pools that a run needs, as tensors of bytes.
    sizes
        The sizes on which the dimensions of inputs and outputs depend.
    alignment
        Alignment of pools in bytes.
    version
        Version of this format.
    """

    mod_name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    pools: tuple[TensorInfo, ...]
    sizes: tuple[SizeInfo, ...]
    alignment: int
    version: int = VERSION


def metadata_of(module: LoweredModule, config: AotConfig, pool_bytes: tuple[int, ...]) -> Metadata:
    """Return the metadata of an export.  pool_bytes: the size of each pool in `config`."""
    entry, names = module.functions[-1], size_names(module)
    ports = module.inputs if config.interface == "c" else packed_inputs(module)
    return Metadata(
        config.name,
        tuple(_port(port, entry, names) for port in ports),
        tuple(_port(port, entry, names) for port in module.outputs),
        tuple(TensorInfo(pool.name, (size,), "u8") for pool, size in zip(config.pools, pool_bytes, strict=True)),
        tuple(SizeInfo(names[var], low, high) for var, low, high in entry.sizes),
        config.base_alignment,
    )


def packed_inputs(module: LoweredModule) -> tuple[Port, ...]:
    """Return the inputs of a packed entry: all inputs except sizes that are also dimensions of input tensors."""
    entry = module.functions[-1]
    known = {as_var(dim) for number in entry.inputs for dim in entry.storages[number].shape}
    return tuple(port for port in module.inputs if port.value not in known)


def port_shape(port: Port, entry: LoweredFunction) -> tuple[AnyDim, ...]:
    """Return the dimensions of `port`, an input or output of the function `entry`.  A scalar has no dimensions."""
    return entry.storages[port.value].shape if isinstance(port.value, int) else ()


def port_dtype(port: Port, entry: LoweredFunction) -> str:
    """Return the dtype name of `port`, an input or output of the function `entry`."""
    match port.value:
        case ScalarVar(dtype=dtype):
            return dtype.name
        case DimVar():
            return I64.name
    return entry.storages[port.value].dtype.name


def range_text(least: int, most: int | None) -> str:
    """Return the bounds of a size as text.   most: None if there is no upper bound."""
    return f"{'any' if least == I64.lowest else least} to {'any' if most is None else most}"


def size_names(module: LoweredModule) -> dict[DimVar, str]:
    """Return the C name of each size of the entry.  It differs from the names of the other inputs."""
    return {port.value: port.name for port in module.inputs if isinstance(port.value, DimVar)}


def dim_text(dim: AnyDim, names: Mapping[DimVar, str]) -> str:
    """Return the dimension `dim` as text.   names: the C names of sizes."""
    return format_dim(dim, names.__getitem__)


def _port(port: Port, entry: LoweredFunction, names: Mapping[DimVar, str]) -> TensorInfo:
    shape = (dim if isinstance(dim, int) else dim_text(dim, names) for dim in port_shape(port, entry))
    return TensorInfo(port.name, tuple(shape), port_dtype(port, entry), port.value in entry.updated_inputs)


def metadata_json(
    metadata: Metadata,
    module: LoweredModule,
    placements: Mapping[str, FunctionPlacement],
    constants: Sequence[TensorStorage],
) -> str:
    """Return the metadata and the memory use of every function as JSON.

    Parameters
    ----------
    constants
        The constants, in the order of the members of the C struct of constants.
    """
    numbers = {constant_key(storage.array): number for number, storage in enumerate(constants)}
    pools = [pool.name for pool in metadata.pools]

    def memory(function: LoweredFunction) -> dict:
        placement = placements[function.name]
        used = {constant_key(s.array): s.array.nbytes for s in function.storages if s.kind is MemoryKind.CONSTANT}
        return {
            "ram_bytes": dict(zip(pools, placement.size_bytes, strict=True)),
            "ram_lower_bound_bytes": {
                pool: arena.lower_bound_bytes for pool, arena in zip(pools, placement.arenas, strict=True)
            },
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
        described["kernels"] = {name: {"ram_bytes": KernelScratch(k).size_bytes} for name, k in module.kernels.items()}
    return json.dumps(described, indent=1) + "\n"
