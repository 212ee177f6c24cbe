"""Operators on tensors of strings.  Builtins implement them (csrc/builtins/string_ops.c, string_convert.c).

Operators that move elements accept strings as well as numbers.  To move strings, relvm/passes/lower_string_moves.py
uses string_positions and string_take.
"""

from __future__ import annotations

import numpy as np

from relvm._native import lib
from relvm.errors import RelvmArithmeticError, RelvmIndexError, RelvmShapeError
from relvm.ir.dtypes import BOOL, F16, F32, F64, I64, STR, DType, dtype_of
from relvm.ir.operator import expect, op
from relvm.ir.type_rules import broadcast, expect_tensor, with_dtype
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import Builtin
from relvm.ops import string_reference


def expect_strings(name: str, **args: TensorType) -> None:
    """Check that all arguments of operator `name` are tensors of strings.

    args: the arguments by parameter name.
    """
    expect_tensor(name, **args)
    for parameter, type_ in args.items():
        expect(type_.dtype == STR, "{}: {} has dtype {}, expected str", name, parameter, type_.dtype)


# ---- moving ----


def _numpy_positions(x: np.ndarray, *others: np.ndarray) -> np.ndarray:
    return sum(other.size for other in others) + np.arange(x.size).reshape(x.shape)


@op("string_positions", numpy=_numpy_positions, lower=Builtin("string_positions"), strings=True)
def string_positions(x: TensorType, *others: TensorType) -> TensorType:
    """The positions of the elements of x in the concatenation of `others` and x, all flattened in row-major order.
    These are the positions that string_take(positions, *others, x) expects.

    x, others: tensors of any dtype.  Only their shapes matter.
    Result: an i64 tensor with the shape of x.
    Raises RelvmTypeError if an argument is not a tensor.
    Source: numpy.arange.

    Examples:

        >>> run("string_positions(x, y)", x=["c", "d"], y=["a", "b"])
        [2 3]
    """
    expect_tensor("string_positions", x=x, **{f"other {i}": other for i, other in enumerate(others)})
    return with_dtype(x, I64)


def _numpy_take(positions: np.ndarray, *xs: np.ndarray) -> np.ndarray:
    strings = np.concatenate([*(x.reshape(-1) for x in xs), np.array([""], object)])  # position -1 is the empty string
    wrong = positions[(positions < -1) | (positions >= len(strings) - 1)]
    if wrong.size:
        raise RelvmIndexError(f"string_take: position {wrong[0]} is out of range")
    selected = np.empty(positions.shape, object)
    selected[...] = strings[positions]
    return selected


@op("string_take", numpy=_numpy_take, lower=Builtin("string_take"), strings=True)
def string_take(positions: TensorType, *xs: TensorType) -> TensorType:
    """The strings at the given positions in the concatenation of several flattened tensors.

    positions: an i64 tensor.  The position -1 stands for the empty string.
    xs: tensors of strings.
    Result: a tensor of strings, with the shape of `positions`.
    Raises RelvmTypeError if an argument has another dtype.  At run time, it raises RelvmIndexError if a position is out
    of range.
    Source: numpy.take.

    Examples:

        >>> run("string_take(positions, x)", positions=[2, -1, 0], x=["a", "b", "c"])
        ['c' '' 'a']
    """
    expect_tensor("string_take", positions=positions)
    expect(positions.dtype == I64, "string_take: positions has dtype {}, expected i64", positions.dtype)
    expect_strings("string_take", **{f"x {i}": x for i, x in enumerate(xs)})
    return with_dtype(positions, STR)


# ---- comparing ----


def _numpy_equal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.equal(x, y), bool)


@op("string_equal", numpy=_numpy_equal, lower=Builtin("string_equal"), strings=True)
def string_equal(x: TensorType, y: TensorType) -> TensorType:
    """Whether the strings are equal, elementwise.

    x, y: tensors of strings, whose shapes broadcast.
    Result: a bool tensor with the broadcast shape.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX Equal-19.

    Examples:

        >>> run("string_equal(x, y)", x=["a", "b"], y="b")
        [False  True]
    """
    expect_strings("string_equal", x=x, y=y)
    return broadcast("string_equal", BOOL, x, y)


