"""The programs in the README run unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from support.documents import small_model

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=os.environ | environment)


@pytest.mark.parametrize("program", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_the_python_examples_run(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    onnx.save(small_model(), tmp_path / "model.onnx")
    outside = run([sys.executable, "program.py"], tmp_path)
    inside = run([sys.executable, "program.py"], tmp_path, PYTHONPATH=str(ROOT))  # as if it were in the checkout
    for done in (outside, inside):
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_example_identifies_files_in_both_modes(tmp_path: Path) -> None:
    example = ROOT / "examples" / "identify_file.py"
    done = run([sys.executable, str(example), str(ROOT / "README.md"), str(example)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "README.md: markdown" in done.stdout and "identify_file.py: python" in done.stdout
    assert "agree bit for bit" in done.stdout and "ONNX Runtime's answers agree" in done.stdout


def test_the_example_works_without_a_compiler(tmp_path: Path) -> None:
    example = ROOT / "examples" / "identify_file.py"
    done = run([sys.executable, str(example), str(ROOT / "README.md")], tmp_path, RELVM_CC="none")
    assert done.returncode == 0, done.stderr
    assert "no C compiler" in done.stdout and "README.md: markdown" in done.stdout
