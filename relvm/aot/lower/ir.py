"""The lowered IR of an export: functions over storages, C scalars and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import numpy as np

from relvm.aot.config import CallKind
from relvm.data_classes import dataclass
from relvm.ir.dtypes import DType
from relvm.ir.expr import Var
from relvm.ir.symbolic import AnyDim, DimVar, product
from relvm.kernels.kernel import Kernel

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
    """The storages of a value, one for each tensor in it.

    Attributes
    ----------
    ids
        The indices of the storages in `LoweredFunction.storages`.
    devices
        The device of each storage.
    sizes_bytes
        The size of each storage in bytes: a number, or a dimension that depends on the sizes of the function.
    """

    ids: tuple[int, ...]
    devices: tuple[int, ...]
    sizes_bytes: tuple[AnyDim, ...]


@dataclass(frozen=True, eq=False)
class ScalarVar:
    """A scalar variable of the C code.

    dtype: its type: i64, f64 or bool.
    """

    name: str
    dtype: DType


@dataclass(frozen=True)
class ScalarConstant:
    value: bool | int | float


@dataclass(frozen=True)
class DimScalar:
    """A scalar operand of type int64: the value of a dimension."""

    dim: AnyDim


Scalar = ScalarVar | ScalarConstant | DimScalar


@dataclass(frozen=True)
class RunKernel:
    """A statement that runs a kernel on the tensors in `storages`.

    sizes: the values of the kernel's size variables, in order.
    """

    kernel: str
    storages: tuple[int, ...]
    sizes: tuple[AnyDim, ...]


@dataclass(frozen=True)
class Copy:
    """A statement that copies the first `size_bytes` bytes of the storage `source` to the storage `target`."""

    source: int
    target: int
    size_bytes: AnyDim


@dataclass(frozen=True)
class TensorArgument:
    """A tensor that is passed to a function of the host.

    storage: the index of its storage.   dims: its dimensions.
    """

    storage: int
    dims: tuple[AnyDim, ...]


@dataclass(frozen=True)
class CallExtern:
    """A statement that calls a packed function of the host by its name.

    args: its arguments.
    result: where to store the value that the function returns, or None to ignore the value.
    """

    name: str
    args: tuple[TensorArgument | Scalar, ...]
    result: TensorArgument | ScalarVar | None


@dataclass(frozen=True)
class ReadItem:
    """A statement that sets variable `target` to the element at flat position `position` of a storage."""

    target: ScalarVar
    storage: int
    position: int = 0


@dataclass(frozen=True)
class WriteItem:
    """A statement that sets the element at flat position `position` of a storage to the scalar `value`."""

    storage: int
    position: int
    value: Scalar


@dataclass(frozen=True)
class Compute:
    """A statement that sets a variable to the result of a scalar operator.

    It fails with ARITHMETIC_ERROR if the result is undefined.

    row: the operator, as the name of a row in csrc/tables/scalar_operators.def.
    """

    target: ScalarVar
    row: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True)
class SetScalar:
    target: ScalarVar
    value: Scalar


@dataclass(frozen=True)
class SetSize:
    """A statement that defines a size as the value of a scalar.

    It fails with SHAPE_ERROR if the value is negative, unless `target` is signed.
    """

    target: DimVar
    value: Scalar


@dataclass(frozen=True)
class CheckSizes:
    """A statement that fails with SHAPE_ERROR unless two sizes are equal."""

    left: AnyDim
    right: AnyDim


@dataclass(frozen=True)
class CheckRange:
    """A statement that fails with TYPE_ERROR unless a scalar is in [low, high]."""

    value: Scalar
    low: int
    high: int


@dataclass(frozen=True)
class Check:
    """A statement that fails with the status code `status` unless a condition holds.

    status: a name such as "ASSERTION_ERROR".   message: the message of the error, if the runtime has messages.
    """

    cond: Scalar
    status: str
    message: str


@dataclass(frozen=True)
class Branch:
    cond: Scalar
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class CallFunction:
    """A statement that calls another function of the export.

    storages: the caller's storages that become the inputs of the called function, followed by those that become its
    outputs.
    sizes, scalars: the values of the called function's size and scalar parameters.
    results: the variables for the scalar results.
    """

    function: str
    storages: tuple[int, ...]
    sizes: tuple[AnyDim, ...]
    scalars: tuple[Scalar, ...]
    results: tuple[ScalarVar, ...]


@dataclass(frozen=True)
class Move:
    """The new value of a tensor parameter in a `Continue`.

    param: the index of the parameter's storage.
    source: the index of the storage that contains the new value.
    copy_to: the storage to which the new value is copied.  If it is None, nothing is copied: the parameter becomes a
    pointer to `source`, which is not written again.
    size_bytes: the size of the tensor.
    """

    param: int
    source: int
    copy_to: int | None
    size_bytes: AnyDim


@dataclass(frozen=True)
class Continue:
    """A statement that jumps to a section of the function.  It implements a tail call of a member of the function's
    recursive group.

    All pointers, sizes and scalars are read before any parameter changes.  Tensors that must be copied (`Move.copy_to`)
    are copied one after another.

    section: the index of the section.
    moves, sizes, scalars: the parameters that change, each with its new value.
    """

    section: int
    moves: tuple[Move, ...]
    sizes: tuple[tuple[DimVar, AnyDim], ...]
    scalars: tuple[tuple[ScalarVar, Scalar], ...]


Statement = (
    RunKernel
    | Copy
    | CallExtern
    | ReadItem
    | WriteItem
    | Compute
    | SetScalar
    | SetSize
    | CheckSizes
    | CheckRange
    | Check
    | Branch
    | CallFunction
    | Continue
)


@dataclass(frozen=True)
class LoweredFunction:
    """A function of the export as statements that read and write storages (the memory of tensors), scalars and sizes.

    Attributes
    ----------
    inputs, outputs
        The storages that the caller provides, as indices in `storages`.  The function reads `inputs` and writes
        `outputs`.  It also writes the `updated_inputs`.
    sizes
        The dimension variables that the caller provides, each with its minimum, and its maximum or None if unbounded.
    scalars, results
        The scalar parameters, and the variables that contain the scalar results at the end.
    storages, size_bytes
        The storages, and the maximum size of each storage in bytes.  The size is 0 for storages that need no memory of
        their own: those that the caller provides, and the tensor parameters of sections.
    sections
        The statements of the function itself, followed by those of every further member of its recursive group (a set
        of functions that call each other in tail position).  A call of a member is a jump to its section (`Continue`).
        The tensor parameters of a section are input storages, and its scalar and size parameters are variables.
    variables
        For each variable of the lowered source functions, the storages of the tensors in its value, as indices in
        `storages`.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sizes: tuple[tuple[DimVar, int, int | None], ...]
    scalars: tuple[ScalarVar, ...]
    results: tuple[ScalarVar, ...]
    storages: tuple[TensorStorage, ...]
    size_bytes: tuple[int, ...]
    sections: tuple[tuple[Statement, ...], ...]
    variables: Mapping[Var, tuple[int, ...]]

    def storage_info(self, ids: Sequence[int]) -> StorageInfo:
        """Return the StorageInfo of the storages at the indices `ids`."""
        found = [self.storages[number] for number in ids]
        sizes_bytes = (product((*storage.shape, storage.dtype.size_bytes)) for storage in found)
        return StorageInfo(tuple(ids), tuple(storage.device for storage in found), tuple(sizes_bytes))

    @property
    def updated_inputs(self) -> frozenset[int]:
        """The inputs that the function updates."""
        targets = {statement.target for statement in self.statements() if isinstance(statement, Copy)}
        return frozenset(targets.intersection(self.inputs))

    def statements(self) -> Iterator[Statement]:
        """Yield every statement in preorder.  The index of a statement in this order is its point."""
        return statements_in(tuple(statement for section in self.sections for statement in section))


