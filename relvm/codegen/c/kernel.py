"""C code of kernels: one function for each kernel, with the signature of packed functions and checks of its arguments.

The code is meant to be read by people, so a comment above each kernel states the operators and their types.  The code
relies on the compiler flags of relvm/compiler/toolchain.py.  In particular, -fwrapv makes integer overflow wrap around,
as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from relvm.codegen.c.expression import (
    CExpression,
    call,
    cast,
    conditional,
    conversion,
    dimension,
    element,
    infix,
    integer,
    literal,
    prefix,
    primary,
)
from relvm.codegen.kernel_registers import buffer_position
from relvm.ir.dtypes import BOOL, DType
from relvm.ir.loop_ir import (
    MATH_H_NAMES,
    SUM_LANES,
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
    identity_of,
    reduces_floats,
    statements_in,
    trip_count,
)
from relvm.ir.scalar_ops import SIGNS
from relvm.ir.symbolic import AnyDim, DimVar, as_var, known_size, var_dim
from relvm.kernels.bounding_inputs import bounding_inputs
from relvm.kernels.kernel import Kernel
from relvm.quoting import c_comment_lines, c_string
from relvm.tables import MICRO_KERNELS, micro_kernel_arguments

_ALIGNMENT = 64  # of arrays
_FRAMES = 16 << 10  # bytes of stack for all but the arrays of a kernel, including the C functions that it calls

_SIGNS = {function: sign for function, sign in SIGNS.items() if function not in ("floordiv", "mod")} | {"rem": "%"}
# The functions of csrc/codegen/kernel_math.h and portable_math.h, which exist for f32 and f64.
_OWN = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp"),
        *("exp_ftz", "expm1", "log", "log1p", "pow", "sin", "sinh", "tan", "tanh"),
    }
)


def print_kernel(kernel: Kernel, symbol: str) -> str:
    """Return the C code of one kernel.

    The C function is `rvm_status SYMBOL(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)`.
    Its arguments are the input tensors, then the output tensors.  It checks the dtype, the rank and the dimensions of
    each argument, and sets *result to NIL.
    """
    return "\n".join(text for text, _ in kernel_lines(kernel, symbol))


def kernel_lines(kernel: Kernel, symbol: str) -> list[tuple[str, Statement | None]]:
    """Return the lines of C that `print_kernel` joins, each with the statement that it is printed from.

    The statement is None for all lines around the body of the kernel, such as the comment, the signature, and the code
    that reads and checks the arguments.
    """
    buffers = (*kernel.inputs, *kernel.outputs)
    sizes = size_names(buffers)
    pointers = pointer_declarations(kernel)
    body = KernelBody(symbol, sizes, pointers)
    body.statements(kernel.body, "  ")
    entry = _entry(kernel, symbol)
    function = f"body_{symbol}" if entry else symbol
    start = "static __attribute__((noinline)) " if entry else f"{kernel_prototype(symbol)}\n"
    lines = f"{start}{_signature(function)} {{".split("\n")
    lines += _checks(kernel, sizes, "self" in body.used)
    lines += [f"  {pointers[buffer.name]} = arguments[{i}].as.tensor->dl.data;" for i, buffer in enumerate(buffers)]
    lines += [f"  const int64_t {name} = sizes[{i}];" for i, name in enumerate(sizes.values()) if name in body.used]
    comment = f"/* {c_comment_lines(kernel.comment)} */".split("\n")
    printed = [*_without_source(comment), *body.parts, *_without_source(lines)]
    end = ["  return RVM_OK;", "}", *entry]
    return [*printed, *body.lines_with_sources(), *_without_source(end)]


def pointer_declarations(kernel: Kernel) -> dict[str, str]:
    """Return the C declarations of the pointers to the elements of a kernel's inputs and outputs, by name."""
    restrict = "" if kernel.overwritable else "restrict "
    declared = {buffer.name: f"const {buffer.dtype.ctype} *{buffer.name}" for buffer in kernel.inputs}
    return declared | {b.name: f"{b.dtype.ctype} *{restrict}{b.name}" for b in kernel.outputs}


def _entry(kernel: Kernel, symbol: str) -> list[str]:
    """Return the lines of a C function `symbol` that calls the C function of the kernel, `body_SYMBOL`.

    The function checks that the C stack has enough room for the kernel, and passes inputs that the host cannot change.
    The result is empty if neither is necessary.
    """
    bounding, needed = bounding_inputs(kernel), stack_bytes(kernel)
    body, lines = f"body_{symbol}(self, arguments, count, result)", []
    if needed:
        failure = f"rvm_kernel_fail_stack(self, {c_string(kernel.name)}, {needed}, result)"
        lines.append(f"  if (rvm_stack_left(self) < {needed}) return {failure};")
    if bounding:
        lines.append(f"  static const int32_t inputs[] = {{{', '.join(map(str, bounding))}}};")
        given = f"self, body_{symbol}, inputs, {len(bounding)}, arguments, count, result"
        body = f"rvm_api->call_with_private({given})"
    function = [kernel_prototype(symbol), f"{_signature(symbol)} {{", *lines, f"  return {body};", "}"]
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


