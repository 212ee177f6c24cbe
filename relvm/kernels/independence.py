"""Proofs that the iterations of loops are independent."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from relvm.data_classes import value_record
from relvm.errors import RelvmTypeError, RelvmUnsupportedError, located
from relvm.ir import loop_ir as ir
from relvm.ir.symbolic import AnyDim, DimVar, coefficient, dim_op, dim_vars, is_never_negative, var_dim
from relvm.kernels.index_bounds import IndexBounds

_REDUCTIONS = ("add", "mul", "max", "min")


def reductions_of(loop: ir.Loop) -> dict[ir.Local, str]:
    """Return the variables into which a `simd` loop reduces values, as in `total += x`.

    Such a variable is defined outside of the loop.  It is mapped to its reduction function: add, mul, max or min.

    Raises
    ------
    RelvmTypeError
        The loop changes a variable that is defined outside of it by something other than one kind of reduction, or in
        an inner loop.  The error is also raised if the loop reads such a variable for another purpose than the
        reduction.
    """
    inner_variables = _find_definitions(loop)
    found: dict[ir.Local, str] = {}
    for statement in ir.statements_in(loop.body):
        if isinstance(statement, ir.Assign) and statement.local not in inner_variables:
            function = _reduction(statement) if statement in loop.body else None
            if function is None or found.get(statement.local, function) != function:
                raise _reduction_error(statement)
            found[statement.local] = function
    for statement in ir.statements_in(loop.body):
        reads = [part for part in ir.scalars_in(statement) if isinstance(part, ir.Local) and part in found]
        if isinstance(statement, ir.Assign) and statement.local in reads:
            reads.remove(statement.local)  # the reduction itself reads its variable once
        if reads:
            reason = f"{reads[0].name} is the result of a reduction, which cannot be read before the end of the loop"
            raise located(RelvmTypeError(reason), getattr(statement, "origin", "") or loop.origin)
    return found


def _reduction(statement: ir.Assign) -> str | None:
    match statement.value:
        case ir.Operation("sub", (first, _)) if first is statement.local:
            return "add"
        case ir.Operation(function, operands) if function in _REDUCTIONS and statement.local in operands:
            return function
    return None


def _reduction_error(statement: ir.Assign) -> Exception:
    name = statement.local.name
    reason = (
        f"a simd loop may change {name}, which is defined outside of it, only by one reduction: {name} += x,"
        f" {name} -= x, {name} *= x, {name} = max({name}, x) or {name} = min({name}, x)"
    )
    return located(RelvmTypeError(reason), statement.origin)


def _find_definitions(loop: ir.Loop) -> set[ir.Local]:
    found: set[ir.Local] = set()
    for statement in ir.statements_in(loop.body):
        match statement:
            case ir.Let(variable) | ir.Loop(variable):
                found.add(variable)
    return found


def check_independent(loop: ir.Loop, counter: DimVar, bounds: IndexBounds) -> None:
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
    for statement in ir.statements_in(loop.body):
        _check_statement(loop, statement, inner_variables)
    store = _find_dependent_store(loop, counter, bounds)
    if store is not None:
        name, i = store.buffer.name, loop.counter.name
        reason = (
            f"the iterations of a {loop.kind} loop must be independent, but several may access the same element"
            f" of {name}; one index of each access must be {i}, or {i} * a + b with the same a, where any two values of"
            " b differ by less than a; otherwise use range"
        )
        raise located(RelvmTypeError(reason), store.origin or loop.origin)


def stores_are_independent(loop: ir.Loop) -> bool:
    """Return whether the stores of a loop nest of a kernel are proven to be independent.

    They are if different iterations of a loop in the nest, which is `loop` or a loop inside it, write different
    elements.  Only nests of loops, definitions, assignments and stores are understood.  They must not load from a
    buffer that they write.  The proof ignores that bounds of loops can overflow if a size exceeds LARGEST_SIZE.
    """
    inside = list(ir.statements_in(loop.body))
    if not all(isinstance(statement, ir.Loop | ir.Let | ir.Assign | ir.Store) for statement in inside):
        return False
    defined = {loop.counter, *_find_definitions(loop)}
    read = (part for statement in (loop, *inside) for part in ir.scalars_in(statement))
    bounds = IndexBounds({}, {statement.local for statement in inside if isinstance(statement, ir.Assign)})
    for variable in dict.fromkeys(part for part in read if isinstance(part, ir.Local) and part not in defined):
        bounds.define(variable, variable)  # defined before the loop
    return _has_independent_stores(loop, bounds)


def _has_independent_stores(loop: ir.Loop, bounds: IndexBounds) -> bool:
    with bounds.loop(loop) as counter:
        if _find_dependent_store(loop, counter, bounds) is not None:
            return False
        return all(_has_independent_stores(inner, bounds) for inner in loop.body if isinstance(inner, ir.Loop))


def _find_dependent_store(loop: ir.Loop, counter: DimVar, bounds: IndexBounds) -> ir.Store | None:
    """Return a store to an element that another iteration may access, or None if there certainly is none.

    counter: the variable that represents the counter of `loop` in the polynomials of `bounds`.
    """
    invariant = _invariant_atoms(bounds, _find_definitions(loop), counter)
    accesses: dict[str, list[tuple[_Index, ...]]] = {}
    _find_accesses(loop.body, counter, len(bounds.counters), bounds, accesses)
    extent = ir.trip_count(loop)
    for statement in ir.statements_in(loop.body):
        if isinstance(statement, ir.Store) and not _are_disjoint(accesses[statement.buffer.name], invariant, extent):
            return statement
    return None


@value_record
class _Index:
    """An index of the form factor * counter + offset, where `counter` is the counter of the loop that is checked.

    factor: the same number in all iterations, or 0.
    least, most: polynomials, between which the offset is proven to be.
    is_offset_small: whether the offset is proven to be in [0, |factor|).
    """

    factor: AnyDim
    least: AnyDim
    most: AnyDim
    is_offset_small: bool


def _find_accesses(
    body: tuple[ir.Statement, ...],
    counter: DimVar,
    outer: int,
    bounds: IndexBounds,
    accesses: dict[str, list[tuple[_Index, ...]]],
) -> None:
    """Add to `accesses` the indices of all accesses to outputs in `body`, the body of a loop, by the output's name.

    counter: the variable that represents the loop counter in the polynomials of `bounds`.
    outer: the number of counters in `bounds` when the loop begins.
    bounds: the prover, which converts index expressions to polynomials.
    """
    for statement in body:
        for buffer, indices in _output_accesses(statement):
            split = tuple(_split_index(bounds.dim(index), counter, outer, bounds) for index in indices)
            accesses.setdefault(buffer.name, []).append(split)
        match statement:
            case ir.Let(variable, value):
                bounds.define(variable, value)
            case ir.Loop(body=inner):
                with bounds.loop(statement):
                    _find_accesses(inner, counter, outer, bounds, accesses)
            case ir.IfThen(cond, then, orelse):
                for part, holds in ((then, True), (orelse, False)):
                    with bounds.condition(cond, holds=holds):
                        _find_accesses(part, counter, outer, bounds, accesses)


def _split_index(index: AnyDim, counter: DimVar, outer: int, bounds: IndexBounds) -> _Index:
    factor = coefficient(index, counter)
    offset = dim_op("sub", index, dim_op("mul", factor, var_dim(counter)))
    if counter in dim_vars(offset) or any(var.signed for var in dim_vars(factor)):
        return _Index(0, index, index, is_offset_small=False)
    size = abs(factor) if isinstance(factor, int) else factor
    return _Index(factor, *bounds.extremes(offset, outer), bounds.is_inside(offset, size))


def _invariant_atoms(bounds: IndexBounds, inner_variables: set[ir.Local], counter: DimVar) -> set[DimVar]:
    """Return the variables of polynomials whose values do not change in a loop.

    These are the variables in the polynomials of values that are defined before the loop.

    bounds: the prover, which stores these polynomials.
    inner_variables: the variables that the loop defines.
    counter: the variable that represents the loop's counter in polynomials.
    """
    outer = (value for variable, value in bounds.values.items() if variable not in inner_variables)
    return {var for value in outer for var in dim_vars(value)} - {counter}


def _check_statement(loop: ir.Loop, statement: ir.Statement, inner_variables: set[ir.Local]) -> None:
    def error(reason: str) -> Exception:
        return located(RelvmTypeError(reason), getattr(statement, "origin", "") or loop.origin)

    match statement:
        case ir.IfThen() if loop.kind == "simd":
            raise error(
                "a simd loop must not contain an if; use the expression `if c then a else b` (Python: a if c else b)"
            )
        case ir.Loop(kind=kind) if kind == "parallel" or (kind == "simd" and loop.kind == "simd"):
            raise error(f"a {loop.kind} loop cannot contain a {kind} loop; use range")
        case ir.Loop(_, start, stop) if loop.kind == "simd":
            # The counters of inner loops do not vary, because the bounds of these loops must not vary either.
            varying = {loop.counter, *(item.local for item in ir.statements_in(loop.body) if isinstance(item, ir.Let))}
            parts = [part for bound in (start, stop) for part in ir.parts_of(bound)]
            if any(isinstance(part, ir.Load) or part in varying for part in parts):
                raise error("the bounds of a loop in a simd loop must not depend on the iteration of the simd loop")
        case ir.Assign(variable) if loop.kind == "parallel" and variable not in inner_variables:
            raise error(f"a parallel loop cannot change {variable.name}, which is defined outside of it")


def _output_accesses(statement: ir.Statement) -> Iterator[tuple[ir.Buffer, tuple[ir.Scalar, ...]]]:
    """Yield the elements of outputs that a statement itself reads or writes.  Nested statements are not visited."""
    for part in ir.scalars_in(statement):
        if isinstance(part, ir.Load) and part.buffer.is_output:
            yield part.buffer, part.indices
    if isinstance(statement, ir.Store):
        yield statement.buffer, statement.indices


def _are_disjoint(accesses: list[tuple[_Index, ...]], invariant: set[DimVar], extent: int | None) -> bool:
    """Return whether any two iterations of a loop certainly access different elements of an output.

    accesses: the indices of each access to the output.
    invariant: the variables of polynomials whose values do not change in the loop, from `_invariant_atoms`.
    extent: the number of iterations of the loop, or None if it is not constant.
    """
    has_same_axes = len({len(indices) for indices in accesses}) == 1
    return has_same_axes and any(_are_different(indices, invariant, extent) for indices in zip(*accesses, strict=True))


def _are_different(indices: tuple[_Index, ...], invariant: set[DimVar], extent: int | None) -> bool:
    """Return whether the indices of all accesses along an axis certainly differ between any two iterations.

    This is so if all have the form a * counter + b with the same a.  In addition, either each b is in [0, |a|), or the
    difference of two values of b is never a * k, where k is the difference of the counters of two iterations.
    """
    factor = indices[0].factor
    if factor == 0 or any(index.factor != factor for index in indices):
        return False
    if all(index.is_offset_small for index in indices):
        return True
    ends = [end for index in indices for end in (index.least, index.most)]
    if any(var.signed and var not in invariant for end in ends for var in dim_vars(end)):
        return False
    try:
        return all(
            _are_apart(dim_op("sub", a.least, b.most), dim_op("sub", a.most, b.least), factor, extent)
            for a, b in itertools.combinations_with_replacement(indices, 2)
        )
    except RelvmUnsupportedError:  # a polynomial is too large
        return False


def _are_apart(low: AnyDim, high: AnyDim, factor: AnyDim, extent: int | None) -> bool:
    """Return whether no number in [low, high] is factor * k, where 0 < |k| < extent.

    extent: None for infinity.
    """
    if isinstance(low, int) and isinstance(high, int) and isinstance(factor, int):
        first, last = -(-low // abs(factor)), high // abs(factor)  # the multiples of the factor, divided by it
        is_far = extent is not None and (first >= extent or last <= -extent)
        return is_far or first > last or first == last == 0
    size = abs(factor) if isinstance(factor, int) else factor
    limit = dim_op("sub", size, 1)
    return is_never_negative(dim_op("sub", limit, high)) and is_never_negative(dim_op("add", limit, low))
