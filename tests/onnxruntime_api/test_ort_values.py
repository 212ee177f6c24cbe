"""Tests of OrtValue, IOBinding, options and `install`, compared with onnxruntime."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime_api.models import STRINGS, TWO, outcome, sequences

from relvm import onnxruntime as ours
from relvm.errors import RelvmBusyError
from relvm.onnxruntime import options as options_module

theirs: Any = pytest.importorskip("onnxruntime")

pytestmark = pytest.mark.usefixtures("cache")

A = np.arange(6, dtype=np.float32).reshape(3, 2)


def described(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that creates an OrtValue with either library, and returns the results of its methods."""

    def describe(ort: Any) -> Any:
        value = make(ort)
        tensor = [value.shape(), value.element_type(), value.tensor_size_in_bytes()] if value.is_tensor() else []
        return [value.data_type(), value.device_name(), value.has_value(), value.is_tensor_sequence(), *tensor]

    return describe


def updated(ort: Any) -> Any:
    value = ort.OrtValue.ortvalue_from_numpy(A.copy())
    value.update_inplace(2 * A)
    return value.numpy()


def bound(ort: Any) -> Any:
    session, target = ort.InferenceSession(TWO), np.zeros((3, 2), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", A)
    binding.bind_input("y", "cpu", 0, np.float32, A.shape, A.ctypes.data)
    binding.bind_output("w")
    binding.bind_output("z", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    first = target.copy()
    copies = binding.copy_outputs_to_cpu()
    values = [(value.data_type(), value.shape()) for value in binding.get_outputs()]
    binding.clear_binding_outputs()
    held = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_ortvalue_output("z", held)
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(3 * A))
    session.run_with_iobinding(binding)
    return first, copies, values, held.numpy()


def bind(*steps: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        session = ort.InferenceSession(TWO)
        binding = session.io_binding()
        for step in steps:
            step(binding)
        session.run_with_iobinding(binding)

    return act


def with_ort_values(ort: Any) -> Any:
    value = ort.OrtValue.ortvalue_from_numpy(A)
    return [each.numpy() for each in ort.InferenceSession(TWO).run_with_ort_values(["w"], {"x": value, "y": value})]


def sequence_value(ort: Any) -> Any:
    value = ort.OrtValue.ortvalue_from_numpy(A[0])
    return ort.InferenceSession(sequences()[0]).run_with_ort_values(None, {"x": value})[0]


def session_options(**settings: Any) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        options = ort.SessionOptions()
        for name, value in settings.items():
            setattr(options, name, value(ort) if callable(value) else value)
        got = [getattr(options, name) for name in settings]
        return [int(each) if hasattr(each, "name") else each for each in got]

    return act


def defaults(kind: str) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        made = getattr(ort, kind)()
        names = [name for name in dir(theirs.SessionOptions()) + dir(theirs.RunOptions()) if not name.startswith("_")]
        values = {name: getattr(made, name) for name in names if hasattr(made, name)}
        plain = {name: value for name, value in values.items() if not callable(value)}
        return {name: int(value) if hasattr(value, "name") else value for name, value in plain.items()}

    return act


def entry(kind: str, add: str, get: str) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        made = getattr(ort, kind)()
        getattr(made, add)("a.b", "c")
        return getattr(made, get)("a.b"), outcome(lambda: getattr(made, get)("missing"))

    return act


CASES: dict[str, Callable[[Any], Any]] = {
    "of an array": described(lambda ort: ort.OrtValue.ortvalue_from_numpy(A)),
    "of a shape": described(lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)),
    "of a shape and a number": described(lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2, 3], 10)),
    "with another type": described(lambda ort: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(A.view(np.int32), 1)),
    "of another type": lambda ort: ort.OrtValue.ortvalue_from_numpy(np.zeros(2, "datetime64[s]")),
    "an unknown bound input": bind(lambda binding: binding.bind_cpu_input("nope", A)),
    "a bound input of another rank": bind(
        lambda binding: binding.bind_cpu_input("x", A[0]),
        lambda binding: binding.bind_cpu_input("y", A),
        lambda binding: binding.bind_output("z"),
    ),
    "a sequence as an array": lambda ort: sequence_value(ort).numpy(),
    "update_inplace": updated,
    "run_with_ort_values": with_ort_values,
    "bound": bound,
    "an unknown bound output": bind(lambda binding: binding.bind_output("nope")),
    "a bound output without a shape": bind(lambda binding: binding.bind_output("z", buffer_ptr=1)),
    "options": defaults("SessionOptions"),
    "options of a run": defaults("RunOptions"),
    "threads": session_options(intra_op_num_threads=2, inter_op_num_threads=3),
    "levels": session_options(
        graph_optimization_level=lambda ort: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
        execution_mode=lambda ort: ort.ExecutionMode.ORT_PARALLEL,
    ),
    "flags": session_options(enable_mem_pattern=False, enable_cpu_mem_arena=0, log_severity_level=3, logid="me"),
    "a text as a number": session_options(intra_op_num_threads="x"),
    "a number as a level": session_options(graph_optimization_level=99),
    "an unknown option": session_options(foo=1),
    "entries": entry("SessionOptions", "add_session_config_entry", "get_session_config_entry"),
    "entries of a run": entry("RunOptions", "add_run_config_entry", "get_run_config_entry"),
    "device": lambda ort: (ort.get_device(), ort.get_version_string() == ort.__version__, ort.has_collective_ops()),
    "enumerations": lambda ort: [
        {name: int(value) for name, value in getattr(ort, kind).__members__.items()}
        for kind in ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtMemType", "OrtAllocatorType")
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_a_call_does_what_it_does_in_onnxruntime(case: str) -> None:
    assert outcome(lambda: CASES[case](ours)) == outcome(lambda: CASES[case](theirs))


def test_strings_and_sequences_as_ort_values() -> None:  # onnxruntime does not support all of these methods
    value = ours.OrtValue.ortvalue_from_numpy(np.array(["a"], object))
    (strings,) = ours.InferenceSession(STRINGS).run_with_ort_values(None, {"x": value})
    assert (strings.data_type(), strings.shape(), strings.element_type()) == ("tensor(string)", [1], 8)
    sequence = sequence_value(ours)
    assert (sequence.data_type(), sequence.is_tensor(), sequence.is_tensor_sequence()) == (
        "seq(tensor(float))",
        False,
        True,
    )


def test_an_ort_value_shares_memory() -> None:
    array = A.copy()
    value = ours.OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    array[0, 0] = 9
    assert np.from_dlpack(value)[0, 0] == ours.OrtValue.from_dlpack(value).numpy()[0, 0] == 9


def test_bound_memory_must_fit_the_result() -> None:
    target = np.zeros((2, 2), np.float32)
    binding = (session := ours.InferenceSession(TWO)).io_binding()
    binding.bind_cpu_input("x", A)
    binding.bind_cpu_input("y", A)
    binding.bind_output("z", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    with pytest.raises(
        Exception, match=r"output z: expected float32 of shape \(2, 2\), as bound, got float32 of shape"
    ):
        session.run_with_iobinding(binding)


def test_without_optimization_each_operator_has_a_kernel(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    options.graph_optimization_level = ours.GraphOptimizationLevel.ORT_DISABLE_ALL
    np.testing.assert_array_equal(ours.InferenceSession(TWO, options).run(["z"], {"x": A, "y": A})[0], 2 * A)


def test_an_option_without_effect_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    options_module._logged.discard("SessionOptions.enable_mem_reuse")
    with caplog.at_level(logging.INFO, "relvm.onnxruntime"):
        for _ in range(2):
            ours.SessionOptions().enable_mem_reuse = False
    assert [record.getMessage() for record in caplog.records] == [
        "SessionOptions.enable_mem_reuse has no effect in relvm"
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ours.SessionOptions().register_custom_ops_library("lib.so"),
        lambda: ours.SparseTensor.sparse_coo_from_numpy(A),
        lambda: ours.ModelCompiler(None, "m.onnx"),
        lambda: ours.RunOptions().add_active_adapter(None),
    ],
)
def test_what_relvm_does_not_have_is_rejected(call: Callable[[], Any]) -> None:
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.NotImplemented, match="is not supported by relvm; "):
        call()


PROGRAM = """
import importlib.util, sys
import onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state as state
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
assert InferenceSession is onnxruntime.InferenceSession
for name in ("onnxruntime", "onnxruntime.capi", state.__name__):
    assert importlib.util.find_spec(name) is not None
try:
    InferenceSession("/nonexistent.onnx")
except state.NoSuchFile:
    print(onnxruntime.get_build_info(), sys.argv[1:])
sys.exit(3)
"""


def test_a_program_runs_unchanged(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "relvm", "run-python", "--as-onnxruntime"]
    for arguments in ([str(tmp_path / "program.py")], ["-m", "program"]):
        done = subprocess.run(
            [*command, *arguments, "a", "--flag"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (3, "")
        assert done.stdout.startswith("relvm ") and done.stdout.endswith("['a', '--flag']\n")


def test_a_program_that_fails_and_one_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise OSError('mine')")
    for name, expected in (
        ("program.py", "OSError: mine\n"),
        ("missing.py", "missing.py: No such file or directory\n"),
    ):
        command = [sys.executable, "-m", "relvm", "run-python", "--as-onnxruntime", str(tmp_path / name)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stderr.endswith(expected)
        assert ("Traceback" in done.stderr) == (name == "program.py")


def test_install_refuses_a_process_that_has_imported_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RelvmBusyError, match="onnxruntime is already imported"):
        ours.install()
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    ours.install()
    ours.install()
    import onnxruntime

    assert onnxruntime is ours
    ours.uninstall()
    assert "onnxruntime" not in sys.modules
