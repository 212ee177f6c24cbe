"""Operator calls that type rules reject, with the expected messages.  test_operators.py checks them."""

from __future__ import annotations

from typing import Any

from ops.mistake import F32, UNTYPED, Mistake, shape, tensor
from ops.sample_values import names_of
from ops.special_mistakes import compact_tree_mistakes, list_mistakes, region_mistakes, tree_mistakes

from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.types import OBJECT, PrimType
from relvm.ops.elementwise import (
    arithmetic,
    bitwise,
    comparison,
    float_arithmetic,
    float_function,
    float_predicate,
    integer_function,
    logical,
    numeric_function,
)

_REDUCTIONS = ("sum", "prod", "mean", "max", "min")


def _elementwise() -> list[Mistake]:
    rows = []
    for op in names_of(arithmetic, comparison):
        rows += [
            Mistake(op, (tensor("f32", "3"), tensor("i64", "3")), "x has dtype f32 and y has i64; cast one"),
            Mistake(
                op,
                (tensor("f32", "2, 3"), tensor("f32", "4")),
                "dimension 1 does not broadcast: 3 and 4",
                RelvmShapeError,
            ),
            Mistake(
                op, (tensor("f32", "n"), tensor("f32", "m")), "n and m, which cannot be proven equal", RelvmShapeError
            ),
            Mistake(
                op, (tensor("f32", "n"), tensor("f32", "4")), "n and 4, which cannot be proven equal", RelvmShapeError
            ),
            Mistake(op, (OBJECT, F32), "x is object, expected a tensor"),
            Mistake(op, (F32, UNTYPED), "the dtype of y is unknown; use match_cast"),
        ]
    rows += [
        Mistake(op, (tensor("bool"), tensor("bool")), "x has dtype bool, expected an integer or float")
        for op in names_of(arithmetic)
    ]
    for op in names_of(bitwise):
        rows.append(Mistake(op, (F32, F32), "x has dtype f32, expected an integer dtype"))
        rows.append(Mistake(op, (tensor("i8"), tensor("u8")), "x has dtype i8 and y has u8"))
    for op in names_of(logical):
        rows.append(Mistake(op, (tensor("bool"), tensor("i8")), "y has dtype i8, expected bool"))
    for op in (*names_of(float_function), *names_of(float_predicate)):
        rows.append(Mistake(op, (tensor("i32", "2"),), "x has dtype i32, expected a float dtype"))
    for op in names_of(integer_function):
        rows.append(Mistake(op, (F32,), "x has dtype f32, expected an integer dtype"))
    for op in names_of(float_arithmetic):
        rows.append(Mistake(op, (tensor("i8"), tensor("i8")), "x has dtype i8, expected a float dtype"))
        rows.append(Mistake(op, (F32, tensor("f64")), "x has dtype f32 and y has f64"))
    for op in (*names_of(numeric_function), "clip"):
        rows.append(Mistake(op, (tensor("bool", "2"),), "x has dtype bool, expected an integer or float dtype"))
    wrong = [
        ({"min": 2, "max": 1}, "min 2 exceeds max 1"),
        ({"min": float("nan")}, "min is nan"),
        ({"max": "1"}, "max is '1'"),
    ]
    rows += [Mistake("clip", (F32,), message, RelvmArgumentError, attributes) for attributes, message in wrong]
    for bound in (300, 0.5):
        rows.append(
            Mistake(
                "clip",
                (tensor("i8"),),
                f"max is {bound}, which i8 cannot represent",
                RelvmArgumentError,
                {"max": bound},
            )
        )
    return rows


def _reductions() -> list[Mistake]:
    rows = [
        Mistake(
            "argmax",
            (tensor("f32", "2, 0"),),
            "expected at least 1 element along axis 1 of x, got 0",
            RelvmShapeError,
            {"axis": 1},
        ),
        Mistake("argmin", (F32,), "axis is 2, which is outside [-2, 2)", attributes={"axis": 2}),
        Mistake("argmax", (F32,), "axis is None, expected an integer", RelvmArgumentError, {"axis": None}),
        Mistake("softmax", (F32,), "axis is -3, which is outside [-2, 2)", attributes={"axis": -3}),
        Mistake("softmax", (tensor("i32", "2"),), "x has dtype i32, expected a float dtype"),
        Mistake("softmax", (tensor("f32"),), "axis is -1, which is outside [-0, 0)"),
        Mistake("mean", (tensor("i32", "2"),), "x has dtype i32, expected a float dtype"),
    ]
    for op in _REDUCTIONS:
        rows += [
            Mistake(op, (F32,), "an entry of axes is 2, which is outside [-2, 2)", attributes={"axes": (2,)}),
            Mistake(op, (F32,), "axes (0, -2) contain an axis twice", attributes={"axes": (0, -2)}),
            Mistake(op, (F32,), "axes is 1, expected a tuple of integers", RelvmArgumentError, {"axes": 1}),
            Mistake(op, (F32,), "keepdims is 1, expected a bool", RelvmArgumentError, {"keepdims": 1}),
            Mistake(op, (tensor("bool", "2"),), "x has dtype bool"),
        ]
    return rows


