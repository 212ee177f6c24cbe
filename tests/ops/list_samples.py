"""Sample calls of the operators on lists and null."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from ops.sample_values import Sample, array

_ITEMS = [array("f32", 2, 3), array("f32", 2, 3), array("f32", 2, 3)]
_RAGGED = [array("i8", 2, 3), array("i8", 0, 3), array("i8", 5, 3)]


def list_samples() -> Iterator[Sample]:
    def sample(op: str, *args, **attributes) -> Sample:
        return Sample(op, args, attributes, keep=None)

    yield sample("make_list")
    yield sample("make_list", *_ITEMS)
    yield sample("make_list", *_RAGGED)
    yield sample("make_list", 1, 2)
    for items in ([], _ITEMS, _RAGGED, [1, 2, 3]):
        yield sample("list_length", items)
        yield sample("list_append", items, items[0] if items else np.float32([1]))
        for index in (0, len(items), -len(items)):
            yield sample("list_insert", items, index, items[0] if items else array("f32", 2, 3))
        for index in {0, len(items) - 1, -len(items)} if items else ():
            yield sample("list_item", items, index)
            yield sample("list_erase", items, index)
    yield sample("list_concat", _RAGGED, axis=0)
    yield sample("list_concat", [array("f64", 3, 4), array("f64", 3, 1)], axis=-1)
    yield sample("list_concat", [np.zeros((0, 4), np.int16)] * 2, axis=1)
    for axis in (0, 1, -1):
        yield sample("list_stack", _ITEMS, axis=axis)
    yield sample("list_stack", [array("bool"), array("bool")], axis=0)
    for axis in (0, -1):
        yield sample("list_unstack", array("u8", 3, 5), axis=axis)
        for size in (1, 2, 5, 100):
            yield sample("list_split", array("f32", 3, 5), size, axis=axis)
    yield sample("list_split", array("f32", 3, 5), (2, 0, 3), axis=1)
    yield sample("list_split", array("f32", 4, 2, 2), (2, 2), axis=0)
    yield sample("list_split", np.zeros((0, 5), np.float32), 2, axis=0)
    for value in (None, np.float32(1), 3, [1], []):
        yield sample("is_null", np.asarray(value) if isinstance(value, np.generic) else value)
