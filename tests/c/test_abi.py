"""The public C interface and its layout in memory are those of tests/c/abi.txt, the list of the last release.

`pytest tests/c/test_abi.py --update` adds what is new.  It refuses to change or remove a line, unless RVM_ABI_VERSION
has changed.  A release keeps the list.
"""

from __future__ import annotations

import platform

import pytest
from test_c import HERE

from relvm._native import ffi, lib
from relvm.tables import ABI_VERSION, DTYPES, KINDS, STATUS, TAGS

LIST = HERE / "abi.txt"

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the layouts are those of x86-64")


def is_opaque(kind: ffi.CType) -> bool:
    """Return whether a header declares a struct without its members.  cffi cannot list the members of such a struct."""
    try:
        ffi.sizeof(kind)
    except (TypeError, ffi.error):
        return True
    return False


def interface() -> list[str]:
    """Return a line for each function, struct and number of the interface."""
    lines = [f"abi version {ABI_VERSION}"]
    for name in dir(lib):
        value = getattr(lib, name)
        if name.startswith("rvm_") and not isinstance(value, int):
            lines.append(f"function {name}: {ffi.typeof(value).cname}")
    for name in sorted({*ffi.list_types()[0], *ffi.list_types()[1]}):
        if not name.startswith("rvm_"):
            continue
        kind = ffi.typeof(name if name in ffi.list_types()[0] else f"struct {name}")
        if kind.kind == "struct" and not is_opaque(kind):
            lines.append(f"struct {name}: {ffi.sizeof(kind)} bytes")
            lines += [f"struct {name}.{field}: {at.type.cname} at {at.offset}" for field, at in kind.fields]
    for table, rows in (("status", STATUS), ("tag", TAGS), ("dtype", DTYPES), ("kind", KINDS)):
        lines += [f"{table} {row.name}: {row.index}" for row in rows]
    return lines


def test_the_interface_is_that_of_the_list(request: pytest.FixtureRequest) -> None:
    found, listed = interface(), LIST.read_text().splitlines()
    missing = [line for line in listed if line not in found]
    is_compatible = not missing or found[0] != listed[0]
    assert is_compatible, f"changed or removed: {missing}; increment RVM_ABI_VERSION, or keep the interface"
    if request.config.getoption("--update"):
        LIST.write_text("\n".join(found) + "\n")
        return
    assert found == listed, "run pytest tests/c/test_abi.py --update"


def test_the_list_has_functions_layouts_and_numbers() -> None:
    lines = interface()
    assert "function rvm_value_release: void(*)(struct rvm_value *)" in lines
    assert "struct rvm_object.references: int32_t at 4" in lines
    assert "status OK: 0" in lines
    assert any(line.startswith("struct rvm_machine_options.threads: int32_t at ") for line in lines)
