"""The table of the modules with converters."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from frontend.onnx_models import make_model
from onnx import helper

from relvm.frontend.onnx import ops, registry
from relvm.frontend.onnx.converter_modules import CONVERTER_MODULES


def test_the_table_names_the_module_of_every_converter() -> None:
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)
    declared = {
        f"{domain}.{name}" if domain else name: converter.__module__
        for (domain, name), converter in registry._converters.items()
    }
    assert declared == CONVERTER_MODULES


def test_a_model_imports_the_modules_of_its_operators_only(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(
        make_model([helper.make_node("Relu", ["x"], ["y"])], [("x", np.float32, [2])], ["y"]).SerializeToString()
    )
    before = "import sys; from relvm.frontend.onnx import from_onnx; before = set(sys.modules)"
    code = f"{before}; from_onnx(sys.argv[1]); print(*sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-Pc", code, model], capture_output=True, text=True, check=True).stdout
    assert [name for name in shown.split() if name.startswith(ops.__name__)] == [CONVERTER_MODULES["Relu"]]
