"""Virtual registers and blocks of kernel bytecode, and helper functions for the printers of kernel bytecode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from heapq import heappop, heappush

from relvm.data_classes import dataclass
from relvm.errors import counted
from relvm.ir.dtypes import BOOL, F16, F32, F64, I8, DType
from relvm.ir.loop_ir import MATH_H_NAMES, Buffer, Local, Operation, Scalar, Statement
from relvm.ir.symbolic import AnyDim, DimVar, as_var
from relvm.kernels.lowering_rules import flat_position
from relvm.tables import KERNEL_OPCODES, MICRO_KERNELS, STATUS, element_functions, kernel_constant, numbers

STRIP = kernel_constant("STRIP")
NO_REGISTER = LIMIT = 0xFFFF
OPCODES, MICRO_KERNEL_NUMBERS = numbers(KERNEL_OPCODES), numbers(MICRO_KERNELS)
STATUS_NUMBERS = numbers(STATUS)
FUNCTION_NUMBERS = {function.name: number for number, function in enumerate(element_functions())}
SWAPPED = {"gt": "lt", "ge": "le"}
# Functions of loop IR whose names in csrc/tables/kernel_functions.def and kernel_opcodes.def differ.
ELEMENT_FUNCTIONS = {"rem": "mod", "max": "larger", "min": "smaller", **MATH_H_NAMES}
SCALAR_OPS = {"add", "sub", "mul", "div", "mod", "larger", "smaller", "lt", "le", "eq", "ne"}  # opcodes for i64
LOADS = ("view", "strided", "gather", "load_rows")


@dataclass(eq=False, slots=True)
class Reg:
    """A virtual register.

    kind: "scalar", "strip" or "view".
    depth: the nesting depth of the block that defines the register.
    is_mutable: whether it is written more than once.
    value: the contents as an i64 if the register is a constant, otherwise None.
    limit: an upper bound of the contents as an i64, or None if no bound is known.
    """

    kind: str
    depth: int = 0
    is_mutable: bool = False
    value: int | None = None
    limit: int | None = None


@dataclass(eq=False, slots=True)
class Label:
    """A jump target, which is the position of the label in the code."""


@dataclass(eq=False, slots=True)  # not frozen, because it takes longer to create a frozen object
class Instruction:
    """An instruction of kernel bytecode, with virtual registers as operands.

    op: the name of the opcode.   source: the statement for which the instruction was first emitted, or None.
    """

    op: str
    operands: tuple[Reg | Label | int, ...]
    source: Statement | None = None


@dataclass(eq=False, slots=True)
class Block:
    """A block of code under construction.

    depth: the number of enclosing blocks.
    reusable: the results that later instructions can reuse, as a dict.  The key consists of the opcode and operands of
    an instruction without side effects, and the value is the register with its result.
    """

    depth: int
    parent: Block | None
    code: list[Instruction | Label] = field(default_factory=list)
    reusable: dict[tuple, Reg] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Affine:
    """A strip that is not stored: the i64 numbers `first`, `first + step`, `first + 2 * step` and so on.

    row_step: if the strip consists of several rows, the difference between the first numbers of consecutive rows.
    """

    first: Reg
    step: Reg
    row_step: Reg


StripValue = Reg | Affine  # a scalar register is a strip of equal elements


def buffer_position(buffer: Buffer, indices: tuple[Scalar, ...]) -> Scalar:
    """Return the row-major position of an element of `buffer`.

    indices: the index along each axis, or a single item, which is the row-major position itself.
    """
    if len(indices) != len(buffer.shape):
        assert len(indices) == 1, f"{buffer.name} has rank {len(buffer.shape)}, got {counted(len(indices), 'index')}"
        return indices[0]
    return flat_position(indices, buffer.shape)


def conversions(source: DType, target: DType) -> Iterator[str]:
    """Yield the names of the functions that convert an element from `source` to `target`, in order of application.

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


def element_function(function: str, dtype: DType) -> str:
    """Return the name of the element function that computes a function of loop IR on operands of `dtype`."""
    if function.startswith("rvm_"):
        return function
    if dtype is BOOL and function in ("and", "or", "not"):
        return f"logical_{function}"
    return f"{ELEMENT_FUNCTIONS.get(function, function)}_{dtype}"


def function_number(name: str) -> int:
    return FUNCTION_NUMBERS[name]


def min_or_max(scalar: Scalar) -> str | None:
    """Return "max" if `scalar` is the maximum of two numbers, "min" if it is the minimum, otherwise None."""
    match scalar:
        case Operation("select", (Operation("lt" | "gt" as function, (left, right)), then, orelse)):
            if then is left and orelse is right:
                return "max" if function == "gt" else "min"
    return None


