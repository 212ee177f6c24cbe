"""Imports and calls follow the layers of docs/architecture.md, between folders and between files."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents import ROOT

from relvm.directed_graph import DirectedGraph

PACKAGE = Path(__file__).resolve().parent.parent / "relvm"

# From the bottom up.  A module may import modules of its own part and of lower layers.
LAYERS = (
    ("relvm.data_classes", "relvm.directed_graph", "relvm.quoting"),
    ("relvm.display", "relvm.errors", "relvm.tables"),
    ("relvm.installation",),
    ("relvm.system",),
    ("relvm.numpy_dtypes",),
    ("relvm.bytecode", "relvm.ir"),
    ("relvm.kernels",),
    ("relvm.ops", "relvm.lir"),
    ("relvm.runtime",),
    ("relvm.frontend", "relvm.passes", "relvm.codegen"),
    ("relvm.compiler",),
    ("relvm.vm", "relvm.language"),
    ("relvm.limited_build_worker",),
    ("relvm.limited_build",),
    ("relvm.aot", "relvm.onnx_backend"),
    ("relvm.explore.draw", "relvm.explore.selection"),
    ("relvm.explore.views",),
    ("relvm.explore.stages",),
    ("relvm.explore", "relvm.distributed"),
    ("relvm.editors",),
    ("relvm.model",),
    ("relvm.jax", "relvm.torch"),
    ("relvm.bundle", "relvm.magics", "relvm.onnxruntime", "relvm.quantization"),
    ("relvm.cli",),
    ("relvm.__main__",),
)
# These modules export names of higher layers, most of which they import lazily.
FRONT_DOORS = {"relvm", "relvm.vm"}
# Pairs of files that import each other for annotations only.
ANNOTATION_ONLY = {("relvm.ir.expr", "relvm.ir.operator")}  # OpCall.op is an Operator; an Operator makes an OpCall


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def layer_of(module: str) -> tuple[int, str]:
    """Return the number of the module's layer, and the part of the layer that contains the module."""
    for number, parts in enumerate(LAYERS):
        for part in parts:
            if f"{module}.".startswith(f"{part}."):
                return number, part
    raise AssertionError(f"{module} is in no layer")


def imports(module: str) -> Iterator[tuple[int, str]]:
    """Yield the modules that a file imports, with line numbers.

    This includes imports under TYPE_CHECKING and inside functions, and names of modules in strings.
    """
    path = MODULES[module]
    for item in ast.walk(ast.parse(path.read_text())):
        match item:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=source, level=level, names=names):
                assert level == 0, f"{path}:{item.lineno}: a relative import"
                inside = [f"{source}.{alias.name}" for alias in names]
                found = [name if name in MODULES else str(source) for name in inside]
            case ast.Constant(value=str() as name) if name in MODULES and name != "relvm":  # for importlib
                found = [name]
            case _:
                continue
        yield from ((item.lineno, name) for name in found if name in MODULES and name != module)


def lower_modules() -> list[str]:
    return [module for module in MODULES if module not in FRONT_DOORS]


def test_the_table_of_layers_has_every_module_in_order() -> None:
    """docs/architecture.md lists the parts of LAYERS from the bottom up.  A row may contain several layers."""
    text = (ROOT / "docs/architecture.md").read_text()
    table = text.split("| layer | folder | contents |\n", 1)[1].split("\n\n", 1)[0]
    rows = [row.split("|")[2] for row in table.splitlines()]
    named = [re.findall(r"`relvm/([\w/]+?)(?:\.py|/)`", row) for row in rows]
    listed = [[f"relvm.{name.replace('/', '.')}" for name in names] for names in named if names]
    layers = [[layer_of(module)[0] for module in modules] for modules in listed]
    assert all(max(below) <= min(above) for below, above in itertools.pairwise(layers))
    parts = {name.split(".")[1] for layer in LAYERS for name in layer}
    assert {module.split(".")[1] for modules in listed for module in modules} >= parts


def test_imports_go_down_only_and_no_files_import_each_other() -> None:
    found = {module: list(imports(module)) for module in lower_modules()}
    upward = []
    for module, targets in found.items():
        number, part = layer_of(module)
        for line, target in targets:
            below, other = (number, part) if target == "relvm" else layer_of(target)
            if below >= number and other != part:
                upward.append(f"{MODULES[module]}:{line}: {module} imports {target} from above or beside it")
    assert not upward
    edges = {(module, target) for module, targets in found.items() for _, target in targets}
    assert edges >= ANNOTATION_ONLY
    graph = DirectedGraph(edges=edges - ANNOTATION_ONLY)
    cycles = [sorted(cycle) for cycle in graph.components() if len(cycle) > 1]
    assert not cycles, f"these files import each other: {cycles}"


