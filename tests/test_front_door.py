"""Tests of `import relvm`: the error without a built C extension, and lazy imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import relvm
from relvm import vm


def test_a_checkout_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    (tmp_path / "relvm").mkdir()
    shutil.copy(relvm.__file__, tmp_path / "relvm")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import relvm"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ImportError: relvm's C runtime is not built" in done.stderr
    assert "pip install -e . --no-build-isolation" in done.stderr


def test_every_public_name_is_there() -> None:
    for module in (relvm, vm):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_the_compiler_is_imported_at_first_use() -> None:
    code = "import sys; from relvm import vm; print(sorted(m for m in sys.modules if m.startswith('relvm.compiler')))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
