"""Proofs that the iterations of `simd` and `parallel` loops of kernel definitions are independent."""

from __future__ import annotations

from collections.abc import Iterator

from relvm.data_classes import value_record
from relvm.errors import RelvmTypeError, located
from relvm.ir import kernel_def as kd
from relvm.ir.symbolic import AnyDim, DimVar, dim_op, dim_vars, var_dim
from relvm.kernels.index_bounds import IndexBounds

_REDUCTIONS = ("add", "mul", "max", "min")


def reductions_of(loop: kd.For) -> dict[kd.Variable, str]:
    """Return the variables into which a `simd` loop reduces values, as in `total += x`.

    Such a variable is defined outside of the loop.  It is mapped to its reduction function: add, mul, max or min.

    Raises
    ------
    RelvmTypeError
        The loop changes a variable that is defined outside of it by something other than one kind of reduction.  The
        error is also raised if the loop reads such a variable for another purpose than the reduction.
    """
    inner_variables = _find_definitions(loop)
    found: dict[kd.Variable, str] = {}
    for statement in kd.statements_in(loop.body):
        if isinstance(statement, kd.Assign) and statement.variable not in inner_variables:
            function = _reduction(statement) if statement in loop.body else None
            if function is None or found.get(statement.variable, function) != function:
                raise _reduction_error(statement)
            found[statement.variable] = function
    for statement in kd.statements_in(loop.body):
        parts = [part for scalar in kd.scalars_in(statement) for part in kd.subexpressions(scalar)]
        reads = [part for part in parts if isinstance(part, kd.Variable) and part in found]
        if isinstance(statement, kd.Assign) and statement.variable in reads:
            reads.remove(statement.variable)  # the reduction itself reads its variable once
        if reads:
            reason = f"{reads[0].name} is the result of a reduction, which cannot be read before the end of the loop"
            raise located(RelvmTypeError(reason), getattr(statement, "origin", "") or loop.origin)
    return found


def _reduction(statement: kd.Assign) -> str | None:
    match statement.value:
        case kd.Operation("sub", (first, _)) if first is statement.variable:
            return "add"
        case kd.Operation(function, operands) if function in _REDUCTIONS and statement.variable in operands:
            return function
    return None


def _reduction_error(statement: kd.Assign) -> Exception:
    name = statement.variable.name
    reason = (
        f"a simd loop may change {name}, which is defined outside of it, only by one reduction: {name} += x,"
        f" {name} -= x, {name} *= x, {name} = max({name}, x) or {name} = min({name}, x)"
    )
    return located(RelvmTypeError(reason), statement.origin)


def _find_definitions(loop: kd.For) -> set[kd.Variable]:
    found: set[kd.Variable] = set()
    for statement in kd.statements_in(loop.body):
        match statement:
            case kd.Let(variable) | kd.For(variable):
                found.add(variable)
    return found


def check_independent(loop: kd.For, counter: DimVar, bounds: IndexBounds) -> None:
    """Check that the iterations of a `simd` or `parallel` loop are independent.

    Iterations are independent if none of them accesses an array element that another iteration writes.  Also check that
    the loop contains no forbidden statements, such as an `if` in a `simd` loop.  Assignments to variables in a `simd`
    loop are not checked here, because `reductions_of` checks them.

    Parameters
    ----------
    counter
        The variable that represents the loop counter in the polynomials of `bounds`.

    Raises
    ------
    RelvmTypeError
        The iterations are not proven to be independent, or the loop contains a forbidden statement.  The error contains
        the source location.
    """
    inner_variables = _find_definitions(loop)
    invariant = _invariant_atoms(bounds, inner_variables, counter)
    for statement in kd.statements_in(loop.body):
        _check_statement(loop, statement, inner_variables)
    accesses: dict[kd.KernelBuffer, list[tuple[_Index, ...]]] = {}
    _find_accesses(loop.body, counter, bounds, accesses)
    for statement in kd.statements_in(loop.body):
        if isinstance(statement, kd.Put) and not _are_disjoint(accesses[statement.buffer], invariant):
            name, i = statement.buffer.name, loop.counter.name
            reason = (
                f"the iterations of a {loop.kind} loop must be independent, but several may access the same element"
                f" of {name}; one index of each access must be {i}, or the same {i} * a + b, where either"
                " 0 <= b < a or the loop does not change b; otherwise use range"
            )
            raise located(RelvmTypeError(reason), statement.origin or loop.origin)


@value_record
class _Index:
    """An index of the form factor * counter + offset, where `counter` is the counter of the loop that is checked.

    is_offset_small: whether `offset` is proven to be in [0, |factor|).
    """

    factor: int
    offset: AnyDim
    is_offset_small: bool


