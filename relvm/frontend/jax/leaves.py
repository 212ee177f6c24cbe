"""Lowering of equations without a converter of their own: JAX lowers them to StableHLO.

All such equations of a program, without repetitions, are lowered by JAX in one program.  Its function `main` has
parameters for the operands of each equation, and returns the results of all of them.  The operations that compute
the results of one equation are then a slice of `main`.

JAX lowers for the platform "relvm", which does not exist.  So JAX uses the rules that do not depend on a platform, and
calls no libraries of a processor.  Some decompositions of matrices have no such rules, or worse ones.  JAX lowers these
for CPUs, to calls of LAPACK, which have converters (relvm/frontend/stablehlo/ops/lapack.py).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from relvm.data_classes import dataclass, record
from relvm.frontend.jax.requirements import import_jax
from relvm.frontend.stablehlo.program import Operation, Program, Value
from relvm.frontend.stablehlo.text_reader import read_text

PLATFORM = "relvm"
_PRIVATE = re.compile(r"func\.func private @([\w.$-]+)")
# Primitives that JAX lowers to calls of LAPACK.
LIBRARY = frozenset(("eig", "eigh", "geqp3", "hessenberg", "ormqr", "schur", "svd", "tridiagonal", "tridiagonal_solve"))
# Primitives whose parameters contain jaxprs that stay visible.
STRUCTURAL = frozenset(
    (
        *("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"),
        *("custom_vjp_call_jaxpr", "scan", "while", "cond", "name"),
    )
)
# Primitives for real numbers that JAX would lower to many operations, or to a library of a processor.
DIRECT = frozenset(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "approx_top_k"))


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
    return name not in STRUCTURAL


def platform_of(equation: Any) -> str:
    """Return the platform for which JAX lowers an equation."""
    name = equation.primitive.name
    return "cpu" if name in LIBRARY or (name == "qr" and equation.params["pivoting"]) else PLATFORM


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
    waiting, seen = [jaxpr], set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            waiting += inner_jaxprs(equation)


def inner_jaxprs(equation: Any) -> list[Any]:
    """Return the jaxprs in the parameters of a structural equation.  Other equations have none that stay visible."""
    if equation.primitive.name not in STRUCTURAL:
        return []
    return list(import_jax("from_jax").extend.core.jaxprs_in_params(equation.params))


def lower_leaves(equations: Iterable[Any], dims: Sequence[Any], place: str) -> Lowered:
    """Lower equations with JAX.

    equations: the equations, which may contain equal ones.
    dims: the symbolic dimensions of JAX that occur in their types.
    place: the name of the program, for messages.
    """
    lowered = Lowered(Program(place, {}), {}, {})
    groups: dict[str, dict[Hashable, Any]] = {}
    for equation in equations:
        groups.setdefault(platform_of(equation), {})[key_of(equation)] = equation
    for platform, group in groups.items():
        _lower_group(group, dims, platform, lowered)
    return lowered


def _lower_group(equations: dict[Hashable, Any], dims: Sequence[Any], platform: str, into: Lowered) -> None:
    """Lower equations for a platform.  If JAX cannot lower some of them, add their messages to the failures."""
    place = into.program.place
    try:
        _lower(equations, dims, platform, into)
    except Exception:  # the lowering rules of JAX can raise any exception
        for key, equation in equations.items():
            try:
                _lower({key: equation}, dims, platform, Lowered(Program(place, {}), {}, {}))
            except Exception as error:
                into.failures[key] = " ".join(str(error).split()) or type(error).__name__
        rest = {key: equation for key, equation in equations.items() if key not in into.failures}
        if rest:
            _lower(rest, dims, platform, into)


def _lower(equations: dict[Hashable, Any], dims: Sequence[Any], platform: str, into: Lowered) -> None:
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
    lowered = jax.jit(main, keep_unused=True).trace(sizes, specs).lower(lowering_platforms=(platform,))
    text = lowered.as_text()
    program = read_text(text if platform == PLATFORM else _with_suffix(text, platform), into.program.place)
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


def _with_suffix(text: str, platform: str) -> str:
    """Return a program in which the names of private functions end with a platform.

    Programs for several platforms can contain different functions of the same name.
    """
    names = set(_PRIVATE.findall(text))
    return re.sub(r"@([\w.$-]+)", lambda found: f"{found[0]}_{platform}" if found[1] in names else found[0], text)


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
