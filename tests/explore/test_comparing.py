"""Tests of `compare`, which finds the first value that differs between execution modes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from relvm import ops
from relvm.cli.main import main
from relvm.compiler import build
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmNameError, RelvmUnsupportedError
from relvm.explore import Comparison, compare
from relvm.explore.compare import run
from relvm.explore.compare.instrument_values import is_comparable
from relvm.explore.compare.report import largest_difference, make_row
from relvm.frontend.onnx import registry
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32
from relvm.ir.expr import Expr, Function, Fused, Module, OpCall
from relvm.ir.operator import find_operator
from relvm.ir.types import VOID, TensorType, TupleType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import rewrite
from relvm.passes.pass_manager import Pass, function_pass
from relvm.passes.pipeline import build_pipeline

TEXT = """\
def main(x: f32[n, 4], c: bool) -> (f32[n, 4], i64) {
  a = softmax(add(x, x), axis=1)
  b = if c then { return relu(a) } else { return exp(negative(a)) }
  k = dim(n * 2) + 1
  p = @_pair(b)
  d = subtract(p.0, a)
  return (d, k)
}
private def _pair(x: f32[n, 4]) -> (f32[n, 4], f32[n, 4]) { return (tanh(x), x) }
"""
X = np.float32([[1, -2, 3, 0], [np.inf, np.nan, 1, 2]])
FLOATS = np.float32([1, np.nan, np.inf, -np.inf])


@pytest.fixture
def module() -> Module:
    return parse_module(TEXT, "model.relvm")


def graph(*nodes, outputs: tuple[str, ...]) -> ModelProto:
    rng = np.random.default_rng(1)
    arrays = {"w": rng.standard_normal((4, 4), np.float32), "s": np.ones(4, np.float32)}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in outputs]
    proto = helper.make_graph(list(nodes), "net", [x], made, weights)
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def model() -> ModelProto:
    return graph(
        helper.make_node("MatMul", ["x", "w"], ["mm.0"]),
        helper.make_node("Shape", ["mm.0"], ["sizes"]),
        helper.make_node("Identity", ["mm.0"], ["same"]),
        helper.make_node("Relu", ["same"], ["r/1"]),
        helper.make_node("LayerNormalization", ["r/1", "s"], ["n"], axis=-1),
        helper.make_node("Reshape", ["n", "sizes"], ["y"]),
        outputs=("y",),
    )


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable], None]:
    """Return a function that replaces the NumPy implementation of an operator until the end of the test."""
    meanings = []

    def exchange(name: str, meaning: Callable) -> None:
        operator = find_operator(name)
        meanings.append((operator, operator.numpy))
        object.__setattr__(operator, "numpy", meaning)

    yield exchange
    for operator, meaning in meanings:
        object.__setattr__(operator, "numpy", meaning)


@pytest.mark.parametrize("target", ["c", "numpy"])
def test_modes_agree_on_every_value(module: Module, target: str) -> None:
    compared = compare(module, X, True, target=target)
    assert compared.agrees and compared.first is None
    names = [row.name for row in compared.rows]
    assert names == ["value", "a", "b", "k", "value_1", "d", "returned[0]", "returned[1]"]
    row = compared.rows[1]
    assert (row.shape, row.dtype, row.origin) == ((2, 4), "f32", "model.relvm:2:3")
    assert set(row.values) == {"reference", "bytecode", "compiled"}
    assert set(row.differences) == {"bytecode", "compiled"}
    assert 0.9 < row.largest < 1
    assert np.isnan(row.values["compiled"][1]).all()
    assert str(compared).splitlines()[0] == "8 values agree: bytecode, compiled against reference"


def test_the_first_value_that_differs_is_that_of_the_wrong_operator(module: Module, swap: Callable) -> None:
    swap("softmax", lambda x, axis: np.full_like(x, 0.5))
    compared = compare(module, X[:1], True)
    assert not compared.agrees
    assert compared.first.name == "a" and compared.first.differences["bytecode"] > 0.3
    assert [row.name for row in compared.rows if not row.differs] == ["value", "k", "returned[1]"]
    assert compared.worst()[0].differs and len(compared.worst(2)) == 2
    assert [line[:4] for line in compared.format(all_rows=True).splitlines()[2:4]] == ["   v", "!  a"]
    assert "the first is a" in str(compared) and compared._repr_html_().count("<tr style=") == 5


def test_progress_names_each_mode() -> None:
    module, modes = parse_module("def main(x: f32[2]) -> f32[2] = relu(x)"), ["bytecode", "reference"]
    reported: list[str] = []
    assert compare(module, modes=modes, target="bytecode", progress=reported.append).agrees
    assert reported == modes


def test_checks_of_imported_models_have_no_value_to_compare(tmp_path: Path) -> None:
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in (("x", ["n", "m"]), ("y", None))
    )
    node = helper.make_node("Squeeze", ["x", "axes"], ["y"])
    axes = numpy_helper.from_array(np.array([1]), "axes")
    file = tmp_path / "model.onnx"
    file.write_bytes(helper.make_model(helper.make_graph([node], "g", [x], [y], [axes])).SerializeToString())
    assert compare(file, np.ones((3, 1), np.float32), modes=["reference", "bytecode", "compiled"]).agrees
    assert not is_comparable(VOID) and is_comparable(TupleType((TensorType(F32, ()),)))


def test_only_the_largest_differences_are_printed(module: Module) -> None:
    one = np.ones(2, np.float32)
    rows = [
        make_row(f"a_long_name_of_value_{k}", "model.relvm:2:3", {"reference": one, "bytecode": one + k / 100}, 0.105)
        for k in range(20)
    ]
    compared = Comparison("title", ("reference", "bytecode"), tuple(rows))
    shown = str(compared).splitlines()
    assert shown[0] == "9 of 20 values differ: bytecode against reference; the first is a_long_name_of_value_11"
    assert len(shown) == 13 and "value_19" in shown[3] and "value_10" in shown[12] and "model.relvm:2:3" in shown[3]
    assert [line[0] for line in shown[3:]] == ["!"] * 9 + [" "]
    narrow = compared.format(columns=50).splitlines()
    assert max(map(len, narrow[2:])) <= 50 and "a_long_n..._value_19" in narrow[3] and "model.relvm" not in narrow[3]
    assert len(compared.format(all_rows=True).splitlines()) == 22
    equal = Comparison("title", ("reference", "bytecode"), (make_row("x", "", {"reference": one, "bytecode": one}, 0),))
    assert str(equal) == "1 value agrees: bytecode against reference"


def test_onnx_models_are_compared_without_onnxruntime_and_onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    file.write_bytes(helper.make_model(helper.make_graph([node], "g", [x], [y])).SerializeToString())
    assert "onnxruntime" in compare(file).modes
    for missing in (("onnxruntime",), ("onnxruntime", "onnx")):
        monkeypatch.setattr(run, "find_spec", lambda name, missing=missing: None if name in missing else name)
        compared = compare(file, dims={"n": 3})
        assert compared.agrees and compared.modes == ("reference", "bytecode", "compiled")
        assert compared.rows[0].shape == (3,)


def test_what_is_wrong_inside_a_branch_shows_in_what_it_gives(module: Module, swap: Callable) -> None:
    swap("relu", lambda x: x + 1)
    assert compare(module, X[:1], True).first.name == "b"
    assert compare(module, X[:1], False).agrees


def test_kernels_of_numpy_are_told_from_those_in_c(module: Module, swap: Callable) -> None:
    swap("softmax", lambda x, axis: np.full_like(x, 0.5))
    assert compare(module, X[:1], True, target="numpy").agrees
    assert compare(module, X[:1], True, modes=["bytecode", "compiled"]).agrees


def test_a_fault_of_fusion_shows_in_what_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    relu = find_operator("relu")

    def wrong(expr: Expr) -> Expr | None:
        is_negative = isinstance(expr, OpCall) and expr.op.name == "negative"
        return replace(expr, op=relu) if is_negative else None

    @function_pass("break_fused", at=Stage.ANF)
    def break_fused(function: Function) -> Function:
        return rewrite(lambda expr: rewrite(wrong, expr) if isinstance(expr, Fused) else None, function)

    def broken_pipeline(target: str, **options) -> tuple[Pass, ...]:
        steps = build_pipeline(target, **options)
        after = [step.name for step in steps].index("fuse_ops") + 1
        return (*steps[:after], break_fused, *steps[after:])

    monkeypatch.setattr(build, "build_pipeline", broken_pipeline)
    module = parse_module("def main(x: f32[n]) -> f32[n] { return exp(negative(x)) }")
    compared = compare(module, np.float32([1, 2]))
    assert [row.name for row in compared.rows if row.differs] == ["returned"]


def test_an_onnx_model_is_held_against_onnxruntime_by_the_names_of_its_values(model: ModelProto) -> None:
    compared = compare(model, dims={"n": 3})
    assert compared.agrees and compared.modes[-1] == "onnxruntime"
    named = [row.name for row in compared.rows if "onnxruntime" in row.differences]
    assert named == ["mm.0", "sizes", "same", "r/1", "n", "y", "returned y"]
    parts = [row.name for row in compared.rows if "onnxruntime" not in row.differences]
    assert "n_1" in parts and all("LayerNormalization" in row.origin for row in compared.rows if row.name in parts)
    assert {row.shape for row in compared.rows if row.name in ("mm.0", "y")} == {(3, 4)}
    assert np.array_equal(compared.rows[1].values["compiled"], [3, 4])


def test_a_node_that_is_imported_wrongly_is_the_first_to_differ(
    model: ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert registry.converter_for("", "Relu")  # imports the module with the converter that the next line replaces
    monkeypatch.setitem(registry._converters, ("", "Relu"), lambda node: ops.negative(node.tensor(0)))
    first = compare(model).first
    assert first.name == "r/1" and "Relu" in first.origin
    assert max(first.differences["bytecode"], first.differences["compiled"]) < 1e-5
    assert first.differences["onnxruntime"] > 0.1
    assert compare(model, modes=["reference", "bytecode"]).agrees


def test_an_onnx_file_has_random_inputs_from_a_seed(model: ModelProto, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    first, again, other = (
        compare(tmp_path / "m.onnx", seed=seed, modes=["reference", "bytecode"]) for seed in (1, 1, 2)
    )
    assert first.title == "m.onnx"
    values = [compared.rows[0].values["reference"] for compared in (first, again, other)]
    assert np.array_equal(values[0], values[1]) and not np.array_equal(values[0], values[2])
    assert compare(model.SerializeToString(), modes=["bytecode", "compiled"], dims={"n": (1, 7)}).rows[0].shape[0] == 7


def test_a_function_that_calls_itself_is_compared() -> None:
    text = """\
