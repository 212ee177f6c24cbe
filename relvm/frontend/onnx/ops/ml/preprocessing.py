"""Feature preparation in ai.onnx.ml: scaling, imputation, encoding, selection."""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import assert_all_false
from relvm.frontend.onnx.ops.ml.postprocess import DOMAIN, float_matrix, number_list, to_float
from relvm.frontend.onnx.ops.strings import find_strings, string_list
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import input_tensor, shaped_input
from relvm.ir.dtypes import F32, I64, STR
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import product


@converts("Scaler", domain=DOMAIN)
def _scaler(node: OnnxNode) -> Expr:
    x = to_float(input_tensor(node, 0))
    for name, op in (("offset", ops.subtract), ("scale", ops.multiply)):
        values = number_list(node, name, x.type.known_dtype.numpy)
        if values is not None:
            x = x.apply(op, constant(values))
    return x.cast(F32).expr


@converts("Normalizer", domain=DOMAIN)
def _normalizer(node: OnnxNode) -> Expr:
    """Divides rows by their maximum, L1 norm, or L2 norm.  A divisor of 0 is replaced by 1."""
    x = float_matrix(node, 0).cast(F32)
    match node.attribute("norm", "MAX"):
        case "MAX":
            size = x.apply(ops.max, axes=(1,), keepdims=True)
        case "L1":
            size = x.apply(ops.abs).sum((1,))
        case "L2":
            size = (x * x).sum((1,)).apply(ops.sqrt)
        case other:
            raise RelvmFormatError(f"norm is {other!r}, expected MAX, L1 or L2")
    return size.apply(ops.equal, 0).where(x, x / size).reshape(*input_tensor(node, 0).shape).expr


@converts("Imputer", domain=DOMAIN)
def _imputer(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    kind = "float" if x.type.known_dtype.is_float else "int64"
    values, replaced = (
        number_list(node, f"imputed_value_{kind}s", x.type.known_dtype.numpy),
        node.attribute(f"replaced_value_{kind}", 0),
    )
    if values is None:
        raise RelvmFormatError(f"attribute imputed_value_{kind}s is missing, but x has dtype {x.type.dtype}")
    missing = x.apply(ops.not_equal, x) if replaced != replaced else x.apply(ops.equal, replaced)
    return ops.where(missing.expr, constant(values), x.expr)


@converts("Binarizer", domain=DOMAIN)
def _binarizer(node: OnnxNode) -> Expr:
    x = input_tensor(node, 0)
    return (x > node.attribute("threshold", 0.0)).cast(x.type.dtype).expr


@converts("ArrayFeatureExtractor", domain=DOMAIN)
def _array_feature_extractor(node: OnnxNode) -> Expr:
    """Selects columns by index.  If x is a vector, the result is one row."""
    x, indices = shaped_input(node, 0), shaped_input(node, 1)
    flat = indices.reshape(product(indices.shape))
    columns = x.apply(ops.gather, flat, axis=-1)
    return (columns.apply(ops.expand_dims, axes=(0,)) if x.type.rank == 1 else columns).expr


@converts("FeatureVectorizer", domain=DOMAIN)
def _feature_vectorizer(node: OnnxNode) -> Expr:
    """Concatenates columns of several tensors, each cut off or padded with zeros to the given size."""
    parts, sizes = [float_matrix(node, i).cast(F32) for i in range(len(node.inputs))], node.attribute("inputdimensions")
    for i, size in enumerate(sizes or []):
        columns = parts[i].shape[1]
        if not isinstance(columns, int):
            raise RelvmUnsupportedError(
                f"inputdimensions requires a known number of columns, got {columns} for input {i}"
            )
        if size < columns:
            parts[i] = parts[i].apply(ops.slice, begin=(0,), end=(size,), axes=(1,))
        elif size > columns:
            parts[i] = parts[i].apply(ops.pad, pads=(0, 0, 0, size - columns))
    return ops.concat(*(part.expr for part in parts), axis=1)


@converts("OneHotEncoder", domain=DOMAIN)
def _one_hot(node: OnnxNode) -> Expr:
    """Returns for each element a vector with a 1 at the category that equals the element.

    For an element without a category, the vector contains only zeros if `zeros` is set.  Otherwise an error is raised.
    """
    x, categories, names = (
        shaped_input(node, 0),
        number_list(node, "cats_int64s", np.int64),
        string_list(node, "cats_strings"),
    )
    if x.type.dtype == STR and names is not None:
        x, categories = find_strings(x, names), np.arange(len(names))
    if categories is None or x.type.dtype == STR:
        raise RelvmFormatError(f"the attribute with the categories for dtype {x.type.dtype} of x is missing")
    spread = x.cast(I64).apply(ops.expand_dims, axes=(len(x.shape),))
    found = spread.apply(ops.equal, constant(categories)).cast(F32)
    if not node.attribute("zeros", 1):
        assert_all_false(found.sum((len(x.shape),)) < 1, "elements of unknown category")
    return found.expr
