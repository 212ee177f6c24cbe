"""String operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.ops.gather_scatter_topk import find_true
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import BF16, F32, I64, STR
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import product
from relvm.ops.regex_compiler import compile_pattern
from relvm.ops.strings import string_table


def string_list(node: OnnxNode, name: str) -> np.ndarray | None:
    """Return the attribute `name`, a list of strings, as an array of str, or None if it is absent or empty."""
    found = node.attribute(name)
    return string_array(found) if found else None


def string_array(values: Sequence[str]) -> np.ndarray:
    """Convert strings to a vector of dtype str."""
    array = np.empty(len(values), STR.numpy)
    array[:] = values
    return array


def find_strings(x: TensorExpr, keys: np.ndarray) -> TensorExpr:
    """Return, for each string of x, its index in `keys`, as an i64 tensor.

    If keys are equal, the index of the first one is used.  The index of a string that is not a key is -1.
    """
    different = string_array(list(dict.fromkeys(keys)))
    table = constant(string_table(different))
    place = x.apply(ops.string_lookup, constant(different), table)
    if len(different) == len(keys):
        return place
    firsts = [list(keys).index(key) for key in different]
    return TensorExpr(x.node, constant(np.array([*firsts, -1], np.int64))).apply(ops.gather, place, axis=0)


@converts("StringConcat")
def _string_concat(node: OnnxNode) -> Expr:
    return ops.string_concat(node.tensor(0), node.tensor(1))


@converts("StringSplit")
def _string_split(node: OnnxNode) -> tuple[Expr, ...]:
    x, delimiter = node.known_shape(0), constant(np.array(node.attribute("delimiter") or "", STR.numpy))
    most = node.attribute("maxsplit", -1)
    most = -1 if most is None or most < 0 else most
    parts = node.graph.with_sizes(
        node.emit(ops.string_split(x, delimiter, most=most)), (*x.tensor_type.known_shape, None)
    )
    return parts, ops.string_part_count(x, delimiter, most=most)


@converts("RegexFullMatch")
def _regex_full_match(node: OnnxNode) -> Expr:
    return ops.string_match(node.tensor(0), constant(compile_pattern(node.attribute("pattern"))))


@converts("StringNormalizer")
def _string_normalizer(node: OnnxNode) -> Expr:
    """Removes stop words, and changes the case of the remaining words.

    If no word remains, the result is one empty string.  Without case sensitivity, stop words are compared in lower
    case.
    """
    x, stopwords = TensorExpr(node, node.known_shape(0)), string_list(node, "stopwords")
    rank, change = len(x.shape), node.attribute("case_change_action", "NONE")
    if rank not in (1, 2) or (rank == 2 and x.shape[0] != 1):
        raise RelvmShapeError(f"x is {x.type}, expected str[n] or str[1, n]")
    if change not in ("NONE", "LOWER", "UPPER"):
        raise RelvmFormatError(f"case_change_action is {change!r}, expected NONE, LOWER or UPPER")
    words = x.reshape(product(x.shape))
    if stopwords is not None:
        words = _remove_stop_words(words, stopwords, bool(node.attribute("is_case_sensitive", 0)))
    if change != "NONE":
        words = words.apply(ops.string_case, upper=int(change == "UPPER"))
    return words.reshape(*([1] * (rank - 1)), *words.shape).expr


@converts("Tokenizer", domain="com.microsoft")
def _tokenizer(node: OnnxNode) -> Expr:
    """Splits each string into tokens.

    Each match of `tokenexp` is a token.  If the only separator is empty, each character is a token.  Rows with fewer
    tokens are padded with `pad_value`.
    """
    x, pattern, separators = node.known_shape(0), node.attribute("tokenexp"), string_list(node, "separators")
    if separators is not None and separators.tolist() == [""]:
        pattern = "(?s)."
    if not pattern or node.attribute("mark", 0) or string_list(node, "stopwords") is not None:
        raise RelvmUnsupportedError(
            "expected either tokenexp or an empty string as the only separator; mark and stopwords are not supported"
        )
    least = node.attribute("mincharnum", 1)
    if least > 1:
        raise RelvmUnsupportedError(f"mincharnum={least} is not supported")
    tokens = node.emit(ops.string_tokens(x, constant(compile_pattern(pattern))))
    tokens = node.graph.with_sizes(tokens, (*x.tensor_type.known_shape, None))
    empty, filler = constant(np.array("", STR.numpy)), constant(np.array(node.attribute("pad_value", ""), STR.numpy))
    return ops.where(node.emit(ops.equal(tokens, empty)), filler, tokens)


def _remove_stop_words(words: TensorExpr, stopwords: np.ndarray, case_matters: bool) -> TensorExpr:
    """Remove stop words from a vector of words.  If no word remains, return one empty string.

    case_matters: whether the comparison is case-sensitive.
    """
    node, found = words.node, words
    if not case_matters:
        found = words.apply(ops.string_case, upper=0)
        stopwords = np.asarray(ops.string_case.numpy(stopwords, upper=0))
    is_kept = find_strings(found, stopwords) < 0
    none_is = is_kept.cast(I64).apply(ops.sum).apply(ops.equal, 0).reshape(1)
    empty = TensorExpr(node, constant(string_array([""])))
    positions, count = find_true(is_kept.apply(ops.concat, none_is, axis=0))
    kept = words.apply(ops.concat, empty, axis=0).apply(ops.gather, positions, axis=0)
    return kept if kept.type.shape is not None else TensorExpr(node, node.graph.with_shape(kept.expr, (count,)))


def numbers_to_strings(x: TensorExpr) -> Expr:
    """Convert a tensor of numbers to strings, as ONNX Cast-25 defines it.  A bf16 number is formatted as f32."""
    dtype = x.dtype
    if dtype == STR:
        return x.expr
    if not (dtype.is_bool or dtype.name == "f16" or dtype.is_arithmetic):
        raise RelvmUnsupportedError(f"converting {dtype} to strings is not supported")
    return ops.string_of_number((x.cast(F32) if dtype == BF16 else x).expr)
