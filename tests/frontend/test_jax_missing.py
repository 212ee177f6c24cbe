"""Without JAX, relvm can be imported, and the functions that need JAX say how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules["jax"] = None
import relvm, relvm.jax
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.jax import from_jax
for call in (lambda: relvm.jax.jit(abs), lambda: from_jax(abs, 1.0)):
    try:
        call()
    except RelvmUnsupportedError as error:
        print(error)
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-Pc", program], capture_output=True, text=True, check=True).stdout


def test_the_message_says_how_to_install_jax() -> None:
    first, second = run(WITHOUT).splitlines()
    assert first.startswith("relvm.jax.jit needs JAX") and second.startswith("from_jax needs JAX")
    assert all("pip install 'relvm[jax]'" in line for line in (first, second))


@pytest.mark.parametrize("module", ["relvm", "relvm.jax", "relvm.frontend.jax", "relvm.frontend.stablehlo"])
def test_imports_do_not_import_jax(module: str) -> None:
    assert run(f"import sys, {module}\nprint('jax' in sys.modules)") == "False\n"
