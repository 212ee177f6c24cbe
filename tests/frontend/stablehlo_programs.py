"""StableHLO programs of a few operations, with arguments and the results that NumPy or the specification gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from relvm.ir.dtypes import dtype_of

_TYPES = {"bool": "i1", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Case:
    """A program with one function, its arguments and its results."""

    text: str
    args: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]


def type_of(array: np.ndarray) -> str:
    """Return the type of an array in the text form of MLIR."""
    name = dtype_of(array.dtype).name
    element = {"bool": "i1"}.get(name, name.replace("u", "ui") if name[0] == "u" else name)
    return f"tensor<{''.join(f'{dim}x' for dim in array.shape)}{element}>"


def case(body: str, args: list[Any], *results: Any) -> Case:
    """Return a program whose function has the arguments %a, %b and so on, and returns %r or %r#0, %r#1 and so on.

    body: the operations.  `T`, `A`, `B` and so on in braces stand for the types of the result and of the arguments.
    """
    arrays, found = tuple(map(np.asarray, args)), tuple(map(np.asarray, results))
    letters = "abcdefgh"[: len(arrays)]
    types = {letter.upper(): type_of(array) for letter, array in zip(letters, arrays, strict=True)}
    outputs = [type_of(array) for array in found]
    names = ["%r"] if len(found) == 1 else [f"%r#{i}" for i in range(len(found))]
    params = ", ".join(f"%{letter}: {types[letter.upper()]}" for letter in letters)
    for letter, type_ in {**types, "T": outputs[0]}.items():
        body = body.replace(f"[[{letter}]]", type_)
    text = (
        f"func.func @main({params}) -> ({', '.join(outputs)}) {{\n{body}\n"
        f"  return {', '.join(names)} : {', '.join(outputs)}\n}}\n"
    )
    return Case(text, arrays, found)


F, S, U, B = np.float32, np.int32, np.uint8, np.bool_
X = F([[1.5, -2.5, 0.0], [4.0, -0.25, 9.0]])
INF, NAN = np.inf, np.nan
_LOWEST = np.iinfo(S).min


def unary(name: str, x: Any, expected: Any) -> Case:
    return case(f"%r = {name} %a : [[T]]" + (" -> [[T]]" if name.startswith("chlo.") else ""), [x], expected)


def binary(name: str, x: Any, y: Any, expected: Any) -> Case:
    return case(f"%r = stablehlo.{name} %a, %b : [[A]]", [x, y], expected)


def reducer(operation: str, element: str) -> str:
    """Return a region with one operation on two elements."""
    return (
        f"({{\n^bb0(%l: tensor<{element}>, %m: tensor<{element}>):\n"
        f"  %s = stablehlo.{operation} %l, %m : tensor<{element}>\n  stablehlo.return %s : tensor<{element}>\n}})"
    )


ELEMENTWISE = {
    "divide integers": binary("divide", S([7, -7, 5, _LOWEST]), S([2, 2, 0, -1]), S([3, -3, -1, _LOWEST])),
    "divide unsigned by zero": binary("divide", U([7, 9]), U([0, 2]), U([255, 4])),
    "remainder of integers": binary("remainder", S([7, -7, 5, _LOWEST]), S([3, 3, 0, -1]), S([1, -1, 5, 0])),
    "add of i1": binary("add", B([0, 0, 1, 1]), B([0, 1, 0, 1]), B([0, 1, 1, 1])),
    "multiply of i1": binary("multiply", B([0, 0, 1, 1]), B([0, 1, 0, 1]), B([0, 0, 0, 1])),
    "xor of i1": binary("xor", B([0, 0, 1, 1]), B([0, 1, 0, 1]), B([0, 1, 1, 0])),
    "maximum propagates NaN": binary("maximum", F([NAN, 1, 2]), F([1, NAN, 3]), F([NAN, NAN, 3])),
    "shift_left by too much": binary("shift_left", U([1, 3, 255]), U([7, 8, 200]), U([128, 0, 0])),
    "shift_right_logical": binary("shift_right_logical", S([-1, -8, 16]), S([28, 32, 2]), S([15, 0, 4])),
    "shift_right_arithmetic": binary("shift_right_arithmetic", S([-9, -9, 16]), S([1, 40, 2]), S([-5, -1, 4])),
    "shift_right_arithmetic of unsigned": binary("shift_right_arithmetic", U([0x90, 0x10]), U([4, 1]), U([0xF9, 8])),
    "power of integers": binary("power", S([2, 2, -1, 1]), S([10, -1, -3, -5]), S([1024, 0, -1, 1])),
    "atan2": binary("atan2", F([1, -1]), F([-1, -1]), np.arctan2(F([1, -1]), F([-1, -1]))),
    "round_nearest_even": unary("stablehlo.round_nearest_even", F([0.5, 1.5, -2.5]), F([0, 2, -2])),
    "round_nearest_afz": unary("stablehlo.round_nearest_afz", F([0.5, 1.5, -2.5]), F([1, 2, -3])),
    "popcnt": unary("stablehlo.popcnt", np.int8([-1, 5, 0]), np.int8([8, 2, 0])),
    "count_leading_zeros": unary("stablehlo.count_leading_zeros", U([0, 1, 128]), U([8, 7, 0])),
    "not": unary("stablehlo.not", S([0, 5]), S([-1, -6])),
    "not of i1": unary("stablehlo.not", B([0, 1]), B([1, 0])),
    "cbrt": unary("stablehlo.cbrt", F([8, -27]), F([2, -3])),
    "expm1": unary("stablehlo.exponential_minus_one", F([0, 1e-5]), np.expm1(F([0, 1e-5]))),
    "lgamma": unary("chlo.lgamma", np.float64([0.5, 5, -1.5]), np.float64([0.5723649429, 3.1780538303, 0.8600470153])),
    "zeta": case(
        "%r = chlo.zeta %a, %b : [[A]], [[B]] -> [[T]]",
        [F([2, 3, 1, 0.5, 2, 3, 2.5]), F([1, 2, 3, 2, -1, -1, -0.5])],
        F([1.6449340668482264, 0.2020569031595942, INF, NAN, INF, NAN, NAN]),
    ),
    "polygamma": case(
        "%r = chlo.polygamma %a, %b : [[A]], [[B]] -> [[T]]",
        [np.float64([0, 1, 2, 3, 1, 2, -1, 0.5]), np.float64([1, 1, 1, 2, 0, 0, 1, 1])],
        np.float64(
            [-0.5772156649015329, 1.6449340668482264, -2.4041138063191886, 0.4939394022668291, INF, NAN, NAN, NAN]
        ),
    ),
    "digamma": unary("chlo.digamma", np.float64([1, 0, -INF, INF]), np.float64([-0.5772156649015329, NAN, NAN, INF])),
    "erf_inv": unary("chlo.erf_inv", F([0, 0.5, -1]), F([0, 0.47693628, -INF])),
    "bessel_i1e": unary("chlo.bessel_i1e", np.float64([0, 1, 10]), np.float64([0, 0.2079104154, 0.1212626814])),
    "rounds bf16 after each operation": case(
        "%s = stablehlo.multiply %a, %a : [[A]]\n%r = stablehlo.subtract %s, %b : [[A]]",
        [np.array([1.0078125], ml_dtypes.bfloat16), np.array([1.015625], ml_dtypes.bfloat16)],
        np.array([0], ml_dtypes.bfloat16),
    ),
    "compare in total order": case(
        "%r = stablehlo.compare LT, %a, %b, TOTALORDER : ([[A]], [[B]]) -> [[T]]",
        [F([-0.0, 1, -INF, NAN]), F([0.0, NAN, -1, INF])],
        B([1, 1, 1, 0]),
    ),
    "compare": case(
        "%r = stablehlo.compare NE, %a, %b, FLOAT : ([[A]], [[B]]) -> [[T]]",
        [F([-0.0, NAN, 1]), F([0.0, NAN, 1])],
        B([0, 1, 0]),
    ),
    "select with a scalar": case("%r = stablehlo.select %a, %b, %c : [[A]], [[B]]", [B(True), X, -X], X),
    "clamp with scalars": case(
        "%r = stablehlo.clamp %a, %b, %c : ([[A]], [[B]], [[C]]) -> [[T]]", [F(-1), X, F(2)], np.clip(X, -1, 2)
    ),
    "convert saturates": case(
        "%r = stablehlo.convert %a : ([[A]]) -> [[T]]",
        [F([1.9, -1.9, 3e9, -3e9, NAN])],
        S([1, -1, 2**31 - 1, -(2**31), 0]),
    ),
    "convert to unsigned bytes": case(
        "%r = stablehlo.convert %a : ([[A]]) -> [[T]]", [F([300, -5, 7.9, NAN])], U([255, 0, 7, 0])
    ),
    "bitcast_convert to parts": case(
        "%r = stablehlo.bitcast_convert %a : ([[A]]) -> [[T]]",
        [np.uint32([0x01020304])],
        U([[4, 3, 2, 1]]),
    ),
    "bitcast_convert of parts": case(
        "%r = stablehlo.bitcast_convert %a : ([[A]]) -> [[T]]", [U([[0, 0, 128, 63]])], F([1.0])
    ),
    "reduce_precision": case(
        "%r = stablehlo.reduce_precision %a, format = e5m2 : [[A]]", [F([1.1, 1e6, 1e-9, NAN])], F([1, INF, 0, NAN])
    ),
    "next_after": case(
        "%r = chlo.next_after %a, %b : [[A]], [[B]] -> [[T]]",
        [np.float16([1, 0, -1]), np.float16([2, -1, -1])],
        np.nextafter(np.float16([1, 0, -1]), np.float16([2, -1, -1])),
    ),
}

SHAPES = {
    "iota": case("%r = stablehlo.iota dim = 1 : [[T]]", [], S([[0, 1, 2], [0, 1, 2]])),
    "broadcast_in_dim": case(
        "%r = stablehlo.broadcast_in_dim %a, dims = [2, 0] : ([[A]]) -> [[T]]",
        [X],
        np.broadcast_to(X.T[:, None, :], (3, 4, 2)),
    ),
    "transpose": case("%r = stablehlo.transpose %a, dims = [1, 0] : ([[A]]) -> [[T]]", [X], X.T),
    "reverse": case("%r = stablehlo.reverse %a, dims = [0, 1] : [[A]]", [X], X[::-1, ::-1]),
    "slice": case("%r = stablehlo.slice %a [0:2, 0:3:2] : ([[A]]) -> [[T]]", [X], X[:, ::2]),
    "pad": case(
        "%r = stablehlo.pad %a, %b, low = [1, -1], high = [0, 2], interior = [1, 0] : ([[A]], [[B]]) -> [[T]]",
        [X, F(7)],
        F([[7] * 4, [-2.5, 0, 7, 7], [7] * 4, [-0.25, 9, 7, 7]]),
    ),
    "concatenate": case(
        "%r = stablehlo.concatenate %a, %b, dim = 0 : ([[A]], [[B]]) -> [[T]]", [X, X[:1]], np.concatenate([X, X[:1]])
    ),
    "dynamic_slice clamps": case(
        "%r = stablehlo.dynamic_slice %a, %b, %c, sizes = [1, 2] : ([[A]], [[B]], [[C]]) -> [[T]]",
        [X, S(5), S(-3)],
        X[1:, :2],
    ),
    "dynamic_update_slice clamps": case(
        "%r = stablehlo.dynamic_update_slice %a, %b, %c, %d : ([[A]], [[B]], [[C]], [[D]]) -> [[T]]",
        [X, F([[8, 8]]), S(0), S(9)],
        F([[1.5, 8, 8], [4, -0.25, 9]]),
    ),
}

_GATHER = (
    '%r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = '
    "[0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : ([[A]], [[B]]) -> [[T]]"
)
_SCATTER = (
    '%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], '
    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {} : "
    "([[A]], [[B]], [[C]]) -> [[T]]"
)
_DOUBLING = """({
^bb0(%l: tensor<f32>, %m: tensor<f32>):
  %t = stablehlo.add %l, %m : tensor<f32>
  %s = stablehlo.add %t, %l : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""

REGIONS = {
    "gather clamps": case(_GATHER, [X, S([[1], [0], [9], [-4]])], X[[1, 0, 1, 0], :2]),
    "scatter": case(
        _SCATTER.format(reducer("add", "f32")),
        [X, S([[0], [0], [5], [-1]]), F([[1, 1, 1], [2, 2, 2], [9, 9, 9], [9, 9, 9]])],
        X + F([[3, 3, 3], [0, 0, 0]]),
    ),
    # XLA ignores the whole window, as JAX requires.  The specification would apply the part inside the operand.
    "scatter ignores windows that are partly outside": case(
        _SCATTER.format(reducer("add", "f32")).replace("dims = [0]", "dims = []", 1).replace("[1], ", "[1, 2], ", 1),
        [X, S([[0], [1], [-1], [-(2**31)], [2**31 - 1]]), F(np.full((5, 2, 3), [[[1]], [[9]], [[9]], [[9]], [[9]]]))],
        X + 1,
    ),
    "scatter with a general update": case(
        _SCATTER.format(_DOUBLING), [X, S([[1]]), F([[1, 1, 1]])], F([[1.5, -2.5, 0], [9, 0.5, 19]])
    ),
    "reduce": case(
        "%r = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : ([[A]], [[B]]) -> [[T]]",
        [X, F(1)],
        X.sum(1) + 1,
    ),
    "reduce of i1": case(
        "%r = stablehlo.reduce(%a init: %b) applies stablehlo.or across dimensions = [0] : ([[A]], [[B]]) -> [[T]]",
        [B([[0, 1], [0, 0]]), B(False)],
        B([0, 1]),
    ),
    "reduce in a wider type": case(
        """%r = stablehlo.reduce(%a init: %b) across dimensions = [0] : ([[A]], [[B]]) -> [[T]]
          reducer(%x: tensor<f64>, %y: tensor<f64>) {
            %s = stablehlo.add %x, %y : tensor<f64>
            stablehlo.return %s : tensor<f64>
          }""",
        [F([1, 2**-30, 2**-30]), F(1)],
        np.float64(2 + 2**-29),
    ),
    "reduce two tensors": case(
        """%r:2 = stablehlo.reduce(%a init: %c), (%b init: %d) across dimensions = [1]
           : ([[A]], [[B]], [[C]], [[D]]) -> (tensor<2xf32>, tensor<2xi32>)
         reducer(%l: tensor<f32>, %m: tensor<f32>) (%n: tensor<i32>, %o: tensor<i32>) {
          %p = stablehlo.compare GE, %l, %m, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %v = stablehlo.select %p, %l, %m : tensor<i1>, tensor<f32>
          %i = stablehlo.select %p, %n, %o : tensor<i1>, tensor<i32>
          stablehlo.return %v, %i : tensor<f32>, tensor<i32>
        }""",
        [X, S([[0, 1, 2], [0, 1, 2]]), F(-INF), S(0)],
        X.max(1),
        S(X.argmax(1)),
    ),
    "reduce_window": case(
        f'%r = "stablehlo.reduce_window"(%a, %b) <{{padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>, '
        f"window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}}> {reducer('add', 'f32')}"
        " : ([[A]], [[B]]) -> [[T]]",
        [X, F(0)],
        F([[5.5, 6.25]]),
    ),
    "reduce_window with dilations": case(
        f'%r = "stablehlo.reduce_window"(%a, %b) <{{base_dilations = array<i64: 2>, window_dilations = array<i64: 3>, '
        f"window_dimensions = array<i64: 2>}}> {reducer('maximum', 'i32')} : ([[A]], [[B]]) -> [[T]]",
        [S([5, 1, 4]), S(-9)],
        S([5, 4]),
    ),
    "reduce_window with a window that is larger than the operand": case(
        f'%r = "stablehlo.reduce_window"(%a, %b) <{{window_dimensions = array<i64: 4>}}> {reducer("maximum", "i32")}'
        " : ([[A]], [[B]]) -> [[T]]",
        [S([5, 1, 4]), S(-9)],
        S([]),
    ),
    "reduce_window of padding only": case(
        f'%r = "stablehlo.reduce_window"(%a, %b) <{{padding = dense<[[-1, 2]]> : tensor<1x2xi64>, '
        f"window_dimensions = array<i64: 1>, window_strides = array<i64: 3>}}> {reducer('add', 'i32')}"
        " : ([[A]], [[B]]) -> [[T]]",
        [S([5]), S(0)],
        S([0]),
    ),
    "select_and_scatter": case(
        """%r = "stablehlo.select_and_scatter"(%a, %b, %c) <{
          window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
        ^bb0(%l: tensor<f32>, %m: tensor<f32>):
          %p = stablehlo.compare GE, %l, %m : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }, {
        ^bb0(%l: tensor<f32>, %m: tensor<f32>):
          %s = stablehlo.add %l, %m : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : ([[A]], [[B]], [[C]]) -> [[T]]""",
        [F([1, 3, 5, 2]), F([10, 20]), F(0)],
        F([0, 10, 20, 0]),
    ),
    "sort two tensors": case(
        """%r:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%l: tensor<i32>, %m: tensor<i32>, %n: tensor<f32>, %o: tensor<f32>):
          %p = stablehlo.compare GT, %l, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }) : ([[A]], [[B]]) -> ([[A]], [[B]])""",
        [S([3, 1, 3, 2, 9, 1, 0]), F([0, 1, 2, 3, 4, 5, 6])],
        S([9, 3, 3, 2, 1, 1, 0]),
        F([4, 0, 2, 3, 1, 5, 6]),
    ),
    "map": case(
        f'%r = "stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> {reducer("multiply", "f32")}'
        " : ([[A]], [[B]]) -> [[T]]",
        [X, X],
        X * X,
    ),
    "top_k": case(
        "%r:2 = chlo.top_k(%a, k = 2) : [[A]] -> (tensor<2x2xf32>, tensor<2x2xi32>)",
        [X],
        F([[1.5, 0], [9, 4]]),
        S([[0, 2], [2, 0]]),
    ),
}

_W = F(np.arange(12).reshape(3, 4))
_IMAGE = F(np.arange(1 * 4 * 4 * 2).reshape(1, 4, 4, 2))

PRODUCTS = {
    "dot_general": case(
        "%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ([[A]], [[B]]) -> [[T]]", [X, _W], X @ _W
    ),
    "dot_general in batches": case(
        "%r = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [0] x [1]"
        " : ([[A]], [[B]]) -> [[T]]",
        [F(np.arange(24).reshape(2, 3, 4)), F(np.arange(30).reshape(3, 2, 5))],
        np.einsum("kbm,bkn->bmn", F(np.arange(24).reshape(2, 3, 4)), F(np.arange(30).reshape(3, 2, 5))),
    ),
    "dot_general of bytes": case(
        "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : ([[A]], [[B]]) -> [[T]]",
        [np.int8([100, 100]), np.int8([100, -3])],
        S(9700),
    ),
    "convolution": case(
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {stride = [2, 1], pad = [[0, 0], [0, 0]], rhs_dilate = [1, 2], reverse = [true, false]} "
        "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : ([[A]], [[B]]) -> [[T]]",
        [_IMAGE, F([[[[1, 2]], [[3, 4]]]])],
        F(
            np.stack(
                [
                    _IMAGE[:, ::2, :2, 0] + 3 * _IMAGE[:, ::2, 2:, 0],
                    2 * _IMAGE[:, ::2, :2, 1] + 4 * _IMAGE[:, ::2, 2:, 1],
                ],
                -1,
            )
        ),
    ),
    "convolution with a dilated input": case(
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], "
        "window = {pad = [[1, -1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : ([[A]], [[B]]) -> [[T]]",
        [F([[[1, 2, 3]]]), F([[[1, 10]]])],
        F([[[10, 1, 20, 2]]]),
    ),
}

CONTROL = {
    "while": case(
        """%r:2 = stablehlo.while(%i = %a, %s = %b) : [[A]], [[B]]
         cond {
          %n = stablehlo.constant dense<5> : tensor<i32>
          %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.add %i, %one : tensor<i32>
          %t = stablehlo.add %s, %s : tensor<2xf32>
          stablehlo.return %j, %t : tensor<i32>, tensor<2xf32>
        }""",
        [S(0), F([1, 2])],
        S(5),
        F([32, 64]),
    ),
    "if": case(
        """%r = "stablehlo.if"(%a) ({
          %s = stablehlo.add %b, %b : [[B]]
          stablehlo.return %s : [[B]]
        }, {
          stablehlo.return %b : [[B]]
        }) : ([[A]]) -> [[T]]""",
        [B(True), X],
        X + X,
    ),
    "case out of range": case(
        """%r = "stablehlo.case"(%a) ({
          stablehlo.return %b : [[B]]
        }, {
          %s = stablehlo.negate %b : [[B]]
          stablehlo.return %s : [[B]]
        }) : ([[A]]) -> [[T]]""",
        [S(-1), X],
        -X,
    ),
}

_QUANTIZED = "tensor<3x!quant.uniform<i8:f32, 0.5:-1>>"
_BY_AXIS = "tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25:1}>>"

QUANTIZED = {
    "quantized add": case(
        f"""%p = stablehlo.uniform_quantize %a : ([[A]]) -> {_QUANTIZED}
        %q = stablehlo.reshape %p : ({_QUANTIZED}) -> tensor<3x1x!quant.uniform<i8:f32, 0.5:-1>>
        %s = stablehlo.add %q, %q : tensor<3x1x!quant.uniform<i8:f32, 0.5:-1>>
        %r = stablehlo.uniform_dequantize %s : (tensor<3x1x!quant.uniform<i8:f32, 0.5:-1>>) -> [[T]]""",
        [F([0.3, -1.25, 60])],
        F([[1], [-2], [64]]),
    ),
    "quantized along an axis": case(
        f"""%q = stablehlo.uniform_quantize %a : ([[A]]) -> {_BY_AXIS}
        %r = stablehlo.uniform_dequantize %q : ({_BY_AXIS}) -> [[T]]""",
        [F([[0.3, 100, -0.8], [0.3, 100, -0.8]])],
        F([[0.5, 63.5, -1], [0.25, 31.5, -0.75]]),
    ),
    "arithmetic of 4 bits": case(
        """%c = stablehlo.convert %a : ([[A]]) -> tensor<2xi4>
        %s = stablehlo.add %c, %c : tensor<2xi4>
        %r = stablehlo.convert %s : (tensor<2xi4>) -> [[T]]""",
        [S([7, -8])],
        S([-2, 0]),
    ),
}


def complex_case(body: str, args: list[Any], result: Any) -> Case:
    """Return a program that computes the complex tensor %r from %x and %y, with the real and imaginary parts outside.

    body: `X`, `Y` and `T` in double brackets stand for the types of %x, %y and %r, and `P` for that of a part of %r.
    """
    arrays, found = [np.asarray(arg) for arg in args], np.asarray(result)
    types = {name: _complex_type(array) for name, array in zip("XY", arrays, strict=False)}
    lines, parts = [], []
    for name, first, array in zip("xy", "ac", arrays, strict=False):
        second, part = chr(ord(first) + 1), type_of(array.real)
        lines.append(f"%{name} = stablehlo.complex %{first}, %{second} : ({part}, {part}) -> {types[name.upper()]}")
        parts += [array.real.copy(), array.imag.copy()]
    for name, type_ in {**types, "T": _complex_type(found), "P": type_of(found.real)}.items():
        body = body.replace(f"[[{name}]]", type_)
    end = [
        f"%{name} = stablehlo.{name} %r : ({_complex_type(found)}) -> {type_of(found.real)}"
        for name in ("real", "imag")
    ]
    text = case("", parts, found.real, found.imag).text
    text = (
        text.replace("%r#0", "%real").replace("%r#1", "%imag").replace("{\n", "\n".join(["{", *lines, body, *end]), 1)
    )
    return Case(text, tuple(parts), (found.real.copy(), found.imag.copy()))


def _complex_type(array: np.ndarray) -> str:
    part = type_of(array.real)
    element = "f64" if "f64" in part else "f32"
    return part.replace(element, f"complex<{element}>")


C = np.complex128
Z = C([[1 + 2j, -3 + 0.5j, 0.25 - 1j], [0.5, -2j, -0.75 - 0.5j]])
W = C([[2 - 1j, 0.5 + 0.5j, 1j], [-1 + 3j, 0.1 - 2j, 4]])


def complex_unary(name: str, expected: Any) -> Case:
    return complex_case(f"%r = {name} %x : [[X]]" + (" -> [[T]]" if name.startswith("chlo.") else ""), [Z], expected)


def complex_reducer(operation: str) -> str:
    return reducer(operation, "complex<f64>")


def fft(kind: str, lengths: list[int], x: Any, expected: Any) -> Case:
    return complex_case(f"%r = stablehlo.fft %x, type = {kind}, length = {lengths} : ([[X]]) -> [[T]]", [x], expected)


def _solve(name: str, matrix: np.ndarray, right_side: np.ndarray, *, left: bool, lower: bool, how: str) -> Case:
    """Return a triangular solve.  The triangle that must not be read contains NaN."""
    used = np.tril(matrix) if lower else np.triu(matrix)
    system = {"NO_TRANSPOSE": used, "TRANSPOSE": used.swapaxes(-1, -2), "ADJOINT": used.conj().swapaxes(-1, -2)}[how]
    found = right_side @ np.linalg.inv(system) if not left else np.linalg.inv(system) @ right_side
    given = np.where(used == 0, np.nan, matrix)
    flags = f"left_side = {left}, lower = {lower}, unit_diagonal = {name == 'unit'}".lower()
    body = (
        '%r = "stablehlo.triangular_solve"(LEFT, RIGHT)'
        f" {{{flags}, transpose_a = #stablehlo<transpose {how}>}} : (LHS, RHS) -> [[T]]"
    )
    if matrix.dtype.kind == "c":
        body = body.replace("LEFT", "%x").replace("RIGHT", "%y").replace("LHS", "[[X]]").replace("RHS", "[[Y]]")
        return complex_case(body, [given, right_side], found)
    body = body.replace("LEFT", "%a").replace("RIGHT", "%b").replace("LHS", "[[A]]").replace("RHS", "[[B]]")
    return case(body, [given, right_side], found)


_MATRICES = np.array([[[2.0, 1, -1], [0.5, 4, 1], [1, -2, 8]], [[1.0, 3, 2], [-1, 2, 0.5], [0.25, 1, -4]]])
_ONES = np.where(np.eye(3) == 1, 1, _MATRICES)
_RIGHT = np.arange(12.0).reshape(2, 3, 2) * 1.1 - 5.3
_POSITIVE = _MATRICES @ _MATRICES.swapaxes(-1, -2) + np.eye(3)

LINEAR = {
    **{
        f"triangular_solve {'left' if left else 'right'} {'lower' if lower else 'upper'} {how}": _solve(
            "", _MATRICES, _RIGHT if left else _RIGHT.swapaxes(-1, -2).copy(), left=left, lower=lower, how=how
        )
        for left in (True, False)
        for lower in (True, False)
        for how in ("NO_TRANSPOSE", "TRANSPOSE")
    },
    "triangular_solve with a diagonal of ones": _solve(
        "unit", _ONES, _RIGHT, left=True, lower=True, how="NO_TRANSPOSE"
    ),
    "triangular_solve of complex numbers": _solve(
        "", _MATRICES * (1 + 0.5j) + 1j, _RIGHT + 2j, left=True, lower=False, how="ADJOINT"
    ),
    "cholesky of the lower triangle": case(
        "%r = stablehlo.cholesky %a, lower = true : [[T]]",
        [np.where(np.tri(3) == 1, _POSITIVE, NAN)],
        np.linalg.cholesky(_POSITIVE),
    ),
    "cholesky of a matrix that is not positive definite": case(
        "%r = stablehlo.cholesky %a, lower = true : [[T]]", [F([[1, 0], [0, 0]])], F([[NAN, 0], [NAN, NAN]])
    ),
    "cholesky of the upper triangle": case(
        "%r = stablehlo.cholesky %a, lower = false : [[T]]",
        [np.where(np.tri(3).T == 1, _POSITIVE, NAN)],
        np.linalg.cholesky(_POSITIVE).swapaxes(-1, -2).copy(),
    ),
}

COMPLEX = {
    "complex exponential": complex_unary("stablehlo.exponential", np.exp(Z)),
    "complex expm1": complex_unary("stablehlo.exponential_minus_one", np.expm1(Z)),
    "complex log": complex_unary("stablehlo.log", np.log(Z)),
    "complex log1p": complex_unary("stablehlo.log_plus_one", np.log1p(Z)),
    "complex sqrt": complex_unary("stablehlo.sqrt", np.sqrt(Z)),
    "complex rsqrt": complex_unary("stablehlo.rsqrt", 1 / np.sqrt(Z)),
    "complex cbrt": complex_unary("stablehlo.cbrt", Z ** (1 / 3)),
    "complex logistic": complex_unary("stablehlo.logistic", 1 / (1 + np.exp(-Z))),
    "complex sign": complex_unary("stablehlo.sign", Z / np.abs(Z)),
    "complex negate": complex_unary("stablehlo.negate", -Z),
    "complex conj": complex_unary("chlo.conj", np.conj(Z)),
    **{
        f"complex {function}": complex_unary(name, getattr(np, function)(Z))
        for name, function in (
            *(("stablehlo.sine", "sin"), ("stablehlo.cosine", "cos"), ("stablehlo.tanh", "tanh")),
            *(("stablehlo.tan", "tan"), ("chlo.sinh", "sinh"), ("chlo.cosh", "cosh")),
            *(("chlo.asin", "arcsin"), ("chlo.acos", "arccos"), ("chlo.atan", "arctan")),
            *(("chlo.asinh", "arcsinh"), ("chlo.acosh", "arccosh"), ("chlo.atanh", "arctanh")),
        )
    },
    **{
        f"complex {name}": complex_case(f"%r = stablehlo.{name} %x, %y : [[X]]", [Z, W], expected)
        for name, expected in (
            *(("add", Z + W), ("subtract", Z - W), ("multiply", Z * W), ("divide", Z / W), ("power", Z**W)),
        )
    },
    "complex numbers of 32 bits": complex_case(
        "%r = stablehlo.multiply %x, %y : [[X]]", [Z.astype("c8"), W.astype("c8")], (Z * W).astype("c8")
    ),
    "complex abs": complex_case(
        """%s = stablehlo.abs %x : ([[X]]) -> [[P]]
        %same = stablehlo.compare EQ, %x, %y : ([[X]], [[Y]]) -> tensor<2x3xi1>
        %e = stablehlo.convert %same : (tensor<2x3xi1>) -> [[P]]
        %r = stablehlo.complex %s, %e : ([[P]], [[P]]) -> [[T]]""",
        [Z, np.where([[1, 0, 1], [0, 1, 0]], Z, W)],
        np.abs(Z) + 1j * np.array([[1, 0, 1], [0, 1, 0]]),
    ),
    "complex transpose, constant and select": complex_case(
        """%same = stablehlo.constant dense<[[(1.0, -2.0), (0.0, 1.0)]]> : tensor<1x2xcomplex<f64>>
        %s = stablehlo.broadcast_in_dim %same, dims = [0, 1] : (tensor<1x2xcomplex<f64>>) -> [[T]]
        %t = stablehlo.transpose %x, dims = [1, 0] : ([[X]]) -> [[T]]
        %p = stablehlo.constant dense<[[true, false], [false, true], [true, true]]> : tensor<3x2xi1>
        %r = stablehlo.select %p, %t, %s : tensor<3x2xi1>, [[T]]""",
        [Z],
        np.where([[True, False], [False, True], [True, True]], Z.T, C([1 - 2j, 1j])),
    ),
    "complex product of an axis": complex_case(
        f"""%i = stablehlo.constant dense<(1.0, 1.0)> : tensor<complex<f64>>
        %r = "stablehlo.reduce"(%x, %i) {complex_reducer("multiply")} {{dimensions = array<i64: 1>}}
          : ([[X]], tensor<complex<f64>>) -> [[T]]""",
        [Z],
        np.prod(Z, axis=1) * (1 + 1j),
    ),
    "complex sums of windows": complex_case(
        f"""%i = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
        %r = "stablehlo.reduce_window"(%x, %i) {complex_reducer("add")} {{window_dimensions = array<i64: 1, 2>}}
          : ([[X]], tensor<complex<f64>>) -> [[T]]""",
        [Z],
        Z[:, 1:] + Z[:, :-1],
    ),
    "complex scatter": complex_case(
        f"""%i = stablehlo.constant dense<[[1], [1], [7]]> : tensor<3x1xi32>
        %r = "stablehlo.scatter"(%x, %i, %y) {complex_reducer("multiply")} {{
          scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}} : ([[X]], tensor<3x1xi32>, [[Y]]) -> [[T]]""",
        [Z[0], W[1]],
        Z[0] * C([1, W[1, 0] * W[1, 1], 1]),
    ),
    "complex sort by the imaginary parts": complex_case(
        """%r = "stablehlo.sort"(%x) ({
        ^bb0(%l: tensor<complex<f64>>, %m: tensor<complex<f64>>):
          %s = stablehlo.imag %l : (tensor<complex<f64>>) -> tensor<f64>
          %t = stablehlo.imag %m : (tensor<complex<f64>>) -> tensor<f64>
          %u = stablehlo.compare LT, %s, %t : (tensor<f64>, tensor<f64>) -> tensor<i1>
          stablehlo.return %u : tensor<i1>
        }) {dimension = 1 : i64} : ([[X]]) -> [[T]]""",
        [Z],
        np.take_along_axis(Z, np.argsort(Z.imag, axis=1, kind="stable"), axis=1),
    ),
    "complex loop": complex_case(
        """%c0 = stablehlo.constant dense<0> : tensor<i32>
        %n = stablehlo.constant dense<3> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %w:2 = stablehlo.while(%i = %c0, %z = %x) : tensor<i32>, [[X]]
        cond {
          %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %j = stablehlo.add %i, %one : tensor<i32>
          %s = stablehlo.multiply %z, %z : [[X]]
          stablehlo.return %j, %s : tensor<i32>, [[X]]
        }
        %r = stablehlo.negate %w#1 : [[X]]""",
        [Z],
        -(Z**8),
    ),
    "complex dot_general": complex_case(
        "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : ([[X]], [[Y]]) -> [[T]]", [Z, W], Z @ W.T
    ),
    "complex convolution": complex_case(
        """%r = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : ([[X]], [[Y]]) -> [[T]]""",
        [Z[:, None], W[:1, None, :2]],
        (Z[:, :-1] * W[0, 0] + Z[:, 1:] * W[0, 1])[:, None],
    ),
    "fft": fft("FFT", [3], Z, np.fft.fft(Z)),
    "fft of two axes": fft("FFT", [2, 3], Z, np.fft.fft2(Z)),
    "inverse fft": fft("IFFT", [3], Z, np.fft.ifft(Z)),
    "fft of real numbers": complex_case(
        """%s = stablehlo.real %x : ([[X]]) -> tensor<2x5xf64>
        %r = stablehlo.fft %s, type = RFFT, length = [2, 5] : (tensor<2x5xf64>) -> [[T]]""",
        [np.arange(10.0).reshape(2, 5) ** 2 + 0j],
        np.fft.rfft2(np.arange(10.0).reshape(2, 5) ** 2),
    ),
    **{
        f"inverse fft to {size} real numbers": complex_case(
            f"""%s = stablehlo.fft %x, type = IRFFT, length = [2, {size}] : ([[X]]) -> [[P]]
            %r = stablehlo.complex %s, %s : ([[P]], [[P]]) -> [[T]]""",
            [Z],
            np.fft.irfft2(Z, (2, size)) * (1 + 1j),
        )
        for size in (4, 5)
    },
}


def _batch_norm(x: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + 0.5) * N[0] + N[1]


N = F([[1, 2, 0.5], [0.5, -1, 3]])  # the scale and the offset of a batch normalization
_MEAN, _VARIANCE = X.mean(0), X.var(0)
_GRADIENT = X[::-1].copy()
_CENTERED = X - _MEAN
_TO_VECTOR = "tensor<3xf32>"
# The gradient of the operand: each term of the specification.
_INNER = 2 * _GRADIENT - _GRADIENT.sum(0) - (_GRADIENT * _CENTERED).sum(0) * _CENTERED / (_VARIANCE + 0.5)

NORMS = {
    "batch_norm_inference": case(
        """%r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {epsilon = 0.5 : f32, feature_index = 1 : i64}
          : ([[A]], [[B]], [[C]], [[D]], [[E]]) -> [[T]]""",
        [X, N[0], N[1], _MEAN, _VARIANCE],
        _batch_norm(X, _MEAN, _VARIANCE),
    ),
    "batch_norm_training": case(
        f"""%r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) {{epsilon = 0.5 : f32, feature_index = 1 : i64}}
          : ([[A]], [[B]], [[C]]) -> ([[T]], {_TO_VECTOR}, {_TO_VECTOR})""",
        [X, N[0], N[1]],
        _batch_norm(X, _MEAN, _VARIANCE),
        _MEAN,
        _VARIANCE,
    ),
    "batch_norm_grad": case(
        f"""%r:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {{epsilon = 0.5 : f32, feature_index = 1 : i64}}
          : ([[A]], [[B]], [[C]], [[D]], [[E]]) -> ([[T]], {_TO_VECTOR}, {_TO_VECTOR})""",
        [X, N[0], _MEAN, _VARIANCE, _GRADIENT],
        N[0] / np.sqrt(_VARIANCE + F(0.5)) / 2 * _INNER,
        (_GRADIENT * _CENTERED).sum(0) / np.sqrt(_VARIANCE + F(0.5)),
        _GRADIENT.sum(0),
    ),
}


def random_bits(algorithm: str, state: list[int], new_state: list[int], bits: Any) -> Case:
    """Return a program that generates bits.   new_state, bits: what XLA computes on CPUs."""
    return case(
        f"""%s, %o = stablehlo.rng_bit_generator %a, algorithm = {algorithm} : ([[A]]) -> ([[A]], {type_of(bits)})
        %r:2 = stablehlo.optimization_barrier %s, %o : [[A]], {type_of(bits)}""",
        [np.uint64(state)],
        np.uint64(new_state),
        bits,
    )


_WORDS = 1 << 32, (3 << 32) + 2  # the words 0, 1, 2 and 3
RANDOM = {
    "THREE_FRY": random_bits(
        "THREE_FRY", [*_WORDS], [_WORDS[0], _WORDS[1] + 2], np.uint32([2689575991, 2205648888, 150810639])
    ),
    "THREE_FRY of 64 bits": random_bits(
        "THREE_FRY",
        [*_WORDS],
        [_WORDS[0], _WORDS[1] + 6],
        np.uint64(
            [
                [9473189843108342839, 6602757811040235535, 14704592877870579330],
                [15703531913138538168, 5864643543302115482, 13180132864991705525],
            ]
        ),
    ),
    "PHILOX": random_bits(
        "PHILOX", [*_WORDS], [_WORDS[0], _WORDS[1] + 1], np.uint32([895509795, 3230209149, 3834998268])
    ),
    "PHILOX of 64 bits by default": random_bits(
        "DEFAULT",
        [*_WORDS],
        [_WORDS[0], _WORDS[1] + 3],
        np.uint64(
            [
                [13873642655090500899, 8621663791288249852, 15587144579316200292],
                [6905954838987356942, 9573426805090750132, 14719086274280709048],
            ]
        ),
    ),
    "PHILOX of 8 bits": random_bits(
        "PHILOX", [*_WORDS], [_WORDS[0], _WORDS[1] + 1], np.uint32([895509795, 3230209149, 3834998268]).astype(np.int8)
    ),
}

# Operations of other dialects that JAX writes.
_SQUARE = np.float64([[3, 1], [4, -2], [0, 5]])
_Q, _R = np.linalg.qr(_SQUARE)
JAX = {
    "decomposition by reflections": case(
        """%q, %t = stablehlo.custom_call @Qr(%a) : ([[A]]) -> ([[A]], tensor<2xf64>)
        %p = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%q, %t) : ([[A]], tensor<2xf64>) -> [[A]]
        %s = stablehlo.slice %q [0:2, 0:2] : ([[A]]) -> tensor<2x2xf64>
        %z = stablehlo.constant dense<[[1.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf64>
        %u = stablehlo.multiply %s, %z : tensor<2x2xf64>
        %r:2 = stablehlo.optimization_barrier %p, %u : [[A]], tensor<2x2xf64>""",
        [_SQUARE],
        _Q,
        _R,
    ),
    "shardings": case('%r = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : [[T]]', [X], X),
    "conversion cast": case('%r = "builtin.unrealized_conversion_cast"(%a) : ([[A]]) -> [[T]]', [X], X),
    "clamp of bools": case(
        "%r = stablehlo.clamp %a, %b, %c : ([[A]], [[B]], [[C]]) -> [[T]]",
        [B([False, True, False]), B([True, False, False]), B([False, True, True])],
        B([False, True, False]),
    ),
}

CASES = LINEAR | COMPLEX | QUANTIZED | ELEMENTWISE | SHAPES | REGIONS | PRODUCTS | CONTROL | NORMS | RANDOM | JAX
