"""Who may import whom: the layers of docs/architecture.md, read off the imports of every file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "relvm"

# From the bottom up: a layer may import itself and those before it.
LAYERS = (
    ("relvm.quoting",),
    ("relvm.errors", "relvm.tables"),
    ("relvm.vm.runtime",),
    ("relvm.ir",),
    ("relvm.lir",),
    ("relvm.ops",),
    ("relvm.frontend", "relvm.transform"),
    ("relvm.codegen",),
    ("relvm.vm",),
    ("relvm.aot", "relvm.frontend.onnx.backend"),
    ("relvm.explore", "relvm.distributed"),
    ("relvm.cli",),
    ("relvm.__main__",),
)
# The public face, which gathers names from above by importing them when they are first used.
FACES = {"relvm"}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> tuple[int, str]:
    """The layer's number and the name that placed the module there; the longest name that fits wins."""
    found = [
        (len(name), i, name)
        for i, names in enumerate(LAYERS)
        for name in names
        if (module + ".").startswith(name + ".")
    ]
    assert found, f"{module} is in no layer"
    _, number, name = max(found)
    return number, name


def imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for item in ast.walk(ast.parse(path.read_text())):
        match item:
            case ast.Import(names=names):
                found += [(item.lineno, alias.name) for alias in names]
            case ast.ImportFrom(module=module, level=level, names=names):
                assert level == 0, f"{path}:{item.lineno}: a relative import"
                found.append((item.lineno, module))
    return [(line, name) for line, name in found if name and name.split(".")[0] == "relvm"]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=module_of)
def test_imports_go_down_only(path: Path) -> None:
    module = module_of(path)
    if module in FACES:
        return
    number, name = layer_of(module)
    for line, target in imports(path):
        if target in FACES:
            continue
        below, other = layer_of(target)
        same_layer_other_part = below == number and other != name
        assert below <= number and not same_layer_other_part, (
            f"{path}:{line}: {module} imports {target} from above or beside it"
        )