@pytest.mark.parametrize(("importer", "target"), sorted(ANNOTATION_ONLY))
def test_the_exceptions_are_for_annotations_only(importer: str, target: str) -> None:
    tree = ast.parse(MODULES[importer].read_text())
    guarded = {
        node.module
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }
    assert target in guarded
    assert not [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == target]


def test_an_import_from_above_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`imports` finds all forms of imports."""
    path = tmp_path / "seen.py"
    path.write_text(
        "from typing import TYPE_CHECKING\nimport relvm.cli.main\nfrom relvm.vm import build\n"
        "if TYPE_CHECKING:\n    from relvm.aot.config import Pool\ndef f():\n    from relvm.ir import expr\n"
        "    importlib.import_module('relvm.explore.views.dataflow')\n"
    )
    monkeypatch.setitem(MODULES, "relvm.ir.seen", path)
    found = [target for _, target in sorted(imports("relvm.ir.seen"))]
    assert found == ["relvm.cli.main", "relvm.vm", "relvm.aot.config", "relvm.ir.expr", "relvm.explore.views.dataflow"]


# ---- C ----

# From the bottom up.  A file may include headers and call functions of its own folder and of lower folders.
C_FOLDERS = (
    "tables",
    "include",
    "system",
    "core",
    "readers",
    "codegen",
    "threads",
    "kernels",
    "loader",
    "vm",
    "builtins",
    "library",
    "webassembly",
    "python",
)
INCLUDE = re.compile(r'^#include "(?:\.\./tables/)?([\w.]+)"', re.MULTILINE)
DEFINITION = re.compile(r"^(?!static|typedef)[a-z][\w \*]*?\b(\w+)\([^;{]*\)\s*\{", re.MULTILINE)


def c_units(root: Path) -> dict[str, str]:
    """Return the C code of each unit, without comments, by its path.

    A unit is a header and the C file of the same name.  The folder `system` is one unit: each of its C files defines
    functions of system.h for another operating system.
    """
    units: dict[str, str] = {}
    for path in sorted(path for path in root.glob("*/*") if path.suffix in (".h", ".c", ".def")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        unit = unit_of(path.relative_to(root))
        units[unit] = units.get(unit, "") + text
    return units


def unit_of(path: Path) -> str:
    return "system/system" if path.parent.name == "system" else str(path.with_suffix(""))


def c_uses(root: Path) -> set[tuple[str, str]]:
    """Return the pairs of units of which the first includes the second, or names a function that the second defines."""
    units = c_units(root)
    files = {path.name: unit_of(path.relative_to(root)) for path in root.glob("*/*.*")}
    owners = {name: unit for unit, text in units.items() for name in DEFINITION.findall(text)}
    used = set()
    for unit, text in units.items():
        used |= {(unit, files[name]) for name in INCLUDE.findall(text) if name in files}
        used |= {(unit, owners[name]) for name in re.findall(r"\b\w+\b", text) if name in owners}
    return {(unit, target) for unit, target in used if unit != target and not is_public_header(unit)}


def is_public_header(unit: str) -> bool:
    """Return whether the unit is a public header, which declares functions that higher units define."""
    return unit.startswith("include/")


def c_cycles(root: Path) -> list[list[str]]:
    return [sorted(cycle) for cycle in DirectedGraph(edges=c_uses(root)).components() if len(cycle) > 1]


def c_upward(root: Path) -> list[str]:
    layer = {name: number for number, name in enumerate(C_FOLDERS)}
    pairs = sorted(c_uses(root))
    return [f"{unit} -> {target}" for unit, target in pairs if layer[unit.split("/")[0]] < layer[target.split("/")[0]]]


def test_c_folders_use_those_below_only() -> None:
    assert {unit.split("/")[0] for unit in c_units(ROOT / "csrc")} == set(C_FOLDERS)
    assert c_upward(ROOT / "csrc") == []


def test_no_c_units_use_each_other() -> None:
    assert c_cycles(ROOT / "csrc") == []


def test_c_cycles_and_upward_uses_are_found(tmp_path: Path) -> None:
    files = {
        "core/low.h": "int rvm_low(void);\n",
        "core/low.c": '#include "low.h"\n\nint rvm_low(void) {\n  return rvm_high(); /* rvm_side */\n}\n',
        "core/side.c": '#include "low.h"\n\nint rvm_side(int a,\n             int b) {\n  return 0;\n}\n',
        "vm/high.h": '#include "low.h"\n',
        "vm/high.c": "int rvm_high(void) {\n  return rvm_low();\n}\nstatic int rvm_own(void) {\n  return 0;\n}\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert c_uses(tmp_path) == {("core/low", "vm/high"), ("core/side", "core/low"), ("vm/high", "core/low")}
    assert c_cycles(tmp_path) == [["core/low", "vm/high"]]
    assert c_upward(tmp_path) == ["core/low -> vm/high"]
