"""Uses of onnxruntime's API beyond its documentation have the same outcome in relvm: errors, private names, devices."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime_api.models import TWO, model, outcome

from relvm import onnxruntime as ours

theirs: Any = pytest.importorskip("onnxruntime")

ADD = """g (float[n] x) => (float[n] y) <float[2] w = {1, 2}> { y = Add(x, w) }"""
X = np.float32([1, 1])
FEED = {"x": X}
STATE = "onnxruntime_pybind11_state"


class Two:
    """An integer that is no int."""

    def __index__(self) -> int:
        return 2


def state(ort: Any) -> Any:
    return getattr(ort.capi, STATE)


def session(ort: Any, content: Any = None, **options: Any) -> Any:
    content = model(ADD) if content is None else content
    return ort.InferenceSession(content, providers=["CPUExecutionProvider"], **options)


def graph(text: str, **fields: Any) -> Callable[[Any], Any]:
    """Return a call that loads a model, of which some fields are replaced."""

    def act(ort: Any) -> Any:
        proto = onnx.load_model_from_string(model(text))
        for name, value in fields.items():
            if name == "opset":
                proto.opset_import[0].version = value
            elif name == "domain":
                proto.opset_import.append(helper.make_opsetid(value, 1))
            else:
                setattr(proto, name, value)
        session(ort, proto.SerializeToString())
        return "loaded"

    return act


def file(content: bytes) -> Callable[[Any, Path], Any]:
    def act(ort: Any, folder: Path) -> Any:
        (folder / "model.onnx").write_bytes(content)
        return session(ort, str(folder / "model.onnx"))

    return act


def without_external_data(ort: Any, folder: Path) -> Any:
    proto = onnx.load_model_from_string(model(ADD))
    onnx.save(proto, folder / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (folder / "w.bin").unlink()
    return session(ort, str(folder / "model.onnx"))


def run_error(op: str, *shapes: tuple[int, ...], **attributes: Any) -> Callable[[Any], Any]:
    """Return a call that runs an operator on tensors of ones with sizes that do not fit."""
    names = [f"i{k}" for k in range(len(shapes))]

    def act(ort: Any) -> Any:
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(shape))
            for name, shape in zip(names, shapes, strict=True)
        ]
        node, output = helper.make_node(op, names, ["y"], **attributes), helper.make_empty_tensor_value_info("y")
        made = helper.make_model(
            helper.make_graph([node], "g", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        )
        feed = {name: np.ones(shape, np.float32) for name, shape in zip(names, shapes, strict=True)}
        return session(ort, made.SerializeToString()).run(None, feed)

    return act


def with_options(set_options: Callable[[Any, Any], Any], act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a call of `act` with a session of the model ADD, after `set_options(ort, options)`."""

    def call(ort: Any) -> Any:
        options = ort.SessionOptions()
        set_options(ort, options)
        return act(session(ort, sess_options=options))

    return call


def initialized(name: str, *values: float) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        options, value = ort.SessionOptions(), ort.OrtValue.ortvalue_from_numpy(np.float32(values))
        options.add_initializer(name, value)  # onnxruntime does not keep the value alive
        return session(ort, sess_options=options).run(None, FEED)

    return act


def denoted(denotation: str, size: int) -> Callable[[Any], Any]:
    proto = onnx.load_model_from_string(model(ADD))
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"

    def act(ort: Any) -> Any:
        options = ort.SessionOptions()
        options.add_free_dimension_override_by_denotation(denotation, size)
        made = session(ort, proto.SerializeToString(), sess_options=options)
        return made.get_inputs()[0].shape, made.get_outputs()[0].shape, made.run(None, FEED)

    return act


def providers(*values: Any) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ort.InferenceSession(model(ADD), providers=list(values)).get_providers()

    return act


def cpu(ort: Any) -> Any:
    kind = state(ort).OrtDevice
    return kind(kind.cpu(), kind.default_memory(), 0)


def c_binding(ort: Any) -> Any:
    made = session(ort)._sess
    binding = state(ort).SessionIOBinding(made)
    binding.bind_input("x", X)
    binding.bind_output("y", cpu(ort))
    made.run_with_iobinding(binding, None)
    return binding.copy_outputs_to_cpu()[0].tolist(), [each.numpy().tolist() for each in binding.get_outputs()]


