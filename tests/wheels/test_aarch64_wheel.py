"""The wheels for AArch64 run the main job of the README under Debian's Python for AArch64, in QEMU."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from arm64_root import PYTHON, SOURCES, install_in_arm64_root, make_arm64_root
from wheel_models import expected, results, write_job

from release.wheels import PLATFORMS, build_sdist, build_wheels
from relvm import vm
from relvm.frontend.text import parse_module

_MISSING = [name for name in ("qemu-aarch64", "apt-get", "dpkg-deb") if shutil.which(name) is None]
_MISSING += [] if SOURCES.exists() else [str(SOURCES)]
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"missing: {', '.join(_MISSING)} (.ci/run has the packages)")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root folder with Python, the wheels, what they require, and the job."""
    folder = tmp_path_factory.mktemp("aarch64")
    (platform,) = (each for each in PLATFORMS if each.tag == "manylinux_2_17_aarch64")
    wheels = build_wheels(build_sdist(folder / "dist"), platform, folder / "dist")
    root = make_arm64_root(folder / "debian")
    install_in_arm64_root(root, *map(str, wheels))
    write_job(root)
    return root


def run(root: Path, *arguments: str, processor: str = "max") -> str:
    environment = {"PYTHONPATH": str(root / "packages"), "PATH": "/nonexistent"}
    emulator = [str(shutil.which("qemu-aarch64")), "-cpu", processor, "-L", str(root)]
    command = [*emulator, str(root / PYTHON), *arguments]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_main_job_gives_the_same_bits(root: Path) -> None:
    assert results(run(root, "main_job.py", "model.onnx")) == expected(root)


@pytest.mark.parametrize("processor", ["cortex-a72", "cortex-a76", "max"])
def test_products_of_bytes(root: Path, processor: str) -> None:
    """Their kernels differ: without dot products, with them, and with those of mixed signs."""
    text = """def main(x: u8[n, 70], w: i8[70, 40]) -> i32[n, 40] =
      matmul_integer(x, w, const(u8[], 3), const(i8[], -2))"""
    vm.build(parse_module(text), "bytecode", "bytecode").save(root / "bytes.rvm")
    code = """
import json, numpy as np, relvm
x, w = np.arange(9 * 70, dtype=np.uint8).reshape(9, 70), np.arange(70 * 40).astype(np.int8).reshape(70, 40)
print(json.dumps(relvm.load_model("bytes.rvm")(x, w).numpy().tolist()))
"""
    x, w = np.arange(9 * 70, dtype=np.uint8).reshape(9, 70), np.arange(70 * 40).astype(np.int8).reshape(70, 40)
    expected = (x.astype(int) - 3) @ (w.astype(int) + 2)
    assert json.loads(run(root, "-c", code, processor=processor)) == expected.tolist()


def test_an_executable_of_x86_64_runs(root: Path) -> None:
    """Its native code is for x86-64, so the portable program runs."""
    vm.build(root / "model.onnx", "compiled", "x86-64-v3", portable=True).save(root / "model.rvm")
    code = """
import json, platform, numpy as np, relvm
rows = np.arange(2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8) % 7 - 3
model = relvm.load_model("model.rvm", trust_native=True)
print(platform.machine())
print(json.dumps(model(rows).numpy().tolist()))
"""
    machine, _, line = run(root, "-c", code).partition("\n")
    assert machine == "aarch64"
    assert json.loads(line) == expected(root)
