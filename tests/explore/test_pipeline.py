"""Tests of the stages of a model and the source locations of their lines."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from relvm import ops
from relvm.cli import main
from relvm.cli.show import STAGES
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmIndexError, RelvmNameError
from relvm.explore import Exploration, explore
from relvm.frontend.script import module_of, script
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module
from relvm.ir.printer import print_module
from relvm.ir.types import TensorType
from relvm.passes.pipeline import build_pipeline

TEXT = """\
def main(x: f32[n, 4], c: bool) -> f32[n, 4] {
  a = softmax(add(x, x), axis=1)
  b = if c then { return relu(a) } else { return exp(negative(a)) }
  k = dim(n * 2) + 1
  return @f(b, k)
}
def f(x: f32[n, 4], k: i64) -> f32[n, 4] { return if k > 3 then @f(add(x, x), k - 2) else x }
"""


@pytest.fixture(scope="module", params=["bytecode", "compiled"])
def explored(request: pytest.FixtureRequest) -> Exploration:
    return explore(parse_module(TEXT, "model.relvm"), exec_mode=request.param)


def at(explored: Exploration, stage: str, words: str) -> int:
    """Return the number of the first line of a stage that contains `words`."""
    return next(number for number, line in enumerate(explored[stage].lines, 1) if words in line.text)


def texts(explored: Exploration, stage: str, found: dict[str, list[int]]) -> str:
    return "\n".join(explored[stage].lines[number - 1].text.strip() for number in found[stage])


def test_there_is_a_stage_for_every_pass_and_what_is_printed(explored: Exploration) -> None:
    last = "bytecode" if "bytecode" in explored.names else "c"
    passes = [step.name for step in build_pipeline("c")]
    assert list(explored.names[: len(passes) + 2]) == ["given", *passes, "routine"]
    assert [name for name in STAGES if name in explored.names] == list(explored.names)  # as in `relvm show`
    assert set(STAGES) - set(explored.names) <= {"bytecode", "assembly"}
    assert last in explored.names and "c" in explored.names
    assert explored["given"].text == print_module(parse_module(TEXT))
    assert all(view.about and view.seconds >= 0 for view in explored.views)


def test_stages_say_whether_they_changed_anything(explored: Exploration) -> None:
    for before, after in zip(explored.views, explored.views[1:], strict=False):
        assert after.changed == (before.text != after.text)
    assert not explored["pack_weights"].changed
    assert explored.diff("fold_scales", "pack_weights") == ""
    difference = explored.diff("decompose", "fuse_ops")
    assert "-  value: f32[n, 4] = add(x, x)" in difference
    assert "+  a: f32[n, 4] = fused {" in difference


def test_a_line_is_followed_down_to_what_runs(explored: Exploration) -> None:
    found = explored.trace("given", at(explored, "given", "relu"))
    assert "relu(a)" in texts(explored, "fuse_ops", found)
    assert 'call_cpacked("relu_f32"' in texts(explored, "routine", found)
    assert "kernel_relu_f32(" in texts(explored, "c", found)
    if "bytecode" in explored.names:
        assert "= relu_f32" in texts(explored, "bytecode", found) or "relu_f32(" in texts(explored, "bytecode", found)
    else:
        assert "rvm_kernel(ctx" in texts(explored, "c", found)


def test_a_fused_kernel_comes_from_all_that_it_computes(explored: Exploration) -> None:
    line = at(explored, "routine", 'call_cpacked("negative_exp_f32"')
    found = explored.trace("routine", line)
    assert "value_1: f32[n, 4] = negative(a)" in texts(explored, "decompose", found)
    assert "exp(value_1)" in texts(explored, "decompose", found)
    assert texts(explored, "given", found).startswith("b = if c then")


def test_scalars_and_calls_are_followed(explored: Exploration) -> None:
    found = explored.trace("given", at(explored, "given", "k = dim"))
    assert "add_i64" in texts(explored, "routine", found)
    found = explored.trace("given", at(explored, "given", "return @f"))
    assert 'tail_call("f"' in texts(explored, "routine", found)


def test_no_mark_is_left_in_c(explored: Exploration) -> None:
    assert not any(character in explored["c"].text for character in "\x01\x02")


@pytest.mark.parametrize("line", [0, 1000])
def test_a_line_that_is_not_there_is_an_error(explored: Exploration, line: int) -> None:
    with pytest.raises(RelvmIndexError, match=f"stage given: line {line} is out of range; the stage has 8 lines"):
        explored.trace("given", line)


def test_what_is_not_there_is_an_error(explored: Exploration, tmp_path: Path) -> None:
    with pytest.raises(RelvmNameError, match=r"no stage fuse_op; .*did you mean fuse_ops"):
        explored["fuse_op"]
    with pytest.raises(RelvmArgumentError, match="exec_mode='jit': expected one of bytecode, compiled"):
        explore(parse_module(TEXT), exec_mode="jit")
    with pytest.raises(RelvmArgumentError, match="target='cuda'"):
        explore(parse_module(TEXT), target="cuda")
    (tmp_path / "model.txt").write_text(TEXT)
    with pytest.raises(RelvmFormatError, match="expected a model"):
        explore(tmp_path / "model.txt")


def test_the_numpy_target_has_no_c() -> None:
    explored = explore(parse_module(TEXT), target="numpy")
    assert explored.names[-2:] == ("routine", "bytecode")
    assert "reference.relu" in explored["bytecode"].text


def built() -> tuple[Module, int]:
    builder = Builder()
    with builder.function("main", [("x", TensorType(F32, (4,)))]) as (x,):
        y = builder.op("relu", x)
        line = inspect.currentframe().f_lineno - 1
        builder.ret(y)
    return builder.module(), line


def test_what_a_program_builds_comes_from_its_lines() -> None:
    module, line = built()
    explored = explore(module)
    assert explored["given"].lines[at(explored, "given", "relu") - 1].origins == (f"{__file__}:{line}",)


@script
def scripted(x: "f32[4]") -> "f32[4]":  # noqa: F821, UP037
    y = ops.relu(x)
    return ops.add(y, y)


def test_what_a_script_says_comes_from_its_lines() -> None:
    explored = explore(module_of(scripted))
    (origin, *_) = explored["given"].lines[at(explored, "given", "relu") - 1].origins
    file, line, _ = origin.rsplit(":", 2)
    assert Path(file).read_text().split("\n")[int(line) - 1].strip() == "y = ops.relu(x)"


def test_a_model_comes_from_its_nodes(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        onnx.helper.make_node("Relu", ["y"], ["z"], name="bend"),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 4]) for name in ("x", "z")]
    weights = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    graph = onnx.helper.make_graph(nodes, "graph", values[:1], values[1:], [weights])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "model.onnx")
    explored = explore(tmp_path / "model.onnx", dims={"batch": 2})
    assert explored.title == "model.onnx"
    (run,) = (line for line in explored["insert_kills"].lines if " = run " in line.text)
    assert ["'product'" in origin or "'bend'" in origin for origin in run.origins] == [True, True]


def test_sizes_for_a_text_or_a_module_are_errors(tmp_path: Path) -> None:
    text = "def main(x: f32[n]) -> f32[n] { return relu(x) }"
    (tmp_path / "m.relvm").write_text(text)
    for model in (tmp_path / "m.relvm", parse_module(text)):
        with pytest.raises(RelvmArgumentError, match="dims: n"):
            explore(model, dims={"n": 3})


def test_the_list_of_stages_is_printed(explored: Exploration, capsys: pytest.CaptureFixture) -> None:
    explored.show()
    printed = capsys.readouterr().out
    assert all(name in printed for name in explored.names)


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    command = ["show", str(tmp_path / "model.relvm"), "--html", str(tmp_path / "out.html"), "--exec-mode", "compiled"]
    assert main(command) == 0
    assert "stages" in capsys.readouterr().err
    page = (tmp_path / "out.html").read_text()
    assert "<title>model.relvm</title>" in page
    assert "http" not in page  # the page loads nothing from the network


def test_a_value_lights_only_its_statements_in_the_code_of_a_kernel() -> None:
    text = "def main(x: f32[n, 4]) -> f32[n, 4] {\n  a = add(x, x)\n  return exp(negative(a))\n}"
    explored = explore(parse_module(text, "model.relvm"))
    lit = texts(explored, "c", explored.trace("given", 2)).split("\n")
    assert [line for line in lit if line.startswith("float ")] == ["float v_a = x_[i] + x_[i];"]
    assert len(lit) < len(explored["c"].lines) / 2 and not any("rvm_kernel_check" in line for line in lit)
    in_bytecode = texts(explored, "kernels", explored.trace("given", 2))
    assert "add_f32" in in_bytecode and "exp_f32" not in in_bytecode.split("\n", 1)[1]
    sum_ = at(explored, "c", "float v_a = ")
    assert explored["c"].lines[sum_ - 1].origins == ("model.relvm:2:3", "model.relvm:2:7")
