"""Builds of the same module are bit-identical in all processes, independent of folders and of the order of sets."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from relvm.compiler.find_compiler import find_compiler

PROGRAM = '''
import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module


TEXT = """
def main(x: f32[n, 64], w: f32[64, 32]) -> (f32[n, 32], list[i64]) {
  activate = fn (y: f32[m, 32]) -> f32[m, 32] { return softmax(y) }
  b = const(f32[4], [1, 2, 3, 4])
  y = activate(matmul(x, w))
  return (add(y, sum(b)), @squares(5))
}
def squares(n: i64) -> list[i64] {
  loop = fn loop(i: i64, done: list[i64]) -> list[i64] {
    return if i == n then done else loop(i + 1, list_append(done, i * i))
  }
  return loop(0, make_list())
}
def words(x: str[n]) -> str[n] = string_case(string_concat(x, const(str[], "Tail")), upper=true)
def windows(x: f32[b, 3, h, w]) => { return max_pool(x, kernel=(3, 3), strides=(2, 2)) }
"""
module = parse_module(TEXT, "model.relvm")
for target in ("numpy", "c"):
    for debug in (False, True) if target == "c" else (False,):
        for mode in ("bytecode", "compiled") if target == "c" else ("bytecode",):
            vm.build(module, mode, target, debug=debug).save(f"{mode}-{target}{'-debug' * debug}.rvm")
    if target == "c":
        vm.export_library(vm.build(module, "compiled"), "libmodel.so")
'''


def made_in(folder: Path, seed: str, compiles: bool) -> dict[str, str]:
    """Run the program in `folder` with an empty cache, and return the SHA-256 of each file that it writes.

    seed: the hash seed of Python.   compiles: whether C is compiled.
    """
    work = folder / "work"
    (folder / "temporary").mkdir(parents=True)
    work.mkdir()
    places = {"TMPDIR": str(folder / "temporary"), "RELVM_CACHE_DIR": str(folder / "cache")}
    program = PROGRAM if compiles else PROGRAM.replace('("numpy", "c")', '("numpy",)')
    environment = os.environ | places | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", program], cwd=work, env=environment, check=True)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in work.iterdir()}


def test_two_processes_make_the_same_bytes(tmp_path: Path) -> None:
    compiles = find_compiler() is not None
    one = made_in(tmp_path / "one", "1", compiles)
    other = made_in(tmp_path / "another folder", "2", compiles)
    assert len(one) == (6 if compiles else 1)
    assert one == other
