"""Details that the page of a graph shows about a node: attributes, inputs, constants, source locations and kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from relvm.explore.draw.graph import Item
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    Expr,
    Fused,
    MatchCast,
    OpCall,
    PackedCall,
    PrimCall,
    Tuple,
    Var,
)
from relvm.ir.printer import print_expr
from relvm.ir.types import format_type
from relvm.numpy_dtypes import STRINGS


class NodeDetails:
    """Collects the details of the items of one graph as JSON data.

    Parameters
    ----------
    numbers
        The number of each item in the JSON data, by the key of the item.
    kernels
        For each variable that a kernel or packed function computes, the name of that kernel or packed function.

    Attributes
    ----------
    origins
        The source locations of all items so far.  The details of an item contain indices into this list.
    constants
        The statistics of all constants so far.  The details of an item contain indices into this list.
    """

    def __init__(self, numbers: Mapping[Hashable, int], kernels: Mapping[Var, str]) -> None:
        self.numbers = numbers
        self.kernels = kernels
        self.constants: list[dict[str, Any]] = []
        self._origins: dict[str, int] = {}
        self._constant_numbers: dict[int, int] = {}  # id of an array -> the number of its statistics

    @property
    def origins(self) -> list[str]:
        return list(self._origins)

    def details_of(self, item: Item) -> dict[str, Any]:
        """Return the details of an item as JSON data.  Keys that do not apply to the item are missing."""
        match item.binding:
            case Var() as var:
                return self._value(var)
            case MatchCast(var, value):
                return self._value(var) | {"inputs": self._inputs((("", value),))}
            case Binding(var, value):
                details = self._value(var) | {"inputs": self._inputs(_operands(value))}
                if isinstance(value, OpCall):
                    details["attributes"] = [[name, str(value)] for name, value in value.attributes]
                if isinstance(value, Fused):
                    details["origins"] = self._numbered(_operator_origins(value))
                if var in self.kernels:
                    details["kernel"] = self.kernels[var]
                return details
        return {}

    def _value(self, var: Var) -> dict[str, Any]:
        return {"type": format_type(var.type), "origins": self._numbered(var.origins)}

    def _numbered(self, origins: tuple[str, ...]) -> list[int]:
        return [self._origins.setdefault(origin, len(self._origins)) for origin in origins if origin]

    def _inputs(self, operands: Any) -> list[dict[str, Any]]:
        return [{"name": name} | self._operand(value) for name, value in operands]

    def _operand(self, value: Expr) -> dict[str, Any]:
        match value:
            case Var() if value in self.numbers:
                return {"item": self.numbers[value]}
            case Constant(array):
                number = self._constant_numbers.setdefault(id(array), len(self.constants))
                if number == len(self.constants):
                    self.constants.append(constant_statistics(value))
                return {"constant": number}
        return {"text": print_expr(value, elide_constants=True, show_types=False)}


def constant_statistics(constant: Constant) -> dict[str, Any]:
    """Return the type of a constant, its size in bytes, and the statistics of its elements, as JSON data.

    `min`, `max` and `mean` are those of the finite elements.  `nan`, `inf` and `zeros` are counts.  A constant of
    strings or without elements has no statistics.  For a constant of one element, `value` replaces the statistics.
    """
    array = constant.value
    details: dict[str, Any] = {"type": format_type(constant.type), "bytes": array.nbytes}
    if array.dtype == STRINGS or array.size == 0:
        return details
    if array.size == 1:
        return details | {"value": str(array.reshape(())[()])}
    numbers = array if array.dtype.kind in "iuf" and array.dtype.itemsize >= 4 else array.astype(np.float32)
    finite = np.isfinite(numbers)
    finite_elements = numbers if finite.all() else numbers[finite]
    if finite_elements.size:
        details |= {"min": f"{finite_elements.min():.6g}", "max": f"{finite_elements.max():.6g}"}
        details["mean"] = f"{finite_elements.mean(dtype=np.float64):.6g}"
    nans = int(np.isnan(numbers).sum())
    infinite = numbers.size - finite_elements.size - nans
    return details | {"nan": nans, "inf": infinite, "zeros": int(np.count_nonzero(numbers == 0))}


def _operands(value: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield the name of the parameter, or "" if it has none, and the operand, for each operand of an expression."""
    match value:
        case OpCall(op, args):
            names = [parameter.name for parameter in op.parameters]
            yield from zip([*names, *names[-1:] * (len(args) - len(names))], args, strict=False)
        case Call(_, args) | PackedCall(_, args) | BuiltinCall(_, args) | PrimCall(_, args) | Tuple(args):
            yield from (("", arg) for arg in args)


def _operator_origins(value: Fused) -> tuple[str, ...]:
    """Return the source locations of all operators that are fused into one kernel, `value`."""
    body = value.body
    assert isinstance(body, Block)
    return tuple(dict.fromkeys(origin for binding in body.bindings for origin in binding.var.origins))
