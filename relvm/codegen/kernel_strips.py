"""Kernel bytecode of SIMD loops: each instruction processes a strip of elements."""

from __future__ import annotations

from typing import Any

from relvm.codegen.kernel_registers import (
    LOADS,
    NO_REGISTER,
    SWAPPED,
    Affine,
    Instruction,
    Label,
    Reg,
    StripValue,
    buffer_position,
    combination,
    conversions,
    element_function,
    function_number,
    min_or_max,
)
from relvm.ir.dtypes import BOOL, F32, I64, DType
from relvm.ir.loop_ir import (
    SUM_LANES,
    Assign,
    Buffer,
    Let,
    Load,
    Local,
    Loop,
    Operation,
    Scalar,
    Statement,
    Store,
    identity_of,
)

FMA = function_number("fma_f32")


class StripPrinter:
    """Printer of a vectorized loop, in which one iteration processes a strip of iterations of the original loop.

    The original loop is a SIMD loop, or a loop around short loops (relvm/codegen/strip_axis.py).
    """

    def __init__(self, printer: Any, loop: Loop) -> None:
        self.p = printer
        self.loop = loop
        self.counters: dict[str, Affine] = {}  # the counter of a vectorized loop -> its values in the strip
        self.width: Reg | None = None  # the length of a row, if the strip is a block of rows
        self.varying = {loop.counter.name}
        self.lanes: dict[str, tuple[str, Reg]] = {}
        # If the output overwrites an input, inner loops would change the elements of a view.
        self.has_views = loop.kind == "simd" or not printer.kernel.in_place
        self.views: dict[Reg, tuple[str, int]] = {}  # a view -> its buffer, and the size of an element in bytes
        self.known: dict[tuple, Reg] = {}  # opcode and operands -> the strip with the result

    def write(self) -> None:
        p, loop = self.p, self.loop
        start, stop = p.scalar(loop.start), p.scalar(loop.stop)
        top, end = Label(), Label()
        outer = dict(p.env)
        count = p.binary("sub", I64, stop, start)
        # A reduction of floats has a defined order (see Loop).  In a reduction of integers, each element is a lane.
        for clause, local in loop.reduce:
            lanes = Reg("strip", p.block.depth, is_mutable=True)
            is_ordered = local.dtype.is_float
            self.lanes[local.name] = ("accumulate" if is_ordered else "", lanes)
            p.emit(
                "fill",
                lanes,
                p.constant(identity_of(clause, local.dtype), local.dtype),
                p.constant(SUM_LANES) if is_ordered else count,
                local.dtype.size_bytes,
            )
            p.env[local.name] = lanes
            self.varying.add(local.name)
        with p.open_block() as body:
            counter = p.new()
            self.counters = {loop.counter.name: Affine(counter, p.constant(1), p.constant(0))}
            for i, statement in enumerate(loop.body):
                self.statement(statement, is_last=i == len(loop.body) - 1)
        p.emit("strips", counter, start, stop, end)
        p.block.code += [top, *body.code]
        p.emit("next_strip", counter, stop, top)
        p.block.code.append(end)
        p.env = outer
        for clause, local in loop.reduce:
            how, lanes = self.lanes[local.name]
            total = p.env[local.name]
            assert isinstance(total, Reg)
            function = function_number(element_function(clause, local.dtype))
            p.emit("fold_lanes" if how else "fold", total, lanes, count, function)

    def write_blocks(self) -> None:
        """Print a loop around a SIMD loop as one loop over blocks of rows.

        A row consists of all iterations of the SIMD loop for one iteration of the outer loop.  A block is several rows,
        which are processed together as one strip.
        """
        p, loop = self.p, self.loop
        *before, inner = loop.body
        assert isinstance(inner, Loop)
        start, stop, top, end = p.scalar(loop.start), p.scalar(loop.stop), Label(), Label()
        first, last = p.scalar(inner.start), p.scalar(inner.stop)
        self.width = width = p.binary("sub", I64, last, first)
        self.varying.add(inner.counter.name)
        outer = dict(p.env)
        zero, one = p.constant(0), p.constant(1)
        with p.open_block() as body:
            counter = p.new()
            self.counters = {
                loop.counter.name: Affine(counter, zero, one),
                inner.counter.name: Affine(first, one, zero),
            }
            for statement in (*before, *inner.body):
                self.statement(statement, is_last=False)
        p.emit("blocks", counter, start, stop, width, end)
        p.block.code += [top, *body.code]
        p.emit("next_block", counter, stop, width, top)
        p.block.code.append(end)
        p.env = outer

    def statement(self, statement: Statement, *, is_last: bool) -> None:
        p = self.p
        outer, p.current = p.current, statement
        match statement:
            case Let(local, value) if local.name in p.assigned:
                lanes = Reg("strip", p.block.depth, is_mutable=True)
                p.emit("move", lanes, self.strip_of(self.value(value, None), local.dtype), local.dtype.size_bytes)
                p.env[local.name] = lanes
                self.lanes[local.name] = ("", lanes)
                self.varying.add(local.name)
            case Let(local, value) if not self.varies(value):
                p.env[local.name] = p.scalar(value)
            case Let(local, value):
                self.varying.add(local.name)
                result = self.value(value, None)
                if isinstance(result, Reg) and result.is_mutable:
                    result = self.reuse_or_emit_strip("move", result, local.dtype.size_bytes)
                p.env[local.name] = result
            case Assign(local, value):
                self.assign(local, value)
            case Store():
                self.store(statement, is_last=is_last)
            case Loop():
                self.inner_loop(statement)
            case _:
                raise AssertionError(f"cannot translate {type(statement).__name__} in a SIMD loop")
        p.current = outer

    def inner_loop(self, loop: Loop) -> None:
        """Print an inner loop of the loop over strips.  Each iteration of the inner loop processes a whole strip."""
        p, known = self.p, dict(self.known)
        start, stop, top, end = p.scalar(loop.start), p.scalar(loop.stop), Label(), Label()
        with p.open_block() as body:
            p.env[loop.counter.name] = counter = p.new()
            for statement in loop.body:
                self.statement(statement, is_last=False)
        p.close_loop(body, counter, start, stop, top, end)
        self.known = known

    def assign(self, local: Local, value: Scalar) -> None:
        p = self.p
        how, lanes = self.lanes[local.name]
        if how:
            function, element = combination(value, local)
            strip = self.strip_of(self.value(element, None), local.dtype)
            if strip.kind == "scalar":
                strip = self.reuse_or_emit_strip("move", strip, local.dtype.size_bytes)
            p.emit("accumulate", lanes, strip, function_number(element_function(function, local.dtype)))
            return
        result = self.strip_of(self.value(value, None), local.dtype)
        if not self.redirect(result, lanes):
            p.emit("move", lanes, result, local.dtype.size_bytes)

    def store(self, store: Store, *, is_last: bool) -> None:
        p, buffer = self.p, store.buffer
        size = buffer.dtype.size_bytes
        where = self.value(buffer_position(buffer, store.indices), None)
        value = self.strip_of(self.value(store.value, None), buffer.dtype)
        if not is_last:
            self.copy_views(buffer)
        number = p.buffers[buffer.name]
        is_contiguous = isinstance(where, Affine) and self.is_contiguous(where)
        if isinstance(where, Affine) and is_contiguous and self.write_in_place(value, buffer, where.first):
            return
        self.known = {key: reg for key, reg in self.known.items() if key[0] not in LOADS}
        if isinstance(where, Affine) and self.width is not None and not is_contiguous:
            p.emit("store_rows", number, where.first, where.row_step, where.step, self.width, value, size)
        elif isinstance(where, Affine):
            p.emit("store_strided", number, where.first, where.step, value, size)
        elif where.kind == "scalar":
            p.emit("store_strided", number, where, p.constant(0), value, size)
        else:
            p.emit("scatter", number, where, value, size)

    def is_contiguous(self, where: Affine) -> bool:
        """Return whether the elements at the positions `where` are adjacent in memory, one row after the other."""
        return where.step is self.p.constant(1) and (self.width is None or where.row_step is self.width)

    def write_in_place(self, value: Reg, buffer: Buffer, first: Reg) -> bool:
        """Try to change the last instruction so that it writes its result directly to `buffer`, which saves a store.

        Return whether the instruction was changed.  It is unchanged, for example, if it does not compute `value`.

        value: the register that would be stored.   first: the register with the position in the buffer.
        """
        p, size = self.p, buffer.dtype.size_bytes
        if not self.is_last_result(value):
            return False
        last = p.block.code.pop()
        assert isinstance(last, Instruction)
        view = Reg("view", p.block.depth)
        p.emit("view_written", view, p.buffers[buffer.name], first, size)
        p.emit(last.op, view, *last.operands[1:])
        self.views[view] = (buffer.name, size)
        self.known = {key: reg for key, reg in self.known.items() if key[0] not in LOADS and reg is not value}
        p.env.update({name: view for name, reg in p.env.items() if reg is value})
        return True

    def redirect(self, value: Reg, target: Reg) -> bool:
        """Try to change the last instruction so that it writes its result to `target` instead of `value`.

        This saves a copy.  Return whether the instruction was changed.
        """
        if not self.is_last_result(value) or any(reg is value for reg in self.p.env.values()):
            return False
        last = self.p.block.code.pop()
        assert isinstance(last, Instruction)
        self.p.emit(last.op, target, *last.operands[1:])
        self.known = {key: reg for key, reg in self.known.items() if reg is not value}
        return True

    def is_last_result(self, value: Reg) -> bool:
        code = self.p.block.code
        last = code[-1] if code else None
        if not isinstance(last, Instruction) or last.op not in ("apply", "choose") or last.operands[0] is not value:
            return False
        adds = last.op == "apply" and last.operands[-1] == FMA  # this instruction adds to the old contents of the strip
        return not adds and value.kind == "strip" and not value.is_mutable

    def copy_views(self, stored: Buffer) -> None:
        """Emit copies of the variables that are views of buffer `stored`, because the next store would change them.

        If an output of the kernel can share memory with an input, copy the views of all buffers.
        """
        p = self.p
        for name, value in p.env.items():
            if isinstance(value, Reg) and value in self.views:
                buffer, size = self.views[value]
                if buffer == stored.name or p.kernel.in_place:
                    p.env[name] = self.reuse_or_emit_strip("move", value, size)

    # ---- values ----

    def varies(self, scalar: Scalar) -> bool:
        return not self.varying.isdisjoint(self.p.locals_in(scalar))

    def reuse_or_emit_strip(self, op: str, *operands: Reg | int) -> Reg:
        """Return the strip or view with the result of an instruction that has no side effects.

        If an equal instruction was emitted before, reuse its result.  Otherwise emit the instruction.
        """
        key = (op, *operands)
        if key in self.known:
            return self.known[key]
        kind = "view" if op == "view" else "strip"
        result = Reg(kind, self.p.block.depth)
        self.p.emit(op, result, *operands)
        if not any(isinstance(operand, Reg) and operand.is_mutable for operand in operands):
            self.known[key] = result
        return result

    def strip_of(self, value: StripValue, dtype: DType) -> Reg:
        """Return the register that contains `value`.

        The result is a strip or view register, or a scalar register if all elements are equal.  For an Affine (a
        sequence like 0, 2, 4 that is not stored), emit an instruction that stores the sequence in a strip register.
        """
        if isinstance(value, Affine) and self.width is not None:
            return self.reuse_or_emit_strip("iota_rows", value.first, value.row_step, value.step, self.width)
        if isinstance(value, Affine):
            return self.reuse_or_emit_strip("iota", value.first, value.step)
        return value

    def mask_of(self, scalar: Scalar, outer: Reg | None, *, inverted: bool = False) -> Reg:
        """Return a mask, a strip of bools, for the condition `scalar`.

        outer: another mask, or None.  The returned mask is true only where `outer` is also true.
        inverted: whether to negate the condition.
        """
        p = self.p
        mask = self.strip_of(self.value(scalar, outer), BOOL)
        if inverted and mask.kind == "scalar":
            mask = p.reuse_or_emit("apply", mask, mask, function_number("logical_not"))
        elif inverted:
            mask = self.reuse_or_emit_strip("apply", mask, mask, function_number("logical_not"))
        if mask.kind == "scalar":
            mask = self.reuse_or_emit_strip("move", mask, 1)
        if outer is not None:
            mask = self.reuse_or_emit_strip("apply", mask, outer, function_number("logical_and"))
        return mask

    def value(self, scalar: Scalar, mask: Reg | None) -> StripValue:
        """Emit instructions that compute the expression `scalar` for all elements of the strip.  Return the result.

        The result is a register, or an Affine (a sequence like 0, 2, 4 that is not stored).  If all elements are equal,
        it is a scalar register.

        mask: a strip of bools, or None.  Where it is false, loads return 0.
        """
        p = self.p
        if not self.varies(scalar) and (mask is None or not p.has_load(scalar)):
            return p.scalar(scalar)
        match scalar:
            case Local(name):
                return self.counters.get(name) or p.env[name]
            case Load(buffer, indices):
                return self.load(buffer, indices, mask)
            case Operation():
                return self.operation(scalar, mask)
        raise AssertionError(f"cannot translate {type(scalar).__name__} to bytecode")

    def operation(self, operation: Operation, mask: Reg | None) -> StripValue:
        """Emit instructions that compute an operation, as `value` does."""
        p, operands, dtype = self.p, operation.operands, operation.operands[0].dtype
        match operation.function:
            case "and" | "or" as function if dtype is BOOL and p.has_load(operands[1]):
                first = self.strip_of(self.value(operands[0], mask), BOOL)
                inner = self.mask_of(operands[0], mask, inverted=function == "or")
                return self.binary(function, BOOL, first, self.value(operands[1], inner))
            case "neg" if dtype == I64:
                return self.binary("sub", I64, p.constant(0), self.value(operands[0], mask))
            case "select":
                return self.select(operation, mask)
            case "cast":
                value = self.strip_of(self.value(operands[0], mask), dtype)
                for name in conversions(dtype, operation.dtype):
                    value = self.apply(name, value, value)
                return value
            case "fma":
                return self.multiply_add(operation, mask)
        values = [self.value(operand, mask) for operand in operands]
        return self.binary(operation.function, dtype, values[0], values[-1])

    def multiply_add(self, operation: Operation, mask: Reg | None) -> Reg:
        """Return the strip with the result of the operation fma(left, right, addend).

        The multiply-add instruction adds the product to its destination strip, which must contain `addend`.  Therefore
        `addend` is first copied to a new strip, unless it is in a strip that nothing else reads.

        mask: a strip of bools, or None.  Where it is false, loads return 0.
        """
        *multiplied, addend = operation.operands
        total = self.strip_of(self.value(addend, mask), F32)
        factors = [self.strip_of(self.value(factor, mask), F32) for factor in multiplied]
        if all(factor.kind == "scalar" for factor in factors):
            factors[0] = self.reuse_or_emit_strip("move", factors[0], F32.size_bytes)
        has_other_readers = not (isinstance(addend, Operation) and addend.function == "fma")
        if has_other_readers or total.kind != "strip":
            result = Reg("strip", self.p.block.depth)
            self.p.emit("move", result, total, F32.size_bytes)
            total = result
        self.p.emit("apply", total, *factors, FMA)
        return total

    def apply(self, name: str, left: Reg, right: Reg) -> Reg:
        if left.kind == right.kind == "scalar":
            return self.p.reuse_or_emit("apply", left, right, function_number(name))
        return self.reuse_or_emit_strip("apply", left, right, function_number(name))

    def binary(self, function: str, dtype: DType, left: StripValue, right: StripValue) -> StripValue:
        """Return the result of a function of operands of `dtype`.

        left, right: the operands, which are the same value if the function has only one.
        """
        p = self.p
        if dtype == I64 and (result := self.affine(function, left, right)) is not None:
            return result
        if function in SWAPPED:
            function, left, right = SWAPPED[function], right, left
        first, second = self.strip_of(left, dtype), self.strip_of(right, dtype)
        if first.kind == second.kind == "scalar":
            return p.binary(function, dtype, first, second)
        return self.apply(element_function(function, dtype), first, second)

    def affine(self, function: str, left: StripValue, right: StripValue) -> StripValue | None:
        """Return the result of an i64 operation as an arithmetic sequence (Affine), or None if it is not a sequence.

        For example, the sequence 0, 1, 2, ... multiplied by 3 is the sequence 0, 3, 6, ...

        function: the operator, such as "add".
        left, right: the operands.
        """
        if function not in ("add", "sub", "mul"):
            return None
        p = self.p
        zero = p.constant(0)
        pairs = []
        for value in (left, right):
            if isinstance(value, Affine):
                pairs.append((value.first, value.step, value.row_step))
            elif value.kind == "scalar":
                pairs.append((value, zero, zero))
            else:
                return None
        if function != "mul":
            first, step, row_step = (p.binary(function, I64, a, b) for a, b in zip(*pairs, strict=True))
            return Affine(first, step, row_step)
        if any(pairs[0][i] is not zero and pairs[1][j] is not zero for i in (1, 2) for j in (1, 2)):
            return None
        factor, other = (pairs[0][0], pairs[1]) if pairs[0][1] is pairs[0][2] is zero else (pairs[1][0], pairs[0])
        first, step, row_step = (p.binary("mul", I64, part, factor) for part in other)
        return Affine(first, step, row_step)

    def select(self, operation: Operation, mask: Reg | None) -> StripValue:
        cond, then, orelse = operation.operands
        loads = self.p.has_load(then) or self.p.has_load(orelse)
        if not loads and (name := min_or_max(operation)):
            values = [self.strip_of(self.value(part, mask), part.dtype) for part in (then, orelse)]
            return self.apply(element_function(name, then.dtype), *values)
        test = self.strip_of(self.value(cond, mask), BOOL)
        masks = (self.mask_of(cond, mask), self.mask_of(cond, mask, inverted=True)) if loads else (mask, mask)
        first = self.strip_of(self.value(then, masks[0]), then.dtype)
        second = self.strip_of(self.value(orelse, masks[1]), orelse.dtype)
        return self.reuse_or_emit_strip("choose", test, first, second, then.dtype.size_bytes)

    def load(self, buffer: Buffer, indices: tuple[Scalar, ...], mask: Reg | None) -> Reg:
        p, size = self.p, buffer.dtype.size_bytes
        number = p.buffers[buffer.name]
        where = self.value(buffer_position(buffer, indices), mask)
        if isinstance(where, Reg) and where.kind == "scalar":
            where = Affine(where, p.constant(0), p.constant(0))
        if isinstance(where, Affine) and self.width is not None and not self.is_contiguous(where):
            if mask is None:
                return self.reuse_or_emit_strip(
                    "load_rows", number, where.first, where.row_step, where.step, self.width, size
                )
            where = self.strip_of(where, I64)
        plain: tuple
        masked: tuple
        if isinstance(where, Reg):
            plain, masked = ("gather", number, where, size, NO_REGISTER), ("gather", number, where, size, mask)
        else:
            at = (number, where.first, where.step, size)
            is_view = where.step is p.constant(1) and self.has_views
            plain = ("view", number, where.first, size) if is_view else ("strided", *at, NO_REGISTER)
            masked = ("strided", *at, mask)
        if mask is not None and plain not in self.known:
            return self.reuse_or_emit_strip(*masked)
        result = self.reuse_or_emit_strip(*plain)
        if result.kind == "view":
            self.views[result] = (buffer.name, size)
        return result