def _attention() -> list[Mistake]:
    def mistake(message: str, error=RelvmTypeError, attributes=None, **types: Any) -> Mistake:
        usual = {"q": F32, "k": F32, "v": F32, "allowed": tensor("bool", ""), "bias": tensor("f32", "")}
        return Mistake("attention", tuple((usual | types).values()), message, error, attributes or {})

    return [
        mistake("v has dtype f64, expected f32", v=tensor("f64", "2, 4")),
        mistake("allowed has dtype f32, expected bool", allowed=F32),
        mistake("k has rank 1, expected at least 2", k=tensor("f32", "4")),
        mistake("absent is 'none', expected one of nan, zero, no_nan", RelvmArgumentError, {"absent": "none"}),
        mistake(
            "a query has n elements, expected a known number in [1, 256]", RelvmShapeError, q=tensor("f32", "2, n")
        ),
        mistake("a value has 257 elements, expected a known", RelvmShapeError, v=tensor("f32", "2, 257")),
        mistake(
            "numbers of elements of a query and of a key differ: 4 and 2", RelvmShapeError, k=tensor("f32", "3, 2")
        ),
        mistake("numbers of elements of a query and of a key differ: 4 and 3", RelvmShapeError, {"transposed": True}),
        mistake("numbers of keys and values differ: 3 and 2", RelvmShapeError, v=tensor("f32", "2, 4")),
        mistake("does not broadcast: 5 and 2", RelvmShapeError, q=tensor("f32", "5, 1, 4"), k=tensor("f32", "2, 3, 4")),
        mistake("bias is f32[5, 3, 3], which cannot be broadcast", RelvmShapeError, bias=tensor("f32", "5, 3, 3")),
    ]


