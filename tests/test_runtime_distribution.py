"""relvm-runtime: its modules need no others, run compiled models, and say where the compiler is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents import ROOT
from support.runtime_copy import copy_runtime, runtime_sources
from test_layers import MODULES, imports, module_of

from release.split_wheel import RUNTIME_FILES
from relvm import vm
from relvm.frontend.text import parse_module

RUNTIME = {module_of(ROOT / name) for name in runtime_sources() if name.endswith(".py")}
# These modules import the compiler when a function is called that needs it.
CALLERS = {
    *("relvm", "relvm.vm", "relvm.model", "relvm.onnxruntime.errors"),
    "relvm.runtime.numpy_kernels",
    *("relvm.compiler.adapt", "relvm.compiler.build_cache", "relvm.compiler.build_model", "relvm.compiler.upgrade"),
}


def imports_at_start(module: str) -> Iterator[str]:
    """Yield the modules that are imported when `module` is: not for annotations, and not in functions."""
    at_start: set[int] = set()
    queue: list[ast.AST] = [ast.parse(MODULES[module].read_text())]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            queue += node.orelse
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            at_start.add(node.lineno)
        queue += ast.iter_child_nodes(node)
    yield from (target for line, target in imports(module) if line in at_start)


def guarded(module: str) -> set[int]:
    """Return the lines of imports that are for annotations only."""
    return {
        node.lineno
        for block in ast.walk(ast.parse(MODULES[module].read_text()))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def test_every_file_of_the_runtime_exists() -> None:
    names = [f"relvm/{name}" if name.startswith("csrc/") else name for name in runtime_sources()]
    unused = [entry for entry in RUNTIME_FILES if not any(name.startswith(entry) for name in names)]
    assert unused == ["relvm/_native.abi3.so", "relvm/_native.pyd"]  # which are not sources


def test_the_runtime_imports_no_module_of_the_compiler() -> None:
    assert {"relvm", "relvm.vm", "relvm.runtime.virtual_machine"} <= RUNTIME
    found = {(module, target) for module in RUNTIME for target in imports_at_start(module) if target not in RUNTIME}
    assert not found


def test_few_modules_of_the_runtime_import_the_compiler_later() -> None:
    users = {
        module
        for module in RUNTIME
        for line, target in imports(module)
        if target not in RUNTIME and line not in guarded(module)
    }
    assert users == CALLERS


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of relvm-runtime, and some executables."""
    folder = tmp_path_factory.mktemp("runtime")
    copy_runtime(folder)
    programs = {
        "model": "def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] { return relu(matmul(x, w)) }",
        "bf16": "def main(x: f32[n]) -> bf16[n] { return cast(x, to=bf16) }",
    }
    for name, text in programs.items():
        vm.build(parse_module(text), target="bytecode").save(folder / f"{name}.rvm")
    return folder


def run(runtime: Path, code: str) -> str:
    """Run a program with the runtime only, and return its output."""
    hide = "import sys; sys.modules['ml_dtypes'] = None\n"  # relvm-runtime does not require it
    command = [sys.executable, "-P", "-c", hide + code]
    environment = os.environ | {"PYTHONPATH": str(runtime), "RELVM_CACHE_DIR": str(runtime / "cache")}
    done = subprocess.run(command, cwd=runtime, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_compiled_model_runs(runtime: Path) -> None:
    code = """
import numpy as np, relvm
from relvm import onnxruntime, vm
x, w = np.ones((3, 4), np.float32), np.full((4, 8), 0.5, np.float32)
model = relvm.load_model("model.rvm", max_seconds=60)
session = onnxruntime.InferenceSession("model.rvm")
results = [model(x, w).numpy(), *session.run(None, {"x": x, "w": w}), model.machine()["main"](x, w).numpy()]
assert all((result == 2).all() and result.shape == (3, 8) for result in results)
assert vm.load("model.rvm").digest == model.executable.digest
print(model, len(model.profile(x, w).rows) > 0)
"""
    assert run(runtime, code) == "<Model (x: f32[n, 4], w: f32[4, 8]) -> (output_0: f32[n, 8])> True\n"


def test_what_needs_the_compiler_says_how_to_install_it(runtime: Path) -> None:
    Path(runtime / "model.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    code = """
import relvm
from relvm import vm
from relvm.errors import RelvmNotInstalledError, RelvmUnsupportedError
def use(name):
    exec(name, globals())
for name in ("vm.build", "vm.lower", "relvm.script", "relvm.aot", "relvm.explore", "relvm.quantize",
             "relvm.load_model('model.relvm')", "import relvm.frontend.onnx", "vm.export_library",
             "from relvm.frontend.text import parse_module"):
    try:
        use(name)
    except RelvmNotInstalledError as error:
        assert isinstance(error, (ModuleNotFoundError, RelvmUnsupportedError)), name
        assert str(error).startswith("relvm."), str(error)
        assert str(error).endswith(" install the compiler: pip install relvm"), str(error)
    else:
        raise AssertionError(name)
try:
    import relvm_of_others
except ModuleNotFoundError as error:
    print(error)
"""
    assert run(runtime, code) == "No module named 'relvm_of_others'\n"


def test_ml_dtypes_is_optional(runtime: Path) -> None:
    code = """
import numpy as np, relvm
from relvm.errors import RelvmNotInstalledError
try:
    relvm.load_model("bf16.rvm")
except RelvmNotInstalledError as error:
    print(error)
"""
    message = "tensors of dtype bfloat16 need the package ml_dtypes, which is not installed; run: pip install ml_dtypes"
    assert run(runtime, code) == message + "\n"


def test_names_of_a_complete_installation_are_not_reported() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'relvm\.missing'$"):
        __import__("relvm.missing")
