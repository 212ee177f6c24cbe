"""tests/c/test_api.c has a case for every parameter of every public function."""

from __future__ import annotations

import re

import pytest
from test_c import HERE, ROOT

HEADERS = ("relvm.h", "relvm_values.h", "relvm_views.h", "relvm_metadata.h", "relvm_stack.h")
# Helpers of other inline functions.
HELPERS = {"rvm_view_is_empty", "rvm_stack_tag_of", "rvm_stack_copy"}
# Only exported libraries have this function.  tests/compiler/test_export_library.py tests it.
ELSEWHERE = {"relvm_module_load"}


def parameters_of(text: str) -> dict[str, list[str]]:
    """Return the names of the parameters of each function that a header declares or defines."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"\(\*(\w+)\)\([^()]*\)", r"\1", text)  # parameters that are function pointers
    found = re.findall(r"^[a-z][\w ]*[ *](r(?:el)?vm_\w+)\(([^()]*)\)(?:;| \{)", text, flags=re.MULTILINE)
    listed = {name: [each.split()[-1].lstrip("*") for each in parameters.split(",")] for name, parameters in found}
    return {name: [each for each in names if each not in ("void", "...")] for name, names in listed.items()}


DECLARED = {
    name: parameters
    for header in HEADERS
    for name, parameters in parameters_of((ROOT / "csrc" / "include" / header).read_text()).items()
    if name not in HELPERS | ELSEWHERE
}
CASES = (HERE / "test_api.c").read_text()


def test_the_headers_are_read() -> None:
    assert DECLARED["rvm_tensor_wrap"] == ["dtype", "rank", "dims", "data", "release", "release_argument", "result"]
    assert DECLARED["rvm_fail"] == ["result", "status", "format"]
    assert DECLARED["rvm_cpu_features"] == []
    assert DECLARED["rvm_stack_free"] == ["stack", "block"]
    text = "\n".join((ROOT / "csrc" / "include" / header).read_text() for header in HEADERS)
    named = set(re.findall(r"^[a-z][^(\n]*\b(r(?:el)?vm_\w+)\(", text, flags=re.MULTILINE))
    assert named == set(DECLARED) | HELPERS | ELSEWHERE


@pytest.mark.parametrize("function", sorted(DECLARED))
def test_every_parameter_has_a_case(function: str) -> None:
    assert re.search(rf"\b{function}\b", CASES)
    cases = re.findall(rf"\b(?:WRONG|RETURNS|RETURNS_NULL|GIVES|IGNORES|ANY)\({function}, (\w+)", CASES)
    assert set(cases) == set(DECLARED[function])
