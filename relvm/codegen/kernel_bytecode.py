"""Kernel bytecode: converts the loop nest of a kernel to a program for csrc/kernels/kernel_interpreter.c.

Scalar instructions control loops, and compute positions and sizes.  A SIMD loop runs over strips: each instruction in
it processes up to STRIP elements.  A load of contiguous elements does not copy them.  It creates a view: a strip whose
elements remain in the buffer.  Loop-invariant scalar expressions are moved out of loops.
Source: Boncz, Zukowski and Nes, MonetDB/X100: Hyper-Pipelining Query Execution, 2005.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from relvm.bytecode.kernel_program import KernelProgram
from relvm.codegen.kernel_registers import (
    ELEMENT_FUNCTIONS,
    LIMIT,
    MICRO_KERNEL_NUMBERS,
    OPCODES,
    SCALAR_OPS,
    STATUS_NUMBERS,
    SWAPPED,
    Block,
    Instruction,
    Label,
    Reg,
    StripValue,
    buffer_position,
    conversions,
    element_function,
    function_number,
    min_or_max,
    number_registers,
    size_numbers,
    variable_of,
)
from relvm.codegen.kernel_strips import StripPrinter
from relvm.codegen.strip_axis import for_blocks, max_width, suits_blocks, suits_strips
from relvm.errors import RelvmUnsupportedError
from relvm.ir.dtypes import BOOL, I64, DType
from relvm.ir.loop_ir import (
    Address,
    Allocate,
    Assign,
    Buffer,
    Fail,
    IfThen,
    Invoke,
    Let,
    Literal,
    Load,
    Local,
    Loop,
    Operation,
    Parallel,
    Scalar,
    Size,
    Statement,
    Store,
    operands_of,
    statements_in,
)
from relvm.ir.scalar_ops import PYTHON_FUNCTIONS
from relvm.ir.symbolic import AnyDim, DimVar, as_var, known_size
from relvm.kernels.kernel import Kernel


def print_kernel_bytecode(kernel: Kernel) -> KernelProgram:
    """Return the kernel bytecode of a kernel.

    Raises
    ------
    RelvmUnsupportedError
        The program would have more registers or instructions than the format allows.
    """
    return _Printer(kernel).program()


def print_with_sources(kernel: Kernel) -> tuple[KernelProgram, tuple[Statement | None, ...]]:
    """Return the kernel bytecode of a kernel, and for each instruction the statement from which it was generated."""
    printer = _Printer(kernel)
    program = printer.program()
    return program, tuple(item.source for item in printer.block.code if isinstance(item, Instruction))


def literal_bits(value: bool | int | float, dtype: DType) -> int:
    """Return the contents of a scalar register that holds `value` as a number of dtype `dtype`.

    The number is in the low bytes of the register.  All other bits are 0.
    """
    if type(value) is int and dtype.is_integer and dtype.bits >= 8:
        return value & ((1 << dtype.bits) - 1)
    with np.errstate(all="ignore"):
        content = np.asarray(value).astype(dtype.numpy).tobytes()
    return int.from_bytes(content, "little")


class _Printer:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.sizes = size_numbers((*kernel.inputs, *kernel.outputs))
        self.size_registers = [Reg("scalar") for _ in self.sizes]
        self.constants: dict[int, Reg] = {}
        self.integers: dict[bool | int | float, Reg] = {}  # the register of each i64 constant
        self.buffers: dict[str, int] = {b.name: i for i, b in enumerate((*kernel.inputs, *kernel.outputs))}
        self.arrays: list[tuple[int, int]] = []
        self.scratch = 0
        self.arguments: list[Reg | int] = []
        self.messages: dict[str, int] = {}
        self.env: dict[str, StripValue] = {}
        self.reads: dict[Scalar, tuple[frozenset[str], bool]] = {}  # results of `locals_in` and `has_load`
        self.block = Block(0, None)
        self.current: Statement | None = None  # the statement that is being printed
        self.assigned = {s.local.name for s in statements_in(kernel.body) if isinstance(s, Assign)}

    # ---- the program ----

    def program(self) -> KernelProgram:
        self.statements(self.kernel.body)
        self.emit("end")
        code = self.block.code
        instructions = [item for item in code if isinstance(item, Instruction)]
        used = {*self.arguments}.union(*(item.operands for item in instructions))
        self.constants = {bits: reg for bits, reg in self.constants.items() if reg in used}
        numbers, counts = number_registers(code, (*self.size_registers, *self.constants.values()))
        number_of: Callable[[Any, Any], int] = numbers.get  # integer operands are not in `numbers`, and do not change
        rows = tuple((OPCODES[item.op], *map(number_of, item.operands, item.operands)) for item in instructions)
        arguments = tuple(map(number_of, self.arguments, self.arguments))
        if max(sum(counts), len(rows), len(arguments), len(self.buffers)) >= LIMIT:
            raise RelvmUnsupportedError(f"kernel {self.kernel.name}: too large for kernel bytecode")
        tensors: list[int] = []
        for buffer in (*self.kernel.inputs, *self.kernel.outputs):
            dims = (dim if isinstance(dim, int) else -1 - self.sizes[variable_of(dim)] for dim in buffer.shape)
            tensors += [buffer.dtype.index, len(buffer.shape), *dims]
        return KernelProgram(
            tuple(tensors),
            len(self.kernel.inputs),
            len(self.kernel.outputs),
            len(self.sizes),
            tuple(self.constants),
            counts,
            tuple(self.arrays),
            rows,
            arguments,
            tuple(self.messages),
            self.scratch,
        )

    # ---- emission ----

    def emit(self, op: str, *operands: Reg | Label | int) -> None:
        self.block.code.append(Instruction(op, operands, self.current))

    def new(self, kind: str = "scalar", *, is_mutable: bool = False) -> Reg:
        return Reg(kind, self.block.depth, is_mutable)

    def constant(self, value: bool | int | float, dtype: DType = I64) -> Reg:
        if dtype is I64 and (known := self.integers.get(value)):
            return known
        bits = literal_bits(value, dtype)
        reg = self.constants.get(bits)
        if reg is None:
            signed = bits - (1 << 64) * (bits >> 63)
            reg = self.constants[bits] = Reg("scalar", value=signed, limit=signed)
        if dtype is I64:
            self.integers[value] = reg
        return reg

    def reuse_or_emit(self, op: str, *operands: Reg | int) -> Reg:
        """Return the register with the result of an instruction without side effects.

        Emit the instruction in the outermost block in which all operands are defined, so that loop-invariant
        instructions move out of loops.  If that block already contains an equal instruction, reuse its result instead.
        """
        depth = 0
        for operand in operands:
            if isinstance(operand, Reg):
                if operand.is_mutable:
                    result = self.new()
                    self.emit(op, result, *operands)
                    return result
                depth = max(depth, operand.depth)
        target_block = self.block
        while target_block.depth > depth and target_block.parent is not None:
            target_block = target_block.parent
        key = (op, *operands)
        reusable = target_block.reusable.get(key)
        if reusable is None:
            reusable = target_block.reusable[key] = Reg("scalar", target_block.depth)
            target_block.code.append(Instruction(op, (reusable, *operands), self.current))
        return reusable

    @contextmanager
    def open_block(self) -> Iterator[Block]:
        """A context manager that opens a nested block of code, and yields it.  Code is emitted to the innermost block.

        Afterwards, the caller must append the block's code to the enclosing block.
        """
        block = self.block = Block(self.block.depth + 1, self.block)
        yield block
        assert block.parent is not None
        self.block = block.parent

    # ---- statements ----

    def statements(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        outer, self.current = self.current, statement
        match statement:
            case Loop() if changed := for_blocks(statement):
                self.statements(changed)
            case Loop() if statement.kind == "simd" or suits_strips(statement):
                StripPrinter(self, statement).write()
            case Loop() if suits_blocks(statement):
                self.print_row_blocks(statement)
            case Loop():
                self.loop(statement)
            case Parallel():
                self.parallel(statement)
            case Store(buffer, indices, value):
                position = self.position(buffer, indices)
                self.emit("store", self.buffers[buffer.name], position, self.scalar(value), buffer.dtype.size_bytes)
            case Let(local, value) if local.name in self.assigned:
                self.env[local.name] = reg = self.new(is_mutable=True)
                self.emit("copy", reg, self.scalar(value))
            case Let(local, value):
                reg = self.scalar(value)
                if reg.is_mutable:
                    reg, mutable = self.new(), reg
                    self.emit("copy", reg, mutable)
                self.env[local.name] = reg
            case Assign(local, value):
                target = self.env[local.name]
                assert isinstance(target, Reg)
                self.emit("copy", target, self.scalar(value))
            case Allocate(buffer):
                self.allocate(buffer)
            case Invoke():
                self.invoke(statement)
            case Fail(status, message, values):
                first = len(self.arguments)
                self.arguments += [self.scalar(value) for value in values]
                number = self.messages.setdefault(message, len(self.messages))
                self.emit("fail", STATUS_NUMBERS[status], number, first if values else 0, len(values))
            case IfThen(cond, then, orelse):
                self.branch(self.scalar(cond), then, orelse)
        self.current = outer

    def loop(self, loop: Loop) -> None:
        start, stop = self.scalar(loop.start), self.scalar(loop.stop)
        top, end = Label(), Label()
        names = self.locals_in(loop.stop) & self.assigned
        assigns = names and any(isinstance(s, Assign) and s.local.name in names for s in statements_in(loop.body))
        changes = assigns or self.has_load(loop.stop)
        if changes:  # as in C, the end of the loop is evaluated in each iteration
            first, stop = stop, self.new(is_mutable=True)
            self.emit("copy", stop, first)
        with self.open_block() as body:
            self.env[loop.counter.name] = counter = self.new()
            self.statements(loop.body)
            if changes:
                self.emit("copy", stop, self.scalar(loop.stop))
        self.close_loop(body, counter, start, stop, top, end)

    def print_row_blocks(self, loop: Loop) -> None:
        """Print `loop`, whose last statement is a SIMD loop, as a loop over blocks of rows.

        A row consists of all iterations of the SIMD loop for one iteration of `loop` (relvm/codegen/strip_axis.py).  If
        a row could be longer than `max_width(loop)`, the original two loops are printed, too.  A test at run time
        selects them for such rows.
        """
        inner = loop.body[-1]
        assert isinstance(inner, Loop)
        width = self.binary("sub", I64, self.scalar(inner.stop), self.scalar(inner.start))
        most = max_width(loop)
        if width.limit is not None and width.limit <= most:
            StripPrinter(self, loop).write_blocks()
            return
        past, end = Label(), Label()
        outer = dict(self.env)
        with self.open_block() as short:
            StripPrinter(self, loop).write_blocks()
        with self.open_block() as long:
            self.loop(loop)
        self.env = outer
        self.emit("unless", self.binary("le", I64, width, self.constant(most)), past)
        self.block.code += short.code
        self.emit("jump", end)
        self.block.code += [past, *long.code, end]

    def close_loop(self, body: Block, counter: Reg, start: Reg, stop: Reg, top: Label, end: Label) -> None:
        """Emit the code of `body` in a loop over [start, stop).

        counter: the register of the loop counter.   top, end: the labels at the start of the body and after the loop.
        """
        self.emit("loop", counter, start, stop, end)
        self.block.code += [top, *body.code]
        self.emit("next", counter, stop, top)
        self.block.code.append(end)

    def parallel(self, loop: Parallel) -> None:
        count, grain, end = self.scalar(loop.count), self.scalar(loop.grain), Label()
        arrays = len(self.arrays)
        with self.open_block() as body:
            self.env[loop.first.name], self.env[loop.last.name] = first, last = self.new(), self.new()
            self.statements(loop.body)
            self.emit("end")
        self.emit("parallel", first, last, count, grain, end, arrays, len(self.arrays))
        self.block.code += [*body.code, end]

    def branch(self, cond: Reg, then: tuple[Statement, ...], orelse: tuple[Statement, ...]) -> None:
        past, end = Label(), Label()
        outer = dict(self.env)
        with self.open_block() as first:
            self.statements(then)
        self.env = dict(outer)
        with self.open_block() as second:
            self.statements(orelse)
        self.env = outer
        self.emit("unless", cond, past)
        self.block.code += first.code
        if second.code:
            self.emit("jump", end)
        self.block.code += [past, *second.code, end]

    def allocate(self, buffer: Buffer) -> None:
        size = math.prod(map(known_size, buffer.shape)) * buffer.dtype.size_bytes
        self.buffers[buffer.name] = len(self.kernel.inputs) + len(self.kernel.outputs) + len(self.arrays)
        self.arrays.append((self.scratch, size))
        self.scratch += -(-size // 64) * 64

    def invoke(self, invoke: Invoke) -> None:
        operands: list[Reg | int] = []
        for arg in invoke.args:
            if isinstance(arg, Address):
                operands += [self.buffers[arg.buffer.name], self.scalar(arg.position)]
            else:
                operands.append(self.scalar(arg))
        self.emit("invoke", MICRO_KERNEL_NUMBERS[invoke.function], len(self.arguments), len(operands))
        self.arguments += operands

    # ---- scalars ----

    def locals_in(self, scalar: Scalar) -> frozenset[str]:
        """Return the names of the variables that the expression `scalar` reads."""
        return self.analyze_reads(scalar)[0]

    def has_load(self, scalar: Scalar) -> bool:
        """Return whether the expression `scalar` reads an element of a buffer."""
        return self.analyze_reads(scalar)[1]

    def analyze_reads(self, scalar: Scalar) -> tuple[frozenset[str], bool]:
        """Return the names of the variables that the expression `scalar` reads, and whether it reads an element of a
        buffer.

        The result is cached.
        """
        reads = self.reads.get(scalar)
        if reads is None:
            names = frozenset((scalar.name,)) if isinstance(scalar, Local) else frozenset()
            is_load = isinstance(scalar, Load)
            for operand in operands_of(scalar):
                inner, loads = self.analyze_reads(operand)
                names, is_load = names | inner, is_load or loads
            reads = self.reads[scalar] = names, is_load
        return reads

    def scalar(self, scalar: Scalar) -> Reg:
        match scalar:
            case Literal(value, dtype):
                return self.constant(value, dtype)
            case Local(name):
                reg = self.env[name]
                assert isinstance(reg, Reg) and reg.kind == "scalar", f"{name} varies along the strip"
                return reg
            case Size(dim):
                return self.size(dim)
            case Load(buffer, indices):
                result = self.new()
                position = self.position(buffer, indices)
                self.emit("load", result, self.buffers[buffer.name], position, buffer.dtype.size_bytes)
                return result
            case Operation():
                return self.operation(scalar)
        raise AssertionError(f"cannot translate {type(scalar).__name__} to bytecode")

    def operation(self, operation: Operation) -> Reg:
        operands, dtype = operation.operands, operation.dtype
        match operation.function:
            case "and" | "or" as function if dtype is BOOL and self.has_load(operands[1]):
                return self.short_circuit(function, *operands)
            case "select" if self.has_load(operands[1]) or self.has_load(operands[2]):
                return self.lazy_select(*operands)
            case "select":
                if extreme := min_or_max(operation):
                    return self.apply(extreme, dtype, self.scalar(operands[1]), self.scalar(operands[2]))
                return self.reuse_or_emit("select", *map(self.scalar, operands))
            case "cast":
                converted = self.scalar(operands[0])
                for name in conversions(operands[0].dtype, dtype):
                    converted = self.reuse_or_emit("apply", converted, converted, function_number(name))
                return converted
            case "neg" if dtype == I64:
                subtracted = self.scalar(operands[0])
                return self.binary("sub", I64, self.constant(0), subtracted)
            case "fma":
                *factors, total = map(self.scalar, operands)
                result = self.new(is_mutable=True)
                self.emit("copy", result, total)
                self.emit("apply", result, *factors, function_number("fma_f32"))
                result.is_mutable = False
                return result
        values = [self.scalar(operand) for operand in operands]
        return self.binary(operation.function, operands[0].dtype, values[0], values[-1])

    def binary(self, function: str, dtype: DType, left: Reg, right: Reg) -> Reg:
        """Return the register with the result of a function of operands of `dtype`.

        left, right: the operands, which are the same register if the function has only one.
        """
        if function in SWAPPED:
            function, left, right = SWAPPED[function], right, left
        if dtype == I64 and (fold := self.fold(function, left, right)) is not None:
            return fold
        return self.apply(function, dtype, left, right)

    def fold(self, function: str, left: Reg, right: Reg) -> Reg | None:
        """Fold an i64 operation on constants, or simplify an operation with 0 or 1.

        Return the register with the result, or None if an instruction is needed to compute it.

        function: the operator, such as "add".
        left, right: the registers of the operands.
        """
        a, b = left.value, right.value
        if a is not None and b is not None and function in ("add", "sub", "mul") and abs(a) < 2**31 and abs(b) < 2**31:
            return self.constant(PYTHON_FUNCTIONS[function](a, b))
        if (function == "add" and a == 0) or (function == "mul" and a == 1):
            return right
        if (function in ("add", "sub") and b == 0) or (function in ("mul", "div") and b == 1):
            return left
        return self.constant(0) if function == "mul" and 0 in (a, b) else None

    def apply(self, function: str, dtype: DType, left: Reg, right: Reg) -> Reg:
        opcode = ELEMENT_FUNCTIONS.get(function, function)
        if dtype == I64 and opcode in SCALAR_OPS:
            result = self.reuse_or_emit(opcode, left, right)
            if function == "min":
                limits = [reg.limit for reg in (left, right) if reg.limit is not None]
                result.limit = min(limits, default=None)
            return result
        return self.reuse_or_emit("apply", left, right, function_number(element_function(function, dtype)))

    def short_circuit(self, function: str, left: Scalar, right: Scalar) -> Reg:
        literal = Literal(function == "or", BOOL)
        return self.lazy_select(left, literal, right) if function == "or" else self.lazy_select(left, right, literal)

    def lazy_select(self, cond: Scalar, then: Scalar, orelse: Scalar) -> Reg:
        """Print the expression `cond ? then : orelse` with jumps, so that only the selected operand is computed.

        The other operand could load an element outside its buffer.
        """
        result, past, end = self.new(is_mutable=True), Label(), Label()
        test = self.scalar(cond)
        with self.open_block() as first:
            self.emit("copy", result, self.scalar(then))
        with self.open_block() as second:
            self.emit("copy", result, self.scalar(orelse))
        self.emit("unless", test, past)
        self.block.code += first.code
        self.emit("jump", end)
        self.block.code += [past, *second.code, end]
        result.is_mutable = False
        return result

    def size(self, dim: AnyDim) -> Reg:
        if isinstance(dim, int):
            return self.constant(dim)
        if var := as_var(dim):
            return self.size_registers[self.sizes[var]]
        total = self.constant(0)
        for monomial, coefficient in dim.terms:
            term = self.constant(coefficient)
            for atom in monomial:
                assert isinstance(atom, DimVar), f"a compound size {dim}"
                term = self.binary("mul", I64, term, self.size_registers[self.sizes[atom]])
            total = self.binary("add", I64, total, term)
        return total

    def position(self, buffer: Buffer, indices: tuple[Scalar, ...]) -> Reg:
        return self.scalar(buffer_position(buffer, indices))