def c_binding_of_memory(ort: Any) -> Any:
    made, result = session(ort)._sess, np.empty(2, np.float32)
    binding = state(ort).SessionIOBinding(made)
    binding.bind_input("x", cpu(ort), np.float32, [2], X.ctypes.data)
    binding.bind_output("y", cpu(ort), np.float32, [2], result.ctypes.data)
    made.run_with_iobinding(binding, None)
    return result


def inner_binding(ort: Any) -> Any:
    made = session(ort)
    binding = made.io_binding()
    binding._iobinding.bind_input("x", X)
    binding.bind_output("y")
    made._sess.run_with_iobinding(binding._iobinding, None)
    return binding.get_outputs()[0].numpy().tolist()


def bound_to(device: str) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        made = session(ort)
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_output("y", device, 0)
        made.run_with_iobinding(binding)
        return binding.get_outputs()[0].device_name(), binding.copy_outputs_to_cpu()[0].tolist()

    return act


def c_value(ort: Any) -> Any:
    value = ort.OrtValue.ortvalue_from_numpy(X)._ortvalue
    made = state(ort).OrtValue.ortvalue_from_numpy(X, cpu(ort))
    described = [getattr(value, name)() for name in ("shape", "data_type", "element_type", "is_tensor", "device_name")]
    results = session(ort)._sess.run_with_ort_values({"x": value}, ["y"], None)
    return described, [each.numpy().tolist() for each in (made, ort.OrtValue(made), results[0])]


def private_fields(ort: Any) -> Any:
    made = session(ort)
    fields = ("_model_path", "_model_bytes", "_providers", "_provider_options", "_fallback_providers")
    inner = made._sess
    return (
        [getattr(made, name) for name in (*fields, "_enable_fallback", "_sess_options_initial")],
        [each.name for each in (*inner.inputs_meta, *inner.outputs_meta, *inner.overridable_initializers)],
        inner.model_meta.graph_name,
        made._model_meta.graph_name,
        inner.get_providers(),
        inner.run(["y"], FEED, None)[0].tolist(),
    )


def numbers_of_devices(ort: Any) -> Any:
    kind = state(ort).OrtDevice
    made = kind(1, 0, 2)
    names = ("cpu", "cuda", "gpu", "dml", "npu", "fpga", "cann", "webgpu", "default_memory")
    numbers = [getattr(kind, name)() for name in names]
    return numbers, [made.device_type(), made.mem_type(), made.device_id(), made.vendor_id()]


def device(*arguments: Any) -> Callable[[Any], Any]:
    def act(ort: Any) -> Any:
        made = ort.OrtDevice.make(*arguments)
        return made.device_type(), made.device_id(), made.device_vendor_id(), made._get_c_device().device_type()

    return act


def threads(value: Any) -> Callable[[Any], Any]:
    return with_options(
        lambda ort, options: setattr(options, "intra_op_num_threads", value),
        lambda made: (made.get_session_options().intra_op_num_threads, made.run(None, FEED)),
    )


KINDS = ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtMemType")
MATMUL = ("MatMul", (2, 3), (4, 5))

