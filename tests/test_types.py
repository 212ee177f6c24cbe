"""Type checking of relvm's modules, and of a program that uses them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from support.documents import ROOT

MODEL = """\
# mypy: ignore-errors
from relvm import script


@script
class Dense:
    def main(x: "f32[n, 4]", w: "f32[4, 8]") -> "f32[n, 8]":
        return relu(x @ w)
"""

PROGRAM = """\
import numpy as np
from relvm import vm
from relvm.runtime.function import Function

from model import Dense

executable = vm.build(Dense, exec_mode="bytecode")
reveal_type(executable)
executable.save("dense.rvm")
reveal_type(vm.load("dense.rvm", trust_native=True))
machine = vm.VirtualMachine(executable, max_seconds=1.0)
reveal_type(machine)
main = machine["main"]
assert isinstance(main, Function)
reveal_type(main.parameters)
result = main(np.ones((3, 4), np.float32), np.ones((4, 8), np.float32))
assert isinstance(result, vm.Tensor)
reveal_type(result.numpy())
"""

REVEALED = [
    "relvm.runtime.executable.Executable",
    "relvm.runtime.executable.Executable",
    "relvm.runtime.virtual_machine.VirtualMachine",
    "tuple[str, ...]",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]",
]


def check(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "model.py").write_text(MODEL)
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-P", "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_program_sees_real_types(tmp_path: Path) -> None:
    done = check(tmp_path, PROGRAM)
    lines = done.stdout.splitlines()
    assert [line.partition('is "')[2].rstrip('"') for line in lines if "Revealed type" in line] == REVEALED
    assert not [line for line in lines if ": error:" in line], done.stdout
    wrong = check(tmp_path, PROGRAM + "\nvm.VirtualMachine(executable, max_second=1.0)\nvm.load(3)\n")
    assert [line.partition("error: ")[2][:10] for line in wrong.stdout.splitlines() if ": error:" in line] == [
        "Unexpected",
        "Argument 1",
    ], wrong.stdout


def test_every_module_is_checked() -> None:
    """No module of relvm is excluded with `ignore_errors`.  .ci/run runs mypy."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    assert not [name for each in overrides if each.get("ignore_errors") for name in each["module"]]
