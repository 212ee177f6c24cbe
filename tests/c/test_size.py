"""Test of the size of the runtime in a C program built with CMake: text and data, without the program itself."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_c import ROOT

import relvm
from relvm import vm
from relvm.bytecode.program import FunctionEntry, Program, call, constant, ret
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable

CMAKE, GCC = shutil.which("cmake"), shutil.which("gcc")
# Limits for each setting of RELVM_STRINGS and RELVM_KERNELS.  With gcc 12 on x86-64, the sizes are 686, 199 and 170 kB.
MAX_BYTES = {("ON", "ON"): 695_000, ("ON", "OFF"): 200_000, ("OFF", "OFF"): 170_500}

pytestmark = pytest.mark.skipif(CMAKE is None or GCC is None, reason="no CMake or no gcc")


Built = tuple[str, str, Path]


@pytest.fixture(scope="module", params=MAX_BYTES, ids=" ".join)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the example with CMake.  Return the settings of RELVM_STRINGS and RELVM_KERNELS, and the build folder."""
    folder = tmp_path_factory.mktemp("cmake")
    strings, kernels = request.param
    settings = ["-DCMAKE_C_COMPILER=gcc", f"-DRELVM_STRINGS={strings}", f"-DRELVM_KERNELS={kernels}"]
    for command in (["-S", ROOT, "-B", folder, *settings], ["--build", folder, "--parallel", "2"]):
        done = subprocess.run([CMAKE, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return strings, kernels, folder


def text_and_data(path: Path) -> int:
    shown = subprocess.run(["size", path], capture_output=True, text=True, check=True).stdout
    text, data, *_ = shown.splitlines()[1].split()
    return int(text) + int(data)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sizes are those of x86-64")
def test_the_runtime_is_small(built: Built, tmp_path: Path) -> None:
    strings, kernels, folder = built
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([GCC, tmp_path / "empty.c", "-o", tmp_path / "empty"], check=True)
    (example,) = folder.rglob("relvm_run.c.o")
    own_bytes = text_and_data(example) + text_and_data(tmp_path / "empty")
    assert text_and_data(folder / "relvm_run") - own_bytes <= MAX_BYTES[strings, kernels]


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config")
def test_an_installation_has_files_for_cmake_and_pkg_config(built: Built, tmp_path: Path) -> None:
    _, kernels, folder = built
    if kernels == "OFF":
        pytest.skip("the program runs kernel bytecode")
    prefix, environment = tmp_path / "prefix", {"PATH": os.environ["PATH"]}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(str(CMAKE), "--install", folder, "--prefix", prefix)
    environment["PKG_CONFIG_PATH"] = str(prefix / "lib" / "pkgconfig")
    source = ROOT / "examples" / "c" / "relvm_run.c"
    flags = run("pkg-config", "--cflags", "--libs", "relvm").split()
    run(str(GCC), source, *flags, "-o", "with_pkg_config")
    text = f"""
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(relvm {relvm.__version__} REQUIRED)
add_executable(with_cmake {source})
target_link_libraries(with_cmake PRIVATE relvm::relvm)
"""
    (tmp_path / "CMakeLists.txt").write_text(text)
    run(str(CMAKE), f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={GCC}", "-B", "build", ".")
    run(str(CMAKE), "--build", "build")
    vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="bytecode").save(tmp_path / "model.rvm")
    for program in ("with_pkg_config", "build/with_cmake"):
        assert run(tmp_path / program, "model.rvm", "main", "f32[3]").strip() == "f32[3] 0 2 4"
    assert run("pkg-config", "--modversion", "relvm").strip() == relvm.__version__


def run(folder: Path, builtin: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the example on a program that calls a builtin with the same constant as both arguments."""
    words = np.array(["a", "b"], object)
    code = (call(0, 0, constant(0), constant(0)), ret(0))
    functions = (FunctionEntry(f"vm.builtin.{builtin}", "packed"), FunctionEntry("main", "bytecode", (), 1, code))
    path = tmp_path / "program.rvm"
    Executable.from_program(Program(functions, (words,))).save(path)
    return subprocess.run([folder / "relvm_run", path, "main"], capture_output=True, text=True)


def test_programs_that_use_no_builtin_of_strings_run(built: Built, tmp_path: Path) -> None:
    done = run(built[2], "make_tuple", tmp_path)
    assert done.returncode == 0 and re.match(r"\(.*\)\n", done.stdout), done.stderr


def test_a_builtin_that_is_not_built_says_how_to_build_it(built: Built, tmp_path: Path) -> None:
    strings, _, folder = built
    done = run(folder, "string_concat", tmp_path)
    if strings == "ON":
        assert done.returncode == 0, done.stderr
    else:
        said = (
            "vm.builtin.string_concat: this runtime does not contain the builtin, because it was built without strings "
            "(RELVM_STRINGS=OFF)"
        )
        assert (done.returncode, done.stderr) == (1, f"error: {said}\n")


def test_kernel_bytecode_runs_or_says_how_to_build_its_interpreter(built: Built, tmp_path: Path) -> None:
    _, kernels, folder = built
    path = tmp_path / "program.rvm"
    vm.build(parse_module("def main(x: f32[2]) -> f32[2] = exp(x)"), target="bytecode").save(path)
    done = subprocess.run([folder / "relvm_run", path, "main", "f32[2]"], capture_output=True, text=True)
    if kernels == "ON":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1 and "RELVM_KERNELS=ON" in done.stderr
