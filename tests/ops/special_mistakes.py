"""Calls of operators on trees, image regions and lists that type rules reject."""

from __future__ import annotations

from ops.mistake import F32, UNTYPED, Mistake, tensor

from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.types import OBJECT, ListType, PrimType


def tree_mistakes() -> list[Mistake]:
    x, right = tensor("f32", "n, 3"), {"targets": 2, "aggregate": "sum", "steps": 2, "offset_bits": 5, "blocks": 1}
    tables = [tensor("i64", "5"), *(tensor("i32", size) for size in ("2", "2", "3", "4", "6")), tensor("f32", "6")]

    def mistake(message: str, error=RelvmTypeError, x=x, changed: int | None = None, table=None, **changes) -> Mistake:
        args = [table if i == changed else each for i, each in enumerate(tables)]
        return Mistake("tree_ensemble", (x, *args), message, error, right | changes)

    return [
        mistake("x has dtype i64", x=tensor("i64", "n, 3")),
        mistake("x has rank 1, expected 2", x=tensor("f32", "n")),
        mistake("roots is i64[2], expected i32[_]", changed=1, table=tensor("i64", "2")),
        mistake("values is f64[6], expected f32[_]", changed=6, table=tensor("f64", "6")),
        mistake("columns is i32[k], expected a size", RelvmShapeError, changed=3, table=tensor("i32", "k")),
        mistake("roots and depths differ in length: 2 and 4", RelvmShapeError, changed=2, table=tensor("i32", "4")),
        mistake("differ in length: 7 and 6", RelvmShapeError, changed=5, table=tensor("i32", "7")),
        mistake("the trees have no nodes", RelvmShapeError, changed=0, table=tensor("i64", "0")),
        mistake("the trees have no leaves", RelvmShapeError, changed=4, table=tensor("i32", "1")),
        mistake("targets is 0, expected an integer from 1", RelvmArgumentError, targets=0),
        mistake("steps is -1, expected an integer from 0 to 65536", RelvmArgumentError, steps=-1),
        mistake("offset_bits is 32, expected an integer from 1 to 31", RelvmArgumentError, offset_bits=32),
        mistake("blocks is True, expected an integer", RelvmArgumentError, blocks=True),
        mistake("aggregate is 'mean', expected one of", RelvmArgumentError, aggregate="mean"),
    ]


def compact_tree_mistakes() -> list[Mistake]:
    x, right = tensor("f32", "n, 3"), {"targets": 2, "aggregate": "sum", "steps": 2, "blocks": 1}
    kinds = (("u8", "2"), ("u8", "2"), ("i16", "4"), ("i8", "2"), ("u16", "4"), ("u8", "6"), ("f32", "6"))

    def mistake(message: str, error=RelvmTypeError, x=x, changed: int | None = None, table=None, **changes) -> Mistake:
        args = [table if i == changed else tensor(*each) for i, each in enumerate(kinds)]
        return Mistake("tree_ensemble_compact", (x, *args), message, error, right | changes)

    return [
        mistake("x has dtype i64", x=tensor("i64", "n, 3")),
        mistake("x has rank 1, expected 2", x=tensor("f32", "n")),
        mistake("columns is f32[2], expected rank 1 and one of u8", changed=0, table=tensor("f32", "2")),
        mistake("thresholds is f64[2], expected rank 1 and one of u8", changed=1, table=tensor("f64", "2")),
        mistake("children is u8[4], expected rank 1 and one of i8", changed=2, table=tensor("u8", "4")),
        mistake("roots is i8[2, 1], expected rank 1", changed=3, table=tensor("i8", "2, 1")),
        mistake("starts is i8[4], expected rank 1 and one of u8", changed=4, table=tensor("i8", "4")),
        mistake("values is f64[6], expected rank 1 and one of f32", changed=6, table=tensor("f64", "6")),
        mistake("roots is i8[k], expected a size", RelvmShapeError, changed=3, table=tensor("i8", "k")),
        mistake(
            "columns and thresholds differ in length: 2 and 3", RelvmShapeError, changed=1, table=tensor("u8", "3")
        ),
        mistake("children has 3 numbers, expected two", RelvmShapeError, changed=2, table=tensor("i16", "3")),
        mistake("the trees have no leaves", RelvmShapeError, changed=4, table=tensor("u16", "1")),
        mistake("differ in length: 7 and 6", RelvmShapeError, changed=5, table=tensor("u8", "7")),
        mistake("targets is 0, expected an integer from 1", RelvmArgumentError, targets=0),
        mistake("steps is -1, expected an integer from 0 to 65536", RelvmArgumentError, steps=-1),
        mistake("blocks is True, expected an integer", RelvmArgumentError, blocks=True),
        mistake("aggregate is 'mean', expected one of", RelvmArgumentError, aggregate="mean"),
    ]


