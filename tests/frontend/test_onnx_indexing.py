"""Tests of ONNX operators for slicing, indexing and computed sizes, compared with ONNX Runtime.

The tests cover what ONNX's suite does not: older opsets, symbolic dimensions, sizes known only at run time, and
unsupported nodes."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model
from support.modes import C_WAYS, machines

from relvm.errors import RelvmShapeError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(9)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def test_parts_of_symbolic_axes() -> None:
    model = parse_model(
        """g (float[n, m] x, float[k, 6] even) => (a, b, c, d, e, f, t, u, v)
        <int64[2] sizes = {2, 4}, int64[2] twice = {2, 3}>
        {
          a, b, c = Split<axis = 0, num_outputs = 3>(x)
          d, e, f = Split<axis = -1, num_outputs = 3>(even)
          shape = Shape(x)
          t = Tile(x, twice)
          u = Tile(x, shape)
          v, w = Split<axis = 1>(even, sizes)
        }""",
        18,
    )
    against_onnxruntime(model, numbers(8, 5), numbers(4, 6))
    against_onnxruntime(model, numbers(3, 1), numbers(2, 6))


def test_equal_parts_are_checked_when_the_program_runs() -> None:
    model = parse_model("g (float[n, 2] x) => (y) { a, b = Split(x) y = Sub(a, b) }", 13)
    against_onnxruntime(model, numbers(6, 2))
    for machine in machines(from_onnx(model), C_WAYS).values():
        with pytest.raises(RelvmShapeError, match="Split"):
            machine["main"](numbers(5, 2))


RANGES = parse_model(
    """g (float[n, m] x, int64 k, int32 low, int32 high, int32 step, float first, float last, float apart)
    => (a, b, c, d, e, f)
    <int64 zero = {0}, int64 one = {1}, int64 minus = {-2}, int64[1] nought = {0}>
    {
      shape = Shape(x)
      n = Gather(shape, zero)
      m = Gather(shape, one)
      a = Range(zero, n, one)
      b = Range(m, zero, minus)
      c = Range(zero, k, one)
      d = Range(low, high, step)
      e = Range(first, last, apart)
      i = Unsqueeze(c, nought)
      both = Mul(i, i)
      r = ConstantOfShape<value = int64[1] {7}>(shape)
      long = Shape(c)
      s = ConstantOfShape<value = int64[1] {5}>(long)
      f = Add(s, both)
    }"""
)


def test_ranges_of_known_and_unknown_size() -> None:
    i32, f32 = np.int32, np.float32
    for x, k, bounds, floats in (
        (numbers(3, 5), 4, (2, 11, 3), (0.5, 3.0, 0.25)),
        (numbers(1, 2), 0, (5, -4, -2), (1.0, 0.0, -0.3)),
        (numbers(2, 1), 1, (5, 1, 1), (0.0, 1.0, 5.0)),
    ):
        scalars = [*map(i32, bounds), *map(f32, floats)]
        against_onnxruntime(RANGES, x, np.array(k), *map(np.asarray, scalars))


POSITIONS = parse_model(
    """g (float[b, n, m] x, int64[b, q, 2] at, int64[b, 2] rows, int64[p] many, bool[h] cond, float[1] depth)
    => (a, c, values, found, least, places, d, e, f, g, h, i, j)
    <int64[1] minus = {-1}, float[2] pair = {0.5, 2}, int64 two = {2}, int64[1] one = {1}, int64[1] after = {2},
     int64[1] far = {1000}, int64[1] nought = {0}, int64[1, 1] first = {0}, float half = {0.5}>
    {
      a = GatherND<batch_dims = 1>(x, at)
      c = GatherND<batch_dims = 1>(x, rows)
      shape = Shape(x)
      n = Slice(shape, one, after)
      values, found = TopK<axis = 1>(x, n)
      least, places = TopK<axis = -1, largest = 0>(x, one)
      d = OneHot<axis = 0>(many, n, pair)
      e = OneHot(many, depth, pair)
      mask = Greater(x, half)
      f = NonZero(mask)
      g = Compress<axis = 0>(many, cond)
      h = Compress(x, cond)
      updates = Slice(x, minus, far, nought)
      i = ScatterND<reduction = "add">(x, first, updates)
      j = Trilu<upper = 0>(x, two)
    }""",
    18,
)


def integers(high: int, *shape: int) -> np.ndarray:
    return RANDOM.integers(-high, high, shape)


def test_positions_in_symbolic_shapes() -> None:
    for b, n, m, q, p, h in ((2, 3, 4, 5, 6, 6), (1, 2, 2, 1, 1, 1), (3, 5, 2, 0, 4, 3)):
        x, cond = numbers(b, n, m), RANDOM.random(h) < 0.5
        inputs = x, integers(2, b, q, 2), integers(2, b, 2), integers(3, p), cond, np.array([4], np.float32)
        against_onnxruntime(POSITIONS, *inputs)


@pytest.mark.parametrize("size", ["n", "5"])
@pytest.mark.parametrize(("start", "end", "step"), [(-9, -19, -1), (9, -9, -1), (-1, -9, -2), (2, 0, -1), (-9, 9, 2)])
def test_bounds_beyond_the_axis(size: str, start: int, end: int, step: int) -> None:
    text = f"""g (float[{size}] x) => (y)
    <int64[1] a = {{{start}}}, int64[1] b = {{{end}}}, int64[1] c = {{0}}, int64[1] d = {{{step}}}>
    {{ y = Slice(x, a, b, c, d) }}"""
    against_onnxruntime(parse_model(text), numbers(5))
