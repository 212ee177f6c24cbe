"""Tests of hosted exports: executors have bit-identical results to the machine, and libraries have metadata."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from programs_ahead import PROGRAMS, Program, numbers
from support.modes import assert_same_bits, plain

from relvm import aot, vm
from relvm.aot.lower.printer import format_lowered
from relvm.aot.project.self_test import make_inputs
from relvm.compiler.find_compiler import expect_compiler, find_compiler
from relvm.compiler.target import parse_target
from relvm.errors import (
    RelvmArgumentError,
    RelvmBusyError,
    RelvmError,
    RelvmFileError,
    RelvmFormatError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.tables import include_flags

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="a library is made by a C compiler, and there is none")

SCORES = """
def main(x: f32[n, 4], scale: f64, most: i64) -> (f32[n, 4], i64, f32[n * 2]) with (
  output_tensor_names=("scores", "more", "twice"), upper_bounds=(("n", 8),)
) {
  s = softmax(multiply(x, to_tensor(scale, dtype="f32")), axis=1)
  t = sum(s, axes=(1,))
  return (s, most + 1, concat(t, t, axis=0))
}"""


def build(text: str, name: str = "model") -> aot.AotProgram:
    config = aot.AotConfig(name, runtime="hosted")
    return aot.build(parse_module(text), config, verified=True)


@pytest.fixture(scope="module")
def factory() -> aot.ExecutorFactory:
    return aot.compile_library(build(SCORES))


@pytest.fixture
def executor(factory: aot.ExecutorFactory) -> aot.AotExecutor:
    made = aot.AotExecutor(factory)
    for name, value in (("x", numbers(3, 4)), ("scale", 2.0), ("most", 6)):
        made.set_input(name, value)
    return made


def flat(value) -> list:
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_gives_what_the_machine_gives(program: Program) -> None:
    made = build(program.text, program.name)
    factory = aot.compile_library(made)
    assert factory.metadata == made.sources.metadata
    machine = vm.VirtualMachine(vm.build(parse_module(program.text), "compiled"))
    executor = aot.AotExecutor(factory)
    for args in program.calls:
        given, _ = make_inputs(made.entry, made.lowered, args)
        inputs = {name: given[name] for name in executor.get_input_info()}
        try:
            expected = flat(plain(machine["main"](*args)))
        except RelvmError as error:
            with pytest.raises(type(error)):
                executor.run(**inputs)
            continue
        executor.run(**inputs)
        outputs = [executor.get_output(i) for i in range(executor.get_num_outputs())]
        got = [g if isinstance(w, np.ndarray) else g.item() for g, w in zip(outputs, expected, strict=True)]
        assert_same_bits(got, expected)


def test_an_executor_says_what_it_takes(executor: aot.AotExecutor) -> None:
    assert (executor.get_num_inputs(), executor.get_num_outputs()) == (3, 3)
    assert [executor.get_input_name(i) for i in range(3)] == ["x", "scale", "most"]
    assert executor.get_input_index("most") == 2
    assert executor.get_input_info()["x"] == aot.TensorInfo("x", ("n", 4), "f32")
    assert executor.get_output_info()["twice"] == aot.TensorInfo("twice", ("n * 2",), "f32")
    np.testing.assert_array_equal(executor.get_input(0), numbers(3, 4))
    assert executor.get_input("scale") == 2.0
    assert aot.AotExecutor(executor._factory).get_input("x") is None


def test_inputs_are_copied_and_outputs_stay(executor: aot.AotExecutor) -> None:
    x = numbers(3, 4)
    executor.set_input("x", x)
    x[:] = 0
    executor.get_input("x")[:] = 0
    executor.run()
    first = executor.get_output("scores")
    kept = first.copy()
    assert not np.array_equal(kept, np.full((3, 4), 0.25))
    executor.run(x=x)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(executor.get_output(0), np.full((3, 4), 0.25))
    assert executor.get_output("more") == 7


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        ("y", 1, RelvmNameError, "unknown input y; expected one of x, scale, most"),
        ("mast", 1, RelvmNameError, "did you mean most"),
        (3, 1, RelvmIndexError, "input index 3 is out of range; expected 0 to 2"),
        (-1, 1, RelvmIndexError, "input index -1 is out of range"),
        (1.0, 1, RelvmTypeError, "expected an index or a name, got 1.0"),
        (None, 1, RelvmTypeError, "expected an index or a name, got None"),
        (True, 1, RelvmTypeError, "expected an index or a name, got True"),
        ("x", np.zeros((3, 4)), RelvmTypeError, "input x: expected dtype f32, got float64"),
        ("x", np.zeros((3, 5), np.float32), RelvmShapeError, r"input x: expected shape \(n, 4\), got \(3, 5\)"),
        ("x", np.zeros(4, np.float32), RelvmShapeError, r"input x: expected shape \(n, 4\), got \(4,\)"),
        ("most", 1.5, RelvmTypeError, "input most: expected a number of dtype i64, got 1.5"),
        ("most", 2**63, RelvmTypeError, "input most: expected a number of dtype i64"),
        ("most", True, RelvmTypeError, "input most: expected a number of dtype i64, got True"),
        ("scale", 10**400, RelvmTypeError, "input scale: expected a number of dtype f64"),
        ("x", [[1.0], [1.0, 2.0]], RelvmTypeError, "input x: expected an array"),
    ],
)
def test_what_no_input_takes(executor: aot.AotExecutor, key, value, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        executor.set_input(key, value)


def test_what_cannot_be_asked_for(executor: aot.AotExecutor) -> None:
    with pytest.raises(RelvmArgumentError, match="get_output: no outputs yet, or the last run failed"):
        executor.get_output(0)
    executor.run()
    with pytest.raises(RelvmNameError, match=r"unknown output score; .*did you mean scores"):
        executor.get_output("score")
    with pytest.raises(RelvmTypeError, match="expected an input name as a str, got 0"):
        executor.get_input_index(0)
    with pytest.raises(RelvmNameError, match="unknown input scores; expected one of x, scale, most"):
        executor.get_input_index("scores")
    with pytest.raises(RelvmIndexError, match="input index 7 is out of range"):
        executor.get_input_name(7)


def test_a_run_needs_all_inputs_and_sizes_in_their_bounds(executor: aot.AotExecutor) -> None:
    with pytest.raises(RelvmShapeError, match="size n: expected 0 to 8, got 9"):
        executor.run(x=numbers(9, 4))
    with pytest.raises(RelvmArgumentError, match="get_output: no outputs yet, or the last run failed"):
        executor.get_output(0)
    with pytest.raises(RelvmArgumentError, match="missing inputs: x, scale, most"):
        aot.AotExecutor(executor._factory).run()


def test_what_is_no_factory_makes_no_executor() -> None:
    with pytest.raises(RelvmTypeError, match=r"expected an ExecutorFactory, .*got 'model\.so'"):
        aot.AotExecutor("model.so")


def test_an_input_may_have_any_name() -> None:
    executor = aot.AotExecutor(aot.compile_library(build("def main(self: f32[2]) -> f32[2] { return relu(self) }")))
    executor.run(self=np.float32([-1, 1]))
    np.testing.assert_array_equal(executor.get_output(0), [0, 1])


def test_a_library_is_written_and_read(factory: aot.ExecutorFactory, tmp_path: Path) -> None:
    factory.export_library(tmp_path / "model.so")
    loaded = aot.load_module(tmp_path / "model.so")
    assert (loaded.library, loaded.metadata) == (factory.library, factory.metadata)
    assert (loaded.source, loaded.lowered_text) == (factory.source, factory.lowered_text)
    executor = aot.AotExecutor(loaded)
    executor.run(x=np.zeros((2, 4), np.float32), scale=1.0, most=-1)
    np.testing.assert_array_equal(executor.get_output("scores"), np.full((2, 4), 0.25))
    assert [each.name for each in tmp_path.iterdir()] == ["model.so"]


def test_everything_in_a_factory_survives_a_file(tmp_path: Path) -> None:
    text = """def scale(x: f32[3]) -> (f32[3], bf16[2], f32[]) {
      return (add(x, const(f32[3], [1, 2, 3])), const(bf16[2], [0.5, 2]), const(f32[], 7))
    }"""
    config = aot.AotConfig("model", runtime="hosted", alignment=64, pools=(aot.Pool("a", 9999), aot.Pool("b")))
    program = aot.build(parse_module(text), config, entry="scale")
    target = parse_target("x86-64-v2")
    made = aot.compile_library(program, target)
    made.export_library(tmp_path / "model.so")
    for factory in (made, aot.load_module(tmp_path / "model.so")):
        assert (factory.entry, factory.config, factory.target) == ("scale", config, target)
        assert factory.source == print_module(program.module, elide_constants=True)
        assert factory.lowered_text == factory.get_internal_repr() == format_lowered(program.lowered)
        assert factory.get_params().keys() == program.params.keys() == {"c0", "c1", "c2"}
        for name, array in factory.params.items():
            assert_same_bits(array, program.params[name])
        executor = factory["scale"]
        executor.run(x=np.float32([1, 1, 1]))
        np.testing.assert_array_equal(executor.get_output(0), [2, 3, 4])
        with pytest.raises(RelvmNameError, match="unknown function 'main'; expected scale or default"):
            factory["main"]


def test_the_target_of_a_library_that_make_has_built_is_unknown(tmp_path: Path) -> None:
    build(SCORES).write(tmp_path)
    subprocess.run(["make", "-s", "CFLAGS=-O0"], cwd=tmp_path, check=True, capture_output=True)
    loaded = aot.load_module(tmp_path / "model.so", trust_native=True)
    assert loaded.target is None
    assert loaded.config == aot.AotConfig(runtime="hosted")


def test_inputs_by_keyword_and_the_callers_array(executor: aot.AotExecutor) -> None:
    executor.set_input(scale=3.0, most=5)
    assert (executor.get_input("scale"), executor.get_input("most")) == (3.0, 5)
    out = np.empty((3, 4), np.float32)
    assert executor.get_input("x", out=out) is out
    np.testing.assert_array_equal(out, numbers(3, 4))
    with pytest.raises(RelvmNameError, match="unknown input y"):
        executor.set_input(scale=4.0, y=1)
    assert executor.get_input("scale") == 3.0
    for call, error, message in (
        (lambda: executor.set_input("x"), RelvmArgumentError, "expected a value for input 'x'"),
        (lambda: executor.set_input("most", 1, most=2), RelvmArgumentError, "input most is given twice"),
        (lambda: executor.get_input("x", out=np.empty((4, 3), "f4")), RelvmShapeError, r"expected shape \(3, 4\)"),
        (lambda: executor.get_input("x", out=[1]), RelvmTypeError, "get_input: out: expected a writable array"),
        (lambda: aot.AotExecutor(executor._factory).get_input("x", out=out), RelvmArgumentError, "x is not set"),
    ):
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("cuda", RelvmUnsupportedError, "expected \"cpu\", the only device, got 'cuda'"),
        ((2, 0), RelvmUnsupportedError, r"got \(2, 0\)"),
        ((1, 1), RelvmUnsupportedError, r"got \(1, 1\)"),
        (["cpu", "cpu"], RelvmUnsupportedError, "expected exactly one device, got 2"),
        ([], RelvmUnsupportedError, "expected exactly one device, got 0"),
        (1, RelvmTypeError, "device: expected"),
        ((True, 0), RelvmTypeError, "device: expected"),
        (None, RelvmTypeError, "device: expected"),
    ],
)
def test_an_executor_is_on_one_cpu(factory: aot.ExecutorFactory, device, error: type, message: str) -> None:
    for cpu in ("cpu", "cpu:0", (1, 0), ["cpu"]):
        assert aot.AotExecutor(factory, cpu).get_num_inputs() == 3
    with pytest.raises(error, match=message):
        aot.AotExecutor(factory, device)


def test_wrong_arguments_raise_typed_errors(factory: aot.ExecutorFactory, tmp_path: Path) -> None:
    program = build(SCORES)
    for call, error in (
        (lambda: aot.build(program.module, entry=3), RelvmTypeError),
        (lambda: aot.load_module(tmp_path / "none"), RelvmFileError),
        (lambda: aot.load_module(tmp_path), RelvmFileError),
        (lambda: aot.load_module(3), RelvmTypeError),
        (lambda: factory.export_library(3), RelvmTypeError),
        (lambda: factory.export_library(tmp_path), RelvmFileError),
        (lambda: program.write(3), RelvmTypeError),
        (lambda: program.write(tmp_path / "file" / "folder"), RelvmFileError),
        (lambda: program.files(3), RelvmTypeError),
        (lambda: aot.compile_library(program, "c"), RelvmTypeError),
        (lambda: factory[3], RelvmTypeError),
    ):
        (tmp_path / "file").write_text("")
        with pytest.raises(error):
            call()


def test_files_that_are_no_libraries(factory: aot.ExecutorFactory, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(RelvmFormatError, match="not a shared library"):
        aot.load_module(tmp_path / "text.so", trust_native=True)
    for size in (5, 200, 1000, len(factory.library) // 2, len(factory.library) - 100):
        (tmp_path / "cut.so").write_bytes(factory.library[:size])
        with pytest.raises(RelvmFormatError, match=r"cut\.so: "):
            aot.load_module(tmp_path / "cut.so", trust_native=True)
    executable = vm.build(parse_module("def main(x: f32[2]) -> f32[2] { return relu(x) }"), "compiled")
    vm.export_library(executable, tmp_path / "machine.so")
    with pytest.raises(RelvmFormatError, match="does not define relvm_aot_library"):
        aot.load_module(tmp_path / "machine.so", trust_native=True)


def test_a_library_that_somebody_else_made_needs_trust(tmp_path: Path) -> None:
    build(SCORES).write(tmp_path)
    made = subprocess.run(["make", "-s", "CFLAGS=-O2"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    with pytest.raises(RelvmUnsupportedError, match=r"not compiled on this machine; .*load_module.*trust_native=True"):
        aot.load_module(tmp_path / "model.so")
    executor = aot.AotExecutor(aot.load_module(tmp_path / "model.so", trust_native=True))
    executor.run(x=numbers(2, 4), scale=1.0, most=1)
    assert executor.get_output("more") == 2


def test_each_executor_has_its_own_memory(factory: aot.ExecutorFactory) -> None:
    results: dict[int, list[np.ndarray]] = {}

    def work(seed: int) -> None:
        executor = aot.AotExecutor(factory)
        x = numbers(8, 4, seed=seed)
        results[seed] = []
        for _ in range(200):
            executor.run(x=x, scale=1.0, most=0)
            results[seed].append(executor.get_output("scores"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        executor = aot.AotExecutor(factory)
        executor.run(x=numbers(8, 4, seed=seed), scale=1.0, most=0)
        assert len(results[seed]) == 200
        assert all(np.array_equal(each, executor.get_output("scores")) for each in results[seed])


def test_errors_of_a_run_have_the_messages_of_the_machine() -> None:
    text = """def main(i: i64, j: i64, k: i64(n), x: f32[m]) => (i64, f32[m]) with (upper_bounds=(("m", 8), ("n", 8))) {
      _ = builtin.assert(i < 100, "i must be 100% small")
      y: f32[n] = x
      return (i // j, relu(y))
    }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), "compiled"))
    executor = aot.AotExecutor(aot.compile_library(build(text)))
    for i, j, k, message in (
        (1000, 1, 2, "i must be 100% small"),
        (7, 0, 2, r"floordiv_i64\(7, 0\): integer division by zero"),
        (7, 1, 3, "expected .*3, got 2"),
    ):
        with pytest.raises(RelvmError, match=message):
            machine["main"](i, j, k, numbers(2))
        with pytest.raises(RelvmError, match=message):
            executor.run(i=i, j=j, n=k, x=numbers(2))
    executor.run(i=7, j=2, n=2, x=numbers(2))
    assert executor.get_output(0) == 3


