"""Tests of less common ONNX operators: image sampling (GridSample), boxes, Unique and others.

Results are compared with ONNX Runtime or the onnx package's evaluator, for symbolic sizes, sizes known only at run
time, and older opsets.  Unsupported models must be rejected.
"""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime, assert_answers, c_answers
from frontend.onnx_models import make_model, onnx, parse_model
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support.modes import C_WAYS, machines

from relvm.errors import RelvmError, RelvmFormatError, RelvmIndexError, RelvmShapeError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(29)


def numbers(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def against_onnx(model: onnx.ModelProto, *arrays: np.ndarray) -> None:
    names = [info.name for info in model.graph.input]
    wanted = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    assert_answers(c_answers(model, arrays), wanted, 1e-4, 1e-5)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_a_grid_of_symbolic_size(padding: str, aligned: int) -> None:
    """In opset 16, the modes have other names than in opset 20."""
    attributes = f'padding_mode = "{padding}", align_corners = {aligned}'
    model = parse_model(
        f"""g (float[n, c, h, w] x, float[n, p, q, 2] grid) => (a, b)
        {{ a = GridSample <mode = "bilinear", {attributes}> (x, grid)
           b = GridSample <mode = "nearest", {attributes}> (x, grid) }}""",
        16,
    )
    arrays = numbers(2, 3, 5, 6), numbers(2, 4, 3, 2, low=-1.6, high=1.6)
    against_onnxruntime(model, *arrays, rtol=1e-4, atol=1e-5)
    text = "g (float[n, c, h, w] x, float[n, p, q, 2] t) => (y) "
    cubic = parse_model(f'{text} {{ y = GridSample <mode = "cubic", {attributes}> (x, t) }}', 20)
    against_onnx(cubic, *arrays)


def test_volumes() -> None:
    model = parse_model("g (float[n, c, d, h, w] x, float[n, o, p, q, 3] t) => (y) { y = GridSample(x, t) }", 20)
    against_onnxruntime(model, numbers(2, 3, 4, 5, 6), numbers(2, 2, 3, 4, 3, low=-1.3, high=1.3), rtol=1e-4)


@pytest.mark.parametrize("aligned", [0, 1])
def test_a_grid_for_an_image(aligned: int) -> None:
    """The size of the grid is that of another tensor, or is known only at run time."""
    call = f"y = AffineGrid <align_corners = {aligned}> (theta, size) }}"
    theta = numbers(2, 2, 3)
    image = parse_model(f"g (float[n, 2, 3] theta, float[n, 1, h, w] x) => (y) {{ size = Shape(x) {call}", 20)
    for height in (1, 4):
        against_onnx(image, theta, numbers(2, 1, height, 5))
    computed = parse_model(f"g (float[n, 2, 3] theta, int64[4] size) => (y) {{ {call}", 20)
    against_onnx(computed, theta, np.array([2, 1, 4, 5]))


def test_windows_whose_places_are_moved() -> None:
    model = parse_model(
        """g (float[n, 4, h, w] x, float[6, 2, 3, 2] w, float[n, 24, p, q] offset, float[6] b, float[n, 12, p, q] mask)
        => (y) { y = DeformConv <group = 2, offset_group = 2, strides = [2, 1], dilations = [1, 2],
                                 pads = [1, 0, 1, 2]> (x, w, offset, b, mask) }""",
        19,
    )
    arrays = numbers(2, 4, 7, 6), numbers(6, 2, 3, 2), numbers(2, 24, 4, 6, low=-2, high=2), numbers(6)
    against_onnx(model, *arrays, numbers(2, 12, 4, 6))


@pytest.mark.parametrize("opset", [10, 16])
@pytest.mark.parametrize("attributes", ['mode = "avg"', 'mode = "max", sampling_ratio = 2', "spatial_scale = 0.5"])
def test_regions(opset: int, attributes: str) -> None:
    model = parse_model(
        f"""g (float[n, c, h, w] x, float[m, 4] r, int64[m] at) => (y)
        {{ y = RoiAlign <output_height = 2, output_width = 3, {attributes}> (x, r, at) }}""",
        opset,
    )
    corners = numbers(5, 2, low=-1, high=6)
    regions = np.concatenate([corners, corners + numbers(5, 2, low=0.5, high=6)], 1)
    against_onnxruntime(model, numbers(2, 3, 8, 9, low=0), regions, np.array([1, 0, 0, 1, 1]), rtol=1e-4)


def test_maxima_of_regions() -> None:
    model = parse_model(
        "g (float[n, c, h, w] x, float[m, 5] r) => (y) "
        "{ y = MaxRoiPool<pooled_shape = [3, 2], spatial_scale = 0.5> (x, r) }"
    )
    regions = np.array([[0, 1, 1, 9, 15], [1, 0, 3, 5, 4], [1, 8, 8, 30, 30], [0, 4, 4, 2, 2]], np.float32)
    against_onnxruntime(model, numbers(2, 3, 9, 8), regions)


@pytest.mark.parametrize("centred", [0, 1])
def test_boxes_that_overlap(centred: int) -> None:
    model = parse_model(
        f"""g (float[n, k, 4] boxes, float[n, c, k] scores, int64[1] limit, float overlap, float[1] least) => (y, z)
        {{ y = NonMaxSuppression <center_point_box = {centred}> (boxes, scores, limit, overlap, least)
           z = NonMaxSuppression <center_point_box = {centred}> (boxes, scores, limit) }}"""
    )
    for limit, count in ((0, 5), (3, 30), (100, 30), (4, 1)):
        rest = np.array([limit]), np.array(0.4, np.float32), np.array([0.3], np.float32)
        against_onnxruntime(model, numbers(2, count, 4, low=0.1), numbers(2, 3, count, low=0), *rest)


@pytest.mark.parametrize("attributes", ["sorted = 1", "sorted = 0", "axis = 0, sorted = 1", "axis = -1, sorted = 0"])
@pytest.mark.parametrize("kind", ["float", "int64", "double", "int8"])
def test_what_is_unique(attributes: str, kind: str) -> None:
    model = parse_model(f"g ({kind}[n, m] x) => (a, b, c, d) {{ a, b, c, d = Unique <{attributes}> (x) }}")
    dtype = {"float": np.float32, "double": np.float64, "int64": np.int64, "int8": np.int8}[kind]
    for shape in ((6, 2), (1, 1), (2, 7)):
        against_onnxruntime(model, RANDOM.integers(0, 2, shape).astype(dtype))


def test_what_is_unique_may_be_used() -> None:
    model = parse_model("g (int64[n] x, float[9] t) => (y) { u, i, v = Unique(x) r = Gather(t, u) y = Gather(r, v) }")
    against_onnxruntime(model, np.array([3, 1, 3, 8, 1, 1]), numbers(9))
    against_onnxruntime(model, np.zeros(0, np.int64), numbers(9))


def test_pools_are_undone() -> None:
    model = parse_model(
        """g (float[n, c, h, 6] x, int64[4] size) => (a, b)
        { y, at = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
          a = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, at)
          b = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (y, at, size) }"""
    )
    against_onnxruntime(model, numbers(1, 1, 4, 6), np.array([1, 1, 4, 6]))


def test_pools_with_padding_are_undone() -> None:
    window = "kernel_shape = [2, 3], strides = [2, 3], pads = [1, 2, 1, 1]"
    model = parse_model(
        f"g (float[n, c, 4, 6] x) => (a) {{ y, at = MaxPool <{window}> (x) a = MaxUnpool <{window}> (y, at) }}"
    )
    against_onnxruntime(model, numbers(1, 1, 4, 6))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_determinants(kind: str) -> None:
    model = parse_model(f"g ({kind}[n, m, m] x) => (y) {{ y = Det(x) }}", 11)
    for shape in ((3, 4, 4), (2, 1, 1), (5, 7, 7)):
        x = RANDOM.standard_normal(shape).astype({"float": np.float32, "double": np.float64}[kind])
        against_onnx(model, x)


def test_a_cache_is_written() -> None:
    model = parse_model(
        """g (float[n, h, s, d] past, float[n, h, t, d] update, int64[n] at) => (a, b)
        { a = TensorScatter(past, update) b = TensorScatter <mode = "circular"> (past, update, at) }""",
        24,
    )
    against_onnx(model, numbers(2, 3, 6, 4), numbers(2, 3, 4, 4), np.array([5, 1]))


def test_writing_past_the_end_of_a_cache_is_told() -> None:
    text = "g (float[n, s, d] past, float[n, t, d] update, int64[n] at) => (y) { y = TensorScatter(past, update, at) }"
    for machine in machines(from_onnx(parse_model(text, 24)), C_WAYS).values():
        with pytest.raises(RelvmIndexError, match="outside axis 1 of size 6"):
            machine["main"](numbers(1, 6, 2), numbers(1, 4, 2), np.array([3]))


@pytest.mark.parametrize("given", [(8, 16, 8192, 0.0, 4096.0), (20, 400, 16000, 20.0, 7600.0)])
def test_bands_of_a_spectrum(given: tuple) -> None:
    """The inputs are constants, or are known only at run time."""
    arrays = [np.array(value, np.float32 if isinstance(value, float) else np.int64) for value in given]
    node = helper.make_node("MelWeightMatrix", list("abcde"), ["y"])
    against_onnxruntime(make_model([node], [], ["y"], dict(zip("abcde", arrays, strict=True))))
    inputs = [(name, array.dtype, ()) for name, array in zip("abcde", arrays, strict=True)]
    against_onnxruntime(make_model([node], inputs, ["y"]), *arrays)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_sequences_are_counted(mode: str) -> None:
    """The result is not in the order of the pool, and has an element that counts no n-gram."""
    attributes = (
        f'mode = "{mode}", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 3], '
        "ngram_indexes = [4, 0, 1, 3], pool_int64s = [5, 6, 7, 5, 6], weights = [1.0, 2.5, 3.5, 4.5]"
    )
    model = parse_model(
        f"""g (int64[n, m] x, int32[m] row) => (y, z)
        {{ y = TfIdfVectorizer <{attributes}> (x) z = TfIdfVectorizer <{attributes}> (row) }}""",
        9,
    )
    for count in (6, 1):
        x = RANDOM.integers(4, 8, (3, count))
        against_onnxruntime(model, x, x[0].astype(np.int32))


def test_a_middle_of_symbolic_size() -> None:
    model = parse_model(
        """g (float[n, m] x, float[p, q] like, int64[1] size) => (a, b, c)
        <int64[2] known = {3, 4}>
        { shape = Shape(like) a = CenterCropPad(x, shape) b = CenterCropPad <axes = [-1]> (x, size)
          c = CenterCropPad(x, known) }""",
        18,
    )
    for shape, size in (((3, 9), 4), ((8, 2), 5), ((5, 5), 0)):
        against_onnx(model, numbers(5, 6), numbers(*shape), np.array([size]))


def test_before_opset_7_an_attribute_says_how_operands_are_broadcast() -> None:
    model = parse_model(
        """g (float[n, c, 2] x, float[c] y, float[2] z) => (a, b, c)
        { a = Add <broadcast = 1, axis = 1> (x, y) b = Mul <broadcast = 1> (x, z) c = PRelu(x, y) }""",
        6,
    )
    x, y, z = numbers(4, 3, 2), numbers(3), numbers(2)
    wanted = [x + y[:, None], x * z, np.where(x < 0, x * y[:, None], x)]
    assert_answers(c_answers(model, (x, y, z)), wanted)


@pytest.mark.parametrize(
    ("graph", "opset", "error", "message"),
    [
        ("(int32[1, 1, 4, 4] x, float[1, 2, 2, 2] t) => (y) { y = GridSample(x, t) }", 20, RelvmError, "dtype i32"),
        ("(float[1, 1, 4, 4] x, float[1, 2, 2] t) => (y) { y = GridSample(x, t) }", 20, RelvmShapeError, "rank 3"),
        ("(float[3] x) => (y) { y = BitCast <to = 7> (x) }", 26, RelvmError, "cannot cast f32 to i64; both must have"),
        ("(float[3, 4] x) => (y) { y = Det(x) }", 11, RelvmShapeError, "must be square"),
        ("(float[3, 4] x) => (y) { y = Unique <axis = 2> (x) }", 11, RelvmShapeError, "axis is 2"),
        (
            "(float[3] x, float[3] z) => (y) { y = Add <broadcast = 1> (x, z) }",
            7,
            RelvmFormatError,
            "unknown attribute",
        ),
        ("(float[3, 4] x, float[3] z) => (y) { y = Add <broadcast = 1, axis = 2> (x, z) }", 6, RelvmShapeError, "axis"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(graph: str, opset: int, error: type[RelvmError], message: str) -> None:
    with pytest.raises(error, match=message):
        from_onnx(parse_model(f"g {graph}", opset))