def _linear() -> list[Mistake]:
    image, weights = tensor("f32", "1, 4, 8, 8"), tensor("f32", "6, 4, 3, 3")
    grouped = tensor("f32", "6, 2, 3, 3")
    rows = [
        Mistake("matmul", (F32, tensor("f32", "3, 4")), "columns of a and rows of b differ: 4 and 3", RelvmShapeError),
        Mistake(
            "matmul", (tensor("f32", "2, n"), tensor("f32", "m, 2")), "n and m, which cannot be proven", RelvmShapeError
        ),
        Mistake("matmul", (F32, tensor("f32")), "b has rank 0"),
        Mistake(
            "matmul",
            (tensor("f32", "3"), F32),
            "a has rank 1 and cannot be transposed",
            attributes={"transpose_a": True},
        ),
        Mistake("matmul", (F32, tensor("f64", "4, 3")), "a has dtype f32 and b has f64"),
        Mistake(
            "matmul",
            (tensor("f32", "2, 3, 4"), tensor("f32", "3, 4, 2")),
            "does not broadcast: 2 and 3",
            RelvmShapeError,
        ),
        Mistake(
            "matmul_packed",
            (F32, tensor("f32", "112")),
            "columns is 0, expected an integer of at least 1",
            RelvmArgumentError,
            {"columns": 0},
        ),
        Mistake(
            "matmul_packed",
            (F32, tensor("f32", "112")),
            "b has 112 elements, expected rows of 33 and 15 more",
            RelvmShapeError,
            {"columns": 33},
        ),
        Mistake("matmul_packed", (F32, tensor("f32", "3, 16")), "b has rank 2, expected 1", attributes={"columns": 16}),
        *_attention(),
        Mistake(
            "conv_packed",
            (image, tensor("f32", "160")),
            "x is f32[1, 4, 8, 8], but w has 10 rows for windows (3, 3)",
            RelvmShapeError,
            {"filters": 16, "window": (3, 3)},
        ),
        Mistake(
            "conv_packed",
            (image, tensor("f32", "576")),
            "window is (3, 0), expected sizes of at least 1",
            RelvmArgumentError,
            {"filters": 16, "window": (3, 0)},
        ),
        Mistake(
            "conv_packed",
            (image, tensor("f32", "576")),
            "the window (3, 3) is too large for this operator",
            RelvmArgumentError,
            {"filters": 16, "window": (3, 3), "pads": (1, 1, 1, 1), "dilations": (90, 90)},
        ),
        Mistake(
            "conv_packed",
            (image, tensor("f32", "4, 16")),
            "w has rank 2, expected 1",
            attributes={"filters": 16, "window": (1, 1)},
        ),
        Mistake(
            "conv_winograd",
            (image, tensor("f32", "16, 2, 3")),
            "channels of x and u differ: 4 and 3",
            RelvmShapeError,
            {"pads": (0, 0, 0, 0)},
        ),
        Mistake(
            "conv_winograd",
            (image, tensor("f32", "9, 2, 4")),
            "u is f32[9, 2, 4], expected f32[16, filters, channels] with at most 384 channels",
            attributes={"pads": (0, 0, 0, 0)},
        ),
        Mistake(
            "conv_by_size",
            (image, tensor("f32", "432"), tensor("f32", "16, 2, 3")),
            "channels of x and u differ: 4 and 3",
            RelvmShapeError,
            {"pads": (0, 0, 0, 0)},
        ),
        Mistake(
            "conv_by_size",
            (image, tensor("f32", f"{2 * 35 + 14}"), tensor("f32", "16, 2, 4")),
            "w has 35 rows, expected 9 for each of 4 channels of u",
            RelvmShapeError,
            {"pads": (0, 0, 0, 0)},
        ),
        Mistake(
            "conv_by_size",
            (image, tensor("f32", "2, 4, 3, 2"), tensor("f32", "16, 2, 4")),
            "expected shape (2, 4, 3, 3)",
            RelvmShapeError,
            {"pads": (0, 0, 0, 0)},
        ),
        Mistake(
            "conv", (image, grouped), "channels of x and channels of w times 1 groups differ: 4 and 2", RelvmShapeError
        ),
        Mistake("conv", (image, weights), "strides has 1 item, expected 2", RelvmArgumentError, {"strides": (1,)}),
        Mistake(
            "conv",
            (image, weights),
            "pads are (0, 0, -1, 0), expected values of at least 0",
            RelvmArgumentError,
            {"pads": (0, 0, -1, 0)},
        ),
        Mistake("conv", (image, weights), "groups is 0", RelvmArgumentError, {"groups": 0}),
        Mistake(
            "conv",
            (image, tensor("f32", "7, 2, 3, 3")),
            "7 filters cannot be divided into 2 groups",
            RelvmShapeError,
            {"groups": 2},
        ),
        Mistake("conv", (image, tensor("f32", "6, 4, 9, 3")), "window 9 exceeds padded input size 8", RelvmShapeError),
        Mistake("conv", (image, tensor("f32", "6, 4, 3")), "x has rank 4, but w has rank 3"),
        Mistake("conv", (tensor("f32", "2, 3"), tensor("f32", "2, 3")), "x has rank 2, expected at least 3"),
    ]
    for op in ("max_pool", "average_pool", "max_pool_indices"):
        rows += [
            Mistake(op, (image,), "kernel has 1 item, expected 2", RelvmArgumentError, {"kernel": (2,)}),
            Mistake(op, (image,), "kernel is (0, 2)", RelvmArgumentError, {"kernel": (0, 2)}),
            Mistake(
                op,
                (image,),
                "window 9 exceeds padded input size 8 (spatial axis 1)",
                RelvmShapeError,
                {"kernel": (2, 9)},
            ),
            Mistake(op, (F32,), "x has rank 2", attributes={"kernel": ()}),
        ]
    rows.append(Mistake("average_pool", (tensor("i8", "1, 1, 4"),), "x has dtype i8", attributes={"kernel": (2,)}))
    major = {"kernel": (2, 2), "column_major": 1}
    rows.append(Mistake("max_pool_indices", (image,), "column_major is 1, expected a bool", RelvmArgumentError, major))
    return rows


