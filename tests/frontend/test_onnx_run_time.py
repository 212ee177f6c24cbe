"""Tests of ONNX graphs whose axes, shapes and counts are inputs, and are known only at run time."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model
from support.modes import WAYS, machines, plain

from relvm.errors import RelvmMemoryError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

X = np.random.default_rng(5).standard_normal((3, 2, 4)).astype(np.float32)


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


# For each case, a graph and the values of the inputs after x.
GRAPHS: dict[str, tuple[str, tuple[np.ndarray, ...]]] = {
    "two axes": (
        "g (float[n, 2, m] x, int64[2] axes) => (float[p] y) { y = ReduceMean<keepdims = 0>(x, axes) }",
        (whole(-1, 0),),
    ),
    "axes of unknown number": (
        "g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y) { y = ReduceLogSumExp(x, axes) }",
        (whole(1, 2),),
    ),
    "no axes, which are all": (
        "g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y) { y = ReduceMax(x, axes) }",
        (whole(),),
    ),
    "no axes, which are none": (
        """g (float[n, 2, m] x, int64[k] axes) => (float[p, q, r] y)
           { y = ReduceL2<noop_with_empty_axes = 1>(x, axes) }""",
        (whole(),),
    ),
    "the mean of integers": (
        """g (float[n, 2, m] x, int64[1] axes) => (int32[p, q] y)
           { i = Cast<to = 6>(x)  y = ReduceMean<keepdims = 0>(i, axes) }""",
        (whole(-2),),
    ),
    "the mean of all integers": (
        """g (float[n, 2, m] x) => (int32 y, int64[a] z)
           { i = Cast<to = 6>(x)  y = ReduceMean<keepdims = 0>(i)
             first = Constant<value_int = -9223372036854775807>()  last = Constant<value_int = 9223372036854775807>()
             size = Size(x)  step = Constant<value_int = 4611686018427387904>()  zero = Sub(size, size)
             from = Add(first, zero)  z = Range(from, last, step) }""",
        (),
    ),
    "a shape with 0 and -1": (
        "g (float[n, 2, m] x, int64[3] shape) => (float[p, q, r] y) { y = Reshape(x, shape) }",
        (whole(0, -1, 1),),
    ),
    "a shape of no sizes": (
        """g (float[n, 2, m] x, int64[0] shape) => (float y)
           { total = ReduceSum(x)  y = Reshape(total, shape) }""",
        (whole(),),
    ),
    "an expansion of what has another size": (
        """g (float[n, 2, m] x, int64[4] shape) => (float[p, q, r, s] y)
           <int64[1] last = {2}> { mean = ReduceMean(x, last)  y = Expand(mean, shape) }""",
        (whole(2, 3, 1, 5),),
    ),
    "an expansion by fewer axes": (
        "g (float[n, 2, m] x, int64[1] shape) => (float[n, 2, m] y) { y = Expand(x, shape) }",
        (whole(1),),
    ),
    "new axes": (
        "g (float[n, 2, m] x, int64[2] axes) => (float[p, q, r, s, t] y) { y = Unsqueeze(x, axes) }",
        (whole(-1, 1),),
    ),
    "new axes of a number": (
        """g (float[n, 2, m] x, int64[2] axes) => (float[p, q] y)
           { total = ReduceSum<keepdims = 0>(x)  y = Unsqueeze(total, axes) }""",
        (whole(1, -2),),
    ),
    "axes that go": (
        """g (float[n, 2, m] x, int64[2] axes) => (float[p] y)
           <int64[2] ends = {0, -1}> { mean = ReduceMean(x, ends)  y = Squeeze(mean, axes) }""",
        (whole(-3, 2),),
    ),
    "parts": (
        "g (float[n, 2, m] x, int64[k] sizes) => (float[a, b, c] y, float[d, e, f] z) { y, z = Split(x, sizes) }",
        (whole(3, 0),),
    ),
    "repetitions": (
        "g (float[n, 2, m] x, int64[k] repeats) => (float[p, q, r] y) { y = Tile(x, repeats) }",
        (whole(2, 1, 3),),
    ),
    "a slice whose axes and steps are inputs": (
        """g (float[n, 2, m] x, int64[2] starts, int64[2] ends, int64[2] axes, int64[2] steps) => (float[p, q, r] y)
           { y = Slice(x, starts, ends, axes, steps) }""",
        (whole(-1, 0), whole(-(2**63), 2**63 - 1), whole(-1, 0), whole(-2, 2**63 - 1)),
    ),
    "a slice whose steps are inputs": (
        """g (float[n, 2, m] x, int64[1] steps) => (float[p, q, r] y)
           <int64[1] starts = {2}, int64[1] ends = {-9}, int64[1] axes = {0}>
           { y = Slice(x, starts, ends, axes, steps) }""",
        (whole(-1),),
    ),
    **{
        f"a margin by {mode}": (
            f"""g (float[n, 2, m] x, int64[4] pads, int64[2] axes) => (float[p, q, r] y)
                {{ y = Pad<mode = "{mode}">(x, pads, , axes) }}""",
            (whole(1, 0, 2, 1), whole(-1, 0)),
        )
        for mode in ("constant", "edge", "reflect")
    },
    "a margin of a value, which takes away": (
        "g (float[n, 2, m] x, int64[k] pads, float value) => (float[p, q, r] y) { y = Pad(x, pads, value) }",
        (whole(-1, 0, 2, 1, -1, -3), np.float32(1.5)),
    ),
    "a margin of symbolic size, which may take away": (
        """g (float[n, 2, m] x) => (float[n, 2, p] y)
           <int64[5] zeros = {0, 0, 0, 0, 0}, int64[1] five = {5}>
           {
             size = Shape<start = 2>(x)
             rest = Sub(five, size)
             pads = Concat<axis = 0>(zeros, rest)
             y = Pad(x, pads)
           }""",
        (),
    ),
    "a Dropout that keeps all": (
        """g (float[n, 2, m] x, float ratio, bool trains) => (float[n, 2, m] y, bool[n, 2, m] mask)
           { y, mask = Dropout(x, ratio, trains) }""",
        (np.float32(0.5), np.bool_(False)),
    ),
    "branches with sizes of their own": (
        """g (float[n, 2, m] x, bool first, int64[2] shape) => (float[p, q] y) {
             y = If (first) <
               then_branch = g1 () => (float[a, b] t) { t = Reshape(x, shape) },
               else_branch = g2 () => (float[c, d] e) { e = Flatten(x) }
             >
           }""",
        (np.bool_(True), whole(4, -1)),
    ),
    "an axis of sums": (
        "g (float[n, 2, m] x, int64[1] axis) => (float[n, 2, m] y) { y = CumSum<reverse = 1>(x, axis) }",
        (whole(-2),),
    ),
}


def resize(inputs: str, given: str, attributes: str) -> str:
    return f"g (float[n, 2, m] x, {inputs}) => (float[p, q, r] y) {{ y = Resize<{attributes}>(x, {given}) }}"


GRAPHS |= {
    **{
        f"a Resize by scales, {mode}": (
            resize("float[3] scales", ", scales", f'mode = "{mode}"'),
            (np.float32([1, 1.5, 0.6]),),
        )
        for mode in ("nearest", "linear")
    },
    "a Resize by sizes": (resize("int64[3] sizes", ", , sizes", 'mode = "linear"'), (whole(3, 2, 7),)),
    "a Resize whose weights are stretched": (
        resize("int64[1] sizes", ", , sizes", 'mode = "linear", antialias = 1, axes = [2]'),
        (whole(2),),
    ),
    "a Resize by scales whose weights are stretched": (
        resize("float[1] scales", ", scales", 'mode = "linear", antialias = 1, axes = [-1]'),
        (np.float32([0.6]),),
    ),
    "a Resize that keeps the ratio": (
        resize("int64[2] sizes", ", , sizes", 'axes = [1, 2], keep_aspect_ratio_policy = "not_larger"'),
        (whole(9, 9),),
    ),
    "a Resize of a part": (
        resize(
            "float[6] roi, int64[3] sizes",
            "roi, , sizes",
            'mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 7.0',
        ),
        (np.float32([0, 0.2, -0.1, 1, 0.9, 1.2]), whole(3, 4, 5)),
    ),
}


def test_an_axis_that_stays_is_not_resampled() -> None:
    """An axis that keeps its size is copied, because interpolation with weights of 0 would turn infinities into NaN."""
    x = np.where(X.max() == X, np.inf, X).astype(np.float32)
    against_onnxruntime(parse_model(GRAPHS["a Resize by scales, linear"][0], 18), x, np.ones(3, np.float32))
    against_onnxruntime(parse_model(GRAPHS["a Resize by sizes"][0], 18), x, whole(*x.shape))


def test_places_before_opset_11() -> None:
    text = GRAPHS["a Resize by scales, nearest"][0].replace("(x, , scales)", "(x, scales)")
    for scale in (2, 0.6, 1 / 3, 1.3):
        against_onnxruntime(parse_model(text, 10), X.repeat(5, 2), np.float32([1, 1, scale]))


@pytest.mark.parametrize("name", GRAPHS)
def test_what_the_machine_knows(name: str) -> None:
    text, values = GRAPHS[name]
    against_onnxruntime(parse_model(text, 18), X, *map(np.asarray, values))


def test_axes_of_what_is_empty() -> None:
    text, _ = GRAPHS["two axes"]
    against_onnxruntime(parse_model(text.replace("Mean", "Sum"), 18), X[:0], whole(0, 1))


# For each case, a graph, the values of the inputs after x, and the error message at run time.
WRONG: dict[str, tuple[str, tuple[np.ndarray, ...], str]] = {
    "an axis outside": (GRAPHS["two axes"][0], (whole(0, 3),), r"axes outside \[-3, 3\)"),
    "an axis given twice": (GRAPHS["two axes"][0], (whole(0, -3),), "duplicate axes"),
    "two sizes of -1": (GRAPHS["a shape with 0 and -1"][0], (whole(-1, 2, -1),), "repeated -1"),
    "a size of 0 behind the axes": (
        "g (float[n, 2, m] x, int64[4] shape) => (float[p, q, r, s] y) { y = Reshape(x, shape) }",
        (whole(3, 2, 4, 0),),
        "zeros beyond the rank of the input",
    ),
    "a size that does not broadcast": (
        GRAPHS["an expansion by fewer axes"][0],
        (whole(5),),
        "sizes that cannot be broadcast",
    ),
    "an axis to squeeze of another size": (
        "g (float[n, 2, m] x, int64[1] axes) => (float[p, q] y) { y = Squeeze(x, axes) }",
        (whole(0),),
        "axes to squeeze whose size is not 1",
    ),
    "a step of 0": (GRAPHS["a slice whose steps are inputs"][0], (whole(0),), "steps equal to 0"),
    "a scale that is not above 0": (
        GRAPHS["a Resize by scales, nearest"][0],
        (np.float32([1, np.nan, 2]),),
        "scales not greater than 0",
    ),
    "a Dropout that takes random numbers": (
        GRAPHS["a Dropout that keeps all"][0],
        (np.float32(0.5), np.bool_(True)),
        "elements to drop in training mode",
    ),
    "infinite or undefined counts": (
        """g (float[n, 2, m] x, float last) => (float[k] y)
           { zero = Constant<value_float = 0.0>()  one = Constant<value_float = 1.0>()  y = Range(zero, last, one) }""",
        (np.float32(np.inf),),
        "infinite or undefined counts",
    ),
    "an axis of sums outside": (GRAPHS["an axis of sums"][0], (whole(-4),), r"axes outside \[-3, 3\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_at_run_time(name: str) -> None:
    text, values, message = WRONG[name]
    for machine in machines(from_onnx(parse_model(text, 18)), WAYS).values():
        with pytest.raises(RelvmShapeError, match=rf"node 'y'.*{message}"):
            machine["main"](X, *values)


def test_sizes_of_parts_below_0() -> None:
    """A negative size raises an error even if the part is not used."""
    model = parse_model("g (float[n, 2, m] x, int64[2] sizes) => (float[p, q, r] z) { y, z = Split(x, sizes) }", 18)
    for machine in machines(from_onnx(model), WAYS).values():
        with pytest.raises(RelvmShapeError, match="element 0 is -1; a dimension must be at least 0"):
            machine["main"](X, whole(-1, 4))


def cropped_and_padded(x: np.ndarray, pads: list[int], mode: str) -> np.ndarray:
    """Return the result of a Pad, computed with NumPy: negative padding is applied first."""
    pairs = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    rest = x[tuple(slice(max(-b, 0), n + min(a, 0)) for n, (b, a) in zip(x.shape, pairs, strict=True))]
    return np.pad(rest, [(max(b, 0), max(a, 0)) for b, a in pairs], mode)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_negative_padding(mode: str) -> None:
    known = 'g (float[{0}] x) => (float[p, q] y) <int64[4] pads = {{{1}}}> {{ y = Pad<mode = "{2}">(x, pads) }}'
    unknown = 'g (float[n, m] x, int64[4] pads) => (float[p, q] y) {{ y = Pad<mode = "{0}">(x, pads) }}'
    (at_run_time,) = machines(from_onnx(parse_model(unknown.format(mode), 19)), WAYS[:1]).values()
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    for pads in ([-1, 2, -2, 1], [2, -3, -1, 0], [0, -1, 0, 3], [-1, -2, 0, -1], [3, 1, -3, -3]):
        expected = cropped_and_padded(x, pads, mode)
        np.testing.assert_array_equal(plain(at_run_time["main"](x, np.array(pads))), expected)
        for sizes in ("4, 5", "n, m"):
            model = parse_model(known.format(sizes, str(pads)[1:-1], mode), 19)
            (machine,) = machines(from_onnx(model), WAYS[:1]).values()
            np.testing.assert_array_equal(plain(machine["main"](x)), expected)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_padding_that_removes_more_than_there_is(mode: str) -> None:
    model = parse_model(
        f'g (float[n] x) => (float[p] y) <int64[2] pads = {{-2, 3}}> {{ y = Pad<mode = "{mode}">(x, pads) }}', 19
    )
    (machine,) = machines(from_onnx(model), WAYS[:1]).values()
    with pytest.raises(RelvmShapeError, match="pads remove 2 elements of axis 0, which has 1"):
        machine["main"](np.zeros(1, np.float32))
    with pytest.raises(RelvmShapeError, match=f"mode {mode} needs at least 1 element"):
        machine["main"](np.zeros(2, np.float32))


def test_margins_that_no_tensor_has() -> None:
    model = parse_model("g (float[n, 2, m] x, int64[6] pads) => (float[a, b, c] y) { y = Pad(x, pads) }", 18)
    for machine in machines(from_onnx(model), WAYS).values():
        with pytest.raises((RelvmShapeError, RelvmMemoryError)):
            machine["main"](X, whole(2**63 - 1, 0, 0, 2**63 - 1, 0, 0))


def test_a_result_whose_rank_only_the_machine_knows_is_refused() -> None:
    text = GRAPHS["two axes"][0].replace("int64[2]", "int64[k]")
    with pytest.raises(RelvmUnsupportedError, match=r"ReduceMean.*expected a known number of elements"):
        from_onnx(parse_model(text, 18))
