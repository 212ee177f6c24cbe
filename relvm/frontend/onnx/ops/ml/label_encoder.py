"""Mapping of labels in ai.onnx.ml: by lists of keys and values, and by maps.

A map is represented by a tuple of two vectors: its keys and its values.  ZipMap computes a sequence of maps with the
same keys.  It is represented by a tuple of these keys and a matrix, which has a row of values for each map.
"""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.onnx.dynamic_sizes import filled
from relvm.frontend.onnx.ops.cast import converted
from relvm.frontend.onnx.ops.ml.postprocess import DOMAIN, numbers
from relvm.frontend.onnx.ops.range_split_tile import shaped
from relvm.frontend.onnx.ops.strings import place_among, texts
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, I64, STR, DType
from relvm.ir.expr import Expr, Tuple, TupleItem, constant
from relvm.ir.types import TupleType

# ---- by keys and values ----


def place_of(x: TensorExpr, keys: np.ndarray) -> TensorExpr:
    """Return the index in `keys` of each element of x, as i64.

    The keys are distinct.  The index of an element that is not a key is the number of keys.
    """
    if x.type.dtype == STR:
        place = place_among(x, keys)
        return (place < 0).where(len(keys), place)
    rank = len(x.shape)
    spread = x.apply(ops.expand_dims, axes=(rank,))
    found = spread.apply(ops.equal, constant(keys))
    is_nan = keys != keys
    if is_nan.any():
        nans = TensorExpr(x.node, constant(is_nan)).apply(ops.logical_and, spread.apply(ops.not_equal, spread))
        found = found.apply(ops.logical_or, nans)
    always = found.cast(I64).apply(ops.pad, pads=(*[0] * (2 * rank + 1), 1), value=1)
    return always.apply(ops.argmax, axis=rank, keepdims=False)


def mapped(x: TensorExpr, keys: np.ndarray, values: np.ndarray, default: object) -> Expr:
    """Replace each element of x, used as a key, by its value, or by the default if it is not a key.

    If keys are equal, the last one is used.  NaN is also a valid key.
    """
    if len(keys) != len(values):
        raise RelvmFormatError(f"expected as many keys as values, got {len(keys)} and {len(values)}")
    if x.dtype.numpy != keys.dtype:
        raise RelvmFormatError(f"keys have dtype {keys.dtype}, expected the dtype of x, {x.type.dtype}")
    kept = list({"nan" if key != key else key: i for i, key in enumerate(keys.tolist())}.values())
    table = np.empty(len(kept) + 1, values.dtype)
    table[:-1], table[-1] = values[kept], default
    return ops.gather(constant(table), place_of(x, keys[kept]).expr, axis=0)


@converts("LabelEncoder", domain=DOMAIN)
def _label_encoder(node: OnnxNode) -> Expr:
    """Replaces each element, which is a key, by the value of that key.

    Before version 2, a single list of strings maps each string to its index, and each index to its string.
    """
    x = shaped(node, 0)
    classes = texts(node, "classes_strings")
    if classes is not None:
        return _mapped_both_ways(node, x, classes, np.arange(len(classes)))
    keys, values = _listed(node, "keys"), _listed(node, "values")
    return mapped(x, keys, values, _default(node, values))


@converts("CategoryMapper", domain=DOMAIN)
def _category_mapper(node: OnnxNode) -> Expr:
    names, places = texts(node, "cats_strings"), numbers(node, "cats_int64s", np.int64)
    if names is None or places is None:
        raise RelvmFormatError("cats_strings or cats_int64s is missing")
    return _mapped_both_ways(node, shaped(node, 0), names, places)


def _mapped_both_ways(node: OnnxNode, x: TensorExpr, names: np.ndarray, places: np.ndarray) -> Expr:
    """Replace each string in x by its index, or each index in x by its string.

    names: the strings.   places: the index of each string in `names`.
    """
    if x.type.dtype == STR:
        return mapped(x, names, places.astype(np.int64), node.attribute("default_int64", -1))
    return mapped(x, places.astype(np.int64), names, node.attribute("default_string", "_Unused"))


def _listed(node: OnnxNode, what: str) -> np.ndarray:
    """Return the keys or the values of a LabelEncoder as a vector.

    They are given by exactly one of the attributes `what`_tensor, `what`_strings, `what`_floats and `what`_int64s.

    what: "keys" or "values".
    """
    tensor = node.attribute(f"{what}_tensor")
    lists = [
        texts(node, f"{what}_strings"),
        numbers(node, f"{what}_floats"),
        numbers(node, f"{what}_int64s", np.int64),
    ]
    given = [each for each in (tensor, *lists) if each is not None]
    if len(given) != 1:
        raise RelvmFormatError(f"expected one attribute that begins with {what}_, got {len(given)}")
    return given[0].reshape(-1)