def _windows_and_margins() -> list[Mistake]:
    six, grid, table = tensor("f32", "6"), tensor("f32", "2, 3, 4, 5"), tensor("i64", "2, 8")
    return [
        Mistake("col2im", (six, shape("2, 3, 6")), "x has rank 1, expected 2 and 2 more for each spatial axis"),
        Mistake("col2im", (grid, shape("2, 3")), "shape has rank 2, expected at least 3"),
        Mistake("col2im", (grid, shape("2, 3, 6, 6")), "x has rank 4, expected 6 for a shape of rank 4"),
        Mistake("col2im", (grid, shape("2, 4, 6")), "dimension 1 of x and of shape differs: 3 and 4", RelvmShapeError),
        Mistake("col2im", (grid, shape("2, 3, 6")), "strides are (0,)", RelvmArgumentError, {"strides": (0,)}),
        Mistake("col2im", (grid, shape("2, 3, 6")), "pads are (-1, -1)", RelvmArgumentError, {"pads": (-1,)}),
        Mistake("pad", (six,), "pads has 1 item", RelvmArgumentError, {"pads": (1,), "mode": "edge"}),
        Mistake("pad", (six,), "pads are (-1, 1)", RelvmArgumentError, {"pads": (-1, 1), "mode": "edge"}),
        Mistake(
            "pad",
            (six,),
            "value is 1, but mode wrap does not use it",
            RelvmArgumentError,
            {"pads": (1, 1), "mode": "wrap", "value": 1},
        ),
        Mistake("pad", (six,), "mode is 'mirror'", RelvmArgumentError, {"pads": (1, 1), "mode": "mirror"}),
        Mistake(
            "pad",
            (tensor("f32", "0"),),
            "mode wrap needs at least 1 element along axis 0 of x, got 0",
            RelvmShapeError,
            {"pads": (1, 0), "mode": "wrap"},
        ),
        Mistake("iota", (six,), "shape is f32[6], expected a shape"),
        Mistake(
            "interpolate",
            (six, table, tensor("f64", "2, 8")),
            "x has dtype f32 and weights has f64",
            attributes={"axis": 0},
        ),
        Mistake(
            "interpolate", (six, table, tensor("f32", "8")), "weights has rank 1, expected 2", attributes={"axis": 0}
        ),
        Mistake(
            "interpolate",
            (six, tensor("i32", "2, 8"), tensor("f32", "2, 8")),
            "indices has dtype i32",
            attributes={"axis": 0},
        ),
        Mistake(
            "interpolate",
            (six, table, tensor("f32", "2, 8")),
            "axis is 1, which is outside [-1, 1)",
            attributes={"axis": 1},
        ),
        Mistake(
            "interpolate",
            (six, table, tensor("f32", "2, 9")),
            "dimension 1 of indices and weights differs: 8 and 9",
            RelvmShapeError,
            {"axis": 0},
        ),
    ]


def _shapes() -> list[Mistake]:
    six, far = tensor("f32", "6"), 2**63 - 1
    return [
        Mistake("identity", (OBJECT,), "x is object, expected a tensor"),
        Mistake("logical_not", (six,), "x has dtype f32, expected bool"),
        Mistake("where", (six, six, six), "cond has dtype f32, expected bool"),
        Mistake("where", (tensor("bool", "6"), six, tensor("i8", "6")), "x has dtype f32 and y has i8"),
        Mistake("cast", (shape("2"),), "x is shape[2], expected a tensor", attributes={"to": "f32"}),
        Mistake("saturating_cast", (tensor("i32", "2"),), "x has dtype i32, expected a float", attributes={"to": "u8"}),
        Mistake(
            "saturating_cast", (F32,), "to is i32, expected an integer dtype of at most 16", attributes={"to": "i32"}
        ),
        Mistake("shape_of", (shape("2"),), "x is shape[2], expected a tensor"),
        Mistake("shape_to_tensor", (six,), "shape is f32[6], expected a shape"),
        Mistake("tensor_to_shape", (six,), "x has dtype f32, expected i64"),
        Mistake("tensor_to_shape", (tensor("i64", "2, 2"),), "x has rank 2, expected 1"),
        Mistake(
            "reshape", (six, shape("4, 2")), "a tensor of shape [6] has 6 elements, but [4, 2] has 8", RelvmShapeError
        ),
        Mistake("reshape", (six, shape("-1, 2")), "the negative dimension -1", RelvmShapeError),
        Mistake("expand_dims", (six,), "is 2, which is outside [-2, 2)", attributes={"axes": (2,)}),
        Mistake("expand_dims", (six,), "contain an axis twice", attributes={"axes": (0, -3)}),
        Mistake("squeeze", (six,), "size of axis 0 must be 1: 6 and 1", RelvmShapeError, {"axes": (0,)}),
        Mistake(
            "squeeze", (tensor("f32", "n"),), "n and 1, which cannot be proven equal", RelvmShapeError, {"axes": (0,)}
        ),
        Mistake("squeeze", (tensor("f32", "n"),), "every dimension must be known", RelvmShapeError),
        Mistake("broadcast_to", (six, shape("1")), "a dimension 6 of x cannot be broadcast to 1", RelvmShapeError),
        Mistake("broadcast_to", (six, shape("n")), "6 and n, which cannot be proven equal", RelvmShapeError),
        Mistake("broadcast_to", (F32, shape("4")), "x has rank 2, but the shape has only 1", RelvmShapeError),
        Mistake("expand", (six, shape("3")), "dimension 0 of x is 6, expected 1 or 3", RelvmShapeError),
        Mistake("expand", (F32, shape("4")), "x has rank 2, but the shape has only 1", RelvmShapeError),
        Mistake("transpose", (F32,), "perm has 1 item, expected 2", RelvmArgumentError, {"perm": (0,)}),
        Mistake("transpose", (F32,), "contain an axis twice", attributes={"perm": (1, -1)}),
        Mistake("concat", (), "expected at least one tensor", RelvmArgumentError, {"axis": 0}),
        Mistake("concat", (six, tensor("i8", "6")), "xs[0] has dtype f32 and xs[1] has i8", attributes={"axis": 0}),
        Mistake("concat", (six, F32), "the tensors have ranks [1, 2]", attributes={"axis": 0}),
        Mistake("concat", (F32, tensor("f32", "3, 5")), "dimension 1 of xs[0] and xs[1]", RelvmShapeError, {"axis": 0}),
        Mistake("slice", (six,), "end has 0 items, expected 1", RelvmArgumentError, {"begin": (0,), "end": ()}),
        Mistake(
            "slice",
            (six,),
            "steps are (0,); a step must not be 0",
            RelvmArgumentError,
            {"begin": (0,), "end": (far,), "steps": (0,)},
        ),
        Mistake("slice", (six,), "outside [-1, 1)", attributes={"begin": (0,), "end": (1,), "axes": (1,)}),
        Mistake(
            "slice", (six,), "begin is 0, expected a tuple of integers", RelvmArgumentError, {"begin": 0, "end": (1,)}
        ),
        Mistake("gather", (six, six), "indices has dtype f32, expected i32 or i64"),
        Mistake("gather", (six, tensor("i64")), "from_end is 1, expected a bool", RelvmArgumentError, {"from_end": 1}),
        Mistake("gather", (six, tensor("i64")), "axis is 1, which is outside [-1, 1)", attributes={"axis": 1}),
        Mistake("gather", (tensor("f32"), tensor("i64")), "axis is 0, which is outside [-0, 0)"),
        Mistake("pad", (F32,), "pads has 2 items, expected 4", RelvmArgumentError, {"pads": (1, 1)}),
        Mistake("pad", (six,), "dimension 0 of the result would be -1", RelvmShapeError, {"pads": (-4, -3)}),
        Mistake(
            "pad",
            (tensor("i8", "2"),),
            "value is 0.5, which i8 cannot represent",
            RelvmArgumentError,
            {"pads": (1, 1), "value": 0.5},
        ),
    ]