@dataclass(frozen=True)
class LoweredModule:
    """A lowered module.

    functions: callees before callers, the entry last.
    calls: the calling convention of kernels.
    inputs, outputs: the inputs and outputs of the entry, in the order of its parameters and results.
    """

    functions: tuple[LoweredFunction, ...]
    kernels: dict[str, Kernel]
    calls: CallKind
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def externs(self) -> tuple[str, ...]:
        """The names of the packed functions of the host that the module calls."""
        statements = (statement for function in self.functions for statement in function.statements())
        return tuple(dict.fromkeys(each.name for each in statements if isinstance(each, CallExtern)))


@dataclass(frozen=True)
class Port:
    """An input or output of the entry function.

    name: its name in C.   value: the index of the storage of a tensor, or the variable of a scalar or a size.
    """

    name: str
    value: int | ScalarVar | DimVar


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement in preorder: a Branch is followed by the statements in its branches."""
    for statement in body:
        yield statement
        if isinstance(statement, Branch):
            yield from statements_in(statement.then)
            yield from statements_in(statement.orelse)


def always_continues(body: Sequence[Statement]) -> bool:
    """Return whether every path through `body` ends with a Continue (a jump).

    If so, execution never reaches the end of `body`.
    """
    match body:
        case (*_, Continue()):
            return True
        case (*_, Branch(_, then, orelse)):
            return always_continues(then) and always_continues(orelse)
    return False
