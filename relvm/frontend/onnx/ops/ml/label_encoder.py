"""Operators of ai.onnx.ml that replace keys by values, and operators on maps.

A map is represented by a tuple of two vectors: its keys and its values.  ZipMap computes a sequence of maps with the
same keys.  Such a sequence is represented by a tuple of these keys and a matrix, which has a row of values for each
map.
"""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError
from relvm.frontend.onnx.dynamic_sizes import filled
from relvm.frontend.onnx.ops.cast import convert_dtype
from relvm.frontend.onnx.ops.ml.postprocess import DOMAIN, number_list
from relvm.frontend.onnx.ops.strings import find_strings, string_list
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, shaped_input
from relvm.ir.dtypes import F32, I64, STR, DType
from relvm.ir.expr import Expr, Tuple, TupleItem, constant
from relvm.ir.types import TupleType

# ---- by keys and values ----


def find_keys(x: TensorExpr, keys: np.ndarray) -> TensorExpr:
    """Return, for each element of x, its index in `keys`, as an i64 tensor.

    The keys must be distinct.  The index of an element that is not a key is `len(keys)`.
    """
    if x.type.dtype == STR:
        place = find_strings(x, keys)
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


def replace_keys(x: TensorExpr, keys: np.ndarray, values: np.ndarray, default: object) -> Expr:
    """Replace each element of x that is a key by the value of that key, and any other element by `default`.

    If keys are equal, the value of the last one is used.  NaN is also a valid key.

    values: the value of each key.
    """
    if len(keys) != len(values):
        raise RelvmFormatError(f"expected as many keys as values, got {len(keys)} and {len(values)}")
    if x.dtype.numpy != keys.dtype:
        raise RelvmFormatError(f"keys have dtype {keys.dtype}, expected the dtype of x, {x.type.dtype}")
    kept = list({"nan" if key != key else key: i for i, key in enumerate(keys.tolist())}.values())
    table = np.empty(len(kept) + 1, values.dtype)
    table[:-1], table[-1] = values[kept], default
    return ops.gather(constant(table), find_keys(x, keys[kept]).expr, axis=0)


@converts("LabelEncoder", domain=DOMAIN)
def _label_encoder(node: OnnxNode) -> Expr:
    """Replaces each element that is a key by the value of that key, and any other element by a default value.

    Before version 2, a single list of strings maps each string to its index, and each index to its string.
    """
    x = shaped_input(node, 0)
    classes = string_list(node, "classes_strings")
    if classes is not None:
        return _map_names_or_integers(node, x, classes, np.arange(len(classes)))
    keys, values = _keys_or_values(node, "keys"), _keys_or_values(node, "values")
    return replace_keys(x, keys, values, _default(node, values))


@converts("CategoryMapper", domain=DOMAIN)
def _category_mapper(node: OnnxNode) -> Expr:
    names, integers = string_list(node, "cats_strings"), number_list(node, "cats_int64s", np.int64)
    if names is None or integers is None:
        raise RelvmFormatError("cats_strings or cats_int64s is missing")
    return _map_names_or_integers(node, shaped_input(node, 0), names, integers)


def _map_names_or_integers(node: OnnxNode, x: TensorExpr, names: np.ndarray, integers: np.ndarray) -> Expr:
    """Replace each name in x by its integer or, if x contains integers, each integer by its name.

    names: the names, as strings.   integers: the integer of each name.
    """
    if x.type.dtype == STR:
        return replace_keys(x, names, integers.astype(np.int64), node.attribute("default_int64", -1))
    return replace_keys(x, integers.astype(np.int64), names, node.attribute("default_string", "_Unused"))


