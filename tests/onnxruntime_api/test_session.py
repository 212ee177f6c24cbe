"""Tests of relvm.onnxruntime: calls have the same results as in onnxruntime, or raise the same exceptions."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime_api.models import (
    GATHER,
    HALVES,
    RESHAPE,
    SCALED,
    STRINGS,
    TWO,
    UNDEFINED,
    UNKNOWN,
    WRONG_SHAPES,
    model,
    outcome,
    sequences,
    with_initializer,
)

from relvm import onnxruntime as ours

theirs: Any = pytest.importorskip("onnxruntime")
theirs.set_default_logger_severity(4)

pytestmark = pytest.mark.usefixtures("cache")

A = np.arange(6, dtype=np.float32).reshape(3, 2)
V = np.float32([3, 5])
SEQUENCE, ITEM = sequences()


def run(content: bytes, feed: Any, names: Any = None) -> Callable[[Any], Any]:
    """Return a function that runs a model with either library."""
    return lambda ort: ort.InferenceSession(content).run(names, feed(ort) if callable(feed) else feed)


def read_only() -> np.ndarray:
    array = A.copy()
    array.flags.writeable = False
    return array


def terminated(ort: Any) -> Any:
    options = ort.RunOptions()
    options.terminate = True
    return ort.InferenceSession(TWO).run(None, {"x": A, "y": A}, options)


def arguments(content: bytes) -> Callable[[Any], Any]:
    def describe(ort: Any) -> Any:
        session = ort.InferenceSession(content)
        sides = session.get_inputs(), session.get_outputs(), session.get_overridable_initializers()
        return [[(each.name, each.type, each.shape) for each in side] for side in sides]

    return describe


def metadata(ort: Any) -> Any:
    meta = ort.InferenceSession(with_initializer(8)).get_modelmeta()
    texts = meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description
    return *texts, meta.version, meta.custom_metadata_map


def private_attributes(content: bytes) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            Path(file.name).write_bytes(content)
            sessions = [ort.InferenceSession(each) for each in (content, file.name, Path(file.name))]
            paths = [each._model_path and each._model_path == file.name for each in sessions]
        sides = sessions[0]._inputs_meta, sessions[0]._outputs_meta
        return paths, [[(each.name, each.type, each.shape) for each in side] for side in sides]

    return act


def override(content: bytes, value: Any) -> Callable[[Any], Any]:
    return run(content, {"x": V, "b": value})


def fixed(rows: int) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("n", 3)
        session = ort.InferenceSession(TWO, options)
        return session.get_inputs()[0].shape, session.run(None, {"x": A[:rows], "y": A[:rows]})

    return act


def asynchronous(feed: Any) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        done, got = threading.Event(), []

        def callback(results: Any, data: Any, message: str) -> None:
            got.append((results, data, bool(message)))
            done.set()

        session = ort.InferenceSession(TWO)
        session.run_async(["z"], feed, callback, "data")
        assert done.wait(60)
        return got

    return act


CASES: dict[str, Callable[[Any], Any]] = {
    "all outputs": run(TWO, {"x": A, "y": A}),
    "an empty list of outputs": run(TWO, {"x": A, "y": A}, []),
    "one output": run(TWO, {"x": A, "y": A}, ["w"]),
    "outputs in another order": run(TWO, {"x": A, "y": A}, ("w", "z")),
    "an output twice": run(TWO, {"x": A, "y": A}, ["w", "w"]),
    "a missing input": run(TWO, {"x": A}),
    "an unknown input": run(TWO, {"x": A, "y": A, "q": A}),
    "an unknown output": run(TWO, {"x": A, "y": A}, ["nope"]),
    "outputs as a text": run(TWO, {"x": A, "y": A}, "w"),
    "another element type": run(TWO, {"x": A.astype(float), "y": A}),
    "another rank": run(TWO, {"x": A[0], "y": A}),
    "another fixed size": run(TWO, {"x": np.ones((3, 4), np.float32), "y": A}),
    "different sizes of one dimension": run(TWO, {"x": A[:1], "y": A}),
    "lists": run(TWO, {"x": [[1.0, 2.0]], "y": [[1, 2]]}),
    "a list of arrays": run(TWO, {"x": [A[0]], "y": [A[1]]}),
    "a ragged list": run(TWO, {"x": [[1.0], [1.0, 2.0]], "y": A}),
    "a number": run(TWO, {"x": 1.0, "y": A}),
    "a NumPy number": run(TWO, {"x": np.float32(1), "y": A}),
    "a scalar": run(SCALED, {"x": V, "s": np.array(2, np.float32)}),
    "an array of one element as scalar": run(SCALED, {"x": V, "s": np.float32([2])}),
    "a list of one number as scalar": run(SCALED, {"x": V, "s": [2.0]}),
    "a number as scalar": run(SCALED, {"x": V, "s": 2.0}),
    "a strided array": run(TWO, {"x": np.ones((2, 3), np.float32).T, "y": A[::-1]}),
    "a read-only array": run(TWO, {"x": read_only(), "y": A}),
    "an OrtValue": run(TWO, lambda ort: {"x": ort.OrtValue.ortvalue_from_numpy(A), "y": A}),
    "a list as feed": run(TWO, [A, A]),
    "no feed": run(TWO, None),
    "no rows": run(TWO, {"x": A[:0], "y": A[:0]}),
    "strings": run(STRINGS, {"x": np.array(["a", "bü"], object)}),
    "strings of fixed length": run(STRINGS, {"x": np.array(["a", "bü"])}),
    "objects as strings": run(STRINGS, {"x": np.array([1, None, 2.5, True, b"x", "y", np.nan], object)}),
    "a list of strings": run(STRINGS, {"x": ["a", "bü"]}),
    "16-bit floats": run(HALVES, {"x": np.float16([1, 2])}),
    "a sequence as output": run(SEQUENCE, {"x": V}),
    "a sequence as input": run(ITEM, {"s": [V, 2 * V], "i": np.array(1)}),
    "a tuple as sequence": run(ITEM, {"s": (V, 2 * V), "i": np.array(1)}),
    "an index outside of a sequence": run(ITEM, {"s": [V, 2 * V], "i": np.array(7)}),
    "an index outside of a tensor": run(GATHER, {"x": V, "i": np.int64([7])}),
    "terminate": terminated,
    "an initializer": run(with_initializer(8), {"x": V}),
    "an overridden initializer": override(with_initializer(8), 2 * V),
    "an overridden initializer of another size": override(with_initializer(8), V[:1]),
    "an overridden constant": override(with_initializer(3), V),
    "arguments": arguments(TWO),
    "arguments, string": arguments(STRINGS),
    "arguments, sequence": arguments(SEQUENCE),
    "arguments, initializer": arguments(with_initializer(8)),
    "arguments, constant": arguments(with_initializer(3)),
    "arguments, wrong shapes of outputs": arguments(WRONG_SHAPES),
    "metadata": metadata,
    "private attributes": private_attributes(TWO),
    "a fixed dimension": fixed(3),
    "another size of a fixed dimension": fixed(2),
    "run_async": asynchronous({"x": A, "y": A}),
    "run_async that fails": asynchronous({"x": A[0], "y": A}),
    "no such file": lambda ort: ort.InferenceSession("/nonexistent.onnx"),
    "bytes of no model": lambda ort: ort.InferenceSession(b"garbage"),
    "no bytes": lambda ort: ort.InferenceSession(b""),
    "a folder": lambda ort: ort.InferenceSession("/"),
    "a number as model": lambda ort: ort.InferenceSession(3),
    "a bytearray as model": lambda ort: ort.InferenceSession(bytearray(TWO)),
    "providers": lambda ort: ort.InferenceSession(TWO, providers=["CPUExecutionProvider"]).get_providers(),
    "no providers": lambda ort: ort.InferenceSession(TWO, providers=None).get_provider_options(),
    "providers with options": lambda ort: ort.InferenceSession(
        TWO, providers=[("CPUExecutionProvider", {"a": 1})]
    ).get_providers(),
    "a node that fails": run(RESHAPE, {"x": A, "s": np.int64([4, 4])}),
    "an unknown operator": lambda ort: ort.InferenceSession(UNKNOWN),
    "an undefined value": lambda ort: ort.InferenceSession(UNDEFINED),
    "a pickled session": lambda ort: pickle.dumps(ort.InferenceSession(TWO)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_does_what_it_does_in_onnxruntime(case: str) -> None:
    assert outcome(lambda: CASES[case](ours)) == outcome(lambda: CASES[case](theirs))


def test_a_malformed_provider() -> None:  # onnxruntime only prints a message
    with pytest.raises(ValueError, match="must be either strings or"):
        ours.InferenceSession(TWO, providers=[3])
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available"):
        ours.InferenceSession(TWO, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])


def test_options_of_another_type() -> None:
    with pytest.raises(TypeError, match="sess_options: expected a SessionOptions, got str"):
        ours.InferenceSession(TWO, "CPUExecutionProvider")


def test_arrays_in_another_byte_order() -> None:  # onnxruntime computes wrong results
    (z, _) = ours.InferenceSession(TWO).run(None, {"x": A.astype(">f4"), "y": A})
    np.testing.assert_array_equal(z, 2 * A)


def test_outputs_that_nobody_asks_for_are_not_computed() -> None:
    parts = model("g (float[n] x, int64[m] i) => (float[n] z, float[m] w) { z = Exp(x)  w = Gather(x, i) }")
    (z,) = ours.InferenceSession(parts).run(["z"], {"x": V, "i": np.int64([9])})  # computing w would fail
    np.testing.assert_allclose(z, np.exp(V), rtol=1e-6)


def test_results_own_their_memory_and_are_writable() -> None:
    constant = model(
        "g (float[2] x) => (float[2] y, float[2] c) { y = Identity(x)  c = Constant<value = float[2] {1, 2}>() }"
    )
    session, x = ours.InferenceSession(constant), V.copy()
    y, c = session.run(None, {"x": x})
    y[:], c[:] = 0, 0
    assert x.tolist() == V.tolist()
    del session
    assert ours.InferenceSession(constant).run(["c"], {"x": x})[0].tolist() == [1, 2]


class Pickled(ours.InferenceSession):
    """A session that can be pickled, as some packages define it."""

    def __getstate__(self) -> dict[str, bytes]:
        return {"content": TWO}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self.__init__(state["content"])  # type: ignore[misc]


def test_a_subclass_may_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(Pickled(TWO)))
    np.testing.assert_array_equal(copy.run(["z"], {"x": A, "y": A})[0], 2 * A)


def test_threads_share_a_session() -> None:
    session = ours.InferenceSession(TWO)

    def sums(number: int) -> float:
        x = np.full((4, 2), number, np.float32)
        return float(session.run(["z"], {"x": x, "y": x})[0].sum())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(sums, range(200))) == [16 * number for number in range(200)]


def test_a_session_runs_in_a_forked_process() -> None:
    session = ours.InferenceSession(TWO)
    session.run(None, {"x": A, "y": A})
    process = os.fork()
    if process == 0:
        right = session.run(["z"], {"x": A, "y": A})[0].tolist() == (2 * A).tolist()
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_terminate_ends_a_run_on_another_thread() -> None:
    endless = model(
        "g (int64 n, bool c, float[1] x) => (float[1] y) { y = Loop(n, c, x) <body = "
        "b (int64 i, bool c0, float[1] x0) => (bool c1, float[1] x1) { c1 = Identity(c0)  x1 = Add(x0, x0) }> }"
    )
    session, options = ours.InferenceSession(endless), ours.RunOptions()
    timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
    timer.start()
    feed = {"n": np.array(2**62), "c": np.array(True), "x": V[:1]}
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.Fail, match="terminate flag"):
        session.run(None, feed, options)
    options.terminate = False
    assert session.run(None, feed | {"n": np.array(2)}, options)[0].tolist() == [12]


def test_profiles_are_traces(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = ours.InferenceSession(TWO, options)
    session.run(None, {"x": A, "y": A})
    assert session.get_profiling_start_time_ns() > 0
    name = session.end_profiling()
    events = json.loads(Path(name).read_text())
    assert {event["cat"] for event in events} == {"Session", "Node"}
    assert all(event["dur"] >= 0 and event["ph"] == "X" for event in events)
    assert session.end_profiling() == ""


def test_external_data_is_read_beside_the_model(tmp_path: Path) -> None:
    import onnx

    proto = onnx.load_from_string(with_initializer(8))
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(V, "b"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
    assert ours.InferenceSession(tmp_path / "m.onnx").run(None, {"x": V})[0].tolist() == [6, 10]


def test_a_model_file_that_changes_after_the_session_is_created(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(with_initializer(8))
    session = ours.InferenceSession(tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_bytes(with_initializer(7))
    assert session.run(None, {"x": V})[0].tolist() == [4, 7]
    fail = ours.capi.onnxruntime_pybind11_state.Fail
    with pytest.raises(fail, match="has changed since the session was created"):
        session.run(None, {"x": V, "b": V})
    (tmp_path / "m.onnx").unlink()
    with pytest.raises(fail, match="create the session from its bytes"):
        session.run(None, {"x": V, "b": V})


def test_sizes_of_unknown_dimensions_are_ignored() -> None:
    for ort in (theirs, ours):
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_name("nope", 3)
        assert ort.InferenceSession(TWO, options).run(["z"], {"x": A, "y": A})[0].shape == (3, 2)


def test_inputs_without_a_shape() -> None:
    """The model is compiled once for each combination of ranks."""
    content = model(
        "g (float[] x, float[] y) => (float[] s, float[] z) { s = Softmax(x)  t = Transpose(y)  z = Add(s, t) }"
    )
    sessions = [ort.InferenceSession(content) for ort in (ours, theirs)]
    assert [[item.shape for item in session.get_inputs()] for session in sessions] == [[[], []]] * 2
    for x, y in ((V, A.T), (A[:, :1], V), (A, A.T), (V[:1], A[:, :1]), (A[None], A.T[..., None])):
        for names in (None, ["s"]):
            got, expected = (session.run(names, {"x": x, "y": y}) for session in sessions)
            for ours_, theirs_ in zip(got, expected, strict=True):
                np.testing.assert_allclose(ours_, theirs_, rtol=1e-6)
    ranks = {variant.ranks for variant in sessions[0]._models}
    assert ranks == {(("x", m), ("y", n)) for m, n in ((1, 2), (2, 1), (2, 2), (3, 3))}


def test_an_optional_input_may_be_left_out() -> None:
    from onnx import helper

    tensor = helper.make_tensor_type_proto(1, ["n"])
    given = helper.make_value_info("x", helper.make_optional_type_proto(tensor))
    has = helper.make_tensor_value_info("y", 9, [])
    graph = helper.make_graph([helper.make_node("OptionalHasElement", ["x"], ["y"])], "g", [given], [has])
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    session = ours.InferenceSession(content)
    assert [session.run(None, feed)[0].item() for feed in ({"x": V}, {"x": None}, {})] == [True, False, False]
