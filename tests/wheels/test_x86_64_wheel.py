"""The wheels for x86-64: their contents, and the main job of the README with nothing else installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import numpy as np
import pytest
from bare_root import PACKAGES, can_enter, install, make_root, run_in
from support.documents import ROOT
from wheel_models import expected, results, write_job

import relvm
from release.wheels import PLATFORMS, build_sdist, build_wheels
from relvm import vm
from relvm.compiler.find_compiler import find_compiler

OLDEST = "Nehalem"  # x86-64-v2: NumPy needs it.  It has neither AVX nor FMA.
_PLATFORM = PLATFORMS[0]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheels(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheels of relvm-runtime and relvm."""
    return build_wheels(sdist, _PLATFORM, tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def root(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root folder with Python, the wheels, what they require, and the job."""
    folder = tmp_path_factory.mktemp("root")
    make_root(folder, *map(str, wheels))
    write_job(folder)
    return folder


needs_namespaces = pytest.mark.skipif(not can_enter(), reason="this user cannot create mount namespaces")


def tracked(*folders: str) -> set[str]:
    """Return the paths of the files under version control."""
    return set(subprocess.check_output(["git", "ls-files", *folders], cwd=ROOT, text=True).splitlines())


def test_the_sdist_contains_all_sources(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {name for name in tracked() if not name.startswith(".")}
    assert needed <= names, sorted(needed - names)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheels_contain_the_package_the_c_sources_and_bills_of_materials(wheels: tuple[Path, Path]) -> None:
    runtime, compiler = map(contents, wheels)
    sources = {name for name in tracked("csrc") if not name.startswith("csrc/python/")}
    needed = tracked("relvm") | {f"relvm/{name}" for name in sources}
    assert needed <= runtime.keys() | compiler.keys(), sorted(needed - runtime.keys() - compiler.keys())
    assert not runtime.keys() & compiler.keys()
    for name, files in (("relvm-runtime", runtime), ("relvm", compiler)):
        information = f"{name.replace('-', '_')}-{relvm.__version__}.dist-info"
        assert {path.split("/")[0] for path in files} == {"relvm", information}
        metadata = message_from_bytes(files[f"{information}/METADATA"])
        assert (metadata["Name"], metadata["Version"]) == (name, relvm.__version__)
        assert f"{information}/licenses/LICENSE" in files
        bill = json.loads(files[f"{information}/sboms/{name}.cdx.json"])
        component = bill["metadata"]["component"]
        assert (bill["bomFormat"], component["name"], component["version"]) == ("CycloneDX", name, relvm.__version__)
        assert component["purl"].endswith(f"/{name}@{relvm.__version__}")
        (tool,) = bill["metadata"]["tools"]["components"]
        assert tool["name"].startswith("zig ")
        texts = files[f"{information}/sboms/{name}.cdx.json"].replace(b"cffi@", b"")
        assert b"@" not in texts.replace(f"{name}@".encode(), b"")
        rows = files[f"{information}/RECORD"].decode().splitlines()
        assert {row.split(",")[0] for row in rows} == files.keys()


def test_relvm_requires_the_runtime_of_the_same_version(wheels: tuple[Path, Path]) -> None:
    runtime, compiler = map(contents, wheels)
    needed = []
    for files in (runtime, compiler):
        (name,) = (name for name in files if name.endswith("/METADATA"))
        texts = message_from_bytes(files[name]).get_all("Requires-Dist")
        needed.append([text for text in texts if "extra ==" not in text])
    assert needed[0] == ["numpy", "cffi>=2.0"]
    assert needed[1][0] == f"relvm-runtime=={relvm.__version__}"
    assert not any(name.endswith("entry_points.txt") for name in runtime)


def test_the_runtime_is_small(wheels: tuple[Path, Path]) -> None:
    """Installed, relvm-runtime has at most 3 MB."""
    assert sum(map(len, contents(wheels[0]).values())) <= 3_000_000


def test_a_second_build_has_the_same_bytes(sdist: Path, wheels: tuple[Path, Path], tmp_path: Path) -> None:
    os.utime(sdist)
    again = build_wheels(sdist, _PLATFORM, tmp_path / "elsewhere")
    assert [wheel.read_bytes() for wheel in again] == [wheel.read_bytes() for wheel in wheels]
    assert build_sdist(tmp_path / "sdist").read_bytes() == sdist.read_bytes()


@needs_namespaces
def test_the_runtime_alone_runs_executables_bundles_and_cached_builds(
    wheels: tuple[Path, Path], root: Path, tmp_path: Path
) -> None:
    """The root contains Python, relvm-runtime, NumPy and cffi."""
    folder = tmp_path / "root"
    make_root(folder, str(wheels[0]))
    write_job(folder)
    executable = vm.build(folder / "model.onnx", target="bytecode")
    executable.save(folder / "model.rvm")
    vm.bundle(executable, folder / "network-1.0-py3-none-any.whl", source="network.onnx")
    install(folder / PACKAGES[1:], str(folder / "network-1.0-py3-none-any.whl"), options=("--no-deps",))
    packages = {path.name.partition("-")[0] for path in (folder / PACKAGES[1:]).glob("*.dist-info")}
    assert packages == {"relvm_runtime", "numpy", "cffi", "pycparser", "network"}
    (folder / "main_job.py").write_text((folder / "main_job.py").read_text().replace("relvm.load_model", "job"))
    job = (
        "import relvm, network, runpy, sys; sys.argv[1:] = ['/model.rvm']; runpy.run_path('/main_job.py', {'job': %s})"
    )
    for loader in ("relvm.load_model", "lambda path: network.load()"):
        done = run_in(folder, "-c", job % loader)
        assert (done.returncode, done.stderr) == (0, "")
        assert results(done.stdout) == expected(folder)
    code = (
        "import relvm, sys; relvm.load_model('model.onnx')([[[[0.0] * 8] * 8] * 3]); print('relvm.ir' in sys.modules)"
    )
    for packages, builds in ((root, "True"), (folder, "False")):  # the first one fills the cache
        environment = {"PYTHONPATH": str(packages / PACKAGES[1:]), "RELVM_CACHE_DIR": str(tmp_path / "cache")}
        command = [str(Path(sys.executable).resolve()), "-S", "-c", code]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        assert (done.returncode, done.stdout.strip()) == (0, builds), done.stderr


@needs_namespaces
def test_the_main_job_runs_in_a_bare_root(root: Path) -> None:
    """The root has no compiler, no home, no place for files and no UTF-8."""
    done = run_in(root, "/main_job.py", "/model.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert results(done.stdout) == expected(root)


@needs_namespaces
def test_the_bare_root_is_bare(root: Path) -> None:
    code = """
import os, locale, shutil, sys
assert not any(map(shutil.which, ("cc", "gcc", "clang", "sh")))
assert not any(map(os.path.exists, ("/usr/include", "/dev", "/proc", "/tmp", "/etc")))
assert sys.getfilesystemencoding() == "ascii", sys.getfilesystemencoding()
assert os.path.expanduser("~") == "~"
try:
    open("/packages/new", "w")
except OSError:
    print("read-only")
"""
    done = run_in(root, "-c", code)
    assert (done.stdout, done.stderr) == ("read-only\n", "")


@needs_namespaces
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cache"], "no home directory; set RELVM_CACHE_DIR"),
        (["run", "/model.onnx", "--random", "--exec-mode", "compiled"], "no C compiler found"),
        (["compile", "/model.onnx", "-o", "/model.rvm"], "-o /model.rvm: permission denied"),
    ],
)
def test_errors_in_a_bare_root_say_what_is_missing(root: Path, arguments: list[str], message: str) -> None:
    done = run_in(root, "-m", "relvm", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@needs_namespaces
def test_the_command_line_runs_in_a_bare_root(root: Path) -> None:
    done = run_in(root, "-m", "relvm", "run", "/model.onnx", "--random")
    assert done.returncode == 0, done.stderr
    assert "no C compiler found: using kernel bytecode" in done.stderr


def run_on_old_processor(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with the packages of the root on an emulated processor."""
    if not (emulator := shutil.which("qemu-x86_64")):
        pytest.skip("not installed: qemu-user (.ci/run has the packages)")
    python = str(Path(sys.executable).resolve())
    command = [emulator, "-cpu", OLDEST, python, "-S", *arguments]
    environment = {"PYTHONPATH": str(root / PACKAGES[1:]), "PATH": "/nonexistent"}  # without a compiler
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=600)


def test_the_main_job_runs_on_the_oldest_processor(root: Path) -> None:
    """The results differ in the last bits, because this processor has no fused multiply-add."""
    done = run_on_old_processor(root, "main_job.py", "model.onnx")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(results(done.stdout), expected(root), rtol=1e-4, atol=1e-7)


@pytest.mark.skipif(find_compiler() is None, reason="the test compiles native code for a newer processor")
def test_native_code_for_newer_processors_is_refused_on_the_oldest(root: Path) -> None:
    """An executable names the missing instructions.  If it contains a portable program, this program runs."""
    for name, portable in (("native.rvm", False), ("portable.rvm", True)):
        built = vm.build(root / "model.onnx", "compiled", "x86-64-v3", portable=portable)
        built.save(root / name)
    code = """
import numpy as np
import relvm
from relvm.errors import RelvmUnsupportedError
try:
    relvm.load_model("native.rvm", trust_native=True)
except RelvmUnsupportedError as error:
    print(error)
model = relvm.load_model("portable.rvm", trust_native=True)
print(model(np.ones((1, 3, 8, 8), np.float32)).numpy().shape)
"""
    done = run_on_old_processor(root, "-c", code)
    assert done.returncode == 0, done.stderr
    refusal, shape = done.stdout.splitlines()
    assert "was built for processors with x86-64-v3" in refusal
    assert "Nehalem" in refusal
    assert shape == "(1, 10)"
