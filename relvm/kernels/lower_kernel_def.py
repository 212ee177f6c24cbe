"""Lowering of kernel definitions to loop IR.

Lowering adds index checks, gives integer divisions by 0 a defined result, and sets outputs to 0 first if the kernel may
leave some of their elements unwritten.  An index that is proven to be inside its axis (relvm/kernels/index_bounds.py)
is not checked at run time.  In `simd` and `parallel` loops every index must be proven, because a failed check would end
the kernel while other iterations run.  An innermost `range` loop becomes a SIMD loop if its iterations are independent
and contain no checks, unless it reduces floats or is short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from relvm.errors import RelvmTypeError, located
from relvm.ir import loop_ir as ir
from relvm.ir.dtypes import I64, DType
from relvm.ir.kernel_def import KernelDef, without_inouts
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_var, evaluate_with, format_dim, var_dim
from relvm.kernels.empty_loops import skip_empty_loops
from relvm.kernels.independence import check_independent, reductions_of
from relvm.kernels.index_bounds import LARGEST_SIZE, IndexBounds
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.updates import copy_input, is_read, match_whole_copy, updated_input
from relvm.quoting import c_identifier

_OPERATION_WORK = 8  # time of a scalar operation, in eighths of a nanosecond
_SHORTEST_STRIP = 16  # minimum number of iterations for which a loop is vectorized
_UNKNOWN_TRIPS = 64  # assumed iterations of a loop of unknown length, to estimate the work of a parallel loop


def lower_kernel_def(kernel: KernelDef, sizes: Mapping[DimVar, int], name: str) -> Kernel:
    """Lower a kernel definition to loop IR.

    An inout parameter becomes an input and an output, by `kernel_def.without_inouts`.

    Parameters
    ----------
    sizes
        The values of the known dimension variables.  The resulting kernel is valid for these sizes only.
    name
        The name of the resulting kernel.

    Raises
    ------
    RelvmTypeError
        The iterations of a `simd` or `parallel` loop depend on each other, or an index in such a loop cannot be proven
        to be inside its axis.  The error contains the source location.
    """
    return _Lowering(without_inouts(kernel), sizes).kernel(name)


class _Lowering:
    """The lowering of one kernel.

    unchecked: the innermost open `simd` or `parallel` loop, or None.  Inside such a loop, run-time checks are not
    possible.
    guard: the condition under which elements may be loaded, or None if they always may.
    """

    def __init__(self, kernel: KernelDef, sizes: Mapping[DimVar, int]) -> None:
        self.definition = kernel
        self.sizes = dict(sizes)
        self.k = KernelBuilder()
        assigned = {s.local for s in ir.statements_in(kernel.body) if isinstance(s, ir.Assign)}
        self.bounds = IndexBounds(self.sizes, assigned)
        self.locals: dict[ir.Local, ir.Scalar] = {}
        self.buffers: dict[ir.Buffer, ir.Buffer] = {}
        self.compound: dict[AnyDim, AnyDim] = {}  # dimension such as n + m -> its variable in shapes
        self.unchecked: ir.Loop | None = None
        self.guard: ir.Scalar | None = None
        self.k.names["shared_"] = 1  # the C printer uses this name itself
        for buffer in kernel.params:
            shape = tuple(map(self.buffer_dim, buffer.shape))
            unique = self.k.local(f"{c_identifier(buffer.name)}_", I64).name
            self.buffers[buffer] = ir.Buffer(unique, buffer.dtype, shape)

    def buffer_dim(self, dim: AnyDim) -> AnyDim:
        """Convert the dimension `dim` to a form that is allowed in the shape of a buffer: an integer or a variable.

        A compound dimension, such as `n + 1`, becomes a new variable.
        """
        known = evaluate_with(dim, self.sizes.get)
        if isinstance(known, int) or as_var(known) is not None:
            return known
        return self.compound.setdefault(known, dim_var("size"))

    def kernel(self, name: str) -> Kernel:
        definition = self.definition
        for dim, size in self.compound.items():
            self.bounds.relies_on_sizes = True
            actual, expected = ir.as_scalar(size, I64), self.dim(dim)
            message = f"kernel {_text(definition.name)}: expected {_text(format_dim(dim))} = %lld, got a size of %lld"
            self.k.fail(actual.ne(expected), "SHAPE_ERROR", message, expected, actual)
        for buffer in definition.outputs:
            if not is_fully_written(definition, buffer):
                self.clear(self.buffers[buffer])
        self.statements(self.after_copy(definition.body))
        body = self.k.finish()
        if self.bounds.relies_on_sizes:
            body = (*self.size_checks(), *body)
        inputs = tuple(self.buffers[buffer] for buffer in definition.inputs)
        outputs = tuple(self.buffers[buffer] for buffer in definition.outputs)
        updated = updated_input(body, inputs, outputs)
        body = skip_empty_loops(body, inputs)
        params = (", ".join(f"{b.name}: {b.type}" for b in part) for part in (definition.inputs, definition.outputs))
        comment = "kernel {}({}) -> ({})".format(definition.name, *params)
        return Kernel(name, inputs, outputs, body, comment, updated=updated)

    def after_copy(self, body: tuple[ir.Statement, ...]) -> tuple[ir.Statement, ...]:
        """Return the statements of a kernel's body that are left to lower.

        If the body begins with the copy of an input that is not read afterwards, emit `copy_input` for it.
        """
        found = match_whole_copy(body[0]) if body else None
        if found is None or len(self.definition.outputs) != 1 or is_read(found[0], body[1:]):
            return body
        copy_input(self.k, *(self.buffers[buffer] for buffer in found))
        return body[1:]

    def size_checks(self) -> tuple[ir.Statement, ...]:
        """Return checks that no size exceeds LARGEST_SIZE, as some proofs of index bounds assume."""
        k = KernelBuilder()
        variables = dict.fromkeys(
            as_var(dim) for buffer in self.buffers.values() for dim in buffer.shape if not isinstance(dim, int)
        )
        for var in variables:
            assert var is not None
            size = ir.Size(var_dim(var))
            message = f"kernel {_text(self.definition.name)}: a size of %lld exceeds the limit of 2^40"
            k.fail(size > LARGEST_SIZE, "SHAPE_ERROR", message, size)
        return k.finish()

    def clear(self, out: ir.Buffer) -> None:
        """Emit code that sets all elements of the output `out` to 0."""
        with self.k.loop(self.k.size(out.shape), name="cleared", simd=True) as i:
            self.k.add(ir.Store(out, (i,), ir.Literal(False if out.dtype.is_bool else 0, out.dtype)))

    # ---- statements ----

    def statements(self, body: tuple[ir.Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: ir.Statement) -> None:
        k = self.k
        match statement:
            case ir.Let(variable, value):
                scalar = self.scalar(value)
                self.locals[variable] = k.variable(self.name_of(variable), scalar)
                self.bounds.define(variable, value)
            case ir.Assign(variable, value):
                local = self.locals[variable]
                assert isinstance(local, ir.Local)
                k.assign(local, self.assigned_value(variable, value))
            case ir.Store(buffer, indices, value, origin):
                at = self.indices(buffer, indices, origin)
                scalar = self.scalar(value)
                k.add(ir.Store(self.buffers[buffer], at, scalar))
            case ir.IfThen(cond, then, orelse):
                self.branch(statement, self.scalar(cond), then, orelse)
            case ir.Loop():
                self.loop(statement)

    def assigned_value(self, variable: ir.Local, value: ir.Scalar) -> ir.Scalar:
        """Lower `value`, which is assigned to `variable`.

        If the assignment is a reduction, return the form that loop IR expects, such as x + -a for x - a.
        """
        match value:
            case ir.Operation("sub", (first, second)) if first is variable:  # in a reduction, x - a is a sum of -a
                return self.locals[variable] + -self.scalar(second)
            case ir.Operation("max" | "min" as function, (first, second)) if second is variable or (
                first is variable and not variable.dtype.is_float
            ):
                other = self.reusable(self.scalar(second if first is variable else first))
                extreme = ir.maximum if function == "max" else ir.minimum
                return extreme(other, self.locals[variable])
        return self.scalar(value)

    def branch(
        self, statement: ir.IfThen, cond: ir.Scalar, then: tuple[ir.Statement, ...], orelse: tuple[ir.Statement, ...]
    ) -> None:
        k, parts = self.k, []
        for body, holds in ((then, True), (orelse, False)):
            k.blocks.append([])
            with self.bounds.condition(statement.cond, holds=holds):
                self.statements(body)
            parts.append(tuple(k.blocks.pop()))
        k.add(ir.IfThen(cond, parts[0], parts[1]))

    def loop(self, loop: ir.Loop) -> None:
        if loop.kind == "parallel":
            self.parallel(loop)
        elif not (loop.kind == "range" and self.try_vectorize(loop)):
            self.plain_loop(loop)

    def try_vectorize(self, loop: ir.Loop) -> bool:
        """Try to lower a `range` loop as an innermost `simd` loop.  Return whether this was possible.

        If the `simd` loop is not proven to be equivalent, emit nothing.  A loop that reduces floats does not count as
        equivalent, because the order of the operations would change.  A loop that is known to be short is lowered in
        the same way, but stays a `range` loop.
        """
        if any(isinstance(statement, ir.Loop) for statement in ir.statements_in(loop.body)):
            return False
        simd = replace(loop, kind="simd")
        depth, length, names = len(self.k.blocks), len(self.k.blocks[-1]), dict(self.k.names)
        try:
            if any(variable.dtype.is_float for variable in reductions_of(simd)):
                return False
            self.plain_loop(simd)
        except RelvmTypeError:
            del self.k.blocks[depth:], self.k.blocks[-1][length:]
            self.k.names = names
            return False
        lowered = self.k.blocks[-1][-1]
        if isinstance(lowered, ir.Loop) and ir.trip_count(lowered) in range(_SHORTEST_STRIP):
            self.k.blocks[-1][-1] = replace(lowered, kind="range", reduce=())
        return True

    def plain_loop(self, loop: ir.Loop) -> None:
        """Lower a `range` or `simd` loop."""
        start, stop = self.bound(loop.start), self.bound(loop.stop)
        reduce = []
        with self.loop_body(loop), self.bounds.loop(loop) as counter:
            if loop.kind == "simd":
                found = reductions_of(loop)
                check_independent(loop, counter, self.bounds)
                reduce = [(function, self.locals[variable]) for variable, function in found.items()]
            name, simd = self.name_of(loop.counter), loop.kind == "simd"
            with self.k.loop(stop, start=start, name=name, simd=simd, reduce=reduce) as local:
                self.locals[loop.counter] = local
                self.statements(loop.body)

    def parallel(self, loop: ir.Loop) -> None:
        k = self.k
        start, stop = self.bound(loop.start), self.bound(loop.stop)
        work, name = ir.Literal(_work(loop.body), I64), self.name_of(loop.counter)
        with self.loop_body(loop), self.bounds.loop(loop) as counter:
            check_independent(loop, counter, self.bounds)
            start, stop = self.reusable(start), self.reusable(stop)
            length = self.reusable(ir.select(start < stop, stop - start, ir.Literal(0, I64)))
            count = ir.maximum(length, 0)  # no iterations if the length exceeds 2^63 and has wrapped around
            with k.parallel(count, work) as (first, last), k.loop(last, start=first, name=name) as number:
                is_first = ir.constant_value(start) == 0
                self.locals[loop.counter] = number if is_first else k.let(name, start + number)
                self.statements(loop.body)

    @contextmanager
    def loop_body(self, loop: ir.Loop) -> Iterator[None]:
        """A context manager for the body of a loop.

        For a `simd` or `parallel` loop, it sets `unchecked`, because such a body cannot contain run-time checks.
        """
        outer = self.unchecked
        if loop.kind != "range":
            self.unchecked = loop
        try:
            yield
        finally:
            self.unchecked = outer

    def bound(self, scalar: ir.Scalar) -> ir.Scalar:
        """Lower a bound of a loop to a scalar whose value does not change while the loop runs.

        If necessary, the scalar is a new variable.
        """
        value = self.scalar(scalar)
        return value if _is_invariant(scalar, self.bounds.assigned) else self.k.let("bound_", value)

    def name_of(self, variable: ir.Local) -> str:
        return f"{c_identifier(variable.name)}_"

    # ---- scalars ----

    @contextmanager
    def guarded(self, guard: ir.Scalar | None) -> Iterator[None]:
        """A context manager in which elements may be loaded only if `guard` holds."""
        outer, self.guard = self.guard, guard
        try:
            yield
        finally:
            self.guard = outer

    def if_guarded(self, cond: ir.Scalar) -> ir.Scalar:
        """Return the condition that both the guard and `cond` hold."""
        return cond if self.guard is None else self.guard.logical_and(cond)

    def reusable(self, scalar: ir.Scalar) -> ir.Scalar:
        """Return a scalar that can be used several times: `scalar` itself, or a new variable with its value.

        If the scalar loads an element, the variable is 0 where the guard does not hold.
        """
        if isinstance(scalar, ir.Local | ir.Literal | ir.Size):
            return scalar
        if self.guard is not None and ir.has_load(scalar):
            zero = ir.Literal(False if scalar.dtype.is_bool else 0, scalar.dtype)
            scalar = ir.select(self.guard, scalar, zero)
        return self.k.let("t_", scalar)

    def indices(self, buffer: ir.Buffer, indices: tuple[ir.Scalar, ...], origin: str) -> tuple[ir.Scalar, ...]:
        """Lower the indices of an access to `buffer`.

        Emit a check for each index that is not proven to be inside its axis.

        origin: the source location of the access.
        """
        lowered = []
        for axis, index in enumerate(indices):
            scalar = self.scalar(index)
            size = self.buffers[buffer].shape[axis]
            if not self.bounds.is_inside(self.bounds.dim(index), self.size_of(buffer, axis)):
                scalar = self.emit_index_check(buffer, axis, scalar, size, origin)
            lowered.append(scalar)
        return tuple(lowered)

    def size_of(self, buffer: ir.Buffer, axis: int) -> AnyDim:
        return evaluate_with(buffer.shape[axis], self.sizes.get)

    def emit_index_check(self, buffer: ir.Buffer, axis: int, index: ir.Scalar, size: AnyDim, origin: str) -> ir.Scalar:
        """Emit a run-time check that `index` is inside axis `axis` of `buffer`, and return the index.

        Raise RelvmTypeError in a loop in which run-time checks are not possible (`unchecked`).

        size: the size of the axis.
        origin: the source location of the access.
        """
        where = f"kernel {self.definition.name}"
        if self.unchecked is not None:
            kind, shown = self.unchecked.kind, format_dim(buffer.shape[axis])
            reason = f"{where}: cannot prove that the index of {buffer.name} along axis {axis} is in [0, {shown})"
            hint = f"an index in a {kind} loop is not checked at run time; access the element only under a condition"
            raise located(RelvmTypeError(f"{reason}; {hint} (0 <= i and i < {shown}), or use a range loop"), origin)
        index = self.reusable(index)
        outside = (index < 0).logical_or(index >= ir.as_scalar(size, I64))
        message = f"{_text(where)}: index %lld is outside axis {axis} of {_text(buffer.name)}, of size %lld"
        self.k.fail(self.if_guarded(outside), "INDEX_ERROR", message, index, size)
        return index

    def dim(self, dim: AnyDim) -> ir.Scalar:
        """Return the dimension `dim` as a scalar expression of the sizes of axes."""
        if isinstance(dim, int):
            return ir.Literal(dim, I64)
        total: ir.Scalar = ir.Literal(0, I64)
        for monomial, factor in dim.terms:
            term: ir.Scalar = ir.Literal(factor, I64)
            for atom in monomial:
                term = term * (ir.Size(var_dim(atom)) if isinstance(atom, DimVar) else self.dim_operation(atom))
            total = total + term
        return total

    def dim_operation(self, atom) -> ir.Scalar:
        left, right = (self.reusable(self.dim(side)) for side in (atom.left, atom.right))
        match atom.function:
            case "min":
                return ir.minimum(left, right)
            case "max":
                return ir.maximum(left, right)
            case "floordiv":
                return self.floor_division(left, right)
        return self.modulo(left, right)

    def scalar(self, scalar: ir.Scalar) -> ir.Scalar:
        match scalar:
            case ir.Literal():
                return scalar
            case ir.Local():
                return self.locals[scalar]
            case ir.Size(dim):
                return self.dim(evaluate_with(dim, self.sizes.get))
            case ir.Load(buffer, indices, origin):
                return ir.Load(self.buffers[buffer], self.indices(buffer, indices, origin))
            case ir.Operation("and" | "or" as function, (left, right)):
                return self.short_circuit(function, left, right)
            case ir.Operation("select", (cond, then, orelse)):
                return self.conditional(cond, then, orelse)
            case ir.Operation(function, operands, dtype):
                return self.operation(function, tuple(map(self.scalar, operands)), dtype)
        raise AssertionError(f"cannot lower {type(scalar).__name__}")

    def short_circuit(self, function: str, left: ir.Scalar, right: ir.Scalar) -> ir.Scalar:
        first = self.scalar(left)
        is_and = function == "and"
        if not ir.has_load(right):
            second = self.scalar(right)
        else:
            first = self.reusable(first)
            guard = self.reusable(self.if_guarded(first if is_and else first.logical_not()))
            with self.bounds.condition(left, holds=is_and), self.guarded(guard):
                second = self.scalar(right)
        return first.logical_and(second) if is_and else first.logical_or(second)

    def conditional(self, cond: ir.Scalar, then: ir.Scalar, orelse: ir.Scalar) -> ir.Scalar:
        test = self.scalar(cond)
        guards = (self.guard, self.guard)
        if ir.has_load(then) or ir.has_load(orelse):
            test = self.reusable(test)
            guards = (self.reusable(self.if_guarded(test)), self.reusable(self.if_guarded(test.logical_not())))
        parts = []
        for part, guard, holds in ((then, guards[0], True), (orelse, guards[1], False)):
            with self.bounds.condition(cond, holds=holds), self.guarded(guard if ir.has_load(part) else self.guard):
                parts.append(self.scalar(part))
        return ir.select(test, parts[0], parts[1])

    def operation(self, function: str, operands: tuple[ir.Scalar, ...], dtype: DType) -> ir.Scalar:
        match function:
            case "floordiv":
                return self.floor_division(*operands)
            case "mod":
                return self.modulo(*operands)
            case "max" | "min":
                a, b = map(self.reusable, operands)
                return ir.select(a > b if function == "max" else a < b, a, b)
            case "abs" if dtype.is_integer:
                a = self.reusable(operands[0])
                return ir.select(a < 0, -a, a) if dtype.is_signed else a
        return ir.Operation(function, operands, dtype)

    def floor_division(self, x: ir.Scalar, y: ir.Scalar) -> ir.Scalar:
        """Return x // y, rounded down, or 0 if y is 0."""
        x, y = self.reusable(x), self.reusable(y)
        if not x.dtype.is_signed:
            return ir.integer_quotient(x, y)
        rest = self.reusable(ir.integer_remainder(x, y))
        quotient = self.reusable(ir.integer_quotient(x, y))
        rounds = rest.ne(0).logical_and((rest < 0).ne(y < 0))
        return ir.select(rounds, quotient - 1, quotient)

    def modulo(self, x: ir.Scalar, y: ir.Scalar) -> ir.Scalar:
        """Return x % y, with the sign of y, or 0 if y is 0."""
        x, y = self.reusable(x), self.reusable(y)
        rest = self.reusable(ir.integer_remainder(x, y))
        if not x.dtype.is_signed:
            return rest
        return ir.select(rest.ne(0).logical_and((rest < 0).ne(y < 0)), rest + y, rest)


