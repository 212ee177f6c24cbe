"""Tests of `relvm debug`: commands, and the printed stops and values."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm.cli.debug import Prompt

TEXT = """def main(x: f32[n], k: i64) -> f32[n] {
  a = add(x, x)
  b = if k > 0 then @main(a, k - 1) else a
  return sqrt(b)
}
"""


def debug(folder: Path, commands: str, *options: str) -> subprocess.CompletedProcess:
    (folder / "model.relvm").write_text(TEXT)
    np.save(folder / "x.npy", np.float32([-1, 2]))
    command = [sys.executable, "-m", "relvm", "debug", "model.relvm", "--input", "x=x.npy", "--input", "k=1", *options]
    done = subprocess.run(command, cwd=folder, input=commands, capture_output=True, text=True)
    # Remove messages about progress, which are only printed after a second.
    done.stderr = re.sub(r"^relvm: (building|built).*\n", "", done.stderr, flags=re.MULTILINE)
    return done


def test_help_quotes_what_it_does_not_know(tmp_path: Path) -> None:
    done = debug(tmp_path, "help \x1b[31m\nhelp nan\n?\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "RelvmNameError: unknown command \\x1b[31m; `help` lists the commands\nnan [off]: stop"
    )
    assert "break" in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_a_session(tmp_path: Path, mode: str) -> None:
    commands = """
break model.relvm:2
break
run
where
print x
continue
registers
up
print k
down
next
p a
delete 1
nan
c
bt
p r1
nan off
finish
c
quit
"""
    done = debug(tmp_path, commands, "--exec-mode", mode)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    assert shown.count("1: model.relvm:2, at main:") == 2
    assert shown.count("breakpoint\nin main, model.relvm:2:3:  a = add(x, x)\n") == 2
    assert "* 0: main:" in shown
    assert "f32[2] [-1.,  2.]\n" in shown
    assert "room for a" in shown
    assert "\n1\n" in shown  # the output of `print k` in the caller
    assert "f32[2] [-4.,  8.]\n" in shown
    assert "nan: result has 1 NaN, made by main:" in shown
    assert "the run has ended: f32[2] [     nan, " in shown


def test_a_session_inside_a_kernel(tmp_path: Path) -> None:
    commands = """
break add_f32:1
run
print s0
stepk
registers
print x
where
delete 1
nextk
finish
help stepk
help nextk
quit
"""
    done = debug(tmp_path, commands, "--target", "bytecode")
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    assert "1: add_f32:1, at add_f32:1\nbreakpoint\nin add_f32\n" in shown
    assert "\n2\nstep\nin add_f32\n" in shown
    assert re.search(r"^b0    x +f32\[2\] \[-1.,  2.\]$", shown, re.MULTILINE)
    assert re.search(r"^\* 0: add_f32:2 .*\n  1: main:", shown, re.MULTILINE)
    assert "step\nin main, model.relvm:" in shown
    assert "stepk: continue" in shown and "nextk: continue" in shown


def test_mistakes_are_said_and_the_session_goes_on(tmp_path: Path) -> None:
    done = debug(
        tmp_path, "step\nbreak nothing\nwalk\ndelete x\nnan perhaps\nup\nstart\nup\np y\nstart\nlist\nhelp nan\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:6] == [
        "RelvmArgumentError: no run is in progress; call `run` or `start` first",
        "RelvmNameError: break at nothing: no such function, value or source line in main",
        "RelvmNameError: unknown command walk; `help` lists the commands",
        "RelvmArgumentError: expected a breakpoint number, got x",
        "RelvmArgumentError: nan perhaps: expected `nan` or `nan off`",
        "RelvmArgumentError: no run is in progress; call `run` or `start` first",
    ]
    assert "RelvmArgumentError: already at the outermost function" in lines
    assert any(
        line.startswith("RelvmNameError: no register holds y here; the named values are: k, x") for line in lines
    )
    assert lines[-2] == "nan [off]: stop where the first NaN is computed, or no longer."


def test_help_knows_the_short_names_too(tmp_path: Path) -> None:
    done = debug(tmp_path, "help b\nhelp si\nhelp\nstap\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("break [WHERE [in FUNCTION]]: stop at WHERE")
    assert "\nstepi: continue to the very next instruction.\nshort: si\nexample: `stepi` " in done.stdout
    assert "\nBreakpoints:\n  break, b      stop at WHERE" in done.stdout
    assert "\n  where, bt     print the call stack" in done.stdout
    assert "unknown command stap; did you mean step" in done.stdout


def test_help_has_a_line_and_an_example_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = Prompt(None, "main", [])
    commands = {value.__name__ for name, value in vars(Prompt).items() if name.startswith("do_")}
    prompt.onecmd("help")
    listed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in listed.splitlines())
    for command in commands:
        name = command.removeprefix("do_")
        assert len(re.findall(rf"^  {name}(,| )", listed, re.MULTILINE)) == 1
        prompt.onecmd(f"help {name}")
        assert "\nexample: `" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--function", "mian"], ["no function mian", "did you mean main?"]),
        (["--input", "k=half"], ["--input k is given twice"]),
        (["--seed", "-1"], ["--seed -1"]),
    ],
)
def test_what_cannot_begin_is_one_line(tmp_path: Path, options: list[str], words: list[str]) -> None:
    done = debug(tmp_path, "run\n", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert all(word in done.stderr for word in words)


def test_a_saved_executable_is_debugged_where_it_is_compiled_for_that(tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    inputs = ("--input", "x=x.npy", "--input", "k=0")

    def relvm(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "relvm", *arguments]
        return subprocess.run(command, cwd=tmp_path, input="break 2\nrun\n", capture_output=True, text=True)

    compiling = ("compile", "model.relvm", "--exec-mode", "compiled")
    assert relvm(*compiling, "-o", "plain.rvm").returncode == 0
    assert relvm(*compiling, "-o", "debug.rvm", "--debug").returncode == 0
    done = relvm("debug", "plain.rvm", *inputs)
    assert done.returncode == 1 and "build it with relvm compile --debug" in done.stderr
    done = relvm("debug", "debug.rvm", *inputs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "breakpoint\nin main, model.relvm:2:3:  a = add(x, x)\n" in done.stdout


@pytest.mark.parametrize("text", ["1.5", "k.npy", ""])
def test_a_scalar_that_is_no_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.relvm").write_text("def main(k: i64) -> i64 = k")
    command = [sys.executable, "-m", "relvm", "run", "model.relvm", "--input", f"k={text}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"--input k={text}: expected a number of type i64" in done.stderr
