"""The real-time mode: runs after the first allocate nothing, take no lock and make no system call."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_c import HERE

from relvm import vm
from relvm.cli.config import _config_values
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.text import parse_module

PROGRAMS = {
    "network": (
        """def main(x: f32[n, 8]) -> f32[n, 8] {
  w = reshape(relu(x), shape(8, n))
  y = softmax(matmul(x, w), axis=1)
  return matmul(y, tanh(x))
}""",
        "6,8",
        "60,8",
    ),
    "loop": (
        """def main(x: f32[n]) -> f32[n] {
  step = fn step(i: i64, y: f32[n]) -> f32[n] {
    return if i == 20 then y else step(i + 1, sigmoid(add(y, x)))
  }
  return step(0, x)
}""",
        "100",
        "10000",
    ),
}
WRAPPED = re.findall(r"^WRAPPED\(.*?, (\w+), \(", (HERE / "real_time.c").read_text(), re.MULTILINE)
LIBRARY = _config_values()["libs"]

pytestmark = [
    pytest.mark.skipif(platform.system() != "Linux", reason="the program filters system calls of Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(LIBRARY is None, reason="relvm was built without the static library"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real_time") / "real_time"
    values = _config_values()
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    flags = [*str(values["cflags"]).split(), HERE / "real_time.c", *wraps, *str(LIBRARY).split()]
    subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", *flags, "-o", path], check=True)
    return path


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_runs_after_the_first_use_neither_the_allocator_nor_the_system(
    program: Path, name: str, mode: str, tmp_path: Path
) -> None:
    if mode == "compiled" and find_compiler() is None:
        pytest.skip("no C compiler")
    text, dims, larger = PROGRAMS[name]
    vm.build(parse_module(text), mode, "c" if mode == "compiled" else "bytecode").save(tmp_path / "model.rvm")
    done = subprocess.run([program, tmp_path / "model.rvm", "50", dims, larger], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"this system allows no filter of system calls: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    counts, message = done.stdout.splitlines()
    assert counts == "allocations 0, frees 0, locks 0, clocks 0"
    assert re.fullmatch(
        r"out of memory: a real-time run needs a block of \d+ bytes more than the first run; .*", message
    )
