"""Dynamic shapes: variables for unnamed dimensions, equalities that operators require, and their run-time checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relvm.errors import RelvmShapeError
from relvm.ir.expr import Attributes, Binding, BuiltinCall, DimValue, Expr, String, Var
from relvm.ir.operator import Operator, SizeClaim
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_var, dim_vars
from relvm.ir.types import VOID, ShapeType, TensorType, Type, substitute_dims


def with_dims(type_: Type) -> Type:
    """Return `type_` with a new variable for each dimension if it states only its rank, otherwise `type_` itself."""
    match type_:
        case TensorType(dtype, None, rank) if rank is not None:
            return TensorType(dtype, tuple(dim_var(f"d{i}") for i in range(rank)))
        case ShapeType(None, rank) if rank is not None:
            return ShapeType(tuple(dim_var(f"d{i}") for i in range(rank)))
    return type_


def has_dims(type_: Type) -> bool:
    """Return whether a tensor type states its dtype and dimensions, or a shape type its dimensions.

    Return True for other types.
    """
    match type_:
        case TensorType(dtype, shape):
            return dtype is not None and shape is not None
        case ShapeType(dims):
            return dims is not None
    return True


def check_of(claim: SizeClaim, message: str, origins: tuple[str, ...] = ()) -> Binding:
    """Return the binding that checks a claim at run time.  message: the error message."""
    args = (DimValue(claim.left), DimValue(claim.right), String(message))
    return Binding(Var("_", type=VOID, origins=origins), BuiltinCall(f"check_{claim.relation}", args, type=VOID))


def claim_of(value: Expr) -> SizeClaim | None:
    """Return the claim that `value` checks, with its error message, or None if `value` is not a check of a claim."""
    match value:
        case BuiltinCall("check_equal" | "check_at_most" as name, (DimValue(left), DimValue(right), String(message))):
            return SizeClaim(name.removeprefix("check_"), left, right, message)
    return None


def relate(
    op: Operator,
    types: Sequence[Type],
    attributes: Attributes,
    replacement: Callable[[AnyDim, AnyDim], tuple[DimVar, AnyDim] | None],
) -> tuple[tuple[Type, ...], Type]:
    """Replace variables so that dimensions become equal if the type rule of `op` requires them to be equal.

    Return the argument types after the replacements, and the result type.

    Parameters
    ----------
    op, types, attributes
        The operator, argument types and attributes of a call.  The types state all dimensions.
    replacement
        Takes two dimensions that the type rule cannot prove equal.  Returns a variable and its replacement, or None.

    Raises
    ------
    RelvmError
        The operator's type rule rejects the types, and `replacement` returns None.
    """
    types = tuple(types)
    while True:  # each iteration removes one variable
        try:
            return types, op.infer(types, attributes)
        except RelvmShapeError as error:
            found = error.unproven and replacement(*error.unproven)
            if not found:
                raise
        types = tuple(substitute_dims(type_, dict([found])) for type_ in types)


def replace_one_of(variables: set[DimVar] | None, first: AnyDim, second: AnyDim) -> tuple[DimVar, AnyDim] | None:
    """Return a variable and the dimension that replaces it, to make two dimensions equal.

    One dimension must be a plain variable in `variables` (None: any variable) that the other dimension does not
    contain.  If both are, the second one is replaced.  If neither is, return None.
    """
    for dim, other in ((second, first), (first, second)):
        var = as_var(dim)
        if var is not None and (variables is None or var in variables) and var not in dim_vars(other):
            return var, other
    return None