def _numpy_lookup(x: np.ndarray, keys: np.ndarray, table: np.ndarray) -> np.ndarray:
    indices = {key: place for place, key in reversed(list(enumerate(keys)))}
    return string_reference.map_elements(lambda text: indices.get(text, -1), x, np.int64)


@op("string_lookup", numpy=_numpy_lookup, lower=Builtin("string_lookup"), strings=True)
def string_lookup(x: TensorType, keys: TensorType, table: TensorType) -> TensorType:
    """The index of each string in a list of keys.

    x: a tensor of strings.
    keys: a tensor of rank 1 with distinct strings.
    table: a hash table of the keys, an i64 tensor of rank 1.  It is the result of `string_table`.
    Result: an i64 tensor with the shape of x.  The element for a string that is not a key is -1.
    Raises RelvmTypeError if an argument has another dtype or rank.  At run time, it raises RelvmIndexError if a lookup
    reaches a slot with an invalid index, or finds neither the string nor a free slot.
    Source: ONNX LabelEncoder-ml-4.
    """
    expect_strings("string_lookup", x=x, keys=keys)
    expect_tensor("string_lookup", table=table)
    right = table.dtype == I64 and {keys.rank, table.rank} <= {1, None}
    expect(right, "string_lookup: keys is {} and table is {}, expected str[k] and i64[n]", keys, table)
    return with_dtype(x, I64)


def string_table(keys: np.ndarray) -> np.ndarray:
    """Return a hash table with open addressing for the distinct strings `keys`, as an i64 array.

    Each slot contains the index of a key, or -1 if the slot is free.  The hash is the CRC-32C of the UTF-8 bytes,
    modulo the table size.  Collisions are resolved by linear probing.  At most half of the slots are used.
    """
    table = np.full(2 * len(keys) + 1, -1, np.int64)
    for place, key in enumerate(keys):
        encoded = key.encode(errors="surrogateescape")
        slot = lib.rvm_crc32c(0, encoded, len(encoded)) % len(table)
        while table[slot] >= 0:
            slot = (slot + 1) % len(table)
        table[slot] = place
    return table


# ---- text ----


def _numpy_concat(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.add(x, y), object)


@op("string_concat", numpy=_numpy_concat, lower=Builtin("string_concat"), strings=True)
def string_concat(x: TensorType, y: TensorType) -> TensorType:
    """The strings of x and y concatenated, elementwise.

    x, y: tensors of strings, whose shapes broadcast.
    Result: a tensor of strings, with the broadcast shape.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the shapes do not broadcast.
    Source: ONNX StringConcat-20.

    Examples:

        >>> run("string_concat(x, y)", x=["a", "b"], y="!")
        ['a!' 'b!']
    """
    expect_strings("string_concat", x=x, y=y)
    return broadcast("string_concat", STR, x, y)


def _numpy_case(x: np.ndarray, *, upper: int) -> np.ndarray:
    return string_reference.map_elements(lambda text: string_reference.convert_case(text, upper=bool(upper)), x, object)


@op("string_case", numpy=_numpy_case, lower=Builtin("string_case", ("upper",)), strings=True)
def string_case(x: TensorType, *, upper: int) -> TensorType:
    """The strings, converted to upper or lower case.

    x: a tensor of strings.
    upper: 1 for upper case, 0 for lower case.
    Result: a tensor of the same type as x.  Each letter is mapped to a single letter, as defined in
    csrc/tables/unicode_case.def.
    Raises RelvmTypeError if x has another dtype.
    Source: Unicode's simple case mappings; ONNX StringNormalizer-10.

    Examples:

        >>> run("string_case(x, upper=1)", x=["tensor", "Straße"])
        ['TENSOR' 'STRAßE']
    """
    expect_strings("string_case", x=x)
    return x


def _numpy_split(x: np.ndarray, delimiter: np.ndarray, *, most: int) -> np.ndarray:
    return _pad_parts(x, [string_reference.split(text, delimiter.item(), most) for text in x.reshape(-1)])