def _positions() -> list[Mistake]:
    places, wide, updates = tensor("i64", "3, 2"), tensor("i64", "4, 4"), tensor("f32", "3, 2")
    rows = []
    for kind in ("gather", "scatter"):
        more = () if kind == "gather" else (updates,)
        by_axis = {"axis": 1}
        rows += [
            Mistake(f"{kind}_elements", (F32, F32, *more), "indices has dtype f32", attributes=by_axis),
            Mistake(
                f"{kind}_elements",
                (F32, tensor("i64", "3"), *more),
                "x has rank 2, but indices has rank 1",
                attributes=by_axis,
            ),
            Mistake(
                f"{kind}_elements", (F32, places, *more), "axis is 2, which is outside [-2, 2)", attributes={"axis": 2}
            ),
            Mistake(
                f"{kind}_elements",
                (F32, wide, *more),
                "dimension 0 of indices is 4, which exceeds that of x, 3",
                RelvmShapeError,
                by_axis,
            ),
            Mistake(f"{kind}_nd", (F32, places, *more), "depth differ: 2 and 1", RelvmShapeError, {"depth": 1}),
            Mistake(f"{kind}_nd", (F32, tensor("i64"), *more), "indices has rank 0", attributes={"depth": 0}),
            Mistake(f"{kind}_nd", (F32, places, *more), "depth is -1", attributes={"depth": -1}),
            Mistake(f"{kind}_nd", (tensor("f32", "3"), places, *more), "x has rank 1", attributes={"depth": 2}),
        ]
    for op, attributes in (("scatter_elements", {"axis": 0}), ("scatter_nd", {"depth": 2})):
        sum_of = {**attributes, "reduction": "sum"}
        flags, added = tensor("bool", "3, 2"), {**attributes, "reduction": "add"}
        rows += [
            Mistake(op, (F32, places, updates), "reduction is 'sum'", RelvmArgumentError, sum_of),
            Mistake(op, (F32, places, flags), "x has dtype f32 and updates has bool", attributes=attributes),
            Mistake(op, (flags, places, flags), "x has dtype bool", attributes=added),
            Mistake(op, (F32, places, tensor("f32")), "updates has rank 0", attributes=attributes),
        ]
    return [
        *rows,
        Mistake("scatter_elements", (F32, places, tensor("f32", "3, 3")), "2 and 3", RelvmShapeError, {"axis": 0}),
        Mistake("scatter_nd", (F32, places, tensor("f32", "4")), "3 and 4", RelvmShapeError, {"depth": 2}),
        *_cumulations(),
        Mistake("argtopk", (F32, shape("3")), "x has rank 2, but shape has rank 1", attributes={"axis": 1}),
        Mistake("argtopk", (F32, shape("3, 5")), "5 positions exceed the axis size 4", RelvmShapeError, {"axis": 1}),
        Mistake("argtopk", (F32, shape("2, 4")), "3 and 2", RelvmShapeError, {"axis": 1}),
        Mistake("argtopk", (F32, shape("3, 4")), "axis is 2, which is outside", attributes={"axis": 2}),
        Mistake(
            "argtopk",
            (F32, shape("3, 4")),
            "largest is 1, expected a bool",
            RelvmArgumentError,
            {"axis": 1, "largest": 1},
        ),
        Mistake("nonzero", (F32, shape("3")), "cond has dtype f32, expected bool"),
        Mistake("nonzero", (tensor("bool", "3"), shape("3, 1")), "shape has rank 2, expected 1"),
    ]


