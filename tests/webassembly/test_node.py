"""The npm package in Node.js: the loader, its types, the sizes of its files, and ONNX's test cases of operators."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from webassembly.suite import QEMU, RANDOM, chosen_cases, differences, run_in_node, run_in_qemu, write_manifest

HERE = Path(__file__).resolve().parent
MAX_BYTES, MAX_COMPRESSED_BYTES = 500_000, 200_000
STEP = 9  # of the cases of operators

EXAMPLE = """
import { RelvmShapeError, load, tensor, type Output, type Tensor } from "relvm";
export async function scores(pixels: Float32Array): Promise<Output> {
  const model = await load("model.rvm", { maxBytes: 1e8, print: (...values) => console.log(values) });
  try {
    const { calls } = await model.profile("main", [tensor(pixels, [1, 3, 32, 32]), 7n, ["a", [true, null]]]);
    console.log(calls[0].arguments[0]?.shape);
    return (await model.run("main", { image: tensor(pixels, [1, 3, 32, 32]) })) as Tensor;
  } catch (error) {
    if (error instanceof RelvmShapeError) return error.trace;
    throw error;
  } finally {
    model.dispose();
  }
}
"""


def test_the_loader(package: Path, models: Path, node: str) -> None:
    environment = os.environ | {"PACKAGE": str(package), "MODELS": str(models)}
    command = [node, "--test", HERE / "loader.test.mjs"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_runtime_is_small(package: Path) -> None:
    module = (package / "relvm.wasm").read_bytes()
    assert len(module) <= MAX_BYTES
    assert len(gzip.compress(module)) <= MAX_COMPRESSED_BYTES


def test_the_package_is_complete(package: Path) -> None:
    description = json.loads((package / "package.json").read_text())
    assert description["version"] == version("relvm")
    assert {*description["files"], "package.json"} == {path.name for path in package.iterdir()}


def test_the_types(package: Path, tmp_path: Path) -> None:
    """TypeScript accepts the declarations, and a program with them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed (.ci/run has the package)")
    subprocess.run([npm, "install", "--silent", "--no-audit", "typescript@5"], cwd=tmp_path, check=True)
    (tmp_path / "node_modules" / "relvm").symlink_to(package)
    (tmp_path / "example.mts").write_text(EXAMPLE)
    options = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    command = [tmp_path / "node_modules/.bin/tsc", *options, "example.mts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_cases_of_operators_have_the_bits_of_x86_64_v2(package: Path, node: str, tmp_path: Path) -> None:
    if shutil.which(QEMU[0]) is None:
        pytest.skip("qemu-user is not installed (.ci/run has the package)")
    manifest = write_manifest(chosen_cases(STEP), tmp_path)
    found, expected = run_in_node(package, manifest, tmp_path), run_in_qemu(manifest, tmp_path)
    assert len(manifest) > 200
    assert not [answer for answer in found if "error" in answer]
    lines = list(differences(manifest, found, expected))
    assert not [line for line in lines if line.partition(":")[0] not in RANDOM]
