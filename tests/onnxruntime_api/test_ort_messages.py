"""Messages of relvm.onnxruntime contain no control characters, whatever the names in a model and its inputs are."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import relvm.onnxruntime as ort
from relvm.onnxruntime.errors import InvalidArgument

NAME = "a\x1b[31m\nforged\u202eb"
SAFE_CALLS = ("terminal", "len", "type")
# Values that contain no names, or were escaped before.  `error` is an exception of relvm or of this package, or an
# OSError, whose text contains the path as a Python literal.
SAFE_VALUES = {
    *("error", "shown", "expected", "got", "lines", "missing", "list(inputs)", "wanted", "reason"),
    *("self.owner", "self.name", "__name__", "', '.join(PROVIDERS)", "element_type", "dtype"),
    *("array.dtype", "array.shape", "np_arr.dtype", "np_arr.shape", "target.dtype", "target.shape", "self._name"),
}


def test_all_messages_escape_names() -> None:
    """Every value in the text of an exception or warning is escaped, a Python literal, or in the list above."""
    unsafe, count = [], 0
    for path in sorted(Path(ort.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_warning = isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
            if not (isinstance(node, ast.Raise) or is_warning):
                continue
            for value in ast.walk(node):
                if not isinstance(value, ast.FormattedValue):
                    continue
                count += 1
                text = ast.unparse(value.value)
                is_call = isinstance(value.value, ast.Call) and ast.unparse(value.value.func) in SAFE_CALLS
                is_safe = value.conversion == ord("r") or is_call or text in SAFE_VALUES or text.endswith(".__name__")
                if not is_safe:
                    unsafe.append(f"{path.name}:{value.lineno}: {text}")
    assert not unsafe and count > 40


@pytest.fixture(scope="module")
def session() -> ort.InferenceSession:
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(NAME, 1, [2, f"n{NAME}"]),
        helper.make_tensor_sequence_value_info(f"s{NAME}", 1, None),
    ]
    outputs = [helper.make_tensor_value_info(f"y{NAME}", 1, None), helper.make_tensor_value_info("z", 7, [])]
    nodes = [
        helper.make_node("Exp", [NAME], [f"y{NAME}"]),
        helper.make_node("SequenceLength", [f"s{NAME}"], ["z"]),
    ]
    graph = helper.make_graph(nodes, NAME, inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


X, S = np.zeros((2, 3), np.float32), [np.zeros(1, np.float32)]
MISTAKES: dict[str, Callable[[ort.InferenceSession], Any]] = {
    "unknown input": lambda session: session.run(None, {f"{NAME}2": X}),
    "unknown input beside the inputs": lambda session: session.run(None, {NAME: X, f"s{NAME}": S, f"{NAME}2": X}),
    "missing input": lambda session: session.run(None, {NAME: X}),
    "unknown output": lambda session: session.run([f"{NAME}3"], {NAME: X, f"s{NAME}": S}),
    "rank": lambda session: session.run(None, {NAME: X[0], f"s{NAME}": S}),
    "dimensions": lambda session: session.run(None, {NAME: X.T, f"s{NAME}": S}),
    "dtype": lambda session: session.run(None, {NAME: X.astype(np.int8), f"s{NAME}": S}),
    "list": lambda session: session.run(None, {NAME: [["a", NAME], ["b"]], f"s{NAME}": S}),
    "object": lambda session: session.run(None, {NAME: object(), f"s{NAME}": S}),
    "class": lambda session: session.run(None, {NAME: X, f"s{NAME}": type(NAME, (), {})()}),
    "no sequence": lambda session: session.run(None, {NAME: X, f"s{NAME}": X}),
    "binding of an unknown input": lambda session: session.io_binding().bind_cpu_input(f"{NAME}2", X),
    "binding of an unknown output": lambda session: session.io_binding().bind_output(f"{NAME}2"),
    "unknown attribute": lambda session: getattr(session, NAME),
    "missing file": lambda session: ort.InferenceSession(f"/nowhere/{NAME}.onnx"),
    "bytes that are no model": lambda session: ort.InferenceSession(NAME.encode()),
    "unknown entry": lambda session: ort.SessionOptions().get_session_config_entry(NAME),
    "value of an entry": lambda session: ort.SessionOptions().add_session_config_entry(NAME, 3),
    "device": lambda session: ort.OrtValue.ortvalue_from_numpy(X, NAME),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_message_is_printable(mistake: Callable, session: ort.InferenceSession) -> None:
    with pytest.raises(Exception) as raised:
        mistake(session)
    for line in str(raised.value).split("\n"):
        assert line.isprintable() and not line.startswith("forged")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.onnx"
    path.write_bytes(b"\xff" * 20)
    with pytest.raises(Exception, match="Load model failed") as raised:
        ort.InferenceSession(path)
    assert str(raised.value).isprintable()


def test_warnings_and_representations_are_printable() -> None:
    x = onnx.helper.make_tensor_value_info(NAME, 1, [2])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Exp", [NAME], ["y"])], "g", [x], [])
    graph.output.append(onnx.helper.make_tensor_value_info("y", 1, [2]))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = ort.InferenceSession(model.SerializeToString(), providers=[NAME, "CPUExecutionProvider"])
    assert caught and all(str(each.message).isprintable() for each in caught)
    assert all(repr(each).isprintable() for each in session.get_inputs() + session.get_outputs())


def test_a_run_that_fails_names_the_node(tmp_path: Path) -> None:
    helper = onnx.helper
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="activation"),
        helper.make_node("Gather", ["r", "i"], ["g"], name="pick_rows"),
        helper.make_node("Abs", ["g"], ["y"], name="absolute"),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, ["n", 3]), helper.make_tensor_value_info("i", 7, ["k"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, ["k", 3])])
    for name in ("first.onnx", "second.onnx"):  # the second build is from the cache
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / name)
        with pytest.raises(InvalidArgument) as caught:
            session = ort.InferenceSession(tmp_path / name)
            session.run(None, {"x": np.ones((4, 3), np.float32), "i": np.array([1, 7])})
        assert "gather: index 7 is outside axis 0 of size 4" in str(caught.value)
        assert "(node 'pick_rows' (Gather, opset 18))" in str(caught.value)
        assert ".onnx" not in str(caught.value)
