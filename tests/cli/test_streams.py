"""Tests of standard streams that are closed, full or without a reader, and of Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

RELVM = f"{sys.executable} -m relvm"
MODEL = 'def main(x: f32[2]) => f32[2] {\n  _ = packed("vm.builtin.print", x) : ()\n  return x\n}\n'
SPIN = "def main(x: f32[2]) -> (f32[2], i64) = (x, @loop(1))\n" + (
    "def loop(i: i64) -> i64 = if i > 0 then @loop(i + 1) else i\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.relvm").write_text(MODEL)
    (tmp_path / "spin.relvm").write_text(SPIN)
    return tmp_path


def shell(command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a command in bash.  Its exit status is that of the first command of the pipe."""
    line = f"{command}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, capture_output=True, text=True, env=os.environ | environment, timeout=600
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["run model.relvm --random", "show model.relvm", "ops"])
def test_a_full_disk_is_an_error_and_a_reader_that_has_gone_is_none(
    folder: Path, arguments: str, unbuffered: str
) -> None:
    full = shell(f"{RELVM} {arguments} >/dev/full", folder, PYTHONUNBUFFERED=unbuffered)
    assert full.returncode == 1 and "No space left on device\n" in full.stderr, full.stderr
    assert "Exception ignored" not in full.stderr
    if not (unbuffered and arguments.startswith("run")):  # otherwise the program itself fails to print
        gone = shell(f"{RELVM} {arguments} | true", folder, PYTHONUNBUFFERED=unbuffered)
        assert gone.returncode == 0 and "rror" not in gone.stderr, gone.stderr


def test_help_on_a_full_disk_is_an_error(folder: Path) -> None:
    full = shell(f"{RELVM} run --help >/dev/full", folder, PYTHONUNBUFFERED="")
    assert (full.returncode, full.stderr) == (
        1,
        "relvm: error: standard output: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("arguments", "status"), [("run model.relvm --random", 0), ("run nowhere.relvm", 1), ("ops --nothing", 2)]
)
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">&-", "<&- >&- 2>&-"])
def test_the_status_is_the_same_where_nothing_can_be_said(
    folder: Path, arguments: str, status: int, streams: str
) -> None:
    done = shell(f"{RELVM} {arguments} {streams}", folder)
    assert done.returncode == status and "Traceback" not in done.stderr, done.stderr


def test_files_do_not_take_the_number_of_a_closed_stream(folder: Path) -> None:
    save = "run model.relvm --random --output out.npz <&- >&- 2>&-"
    assert shell(f"{RELVM} {save}", folder).returncode == 0
    assert (folder / "out.npz").read_bytes()[:2] == b"PK"


def test_debug_without_standard_input_ends(folder: Path) -> None:
    done = shell(f"{RELVM} debug model.relvm --random <&-", folder)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize(
    "arguments", ["run --random --exec-mode compiled", "run --random --target numpy", "debug --random"]
)
def test_ctrl_c_is_status_130_and_one_line(folder: Path, arguments: str) -> None:
    command = [*RELVM.split(), *arguments.split(), "spin.relvm"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(4)  # enough to build the program and start the run or the prompt
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130 and said.endswith("relvm: interrupted\n") and "Traceback" not in said, said


def test_what_was_typed_is_quoted_and_cut(folder: Path) -> None:
    for arguments in ("'op\x1b[31ms'", "ops '\x1b[31m'", "run '--dim\x1b[31m=2' x", "run \x1b[31m.relvm"):
        done = shell(f"{RELVM} {arguments}", folder)
        assert done.returncode in (1, 2) and "\x1b" not in done.stderr and "\\x1b[31m" in done.stderr, done.stderr
    done = shell(f"{RELVM} run model.relvm --dim {'9' * 100_000}", folder)
    assert done.returncode == 1 and len(done.stderr) < 5000 and "expected NAME=SIZE" in done.stderr


def test_names_that_the_terminal_cannot_show_are_escaped(folder: Path) -> None:
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "größe"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["größe"])], "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), folder / "m.onnx")
    done = shell(f"{RELVM} run m.onnx --random --target numpy", folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "gr\\xf6\\xdfe: float32[2]" in done.stdout, done.stderr


def test_debug_reads_commands_that_are_no_text(folder: Path) -> None:
    done = shell(f"printf 'print \\377\\nstart\\nprint \\377\\n' | {RELVM} debug model.relvm --random", folder)
    assert "no register holds \\xff here" in done.stdout and not done.stderr, done.stderr
