"""Storage assignment: decides which tensors of a function share memory, before the memory is placed.

An expression has one storage for each tensor in its value, in order.  An alias or a view shares the storages of its
argument.  The storages of a tuple are the storages of all its fields.  An expression that extracts a field of a tuple
shares the storages of that field.
Both branches of an `if` write into the storages of the `if`.  Where possible, a function computes its results directly
in the storages that its caller provides for them.  It copies a result that it did not compute itself, such as a
parameter.  It also copies a result whose number of elements is checked only at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from relvm.aot.lower.unsupported import Refusals, Refused
from relvm.ir.dtypes import DType
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Constant,
    Expr,
    Function,
    If,
    MatchCast,
    Prim,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.node import walk
from relvm.ir.symbolic import AnyDim, difference, product
from relvm.ir.types import TensorType, TupleType, Type
from relvm.quoting import terminal

DEVICE = 0  # the CPU, the only device


class MemoryKind(Enum):
    """The kind of memory of a storage.

    INPUT and OUTPUT are memory of the caller.  CONSTANT is constant data.  WORKSPACE is memory in a pool.
    """

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    WORKSPACE = "workspace"


@dataclass(frozen=True, eq=False)
class TensorStorage:
    """Memory for a tensor.  An alias or a view of a tensor is in the same storage.

    name, origin: the name and the source location of the first tensor in the storage.
    kind: the kind of memory.
    dtype, shape: the dtype and the shape of the first tensor.
    value: the array, if the storage is a constant.
    """

    name: str
    kind: MemoryKind
    dtype: DType
    shape: tuple[AnyDim, ...]
    device: int = DEVICE
    value: np.ndarray | None = None
    origin: str = ""

    @property
    def array(self) -> np.ndarray:
        """The value of the storage, which must be a constant."""
        assert self.value is not None
        return self.value


@dataclass(frozen=True)
class StorageInfo:
    """The storages of the value of an expression.  A storage is memory that one or more tensors use.

    Attributes
    ----------
    ids
        For each tensor in the value, the index of its storage in `StorageMap.storages`.
    devices
        The device of each storage.
    sizes_bytes
        The size of each storage in bytes: a number, or a dimension that depends on the sizes of the function.
    """

    ids: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    sizes_bytes: tuple[AnyDim, ...] = ()


@dataclass
class StorageMap:
    """The storages (memory areas for tensors) of a function, and the storages of each variable and constant.

    Attributes
    ----------
    storages
        All storages: first those of parameters and results, then the others in order of first use.
    infos
        For each variable, the storages of the tensors in its value.
    constants
        For each constant, the index of its storage in `storages`.
    results
        The storages in which the function returns its results.
    """

    storages: list[TensorStorage] = field(default_factory=list)
    infos: dict[Var, StorageInfo] = field(default_factory=dict)
    constants: dict[Constant, int] = field(default_factory=dict)
    results: StorageInfo = StorageInfo()

    def storages_of(self, expr: Expr) -> StorageInfo:
        """Return the storages of a variable or a constant.  Other expressions have no storages.

        Raise Refused if the variable is not supported.
        """
        match expr:
            case Var():
                if expr not in self.infos:
                    raise Refused
                return self.infos[expr]
            case Constant():
                return self.info((self.constants[expr],))
        return StorageInfo()

    def info(self, ids: Sequence[int]) -> StorageInfo:
        """Return the StorageInfo of the storages at the indices `ids`."""
        found = [self.storages[number] for number in ids]
        sizes_bytes = (product((*storage.shape, storage.dtype.size_bytes)) for storage in found)
        return StorageInfo(tuple(ids), tuple(storage.device for storage in found), tuple(sizes_bytes))


def assign_storage(
    function: Function, caller_map: StorageMap | None = None, refusals: Refusals | None = None
) -> StorageMap:
    """Assign storages to every value of a function.

    Parameters
    ----------
    function
        A function at stage LOWERED.
    caller_map
        The storages of the function that calls `function` in tail position, or None if no function does.  The storages
        of `function` are added to this map.  `function` writes its result directly to the storages of the caller's
        result.
    refusals
        Where to add values without storages that can be assigned: tensors of unknown rank or dtype, of strings, or on
        another device.  If it is None, an error lists them.

    Raises
    ------
    RelvmUnsupportedError
        `refusals` is None, and there are such values.  The message contains their locations.
    """
    found, collected = caller_map or StorageMap(), Refusals() if refusals is None else refusals
    assigner = _Assigner(function, found, collected)
    for param in function.params:
        assigner.origin = param.origin
        with suppress(Refused):
            found.infos[param] = assigner.new(param.name, param.type, MemoryKind.INPUT)
    assigner.origin = function.origin
    if caller_map is None:
        with suppress(Refused):
            found.results = assigner.new("result", function.func_type.result, MemoryKind.OUTPUT)
    assigner.block(function.block, found.results.ids)
    if refusals is None:
        collected.raise_all()
    return found


def tensor_leaves(type_: Type) -> Iterator[TensorType]:
    """Yield the tensor types in a type, from left to right."""
    match type_:
        case TensorType():
            yield type_
        case TupleType(fields):
            for item in fields:
                yield from tensor_leaves(item)


def _tensor_count(type_: Type) -> int:
    return sum(1 for _ in tensor_leaves(type_))


def _tensor_counts(type_: Type) -> list[int]:
    """Return the number of tensors in each field of a tuple type."""
    return [_tensor_count(item) for item in type_.fields] if isinstance(type_, TupleType) else []


def format_storage(found: StorageMap) -> str:
    """Return a text with a line for each storage, then a line for each variable, then a line for the result."""
    lines = []
    for number, storage in enumerate(found.storages):
        dims, name = ", ".join(map(str, storage.shape)), terminal(storage.name)
        lines.append(f"s{number}: {storage.kind.value} {name}: {storage.dtype}[{dims}] on device {storage.device}")
    lines += [f"{terminal(var.name)} -> {_ids(info)}" for var, info in found.infos.items()]
    return "\n".join([*lines, f"result -> {_ids(found.results)}"]) + "\n"


def _ids(info: StorageInfo) -> str:
    return ", ".join(f"s{number}" for number in info.ids) or "no storage"


Targets = tuple[int | None, ...]  # for each tensor in a value, the storage in which it should be computed


class _Assigner:
    def __init__(self, function: Function, found: StorageMap, refusals: Refusals) -> None:
        self.refusals = refusals
        self.name = function.name
        self.origin = function.origin  # origin of the current expression, or of one near it
        self.found = found

    def new(self, name: str, type_: Type, kind: MemoryKind, targets: Targets = ()) -> StorageInfo:
        """Return storages for the tensors in a type.

        targets: for each tensor, the storage to use, or None for a new storage in memory of kind `kind`.
        """
        leaves = list(tensor_leaves(type_))
        ids = []
        for position, leaf in enumerate(leaves):
            number = targets[position] if targets else None
            if number is None:
                if leaf.dtype is None or leaf.shape is None:
                    self.refusals.refuse(self.name, name, f"a tensor of unknown rank or dtype ({leaf})", self.origin)
                if leaf.dtype.is_string:
                    self.refusals.refuse(self.name, name, "tensors of strings", self.origin)
                number = len(self.found.storages)
                label = name if len(leaves) == 1 else f"{name}_{position}"
                self.found.storages.append(TensorStorage(label, kind, leaf.dtype, leaf.shape, origin=self.origin))
            ids.append(number)
        return self.found.info(ids)

    def block(self, block: Block, targets: Targets) -> None:
        """Assign storages to the values of a block.

        targets: the storages for the result of the block.  If possible, the result is computed there, otherwise copied
        there.
        """
        block_targets = _find_targets(block, targets)
        for binding in block.bindings:
            self.constants(binding.value)
            with suppress(Refused):
                self.found.infos[binding.var] = self.binding(binding, block_targets.get(binding.var, ()))
        self.constants(block.result)

    def binding(self, binding: Binding | MatchCast, targets: Targets) -> StorageInfo:
        var, value = binding.var, binding.value
        if isinstance(binding, MatchCast):
            return self.found.storages_of(value)
        self.origin = var.origin or self.origin
        match value:
            case Var() | Constant():
                return self.found.storages_of(value)
            case Tuple(fields):
                return self.found.info([number for item in fields for number in self.found.storages_of(item).ids])
            case TupleItem(tuple_, index):
                before = sum(_tensor_counts(tuple_.type)[:index])
                count = _tensor_count(var.type)
                return self.found.info(self.found.storages_of(tuple_).ids[before : before + count])
            case BuiltinCall("reshape", (tensor, _)):
                return self.found.storages_of(tensor)
            case BuiltinCall("to_device", (tensor, Prim(device))):
                if device != DEVICE:
                    what = f"device {device}; the only device is {DEVICE} (CPU)"
                    self.refusals.refuse(self.name, var.name, what, self.origin)
                return self.found.storages_of(tensor)
            case If(_, Block() as then, Block() as orelse):
                info = None
                with suppress(Refused):
                    info = self.new(var.name, var.type, MemoryKind.WORKSPACE, targets)
                for part in (then, orelse):
                    self.block(part, info.ids if info else ())
                if info is None:
                    raise Refused
                return info
        return self.new(var.name, var.type, MemoryKind.WORKSPACE, targets)

    def constants(self, value: Expr) -> None:
        """Assign storages to the constants in an expression.

        The constants in an `if` are skipped, because `block` handles them with the branch that contains them.
        """
        if isinstance(value, If):
            return
        for part in walk(value):
            if isinstance(part, Constant) and part not in self.found.constants:
                number = len(self.found.storages)
                storage = TensorStorage(
                    f"constant_{number}",
                    MemoryKind.CONSTANT,
                    part.known_element_type,
                    part.value.shape,
                    value=part.value,
                )
                self.found.storages.append(storage)
                self.found.constants[part] = number


def _find_targets(block: Block, targets: Targets) -> dict[Var, Targets]:
    """Find the variables of a block that can be computed directly in the storages of the block's result.

    Return the storages of each of these variables.   targets: the storages of the block's result.

    A variable that occurs twice in the result is computed in the first storage and copied to the second.  A variable
    that is bound outside the block is also copied.
    """
    bound = {binding.var for binding in block.bindings}
    found: dict[Var, Targets] = {}

    def set_target(value: Expr, ids: Targets) -> None:
        if isinstance(value, Var) and value in bound:
            old = found.setdefault(value, (None,) * len(ids))
            pairs = zip(old, ids, strict=True)
            found[value] = tuple(number if before is None else before for before, number in pairs)

    set_target(block.result, targets)
    for binding in reversed(block.bindings):
        ids = found.get(binding.var, ())
        if not ids:
            continue
        if isinstance(binding, MatchCast):
            set_target(binding.value, _operand_targets(ids, binding.value.type, binding.var.type))
            continue
        match binding.value:
            case Var():
                set_target(binding.value, ids)
            case Tuple(fields):
                for item in fields:
                    count = _tensor_count(item.type)
                    set_target(item, ids[:count])
                    ids = ids[count:]
            case TupleItem(tuple_, index):
                counts = _tensor_counts(tuple_.type)
                before = sum(counts[:index])
                set_target(tuple_, (None,) * before + ids + (None,) * (sum(counts) - before - len(ids)))
            case BuiltinCall("reshape" | "to_device", args):
                set_target(args[0], _operand_targets(ids, args[0].type, binding.var.type))
    return found


def _operand_targets(ids: Targets, operand_type: Type, result_type: Type) -> Targets:
    """Return, for each tensor in the operand of a view or match_cast, the storage in which to compute it, or None.

    ids: the storages in which the result should be.
    operand_type, result_type: the types of the operand and the result.  The operand can use a storage only if both
    types provably have the same number of elements.  Otherwise a run-time check compares them, and the storage must not
    be written before that check.
    """
    if _tensor_count(operand_type) != len(ids):
        return ()
    leaves = zip(ids, tensor_leaves(operand_type), tensor_leaves(result_type), strict=True)
    return tuple(number if _have_equal_sizes(operand, result) else None for number, operand, result in leaves)


def _have_equal_sizes(operand: TensorType, result: TensorType) -> bool:
    if operand.shape is None or result.shape is None:
        return False
    return difference(product(operand.shape), product(result.shape)) == 0
