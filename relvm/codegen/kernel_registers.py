"""Virtual registers and blocks of kernel bytecode, and helper functions for the printers of kernel bytecode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relvm.ir.dtypes import F16, F32, F64, I8, I64, DType
from relvm.ir.symbolic import AnyDim, DimVar, as_var
from relvm.kernels.loop_ir import (
    Binary,
    Buffer,
    Convert,
    Intrinsic,
    Literal,
    Load,
    Local,
    Scalar,
    Select,
    Size,
    Statement,
    Unary,
)
from relvm.tables import KERNEL_OPCODES, MICRO_KERNELS, STATUS, element_functions, numbers

STRIP = 512  # csrc/kernels/kernel_program.h
NO_REGISTER = LIMIT = 0xFFFF
OPCODES, MICRO_KERNEL_NUMBERS = numbers(KERNEL_OPCODES), numbers(MICRO_KERNELS)
STATUS_NUMBERS = numbers(STATUS)
FUNCTION_NUMBERS = {name: number for number, name in enumerate(element_functions)}
NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "&": "and", "|": "or", "^": "xor"}
NAMES |= {"<<": "shl", ">>": "shr", "<": "lt", "<=": "le", "==": "eq", "!=": "ne"}
SWAPPED = {">": "<", ">=": "<="}
SCALAR_OPS = {"add", "sub", "mul", "div", "mod", "larger", "smaller", "lt", "le", "eq", "ne"}  # opcodes for i64
LOADS = ("view", "strided", "gather", "load_rows")
CLAUSES = {"+": "add", "*": "mul", "max": "larger", "min": "smaller", "|": "or"}


@dataclass(eq=False)
class Reg:
    """A virtual register.

    kind: "scalar", "strip" or "view".   depth: the nesting depth of the block that defines the register.
    is_mutable: whether it is written more than once.
    """

    kind: str
    depth: int = 0
    is_mutable: bool = False


@dataclass(eq=False)
class Label:
    """A jump target: a position in the code."""


@dataclass(frozen=True, eq=False)
class Instruction:
    """An instruction.   source: the statement for which it was first emitted, or None."""

    op: str
    operands: tuple[Reg | Label | int, ...]
    source: Statement | None = None


@dataclass
class Block:
    """A block of code under construction.

    known: the opcode and operands of an instruction without side effects -> the register with its result.
    """

    depth: int
    parent: Block | None
    code: list[Instruction | Label] = field(default_factory=list)
    known: dict[tuple, Reg] = field(default_factory=dict)


@dataclass(frozen=True)
class Affine:
    """A strip of the i64 numbers first, first + step, first + 2 * step...

    row_step: the difference between the first numbers of consecutive rows, if the strip is a block of rows.
    """

    first: Reg
    step: Reg
    row_step: Reg


StripValue = Reg | Affine  # a scalar register is a strip of equal elements


def flat_position(buffer: Buffer, indices: tuple[Scalar, ...]) -> Scalar:
    """Return the row-major position of an element.

    If there is a single index and the rank of the buffer is not 1, the index already is that position.
    """
    if len(indices) != len(buffer.shape):
        assert len(indices) == 1, f"{len(indices)} indices into {buffer.name} of rank {len(buffer.shape)}"
        return indices[0]
    total: Scalar = Literal(0, I64)
    for i, (index, dim) in enumerate(zip(indices, buffer.shape, strict=True)):
        total = index if i == 0 else total * Size(dim) + index
    return total


def conversions(source: DType, target: DType) -> Iterator[str]:
    """Yield the names of the functions that convert an element from one dtype to another, in order.

    Conversions to and from floats narrower than f32 go through f32.  The conversion of f64 to f16 is rounded only once.
    Conversions to and from integers of less than a byte go through i8.
    """
    if target.is_narrow_float:
        if (source, target) == (F64, F16):
            yield "rvm_odd_f32_of_f64"
        else:
            yield from _plain_conversions(source, F32)
        yield f"rvm_{target}_of_f32"
    elif target.is_integer and target.bits < 8:
        yield from _plain_conversions(source, I8)
        yield f"rvm_{target}_of_i8"
    else:
        yield from _plain_conversions(source, target)


def _plain_conversions(source: DType, target: DType) -> Iterator[str]:
    if source.is_narrow_float:
        yield f"rvm_f32_of_{source}"
        source = F32
    elif source.is_integer and source.bits < 8:
        yield f"rvm_i8_of_{source}"
        source = I8
    if source != target:
        yield f"to_{target}_{source}"


def intrinsic(name: str, dtype: DType) -> str:
    return name if name.startswith("rvm_") else f"{name}_{dtype}"


def function_number(name: str) -> int:
    return FUNCTION_NUMBERS[name]


def extreme_of(scalar: Scalar) -> str | None:
    """Return "larger" or "smaller" if the expression is the maximum or minimum of two numbers, otherwise None."""
    match scalar:
        case Select(Binary("<" | ">" as function, left, right), then, orelse) if then is left and orelse is right:
            return "larger" if function == ">" else "smaller"
    return None


def combination(value: Scalar, total: Local) -> tuple[str, Scalar]:
    """Match `value` as the update of a reduction: a function of the variable `total` and an element.

    Return the name of the function, and the element.
    """
    match value:
        case Binary("+" | "*" as function, left, right) if is_local(left, total):
            return NAMES[function], right
        case Binary("+" | "*" as function, left, right) if is_local(right, total):
            return NAMES[function], left
        case Select(_, then, orelse) if (name := extreme_of(value)) and is_local(orelse, total):
            return name, then
    raise AssertionError(f"not a reduction into {total.name}")


def parts_of(scalar: Scalar) -> Iterator[Scalar]:
    waiting: list[Scalar] = [scalar]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case Load(indices=parts) | Intrinsic(args=parts):
                waiting += parts
            case Binary(left=left, right=right):
                waiting += (left, right)
            case Unary(operand=operand) | Convert(operand=operand):
                waiting.append(operand)
            case Select(cond, then, orelse):
                waiting += (cond, then, orelse)


def has_load(scalar: Scalar) -> bool:
    return any(isinstance(part, Load) for part in parts_of(scalar))


def changes_with(part: Scalar, assigned: set[str]) -> bool:
    return isinstance(part, Load) or (isinstance(part, Local) and part.name in assigned)


def variable_of(dim: AnyDim) -> DimVar:
    var = as_var(dim)
    assert var is not None, f"kernel shape with a compound dimension {dim}"
    return var


def is_local(scalar: Scalar, local: Local) -> bool:
    return isinstance(scalar, Local) and scalar.name == local.name


def registers_in(code: list[Instruction | Label]) -> Iterator[Reg]:
    for item in code:
        if isinstance(item, Instruction):
            yield from (operand for operand in item.operands if isinstance(operand, Reg))


def allocate_slots(code: list[Instruction | Label], kind: str) -> dict[Reg, int]:
    """Allocate the registers of one kind to slots.  Registers with disjoint live ranges can share a slot.

    A live range extends from the first to the last instruction that uses the register.  If a loop uses a register that
    is defined before the loop, the live range extends to the end of the loop.  Views share a slot only if their
    elements have the same size, because the verifier requires it.
    """
    first: dict[Reg, int] = {}
    last: dict[Reg, int] = {}
    labels: dict[Label, int] = {}
    loops: list[tuple[int, int]] = []
    for place, item in enumerate(code):
        if isinstance(item, Label):
            labels[item] = place
            continue
        for operand in item.operands:
            if isinstance(operand, Reg) and operand.kind == kind:
                first.setdefault(operand, place)
                last[operand] = place
            elif isinstance(operand, Label) and operand in labels:
                loops.append((labels[operand], place))
    for top, end in loops:  # inner loops come before outer loops
        for reg, place in last.items():
            if first[reg] < top < place < end:
                last[reg] = end
    slots: dict[Reg, int] = {}
    free: dict[object, list[int]] = {}
    ends: dict[int, list[tuple[object, int]]] = {}
    count = 0
    for place, item in enumerate(code):
        if isinstance(item, Instruction):
            for operand in item.operands:
                if isinstance(operand, Reg) and operand.kind == kind and operand not in slots:
                    # The first instruction that uses a view creates it.  Its last operand is the size of an element.
                    size: object = item.operands[-1] if kind == "view" else None
                    if free.get(size):
                        slots[operand] = free[size].pop()
                    else:
                        slots[operand] = count
                        count += 1
                    ends.setdefault(last[operand], []).append((size, slots[operand]))
        for size, slot in ends.pop(place, []):
            free.setdefault(size, []).append(slot)
    return slots


def size_numbers(buffers: tuple[Buffer, ...]) -> dict[DimVar, int]:
    sizes: dict[DimVar, int] = {}
    for buffer in buffers:
        for dim in buffer.shape:
            var = as_var(dim)
            if var and var not in sizes:
                sizes[var] = len(sizes)
    return sizes