def is_fully_written(kernel: KernelDef, buffer: ir.Buffer) -> bool:
    """Return whether a kernel certainly writes each element of an output before it reads that element.

    If not, the output must be set to 0 first.

    The function looks for an assignment to the output inside loops over all of its axes, with the counters of these
    loops as indices.  The assignment must not be inside an `if` or any other loop.  Every read of the output must come
    after these loops, or come after the assignment and have the same indices.
    """
    put = _covering_put(kernel.body, buffer, ())
    if put is None:
        return False
    is_written = False
    for outermost in kernel.body:
        for statement in ir.statements_in((outermost,)):
            for part in ir.scalars_in(statement):
                if (
                    isinstance(part, ir.Load)
                    and part.buffer is buffer
                    and not (is_written and part.indices == put.indices)
                ):
                    return False
            is_written = is_written or statement is put
        if is_written:
            return True
    return True


def _covering_put(body: tuple[ir.Statement, ...], buffer: ir.Buffer, loops: tuple[ir.Loop, ...]) -> ir.Store | None:
    for statement in body:
        match statement:
            case ir.Store(written, indices) if written is buffer:
                if {loop.counter for loop in loops} == set(indices) and len(indices) == len(loops):
                    over: dict[ir.Scalar, ir.Loop] = {loop.counter: loop for loop in loops}
                    pairs = zip((over[index] for index in indices), buffer.shape, strict=True)
                    if all(_covers(loop, dim) for loop, dim in pairs):
                        return statement
            case ir.Loop(body=inner):
                found = _covering_put(inner, buffer, (*loops, statement))
                if found is not None:
                    return found
    return None


