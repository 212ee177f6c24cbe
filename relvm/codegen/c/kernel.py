"""C code of kernels: one function for each kernel, with the signature of packed functions and checks of its arguments.

The code is meant to be read by people, so a comment above each kernel states the operators and their types.  The code
relies on the compiler flags of relvm/compiler/toolchain.py.  In particular, -fwrapv makes integer overflow wrap around,
as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from relvm.ir.dtypes import F16, F32, F64, I8, DType
from relvm.ir.symbolic import AnyDim, DimVar, as_var, format_dim, known_size
from relvm.kernels.bounding_inputs import bounding_inputs
from relvm.kernels.loop_ir import (
    SUM_LANES,
    Address,
    Allocate,
    Assign,
    Binary,
    Buffer,
    Convert,
    Fail,
    IfThen,
    Intrinsic,
    Invoke,
    Kernel,
    Let,
    Literal,
    Load,
    Local,
    Loop,
    Parallel,
    Scalar,
    Select,
    Size,
    Statement,
    Store,
    Unary,
    identity_of,
    reduces_floats,
    statements_in,
    trip_count,
)
from relvm.quoting import c_comment, c_string

# Precedence of the C operators that kernels use.  An operator with a higher number binds tighter.
_PRECEDENCE = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7}
_PRECEDENCE |= {"<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
_UNARY = 11

_ALIGNMENT = 64  # of arrays
_FRAMES = 16 << 10  # bytes of stack for all but the arrays of a kernel, including the C functions that it calls

_VECTORS = frozenset(("exp", "log", "log1p", "tanh", "erf", "sin", "cos"))  # functions of csrc/codegen/kernel_math.h


def print_kernel(kernel: Kernel, symbol: str) -> str:
    """Return the C code of one kernel.

    The C function is `rvm_status SYMBOL(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)`.
    Its arguments are the input tensors, then the output tensors.  It checks the dtype, the rank and the dimensions of
    each argument, and sets *result to NIL.
    """
    return "\n".join(text for text, _ in kernel_lines(kernel, symbol))


def kernel_lines(kernel: Kernel, symbol: str) -> list[tuple[str, Statement | None]]:
    """Return the lines of C that `print_kernel` joins, each with the statement that it is printed from.

    The statement is None for the comment, the signature, and the code that reads and checks the arguments.
    """
    buffers = (*kernel.inputs, *kernel.outputs)
    sizes = size_names(buffers)
    pointers = {}
    for buffer in buffers:
        const = "const " if buffer in kernel.inputs else ""
        restrict = "restrict " if buffer in kernel.outputs and not kernel.in_place else ""
        pointers[buffer.name] = f"{const}{buffer.dtype.ctype} *{restrict}{buffer.name}"
    body = KernelBody(symbol, sizes, pointers)
    body.statements(kernel.body, "  ")
    entry = _entry(kernel, symbol)
    function = f"body_{symbol}" if entry else symbol
    start = "static __attribute__((noinline)) " if entry else f"{kernel_prototype(symbol)}\n"
    lines = f"{start}{_signature(function)} {{".split("\n")
    lines += _checks(buffers, sizes, "self" in body.used)
    lines += [f"  {pointers[buffer.name]} = arguments[{i}].as.tensor->dl.data;" for i, buffer in enumerate(buffers)]
    lines += [f"  const int64_t {name} = sizes[{i}];" for i, name in enumerate(sizes.values()) if name in body.used]
    printed = [*_without_source(f"/* {c_comment(kernel.comment)} */".split("\n")), *body.parts, *_without_source(lines)]
    end = ["  return RVM_OK;", "}", *entry]
    return [*printed, *body.lines_with_sources(), *_without_source(end)]


def _entry(kernel: Kernel, symbol: str) -> list[str]:
    """Return the lines of a C function `symbol` that calls the C function of the kernel, `body_SYMBOL`.

    The function checks that the C stack has enough room for the kernel, and passes inputs that the host cannot change.
    The result is empty if neither is necessary.
    """
    bounding, needed = bounding_inputs(kernel), stack_bytes(kernel)
    call, lines = f"body_{symbol}(self, arguments, count, result)", []
    if needed:
        failure = f"rvm_kernel_fail_stack(self, {c_string(kernel.name)}, {needed}, result)"
        lines.append(f"  if (rvm_stack_left(self) < {needed}) return {failure};")
    if bounding:
        lines.append(f"  static const int32_t inputs[] = {{{', '.join(map(str, bounding))}}};")
        given = f"self, body_{symbol}, inputs, {len(bounding)}, arguments, count, result"
        call = f"rvm_api->call_with_private({given})"
    function = [kernel_prototype(symbol), f"{_signature(symbol)} {{", *lines, f"  return {call};", "}"]
    return ["", *function] if lines else []


def stack_bytes(kernel: Kernel) -> int:
    """Return the number of bytes of the C stack that a kernel needs, or 0 if it needs only a small frame.

    A kernel needs its arrays, and the frames of the C functions that it calls.
    """
    arrays = [s.buffer for s in statements_in(kernel.body) if isinstance(s, Allocate)]
    is_small = not arrays and not any(isinstance(s, Invoke) for s in statements_in(kernel.body))
    sizes = (math.prod(map(known_size, array.shape)) * array.dtype.size_bytes for array in arrays)
    return 0 if is_small else sum(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes) + _FRAMES


def _without_source(lines: list[str]) -> Iterator[tuple[str, None]]:
    return ((line, None) for line in lines)


def kernel_prototype(symbol: str) -> str:
    """Return the declaration of the function that `print_kernel` defines."""
    return _signature(symbol) + ";"


def _signature(symbol: str) -> str:
    return f"rvm_status {symbol}(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)"


def size_names(buffers: tuple[Buffer, ...]) -> dict[DimVar, str]:
    """Return the C names of the size variables of a kernel, in order of first occurrence.

    buffers: the inputs and outputs, in whose shapes the variables occur.
    """
    sizes: dict[DimVar, str] = {}
    for buffer in buffers:
        for dim in buffer.shape:
            var = as_var(dim)
            assert isinstance(dim, int) or var, f"kernel shape with a compound dimension {dim}"
            if var and var not in sizes:
                sizes[var] = (
                    f"s{len(sizes)}_{var.name}" if var.name.isidentifier() and var.name.isascii() else f"s{len(sizes)}"
                )
    return sizes


def _checks(buffers: tuple[Buffer, ...], sizes: dict[DimVar, str], uses_self: bool) -> list[str]:
    """Return the lines of C that check the arguments of a kernel and read its sizes.

    The lines are a table of the expected tensors, and a call of `rvm_kernel_check`.  This call also fills the C array
    `sizes`.

    buffers: the inputs and outputs of the kernel.
    sizes: the size variables of the kernel, with their C names.
    uses_self: whether the code of the kernel uses the C parameter `self`.
    """
    order: dict[DimVar | None, int] = {var: i for i, var in enumerate(sizes)}
    rows = []
    for buffer in buffers:
        dims = (str(dim) if isinstance(dim, int) else str(-1 - order[as_var(dim)]) for dim in buffer.shape)
        rows.append(", ".join((f"RVM_DTYPE_{buffer.dtype}", str(len(buffer.shape)), *dims)))
    call = f"rvm_kernel_check(expected, {len(buffers)}, {len(sizes)}, sizes, arguments, count, result)"
    return [
        "  static const int64_t expected[] = {" + ", ".join(rows) + "};",
        f"  int64_t sizes[{max(1, len(sizes))}];",
        f"  rvm_status status = {call};",
        *(() if uses_self else ("  (void)self;",)),
        "  if (status != RVM_OK) return status;",
    ]


class KernelBody:
    """Printer of the statements of a kernel.

    sizes: the C names of the size variables.
    pointers: the C declarations of the buffers, by name.
    lines: the printed lines.
    sources: for each line, the statement that it is printed from.  The head of a loop or a branch is printed from the
    loop or branch itself.
    parts: the C functions for the bodies of parallel loops.  They must be placed before `lines`.  Each item is a line
    of C and the statement that it is printed from, or None.
    used: a dict from each C name that the statements use, including "self", to its declaration, in order of first use.
    declared: the C names that the statements declare.
    """

    def __init__(self, symbol: str, sizes: dict[DimVar, str], pointers: dict[str, str]) -> None:
        self.symbol = symbol
        self.sizes = sizes
        self.pointers = pointers
        self.used: dict[str, str] = {}
        self.declared: set[str] = set()
        self.part_count = 0
        self.lines: list[str] = []
        self.sources: list[Statement | None] = []
        self.current: Statement | None = None
        self.parts: list[tuple[str, Statement | None]] = []
        self.lanes: dict[str, str] = {}  # a variable of a reduction -> the C expression of its current lane

    def statements(self, body: tuple[Statement, ...], indent: str) -> None:
        for statement in body:
            self.statement(statement, indent)

    def statement(self, statement: Statement, indent: str) -> None:
        self.record_sources()
        outer, self.current = self.current, statement
        self.print_statement(statement, indent)
        self.record_sources()
        self.current = outer

    def record_sources(self) -> None:
        """Record that the lines added since the last call come from the current statement."""
        self.sources += [self.current] * (len(self.lines) - len(self.sources))

    def lines_with_sources(self) -> Iterator[tuple[str, Statement | None]]:
        """Return an iterator over pairs of a line and the statement that the line is printed from."""
        self.record_sources()
        return zip(self.lines, self.sources, strict=True)

    def print_statement(self, statement: Statement, indent: str) -> None:
        match statement:
            case Loop() if reduces_floats(statement):
                self.lane_loop(statement, indent)
            case Loop(counter, start, stop, body, simd, reduce):
                self.declared.add(counter.name)
                if simd:
                    clauses = " ".join(f"reduction({function}:{local.name})" for function, local in reduce)
                    self.lines.append(f"RVM_SIMD({clauses})")
                name = counter.name
                head = f"for (int64_t {name} = {self.scalar(start)}; {name} < {self.scalar(stop)}; {name}++) {{"
                self.lines.append(indent + head)
                self.statements(body, indent + "  ")
                self.lines.append(indent + "}")
            case Parallel():
                self.parallel(statement, indent)
            case Store(buffer, indices, value):
                self.lines.append(
                    f"{indent}{self.buffer(buffer)}[{self.index(buffer, indices)}] = {self.scalar(value)};"
                )
            case Let(local, value):
                self.declared.add(local.name)
                self.lines.append(f"{indent}{local.dtype.ctype} {local.name} = {self.scalar(value)};")
            case Allocate(buffer):
                self.declared.add(buffer.name)
                self.pointers[buffer.name] = f"{buffer.dtype.ctype} *{buffer.name}"
                self.lines.append(indent + self.allocate(buffer))
            case Fail():
                self.lines.append(indent + self.fail(statement))
            case Invoke(function, args):
                printed = ", ".join(self.address(a) if isinstance(a, Address) else self.scalar(a) for a in args)
                self.lines.append(f"{indent}{function}({printed});")
            case Assign(local, value):
                self.lines.append(f"{indent}{self.lanes.get(local.name, local.name)} = {self.scalar(value)};")
            case IfThen(cond, then, orelse):
                self.lines.append(f"{indent}if ({self.scalar(cond)}) {{")
                self.statements(then, indent + "  ")
                if orelse:
                    self.lines.append(indent + "} else {")
                    self.statements(orelse, indent + "  ")
                self.lines.append(indent + "}")

    def lane_loop(self, loop: Loop, indent: str) -> None:
        """Print a loop that reduces floats.  It computes several partial results, the lanes, and combines them at the
        end.

        One iteration of the printed loop updates every lane.  A second loop runs the remaining iterations.  The C
        compiler can keep the lanes in vector registers.  The number of lanes does not depend on the vector width of the
        processor.
        """
        name, trips = loop.counter.name, trip_count(loop)
        first, stop = (f"{name}_{part}" for part in ("first", "stop"))
        self.declared.add(name)
        self.lines.append(f"{indent}const int64_t {stop} = {self.scalar(loop.stop)};")
        self.lines.append(f"{indent}int64_t {first} = {self.scalar(loop.start)};")
        if trips is None or trips >= SUM_LANES:
            self.lines.append(f"{indent}if ({first} + {SUM_LANES} <= {stop}) {{")
            self.lane_blocks(loop, indent + "  ")
            self.lines.append(indent + "}")
        if trips is None or trips % SUM_LANES:
            self.lines.append(f"{indent}for (int64_t {name} = {first}; {name} < {stop}; {name}++) {{")
            self.statements(loop.body, indent + "  ")
            self.lines.append(indent + "}")

    def lane_blocks(self, loop: Loop, indent: str) -> None:
        name, count = loop.counter.name, SUM_LANES
        first, lane, stop = (f"{name}_{part}" for part in ("first", "lane", "stop"))
        for clause, local in loop.reduce:
            lanes, identity = f"{local.name}_lanes", literal(identity_of(clause, local.dtype), local.dtype)
            self.lines.append(f"{indent}{local.dtype.ctype} {lanes}[{count}];")
            self.lines.append(f"{indent}for (int l = 0; l < {count}; l++) {lanes}[l] = {identity};")
            self.lanes[local.name] = f"{lanes}[{lane}]"
        self.lines.append(f"{indent}for (; {first} + {count} <= {stop}; {first} += {count}) {{")
        self.lines.append("RVM_SIMD()")
        self.lines.append(f"{indent}  for (int64_t {lane} = 0; {lane} < {count}; {lane}++) {{")
        self.lines.append(f"{indent}    const int64_t {name} = {first} + {lane};")
        self.statements(loop.body, indent + "    ")
        self.lines += [indent + "  }", indent + "}"]
        for clause, local in loop.reduce:
            del self.lanes[local.name]
            lanes, half = f"{local.name}_lanes", count // 2
            while half:
                pair = _combine(clause, f"{lanes}[l]", f"{lanes}[l + {half}]")
                self.lines.append(f"{indent}for (int l = 0; l < {half}; l++) {lanes}[l] = {pair};")
                half //= 2
            total = self.scalar(local)
            self.lines.append(f"{indent}{total} = {_combine(clause, f'{lanes}[0]', total)};")

    def allocate(self, buffer: Buffer) -> str:
        return f"RVM_ALIGNED({_ALIGNMENT}) {buffer.dtype.ctype} {buffer.name}[{math.prod(buffer.shape)}];"

    def fail(self, fail: Fail) -> str:
        arguments = "".join(f", (long long){self.scalar(value, _UNARY)}" for value in fail.values)
        return f"return rvm_api->fail(result, RVM_{fail.status}, {c_string(fail.message)}{arguments});"

    def parallel(self, loop: Parallel, indent: str) -> None:
        """Print a parallel loop.

        The body becomes a separate C function, which runs a range of the iterations.  The function receives a struct of
        the kernel variables that the body uses.
        """
        name = f"{self.symbol}_part{self.part_count}"
        self.part_count += 1
        inner = KernelBody(name, self.sizes, dict(self.pointers))
        inner.declared |= {loop.first.name, loop.last.name}
        inner.statements(loop.body, "  ")
        assert not inner.part_count, "a parallel loop inside a parallel loop"
        shared = {used: declaration for used, declaration in inner.used.items() if used not in inner.declared}
        fields = "".join(f"\n  {declaration.replace('restrict ', '')};" for declaration in shared.values())
        first, last = loop.first.name, loop.last.name
        lines = [f"struct {name} {{{fields}", "};"]
        lines.append(
            f"static __attribute__((noinline)) void {name}(const void *shared_, int64_t {first}, int64_t {last}) {{"
        )
        lines.append(f"  const struct {name} *shared = shared_;")
        for field, declaration in shared.items():
            const = "" if "*" in declaration else "const "
            lines.append(f"  {const}{declaration} = shared->{field};")
        self.parts += [*_without_source("\n".join(lines).split("\n")), *inner.lines_with_sources(), ("}", None)]
        self.used |= {"self": "", **shared}
        values = ", ".join(shared)
        arguments = f"{self.scalar(loop.count)}, {self.scalar(loop.grain)}"
        self.lines.append(f"{indent}const struct {name} {name}_shared = {{{values}}};")
        self.lines.append(f"{indent}rvm_parallel(self, {name}, &{name}_shared, {arguments});")

    def scalar(self, scalar: Scalar, outer: int = 0) -> str:
        """Return the C expression of a scalar, in parentheses if its operator has a lower precedence than `outer`."""
        match scalar:
            case Literal(value, dtype):
                text = literal(value, dtype)
                return f"({text})" if text.startswith("-") and outer else text
            case Local(name, dtype):
                if name in self.lanes:
                    return self.lanes[name]
                self.used.setdefault(name, f"{dtype.ctype} {name}")
                return name
            case Size(dim):
                return self.size(dim, outer)
            case Load(buffer, indices):
                return f"{self.buffer(buffer)}[{self.index(buffer, indices)}]"
            case Binary(function, left, right):
                level = _PRECEDENCE[function]
                text = f"{self.scalar(left, level)} {function} {self.scalar(right, level + 1)}"
                if _is_promoted(scalar.dtype):
                    return f"({scalar.dtype.ctype})({text})"
                return f"({text})" if level < outer or _needs_parentheses(function, outer) else text
            case Unary(function, operand):
                narrow = f"({scalar.dtype.ctype})" if _is_promoted(scalar.dtype) else ""
                return f"{narrow}{function}{self.scalar(operand, _UNARY)}"
            case Select(cond, then, orelse):
                return f"({self.scalar(cond, 1)} ? {self.scalar(then, 1)} : {self.scalar(orelse, 1)})"
            case Convert():
                return self.convert(scalar)
            case Intrinsic(name, args, dtype):
                return f"{_function(name, dtype)}({', '.join(self.scalar(arg) for arg in args)})"
        raise AssertionError(f"cannot translate {type(scalar).__name__} to C")

    def address(self, address: Address) -> str:
        return f"{self.buffer(address.buffer)} + {self.scalar(address.position, _PRECEDENCE['+'])}"

    def buffer(self, buffer: Buffer) -> str:
        self.used.setdefault(buffer.name, self.pointers[buffer.name])
        return buffer.name

    def convert(self, convert: Convert) -> str:
        """Return the C expression of the conversion `convert`.

        Conversions to and from floats narrower than f32 go through f32.  The conversion of f64 to f16 is rounded only
        once.  Conversions to and from integers of less than a byte go through i8.  The conversion functions are in
        csrc/core/small_floats.h.
        """
        source, target = convert.operand.dtype, convert.dtype
        if target.is_narrow_float:
            if (source, target) == (F64, F16):
                return f"rvm_f16_of_f32(rvm_odd_f32_of_f64({self.scalar(convert.operand)}))"
            return f"rvm_{target}_of_f32({self.c_conversion(convert.operand, source, F32)})"
        if target.is_integer and target.bits < 8:
            return f"rvm_{target}_of_i8({self.c_conversion(convert.operand, source, I8)})"
        return self.c_conversion(convert.operand, source, target)

    def c_conversion(self, operand: Scalar, source: DType, target: DType) -> str:
        """Return the C expression of `operand`, converted from dtype `source` to `target`.

        target: a dtype with which C can compute.
        """
        inner = self.scalar(operand, _UNARY)
        if source.is_narrow_float:
            inner, source = f"rvm_f32_of_{source}({self.scalar(operand)})", F32
        elif source.is_integer and source.bits < 8:
            inner, source = f"rvm_i8_of_{source}({self.scalar(operand)})", I8
        if source == target:
            return inner
        if target.is_bool:
            return f"({inner} != 0)"
        if source.is_float and target.is_integer:
            return f"rvm_{target}_of_{source}({inner})"
        return f"({target.ctype}){inner}"

    def size(self, dim: AnyDim, outer: int) -> str:
        def name_of(var: DimVar) -> str:
            name = self.sizes[var]
            self.used.setdefault(name, f"int64_t {name}")
            return name

        text = format_dim(dim, name_of)
        return text if isinstance(dim, int) or as_var(dim) or not outer else f"({text})"

    def index(self, buffer: Buffer, indices: tuple[Scalar, ...]) -> str:
        """Return the C expression of the row-major position of an element of `buffer`.

        indices: the index along each axis, or a single item, which is the row-major position itself.
        """
        if len(indices) != len(buffer.shape):
            assert len(indices) == 1, f"{len(indices)} indices into {buffer.name} of rank {len(buffer.shape)}"
            return self.scalar(indices[0])
        text = "0"
        for position, (index, dim) in enumerate(zip(indices, buffer.shape, strict=True)):
            if position == 0 or (dim == 1 and text == "0"):
                text = self.scalar(index)
                continue
            left = text if text == "0" or text.isidentifier() else f"({text})"
            text = f"{left} * {self.size(dim, 1)} + {self.scalar(index, _PRECEDENCE['+'])}"
        return text


def _function(name: str, dtype: DType) -> str:
    """Return the name of the C function for the intrinsic `name`.

    A header of the runtime, a header in csrc/codegen or <math.h> declares the function.
    """
    if dtype.name != "f32" or name.startswith("rvm_"):
        return name
    if name == "fma":
        return "RVM_FMA_F32"
    return f"rvm_{name}_f32" if name in _VECTORS else f"{name}f"


def _combine(clause: str, left: str, right: str) -> str:
    """Return the C expression that combines the values `left` and `right` in a reduction.

    clause: the operator of the reduction, such as "+" or "max".
    """
    if clause in ("max", "min"):
        return f"{left} {'>' if clause == 'max' else '<'} {right} ? {left} : {right}"
    return f"{left} {clause} {right}"


def _is_promoted(dtype: DType) -> bool:
    """Return whether C promotes operands of this dtype to int, so that the result must be truncated."""
    return dtype.is_integer and dtype.bits < 32


def _needs_parentheses(function: str, outer: int) -> bool:
    """Return whether gcc warns about an expression without parentheses, although C does not require them.

    An example is && inside ||.

    function: the operator of the expression.
    outer: the precedence of the enclosing operator.
    """
    return function == "&&" and outer == _PRECEDENCE["||"]


def literal(value: bool | int | float, dtype: DType) -> str:
    """Return a number as a C constant of `dtype`.

    C has no types for narrow floats and for integers of less than a byte.  A constant of such a dtype is printed as an
    integer with the same bits.
    """
    if dtype.is_narrow_float or dtype.bits < 8:
        code = np.asarray(value).astype(dtype.numpy).view(f"u{dtype.size_bytes}")
        return str(int(code))
    if dtype.is_float:
        suffix = "f" if dtype.name == "f32" else ""
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        text = float(value).hex() if value != int(value) or abs(value) >= 1e15 else f"{float(value):.1f}"
        return text + suffix
    if value == -(2**63):
        return "INT64_MIN"
    suffix = {"i64": "LL", "u64": "ULL", "u32": "U"}.get(dtype.name, "")
    return str(int(value)) if dtype.is_signed and abs(value) < 2**31 else f"{int(value)}{suffix}"