def _find_accesses(
    body: tuple[kd.Statement, ...],
    counter: DimVar,
    bounds: IndexBounds,
    accesses: dict[kd.KernelBuffer, list[tuple[_Index, ...]]],
) -> None:
    """Add to `accesses` the indices of all accesses to outputs in `body`, the body of a loop.

    counter: the variable that represents the loop counter in the polynomials of `bounds`.
    bounds: the prover, which converts index expressions to polynomials.
    """
    for statement in body:
        for buffer, indices in _output_accesses(statement):
            split = tuple(_split_index(bounds.dim(index), counter, bounds) for index in indices)
            accesses.setdefault(buffer, []).append(split)
        match statement:
            case kd.Let(variable, value):
                bounds.define(variable, value)
            case kd.For(body=inner):
                with bounds.loop(statement):
                    _find_accesses(inner, counter, bounds, accesses)
            case kd.Branch(cond, then, orelse):
                for part, holds in ((then, True), (orelse, False)):
                    with bounds.condition(cond, holds=holds):
                        _find_accesses(part, counter, bounds, accesses)


def _split_index(index: AnyDim, counter: DimVar, bounds: IndexBounds) -> _Index:
    factor = 0 if isinstance(index, int) else dict(index.terms).get((counter,), 0)
    offset = dim_op("sub", index, dim_op("mul", factor, var_dim(counter)))
    is_free = counter not in dim_vars(offset)
    return _Index(factor, offset, is_free and bounds.is_inside(offset, abs(factor)))


def _invariant_atoms(bounds: IndexBounds, inner_variables: set[kd.Variable], counter: DimVar) -> set[DimVar]:
    """Return the variables of polynomials whose values do not change in a loop.

    These are the variables in the polynomials of values that are defined before the loop.

    bounds: the prover, which stores these polynomials.
    inner_variables: the variables that the loop defines.
    counter: the variable that represents the loop's counter in polynomials.
    """
    outer = (value for variable, value in bounds.values.items() if variable not in inner_variables)
    return {var for value in outer for var in dim_vars(value)} - {counter}


def _check_statement(loop: kd.For, statement: kd.Statement, inner_variables: set[kd.Variable]) -> None:
    def error(reason: str) -> Exception:
        return located(RelvmTypeError(reason), getattr(statement, "origin", "") or loop.origin)

    match statement:
        case kd.Branch() if loop.kind == "simd":
            raise error(
                "a simd loop must not contain an if; use the expression `if c then a else b` (Python: a if c else b)"
            )
        case kd.For(kind=kind) if kind == "parallel" or (kind == "simd" and loop.kind == "simd"):
            raise error(f"a {loop.kind} loop cannot contain a {kind} loop; use range")
        case kd.For(_, start, stop) if loop.kind == "simd":
            parts = [part for bound in (start, stop) for part in kd.subexpressions(bound)]
            if any(_may_vary(part, inner_variables) or part is loop.counter for part in parts):
                raise error("the bounds of a loop in a simd loop must not depend on the iteration of the simd loop")
        case kd.Assign(variable) if loop.kind == "parallel" and variable not in inner_variables:
            raise error(f"a parallel loop cannot change {variable.name}, which is defined outside of it")


def _may_vary(part: kd.Scalar, inner_variables: set[kd.Variable]) -> bool:
    """Return whether an operand of a loop bound can have different values in different iterations of a `simd` loop.

    part: an operand in a bound of a loop inside the `simd` loop.

    inner_variables: the variables defined in the `simd` loop.  The counters of inner loops are not considered to vary,
    because the bounds of these loops must also be the same in each iteration.
    """
    return isinstance(part, kd.Element) or (
        isinstance(part, kd.Variable) and part in inner_variables and not part.is_counter
    )


def _output_accesses(statement: kd.Statement) -> Iterator[tuple[kd.KernelBuffer, tuple[kd.Scalar, ...]]]:
    """Yield the elements of outputs that a statement itself reads or writes.  Nested statements are not visited."""
    for scalar in kd.scalars_in(statement):
        for part in kd.subexpressions(scalar):
            if isinstance(part, kd.Element) and part.buffer.is_output:
                yield part.buffer, part.indices
    if isinstance(statement, kd.Put):
        yield statement.buffer, statement.indices


def _are_disjoint(accesses: list[tuple[_Index, ...]], invariant: set[DimVar]) -> bool:
    """Return whether any two iterations of a loop certainly access different elements of an output.

    This is so if, along some axis, all indices have the form a * counter + b with the same nonzero a.  In addition,
    either all indices have the same b, which the loop does not change, or each b is in [0, |a|).

    accesses: the indices of each access to the output.
    invariant: the variables of polynomials whose values do not change in the loop, from `_invariant_atoms`.
    """
    for indices in zip(*accesses, strict=True):
        first = indices[0]
        if first.factor == 0 or any(index.factor != first.factor for index in indices):
            continue
        is_same = all(index.offset == first.offset for index in indices)
        if is_same and all(not var.signed or var in invariant for var in dim_vars(first.offset)):
            return True
        if all(index.is_offset_small for index in indices):
            return True
    return False
