"""Tests of the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.c_compiler import started_compilers, stuck_compiler, wait_until_ended
from support.command import relvm
from support.modes import MODES

from relvm import vm
from relvm.aot import BOARDS
from relvm.cli.show import PICTURES
from relvm.ir.operator import operators
from relvm.tables import BUILTINS, OPCODES

TEXT = """def main(x: f32[n, 3]) -> (f32[n, 3], f32[n, 3]) {
  y = relu(x)
  return (y, add(x, y))
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.relvm").write_text(TEXT)
    np.save(tmp_path / "x.npy", np.float32([[-1, 0, 2]]))
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["c", "numpy"])
def test_run_saves_each_output_under_its_name(folder: Path, mode: str, target: str) -> None:
    done = relvm(
        "run",
        "model.relvm",
        "--input",
        "x=x.npy",
        "--exec-mode",
        mode,
        "--target",
        target,
        "--output",
        "o.npz",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "o.npz") as outputs:
        np.testing.assert_array_equal(outputs["output0"], [[0, 0, 2]])
        np.testing.assert_array_equal(outputs["output1"], [[-1, 0, 4]])


def test_run_with_random_inputs_prints_the_outputs(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--random", "--dim", "n=2", "--repeat", "3", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "output0: float32[2, 3]" in done.stdout
    done = relvm("run", "model.relvm", "--random", "--repeat", "3", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "output0: float32[1, 3]" in done.stdout and "median of 3 runs" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_run_prints_a_profile(folder: Path, mode: str) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--exec-mode", mode, "--profile", cwd=folder)
    assert done.returncode == 0, done.stderr
    heads = [line.split()[:3] for line in done.stdout.splitlines()]
    assert ["name", "kind", "count"] in heads and ["vm.builtin.make_tuple", "builtin", "1"] in heads
    assert heads[-1][:2] == ["main", "total"]


def test_run_prints_or_draws_how_far_kernels_are_from_the_roof(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--roofline", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (first,) = (number for number, line in enumerate(lines) if "peaks of" in line)
    assert lines[first + 1].split() == ["ms", "share", "calls", "GFLOP/s", "GB/s", "FLOP/byte", "of", "roof"]
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--roofline", "roof.svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "<svg" in (folder / "roof.svg").read_text()
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--roofline", "roof.txt", cwd=folder)
    assert done.returncode == 1 and "--roofline roof.txt: expected a file name ending in one of" in done.stderr
    done = relvm("run", "--random", "--roofline", "model.relvm", cwd=folder)
    message = "--roofline: expected an image file, got model.relvm; give a model before the options"
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.parametrize("picture", PICTURES)
def test_show_prints_and_draws_pictures(folder: Path, picture: str) -> None:
    (folder / "fixed.relvm").write_text(MEMORY)
    done = relvm("show", "fixed.relvm", "--picture", picture, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ("return" if picture == "dataflow" else "main") in done.stdout
    done = relvm("show", "fixed.relvm", "--picture", picture, "-o", "out.svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "<svg" in (folder / "out.svg").read_text()
    done = relvm("show", "fixed.relvm", "--picture", picture, "-o", "out.html", cwd=folder)
    if picture in ("dataflow", "calls"):
        assert done.returncode == 0, done.stderr
        assert (folder / "out.html").read_text().startswith("<!doctype html>")
    else:
        assert done.returncode == 1 and "HTML requires dataflow or calls" in done.stderr


def test_a_graph_is_a_page_and_a_run_adds_its_times(folder: Path) -> None:
    done = relvm("show", "model.relvm", "--graph", "graph.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "graph.html").read_text()
    assert page.startswith("<!doctype html>") and '"profile":null' in page
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--graph", "graph.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert '"profile":{"function":"main","seconds":' in (folder / "graph.html").read_text()
    assert relvm("compile", "model.relvm", "-o", "m.rvm", cwd=folder).returncode == 0
    done = relvm("run", "m.rvm", "--input", "x=x.npy", "--graph", "graph.html", cwd=folder)
    assert done.returncode == 1 and "--graph requires a model, but m.rvm is an executable, already built" in done.stderr
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--timeline", "out.html", cwd=folder)
    assert done.returncode == 0 and " calls to out.html" in done.stderr, done.stderr
    page = (folder / "out.html").read_text()
    assert '"timeline":{"function":"main","names":' in page and '"fuse_ops"' in page
    for file, message in (("m.rvm", "--timeline requires a model"), ("model.relvm", "out.json: expected a file name")):
        name = "out.html" if file == "m.rvm" else "out.json"
        done = relvm("run", file, "--input", "x=x.npy", "--timeline", name, cwd=folder)
        assert done.returncode == 1 and message in done.stderr


def test_options_of_pictures_that_have_no_meaning_are_refused(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "-o", "m.rvm", cwd=folder).returncode == 0
    for arguments, message in [
        (("model.relvm", "-o", "out.svg"), "--output requires --picture"),
        (("model.relvm", "--function", "main"), "--function requires --picture or --graph"),
        (("model.relvm", "--graph", "out.html", "--function", "man"), "no function man"),
        (("m.rvm", "--graph", "out.html"), "--graph requires a model, but m.rvm is an executable, already built"),
        (
            ("model.relvm", "--picture", "calls", "--function", "main"),
            "--function cannot be combined with --picture calls",
        ),
        (("model.relvm", "--picture", "dataflow", "--function", "man"), "no function man"),
        (
            ("model.relvm", "--picture", "dataflow", "-o", "out.txt"),
            "--output out.txt: expected a file name ending in one of",
        ),
        (("m.rvm", "--picture", "dataflow"), "requires a model, but m.rvm is an executable, already built"),
    ]:
        done = relvm("show", *arguments, cwd=folder)
        assert done.returncode == 1 and message in done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("file", ["m.rvm", "m.so"])
def test_compile_then_run_the_saved_executable(folder: Path, mode: str, file: str) -> None:
    done = relvm("compile", "model.relvm", "-o", file, "--exec-mode", mode, cwd=folder)
    assert done.returncode == 0, done.stderr
    done = relvm("run", file, "--input", "x=x.npy", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "output1: float32[1, 3]" in done.stdout


@pytest.mark.parametrize("file", ["m.rvm", "m.so"])
def test_a_portable_program_is_compiled_shown_and_verified(folder: Path, file: str) -> None:
    done = relvm("compile", "model.relvm", "-o", file, cwd=folder)
    assert done.returncode == 0, done.stderr
    size = vm.load(folder / file, trust_native=True).stats().portable_bytes
    assert f"portable program: {size:,} bytes, as the format" in relvm("verify", file, cwd=folder).stdout
    assert "\nportable\n| ...\n" in relvm("show", file, "--stage", "bytecode", cwd=folder).stdout
    assert relvm("compile", "model.relvm", "-o", file, "--no-portable", cwd=folder).returncode == 0
    assert "portable" not in relvm("verify", file, cwd=folder).stdout


def test_options_for_building_are_refused_where_it_is_built(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "-o", "m.rvm", cwd=folder).returncode == 0
    for given, named in [
        (("--exec-mode", "bytecode"), "--exec-mode"),
        (("--target", "numpy", "--unfused"), "--target, --unfused"),
        (("--dim", "n=2"), "--dim"),
    ]:
        done = relvm("run", "m.rvm", "--input", "x=x.npy", *given, cwd=folder)
        assert (
            done.returncode == 1
            and f": {named}: only for compiling a model, but m.rvm is already compiled" in done.stderr
        )
    assert relvm("run", "m.rvm", "--random", "--dim", "n=2", cwd=folder).returncode == 0
    assert "--dim: only for compiling a model" in relvm("info", "m.rvm", "--dim", "n=2", cwd=folder).stderr


def test_a_run_that_fails_prints_the_stack_trace(folder: Path) -> None:
    (folder / "pick.relvm").write_text("def main(x: f32[n, 3], i: i64[k]) -> f32[k, 3] {\n  return gather(x, i)\n}\n")
    np.save(folder / "i.npy", np.array([0, 5]))
    done = relvm("run", "pick.relvm", "--input", "x=x.npy", "--input", "i=i.npy", cwd=folder)
    assert done.returncode == 1
    message, frame = done.stderr.splitlines()[-2:]
    assert message == "relvm: error: RelvmIndexError: gather: index 5 is outside axis 0 of size 1"
    assert frame.startswith("  in main at instruction ") and frame.endswith(": result (line 2, column 10)")


def test_a_run_ends_when_its_result_is_printed(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", cwd=folder, **stuck_compiler(folder))
    assert done.returncode == 0 and "float32[1, 3]" in done.stdout
    assert "as bytecode; with --repeat 2, native code is compiled first" in done.stderr
    assert not list((folder / "temporary").iterdir())


def test_ctrl_c_ends_the_compiler_and_its_processes(folder: Path) -> None:
    command = [sys.executable, "-m", "relvm", "run", "model.relvm", "--input", "x=x.npy", "--repeat", "2"]
    environment = os.environ | stuck_compiler(folder)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env=environment, **streams) as run:
        while not started_compilers(folder):
            assert run.poll() is None
        run.send_signal(signal.SIGINT)
        _, error = run.communicate(timeout=600)
    assert (run.returncode, error) == (130, "relvm: interrupted\n")
    for compiler, child, _ in started_compilers(folder):
        wait_until_ended(compiler)
        wait_until_ended(child)
    assert not list((folder / "temporary").iterdir())


def test_run_prints_the_instructions_of_kernels(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--profile-kernels", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "  share  " in done.stdout and ": end" in done.stdout and "*" in done.stdout


def test_run_says_that_native_kernels_have_no_instructions(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--profile-kernels", "--target", "numpy", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "no kernel ran as bytecode" in done.stderr and ": end" not in done.stdout


@pytest.mark.parametrize("option", [["--repeat", "2"], ["--profile"]])
def test_what_measures_waits_for_native_code(folder: Path, option: list[str]) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", *option, cwd=folder, RELVM_CACHE_DIR=str(folder / "cache"))
    assert (done.returncode, "compiling" in done.stderr) == (0, False)


def test_native_code_from_elsewhere_runs_only_when_it_is_trusted(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "--no-portable", "-o", "m.rvm", cwd=folder).returncode == 0
    elsewhere = {"RELVM_CACHE_DIR": str(folder / "another user's cache")}
    refused = relvm("run", "m.rvm", "--input", "x=x.npy", cwd=folder, **elsewhere)
    assert refused.returncode == 1 and "trust" in refused.stderr
    done = relvm("run", "m.rvm", "--input", "x=x.npy", "--trust-native", cwd=folder, **elsewhere)
    assert done.returncode == 0, done.stderr


def test_of_a_portable_file_that_is_not_trusted_the_portable_program_runs(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "-o", "m.rvm", cwd=folder).returncode == 0
    elsewhere = {"RELVM_CACHE_DIR": str(folder / "another user's cache")}
    for command in ("run", "debug"):
        done = relvm(command, "m.rvm", "--input", "x=x.npy", cwd=folder, **elsewhere)
        assert done.returncode == 0 and "running the portable program" in done.stderr, done.stderr


def test_without_a_compiler_bytecode_runs_on_numpy_and_says_so(folder: Path) -> None:
    done = relvm("run", "model.relvm", "--input", "x=x.npy", cwd=folder, RELVM_CC="none")
    assert done.returncode == 0, done.stderr
    assert "using kernel bytecode" in done.stderr
    done = relvm("run", "model.relvm", "--input", "x=x.npy", "--exec-mode", "compiled", cwd=folder, RELVM_CC="none")
    assert done.returncode == 1 and "no C compiler" in done.stderr


# Stages, each with a part of its text.  tests/test_hostile_names.py prints every stage.
SHOWN = {
    "given": "relu(x)",
    "fuse_ops": "relu(x)",
    "lower_to_kernels": "kernel relu_f32",
    "insert_kills": "alloc_storage",
    "routine": "__vmtir__main",
    "bytecode": "call",
    "kernels": "kernel relu_f32\n  b0: input f32[s0, 3]",
    "c": "#include",
}


@pytest.mark.parametrize("stage", SHOWN)
def test_show(folder: Path, stage: str) -> None:
    done = relvm("show", "model.relvm", "--stage", stage, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert SHOWN[stage] in done.stdout


def test_show_of_a_pass_that_does_not_run(folder: Path) -> None:
    done = relvm("show", "model.relvm", "--stage", "fuse_ops", "--unfused", cwd=folder)
    assert done.returncode == 1
    assert "--stage fuse_ops: this pass does not run" in done.stderr and "expected one of infer_types" in done.stderr


MEMORY = """def main(x: f32[4, 8]) -> f32[1] {
  a = concat(x, x, x, axis=0)
  b = pad(a, pads=(-4, 0, 0, 4))
  c = relu(matmul(a, b))
  d = max(c, axes=(1,))
  e = softmax(reshape(d, shape(1, 12)), axis=1)
  return max(e, axes=(1,))
}
"""


def test_show_of_memory(folder: Path) -> None:
    (folder / "memory.relvm").write_text(MEMORY)
    done = relvm("show", "memory.relvm", "--memory", "--target", "c", "--unfused", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert " ".join(lines[0]) == (
        "main: 7 tensors in 2 storages, 1 of them in place; 1,348 bytes, lower bound 1,344, ratio 1.003 at once"
    )
    assert " ".join(lines[1]) == "arena of 1,344 bytes, lower bound 1,344, ratio 1.000"
    assert lines[2] == ["offset", "bytes", "from", "to", "tensors"]
    assert ["576", "384", "0", "2", "a"] in lines and ["0", "576", "2", "4", "value", ">", "c"] in lines
    assert ["storage", "of", "4", "bytes"] in lines and ["0", "4", "7", "8", "result"] in lines


def test_show_of_memory_with_symbolic_sizes_and_branches(folder: Path) -> None:
    text = """def main(c: bool, x: f32[n, 8]) -> f32[n, 8] {
  return if c then softmax(softmax(x, axis=1), axis=1) else x
}
"""
    (folder / "branch.relvm").write_text(text)
    done = relvm("show", "branch.relvm", "--memory", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "main, result: then: 2 tensors in 2 storages" in done.stdout and "n * 32 bytes" in done.stdout
    assert "else" not in done.stdout


def test_show_of_memory_of_an_executable_is_refused(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "-o", "m.rvm", cwd=folder).returncode == 0
    done = relvm("show", "m.rvm", "--memory", cwd=folder)
    assert done.returncode == 1 and "requires a model, but m.rvm is an executable, already built" in done.stderr


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("ops", lambda: list(operators())),
        ("builtins", lambda: [f"vm.builtin.{row.name}" for row in BUILTINS]),
        ("opcodes", lambda: [row.name for row in OPCODES]),
        ("boards", lambda: [board.name for board in BOARDS]),
    ],
)
def test_tables_have_every_row(folder: Path, table: str, names) -> None:
    done = relvm(table, cwd=folder)
    assert done.returncode == 0, done.stderr
    words = set(done.stdout.split())
    assert not [name for name in names() if name not in words]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.onnx", "--random"], ["nowhere.onnx"]),
        (["run", "x.npy", "--random"], ["x.npy", ".onnx"]),
        (["run", "model.relvm"], ["--input", "x", "f32[n, 3]"]),
        (["run", "model.relvm", "--input", "y=x.npy"], ["y", "expected one of x"]),
        (["run", "model.relvm", "--input", "x=model.relvm"], ["model.relvm", ".npy"]),
        (
            ["run", "model.relvm", "--input", "x=none.npy"],
            ["relvm: error: none.npy: No such file or directory"],
        ),
        (["run", "model.relvm", "--random", "--function", "f"], ["no function f; expected one of main"]),
        (["verify", "model.relvm"], ["expected an executable (.rvm, .so)", "relvm compile"]),
        (["run", "model.relvm", "--random", "--function", "mian"], ["mian", "main"]),
        (["compile", "model.relvm", "-o", "model.bin"], [".rvm"]),
        (["show", "bad.relvm"], ["bad.relvm:2:1", "expected a parameter"]),
    ],
    ids=lambda value: "-".join(value)[:40],
)
def test_mistakes_are_one_line_with_the_names_in_it(folder: Path, arguments, words) -> None:
    (folder / "bad.relvm").write_text("def main(\n")
    done = relvm(*arguments, cwd=folder)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_output_that_nobody_reads_is_no_error(folder: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    command = [sys.executable, "-m", "relvm", "ops"]
    done = subprocess.run(command, cwd=folder, stdout=reader.stdin, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_damaged_executable_is_refused(folder: Path) -> None:
    assert relvm("compile", "model.relvm", "-o", "m.rvm", "--target", "numpy", cwd=folder).returncode == 0
    content = bytearray((folder / "m.rvm").read_bytes())
    (folder / "cut.rvm").write_bytes(content[: len(content) // 2])
    content[len(content) // 2] ^= 0xFF
    (folder / "flipped.rvm").write_bytes(content)
    for name in ("cut.rvm", "flipped.rvm"):
        done = relvm("run", name, "--random", cwd=folder)
        assert done.returncode == 1 and name in done.stderr and "Traceback" not in done.stderr
    done = relvm("show", "cut.rvm", "--stage", "bytecode", cwd=folder)
    assert done.returncode == 1 and "cut.rvm" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("stage", "sign"),
    [
        ("bytecode", "main"),
        ("c", "#include"),
        ("kernels", "no kernels in bytecode"),
        ("infer_types", "bytecode, kernels and c"),
    ],
)
@pytest.mark.parametrize("file", ["m.rvm", "m.so"])
def test_show_of_an_executable(folder: Path, stage: str, sign: str, file: str) -> None:
    assert relvm("compile", "model.relvm", "-o", file, cwd=folder).returncode == 0
    done = relvm("show", file, "--stage", stage, cwd=folder)
    assert done.returncode == (1 if stage == "infer_types" else 0)
    assert sign in (done.stderr if stage == "infer_types" else done.stdout)


def test_a_damaged_input_is_named(folder: Path) -> None:
    (folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\x05\x00(((((")  # NumPy raises a TokenError for this header
    done = relvm("run", "model.relvm", "--input", "x=x.npy", cwd=folder)
    assert done.returncode == 1 and "RelvmFormatError: x.npy is not a .npy file" in done.stderr


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3fn", "f8e5m2", "i4"])
def test_what_run_saves_of_dtypes_that_numpy_does_not_have_it_reads(dtype: str, folder: Path) -> None:
    (folder / "cast.relvm").write_text(f'def main(x: f32[n]) -> {dtype}[n] = cast(x, to="{dtype}")\n')
    (folder / "back.relvm").write_text(f'def main(x: {dtype}[n]) -> f32[n] = cast(x, to="f32")\n')
    np.save(folder / "x.npy", np.float32([1, 0, 4]))
    save = ["--target", "numpy", "--output", "o.npz"]
    done = relvm("run", "cast.relvm", "--input", "x=x.npy", *save, cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "o.npz") as outputs:
        assert outputs["output"].dtype.kind == "V"
        np.save(folder / "narrow.npy", outputs["output"])
    done = relvm("run", "back.relvm", "--input", "x=narrow.npy", *save, cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "o.npz") as outputs:
        assert outputs["output"].tolist() == [1, 0, 4]
    done = relvm("run", "cast.relvm", "--input", "x=narrow.npy", *save, cwd=folder)
    assert done.returncode == 1 and "RelvmTypeError" in done.stderr


@pytest.mark.parametrize("command", ["run", "debug"])
def test_an_executable_that_does_not_say_what_its_inputs_are(command: str, folder: Path) -> None:
    builder = vm.ExecBuilder()
    with builder.function("main", ["x"]):
        builder.emit_ret(builder.r(0))
    builder.get().save(folder / "m.rvm")
    done = relvm(command, "m.rvm", "--input", "x=x.npy", cwd=folder)
    assert done.returncode == 1 and "main: the executable does not describe its inputs" in done.stderr, done.stderr


def test_an_archive_is_no_input(folder: Path) -> None:
    np.savez(folder / "x.npz", a=np.float32([1]), b=np.float32([2]))
    done = relvm("run", "model.relvm", "--input", "x=x.npz", cwd=folder)
    assert done.returncode == 1 and done.stderr.endswith("expected a .npy file, but x.npz is an archive of a, b\n"), (
        done.stderr
    )


def test_run_saves_strings(folder: Path) -> None:
    (folder / "strings.relvm").write_text("def main(x: str[n]) -> str[n] = x\n")
    save = ["run", "strings.relvm", "--input", "x=x.npy", "--target", "numpy", "--output", "o.npz"]
    np.save(folder / "x.npy", np.array(["", "naïve", "\U0001f600"]))
    done = relvm(*save, cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "o.npz") as outputs:
        assert outputs["output"].tolist() == ["", "naïve", "\U0001f600"]
