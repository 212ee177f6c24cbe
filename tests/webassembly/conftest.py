"""The npm package and the models of the tests."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest
from webassembly.programs import write_models

from relvm.compiler.find_compiler import expect_zig
from relvm.errors import RelvmToolchainError

ROOT = Path(__file__).resolve().parents[2]


def load_build_script():
    """Return the module bindings/javascript/build.py."""
    spec = importlib.util.spec_from_file_location("build_npm_package", ROOT / "bindings/javascript/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the npm package, and return its folder."""
    try:
        expect_zig()
    except RelvmToolchainError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("package")
    load_build_script().build_package(folder)
    return folder


@pytest.fixture(scope="session")
def models(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the models of the tests, and return their folder."""
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node.js."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("Node.js is not installed (.ci/run has the package)")
    return path
