"""Complex numbers: a complex tensor is a tensor of floats, whose additional last axis contains both parts.

This is the layout of PyTorch's view_as_real.  A converter of complex numbers gets and returns the parts, a
ComplexTensor.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, wraps
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.element_types import is_complex
from relvm.frontend.torch.program import Argument, Graph, GraphNode
from relvm.frontend.torch.registry import Converter, Node, complex_converter_for, safe_name, tensor_names
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr, constant


@record
class ComplexTensor:
    """The parts of a complex tensor."""

    real: Expr
    imaginary: Expr


def is_complex_tensor(graph: Graph, name: str) -> bool:
    """Return whether a tensor of a graph is complex."""
    return name in graph.tensors and is_complex(graph.tensors[name].get("dtype"))


def has_complex_numbers(graph: Graph, node: GraphNode) -> bool:
    """Return whether a node has complex arguments or results."""
    return any(
        is_complex_tensor(graph, name)
        for each in (*node.outputs, *(argument for _, argument in node.inputs))
        for name in tensor_names(each)
    )


@cache
def complex_converter(name: str, convert: Converter | None) -> Converter | None:
    """Return the converter of an operator with complex arguments or results, or None if the operator has none at all.

    convert: the converter for real numbers, or None.

    Raises
    ------
    RelvmUnsupportedError
        The operator has a converter only for real numbers.
    """
    own, values = complex_converter_for(name)
    if own is not None:
        return _with_parts(own, own)
    if convert is None:
        return None
    if values is None:
        raise RelvmUnsupportedError("complex numbers are not supported by this operator")
    return _with_parts(convert, _by_parts(convert, values))


def _with_parts(convert: Converter, function: Converter) -> Converter:
    """Return a converter whose complex arguments and results are tensors, for one that gets and returns their parts.

    convert: the converter that has the signature.
    """

    @wraps(convert)
    def whole(node: Node, *positional: Any, **named: Any) -> Any:
        kinds = {safe_name(key): argument for key, argument in node.node.inputs}
        first = [argument for _, argument in node.node.inputs[: len(positional)]]
        result = function(
            node,
            *(_split(node, argument, value) for argument, value in zip(first, positional, strict=True)),
            **{key: _split(node, kinds[key], value) for key, value in named.items()},
        )
        if isinstance(result, tuple):
            return tuple(joined(node, each) for each in result)
        return joined(node, result)

    return whole


def _split(node: Node, argument: Argument, value: Any) -> Any:
    names = tensor_names(argument)
    flags = [is_complex_tensor(node.graph, name) for name in names]
    if not any(flags):
        return value
    if isinstance(value, tuple):
        rest = iter(flags)
        return tuple(each if each is None or not next(rest) else parts_of(node, each) for each in value)
    return parts_of(node, value)


def parts_of(node: Node, x: Expr) -> ComplexTensor:
    """Return the parts of a tensor whose last axis contains them."""
    shape = x.tensor_type.known_shape[:-1]
    real, imaginary = (
        node.reshaped(node.emit(ops.slice(x, begin=(i,), end=(i + 1,), axes=(-1,))), shape) for i in (0, 1)
    )
    return ComplexTensor(real, imaginary)


def joined(node: Node, value: Any) -> Any:
    """Return the tensor of both parts.  Return another value unchanged."""
    if not isinstance(value, ComplexTensor):
        return value
    parts = [node.emit(part) for part in (value.real, value.imaginary)]
    columns = [node.reshaped(part, (*part.tensor_type.known_shape, 1)) for part in parts]
    return ops.concat(*columns, axis=-1)


def _by_parts(convert: Converter, values: Collection[str]) -> Converter:
    """Return the converter that converts the real and the imaginary part alike.

    values: the names of arguments whose imaginary part is 0 if they are real.
    """

    def twice(node: Node, *positional: Any, **named: Any) -> Any:
        names = [safe_name(key) for key, _ in node.node.inputs]

        def converted(part: int) -> Any:
            found = convert(
                node,
                *(_part(node, value, part, name in values) for name, value in zip(names, positional, strict=False)),
                **{name: _part(node, value, part, name in values) for name, value in named.items()},
            )
            return tuple(node.emit(each) for each in found) if isinstance(found, tuple) else node.emit(found)

        real, imaginary = converted(0), converted(1)
        if isinstance(real, tuple):
            return tuple(map(ComplexTensor, real, imaginary))
        return ComplexTensor(real, imaginary)

    return twice


def _part(node: Node, value: Any, part: int, is_value: bool) -> Any:
    if isinstance(value, ComplexTensor):
        return value.imaginary if part else value.real
    if isinstance(value, complex):
        return value.imag if part else value.real
    if isinstance(value, tuple):
        return tuple(_part(node, each, part, is_value) for each in value)
    if not is_value or not part:
        return value
    if isinstance(value, Expr):
        return node.full(0, value.tensor_type.known_shape, value.known_element_type)
    return 0 if isinstance(value, int | float) else value


def as_complex(node: Node, value: Any, dtype: DType) -> ComplexTensor:
    """Return a tensor or a number, which can be real, as a complex tensor with parts of a dtype."""
    if isinstance(value, ComplexTensor):
        return ComplexTensor(node.cast(value.real, dtype), node.cast(value.imaginary, dtype))
    if isinstance(value, complex):
        return ComplexTensor(node.number(value.real, dtype), node.number(value.imag, dtype))
    real = node.emit(node.number(value, dtype))
    zero = constant(np.zeros((), dtype.numpy))
    return ComplexTensor(real, node.broadcast(zero, real.tensor_type.known_shape))
