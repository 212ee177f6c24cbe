"""Lowering of equations without a converter of their own: JAX lowers them to StableHLO.

All such equations of a program, without repetitions, are lowered by JAX in one program.  Its function `main` has
parameters for the operands of each equation, and returns the results of all of them.  The operations that compute
the results of one equation are then a slice of `main`.

JAX lowers for the platform "relvm", which does not exist.  So JAX uses the rules that do not depend on a platform, and
calls no libraries of a processor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from relvm.data_classes import dataclass, record
from relvm.frontend.jax.requirements import import_jax
from relvm.frontend.stablehlo.program import Operation, Program, Value
from relvm.frontend.stablehlo.text_reader import read_text

PLATFORM = "relvm"
# Primitives whose parameters contain jaxprs that stay visible.
STRUCTURAL = frozenset(
    (
        *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"),
        *("custom_vjp_call_jaxpr", "scan", "while", "cond", "name"),
    )
)
# Primitives for real numbers that JAX would lower to many operations, or to a library of a processor.
DIRECT = frozenset(("cumsum", "cumprod", "cummax", "cummin", "approx_top_k"))
# Decompositions of matrices, which JAX would lower to calls of LAPACK.
DECOMPOSITIONS = frozenset(("eig", "eigh", "hessenberg", "schur", "svd"))


@record
class Slice:
    """The operations that compute the results of an equation.

    parameters: the operands.
    sizes: the parameters of `main` that are the values of symbolic dimensions, by their names.
    operations: the operations, in order.
    results: the results.
    """

    parameters: tuple[Value, ...]
    sizes: dict[str, Value]
    operations: tuple[Operation, ...]
    results: tuple[Value, ...]


@dataclass(eq=False)
class Lowered:
    """The lowered equations of a program.

    program: the functions that the slices call.
    slices: the slice of each equation, by its `key_of`.
    failures: the messages of the equations that JAX cannot lower, by `key_of`.
    """

    program: Program
    slices: dict[Hashable, Slice]
    failures: dict[Hashable, str]


def is_leaf(equation: Any) -> bool:
    """Return whether JAX lowers an equation.  The importer converts the others itself."""
    name = equation.primitive.name
    if name in DIRECT:
        return equation.invars[0].aval.dtype.kind == "c"
    return name not in STRUCTURAL | DECOMPOSITIONS


def key_of(equation: Any) -> Hashable:
    """Return a key of an equation.  JAX lowers equations with equal keys to the same operations."""
    params = tuple(sorted(equation.params.items()))
    avals = tuple(
        (each.aval.shape, each.aval.dtype) for each in (*equation.invars, *equation.outvars) if _is_array(each)
    )
    context = getattr(equation.ctx, "compute_type", None), getattr(equation.ctx, "threefry_partitionable", None)
    key = (equation.primitive, params, avals, context)
    try:
        hash(key)
    except TypeError:
        return id(equation)
    return key


def _is_array(value: Any) -> bool:
    return hasattr(value.aval, "shape") and hasattr(value.aval, "dtype")


def equations_in(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of the jaxprs in the parameters of structural equations."""
    inner = import_jax("from_jax").extend.core.jaxprs_in_params
    waiting, seen = [jaxpr], set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            if equation.primitive.name in STRUCTURAL:
                waiting += inner(equation.params)


def lower_leaves(equations: Iterable[Any], dims: Sequence[Any], place: str) -> Lowered:
    """Lower equations with JAX.

    equations: the equations, which may contain equal ones.
    dims: the symbolic dimensions of JAX that occur in their types.
    place: the name of the program, for messages.
    """
    unique = {key_of(equation): equation for equation in equations}
    lowered = Lowered(Program(place, {}), {}, {})
    if not unique:
        return lowered
    try:
        _lower(unique, dims, lowered)
    except Exception:  # the lowering rules of JAX can raise any exception
        for key, equation in unique.items():
            try:
                _lower({key: equation}, dims, Lowered(Program(place, {}), {}, {}))
            except Exception as error:
                lowered.failures[key] = " ".join(str(error).split()) or type(error).__name__
        rest = {key: equation for key, equation in unique.items() if key not in lowered.failures}
        if rest:
            _lower(rest, dims, lowered)
    return lowered


def _lower(equations: dict[Hashable, Any], dims: Sequence[Any], into: Lowered) -> None:
    """Lower equations, and add their slices and the functions that they call to `into`."""
    jax = import_jax("from_jax")
    specs = [
        [jax.ShapeDtypeStruct(each.aval.shape, each.aval.dtype) for each in equation.invars]
        for equation in equations.values()
    ]

    def main(sizes: Any, operands: list[list[Any]]) -> list[list[Any]]:
        results = []
        for equation, args in zip(equations.values(), operands, strict=True):
            with equation.ctx.manager:
                found = equation.primitive.bind(*args, **equation.primitive.get_bind_params(equation.params))
            results.append(list(found) if equation.primitive.multiple_results else [found])
        return results

    sizes = jax.ShapeDtypeStruct(tuple(dims), bool)  # its shape states which dimensions there are
    lowered = jax.jit(main, keep_unused=True).trace(sizes, specs).lower(lowering_platforms=(PLATFORM,))
    program = read_text(lowered.as_text(), into.program.place)
    function = program.functions.pop("main")
    into.program.functions.update(program.functions)
    arguments = iter(function.body.arguments)
    named: dict[str, Value] = {}
    for attributes in function.argument_attributes:
        if "jax.global_constant" in attributes:
            named[attributes["jax.global_constant"]] = next(arguments)
    next(arguments)  # `sizes`
    results = iter(function.body.operations[-1].operands)
    producers = {result: operation for operation in function.body.operations for result in operation.results}
    order = {operation: number for number, operation in enumerate(function.body.operations)}
    for (key, equation), operands in zip(equations.items(), specs, strict=True):
        own = tuple(next(arguments) for _ in operands)
        found = tuple(next(results) for _ in equation.outvars)
        into.slices[key] = Slice(own, named, _slice(found, producers, order), found)


def _slice(
    results: Iterable[Value], producers: dict[Value, Operation], order: dict[Operation, int]
) -> tuple[Operation, ...]:
    """Return the operations that compute some values, in order.

    producers: the operation that computes each value.   order: the position of each operation.
    """
    needed: set[Operation] = set()
    waiting = list(results)
    while waiting:
        operation = producers.get(waiting.pop())
        if operation is not None and operation not in needed:
            needed.add(operation)
            waiting += _values_used(operation)
    return tuple(sorted(needed, key=order.__getitem__))


def _values_used(operation: Operation) -> Iterator[Value]:
    """Yield the operands of an operation, and the values that its regions use."""
    yield from operation.operands
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _values_used(inner)