def _keys_or_values(node: OnnxNode, what: str) -> np.ndarray:
    """Return the keys or the values of a LabelEncoder as a vector.

    Exactly one of four attributes contains them.  For the keys, the four attributes are keys_tensor, keys_strings,
    keys_floats and keys_int64s.

    what: "keys" or "values".
    """
    tensor = node.attribute(f"{what}_tensor")
    lists = [
        string_list(node, f"{what}_strings"),
        number_list(node, f"{what}_floats"),
        number_list(node, f"{what}_int64s", np.int64),
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
    names, integers = string_list(node, "classlabels_strings"), number_list(node, "classlabels_int64s", np.int64)
    if (names is None) == (integers is None):
        raise RelvmFormatError(
            f"expected either classlabels_strings or classlabels_int64s, got {'neither' if names is None else 'both'}"
        )
    keys, values = constant(integers if names is None else names), shaped_input(node, 0)
    if len(values.shape) == 1:
        values = values.apply(ops.expand_dims, axes=(0,))
    rows = node.graph.with_shape(values.expr, (values.shape[0], keys.tensor_type.known_shape[0]))
    return Tuple((keys, rows), type=TupleType((keys.type, rows.type)))


def _map_input(node: OnnxNode) -> tuple[TensorExpr, TensorExpr]:
    """Return the keys and the values of the map, or sequence of maps, in input 0."""
    x = node.tensor(0)
    if not isinstance(x.type, TupleType) or len(x.type.fields) != 2:
        raise RelvmFormatError(f"input 0 is {x.type}, expected a map")
    keys, values = (node.emit(TupleItem(x, i, type=field)) for i, field in enumerate(x.type.fields))
    keys, values = node.graph.known_shape(keys), node.graph.known_shape(values)
    values = node.graph.with_shape(values, (*values.tensor_type.known_shape[:-1], *keys.tensor_type.known_shape))
    return TensorExpr(node, keys), TensorExpr(node, values)


def _scatter_values(node: OnnxNode, positions: TensorExpr, values: TensorExpr, size: int) -> TensorExpr:
    """Return a vector of `size` elements that contains `values` at `positions`, and zeros or "" elsewhere.

    A value is dropped if its position is `size`.
    """
    dtype = values.dtype
    zero = np.array("" if dtype == STR else 0, dtype.numpy)
    dims = (*values.shape[:-1], size + 1)
    empty = TensorExpr(node, node.emit(filled(node, zero, *dims)))
    everywhere = positions.apply(ops.broadcast_to, node.shape(list(values.shape)))
    full = empty.apply(ops.scatter_elements, everywhere, values, axis=-1)
    return full.apply(ops.slice, begin=(0,), end=(size,), axes=(len(dims) - 1,))


@converts("DictVectorizer", domain=DOMAIN)
def _dict_vectorizer(node: OnnxNode) -> Expr:
    """Returns the values of a map as one row, in the order of the vocabulary.  Other keys are dropped."""
    keys, values = _map_input(node)
    names, integers = string_list(node, "string_vocabulary"), number_list(node, "int64_vocabulary", np.int64)
    vocabulary = integers if names is None else names
    if vocabulary is None or vocabulary.dtype != keys.dtype.numpy or len(set(vocabulary)) < len(vocabulary):
        raise RelvmFormatError(
            f"expected a vocabulary of distinct keys of dtype {keys.type.dtype}, the dtype of the keys of x"
        )
    row = _scatter_values(node, find_keys(keys, vocabulary), values, len(vocabulary))
    return (row.apply(ops.expand_dims, axes=(0,)) if len(row.shape) == 1 else row).expr


_CAST_TO: dict[str, DType] = {"TO_FLOAT": F32, "TO_INT64": I64, "TO_STRING": STR}


@converts("CastMap", domain=DOMAIN)
def _cast_map(node: OnnxNode) -> Expr:
    """Returns the values of a map as one row, in the order of its keys (DENSE) or at the positions given by its keys
    (SPARSE).
    """
    keys, values = _map_input(node)
    name, form = node.attribute("cast_to", "TO_FLOAT"), node.attribute("map_form", "DENSE")
    if name not in _CAST_TO:
        raise RelvmFormatError(f"cast_to is {name!r}, expected one of {', '.join(_CAST_TO)}")
    if form not in ("DENSE", "SPARSE"):
        raise RelvmFormatError(f"map_form is {form!r}, expected DENSE or SPARSE")
    if keys.type.dtype != I64:
        raise RelvmFormatError(f"keys have dtype {keys.type.dtype}, expected i64")
    values = TensorExpr(node, node.emit(convert_dtype(values, _CAST_TO[name])))
    if form == "DENSE":
        order = keys.apply(ops.argtopk, node.shape([keys.shape[0]]), axis=0, largest=False)
        return values.apply(ops.gather, order, axis=-1).apply(ops.expand_dims, axes=(0,)).expr
    size = node.attribute("max_map", 1)
    outside = (keys < 0).apply(ops.logical_or, keys.apply(ops.greater_equal, size))
    row = _scatter_values(node, outside.where(size, keys), values, size)
    return row.apply(ops.expand_dims, axes=(0,)).expr