def _cumulations() -> list[Mistake]:
    rows = []
    for op in ("cumsum", "cumprod"):
        rows += [
            Mistake(op, (F32,), "axis is 2, which is outside [-2, 2)", attributes={"axis": 2}),
            Mistake(op, (tensor("bool", "3"),), "x has dtype bool", attributes={"axis": 0}),
            Mistake(op, (F32,), "reverse is 1, expected a bool", RelvmArgumentError, {"axis": 0, "reverse": 1}),
        ]
    return rows


def _scalars() -> list[Mistake]:
    i64, f64, bool_ = (PrimType(ALL_DTYPES[name]) for name in ("i64", "f64", "bool"))
    return [
        Mistake("to_scalar", (tensor("f32", "3"),), "x has rank 1, expected 0"),
        Mistake("to_scalar", (i64,), "x is i64, expected a tensor"),
        Mistake("element_at", (i64, i64), "x is i64, expected a tensor"),
        Mistake("element_at", (tensor("f32", "3"), f64), "position is f64, expected a scalar of type i64"),
        Mistake("to_tensor", (tensor("f32"),), "value is f32[], expected a scalar", attributes={"dtype": "f32"}),
        Mistake(
            "to_tensor", (f64,), "dtype i32 is incompatible with a scalar of type f64", attributes={"dtype": "i32"}
        ),
        Mistake(
            "to_tensor", (bool_,), "dtype i64 is incompatible with a scalar of type bool", attributes={"dtype": "i64"}
        ),
        Mistake(
            "to_tensor", (i64,), "dtype bool is incompatible with a scalar of type i64", attributes={"dtype": "bool"}
        ),
    ]


def _integer() -> list[Mistake]:
    a, b, zero = tensor("u8", "3, 5"), tensor("i8", "5, 4"), tensor("u8")
    return [
        *_packed_bytes(),
        *_blocks(),
        *_bytes_convolved(),
        *_packed_windows(),
        Mistake("dynamic_quantize", (a,), "x has dtype u8, expected f32"),
        Mistake("matmul_integer", (F32, b, zero, tensor("i8")), "a has dtype f32, expected i8 or u8"),
        Mistake("matmul_integer", (a, b, zero, zero), "b_zero has dtype u8, expected the dtype of b, i8"),
        Mistake("matmul_integer", (tensor("u8", "5"), b, zero, tensor("i8")), "a has rank 1, expected at least 2"),
        Mistake("matmul_integer", (a, b, tensor("u8", "3"), tensor("i8")), "a_zero has rank 1, expected 0"),
        Mistake("matmul_integer", (a, a, zero, zero), "columns of a and rows of b differ: 5 and 3", RelvmShapeError),
        Mistake("matmul_integer", (a, b, a, tensor("i8")), "a_zero has size 5 along axis -1", RelvmShapeError),
        Mistake(
            "matmul_integer", (a, b, zero, tensor("i8", "1, 3")), "axis -1 of b_zero and b differs", RelvmShapeError
        ),
    ]


def _bytes_convolved() -> list[Mistake]:
    x, w, zero = tensor("u8", "1, 4, 5, 5"), tensor("i8", "2, 4, 3, 3"), tensor("u8")
    return [
        Mistake("conv_integer", (F32, w, zero), "x has dtype f32, expected i8 or u8"),
        Mistake("conv_integer", (x, x, zero), "w is u8[1, 4, 5, 5], expected i8 with known dimensions"),
        Mistake("conv_integer", (x, tensor("i8", "n, 4, 3, 3"), zero), "expected i8 with known dimensions"),
        Mistake("conv_integer", (x, w, tensor("i8")), "x_zero is i8[], expected u8 of rank 0"),
        Mistake(
            "conv_integer",
            (x, tensor("i8", "2, 3, 3, 3"), zero),
            "channels of x and channels of w times 1 groups differ",
            RelvmShapeError,
        ),
    ]


