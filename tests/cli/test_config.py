"""Tests of `relvm config`: C programs that embed the runtime can be built with the printed options."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from relvm import __version__, vm
from relvm.cli import main
from relvm.frontend.text import parse_module

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "c"
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(relvm 0.1 REQUIRED)
add_executable(relvm_run {source})
target_link_libraries(relvm_run PRIVATE relvm::relvm)
"""


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["config", *options]) == 0
    return capsys.readouterr().out.strip()


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Save a bytecode executable with a kernel."""
    module = parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)")
    vm.build(module, target="bytecode").save(tmp_path / "double.rvm")
    return tmp_path / "double.rvm"


def test_a_compiler_builds_a_c_program(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = printed(capsys, "--cflags", "--libs").split()
    run("cc", EXAMPLES / "relvm_run.c", *flags, "-o", "program", folder=program.parent)
    assert "0 2 4" in run("./program", program, "main", "f32[3]", folder=program.parent)


def test_cmake_finds_the_package(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = program.parent
    (folder / "CMakeLists.txt").write_text(CMAKE.format(source=EXAMPLES / "relvm_run.c"))
    place = printed(capsys, "--cmake-dir")
    run("cmake", "-G", "Unix Makefiles", f"-Drelvm_DIR={place}", ".", folder=folder)
    run("cmake", "--build", ".", folder=folder)
    assert "0 2 4" in run("./relvm_run", program, "main", "f32[3]", folder=folder)


def test_values_are_printed_alone_all_together_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--version") == __version__
    assert (Path(printed(capsys, "--include-dir")) / "relvm.h").exists()
    everything = json.loads(printed(capsys, "--json"))
    assert Path(everything["library"]).name == "librelvm.a"
    assert f"cmake-dir: {everything['cmake_dir']}" in printed(capsys)
    assert (Path(printed(capsys, "--pkg-config-dir")) / "relvm.pc").exists()
    assert json.loads(printed(capsys, "--json", "--version")) == {"version": __version__}


def test_an_installation_without_the_library_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("relvm._native.__file__", str(tmp_path / "_native.so"))
    assert main(["config", "--libs"]) == 1
    assert "--libs: this installation of relvm contains no C library" in capsys.readouterr().err
    assert "library: none" in printed(capsys)
