"""Models with names that clash with Python's, outputs that are the same value, and closed models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import make_model, onnx

import relvm
from relvm import vm
from relvm.cli import main
from relvm.errors import RelvmArgumentError, RelvmError, RelvmNameError
from relvm.frontend.onnx import from_onnx

node = onnx.helper.make_node
X, Y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)


def load(model: onnx.ModelProto) -> relvm.Model:
    return relvm.load_model(model.SerializeToString(), exec_mode="bytecode")


def test_inputs_named_self_and_class() -> None:
    model = load(
        make_model([node("Sub", ["self", "class"], ["y"])], [(n, "float32", [2]) for n in ("self", "class")], ["y"])
    )
    inputs = {"self": X, "class": Y}
    np.testing.assert_array_equal(model(**inputs), X - Y)
    np.testing.assert_array_equal(model.run(None, inputs)[0], X - Y)
    np.testing.assert_array_equal(
        model.machine()["main"](**{"self": X, model.machine()["main"].parameters[1]: Y}), X - Y
    )
    assert model.profile(**inputs).rows


def test_messages_have_the_names_of_the_model(tmp_path: Path) -> None:
    inputs = [("input.1", "float32", ["n", 2]), ("b:0", "float32", ["n", 2])]
    model = load(make_model([node("Add", ["input.1", "b:0"], ["out/1"])], inputs, ["out/1"]))
    a, b = np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32)
    machine = model.machine()
    for call in (model, machine["main"]):
        np.testing.assert_array_equal(call(**{"b:0": b, "input.1": a}), b)
        for named, message in (
            ({"input.1": a, "b:0": np.zeros((1, 3), np.float32)}, "main: argument b:0: expected dimension 1 to be 2"),
            ({"input.1": a, "b:0": np.zeros((2, 2), np.float32)}, "main: argument b:0: expected dimension 0 to be 1"),
            ({"input.1": a, "b:0": np.zeros((1, 2))}, "main: argument b:0: expected a tensor"),
            ({"input.1": a, "b:0": object()}, "main: argument b:0: "),
            ({"input.1": a}, "missing argument b:0: main has the parameters input.1, b:0"),
            ({"input.1": a, "b.0": b}, "unknown argument b.0: main has .*; did you mean b:0?"),
            ({"input.1": a, "b_0": b}, "unknown argument b_0: main has .*; did you mean b:0"),
        ):
            with pytest.raises(RelvmError, match=message):
                call(**named)
    with pytest.raises(RelvmNameError, match=r"run: no output y; expected one of out/1$"):
        model.run(["y"], {})


@pytest.mark.parametrize("nodes", [
    [node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])],
    [node("Relu", ["x"], ["y"]), node("Identity", ["y"], ["z"])],
], ids=["of an input", "of a result"])  # fmt: skip
def test_results_share_no_memory(nodes: list[onnx.NodeProto]) -> None:
    model = load(make_model(nodes, [("x", "float32", [2])], ["y", "z"]))
    y, z = model.run(None, {"x": X})
    y[0] = 99
    assert z[0] == 1 and X[0] == 1


def test_a_closed_model_runs_nothing() -> None:
    model = load(make_model([node("Relu", ["x"], ["y"])], [("x", "float32", [2])], ["y"]))
    model.close()
    for use in (lambda: model(X), lambda: model.profile(X), model.machine):
        with pytest.raises(RelvmArgumentError, match="the model is closed"):
            use()


def test_names_do_not_forge_lines_of_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = make_model([node("Relu", ["x"], ["y"])], [("x", "float32", ["n\nunsupported: none"])], ["y"])
    onnx.save(model, tmp_path / "model.onnx")
    assert main(["info", str(tmp_path / "model.onnx")]) == 0
    assert capsys.readouterr().out.count("\nunsupported: none\n") == 1


def test_a_file_of_an_earlier_build_is_called_by_the_names_of_the_model() -> None:
    """In earlier builds, parameters had names as in the text form, and only the attributes had the model's names."""
    inputs = [("input.1", "float32", [2]), ("b:0", "float32", [2])]
    program = vm.build(from_onnx(make_model([node("Sub", ["input.1", "b:0"], ["y"])], inputs, ["y"]))).program
    stated = program.signature["main"]
    params = [each | {"name": name} for each, name in zip(stated["params"], ("input_1", "b_0"), strict=True)]
    functions = [replace(f, parameters=("input_1", "b_0")) if f.name == "main" else f for f in program.functions]
    earlier = replace(program, functions=tuple(functions), signature={"main": stated | {"params": params}})
    model = relvm.Model(vm.Executable.from_program(earlier))
    for named in ({"b:0": Y, "input.1": X}, {"b_0": Y, "input_1": X}):
        np.testing.assert_array_equal(model(**named), X - Y)
        assert model.profile(**named).rows