def combination(value: Scalar, total: Local) -> tuple[str, Scalar]:
    """Return the function and the element by which a reduction updates the variable `total`.

    value: the new value of `total`.  For example, the result for total + x is ("add", x).
    """
    match value:
        case Operation("add" | "mul" as function, (left, right)) if is_local(left, total):
            return function, right
        case Operation("add" | "mul" as function, (left, right)) if is_local(right, total):
            return function, left
        case Operation("select", (_, then, orelse)) if (name := min_or_max(value)) and is_local(orelse, total):
            return name, then
    raise AssertionError(f"not a reduction into {total.name}")


def variable_of(dim: AnyDim) -> DimVar:
    var = as_var(dim)
    assert var is not None, f"kernel shape with a compound dimension {dim}"
    return var


def is_local(scalar: Scalar, local: Local) -> bool:
    return isinstance(scalar, Local) and scalar.name == local.name


@dataclass(eq=False, slots=True)
class LiveRange:
    """The live range of a strip or view register.

    first, last: the positions of the first and the last instruction that use the register.
    size: for a view, the size of an element in bytes, otherwise None.
    """

    first: int
    last: int
    size: object


def number_registers(
    code: list[Instruction | Label], first_scalars: Iterable[Reg]
) -> tuple[dict[Reg | Label | int, int], tuple[int, int, int]]:
    """Assign a number to each register, and to each label the index of the instruction that follows it.

    Return two items: a dict from each register or label to its number or index, and the tuple (number of scalar
    registers, number of strip registers, number of view registers).  The key type of the dict includes int only so that
    any operand can be looked up: no key is an int.

    Scalar registers are numbered first: those of `first_scalars`, then the others.  Strips follow, then views.

    Strips with disjoint live ranges can share a number, and so can views whose elements have the same size.  If a loop
    uses a register that is defined before the loop, its live range extends to the end of the loop.
    """
    numbers: dict[Reg | Label | int, int] = {reg: i for i, reg in enumerate(first_scalars)}
    scalars = len(numbers)
    positions: dict[Reg | Label | int, int] = {}
    ranges: dict[str, dict[Reg, LiveRange]] = {"strip": {}, "view": {}}
    loops: list[tuple[int, int]] = []
    position = 0
    for item in code:
        if isinstance(item, Label):
            positions[item] = position
            continue
        for operand in item.operands:
            if isinstance(operand, Reg):
                if operand.kind == "scalar":
                    if operand not in numbers:
                        numbers[operand] = scalars
                        scalars += 1
                elif operand in ranges[operand.kind]:
                    ranges[operand.kind][operand].last = position
                else:
                    # The first instruction that uses a view creates it.  Its last operand is the size of an element.
                    size = item.operands[-1] if operand.kind == "view" else None
                    ranges[operand.kind][operand] = LiveRange(position, position, size)
            elif operand in positions:
                loops.append((positions[operand], position))
        position += 1
    counts = [scalars]
    for live in ranges.values():
        for top, end in loops:  # inner loops come before outer loops
            for used in live.values():
                if used.first < top <= used.last < end:
                    used.last = end
        counts.append(_share_numbers(live, numbers, sum(counts)))
    return numbers | positions, (counts[0], counts[1], counts[2])


def _share_numbers(live: dict[Reg, LiveRange], numbers: dict[Reg | Label | int, int], start: int) -> int:
    """Assign consecutive numbers to registers, beginning with `start`.  Return how many numbers are in use.

    live: the live ranges of the registers, sorted by their beginnings.
    numbers: the dict to which the registers and their numbers are added.

    Registers with disjoint live ranges share a number if their sizes (LiveRange.size) are equal.  The verifier requires
    equal sizes for views.
    """
    free: dict[object, list[int]] = {}
    ends: list[tuple[int, int, object, int]] = []  # a heap of (end of the live range, serial, size, number)
    count = 0
    for serial, (reg, used) in enumerate(live.items()):
        while ends and ends[0][0] < used.first:
            *_, size, number = heappop(ends)
            free.setdefault(size, []).append(number)
        if free.get(used.size):
            numbers[reg] = free[used.size].pop()
        else:
            numbers[reg] = start + count
            count += 1
        heappush(ends, (used.last, serial, used.size, numbers[reg]))
    return count


def size_numbers(buffers: tuple[Buffer, ...]) -> dict[DimVar, int]:
    sizes: dict[DimVar, int] = {}
    for buffer in buffers:
        for dim in buffer.shape:
            var = as_var(dim)
            if var and var not in sizes:
                sizes[var] = len(sizes)
    return sizes