def main(i: i64, x: f32[n]) -> f32[n] {
  y = exp(x)
  z = if i > 0 then { return @main(i - 1, y) } else { return y }
  return z
}
"""
    compared = compare(parse_module(text), 2, np.float32([-9, 0.1]))
    assert compared.agrees
    assert [row.name for row in compared.rows] == ["y", "cond", "z", "returned"]


@pytest.mark.parametrize(
    ("got", "expected", "difference"),
    [
        (FLOATS, FLOATS, 0),
        (FLOATS, np.float32([1.5, np.nan, np.inf, -np.inf]), 0.5),
        (FLOATS, np.float32([1, 2, np.inf, -np.inf]), np.inf),
        (FLOATS, np.float32([1, np.nan, -np.inf, -np.inf]), np.inf),
        (FLOATS, FLOATS.astype(np.float64), np.inf),
        (FLOATS, FLOATS[:2], np.inf),
        (np.int64([2**60]), np.int64([2**60 + 1]), 1),
        (np.uint8([1, 250]), np.uint8([4, 251]), 3),
        (np.array([True, False]), np.array([True, True]), 1),
        (np.array(["a"], object), np.array(["b"], object), np.inf),
        (np.array(["a"], object), np.array(["a"], object), 0),
        (np.float32([]), np.float32([]), 0),
    ],
)
def test_the_largest_difference(got: np.ndarray, expected: np.ndarray, difference: float) -> None:
    assert largest_difference(got, expected) == difference


def test_the_tolerance_of_floats_grows_with_them_and_not_below_their_precision() -> None:
    def differs(expected, got, tolerance: float = 1e-4) -> bool:
        return make_row("x", "", {"reference": np.asarray(expected), "bytecode": np.asarray(got)}, tolerance).differs

    assert not differs(np.float32([1000, 1]), np.float32([1000, 1.05]))
    assert differs(np.float32([1, 1]), np.float32([1, 1.05]))
    assert not differs(np.float16([1]), np.float16([1.001]), tolerance=0.0)
    assert differs(np.int64([1000]), np.int64([1001]))
    assert not differs(np.int64([1000]), np.int64([1001]), tolerance=1.0)


def test_mistakes_are_named(module: Module, model: ModelProto) -> None:
    for modes, message in [
        (["reference", "compild"], "did you mean compiled"),
        (["reference"], "at least two"),
        (["reference", "onnxruntime"], "'onnxruntime' is not available; expected one or more of"),
    ]:
        with pytest.raises(RelvmArgumentError, match=message):
            compare(module, X, True, modes=modes)
    with pytest.raises(RelvmArgumentError, match="put it last"):
        compare(model, modes=["onnxruntime", "bytecode"])
    with pytest.raises(RelvmArgumentError, match=r"main takes 1 input \(x\), got 2"):
        compare(model, X, X, modes=["bytecode", "onnxruntime"])
    with pytest.raises(RelvmArgumentError, match="input c: cannot create a random value of type bool"):
        compare(module)
    with pytest.raises(RelvmNameError, match="no public function _pair"):
        compare(module, X, function="_pair")
    with pytest.raises(RelvmNameError, match="no public function other"):
        compare(model, function="other")
    with pytest.raises(RelvmFormatError, match="not an ONNX model"):
        compare(b"not a model")
    with pytest.raises(RelvmArgumentError, match="got int"):
        compare(3)
    for tolerance in (float("nan"), -1, "1"):
        with pytest.raises(RelvmArgumentError, match=r"tolerance is .*, expected a number of at least 0"):
            compare(module, tolerance=tolerance)


def test_random_inputs_of_a_module_have_the_sizes_that_are_given() -> None:
    module = parse_module("def main(x: f32[n, k], i: i64[n]) -> f32[n, k] { return gather(x, i, axis=0) }")
    assert compare(module, dims={"n": 3, "k": 2}).rows[-1].shape == (3, 2)


def test_sizes_that_no_random_input_has_are_errors(tmp_path: Path) -> None:
    text = "def main(x: f32[n]) -> f32[n] { return relu(x) }"
    (tmp_path / "m.relvm").write_text(text)
    for model in (parse_module(text), tmp_path / "m.relvm"):
        assert compare(model, dims={"n": 3}).rows[-1].shape == (3,)
        with pytest.raises(RelvmNameError, match="dims: no input has a dimension m"):
            compare(model, dims={"m": 3})
        with pytest.raises(
            RelvmArgumentError, match="dims: n: the sizes apply only to random inputs, but inputs are given"
        ):
            compare(model, np.ones(3, np.float32), dims={"n": 3})


def test_without_onnxruntime_it_is_said_what_to_install(model: ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RelvmUnsupportedError, match=r"pip install 'relvm\[explore\]'"):
        compare(model, modes=["reference", "onnxruntime"])
    assert compare(model).modes == ("reference", "bytecode", "compiled")


def test_the_command_prints_the_table_and_says_by_its_status_whether_they_agree(
    model: ModelProto, tmp_path: Path, capsys: pytest.CaptureFixture, swap: Callable
) -> None:
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert main(["compare", str(tmp_path / "m.onnx"), "--dim", "n=2"]) == 0
    assert "compiled, onnxruntime against reference" in capsys.readouterr().out
    (tmp_path / "m.relvm").write_text("def main(x: f32[n, 4]) -> f32[n, 4] {\n y = relu(x)\n return exp(y)\n}")
    np.save(tmp_path / "x.npy", X[:1])
    swap("relu", lambda x: x)
    command = ["compare", str(tmp_path / "m.relvm"), "--input", f"x={tmp_path / 'x.npy'}"]
    assert main(command) == 1
    assert "the first is y" in capsys.readouterr().out
    assert main([*command, "--modes", "bytecode,compiled"]) == 0


def test_a_file_of_text_is_compared(tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text("def main(x: f32[4]) -> f32[4] { return softmax(relu(x), axis=0) }")
    compared = compare(tmp_path / "model.relvm")
    assert compared.agrees
    assert compared.rows[-1].origin.endswith("model.relvm:1:40")
