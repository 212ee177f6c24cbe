"""Complex numbers: a complex tensor is a tuple of its real and its imaginary part.

Operations that treat both parts alike are converted once for each part.  The formulas of the others are in
relvm/frontend/common/complex_math.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.stablehlo.program import AnyType, ElementType, Operation, Tensor, Value
from relvm.frontend.stablehlo.registry import Converter, Node, complex_converter_for
from relvm.ir.expr import Expr, Tuple, TupleItem
from relvm.ir.types import TupleType

_T = TypeVar("_T", bound=AnyType)

# Operations that do the same with both parts.
_BY_PARTS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("add", "bitcast_convert", "broadcast", "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim"),
        *("dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather"),
        *("negate", "pad", "real_dynamic_slice", "reshape", "reverse", "select", "slice", "subtract", "transpose"),
    )
)
# Operations whose converters accept tuples, or flatten them.
_ON_TUPLES = frozenset(
    (
        *("func.call", "builtin.unrealized_conversion_cast", "sdy.sharding_constraint"),
        *(
            f"stablehlo.{name}"
            for name in (
                *("case", "composite", "get_tuple_element", "if", "optimization_barrier", "reduce"),
                *("reduce_window", "scatter", "sort", "tuple", "while"),
            )
        ),
    )
)


def is_complex(type_: AnyType) -> bool:
    """Return whether a type is that of a complex tensor."""
    return isinstance(type_, Tensor) and isinstance(type_.element, ElementType) and type_.element.is_complex


def real_type(type_: _T) -> _T:
    """Return the type of a part of a complex tensor.  Return another type unchanged."""
    if not isinstance(type_, Tensor) or not is_complex(type_):
        return type_
    assert isinstance(type_.element, ElementType)
    return replace(type_, element=type_.element.part)


def has_complex_numbers(operation: Operation) -> bool:
    """Return whether an operation has complex operands or results."""
    return any(is_complex(value.type) for value in (*operation.operands, *operation.results))


def complex_converter(operation: Operation, convert: Converter | None) -> Converter | None:
    """Return the converter of an operation with complex operands or results, or None if the operation has none at all.

    convert: the converter for real numbers, or None.

    Raises
    ------
    RelvmUnsupportedError
        The operation has a converter only for real numbers.
    """
    own = complex_converter_for(operation.name)
    if own is not None or convert is None:
        return own
    if operation.name in _ON_TUPLES:
        return convert
    if operation.name in _BY_PARTS:
        return lambda node: _by_parts(node, convert)
    raise RelvmUnsupportedError("complex numbers are not supported by this operation")


def parts(node: Node, x: Expr) -> tuple[Expr, Expr]:
    """Return the real and the imaginary part of a complex tensor."""
    if isinstance(x, Tuple):
        return x.fields[0], x.fields[1]
    assert isinstance(x.type, TupleType)
    real, imaginary = (
        node.emit(TupleItem(x, i, type=type_), name)
        for i, (type_, name) in enumerate(zip(x.type.fields, ("re", "im"), strict=True))
    )
    return real, imaginary


def complex_of(node: Node, real: Expr, imaginary: Expr) -> Tuple:
    """Return the complex tensor of two parts."""
    fields = (node.emit(real), node.emit(imaginary))
    return Tuple(fields, type=TupleType(tuple(field.type for field in fields)))


def _by_parts(node: Node, convert: Converter) -> Any:
    """Convert an operation once for each part."""
    operation = node.operation
    results = tuple(Value(real_type(value.type), value.name) for value in operation.results)
    plain = replace(operation, results=results)
    found = []
    for part in (0, 1):
        operands = [
            parts(node, x)[part] if is_complex(value.type) else x
            for x, value in zip(node.operands, operation.operands, strict=True)
        ]
        found.append(convert(Node(node.importer, plain, operands, node.values)))
    return complex_of(node, found[0], found[1])


def flattened_parts(node: Node, xs: Sequence[Expr]) -> list[Expr]:
    """Return tensors, with the parts of complex tensors one after the other."""
    flat: list[Expr] = []
    for x in xs:
        flat += parts(node, x) if isinstance(x.type, TupleType) else [x]
    return flat


def regrouped(node: Node, types: Sequence[AnyType], flat: Sequence[Expr]) -> list[Expr]:
    """Return the values of the given types from their parts: the inverse of `flattened_parts`."""
    rest = iter(flat)
    return [complex_of(node, next(rest), next(rest)) if is_complex(type_) else next(rest) for type_ in types]