def test_the_packed_entry_compares_outputs_with_the_size_that_is_passed() -> None:
    text = "def main(k: i64(n), x: f32[]) -> f32[n] { return broadcast_to(x, shape(n)) }"
    executor = aot.AotExecutor(aot.compile_library(build(text)))
    executor._sizes = lambda inputs: {"n": 3}  # the shape of the output that the entry receives
    for size in (-7, 2, 4):
        with pytest.raises(RelvmShapeError, match=f"expected a dimension of n, which is {size}, got 3"):
            executor.run(n=size, x=np.float32(5))
    executor.run(n=3, x=np.float32(5))
    np.testing.assert_array_equal(executor.get_output(0), [5, 5, 5])


def test_an_executor_is_run_by_one_thread_at_a_time(executor: aot.AotExecutor) -> None:
    with executor._running, pytest.raises(RelvmBusyError, match="running in another thread"):
        executor.run()
    executor.run()


NEGATIVE = """
#include "relvm.h"
int32_t negative(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  const float *x = arguments[0].as.tensor->dl.data;
  float *y = arguments[1].as.tensor->dl.data;
  for (int i = 0; i < 4; i++) y[i] = -x[i];
  result->tag = RVM_TAG_NIL;
  return RVM_OK;
}
"""


def test_a_registered_function_takes_the_place_of_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "negative.c").write_text(NEGATIVE)
    command = [*expect_compiler().command, "-shared", "-fPIC", *include_flags(), "negative.c", "-o", "n.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "n.so")).negative
    program = build("def main(x: f32[4]) -> f32[4] { return relu(x) }", "replaced")
    (kernel,) = program.lowered.kernels
    vm.register_c_func(f"replaced.{kernel}", ctypes.cast(function, ctypes.c_void_p).value)
    try:
        executor = aot.AotExecutor(aot.compile_library(program))
        executor.run(x=numbers(4))
        np.testing.assert_array_equal(executor.get_output(0), -numbers(4))
    finally:
        vm.unregister_func(f"replaced.{kernel}")


def test_only_hosted_programs_become_libraries_and_they_have_no_trial_in_c() -> None:
    text = "def main(x: f32[2]) -> f32[2] { return relu(x) }"
    with pytest.raises(RelvmUnsupportedError, match="runtime='bare'"):
        aot.compile_library(aot.build(parse_module(text)))
    with pytest.raises(RelvmUnsupportedError, match="does not support a self-test in C"):
        build(text).files(([], []))


def test_inputs_and_outputs_in_the_callers_memory(executor: aot.AotExecutor) -> None:
    x, scores = numbers(3, 4), np.zeros((3, 4), np.float32)
    executor.run()
    expected = executor.get_output("scores").copy()
    executor.set_input_zero_copy("x", x)
    executor.set_output_zero_copy("scores", scores)
    executor.run()
    assert executor.get_output(0) is scores
    np.testing.assert_array_equal(scores, expected)
    x[0] = 9
    executor.run()
    assert not np.array_equal(scores[0], expected[0]) and np.array_equal(scores[1:], expected[1:])
    executor.set_output_zero_copy("scores", None)
    executor.run()
    assert executor.get_output("scores") is not scores
    out = np.empty((3, 4), np.float32)
    assert executor.get_output("scores", out=out) is out and np.array_equal(out, scores)
    assert [executor.get_output_index(name) for name in ("scores", "more", "twice")] == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda e: e.set_input_zero_copy("x", [1.0]), RelvmTypeError, "input x: expected a dense, row-major, aligned"),
        (lambda e: e.set_input_zero_copy("x", np.zeros((4, 3), "f4").T), RelvmTypeError, "input x: expected a dense"),
        (lambda e: e.set_input_zero_copy("x", np.zeros((3, 4))), RelvmTypeError, "expected dtype f32, got float64"),
        (lambda e: e.set_input_zero_copy("x", np.zeros((3, 5), "f4")), RelvmShapeError, r"expected shape \(n, 4\)"),
        (lambda e: e.set_output_zero_copy("z", np.zeros(3)), RelvmNameError, "unknown output z"),
        (lambda e: e.set_output_zero_copy(0, np.broadcast_to(np.float32(0), (3, 4))), RelvmTypeError, "dense"),
        (
            lambda e: e.set_output_zero_copy(0, np.frombuffer(bytes(48), "f4").reshape(3, 4)),
            RelvmTypeError,
            "read-only",
        ),
        (lambda e: e.get_output(0, out=np.zeros((3, 4))), RelvmTypeError, "get_output: out: expected a writable array"),
        (lambda e: e.get_output(0, out=np.zeros((4, 4), "f4")), RelvmShapeError, r"expected shape \(3, 4\)"),
        (lambda e: e.get_output_index("z"), RelvmNameError, "unknown output z"),
        (lambda e: e.get_output_index(0), RelvmTypeError, "expected an output name as a str"),
    ],
)
def test_memory_that_does_not_fit(executor: aot.AotExecutor, call, error: type, message: str) -> None:
    executor.run()
    with pytest.raises(error, match=message):
        call(executor)