def micro_kernel_headers(kernels: Iterable[Kernel]) -> list[str]:
    """Return the headers with the micro-kernels that kernels call, sorted."""
    statements = (statement for kernel in kernels for statement in statements_in(kernel.body))
    called = {statement.function for statement in statements if isinstance(statement, Invoke)}
    return sorted({row.header for row in MICRO_KERNELS if row.name in called})


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


def _checks(kernel: Kernel, sizes: dict[DimVar, str], uses_self: bool) -> list[str]:
    """Return the lines of C that check the arguments of a kernel and the relations between sizes.

    sizes: the size variables of the kernel, with their C names.
    uses_self: whether the code of the kernel uses the C parameter `self`.
    """
    indices: dict[AnyDim, int] = {var_dim(var): i for i, var in enumerate(sizes)}

    def size_of(var: DimVar) -> CExpression:
        return element("sizes", integer(indices[var_dim(var)]))

    return [
        *argument_checks([(buffer.dtype.name, buffer.shape) for buffer in (*kernel.inputs, *kernel.outputs)], indices),
        *(() if uses_self else ("  (void)self;",)),
        "  if (status != RVM_OK) return status;",
        *(_relation_check(dimension(size, size_of), dimension(dim, size_of)) for size, dim in kernel.relations),
    ]


def argument_checks(expected: Sequence[tuple[str, Sequence[AnyDim]]], indices: dict[AnyDim, int]) -> list[str]:
    """Return the lines of C that check the arguments of a packed function, which are tensors, and set `status`.

    The lines are a table of the expected tensors, and a call of `rvm_kernel_check`.  This call also stores the value of
    each symbolic dimension in the C array `sizes`.

    expected: the dtype and the dimensions of each argument.
    indices: the index of each symbolic dimension in `sizes`.  Dimensions that are missing are added.
    """
    rows = []
    for dtype, dims in expected:
        numbers = [dim if isinstance(dim, int) else -1 - indices.setdefault(dim, len(indices)) for dim in dims]
        rows.append(", ".join(map(str, (f"RVM_DTYPE_{dtype}", len(dims), *numbers))))
    call = f"rvm_kernel_check(expected, {len(rows)}, {len(indices)}, sizes, arguments, count, result)"
    return [
        f"  static const int64_t expected[] = {{{', '.join(rows) or '0'}}};",
        f"  int64_t sizes[{max(1, len(indices))}];",
        f"  rvm_status status = {call};",
    ]


