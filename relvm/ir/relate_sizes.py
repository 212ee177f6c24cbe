"""Relations between sizes: variables for unnamed dimensions, equalities that operators require, and run-time checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relvm.errors import RelvmShapeError
from relvm.ir.expr import Attributes, Binding, BuiltinCall, DimValue, Expr, String, Var
from relvm.ir.operator import Operator, SizeClaim
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_var, dim_vars
from relvm.ir.types import VOID, ShapeType, TensorType, Type, substitute_dims


def with_dims(type_: Type) -> Type:
    """If `type_` states only its rank, return it with a new variable for each dimension.

    For example, `f32[_, _]` becomes `f32[d0, d1]`.  Return any other type unchanged.
    """
    match type_:
        case TensorType(dtype, None, rank) if rank is not None:
            return TensorType(dtype, tuple(dim_var(f"d{i}") for i in range(rank)))
        case ShapeType(None, rank) if rank is not None:
            return ShapeType(tuple(dim_var(f"d{i}") for i in range(rank)))
    return type_


def has_dims(type_: Type) -> bool:
    """Return whether a tensor or shape type states its dimensions.

    A tensor type must also state its dtype.  For all other types, return True.
    """
    match type_:
        case TensorType(dtype, shape):
            return dtype is not None and shape is not None
        case ShapeType(dims):
            return dims is not None
    return True


def make_claim_check(claim: SizeClaim, message: str, origins: tuple[str, ...] = ()) -> Binding:
    """Return a binding that checks a claim, a relation between two sizes, at run time.

    message: the error message.
    origins: the source locations of the check.
    """
    args = (DimValue(claim.left), DimValue(claim.right), String(message))
    return Binding(Var("_", type=VOID, origins=origins), BuiltinCall(f"check_{claim.relation}", args, type=VOID))


def checked_claim(value: Expr) -> SizeClaim | None:
    """Return the claim, a relation between two sizes, that `value` checks at run time.

    Return None if `value` is not such a check.
    """
    match value:
        case BuiltinCall("check_equal" | "check_at_most" as name, (DimValue(left), DimValue(right), String(message))):
            return SizeClaim(name.removeprefix("check_"), left, right, message)
    return None


def infer_with_replacements(
    op: Operator,
    types: Sequence[Type],
    attributes: Attributes,
    replacement: Callable[[AnyDim, AnyDim], tuple[DimVar, AnyDim] | None],
) -> tuple[tuple[Type, ...], Type]:
    """Infer the type of a call.  Make dimensions equal, where the operator requires this, by replacing variables.

    If the type rule requires two dimensions to be equal, but cannot decide whether they are, a dimension variable in
    the argument types is replaced so that the two dimensions become equal.  This is repeated until the type rule
    accepts the types.  Return the argument types after the replacements, and the result type.

    Parameters
    ----------
    op, types, attributes
        The operator, argument types and attributes of a call.  The types state all dimensions.
    replacement
        A function that is called with two dimensions that must be equal.  It returns a variable and the dimension that
        replaces this variable, or None if no replacement makes the two dimensions equal.

    Raises
    ------
    RelvmError
        The operator's type rule rejects the types for a reason that no replacement of a variable can remove.
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


def find_replacement(variables: set[DimVar] | None, first: AnyDim, second: AnyDim) -> tuple[DimVar, AnyDim] | None:
    """Find a variable, and a dimension to replace it, so that the dimensions `first` and `second` become equal.

    If `second` is a plain variable that `first` does not contain, it is replaced by `first`.  Otherwise, if `first` is
    a plain variable that `second` does not contain, it is replaced by `second`.  Otherwise return None.

    variables: the variables that are allowed to be replaced, or None for all.
    """
    for dim, other in ((second, first), (first, second)):
        var = as_var(dim)
        if var is not None and (variables is None or var in variables) and var not in dim_vars(other):
            return var, other
    return None
