"""relvm.quantize: what it writes is standard ONNX that relvm and ONNX Runtime run alike, and the report is right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import relvm
from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmUnsupportedError
from relvm.quantization import MODES, OperatorCount, QuantizationReport, quantize_model
from relvm.quantization.graphs import WEIGHTED
from relvm.quantization.report import ErrorMeter

INTEGER_MODES, WEIGHT_MODES = MODES[:2], MODES[2:]


def random(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / 4).astype(dtype)


def model_of(text: str, header: str = 'ir_version: 8, opset_import: ["" : 17]', /, **weights: np.ndarray) -> Any:
    """Return a model in the text form of ONNX, with initializers."""
    model = onnx.parser.parse_model(f"<{header}> g {text}")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


Case = tuple[Any, dict[str, np.ndarray], dict[str, int]]  # a model, its inputs, and the operators with weights


def convolutions() -> Case:
    """Batch normalization after a convolution; a symbolic batch."""
    text = """(float[N,3,9,9] x) => (float[N,10] y) {
        c = Conv<pads=[1,1,1,1]>(x, w)  n = BatchNormalization(c, s, b, m, v)  r = Relu(n)
        p = GlobalAveragePool(r)  f = Flatten(p)  y = Gemm<transB=1>(f, u, d) }"""
    scale, bias, mean, variance = random(8) + 1, random(8), random(8), np.abs(random(8)) + 1
    weights = {"w": random(8, 3, 3, 3), "u": random(10, 8), "d": random(1, 10)}  # the bias of Gemm has rank 2
    model = model_of(text, s=scale, b=bias, m=mean, v=variance, **weights)
    return model, {"x": random(2, 3, 9, 9)}, {"Conv": 1, "Gemm": 1}


def several_inputs() -> Case:
    """Two inputs, two outputs, one of them of integers; an embedding; opset 12."""
    text = """(float[N,32] a, int64[N] i) => (float[N,8] y, int64[N] k) {
        h = MatMul(a, w)  e = Gather(t, i)  s = Add(h, e)  y = Gemm<transB=1>(s, u, b)
        k = ArgMax<axis=1,keepdims=0>(y) }"""
    weights = {"w": random(32, 64), "t": random(50, 64), "u": random(8, 64), "b": random(8)}
    model = model_of(text, 'ir_version: 8, opset_import: ["" : 12]', **weights)
    return model, {"a": random(4, 32), "i": np.arange(4)}, {"MatMul": 1, "Gather": 1, "Gemm": 1}


def matrices() -> Case:
    """Several matrices as the weights of one product."""
    text = "(float[B,4,5,16] x) => (float[B,4,5,24] y) { y = MatMul(x, w) }"
    return model_of(text, w=random(4, 16, 24)), {"x": random(2, 4, 5, 16)}, {"MatMul": 1}


def functions() -> Case:
    """A function of the model, a weight in a node Constant, and opset 9."""
    text = """(float[N,6] x) => (float[N,40] y) { h = local.f(x, w)  y = MatMul(h, c) }
        <domain: "local", opset_import: ["" : 9]> f (a, u) => (b) { m = MatMul(a, u)  b = Relu(m) }"""
    model = model_of(text, 'ir_version: 8, opset_import: ["" : 9, "local" : 1]', w=random(6, 64))
    value = onnx.helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(random(64, 40)))
    model.graph.node.insert(0, value)
    return model, {"x": random(3, 6)}, {"MatMul": 2}


def loops() -> Case:
    """A weight that a node reads inside a loop and outside of it."""
    text = """(int64 n, float[B,64] x) => (float[B,64] y) {
        c = Constant<value = bool {1}>()  z = MatMul(x, w)
        y = Loop(n, c, z) <body = b (int64 k, bool q, float[B,64] p) => (bool r, float[B,64] o) {
            r = Identity(q)  m = MatMul(p, w)  o = Tanh(m) }> }"""
    return model_of(text, w=random(64, 64)), {"n": np.array(3), "x": random(2, 64)}, {"MatMul": 2}


def branches() -> Case:
    """Weights of the same name in two branches."""
    model = model_of("""(bool c, float[N,16] x) => (float[N,32] y) {
        y = If(c) <then_branch = a () => (float[N,32] u) { u = MatMul(x, w) },
                   else_branch = b () => (float[N,32] v) { v = MatMul(x, w) }> }""")
    for number, attribute in enumerate(model.graph.node[0].attribute):
        attribute.g.initializer.append(numpy_helper.from_array(random(16, 32) * (number + 1), "w"))
    return model, {"c": np.array(False), "x": random(3, 16)}, {"MatMul": 2}


def tied_weights() -> Case:
    """An embedding whose transpose is the last layer."""
    text = "(int64[B] i) => (float[B,100] y) { e = Gather(w, i)  t = Transpose(w)  y = MatMul(e, t) }"
    return model_of(text, w=random(100, 40)), {"i": np.arange(7) * 9}, {"Gather": 1, "MatMul": 1}


def half() -> Case:
    text = "(float16[B,67] x) => (float16[B,40] y) { y = MatMul(x, w) }"  # the last block is shorter
    return model_of(text, w=random(67, 40, dtype=np.float16)), {"x": random(3, 67, dtype=np.float16)}, {"MatMul": 1}


def recurrent() -> Case:
    """Weights that are built from parts, as PyTorch exports them."""
    text = """(float[S,1,8] x) => (float[S,1,1,16] y) {
        axis = Constant<value = int64[1] {0}>()  a = Concat<axis=0>(p, q)  w = Unsqueeze(a, axis)
        y = LSTM<hidden_size=16>(x, w, r) }"""
    weights = {"p": random(32, 8), "q": random(32, 8), "r": random(1, 64, 16)}
    return model_of(text, **weights), {"x": random(5, 1, 8)}, {"LSTM": 1}


def transposed_convolutions() -> Case:
    text = """(float[N,8,9,9] x) => (float[N,8,20,20] y) {
        c = Conv<group=8,pads=[1,1,1,1]>(x, w)  y = ConvTranspose<strides=[2,2],kernel_shape=[4,4]>(c, u) }"""
    weights = {"w": random(8, 1, 3, 3), "u": random(8, 8, 4, 4)}
    return model_of(text, **weights), {"x": random(2, 8, 9, 9)}, {"Conv": 1, "ConvTranspose": 1}


def scaled_products() -> Case:
    """Gemm with alpha and beta, with biases of all shapes, and with a bias that is computed."""
    text = """(float[3,16] x) => (float[3,8] y) {
        a = Gemm<alpha=0.5,beta=2.0>(x, w, s)  b = Gemm<beta=3.0>(a, u, row)  c = Gemm(b, u, column)
        d = Gemm<transB=1,beta=0.5>(c, u, whole)  y = Gemm<beta=0.25>(d, u, b) }"""
    biases = {"s": np.array(0.3, np.float32), "row": random(1, 8), "column": random(3, 1), "whole": random(3, 8)}
    return model_of(text, w=random(16, 8), u=random(8, 8), **biases), {"x": random(3, 16)}, {"Gemm": 5}


def captured_values() -> Case:
    """A subgraph that reads a computed value, which is quantized outside of it."""
    text = """(bool c, float[N,16] x) => (float[N,16] y) { h = MatMul(x, w)
        y = If(c) <then_branch = a () => (float[N,16] u) { u = Relu(h) },
                   else_branch = b () => (float[N,16] v) { v = Neg(h) }> }"""
    return model_of(text, w=random(16, 16)), {"c": np.array(True), "x": random(3, 16)}, {"MatMul": 1}


def old_format() -> Case:
    """IR version 3, in which initializers are inputs."""
    text = "(float[N,16] x, float[16,8] w, float[8] b) => (float[N,8] y) { h = Gemm(x, w, b)  y = Relu(h) }"
    model = model_of(text, 'ir_version: 3, opset_import: ["" : 8]', w=random(16, 8), b=random(8))
    return model, {"x": random(3, 16)}, {"Gemm": 1}


COMMON = (
    *(convolutions, several_inputs, matrices, functions, tied_weights, scaled_products, captured_values, old_format),
)
ONLY_WEIGHTS = (loops, branches, half, recurrent, transposed_convolutions)


def run_onnxruntime(path: Path | str, inputs: dict[str, np.ndarray]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    # By default, ONNX Runtime rounds the other factor of a product with dequantized weights to 8 bits.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return onnxruntime.InferenceSession(str(path), options).run(None, inputs)


@pytest.mark.parametrize(
    ("case", "mode"),
    [(case, mode) for case in COMMON for mode in MODES]
    + [(case, mode) for case in ONLY_WEIGHTS for mode in WEIGHT_MODES],
)
def test_the_result_is_standard_and_runs_alike_everywhere(case: Callable[[], Case], mode: str, tmp_path: Path) -> None:
    model, inputs, weighted = case()
    path = tmp_path / "quantized.onnx"
    report = relvm.quantize(model, path, mode, calibration=[inputs] if mode == "static" else None, inputs=inputs)
    onnx.checker.check_model(path, full_check=True)
    written = onnx.load(path)
    assert {each.domain for each in written.opset_import} == {""}
    found = relvm.load_model(path).run(None, inputs)
    for ours, theirs in zip(found, run_onnxruntime(path, inputs), strict=True):
        np.testing.assert_allclose(
            ours.astype(np.float64), theirs, rtol=1e-2 if ours.dtype == np.float16 else 1e-4, atol=1e-5
        )
    first = relvm.load_model(model).run(None, inputs)[0].astype(np.float64)
    error = report.errors[0]
    assert error.max_error == np.abs(first - found[0]).max() > 0
    assert error.mean_error == pytest.approx(np.abs(first - found[0]).mean())
    assert error.sqnr_db == pytest.approx(10 * np.log10((first**2).sum() / ((first - found[0]) ** 2).sum()))
    assert error.sqnr_db > (12 if mode == "int4-weights" else 30)
    counts = {name: each for name, each in report.operators.items() if name in WEIGHTED}
    assert not any(each.float for each in counts.values())
    if mode in WEIGHT_MODES:
        assert {name: each.quantized for name, each in counts.items()} == weighted
    else:  # the tools replace Gemm by MatMul, and MatMul by Gemm
        assert sum(each.quantized for each in counts.values()) == sum(weighted.values())


def test_weights_are_stored_as_integers(tmp_path: Path) -> None:
    model, _inputs, _ = half()
    for mode, dtype, dims in (("int8-weights", 3, [40]), ("int4-weights", 22, [5, 40])):
        relvm.quantize(model, tmp_path / "q.onnx", mode, block_size=16)
        integers, scales = onnx.load(tmp_path / "q.onnx").graph.initializer
        assert (integers.data_type, list(integers.dims)) == (dtype, [67, 40])
        assert (scales.data_type, list(scales.dims)) == (10, dims)
    assert len(integers.raw_data) == 67 * 40 // 2


def test_4_bit_weights_have_the_nearest_integers() -> None:
    """A weight that 4 bits can represent is unchanged."""
    from relvm.quantization.weight_only import quantize_weights

    exact = np.arange(-7, 8, dtype=np.float32).repeat(4)[:56].reshape(14, 4) * 0.25
    exact[0], exact[1] = 1.75, -1.75  # each column contains the largest magnitude
    model = model_of("(float[B,14] x) => (float[B,4] y) { y = MatMul(x, w) }", w=exact)
    quantize_weights(model, 4, 14)
    integers, scales = (numpy_helper.to_array(each).astype(np.float32) for each in model.graph.initializer)
    np.testing.assert_allclose(integers * scales, exact, atol=1e-6)


def test_subgraphs_stay_floats_in_the_modes_of_onnxruntime(tmp_path: Path) -> None:
    model, inputs, _ = loops()
    for mode in INTEGER_MODES:
        report = relvm.quantize(model, tmp_path / "q.onnx", mode, calibration=[inputs])
        assert report.operators["MatMul"] == OperatorCount(1, 1)
        onnx.checker.check_model(tmp_path / "q.onnx", full_check=True)
        theirs = run_onnxruntime(tmp_path / "q.onnx", inputs)
        np.testing.assert_allclose(relvm.load_model(tmp_path / "q.onnx").run(None, inputs)[0], theirs[0], atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_infinite_weights_stay_floats(tmp_path: Path, mode: str) -> None:
    weights = random(16, 16)
    weights[3, 4] = -np.inf
    text = "(float[N,16] x) => (float[N,16] y) { h = MatMul(x, w)  y = MatMul(x, u)  z = Identity(h) }"
    model = model_of(text, w=weights, u=random(16, 16))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, ["N", 16]))
    inputs = {"x": np.abs(random(2, 16))}
    report = relvm.quantize(model, tmp_path / "q.onnx", mode, calibration=[inputs])
    assert report.operators["MatMul"] == OperatorCount(1, 1)
    assert [each.sqnr_db > 12 for each in report.errors] == [True, True]


@pytest.mark.parametrize("mode", ["static", "int8-weights"])
def test_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A model can have external data, and so has the result if it is large."""
    model, inputs, _ = several_inputs()
    source, path = tmp_path / "model.onnx", tmp_path / "folder" / "q.onnx"
    path.parent.mkdir()
    onnx.save_model(model, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    small = relvm.quantize(source, path, mode, calibration=[inputs])
    assert small.bytes_before == source.stat().st_size + (tmp_path / "weights.bin").stat().st_size
    assert small.bytes_after == path.stat().st_size < small.bytes_before / 2
    expected = relvm.load_model(path).run(None, inputs)
    monkeypatch.setattr(quantize_model, "_LARGEST_FILE", 1000)
    for _ in range(2):
        large = relvm.quantize(source, path, mode, calibration=[inputs])
        data = path.with_name("q.onnx.data")
        assert large.bytes_after == path.stat().st_size + data.stat().st_size
        assert data.stat().st_size < small.bytes_after
        np.testing.assert_array_equal(relvm.load_model(path).run(None, inputs)[0], expected[0])


def test_inputs_can_be_numbers_and_lists(tmp_path: Path) -> None:
    model, inputs, _ = loops()
    plain = {"n": 3, "x": inputs["x"].tolist()}
    reports = [relvm.quantize(model, tmp_path / "q.onnx", "static", calibration=[each]) for each in (inputs, plain)]
    assert reports[0] == reports[1]


def test_calibration_files(tmp_path: Path) -> None:
    model, inputs, _ = several_inputs()
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(3):
        np.savez(folder / f"{number}.npz", **(inputs | {"a": inputs["a"] * (number + 1)}))
    whole = relvm.quantize(model, tmp_path / "a.onnx", "static", calibration=folder)
    single = relvm.quantize(model, tmp_path / "b.onnx", "static", calibration=[folder / "2.npz", inputs])
    assert (whole.samples, single.samples) == (3, 2)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()  # the same ranges
    narrow = relvm.quantize(model, tmp_path / "c.onnx", "static", calibration=[inputs], inputs=inputs)
    assert (
        narrow.errors[0].sqnr_db
        > relvm.quantize(
            model, tmp_path / "d.onnx", "static", calibration=[inputs | {"a": inputs["a"] * 50}], inputs=inputs
        )
        .errors[0]
        .sqnr_db
    )
    vector = model_of("(float[B,16] x) => (float[B,8] y) { y = MatMul(x, w) }", w=random(16, 8))
    np.save(tmp_path / "x.npy", random(4, 16))
    assert relvm.quantize(vector, tmp_path / "e.onnx", "static", calibration=tmp_path / "x.npy").samples == 1


NO_WEIGHTS = model_of("(float[B,64] x) => (float[B,64] y) { y = Relu(x) }")
TINY = model_of("(float[B,1] x) => (float[B,1] y) { y = MatMul(x, w) }", w=random(1, 1))


@pytest.mark.parametrize(
    ("model", "arguments", "error", "message"),
    [
        (NO_WEIGHTS, {"mode": "dynamic"}, RelvmUnsupportedError, "has no weights to quantize: expected MatMul, Gemm"),
        (NO_WEIGHTS, {"mode": "int4-weights"}, RelvmUnsupportedError, "has no weights to quantize"),
        (TINY, {"mode": "int8-weights"}, RelvmUnsupportedError, "their scales would take more memory"),
        (
            branches()[0],
            {"mode": "dynamic"},
            RelvmUnsupportedError,
            "MatMul (2): it quantizes finite weights of Conv",
        ),
        (recurrent()[0], {"mode": "dynamic"}, RelvmUnsupportedError, "has weights in LSTM (1)"),
        (half()[0], {"mode": "dynamic"}, RelvmUnsupportedError, "needs f32 weights, but the model has f16"),
        (TINY, {"mode": "int7"}, RelvmArgumentError, "int7"),
        (TINY, {"mode": "static"}, RelvmArgumentError, "needs calibration data"),
        (TINY, {"mode": "static", "calibration": []}, RelvmArgumentError, "at least one sample"),
        (TINY, {"mode": "static", "calibration": {"x": 1}}, RelvmArgumentError, "expected a list of mappings"),
        (TINY, {"mode": "static", "calibration": [{}]}, RelvmArgumentError, "calibration[0]: missing inputs: x"),
        (TINY, {"inputs": {"y": 1}}, RelvmArgumentError, "inputs: no input y"),
        (TINY, {"inputs": {"x": np.float32(1)}}, RelvmError, "x"),
        (TINY, {"block_size": 0}, RelvmArgumentError, "block_size: expected an integer of at least 1, got 0"),
        ("model.relvm", {}, RelvmFormatError, "expected an .onnx model"),
        (b"no model", {}, RelvmFormatError, "not an ONNX model"),
    ],
)
def test_mistakes(model: Any, arguments: dict[str, Any], error: type, message: str, tmp_path: Path) -> None:
    with pytest.raises(error) as raised:
        relvm.quantize(model, tmp_path / "q.onnx", **arguments)
    assert message in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", MODES)
def test_a_quantized_model_is_rejected(tmp_path: Path, mode: str) -> None:
    model, inputs, _ = several_inputs()
    relvm.quantize(model, tmp_path / "q.onnx", mode, calibration=[inputs] if mode == "static" else None)
    with pytest.raises(RelvmUnsupportedError, match=r"already quantized: it contains \d+ operators such as \w+"):
        relvm.quantize(tmp_path / "q.onnx", tmp_path / "r.onnx", "int8-weights")


def test_a_model_with_integer_weights_is_rejected(tmp_path: Path) -> None:
    text = "(float[B,4] x) => (float[B,4] y) { f = Cast<to=1>(w)  y = MatMul(x, f) }"
    model = model_of(text, w=np.ones((4, 4), np.int8))
    with pytest.raises(RelvmUnsupportedError, match="already quantized: it contains integer weights, such as w"):
        relvm.quantize(model, tmp_path / "q.onnx")


def test_the_model_itself_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(TINY, path)
    with pytest.raises(RelvmArgumentError, match="is the model itself"):
        relvm.quantize(path, path)


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, _ = several_inputs()
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(RelvmUnsupportedError, match=r"pip install 'relvm\[quantize\]'"):
        relvm.quantize(model, tmp_path / "q.onnx")
    relvm.quantize(model, tmp_path / "q.onnx", "int8-weights", inputs=inputs)  # does not need onnxruntime


@pytest.mark.parametrize(
    ("outputs", "warning"),
    [
        ([random(9), random(9)], ""),
        ([np.int64([1, 2])], ""),
        ([np.array([True, False])], ""),
        ([np.array(["a", "b"], object)], ""),
        ([0.5, 0.9], ""),
        ([np.float32([0.5, 0.501])], "it is nearly constant (0.5 to 0.501)"),
        ([np.float32([-800, -800.5])], "it is nearly constant (-800.5 to -800)"),
        ([np.zeros(3, np.float32)], "all elements are equal (0)"),
        ([np.ones(3), np.ones(3)], "all elements are equal (1)"),
        ([np.int64([7, 7])], "all elements are equal (7)"),
        ([np.array(["a", "a"], object)], "all elements are equal"),
        ([2.0], "it has one element (2)"),
        ([np.float32([[0, 1], [0.9999, 1e-5]])], "it is saturated: all elements are within 0.001 of 0 or 1"),
        ([np.float32([1, 2]), np.float32([1, np.nan])], "it contains NaN or infinite elements"),
        ([np.float32([1, np.inf])], "it contains NaN or infinite elements"),
        ([np.ones((0, 3), np.float32)], "it has no elements"),
    ],
)
def test_warnings_about_outputs_whose_error_says_little(outputs: list[Any], warning: str) -> None:
    meter = ErrorMeter(["good", "y"])
    for output in outputs:
        meter.add([random(5), output], [random(5), output])
    good, error = meter.errors()
    assert (good.warning, error.warning) == ("", warning)
    report = QuantizationReport("dynamic", "q.onnx", 2, 1, {}, (good, error), len(outputs))
    assert str(report).count("\nwarning: y: ") == str(report).count("say little") == bool(warning)


def test_warning_if_no_output_changed() -> None:
    report = QuantizationReport("dynamic", "q.onnx", 2, 1, {"MatMul": OperatorCount(1, 0)}, (), 1)
    for change, count in [(0, 1), (0.125, 0)]:
        meter = ErrorMeter(["x", "y"])
        x = np.float32([1, 2, 3])
        meter.add([x, x], [x, x + np.float32(change)])
        assert str(replace(report, errors=meter.errors())).count("warning: no output changed") == count


def test_errors_of_all_kinds_of_outputs() -> None:
    meter = ErrorMeter(["floats", "integers", "strings", "shape", "list", "equal"])
    before = [
        np.float32([1, np.inf, np.nan]),
        np.int64([1, 5]),
        np.array(["a", "b"], object),
        np.ones(2),
        [np.ones(1)],
        2.0,
    ]
    after = [
        np.float32([1.5, np.inf, np.nan]),
        np.int64([1, 2]),
        np.array(["a", "c"], object),
        np.ones(3),
        [np.zeros(1)],
        2.0,
    ]
    meter.add(before, after)
    infinite = ErrorMeter(["infinite"])
    infinite.add([np.ones(2)], [np.float32([1, np.nan])])
    assert infinite.errors()[0].sqnr_db == -np.inf and infinite.errors()[0].max_error == np.inf
    floats, integers, strings, shape, listed, equal = meter.errors()
    assert (floats.max_error, floats.mean_error, floats.sqnr_db) == (0.5, 0.5 / 3, pytest.approx(10 * np.log10(4)))
    assert (integers.max_error, integers.sqnr_db, integers.changed) == (3, None, 0.5)
    assert (strings.max_error, strings.changed) == (None, 0.5)
    assert (shape.max_error, shape.changed) == (None, None)
    assert (listed.max_error, equal.sqnr_db) == (1, np.inf)
    counts = {"MatMul": OperatorCount(2, 1)}
    report = QuantizationReport("dynamic", "q.onnx", 4_000_000, 1_000_000, counts, meter.errors(), 1)
    assert str(report).splitlines()[0] == "q.onnx: dynamic, 4.0 MB -> 1.0 MB (25%)"
    assert "shape     other shape" in str(report) and "inf" in str(report)
    assert all(len(line) <= 80 for line in str(report).splitlines())
