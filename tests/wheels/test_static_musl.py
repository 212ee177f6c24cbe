"""A static program with the C runtime, linked with musl by zig cc."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from support.documents import ROOT

from build_backend import write_zig_tools
from relvm import vm
from relvm.frontend.text import parse_module


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is for x86-64")
def test_a_static_program_with_musl_runs_a_model(tmp_path: Path) -> None:
    (tools := tmp_path / "tools").mkdir()
    compiler = write_zig_tools(tools, "-target", "x86_64-linux-musl")
    settings = {
        "CMAKE_C_COMPILER": compiler,
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "x86_64",
        "CMAKE_BUILD_TYPE": "Debug",  # which compiles in a fraction of the time
        "CMAKE_EXE_LINKER_FLAGS": "-static",
        "RELVM_STRINGS": "OFF",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    for command in (["-S", ROOT, "-B", tmp_path / "build", *options], ["--build", tmp_path / "build", "-j", "2"]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="bytecode").save(tmp_path / "m.rvm")
    program = tmp_path / "build" / "relvm_run"
    assert b"INTERP" not in subprocess.run(["readelf", "-l", program], capture_output=True).stdout
    done = subprocess.run([program, tmp_path / "m.rvm", "main", "f32[3]"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "f32[3] 0 2 4"), done.stderr