def _packed_windows() -> list[Mistake]:
    name, zero, sums = "conv_integer_packed", tensor("u8"), tensor("i32", "2")
    x, w = tensor("u8", "1, 6, 5, 5"), tensor("i8", "2, 3, 3, 8")
    return [
        Mistake(name, (F32, w, sums, zero), "x has dtype f32, expected i8 or u8"),
        Mistake(name, (x, w, sums, tensor("i8")), "x_zero is i8[], expected u8 of rank 0"),
        Mistake(name, (x, x, sums, zero), "w is u8[1, 6, 5, 5], expected i8 with known dimensions"),
        Mistake(name, (x, tensor("i8", "n, 3, 3, 8"), sums, zero), "expected i8 with known dimensions"),
        Mistake(name, (x, w, tensor("i8", "2"), zero), "sums is i8[2], expected i32 with known dimensions"),
        Mistake(name, (x, tensor("i8", "2, 8"), sums, zero), "w has rank 2, expected at least 3"),
        Mistake(name, (x, tensor("i8", "2, 3, 3, 12"), sums, zero), "expected 12 channels per group", RelvmShapeError),
        Mistake(name, (tensor("u8", "1, c, 5, 5"), w, sums, zero), "expected 8 channels per group", RelvmShapeError),
        Mistake(name, (x, w, tensor("i32", "3"), zero), "expected one element for each of 2 filters", RelvmShapeError),
        Mistake(name, (x, w, sums, zero), "groups is 0", RelvmArgumentError, {"groups": 0}),
    ]


def _packed_bytes() -> list[Mistake]:
    a, b, sums, none = tensor("u8", "3, 5"), tensor("i32", "23"), tensor("i32", "7"), tensor("i32", "0")
    name, zero, seven = "matmul_integer_packed", tensor("u8"), {"columns": 7}
    return [
        Mistake(name, (F32, b, sums, zero, none), "a has dtype f32, expected i8 or u8", attributes=seven),
        Mistake(name, (zero, b, sums, zero, none), "a has rank 0, expected at least 1", attributes=seven),
        Mistake(name, (a, b, sums, sums, none), "a_zero is i32[7], expected u8 of rank 0", attributes=seven),
        Mistake(name, (a, a, sums, zero, none), "b is u8[3, 5], expected i32 of rank 1", attributes=seven),
        Mistake(name, (a, b, none, zero, none), "sums has 0 elements and b_zero has 0", RelvmShapeError, seven),
        Mistake(name, (a, b, sums, zero, b), "b_zero has 23, expected 7 and 0 or 7", RelvmShapeError, seven),
        Mistake(name, (a, b, sums, zero, none), "columns is 0", RelvmArgumentError, {"columns": 0}),
        Mistake(name, (a, b, sums, zero, none), "rows of 16 and 0 more", RelvmShapeError, {"columns": 16}),
        Mistake(
            name,
            (tensor("u8", "9"), b, sums, zero, none),
            "a has 9 columns, but b is packed for 5 to 8 rows",
            RelvmShapeError,
            seven,
        ),
    ]


def _blocks() -> list[Mistake]:
    a, b, scales = tensor("f32", "3, 32"), tensor("i32", "1, 4, 64"), tensor("f32", "1, 2, 64")
    words, given = tensor("i32", "3, 12"), {"columns": 5, "bits": 4, "block": 16}
    quant, int8 = "matmul_blockwise_quant", "matmul_blockwise_int8"
    mistakes = [
        Mistake(quant, (b, b, scales, scales), "a is i32[1, 4, 64], expected f32", attributes=given),
        Mistake(
            quant,
            (tensor("f32", "9"), b, scales, scales),
            "a has 9 columns, but b is packed for 17 to 32 rows",
            RelvmShapeError,
            given,
        ),
        Mistake(int8, (a, b, scales, scales), "a is f32[3, 32], expected i32", attributes=given),
        Mistake(
            int8,
            (tensor("i32", "3, 9"), b, scales, scales),
            "a has rows of 9 words, expected 12 for 2 blocks of 16 elements",
            RelvmShapeError,
            given,
        ),
        Mistake("quantize_blocks", (b,), "x is i32[1, 4, 64], expected f32", attributes={"block": 16}),
        Mistake("quantize_blocks", (a,), "block is 6, expected a positive", RelvmArgumentError, {"block": 6}),
        Mistake("quantize_blocks", (tensor("f32", "n"),), "a known last dimension", RelvmShapeError, {"block": 4}),
    ]
    for name, left in ((quant, a), (int8, words)):
        mistakes += [
            Mistake(name, (left, a, scales, scales), "b is f32[3, 32], expected i32 of rank 3", attributes=given),
            Mistake(name, (left, b, b, scales), "scales is i32[1, 4, 64], expected f32 of rank 3", attributes=given),
            Mistake(
                name,
                (left, b, scales, tensor("f32", "1, 1, 64")),
                "expected shape [1, 2, 64] (panels, blocks, columns)",
                RelvmShapeError,
                given,
            ),
            Mistake(name, (left, b, scales, scales), "columns is 65", RelvmArgumentError, given | {"columns": 65}),
            Mistake(
                name,
                (left, tensor("i32", "4, 4, 16"), scales, scales),
                "b has panels of 16 columns, expected 64",
                RelvmShapeError,
                given,
            ),
            Mistake(
                name,
                (left, tensor("i32", "1, 5, 64"), scales, scales),
                "b has 5 words in a column, expected a multiple of 2",
                RelvmShapeError,
                given,
            ),
            Mistake(name, (left, b, scales, scales), "bits is 3", RelvmArgumentError, given | {"bits": 3}),
            Mistake(
                name,
                (left, b, scales, scales),
                "block is 12, but a block of 4-bit elements must be a positive multiple of 8",
                RelvmArgumentError,
                given | {"block": 12},
            ),
        ]
    return mistakes


