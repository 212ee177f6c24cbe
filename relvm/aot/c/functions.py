"""Printing of lowered functions as C."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from relvm.aot.c.expressions import dtype_of_scalar, guards_in, scalar_expression
from relvm.aot.c.failures import failure, printf
from relvm.aot.c.kernels import can_fail
from relvm.aot.c.mangling import Names
from relvm.aot.c.packed_kernels import packed_call
from relvm.aot.config import CallKind
from relvm.aot.lower.ir import (
    Branch,
    CallExtern,
    CallFunction,
    Check,
    CheckRange,
    CheckSizes,
    Compute,
    Continue,
    Copy,
    DimScalar,
    LoweredFunction,
    LoweredModule,
    MemoryKind,
    ReadItem,
    RunKernel,
    Scalar,
    ScalarVar,
    SetScalar,
    SetSize,
    Statement,
    TensorArgument,
    WriteItem,
    always_continues,
)
from relvm.aot.lower.kernel_scratch import KernelScratch
from relvm.aot.lower.place_storage import FunctionPlacement
from relvm.codegen.c.expression import (
    CExpression,
    cast,
    conversion,
    dimension,
    element,
    infix,
    integer,
    prefix,
    primary,
)
from relvm.codegen.c.scalars import BOXES, CTYPES, FAILURES, FIELDS, has_value, operation
from relvm.ir.symbolic import AnyDim, DimVar, product
from relvm.ir.value_ranges import Range, range_of
from relvm.quoting import c_string


def print_function(
    function: LoweredFunction, module: LoweredModule, placements: Mapping[str, FunctionPlacement], names: Names
) -> str:
    """Return the C definition of one function.

    The parameters of the C function are, in order: `result`, the pools that the function needs, input tensors, output
    tensors, sizes, scalars, and pointers to scalar results.  The parameter `result` receives errors, and exists only if
    kernels are packed (see `CallKind`).

    function: the function to print.
    module: the module that contains the function and its kernels.
    placements: the addresses of the memory blocks of each function, by function name.
    names: the C names of functions, kernels and constants.
    """
    return _Printer(function, module, placements, names).text()


def signature(function: LoweredFunction, placement: FunctionPlacement, names: Names, calls: CallKind) -> str:
    """Return the C declaration of the function that `print_function` defines.

    placement: the placement of the function, which lists the pools that it needs.
    calls: the calling convention of kernels.
    """
    parts = [] if calls is CallKind.UNPACKED else ["rvm_value *result"]
    parts += [f"uint8_t *pool{pool}" for pool, size in enumerate(placement.size_bytes) if size]
    for number in function.inputs:
        const = "" if number in function.updated_inputs else "const "
        parts.append(f"{const}{function.storages[number].dtype.ctype} *s{number}")
    for number in function.outputs:
        parts.append(f"{function.storages[number].dtype.ctype} *s{number}")
    names_of_sizes = _size_names(function)
    parts += [f"int64_t {names_of_sizes[var]}" for var, _, _ in function.sizes]
    parts += [f"{CTYPES[var.dtype]} {var.name}" for var in function.scalars]
    parts += [f"{CTYPES[var.dtype]} *{var.name}_out" for var in function.results]
    return f"static int32_t {names.function(function.name)}({', '.join(parts) or 'void'})"


def _size_names(function: LoweredFunction) -> dict[DimVar, str]:
    """Return the C name of each size variable of a function: first of its parameters, then of the others.

    The C names are n0, n1 and so on, because two sizes can have the same name in the source.
    """
    params = [var for var, _, _ in function.sizes]
    found = []
    for statement in function.statements():
        match statement:
            case SetSize(target):
                found.append(target)
            case Continue(sizes=sizes):
                found += [var for var, _ in sizes]
    return {var: f"n{i}" for i, var in enumerate(dict.fromkeys((*params, *found)))}


def size_ranges(function: LoweredFunction) -> dict[DimVar, Range]:
    """Return the value range of each size parameter of a function."""
    return {var: Range(low, inf if high is None else high) for var, low, high in function.sizes}


class _Printer:
    def __init__(
        self,
        function: LoweredFunction,
        module: LoweredModule,
        placements: Mapping[str, FunctionPlacement],
        names: Names,
    ) -> None:
        self.function = function
        self.module = module
        self.placements = placements
        self.placement = placements[function.name]
        self.names = names
        self.point = -1
        self.used: set[str] = set()
        # Conditions under which a size in the current statement is invalid, each with the message of the error.
        self.guards: dict[CExpression, str] = {}
        self.ranges = size_ranges(function)
        self.size_names = _size_names(function)

    def text(self) -> str:
        end = [f"  *{var.name}_out = {var.name};" for var in self.function.results]
        targets = {s.section for s in self.function.statements() if isinstance(s, Continue)}
        body: list[str] = []
        for number, section in enumerate(self.function.sections):
            body += [f"section{number}:;"] if number in targets else []
            body += self.block(section)
            body += [] if always_continues(section) else [*end, "  return RVM_OK;"]
        head = f"{signature(self.function, self.placement, self.names, self.module.calls)} {{"
        return "\n".join([head, *self.declarations(), *body, "}"])

    def declarations(self) -> list[str]:
        function = self.function
        lines: list[str] = []
        for number, storage in enumerate(function.storages):
            name, ctype = f"s{number}", storage.dtype.ctype
            if storage.kind is MemoryKind.INPUT and number not in function.inputs and name in self.used:
                lines.append(f"  const {ctype} *{name} = 0;")
            elif storage.kind is MemoryKind.CONSTANT and name in self.used:
                lines.append(f"  const {ctype} *const {name} = {self.names.constant(storage)};")
            elif storage.kind is MemoryKind.WORKSPACE and name in self.used:
                slot = self.placement.slots["storage", number]
                lines.append(f"  {ctype} *const {name} = ({ctype} *)(void *)(pool{slot.pool} + {slot.offset});")
        for var in dict.fromkeys(self.scalars()):
            lines.append(f"  {CTYPES[var.dtype]} {var.name} = 0;")
        found = list(self.size_names.values())[len(function.sizes) :]
        lines += [f"  int64_t {name} = 0;" for name in found]
        params = [] if self.module.calls is CallKind.UNPACKED else ["result"]
        params += [f"pool{pool}" for pool, size in enumerate(self.placement.size_bytes) if size]
        params += [f"s{number}" for number in (*function.inputs, *function.outputs)]
        params += [self.size_names[var] for var, _, _ in function.sizes] + [var.name for var in function.scalars]
        text = " ".join(lines)
        return lines + [f"  (void){name};" for name in params if name not in self.used and f"({name} +" not in text]

    def scalars(self):
        """Yield the scalar variables that the C function must declare, because they are not parameters."""
        params = set(self.function.scalars)
        for statement in self.function.statements():
            match statement:
                case ReadItem(target) | Compute(target) | SetScalar(target):
                    yield target
                case Continue(scalars=scalars):
                    yield from (var for var, _ in scalars if var not in params)
                case CallFunction(results=results):
                    yield from results
                case CallExtern(result=ScalarVar() as result):
                    yield result
        yield from self.function.results

    # ---- statements ----

    def block(self, body: tuple[Statement, ...]) -> list[str]:
        """Return the indented lines of a block."""
        lines = []
        for statement in body:
            self.point += 1
            outer, self.guards = self.guards, {}
            printed = self.statement(statement)
            checks = [f"if ({guard}) {self.fail('SHAPE_ERROR', reason)}" for guard, reason in self.guards.items()]
            lines += [f"  {line}" for line in (*checks, *printed)]
            self.guards = outer
        return lines

    def statement(self, statement: Statement) -> list[str]:
        match statement:
            case RunKernel():
                return self.run(statement)
            case Copy(source, target, size):
                return [self.copy(source, target, size)]
            case CallExtern():
                return self.call_extern(statement)
            case ReadItem(target, storage, position):
                item, dtype = self.item(storage, position), self.function.storages[storage].dtype
                return [f"{target.name} = {conversion(item, dtype, target.dtype)};"]
            case WriteItem(storage, position, value):
                dtype = self.function.storages[storage].dtype
                new = conversion(self.scalar(value), dtype_of_scalar(value), dtype)
                return [f"{self.item(storage, position)} = {new};"]
            case Compute(target, row, args):
                return self.compute(target.name, row, args)
            case SetScalar(target, value):
                return [f"{target.name} = {self.scalar(value)};"]
            case SetSize(target, value):
                number, name = self.scalar(value), self.size_names[target]
                store = f"{name} = {number};"
                if target.signed:
                    return [store]
                fail = self.fail("SHAPE_ERROR", f"size {target.name}: expected at least 0, got %lld", number)
                return [f"if ({infix('<', number, integer(0))}) {fail}", store]
            case CheckSizes(left, right):
                expected, actual = self.dim(left), self.dim(right)
                what = f"expected a size of {printf(str(left))}, which is %lld, got %lld ({printf(str(right))})"
                return [f"if ({infix('!=', expected, actual)}) {self.fail('SHAPE_ERROR', what, expected, actual)}"]
            case CheckRange(value, low, high):
                number = self.scalar(value)
                is_outside = infix("||", infix("<", number, integer(low)), infix(">", number, integer(high)))
                what = f"expected a number from {low} to {high}, got %lld"
                return [f"if ({is_outside}) {self.fail('TYPE_ERROR', what, number)}"]
            case Check(cond, status, message):
                return [f"if ({prefix('!', self.scalar(cond))}) {self.fail(status, printf(message), is_whole=True)}"]
            case Branch(cond, then, orelse):
                head = f"if ({self.scalar(cond)}) {{"
                first, second = self.block(then), self.block(orelse)
                return [head, *first, *(["} else {", *second] if second else []), "}"]
            case CallFunction():
                return self.call(statement)
            case Continue():
                return self.jump(statement)
        raise AssertionError(f"cannot translate {statement!r} to C")

    def run(self, run: RunKernel) -> list[str]:
        kernel = self.module.kernels[run.kernel]
        for size in run.sizes:
            value = self.dim(size)
            if range_of(size, self.ranges).low < 0:
                self.guards[infix("<", value, integer(0))] = f"size {printf(str(size))}: expected at least 0"
        if self.module.calls is not CallKind.UNPACKED:
            self.used.add("result")
            return packed_call(run, kernel, self.module.calls, self.names, self.storage_name, self.dim)
        parts = [self.storage_name(number) for number in run.storages] + [str(self.dim(size)) for size in run.sizes]
        if KernelScratch(kernel).size_bytes:
            slot = self.placement.slots["scratch", self.point]
            parts.append(self.pool(slot.pool, slot.offset))
        call = f"{self.names.kernel(run.kernel)}({', '.join(parts)})"
        return [f"RVM_TRY({call});" if can_fail(kernel) else f"{call};"]

    def call_extern(self, call: CallExtern) -> list[str]:
        """Return the lines that call a packed function of the host, check its result, and store the result."""
        is_packed, has_result = self.module.calls is CallKind.PACKED, self.module.calls is not CallKind.UNPACKED
        if has_result:
            self.used.add("result")
        lines, count = [], max(1, len(call.args))
        tensors = [arg for arg in call.args if isinstance(arg, TensorArgument)]
        for number, tensor in enumerate(tensors):
            if tensor.dims:
                lines.append(f"int64_t shape{number}[] = {{{', '.join(str(self.dim(dim)) for dim in tensor.dims)}}};")
        if tensors:
            lines.append(f"rvm_tensor tensors[{len(tensors)}];")
        lines += [f"rvm_value arguments[{count}], value;", "rvm_status status_;", "int32_t fits_ = 1;"]
        lines += ["arguments[0].tag = RVM_TAG_NIL;", "value.tag = RVM_TAG_NIL;", "value.as.i = 0;"]
        for position, arg in enumerate(call.args):
            if isinstance(arg, TensorArgument):
                number = tensors.index(arg)
                dtype, shape = self.function.storages[arg.storage].dtype, f"shape{number}" if arg.dims else "0"
                view = f"&tensors[{number}], RVM_DTYPE_{dtype}, {len(arg.dims)}, {shape}"
                lines.append(f"arguments[{position}] = rvm_view({view}, {self.storage_name(arg.storage)});")
            else:
                dtype = dtype_of_scalar(arg)
                lines.append(f"arguments[{position}].tag = RVM_TAG_{BOXES[dtype]};")
                lines.append(f"arguments[{position}].as.{FIELDS[dtype]} = {self.scalar(arg)};")
        passed = f"arguments, {len(call.args)}, &value"
        if is_packed:
            lines.append(f"status_ = call_extern({c_string(call.name)}, {passed});")
        else:
            lines.append(f"status_ = {self.names.extern(call.name)}(0, {passed});")
        keep_error = "*result = value; " if has_result else ""
        lines.append(f"if (status_ != RVM_OK) {{ {keep_error}return status_; }}")
        match call.result:
            case TensorArgument(storage, dims):
                dtype, target = self.function.storages[storage].dtype, self.storage_name(storage)
                shape = "0"
                if dims:
                    shape = "expected_"
                    lines.append(f"const int64_t expected_[] = {{{', '.join(str(self.dim(dim)) for dim in dims)}}};")
                lines.append(f"fits_ = is_extern_result(&value, RVM_DTYPE_{dtype}, {len(dims)}, {shape});")
                size = cast("size_t", self.dim(product((*dims, dtype.size_bytes))))
                copy = f"memcpy({target}, value.as.tensor->dl.data, {size});"
                if dtype.is_bool:
                    source = "((const uint8_t *)value.as.tensor->dl.data)"
                    copy = f"for (size_t i_ = 0; i_ < {size}; i_++) {target}[i_] = {source}[i_] != 0;"
                lines.append(f"if (fits_ && !rvm_view_is_empty(value.as.tensor)) {copy}")
            case ScalarVar(name, dtype):
                lines.append(f"fits_ = value.tag == RVM_TAG_{BOXES[dtype]};")
                lines.append(f"if (fits_) {name} = value.as.{FIELDS[dtype]};")
        if is_packed:
            lines.append("rvm_api->release(&value);")
        if call.result is not None:
            reason = f"the result of {printf(call.name)} does not have the type that the program states"
            lines.append(f"if (!fits_) {self.fail('TYPE_ERROR', reason)}")
        else:
            lines.append("(void)fits_;")
        return ["{", *(f"  {line}" for line in lines), "}"]

    def compute(self, target: str, row: str, args: tuple[Scalar, ...]) -> list[str]:
        operands = [self.scalar(arg) for arg in args]
        line = f"{target} = {operation(row, *operands)};"
        if row not in FAILURES:
            return [line]
        formats = ", ".join("%.17g" if dtype_of_scalar(arg).is_float else "%lld" for arg in args)
        fail = self.fail("ARITHMETIC_ERROR", f"{row}({formats}): {FAILURES[row]}", *operands, is_whole=True)
        return [f"if (!{has_value(row, *operands)}) {fail}", line]

    def call(self, call: CallFunction) -> list[str]:
        needed = self.placements[call.function].size_bytes
        parts = []
        if self.module.calls is not CallKind.UNPACKED:
            self.used.add("result")
            parts.append("result")
        for pool, size in enumerate(needed):
            if size:
                slot = self.placement.slots["frame", self.point, pool]
                parts.append(self.pool(pool, slot.offset))
        parts += [self.storage_name(number) for number in call.storages]
        parts += [str(self.dim(size)) for size in call.sizes] + [str(self.scalar(value)) for value in call.scalars]
        parts += [f"&{var.name}" for var in call.results]
        return [f"RVM_TRY({self.names.function(call.function)}({', '.join(parts)}));"]

    def jump(self, jump: Continue) -> list[str]:
        storages = self.function.storages
        lines = [self.copy(m.source, m.copy_to, m.size_bytes) for m in jump.moves if m.copy_to is not None]
        lines += [
            f"const {storages[m.source].dtype.ctype} *const next{m.param} = {self.storage_name(m.source)};"
            for m in jump.moves
            if m.copy_to is None
        ]
        lines += [f"const int64_t {self.size_names[var]}_next = {self.dim(dim)};" for var, dim in jump.sizes]
        lines += [f"const {CTYPES[var.dtype]} {var.name}_next = {self.scalar(value)};" for var, value in jump.scalars]
        for move in jump.moves:
            new = f"next{move.param}" if move.copy_to is None else self.storage_name(move.copy_to)
            lines.append(f"{self.storage_name(move.param)} = {new};")
        lines += [f"{self.size_names[var]} = {self.size_names[var]}_next;" for var, _ in jump.sizes]
        lines += [f"{var.name} = {var.name}_next;" for var, _ in jump.scalars]
        return ["{", *(f"  {line}" for line in lines), f"  goto section{jump.section};", "}"]

    def fail(self, status: str, message: str, *numbers: CExpression, is_whole: bool = False) -> str:
        """Return the C statement that ends the function with an error.

        status: the name of the status.   message, numbers: see `failure`.
        is_whole: whether the message is complete.  If not, the name of the function is placed before it.
        """
        if self.module.calls is CallKind.PACKED:
            self.used.add("result")
        text = message if is_whole else f"{printf(self.function.name)}: {message}"
        return failure(self.module.calls, status, text, *numbers)

    # ---- operands ----

    def copy(self, source: int, target: int, size: AnyDim) -> str:
        """Return the statement that copies `size` bytes from one storage to another.

        source, target: the indices of the two storages.
        """
        return f"memcpy({self.storage_name(target)}, {self.storage_name(source)}, {cast('size_t', self.dim(size))});"

    def storage_name(self, number: int) -> str:
        self.used.add(f"s{number}")
        return f"s{number}"

    def item(self, storage: int, position: int) -> CExpression:
        return element(self.storage_name(storage), integer(position))

    def pool(self, number: int, offset: int) -> str:
        self.used.add(f"pool{number}")
        return f"pool{number} + {offset}"

    def dim(self, dim: AnyDim) -> CExpression:
        reason = f"size {printf(str(dim))}: the computation overflows or divides by 0"
        self.guards.update(dict.fromkeys(guards_in(dim, self.size, self.ranges), reason))
        return dimension(dim, self.size)

    def size(self, var: DimVar) -> CExpression:
        self.used.add(self.size_names[var])
        return primary(self.size_names[var])

    def scalar(self, scalar: Scalar) -> CExpression:
        if isinstance(scalar, DimScalar):
            return self.dim(scalar.dim)
        expression = scalar_expression(scalar, self.size)
        self.used.add(expression.text)
        return expression