def _pad_parts(x: np.ndarray, parts: list[list[str]]) -> np.ndarray:
    """Return the parts of each element of x along a new last axis, padded with empty strings.

    parts: for each element of x, the list of its parts.
    """
    longest = max(map(len, parts), default=0)
    split = np.empty((len(parts), longest), object)
    for row, each in zip(split, parts, strict=True):
        row[:] = [*each, *[""] * (longest - len(each))]
    return split.reshape(*x.shape, longest)


def _expect_split(name: str, x: TensorType, delimiter: TensorType) -> None:
    expect_strings(name, x=x, delimiter=delimiter)
    expect(delimiter.rank in (0, None), "{}: delimiter is {}, expected str[]", name, delimiter, error=RelvmShapeError)


@op("string_split", numpy=_numpy_split, lower=Builtin("string_split", ("most",)), strings=True)
def string_split(x: TensorType, delimiter: TensorType, *, most: int = -1) -> TensorType:
    """The parts of each string along a new last axis, padded with empty strings.

    x: a tensor of strings.
    delimiter: a string tensor of rank 0.  If it is empty, strings are split at runs of white space.
    most: the maximum number of splits of a string, or -1 for no limit.  If the limit is reached, the last part is the
    rest of the string, without further splits.
    Result: a tensor of strings, with one axis more than x.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the delimiter has another rank.
    Source: ONNX StringSplit-20, Python's str.split.

    Examples:

        >>> run("string_split(x, delimiter)", x=["a,b,c", "d"], delimiter=",")
        [['a' 'b' 'c']
         ['d' '' '']]
    """
    _expect_split("string_split", x, delimiter)
    return TensorType(STR, None, None if x.rank is None else x.rank + 1)


def _numpy_part_count(x: np.ndarray, delimiter: np.ndarray, *, most: int) -> np.ndarray:
    return string_reference.map_elements(
        lambda text: len(string_reference.split(text, delimiter.item(), most)), x, np.int64
    )


@op("string_part_count", numpy=_numpy_part_count, lower=Builtin("string_part_count", ("most",)), strings=True)
def string_part_count(x: TensorType, delimiter: TensorType, *, most: int = -1) -> TensorType:
    """The number of parts into which string_split divides each string.

    x: a tensor of strings.
    delimiter: a string tensor of rank 0.  If it is empty, strings are split at runs of white space.
    most: the maximum number of splits of a string, or -1 for no limit.
    Result: an i64 tensor with the shape of x.
    Raises RelvmTypeError if an argument has another dtype.  Raises RelvmShapeError if the delimiter has another rank.
    Source: ONNX StringSplit-20.

    Examples:

        >>> run("string_part_count(x, delimiter)", x=["a,b,c", "d"], delimiter=",")
        [3 1]
    """
    _expect_split("string_part_count", x, delimiter)
    return with_dtype(x, I64)


def _numpy_match(x: np.ndarray, program: np.ndarray) -> np.ndarray:
    return string_reference.map_elements(
        lambda text: string_reference.longest_match(program.tolist(), text) == len(text), x, bool
    )


@op("string_match", numpy=_numpy_match, lower=Builtin("string_match"), strings=True)
def string_match(x: TensorType, program: TensorType) -> TensorType:
    """For each string, whether a regular expression matches the whole string.

    x: a tensor of strings.
    program: the compiled regular expression, an i64 tensor of shape (n, 3).  The function
    relvm.ops.regex_compiler.compile_pattern returns it.
    Result: a bool tensor with the shape of x.
    Raises RelvmTypeError if an argument has another dtype.  At run time, it raises RelvmArgumentError if the program is
    invalid.
    Source: ONNX RegexFullMatch-20.
    """
    _expect_program("string_match", x, program)
    return with_dtype(x, BOOL)


def _expect_program(name: str, x: TensorType, program: TensorType) -> None:
    expect_strings(name, x=x)
    expect_tensor(name, program=program)
    right = program.dtype == I64 and program.rank in (2, None)
    expect(right, "{}: program is {}, expected i64[n, 3]", name, program)