def _recurrent() -> list[Mistake]:
    x, r, h, none = tensor("f32", "5, n, 3"), tensor("f32", "1, 3, 3"), tensor("f32", "1, n, 3"), tensor("i32", "0")
    rows = [
        Mistake("rnn", (x, r, h, tensor("i64", "n")), "lengths has dtype i64, expected i32"),
        Mistake("rnn", (x, r, h, tensor("i32", "4")), "dimension 0 of lengths", RelvmShapeError),
        Mistake("rnn", (x, tensor("f64", "1, 3, 3"), h, none), "x has dtype f32 and r has f64"),
        Mistake("rnn", (x, tensor("f32", "3, 3"), h, none), "r has rank 2, expected 3"),
        Mistake("rnn", (x, r, tensor("f32", "1, n, m"), none), "h has m units", RelvmShapeError),
        Mistake("rnn", (x, r, tensor("f32", "1, n, 4"), none), "dimension 2 of x", RelvmShapeError),
    ]
    wrong = [
        ({"direction": "both"}, "direction is 'both', expected one of forward, reverse, bidirectional"),
        ({"clip": -1.0}, "clip is -1.0"),
        ({"activations": ("tanh", "tanh")}, "expected 1 name"),
        ({"activations": ("sine",)}, "unknown activation 'sine'"),
        ({"alpha": (1.0, 2.0)}, "alpha is (1.0, 2.0), expected 1 number"),
        ({"beta": 1.0}, "beta is 1.0, expected 1 number"),
    ]
    rows += [Mistake("rnn", (x, r, h, none), message, RelvmArgumentError, attributes) for attributes, message in wrong]
    gru = (tensor("f32", "5, n, 9"), tensor("f32", "1, 3, 9"), tensor("f32", "1, 3"), h, none)
    lstm = (tensor("f32", "5, n, 12"), tensor("f32", "1, 3, 12"), tensor("f32", "1, 0"), h, h, none)
    lengths = tensor("i32", "4")
    rows += [
        Mistake("reverse_sequence", (tensor("f32", "4"), lengths), "x has rank 1, expected at least 2"),
        Mistake("reverse_sequence", (F32, tensor("f32", "4")), "lengths has dtype f32, expected an integer dtype"),
        Mistake("reverse_sequence", (F32, F32), "lengths has dtype f32"),
        Mistake("reverse_sequence", (F32, lengths), "time_axis is 2", RelvmArgumentError, {"time_axis": 2}),
        Mistake("reverse_sequence", (F32, lengths), "the number of lengths differ", RelvmShapeError, {"time_axis": 1}),
    ]
    return [
        *rows,
        Mistake("gru", gru, "reset_after is 1, expected a bool", RelvmArgumentError, {"reset_after": 1}),
        Mistake("gru", (*gru[:2], h, *gru[3:]), "b has rank 3, expected 2"),
        Mistake("lstm", lstm, "coupled is 1, expected a bool", RelvmArgumentError, {"coupled": 1}),
        Mistake("lstm", (*lstm[:2], tensor("f32", "1, 3"), *lstm[3:]), "dimension 1 of p", RelvmShapeError),
    ]


MISTAKES: tuple[Mistake, ...] = (
    *tree_mistakes(),
    *compact_tree_mistakes(),
    *region_mistakes(),
    *_elementwise(),
    *_windows_and_margins(),
    *_integer(),
    *_recurrent(),
    *_reductions(),
    *_linear(),
    *_shapes(),
    *_positions(),
    *_scalars(),
    *list_mistakes(),
)