def _default(node: OnnxNode, values: np.ndarray) -> object:
    tensor = node.attribute("default_tensor")
    if tensor is not None:
        return tensor.reshape(-1)[0]
    if values.dtype == STR.numpy:
        return node.attribute("default_string", "_Unused")
    return node.attribute("default_float", -0.0) if values.dtype.kind == "f" else node.attribute("default_int64", -1)


# ---- maps ----


@converts("ZipMap", domain=DOMAIN)
def _zip_map(node: OnnxNode) -> Expr:
    """Returns a map for each row, represented by the column labels and the matrix."""
    names, integers = texts(node, "classlabels_strings"), numbers(node, "classlabels_int64s", np.int64)
    if (names is None) == (integers is None):
        raise RelvmFormatError(
            f"expected either classlabels_strings or classlabels_int64s, got {'neither' if names is None else 'both'}"
        )
    keys, values = constant(integers if names is None else names), shaped(node, 0)
    if len(values.shape) == 1:
        values = values.apply(ops.expand_dims, axes=(0,))
    rows = node.graph.with_shape(values.expr, (values.shape[0], keys.tensor_type.known_shape[0]))
    return Tuple((keys, rows), type=TupleType((keys.type, rows.type)))


def _map(node: OnnxNode) -> tuple[TensorExpr, TensorExpr]:
    """Return the keys and the values of input 0, a map or a sequence of maps."""
    x = node.tensor(0)
    if not isinstance(x.type, TupleType) or len(x.type.fields) != 2:
        raise RelvmFormatError(f"input 0 is {x.type}, expected a map")
    keys, values = (node.emit(TupleItem(x, i, type=field)) for i, field in enumerate(x.type.fields))
    keys, values = node.graph.known_shape(keys), node.graph.known_shape(values)
    values = node.graph.with_shape(values, (*values.tensor_type.known_shape[:-1], *keys.tensor_type.known_shape))
    return TensorExpr(node, keys), TensorExpr(node, values)


def _dense(node: OnnxNode, places: TensorExpr, values: TensorExpr, size: int) -> TensorExpr:
    """Scatter `values` to the positions `places` of a vector of `size` elements, with zeros or "" elsewhere.

    A value with a position equal to `size` is dropped.
    """
    dtype = values.dtype
    zero = np.array("" if dtype == STR else 0, dtype.numpy)
    dims = (*values.shape[:-1], size + 1)
    empty = TensorExpr(node, node.emit(filled(node, zero, *dims)))
    everywhere = places.apply(ops.broadcast_to, node.shape(list(values.shape)))
    full = empty.apply(ops.scatter_elements, everywhere, values, axis=-1)
    return full.apply(ops.slice, begin=(0,), end=(size,), axes=(len(dims) - 1,))


@converts("DictVectorizer", domain=DOMAIN)
def _dict_vectorizer(node: OnnxNode) -> Expr:
    """Returns the values of a map as one row, in the order of the vocabulary.  Other keys are dropped."""
    keys, values = _map(node)
    names, integers = texts(node, "string_vocabulary"), numbers(node, "int64_vocabulary", np.int64)
    vocabulary = integers if names is None else names
    if vocabulary is None or vocabulary.dtype != keys.dtype.numpy or len(set(vocabulary)) < len(vocabulary):
        raise RelvmFormatError(
            f"expected a vocabulary of distinct keys of dtype {keys.type.dtype}, the dtype of the keys of x"
        )
    row = _dense(node, place_of(keys, vocabulary), values, len(vocabulary))
    return (row.apply(ops.expand_dims, axes=(0,)) if len(row.shape) == 1 else row).expr


_CAST_TO: dict[str, DType] = {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}


@converts("CastMap", domain=DOMAIN)
def _cast_map(node: OnnxNode) -> Expr:
    """Returns the values of a map as one row, in the order of its keys (DENSE) or at the positions given by its keys
    (SPARSE).
    """
    keys, values = _map(node)
    name, form = node.attribute("cast_to", "TO_FLOAT"), node.attribute("map_form", "DENSE")
    if name not in _CAST_TO:
        raise RelvmFormatError(f"cast_to is {name!r}, expected one of {', '.join(_CAST_TO)}")
    if form not in ("DENSE", "SPARSE"):
        raise RelvmFormatError(f"map_form is {form!r}, expected DENSE or SPARSE")
    if keys.type.dtype != I64:
        raise RelvmFormatError(f"keys have dtype {keys.type.dtype}, expected i64")
    values = TensorExpr(node, node.emit(converted(values, _CAST_TO[name])))
    if form == "DENSE":
        order = keys.apply(ops.argtopk, node.shape([keys.shape[0]]), axis=0, largest=False)
        return values.apply(ops.gather, order, axis=-1).apply(ops.expand_dims, axes=(0,)).expr
    size = node.attribute("max_map", 1)
    outside = (keys < 0).apply(ops.logical_or, keys.apply(ops.greater_equal, size))
    row = _dense(node, outside.where(size, keys), values, size)
    return row.apply(ops.expand_dims, axes=(0,)).expr
