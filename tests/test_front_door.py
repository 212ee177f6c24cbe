"""Tests of `import relvm`: in a checkout, its public names, and lazy imports."""

from __future__ import annotations

import pydoc
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relvm
from relvm import vm


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Python sources, and without the compiled C runtime."""
    shutil.copytree(
        Path(relvm.__file__).parent, tmp_path / "relvm", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    return tmp_path


def test_a_checkout_without_an_installation_says_how_to_install_it(checkout: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(checkout)!r}); import relvm"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: relvm is not installed; {checkout} only contains its sources" in done.stderr
    assert f"pip install {checkout}" in done.stderr


@pytest.mark.parametrize("command", [["-m", "relvm", "--version"], ["-c", "import relvm; print(relvm.load_model)"]])
def test_a_checkout_uses_the_installed_package(checkout: Path, command: list[str]) -> None:
    """Python finds the folder of the sources first if it is started there."""
    done = subprocess.run([sys.executable, *command], cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_completion_and_help_show_the_public_names() -> None:
    for module in (relvm, vm):
        assert set(module.__all__) == {name for name in dir(module) if not name.startswith("_")}
        assert all(name in pydoc.render_doc(module, renderer=pydoc.plaintext) for name in module.__all__)


def test_every_public_name_is_there() -> None:
    for module in (relvm, vm):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_the_compiler_is_imported_at_first_use() -> None:
    code = "import sys; from relvm import vm; print(sorted(m for m in sys.modules if m.startswith('relvm.compiler')))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