CASES: dict[str, Callable[[Any], Any]] = {
    # errors of loading
    "a missing initializer": graph("g (float[n] x) => (float[n] y) { y = Add(x, w) }"),
    "a new opset": graph(ADD, opset=99),
    "a new IR": graph(ADD, ir_version=99),
    "an unknown domain": graph("g (float[n] x) => (float[n] y) { y = some.where.Foo(x) }", domain="some.where"),
    "an operator that ONNX does not have": graph("g (float[n] x) => (float[n] y) { y = Foo(x) }"),
    "a missing output": graph("g (float[n] x) => (float[n] z) { y = Tanh(x) }"),
    "a missing initializer of a node whose name is like an output": graph(
        "g (float[n] x) => (float[n] y) { [output 1] y = Add(x, w) }"
    ),
    "a value that is defined twice": graph("g (float[n] x) => (float[n] y) { y = Tanh(x)  y = Exp(x) }"),
    "a cycle": graph("g (float[n] x) => (float[n] y) { z = Add(x, y)  y = Tanh(z) }"),
    "a type that does not fit": graph("g (float[n] x) => (bool[n] y) { y = And(x, x) }"),
    "an unknown attribute": graph("g (float[n] x) => (float[n] y) { y = Tanh<foo = 1>(x) }"),
    "a missing attribute": graph("g (float[n] x) => (float[n] y) { y = Cast(x) }"),
    "a missing input of a node": graph("g (float[n] x) => (float[n] y) { y = Add(x) }"),
    "a truncated model": lambda ort: session(ort, model(ADD)[:-5]),
    # errors of runs
    "None as an input": lambda ort: session(ort).run(None, {"x": None}),
    "None as all inputs": lambda ort: session(ort).run(None, None),
    "None as an output": lambda ort: session(ort).run([None], FEED),
    "a text as an input": lambda ort: session(ort).run(None, {"x": "abc"}),
    "a number as an input": lambda ort: session(ort).run(None, {"x": 3}),
    "sizes of Add": run_error("Add", (2,), (3,)),
    "sizes of MatMul": run_error(*MATMUL),
    "sizes of Concat": run_error("Concat", (2, 3), (4, 5), axis=0),
    "sizes of Conv": run_error("Conv", (1, 3, 4, 4), (2, 2, 3, 3)),
    # options
    "an integer that is no int": threads(Two()),
    "an integer of NumPy": threads(np.int64(2)),
    "a float": threads(2.0),
    "an initializer": initialized("w", 5, 6),
    "an initializer of another size": initialized("w", 5),
    "an initializer that does not exist": initialized("q", 5, 6),
    "an initializer of the name of an input": initialized("x", 5, 6),
    "a size by denotation": denoted("BATCH", 2),
    "a size by an unknown denotation": denoted("OTHER", 3),
    "a size by denotation that does not fit": denoted("BATCH", 3),
    "a list as provider": providers(["CPUExecutionProvider", {}]),
    "CUDA and a list as providers": providers(["CUDAExecutionProvider", {"a": 1}], ["CPUExecutionProvider", {}]),
    "an unknown provider": providers("Foo"),
    "a copy": lambda ort: copy.copy(session(ort)).run(None, FEED),
    "a deep copy": lambda ort: copy.deepcopy(session(ort)),
    "texts": lambda ort: [str(each) for kind in KINDS for each in getattr(ort, kind).__members__.values()],
    "formatted": lambda ort: f"{ort.ExecutionMode.ORT_PARALLEL} {ort.GraphOptimizationLevel.ORT_ENABLE_ALL}",
    # private names
    "private fields": private_fields,
    "None as outputs of _sess": lambda ort: session(ort)._sess.run(None, FEED, None),
    "SessionIOBinding": c_binding,
    "SessionIOBinding of memory": c_binding_of_memory,
    "_iobinding": inner_binding,
    "_ortvalue": c_value,
    "numbers of devices": numbers_of_devices,
    # devices
    **{f"the device {name}": device(name, 1) for name in ("cpu", "cuda", "dml", "gpu", "npu", "cann", "webgpu", "xpu")},
    "a device of a vendor": device("gpu", 1, 0x1002),
    "a device of a text": lambda ort: ort.OrtDevice("cpu"),
    "an output on the CPU": bound_to("cpu"),
    "an output on CUDA": bound_to("cuda"),
    "an output on an unknown device": bound_to("xpu"),
    "a value on CUDA": lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
    "a shape on CUDA": lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cuda", 0),
    "a value on an unknown device": lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "cuda:0"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_use_has_the_outcome_of_onnxruntime(case: str) -> None:
    assert outcome(lambda: CASES[case](ours)) == outcome(lambda: CASES[case](theirs))


FILES: dict[str, Callable[[Any, Path], Any]] = {
    "an empty file": file(b""),
    "a file of something else": file(b"garbage"),
    "missing external data": without_external_data,
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_has_the_outcome_of_onnxruntime(case: str, tmp_path: Path) -> None:
    assert outcome(lambda: FILES[case](ours, tmp_path)) == outcome(lambda: FILES[case](theirs, tmp_path))


def test_an_operator_of_onnx_that_relvm_lacks_is_not_implemented() -> None:
    with pytest.raises(state(ours).NotImplemented, match=r"operator com\.microsoft\.Foo is not supported"):
        graph("g (float[n] x) => (float[n] y) { y = com.microsoft.Foo(x) }", domain="com.microsoft")(ours)


def test_dir_lists_the_names_of_onnxruntime() -> None:
    # Modules that onnxruntime, or another test, has imported are not part of the interface, but for capi.
    public = {name for name, value in vars(theirs).items() if not isinstance(value, ModuleType)}
    public = {name for name in public if not name.startswith("_")} - {"import_capi_exception"}
    assert {name for name in dir(ours) if not name.startswith("_")} == public | {"capi", "install", "uninstall"}
    for name in dir(ours):
        assert hasattr(ours, name)


def test_the_module_of_the_c_library_has_all_its_names() -> None:
    for name in set(dir(state(theirs))) - {"__file__"}:
        assert hasattr(state(ours), name), name
    assert not hasattr(state(ours), "nope")
    with pytest.raises(state(ours).NotImplemented, match="quantize_matmul_4bits is not supported by relvm; quantize"):
        state(ours).quantize_matmul_4bits()


@pytest.mark.parametrize("is_file", [False, True])
def test_the_written_model_gives_the_same_results(is_file: bool, tmp_path: Path) -> None:
    proto = onnx.load_model_from_string(model(ADD))
    if is_file:  # its external data is elsewhere
        (tmp_path / "from").mkdir()
        given: Any = str(tmp_path / "from" / "model.onnx")
        onnx.save(proto, given, save_as_external_data=True, location="w.bin", size_threshold=0)
    else:
        given = proto.SerializeToString()
    options = ours.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "written.onnx")
    options.add_initializer("w", ours.OrtValue.ortvalue_from_numpy(np.float32([10, 20])))
    expected = session(ours, given, sess_options=options).run(None, FEED)[0].tolist()
    assert expected == [11, 21]
    onnx.checker.check_model(options.optimized_model_filepath, full_check=True)
    for ort in (ours, theirs):
        assert session(ort, options.optimized_model_filepath).run(None, FEED)[0].tolist() == expected
    (written,) = onnx.load(options.optimized_model_filepath).graph.initializer
    assert numpy_helper.to_array(written).tolist() == [10, 20]


def test_a_model_that_cannot_be_written(tmp_path: Path) -> None:
    def act(ort: Any) -> Any:
        options = ort.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "missing" / "written.onnx")
        return session(ort, TWO, sess_options=options)

    assert outcome(lambda: act(ours)) == outcome(lambda: act(theirs)) == "InvalidArgument"