def region_mistakes() -> list[Mistake]:
    x, places = tensor("f32", "n, 3, h, w"), tensor("f32", "n, 8, 2")
    regions, images = tensor("f32", "m, 4"), tensor("i64", "m")
    scores, number = tensor("f32", "n, c, k"), tensor("f32")
    boxes, limit = tensor("f32", "n, k, 4"), tensor("i64")
    linear, size = {"mode": "linear"}, {"size": (2, 2)}
    rows = [
        Mistake("grid_sample", (x, places), "mode is 'sharp'", RelvmArgumentError, {"mode": "sharp"}),
        Mistake("grid_sample", (x, places), "padding is 'one'", RelvmArgumentError, linear | {"padding": "one"}),
        Mistake("grid_sample", (x, places), "align_corners is 1", RelvmArgumentError, linear | {"align_corners": 1}),
        Mistake(
            "grid_sample", (tensor("i32", "n, 3, h, w"), places), "x has dtype i32, expected a float", attributes=linear
        ),
        Mistake("grid_sample", (x, tensor("i64", "n, 8, 2")), "grid has dtype i64", attributes=linear),
        Mistake("grid_sample", (tensor("f32", "n, 3"), places), "x has rank 2, expected at least 3", attributes=linear),
        Mistake(
            "grid_sample",
            (tensor("f32", "n, 3, 1, 1, 1, 1, 1"), tensor("f32", "n, 8, 5")),
            "x has rank 7, expected at most 6",
            attributes=linear,
        ),
        Mistake(
            "grid_sample",
            (x, tensor("f32", "n, 8, 3")),
            "numbers of spatial axes and of coordinates differ: 2 and 3",
            RelvmShapeError,
            linear,
        ),
        Mistake("grid_sample", (x, tensor("f32", "m, 8, 2")), "batch sizes", RelvmShapeError, linear),
        Mistake("roi_align", (x, regions, images), "mode is 'min'", RelvmArgumentError, size | {"mode": "min"}),
        Mistake("roi_align", (x, regions, images), "samples is -1", RelvmArgumentError, size | {"samples": -1}),
        Mistake("roi_align", (x, regions, images), "scale is 'a'", RelvmArgumentError, size | {"scale": "a"}),
        Mistake("roi_align", (x, regions, images), "half_pixel is 1", RelvmArgumentError, size | {"half_pixel": 1}),
        Mistake("roi_max_pool", (x, regions, images), "scale is None", RelvmArgumentError, size | {"scale": None}),
        Mistake(
            "non_max_suppression",
            (boxes, scores, limit, number, number),
            "centred is 1",
            RelvmArgumentError,
            {"centred": 1},
        ),
        Mistake(
            "non_max_suppression",
            (boxes, scores, number, number, number),
            "limit is f32[], expected i64 of rank 0",
        ),
        Mistake(
            "non_max_suppression",
            (tensor("f32", "n, k, 5"), scores, limit, number, number),
            "a box must consist of 4 numbers",
            RelvmShapeError,
        ),
        Mistake("lexsort_rows", (x,), "x has rank 4, expected 2"),
        Mistake("row_echelon", (tensor("i32", "3, 3"),), "x has dtype i32"),
        Mistake("row_echelon", (tensor("f32", "3"),), "x has rank 1, expected at least 2"),
        Mistake("row_echelon", (F32,), "the matrices must be square: 3 and 4", RelvmShapeError),
        Mistake("pairwise_coupling", (tensor("i32", "3, 3, 3"),), "x has dtype i32"),
        Mistake("pairwise_coupling", (tensor("f32", "3, 3"),), "x has rank 2, expected 3"),
        Mistake(
            "pairwise_coupling", (tensor("f32", "n, 3, 4"),), "the matrices must be square: 3 and 4", RelvmShapeError
        ),
        Mistake("pairwise_coupling", (tensor("f32", "n, m, m"),), "m classes, expected a known number"),
        Mistake(
            "pairwise_coupling", (tensor("f32", "n, 513, 513"),), "513 classes, expected a known number from 1 to 512"
        ),
        Mistake(
            "bit_cast",
            (F32,),
            "cannot cast f32 to i64; both must have the same number of bits",
            attributes={"to": "i64"},
        ),
    ]
    for op in ("roi_align", "roi_max_pool"):
        rows += [
            Mistake(op, (x, regions, images), "size is (0, 2)", RelvmArgumentError, {"size": (0, 2)}),
            Mistake(op, (x, tensor("f64", "m, 4"), images), "x has dtype f32 and regions has f64", attributes=size),
            Mistake(op, (x, regions, tensor("i32", "m")), "images has dtype i32, expected i64", attributes=size),
            Mistake(
                op, (x, tensor("f32", "m, 5"), images), "a region must consist of 4 numbers", RelvmShapeError, size
            ),
            Mistake(
                op, (x, regions, tensor("i64", "3")), "numbers of regions and images differ", RelvmShapeError, size
            ),
        ]
    return rows


