"""Exported programs have bit-identical results to the machine in compiled mode."""

from __future__ import annotations

import ctypes
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import Failed, compile_programs, make, run_program
from programs_ahead import PROGRAMS, Program, numbers
from support.modes import assert_same_bits, plain

from relvm import aot, vm
from relvm.cli.main import main
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmArgumentError, RelvmError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.numpy_dtypes import DTYPE_NAMES, numpy_dtype
from relvm.passes.memory.arena_allocator import align
from relvm.tables import STATUS

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="an export is built by a C compiler, and there is none")

Library = tuple[ctypes.CDLL, dict[str, aot.AotProgram]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """Export all programs.  Return a library of all of them, and the programs by name."""
    programs = {
        program.name: aot.build(parse_module(program.text), aot.AotConfig(program.name), verified=True)
        for program in PROGRAMS
    }
    return compile_programs(list(programs.values()), tmp_path_factory.mktemp("export")), programs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_gives_what_the_machine_gives(program: Program, library: Library) -> None:
    compiled, programs = library
    machine = vm.VirtualMachine(vm.build(parse_module(program.text), "compiled"))
    for args in program.calls:
        try:
            expected = plain(machine["main"](*args))
        except RelvmError as error:
            with pytest.raises(Failed) as caught:
                run_program(compiled, programs[program.name], *args)
            assert STATUS[caught.value.status].python_class == type(error).__name__
            continue
        assert_same_bits(run_program(compiled, programs[program.name], *args), expected)


def test_a_size_beyond_its_bound_is_refused(library: Library) -> None:
    compiled, programs = library
    with pytest.raises(Failed) as caught:
        run_program(compiled, programs["functions"], numbers(5, 4), numbers(6, 4))
    assert STATUS[caught.value.status].name == "SHAPE_ERROR"


def test_pointers_that_are_missing_are_refused(library: Library) -> None:
    compiled, _ = library
    run = compiled.input_returned_run
    status = next(row.index for row in STATUS if row.name == "ARGUMENT_ERROR")
    assert run(None, None) == status
    empty = (ctypes.c_int64 * 4)()
    assert run(empty, empty) == status


def test_a_descriptor_says_what_there_is_and_runs_it(library: Library) -> None:
    class Model(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char_p),
            ("run", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
            ("inputs", ctypes.c_int32),
            ("outputs", ctypes.c_int32),
        )

    compiled, _ = library
    model = Model.in_dll(compiled, "one_for_two_model")
    assert (model.name, model.inputs, model.outputs) == (b"one_for_two", 1, 2)
    x, first, second = numbers(4), np.zeros(4, np.float32), np.zeros(4, np.float32)
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * 2)(first.ctypes.data, second.ctypes.data)
    assert model.run(inputs, outputs, None) == 0
    np.testing.assert_array_equal(first, np.maximum(x, 0))
    np.testing.assert_array_equal(second, first)


