"""The C compiler of tests that compile C themselves."""

from __future__ import annotations

import subprocess

import pytest


def run_compiler(compiler: str, *arguments: object) -> None:
    """Run the compiler, which must succeed.  Skip the test if the compiler lacks a requested sanitizer."""
    result = subprocess.run([compiler, *map(str, arguments)], capture_output=True, text=True)
    if "cannot find" in result.stderr and "san" in result.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert result.returncode == 0, result.stderr