def _relation_check(actual: CExpression, expected: CExpression) -> str:
    """Return the line of C that checks that two sizes are equal."""
    values = ", ".join(str(cast("long long", size)) for size in (expected, actual))
    fail = f"rvm_api->fail(result, RVM_SHAPE_ERROR, RVM_SIZE_MISMATCH, {values})"
    return f"  if ({infix('!=', actual, expected)}) return {fail};"


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
            case Loop(counter, start, stop, body, kind, reduce):
                self.declared.add(counter.name)
                if kind == "simd":
                    clauses = " ".join(f"reduction({_SIGNS.get(name, name)}:{local.name})" for name, local in reduce)
                    self.lines.append(f"RVM_SIMD({clauses})")
                name, ctype = counter.name, counter.dtype.ctype
                head = f"for ({ctype} {name} = {self.scalar(start)}; {name} < {self.scalar(stop)}; {name}++) {{"
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
                printed = (self.address(a) if isinstance(a, Address) else self.scalar(a) for a in args)
                pairs = zip(micro_kernel_arguments(function), printed, strict=True)
                members = ", ".join(f".{argument.name} = {text}" for argument, text in pairs)
                self.lines.append(f"{indent}{function}(&({function}_arguments){{{members}}});")
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
        name, ctype, trips = loop.counter.name, loop.counter.dtype.ctype, trip_count(loop)
        first, stop = (f"{name}_{part}" for part in ("first", "stop"))
        self.declared.add(name)
        self.lines.append(f"{indent}const {ctype} {stop} = {self.scalar(loop.stop)};")
        self.lines.append(f"{indent}{ctype} {first} = {self.scalar(loop.start)};")
        if trips is None or trips >= SUM_LANES:
            self.lines.append(f"{indent}if ({first} + {SUM_LANES} <= {stop}) {{")
            self.lane_blocks(loop, indent + "  ")
            self.lines.append(indent + "}")
        if trips is None or trips % SUM_LANES:
            self.lines.append(f"{indent}for ({ctype} {name} = {first}; {name} < {stop}; {name}++) {{")
            self.statements(loop.body, indent + "  ")
            self.lines.append(indent + "}")

    def lane_blocks(self, loop: Loop, indent: str) -> None:
        name, ctype, count = loop.counter.name, loop.counter.dtype.ctype, SUM_LANES
        first, lane, stop = (f"{name}_{part}" for part in ("first", "lane", "stop"))
        for clause, local in loop.reduce:
            lanes, identity = f"{local.name}_lanes", literal(identity_of(clause, local.dtype), local.dtype)
            self.lines.append(f"{indent}{local.dtype.ctype} {lanes}[{count}];")
            self.lines.append(f"{indent}for (int l = 0; l < {count}; l++) {lanes}[l] = {identity};")
            self.lanes[local.name] = f"{lanes}[{lane}]"
        self.lines.append(f"{indent}for (; {first} + {count} <= {stop}; {first} += {count}) {{")
        self.lines.append("RVM_SIMD()")
        self.lines.append(f"{indent}  for ({ctype} {lane} = 0; {lane} < {count}; {lane}++) {{")
        self.lines.append(f"{indent}    const {ctype} {name} = {first} + {lane};")
        self.statements(loop.body, indent + "    ")
        self.lines += [indent + "  }", indent + "}"]
        for clause, local in loop.reduce:
            del self.lanes[local.name]
            lanes, half = f"{local.name}_lanes", count // 2
            while half:
                pair = _combine(clause, primary(f"{lanes}[l]"), primary(f"{lanes}[l + {half}]"))
                self.lines.append(f"{indent}for (int l = 0; l < {half}; l++) {lanes}[l] = {pair};")
                half //= 2
            total = self.scalar(local)
            self.lines.append(f"{indent}{total} = {_combine(clause, primary(f'{lanes}[0]'), total)};")

    def allocate(self, buffer: Buffer) -> str:
        return f"RVM_ALIGNED({_ALIGNMENT}) {buffer.dtype.ctype} {buffer.name}[{math.prod(buffer.shape)}];"

    def fail(self, fail: Fail) -> str:
        arguments = "".join(f", {cast('long long', self.scalar(value))}" for value in fail.values)
        return f"return rvm_api->fail(result, RVM_{fail.status}, {c_string(fail.message)}{arguments});"

    def parallel(self, loop: Parallel, indent: str) -> None:
        """Print a parallel loop.

        The body becomes a separate C function, which runs a range of the iterations.  The function receives a struct of
        the kernel variables that the body uses.
        """
        name = f"part{self.part_count}_of_{self.symbol}"
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

    def scalar(self, scalar: Scalar) -> CExpression:
        """Return the C expression of a scalar."""
        match scalar:
            case Literal(value, dtype):
                return literal(value, dtype)
            case Local(name, dtype):
                if name in self.lanes:
                    return primary(self.lanes[name])
                self.used.setdefault(name, f"{dtype.ctype} {name}")
                return primary(name)
            case Size(dim):
                return self.size(dim)
            case Load(buffer, indices):
                return element(self.buffer(buffer), self.index(buffer, indices))
            case Operation(function, operands, dtype):
                values = [self.scalar(operand) for operand in operands]
                if (sign := _SIGNS.get(function)) is not None:
                    return _truncated(infix(sign * 2 if dtype is BOOL and sign in "&|" else sign, *values), dtype)
                match function:
                    case "cast":
                        return conversion(values[0], operands[0].dtype, dtype)
                    case "select":
                        return conditional(*values)
                    case "neg" | "not":
                        return _truncated(prefix("-" if function == "neg" else "!", *values), dtype)
                return call(_function(function, dtype), *values)
        raise AssertionError(f"cannot translate {type(scalar).__name__} to C")

    def address(self, address: Address) -> CExpression:
        return infix("+", primary(self.buffer(address.buffer)), self.scalar(address.position))

    def buffer(self, buffer: Buffer) -> str:
        self.used.setdefault(buffer.name, self.pointers[buffer.name])
        return buffer.name

    def size(self, dim: AnyDim) -> CExpression:
        def name_of(var: DimVar) -> CExpression:
            name = self.sizes[var]
            self.used.setdefault(name, f"int64_t {name}")
            return primary(name)

        return dimension(dim, name_of)

    def index(self, buffer: Buffer, indices: tuple[Scalar, ...]) -> CExpression:
        """Return the C expression of the row-major position of an element of `buffer`.

        indices: the index along each axis, or a single item, which is the row-major position itself.
        """
        return self.scalar(buffer_position(buffer, indices))


def _function(name: str, dtype: DType) -> str:
    """Return the name of the C function for a function of loop IR.

    A header of the runtime, a header in csrc/codegen or <math.h> declares the function.
    """
    name = MATH_H_NAMES.get(name, name)
    if name in _OWN:
        return f"rvm_{name}_{dtype.name}"
    if dtype.name != "f32" or name.startswith("rvm_"):
        return name
    return "RVM_FMA_F32" if name == "fma" else f"{name}f"


def _combine(clause: str, left: CExpression, right: CExpression) -> CExpression:
    """Return the C expression that combines the values `left` and `right` in a reduction.

    clause: the operator of the reduction, such as "add" or "max".
    """
    if clause in ("max", "min"):
        return conditional(infix(">" if clause == "max" else "<", left, right), left, right)
    return infix(_SIGNS[clause], left, right)


def _truncated(result: CExpression, dtype: DType) -> CExpression:
    """Return the result of an operation on `dtype`, truncated if C promotes the operands to int."""
    return cast(dtype.ctype, result) if dtype.is_integer and dtype.bits < 32 else result