def list_mistakes() -> list[Mistake]:
    i64, items = PrimType(ALL_DTYPES["i64"]), ListType(F32)
    none, numbers = ListType(None), ListType(i64)
    index = "index is f32[3, 4], expected an i64 scalar"
    return [
        Mistake("make_list", (F32, i64), "cannot add an item of type i64 to a list of f32[3, 4]"),
        Mistake("list_length", (F32,), "x is f32[3, 4], expected a list"),
        Mistake("list_item", (F32, i64), "x is f32[3, 4], expected a list"),
        Mistake("list_item", (items, F32), index),
        Mistake("list_item", (none, i64), "x is list[], expected a list with items"),
        Mistake("list_append", (items, i64), "cannot add an item of type i64 to a list of f32[3, 4]"),
        Mistake("list_insert", (items, F32, F32), index),
        Mistake("list_insert", (items, i64, i64), "cannot add an item of type i64 to a list of f32[3, 4]"),
        Mistake("list_erase", (OBJECT, i64), "x is object, expected a list"),
        Mistake("list_concat", (none,), "expected a list with items", attributes={"axis": 0}),
        Mistake("list_concat", (numbers,), "x is list[i64], expected a list of tensors", attributes={"axis": 0}),
        Mistake("list_concat", (items,), "axis is 2, which is outside [-2, 2)", attributes={"axis": 2}),
        Mistake("list_concat", (items,), "axis is 0.5, expected an integer", RelvmArgumentError, {"axis": 0.5}),
        Mistake("list_stack", (ListType(UNTYPED),), "the dtype of the items of x", attributes={"axis": 0}),
        Mistake("list_stack", (items,), "axis is -4, which is outside [-3, 3)", attributes={"axis": -4}),
        Mistake("list_split", (items, i64), "x is list[f32[3, 4]], expected a tensor", attributes={"axis": 0}),
        Mistake("list_split", (F32, F32), "sizes is f32[3, 4], expected a shape", attributes={"axis": 0}),
        Mistake("list_split", (F32, i64), "axis is 2, which is outside [-2, 2)", attributes={"axis": 2}),
        Mistake("list_unstack", (tensor("f32"),), "axis is 0, which is outside [-0, 0)", attributes={"axis": 0}),
    ]
