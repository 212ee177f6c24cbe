"""Symbolic sizes of parameters, such as `b` and `2*b + 1`.

A dimension variable of the IR gets its value from a parameter with exactly this size.  If all sizes that contain a name
of JAX are expressions, such as `2*b + 1`, the parameters get new dimension variables in their place.  The program
computes `b` from the actual size, and checks all sizes that contain it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from relvm.data_classes import record
from relvm.errors import RelvmShapeError
from relvm.ir.operator import SizeClaim
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_op, dim_var, dim_vars, substitute, var_dim
from relvm.ir.types import TensorType, TupleType, Type


@record
class ParameterSizes:
    """The symbolic sizes of the parameters of a program.

    Attributes
    ----------
    types
        The types of the parameters.  Each size is a number, a variable, or an expression of variables that are sizes.
    definitions
        Dimension variables that are computed from the sizes in `types`, and how: pairs of the variable and an
        expression, which can contain variables that are defined before.
    lower_bounds
        The smallest values of variables in `types`, by name.
    claims
        Conditions on all these variables, which must be checked at run time: each name of JAX is at least 1.
    """

    types: tuple[Type, ...]
    definitions: tuple[tuple[AnyDim, AnyDim], ...]
    lower_bounds: tuple[tuple[str, int], ...]
    claims: tuple[SizeClaim, ...]


def parameter_sizes(
    types: Sequence[Type], names: Sequence[str], dims: Mapping[str, AnyDim], place: str
) -> ParameterSizes:
    """Return the symbolic sizes of parameters, each of which must determine the dimension variables that it contains.

    Parameters
    ----------
    types
        The types of the parameters, with the dimensions in `dims`.
    names
        The names of the parameters.
    dims
        The dimension variable of each name of JAX.  Its value is at least 1.
    place
        The name of the function, for messages.

    Raises
    ------
    RelvmShapeError
        A name occurs only in sizes that are not linear in it, such as `max(b, 3)`.
    """
    sizes = [size for type_ in types for tensor in _tensors(type_) for size in tensor.known_shape]
    found = {var for size in sizes if (var := as_var(size)) is not None}
    computed = {name: var for name, dim in dims.items() if (var := as_var(dim)) is not None and var not in found}
    definitions: list[tuple[AnyDim, AnyDim]] = []
    bounds = [(name, 1) for name in dims if name not in computed]
    claims: list[SizeClaim] = []
    replaced: dict[AnyDim, AnyDim] = {}
    for number, type_ in enumerate(types):
        for tensor in _tensors(type_):
            for axis, size in enumerate(tensor.known_shape):
                if set(dim_vars(size)) & set(computed.values()):
                    replaced.setdefault(size, dim_var(f"{names[number]}_dim{axis}"))
    waiting = dict(computed)
    while waiting:
        solved = [
            (name, size, actual, linear)
            for name, var in waiting.items()
            for size, actual in replaced.items()
            if (linear := _linear(size, var, waiting.values())) is not None
        ]
        if not solved:
            unknown = ", ".join(waiting)
            raise RelvmShapeError(
                f"{place}: no argument determines the size {unknown}: expected a size that is linear in it, such as"
                f" {next(iter(waiting))} or 2*{next(iter(waiting))} + 1; pass an argument with this size"
            )
        name, size, actual, (factor, rest) = solved[0]
        definitions.append((dims[name], dim_op("floordiv", actual - rest, factor)))
        least = factor + rest  # the size if the value of `name` is 1
        if isinstance(least, int):
            var = as_var(actual)
            assert var is not None
            bounds.append((var.name, max(least, 0)))
        else:
            message = f"{place}: the size {size} must be at least {{}}, so that {name} is at least 1, but it is {{}}"
            claims.append(SizeClaim("at_most", least, actual, message))
        del waiting[name]
    changed = tuple(_with_sizes(type_, replaced) for type_ in types)
    return ParameterSizes(changed, tuple(definitions), tuple(bounds), tuple(claims))


def _linear(size: AnyDim, var: DimVar, unknown: Collection[DimVar]) -> tuple[int, AnyDim] | None:
    """Return the numbers k > 0 and r of size = k * var + r, or None if `size` does not have this form.

    unknown: the variables that r must not contain.
    """
    try:
        rest = substitute(size, {var: 0})
        factor = substitute(size, {var: 1}) - rest
    except ZeroDivisionError:
        return None
    if not isinstance(factor, int) or factor < 1 or size != factor * var_dim(var) + rest:
        return None
    return None if set(dim_vars(rest)) & set(unknown) else (factor, rest)


def _tensors(type_: Type) -> tuple[TensorType, ...]:
    """Return the types of the tensors of which a value consists."""
    if isinstance(type_, TupleType):
        return tuple(tensor for field in type_.fields for tensor in _tensors(field))
    return (type_,) if isinstance(type_, TensorType) else ()


def _with_sizes(type_: Type, replaced: Mapping[AnyDim, AnyDim]) -> Type:
    """Return the type with the sizes that are keys of `replaced` replaced by their values."""
    if isinstance(type_, TupleType):
        return TupleType(tuple(_with_sizes(field, replaced) for field in type_.fields))
    if not isinstance(type_, TensorType):
        return type_
    return replace(type_, shape=tuple(replaced.get(size, size) for size in type_.known_shape))
