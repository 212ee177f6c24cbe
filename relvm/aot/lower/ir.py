"""The lowered form of an export: functions over storages, C scalars and sizes, with neither values nor registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relvm.aot.config import CallKind
from relvm.aot.lower.assign_storage import TensorStorage
from relvm.ir.symbolic import AnyDim, DimVar
from relvm.kernels.loop_ir import Kernel


@dataclass(frozen=True, eq=False)
class ScalarVar:
    """A variable that holds a scalar.  letter: i (int64), f (double) or b (bool), as in
    csrc/tables/scalar_operators.def."""

    name: str
    letter: str


@dataclass(frozen=True)
class ScalarConstant:
    value: bool | int | float


@dataclass(frozen=True)
class DimScalar:
    """A dimension as an int64."""

    dim: AnyDim


Scalar = ScalarVar | ScalarConstant | DimScalar


@dataclass(frozen=True)
class RunKernel:
    """A kernel reads and writes storages.  sizes: the values of its size variables, in order."""

    kernel: str
    storages: tuple[int, ...]
    sizes: tuple[AnyDim, ...]


@dataclass(frozen=True)
class Copy:
    """The elements of one storage go to another."""

    source: int
    target: int
    size_bytes: AnyDim


@dataclass(frozen=True)
class ReadItem:
    """target = the element of a storage at a position."""

    target: ScalarVar
    storage: int
    position: int = 0


@dataclass(frozen=True)
class WriteItem:
    """The element of a storage at a position = a scalar."""

    storage: int
    position: int
    value: Scalar


@dataclass(frozen=True)
class Compute:
    """target = a row of csrc/tables/scalar_operators.def of the arguments, or ARITHMETIC_ERROR where that has no
    value."""

    target: ScalarVar
    row: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True)
class SetScalar:
    target: ScalarVar
    value: Scalar


@dataclass(frozen=True)
class SetSize:
    """A new size is a scalar's value, or SHAPE_ERROR where that is below 0."""

    target: DimVar
    value: Scalar


@dataclass(frozen=True)
class CheckSizes:
    """SHAPE_ERROR unless two sizes are equal."""

    left: AnyDim
    right: AnyDim


@dataclass(frozen=True)
class CheckRange:
    """TYPE_ERROR unless a scalar is in [low, high]."""

    value: Scalar
    low: int
    high: int


@dataclass(frozen=True)
class Check:
    """A status unless a condition holds."""

    cond: Scalar
    status: str


@dataclass(frozen=True)
class Branch:
    cond: Scalar
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class CallFunction:
    """Another function of the export.

    storages: what its input storages are here, then what its output storages are.  sizes, scalars: the values of its
    sizes and scalar parameters.  results: where its scalar results go.
    """

    function: str
    storages: tuple[int, ...]
    sizes: tuple[AnyDim, ...]
    scalars: tuple[Scalar, ...]
    results: tuple[ScalarVar, ...]


@dataclass(frozen=True)
class Move:
    """What a repetition gives a tensor parameter.  home: where it is copied to; None where it can stay where it is,
    because that is not written again."""

    param: int
    source: int
    home: int | None
    size_bytes: AnyDim


@dataclass(frozen=True)
class Continue:
    """The function goes on with one of its sections: a call in tail position of itself, or of a function that ends with
    calls of it.  What is given to parameters is read before any is changed, but for tensors that are copied, one after
    the other."""

    section: int
    moves: tuple[Move, ...]
    sizes: tuple[tuple[DimVar, AnyDim], ...]
    scalars: tuple[tuple[ScalarVar, Scalar], ...]


Statement = (
    RunKernel
    | Copy
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
    """One function.

    Attributes
    ----------
    inputs, outputs
        The numbers of the storages that the caller gives, to be read and to be written.
    sizes
        The dimension variables that the caller gives, each with its least and its greatest value, None
        where it has none.
    scalars, results
        Scalar parameters, and what holds scalar results at the end.
    storages, size_bytes
        By number: each, and the most bytes that it takes; 0 where the caller gives it, and for parameters of sections.
    sections
        The statements: of the function itself, then of those that it goes on with (Repeat), whose tensor parameters are
        input storages, and whose scalars and sizes are variables.
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

    def statements(self) -> Iterator[Statement]:
        """Every statement, those of branches after the branch: its place among them is its point."""
        return statements_in(tuple(statement for section in self.sections for statement in section))


@dataclass(frozen=True)
class LoweredModule:
    """functions: callees before callers, the entry last.  calls: how kernels are called.  inputs, outputs: the entry's,
    in the order of its parameters and results."""

    functions: tuple[LoweredFunction, ...]
    kernels: dict[str, Kernel]
    calls: CallKind
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class Port:
    """An input or output of the entry.  name: in C.  value: the number of a storage, a scalar, or a size."""

    name: str
    value: int | ScalarVar | DimVar


def statements_in(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, those of branches after the branch."""
    for statement in body:
        yield statement
        if isinstance(statement, Branch):
            yield from statements_in(statement.then)
            yield from statements_in(statement.orelse)


def goes_on(body: Sequence[Statement]) -> bool:
    """Whether every way through some statements ends in a repetition."""
    match body:
        case (*_, Continue()):
            return True
        case (*_, Branch(_, then, orelse)):
            return goes_on(then) and goes_on(orelse)
    return False
