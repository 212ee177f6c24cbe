"""Operators on lists of tensors, such as `torch._foreach_add`: an operator on each item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relvm.errors import RelvmFormatError, counted
from relvm.frontend.torch.registry import Node, converter_for, converts, full_name, tensor_names
from relvm.ir.expr import Expr


def _declare(name: str, operator: str, **renamed: str) -> None:
    """Register the converter of an operator on lists.

    name: the name of the operator on lists, without `_foreach_`.
    operator: the operator on the items.
    renamed: the parameters that have another name in `operator`, by their names in the operator on lists.
    """

    @converts(f"_foreach_{name}")
    def convert(node: Node, **arguments: Any) -> tuple[Expr, ...]:
        function = converter_for(full_name(operator))
        assert function is not None
        (_, first), *_ = node.node.inputs
        count = max(len(value) for value in arguments.values() if isinstance(value, tuple))
        names = node.output_names() or tensor_names(first)  # operators in place have no outputs
        for value in (names, *arguments.values()):
            if isinstance(value, tuple | list) and len(value) != count:
                raise RelvmFormatError(f"lists of {counted(len(value), 'item')} and of {count}")
        found = []
        for i, output in enumerate(names):
            item = Node(node.importer, node.graph, replace(node.node, outputs=({"as_tensor": {"name": output}},)))
            values = {
                renamed.get(key, key): value[i] if isinstance(value, tuple) else value
                for key, value in arguments.items()
            }
            found.append(node.emit(function(item, **values)))
        return tuple(found)


for _name in (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma"),
    *("log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "trunc", "clone", "copy", "max", "zero"),
):
    _declare(_name, _name)
for _name in ("add", "sub", "mul", "div"):
    _declare(f"{_name}.List", f"{_name}.Tensor")
    _declare(f"{_name}.Scalar", f"{_name}.Tensor", scalar="other")
    _declare(f"{_name}.ScalarList", f"{_name}.Tensor", scalars="other")
    if _name != "sub":
        _declare(f"{_name}.Tensor", f"{_name}.Tensor")
for _name, _bound in (("clamp_min", "min"), ("clamp_max", "max")):
    _declare(f"{_name}.List", f"{_name}.Tensor", other=_bound)
    _declare(f"{_name}.Scalar", _name, scalar=_bound)
    _declare(f"{_name}.ScalarList", _name, scalars=_bound)
for _name, _clamp, _bound in (("maximum", "clamp_min", "min"), ("minimum", "clamp_max", "max")):
    _declare(f"{_name}.List", _name)
    _declare(f"{_name}.Scalar", _clamp, scalar=_bound)
    _declare(f"{_name}.ScalarList", _clamp, scalars=_bound)
for _name in ("addcmul", "addcdiv"):
    _declare(f"{_name}.Scalar", _name)
    _declare(f"{_name}.ScalarList", _name, scalars="value")
_declare("pow.List", "pow.Tensor_Tensor")
_declare("pow.Scalar", "pow.Tensor_Scalar")
_declare("pow.ScalarList", "pow.Tensor_Scalar")
_declare("pow.ScalarAndTensor", "pow.Scalar")
_declare("lerp.List", "lerp.Tensor", tensors1="end", weights="weight")
_declare("lerp.Scalar", "lerp.Scalar", tensors1="end")
_declare("lerp.ScalarList", "lerp.Scalar", tensors1="end", scalars="weight")
_declare("norm.Scalar", "linalg_vector_norm")