def test_bound_outputs_are_held_to_the_sizes_of_the_run_and_lie_apart(executor: aot.AotExecutor) -> None:
    executor.set_output_zero_copy("scores", np.zeros((2, 4), np.float32))
    with pytest.raises(
        RelvmShapeError,
        match=r"output scores: bound to shape \(2, 4\), but this run returns \(3, 4\)",
    ):
        executor.run()
    x = numbers(3, 4)
    executor.set_input_zero_copy("x", x)
    executor.set_output_zero_copy("scores", x)
    with pytest.raises(
        RelvmArgumentError, match="output scores: the bound array shares memory with an input or another output"
    ):
        executor.run()


def test_what_a_factory_is_made_of() -> None:
    text = "def main(x: f32[2]) -> f32[2] = add(x, const(f32[2], [1, 2]))"
    made = aot.compile_library(build(text))
    shown, library, params = made
    assert (shown, library) == (made.get_internal_repr(), made.get_lib()) and "main" in shown
    assert [value.tolist() for value in params.values()] == [[1, 2]] == [v.tolist() for v in made.get_params().values()]
    for name in ("main", "default"):
        executor = made[name]
        executor.run(x=np.zeros(2, np.float32))
        assert executor.get_output(0).tolist() == [1, 2]
    with pytest.raises(RelvmNameError, match="unknown function 'other'; expected main or default"):
        made["other"]


def test_storages_say_their_bytes_and_their_device() -> None:
    program = build("def main(x: f32[2, 3], y: i64[4]) -> (f32[2, 3], i64[4]) { t = (relu(x), y); return t }")
    main = program.lowered.functions[-1]
    info = main.storage_info(main.outputs)
    assert (info.devices, info.sizes_bytes) == ((0, 0), (24, 32)) and len(info.ids) == 2