USES_SUBMODULES = """
import relvm.onnxruntime as relvm_ort
relvm_ort.install()
import sys
import numpy as np, onnx, onnxruntime
from onnx import numpy_helper
from onnxruntime import quantization, transformers
from onnxruntime.capi import onnxruntime_validation
import onnxruntime.tools, onnxruntime.datasets, onnxruntime.backend, onnxruntime.quantization.calibrate
assert quantization.__file__ == onnxruntime.quantization.__file__
try:
    import onnxruntime.session
except ModuleNotFoundError as error:
    assert error.name == "onnxruntime.session", error
assert not hasattr(onnxruntime, "nope")

quantization.quantize_dynamic(sys.argv[1], sys.argv[2])
x = np.float32([[1, 2]])
first, second = (onnxruntime.InferenceSession(path).run(None, {"x": x})[0] for path in sys.argv[1:])
assert onnxruntime.InferenceSession is relvm_ort.InferenceSession and np.allclose(first, second, atol=0.1)
assert "onnxruntime_pybind11_state.c" not in open("/proc/self/maps").read()  # the C library is not loaded

relvm_ort.uninstall()
assert not any(name.partition(".")[0] == "onnxruntime" for name in sys.modules)
assert not hasattr(relvm_ort, "quantization")
"""


def test_submodules_of_an_installed_onnxruntime_run_on_relvm(tmp_path: Path) -> None:
    text = "g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }"
    (tmp_path / "model.onnx").write_bytes(model(text))
    paths = [str(tmp_path / name) for name in ("model.onnx", "quantized.onnx")]
    done = subprocess.run([sys.executable, "-Pc", USES_SUBMODULES, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WITHOUT_ONNXRUNTIME = """
import sys
from importlib.machinery import PathFinder
import relvm.onnxruntime
relvm.onnxruntime.install()
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: None if name == "onnxruntime" else find(name, path, target)
try:
    import onnxruntime.quantization
except ModuleNotFoundError as error:
    print(error)
"""


def test_submodules_without_an_installed_onnxruntime_are_an_error() -> None:
    done = subprocess.run([sys.executable, "-Pc", WITHOUT_ONNXRUNTIME], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == (
        "No module named 'onnxruntime.quantization': relvm replaces onnxruntime without its submodules; if onnxruntime"
        " is installed too, they are imported from there and run on relvm\n"
    )


def test_the_file_of_a_program_is_absolute(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(__file__, sys.argv)")
    commands = (
        [sys.executable, "program.py"],
        [sys.executable, "-m", "relvm", "run-python", "--as-onnxruntime", "program.py"],
    )
    outputs = [subprocess.run([*each, "a"], cwd=tmp_path, capture_output=True, text=True) for each in commands]
    assert outputs[0].stdout == outputs[1].stdout != "" and outputs[1].stderr == ""
