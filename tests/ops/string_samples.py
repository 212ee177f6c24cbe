"""Sample calls of string operators."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from ops.sample_values import INTEGERS, Sample, array

from relvm.ops.regex_compiler import compile_pattern
from relvm.ops.strings import string_table

ODD = ["", "a", "Ab", "äÖß", "ДΣ", "a\0b", "日本", "a", "\udcff", "x" * 1000, " ", "ǅ"]


def strings(*texts: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    made = np.empty(len(texts), object)
    made[:] = texts
    return made if shape is None else made.reshape(shape)


_NUMBERS = (0.0, -0.0, 1.0, 0.1, 1e16, 1e15, 9999999999999998.0, 1e-4, 9.9e-5, 5e-324, 2.0**-44, 1 / 3, 1e300)


def string_samples() -> Iterator[Sample]:
    def sample(op: str, *args, **attributes) -> Sample:
        return Sample(op, args, attributes, keep=None)

    x, empty = strings(*ODD, shape=(3, 4)), strings(shape=(0, 4))
    for each in (x, empty, strings("one", shape=())):
        yield sample("string_positions", each)
        yield sample("string_positions", each, x, empty)
        yield sample("string_equal", each, each)
        yield sample("string_concat", each, each)
        for upper in (0, 1):
            yield sample("string_case", each, upper=upper)
    yield sample("string_take", np.array([[11, -1, 0], [5, 5, 12]], np.int64), x, empty, strings("last"))
    yield sample("string_take", np.zeros((0, 2), np.int64), x)
    for op in ("string_equal", "string_concat"):
        yield sample(op, x, strings("", "a", "Ab", "äÖß"))
        yield sample(op, strings("a", "b", shape=(2, 1)), strings("a", "b", "b"))
        yield sample(op, strings("a", shape=(1, 1)), empty)
    keys = strings("a", "", "日本", "\udcff")
    yield sample("string_lookup", x, keys, string_table(keys))
    yield sample("string_lookup", x, strings(), string_table(strings()))
    many = strings(*map(str, range(300)))
    yield sample("string_lookup", many[::-1].copy(), many, string_table(many))
    words = strings("a,b,,c", "", ",", " a  b\tc\u3000d ", "a", "aXXbXXXc", shape=(2, 3))
    for text in (",", "", "XX", "aXXbXXXc"):
        for most in (-1, 0, 1, 2):
            for op in ("string_split", "string_part_count"):
                yield sample(op, words, strings(text, shape=()), most=most)
    yield sample("string_split", empty, strings(",", shape=()))
    yield sample("string_part_count", empty, strings(",", shape=()))
    for pattern in ("a*", "[^a]+", "(a|Ab)?", ".{1,3}", r"\w\W?\w", "(?i)[äöß]+", r"^\s*$", r"(?s).*\bb", ""):
        yield sample("string_match", x, compile_pattern(pattern))
        yield sample("string_tokens", x, compile_pattern(pattern))
        yield sample("string_tokens", words, compile_pattern(pattern))
    neighbors = strings("", *"a\0", *map("".join, itertools.product("aZ_09 -\n\0\1é", repeat=2)))
    for anchor, flags in itertools.product(("^", "$", r"\b", r"\B"), ("s", "ms")):
        yield sample("string_match", neighbors, compile_pattern(f"(?{flags}){anchor}.*"))
        yield sample("string_match", neighbors, compile_pattern(f"(?{flags}).{anchor}."))
        yield sample("string_match", neighbors, compile_pattern(f"(?{flags}).*{anchor}"))
    for dtype in INTEGERS:
        yield sample("string_of_number", array(dtype, 3, 4))
        limits = np.iinfo(array(dtype, 1).dtype)
        yield sample("string_to_number", strings(str(limits.min), f" +{limits.max}\n", "007"), to=dtype)
    numbers = np.array([*_NUMBERS, *(-n for n in _NUMBERS), np.inf, -np.inf, np.nan])
    for kind in (np.float64, np.float32, np.float16):
        with np.errstate(all="ignore"):
            yield sample("string_of_number", numbers.astype(kind))
    random = np.random.default_rng(5)
    yield sample("string_of_number", random.integers(0, 2**63, 500).view(np.float64)[:500])
    yield sample("string_of_number", random.integers(0, 2**31, 500, np.uint32).view(np.float32))
    yield sample("string_of_number", np.arange(0, 0x7C01, 7, np.uint16).view(np.float16))
    yield sample("string_of_number", np.array([True, False]))
    for to in ("f32", "f64"):
        texts = strings("1", "-.5", "1.", "1e5", "1E-400", " inf ", "-Infinity", "NaN", "9007199254740993", "0.1")
        yield sample("string_to_number", texts, to=to)
