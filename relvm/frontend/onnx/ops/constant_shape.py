"""Converters of constants, and of operators that return shapes and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.dynamic_sizes import (
    filled,
    sizes_of,
)
from relvm.frontend.onnx.ops.strings import string_array
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.values import HostValue
from relvm.ir.dtypes import I64, STR
from relvm.ir.expr import Constant, Expr, constant
from relvm.ir.symbolic import product


@converts("Constant")
def _constant(node: OnnxNode) -> Constant:
    names = [attribute.name for attribute in node.proto.attribute if attribute.name.startswith(("value", "sparse"))]
    if len(names) != 1:
        raise RelvmFormatError(f"a Constant has {counted(len(names), 'value')}, expected 1")
    value = node.attribute(names[0])
    match names[0]:
        case "value":
            return node.graph.constant(value, node.here)
        case "value_float" | "value_floats":
            return constant(np.asarray(value, dtype=np.float32))
        case "value_int" | "value_ints":
            return constant(np.asarray(value, dtype=np.int64))
        case "value_string":
            return constant(np.array(value, STR.numpy))
        case "value_strings":
            return constant(string_array(value))
    raise RelvmUnsupportedError(f"a Constant with the attribute {names[0]} is not supported")


@converts("ConstantOfShape")
def _constant_of_shape(node: OnnxNode) -> Expr:
    value = node.attribute("value")
    fill = np.float32(0) if value is None else np.asarray(value).reshape(())
    return filled(node, fill, *sizes_of(node, 0, "shape"))


_END = 2**63 - 1


@converts("Shape")
def _shape(node: OnnxNode) -> Expr:
    """Returns the shape: a constant or symbolic shape if it is known at import time, otherwise one read at run time."""
    dims = ops.shape_to_tensor(node.emit(ops.shape_of(node.tensor(0))))
    start, end = node.attribute("start", 0), node.attribute("end", _END)
    if (start, end) == (0, _END):
        return dims
    return ops.slice(node.emit(dims), begin=(start,), end=(end,))


@converts("Size")
def _size(node: OnnxNode) -> Any:
    value = node.inputs[0]
    shape = value.array.shape if isinstance(value, HostValue) else node.tensor(0).tensor_type.shape
    if shape is None:
        return ops.prod(node.emit(ops.shape_to_tensor(node.emit(ops.shape_of(node.tensor(0))))))
    return HostValue(np.asarray(product(shape), dtype=object), I64)