def _numpy_tokens(x: np.ndarray, program: np.ndarray) -> np.ndarray:
    return _pad_parts(x, [string_reference.tokens(program.tolist(), text) for text in x.reshape(-1)])


@op("string_tokens", numpy=_numpy_tokens, lower=Builtin("string_tokens"), strings=True)
def string_tokens(x: TensorType, program: TensorType) -> TensorType:
    """The nonempty matches of a regular expression in each string, in order, along a new last axis.  Each match is the
    longest one at its start.  If a string has fewer matches than others, the axis is padded with empty strings.

    x: a tensor of strings.
    program: the compiled regular expression, an i64 tensor of shape (n, 3).  The function
    relvm.ops.regex_compiler.compile_pattern returns it.
    Result: a tensor of strings, with one axis more than x.
    Raises RelvmTypeError if an argument has another dtype.  At run time, it raises RelvmArgumentError if the program is
    invalid.
    Source: Tokenizer of ONNX Runtime's com.microsoft.
    """
    _expect_program("string_tokens", x, program)
    return TensorType(STR, None, None if x.rank is None else x.rank + 1)


# ---- numbers ----


def _numpy_of_number(x: np.ndarray) -> np.ndarray:
    return string_reference.map_elements(string_reference.format_number, x, object)


@op("string_of_number", numpy=_numpy_of_number, lower=Builtin("string_of_number"), strings=True, moves=True)
def string_of_number(x: TensorType) -> TensorType:
    """Numbers as text.  Integers are in decimal.  Floats have the fewest digits that restore the number, and an
    exponent if their magnitude is below 1e-4 or at least 1e16.  A bool is `True` or `False`.

    x: a tensor of dtype bool, f16, f32, f64 or an integer dtype of at least 8 bits.
    Result: a tensor of strings, with the shape of x.
    Raises RelvmTypeError if x has another dtype.
    Source: ONNX Cast-25; Python's repr.

    Examples:

        >>> run("string_of_number(x)", x=[1.5, 100.0])
        ['1.5' '100.0']
    """
    expect_tensor("string_of_number", x=x)
    right = (
        x.known_dtype.is_bool
        or x.dtype in (F16, F32, F64)
        or (x.known_dtype.is_integer and x.known_dtype.is_arithmetic)
    )
    expect(right, "string_of_number: x has dtype {}, expected bool, an integer dtype, f16, f32 or f64", x.dtype)
    return with_dtype(x, STR)


def _numpy_to_number(x: np.ndarray, *, to: str | DType) -> np.ndarray:
    dtype = dtype_of(to)
    numbers = [string_reference.parse_number(text, dtype) for text in x.reshape(-1)]
    if None in numbers:
        wrong = x.reshape(-1)[numbers.index(None)]
        raise RelvmArithmeticError(f"string_to_number: {wrong!r} cannot be converted to {dtype}")
    return np.array(numbers, dtype.numpy).reshape(x.shape)


@op("string_to_number", numpy=_numpy_to_number, lower=Builtin("string_to_number", ("to",)), strings=True)
def string_to_number(x: TensorType, *, to: str | DType) -> TensorType:
    """Text parsed as decimal numbers, with optional white space around them.  A float can also be `inf`, `infinity` or
    `nan`, in upper or lower case.

    x: a tensor of strings.
    to: f32, f64 or an integer dtype of at least 8 bits.
    Result: a tensor with the dtype `to` and the shape of x.
    Raises RelvmTypeError if x has another dtype.  At run time, it raises RelvmArithmeticError if a string is not such a
    number, or an integer is out of range.
    Source: ONNX Cast-25.

    Examples:

        >>> run("string_to_number(x, to=i64)", x=["12", "-7"])
        [12 -7]
    """
    expect_strings("string_to_number", x=x)
    dtype = dtype_of(to)
    right = dtype in (F32, F64) or (dtype.is_integer and dtype.is_arithmetic)
    expect(right, "string_to_number: to is {}, expected an integer dtype of 8 bits or more, f32 or f64", dtype)
    return with_dtype(x, dtype)