def _covers(loop: ir.Loop, dim: AnyDim) -> bool:
    """Return whether a loop runs over [0, dim)."""
    match loop.start, loop.stop:
        case ir.Literal(0), ir.Literal(value) | ir.Size(value):
            return value == dim
    return False


def _work(body: tuple[ir.Statement, ...]) -> int:
    """Return the approximate time to execute `body`, in eighths of a nanosecond."""
    total = 0
    for statement in body:
        total += _OPERATION_WORK * sum(1 for _ in ir.scalars_in(statement))
        match statement:
            case ir.Loop(_, ir.Literal(start), ir.Literal(stop), body=inner):
                total += max(0, int(stop) - int(start)) * _work(inner)
            case ir.Loop(body=inner):
                total += _UNKNOWN_TRIPS * _work(inner)
            case ir.IfThen(_, then, orelse):
                total += max(_work(then), _work(orelse))
    return min(total, 1 << 40)


def _is_invariant(scalar: ir.Scalar, assigned: set[ir.Local]) -> bool:
    """Return whether `scalar` always has the same value.

    This is so if it reads no element of a buffer and no variable in `assigned`.
    """
    return all(
        not isinstance(part, ir.Load) and not (isinstance(part, ir.Local) and part in assigned)
        for part in ir.parts_of(scalar)
    )


def _text(name: str) -> str:
    """Escape the % signs of a name for the message of a Fail, which is a format string."""
    return name.replace("%", "%%")