MLP = """
def main(x: f32[n, 8]) -> f32[n, 3] with (upper_bounds=(("n", 4),)) {
  h = relu(matmul(x, const(f32[8, 8], WEIGHTS)))
  return softmax(matmul(h, const(f32[8, 3], MORE)), axis=1)
}"""
MLP = MLP.replace("WEIGHTS", str(numbers(8, 8).tolist())).replace("MORE", str(numbers(8, 3).tolist()))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that exports the network with a self-test, and returns the folder."""

    def write(**options) -> Path:
        module = parse_module(MLP)
        x = numbers(3, 8)
        expected = vm.VirtualMachine(vm.build(module, "compiled", target="x86-64"))["main"](x)
        aot.build(module, aot.AotConfig(**options)).write(tmp_path / "export", ([x], [expected]))
        return tmp_path / "export"

    return write


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"workspace": "caller"},
        {"pools": (aot.Pool("fast", 200), aot.Pool("slow")), "alignment": 64},
        {"pools": (aot.Pool("fast", 200), aot.Pool("slow")), "workspace": "caller"},
        {"interface": "packed"},
        {"interface": "packed", "unpacked": False},
        {"interface": "packed", "workspace": "caller"},
        {"interface": "packed", "unpacked": False, "workspace": "caller", "alignment": 1},
    ],
    ids=["static", "caller", "pools", "caller-pools", "packed", "packed-kernels", "packed-caller", "packed-all"],
)
def test_make_builds_a_folder_and_its_trial_passes_bit_for_bit(folder: Callable[..., Path], options: dict) -> None:
    place = folder(**options)
    printed = make(place, "test", "TOLERANCE=0", "CFLAGS=-O3 -march=x86-64")
    assert printed == "output: 9 values, the same\n"


def test_a_trial_that_does_not_pass_says_by_how_much(folder: Callable[..., Path]) -> None:
    place = folder()
    text = (place / "test/main.c").read_text()
    head, _, rest = text.partition("want_output[] = {\n")
    (place / "test/main.c").write_text(head + "want_output[] = {\n" + re.sub(r"\S+,", "0.75f,", rest, count=1))
    done = subprocess.run(["make", "-s", "test"], cwd=place, capture_output=True, text=True)
    assert done.returncode != 0
    assert "output: 9 values, largest difference 0." in done.stdout
    for tolerance, passes in (("9", True), ("0", False)):  # another tolerance takes effect without `make clean`
        done = subprocess.run(["make", "-s", "test", f"TOLERANCE={tolerance}"], cwd=place, capture_output=True)
        assert (done.returncode == 0) == passes


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_no_sanitizer_and_no_analyzer_finds_anything(program: Program, tmp_path: Path) -> None:
    module = parse_module(program.text)
    args = program.calls[0]
    expected = vm.VirtualMachine(vm.build(module, "compiled"))["main"](*args)
    aot.build(module).write(tmp_path, (args, [expected]))
    checks = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert "values" in make(tmp_path, "test", f"CFLAGS={checks}")
    make(tmp_path, "clean")
    # gcc's analyzer reports false positives (uninitialized variables) for vectorized sums.
    make(tmp_path, "CFLAGS=-O1 -fanalyzer -URVM_OPENMP_SIMD")


def test_sources_need_nothing_but_memcpy_and_mathematics(folder: Callable[..., Path]) -> None:
    place = folder()
    make(place, "CFLAGS=-O2")
    symbols = subprocess.run(["nm", "-u", "libmodel.a"], cwd=place, capture_output=True, text=True, check=True).stdout
    needed = {line.split()[1] for line in symbols.splitlines() if line.strip().startswith("U ")}
    own = {name for name in needed if name.startswith("model_")}
    assert needed - own <= {"memcpy", "memset", "memmove"}  # compilers also create these calls from loops


def test_the_command_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = tmp_path / "mlp.relvm"
    model.write_text(MLP)
    assert main(["export", str(model), "-o", str(tmp_path / "out"), "--name", "mlp", "--random"]) == 0
    assert "constants 448 bytes" in capsys.readouterr().err
    assert "output: 3 values" in make(tmp_path / "out", "test")


def test_an_archive_is_the_folder_and_says_what_memory_everything_takes(folder: Callable[..., Path]) -> None:
    place = folder()
    program = aot.build(parse_module(MLP))
    first, again = place.parent / "model.tar", place.parent / "again.tar"
    program.write(first)
    aot.build(parse_module(MLP)).write(again)
    assert first.read_bytes() == again.read_bytes()
    with tarfile.open(first) as archive:
        archive.extractall(place.parent / "extracted", filter="data")
    extracted = place.parent / "extracted/model"
    files = {str(path.relative_to(extracted)): path.read_bytes() for path in extracted.rglob("*") if path.is_file()}
    assert files == program.files()
    make(extracted)
    described = json.loads(files["metadata.json"])
    assert described["inputs"][0] == {"name": "x", "shape": ["n", 8], "dtype": "f32", "is_updated": False}
    (pool,) = described["pools"]
    assert (pool["name"], pool["shape"], pool["dtype"]) == ("workspace", [program.sources.pool_bytes[0]], "u8")
    main = described["functions"]["main"]
    assert main["ram_bytes"] == {"workspace": program.sources.pool_bytes[0]}
    with np.load(extracted / "parameters.npz") as parameters:
        sizes = [parameters[each["name"]].nbytes for each in described["constants"]]
    assert main["flash_constants_bytes"] == sum(sizes)
    assert program.sources.constants_bytes == sum(align(size, program.config.alignment) for size in sizes)
    assert files["model.relvm"].startswith(b"def main(x: f32[n, 8])")


@pytest.mark.parametrize("dtype", ["bf16", "f8e5m2"])
def test_constants_of_dtypes_that_numpy_does_not_have_are_there_as_bytes(dtype: str) -> None:
    text = f"def main(i: i64[]) -> {dtype}[] = gather(const({dtype}[4], [1, 2, 3, 4]), i, axis=0)"
    files = aot.build(parse_module(text)).files()
    with np.load(io.BytesIO(files["parameters.npz"])) as parameters:
        assert parameters["c0"].tobytes() == np.arange(1, 5).astype(numpy_dtype(DTYPE_NAMES.index(dtype))).tobytes()


def test_the_command_writes_archives_and_libraries(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = tmp_path / "mlp.relvm"
    model.write_text(MLP)
    assert main(["export", str(model), "-o", str(tmp_path / "mlp.tar"), "--random"]) == 0
    with tarfile.open(tmp_path / "mlp.tar") as archive:
        assert "model/test/main.c" in archive.getnames()
    assert main(["export", str(model), "-o", str(tmp_path / "mlp.so"), "--runtime", "hosted"]) == 0
    assert aot.load_module(tmp_path / "mlp.so").metadata.inputs[0].name == "x"
    capsys.readouterr()
    assert main(["export", str(model), "-o", str(tmp_path / "mlp.so")]) == 1
    assert "a shared library requires --runtime hosted" in capsys.readouterr().err
    assert main(["export", str(model), "-o", str(tmp_path / "mlp.so"), "--runtime", "hosted", "--random"]) == 1
    assert "does not support a self-test in C" in capsys.readouterr().err


def test_metadata_is_constants_in_c(folder: Callable[..., Path]) -> None:
    """C and Python read the same metadata."""
    place = folder()
    (place / "print.c").write_text(PRINT_METADATA)
    make(place)
    command = "cc -Iinclude print.c libmodel.a -o print && ./print"
    printed = subprocess.run(command, shell=True, cwd=place, capture_output=True, text=True, check=True).stdout
    size = aot.build(parse_module(MLP)).sources.pool_bytes[0]
    assert printed.split() == ["1", "16", "model", "x:f32", "-1=n", "8=8", f"workspace:{size}", "n:0..4"]


PRINT_METADATA = r"""
#include <stdio.h>
#include "model_metadata.h"
int main(void) {
  const rvm_metadata *m = &model_metadata;
  printf("%d %d %s %s:%s", (int)m->version, (int)m->alignment, m->mod_name, m->inputs->name, m->inputs->dtype);
  for (int i = 0; i < m->inputs->rank; i++) printf(" %d=%s", (int)m->inputs->shape[i], m->inputs->dims[i]);
  printf(" %s:%d", m->pools->name, (int)m->pools->shape[0]);
  printf(" %s:%d..%d\n", m->sizes->name, (int)m->sizes->least, (int)m->sizes->most);
  return 0;
}
"""


@pytest.mark.parametrize("what", ["storage", "lowered", "placement"])
def test_the_command_shows_what_each_pass_makes(what: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    model = tmp_path / "mlp.relvm"
    model.write_text(MLP)
    assert main(["export", str(model), "-o", str(tmp_path / "out"), "--show", what]) == 0
    assert {"storage": "x -> s0", "lowered": "call_unpacked", "placement": "alive at once"}[
        what
    ] in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runtime", "hosted", "--interface", "c"], "requires --interface packed and no --unpacked"),
        (["--pool", "fast=12x"], "--pool fast=12x: expected NAME or NAME=BYTES"),
        (["--pool", "fast=3"], "pool fast"),
        (["--constants-limit", "10"], "more than the limit of 10"),
        (["--alignment", "3"], "--alignment 3"),
        (["--function", "mian"], "no function mian; did you mean main"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tmp_path / "mlp.relvm"
    model.write_text(MLP)
    assert main(["export", str(model), "-o", str(tmp_path / "out"), *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([], RelvmArgumentError, "expected 1 input values, got 0"),
        ([np.zeros((2, 8))], RelvmTypeError, "input x: expected dtype f32, got float64"),
        ([np.zeros((2, 7), np.float32)], RelvmShapeError, r"input x: expected a dimension of 8, got shape \(2, 7\)"),
        ([np.zeros(8, np.float32)], RelvmShapeError, r"input x: expected rank 2, got shape \(8,\)"),
    ],
)
def test_a_trial_of_other_values_is_an_error(inputs: list, error: type, message: str, tmp_path: Path) -> None:
    program = aot.build(parse_module(MLP))
    with pytest.raises(error, match=message):
        program.write(tmp_path, (inputs, [np.zeros((2, 3), np.float32)]))


@pytest.mark.parametrize(
    ("n", "s", "error", "message"),
    [
        (4, (3, 5), RelvmShapeError, "input s, item 0: expected a size of 4, got 3"),
        (3, (3, 5), RelvmShapeError, "input x: expected a dimension of 3, got shape"),
        (4, 4, RelvmArgumentError, "input s: expected a tuple of 2 items, got 4"),
    ],
)
def test_a_trial_of_other_sizes_is_an_error(n: int, s: Any, error: type, message: str, tmp_path: Path) -> None:
    program = aot.build(parse_module("def main(n: i64(n), s: shape[n, m], x: f32[n]) -> f32[n] { return x }"))
    with pytest.raises(error, match=message):
        program.write(tmp_path, ((n, s, numbers(4)), [numbers(4)]))
