"""Tests of the stored schemas of ONNX operators, which must be those of the onnx package."""

from __future__ import annotations

from dataclasses import asdict

import onnx
import pytest

from relvm.frontend.onnx import node_schemas
from relvm.frontend.onnx.node_schemas import definition_of, schema_of, table_text


def test_the_file_contains_the_schemas_of_the_onnx_package(request) -> None:
    """An onnx package that is newer than the file may have more opsets, but must have the same older schemas."""
    if request.config.getoption("--update"):
        newest = {domain: versions[1] for domain, versions in onnx.defs.C.schema_version_map().items()}
        text = table_text(onnx.defs.get_all_schemas_with_history(), newest)
        node_schemas._FILE.write_text(text, encoding="utf-8")
        node_schemas._lines.cache_clear()
    newest, compared = node_schemas.newest_opsets(), 0
    for definition in onnx.defs.get_all_schemas_with_history():
        key = (definition.domain, definition.name, definition.since_version)
        if definition.since_version <= newest.get(definition.domain, 0):
            expected = node_schemas._from_definition(definition)
            assert asdict(schema_of(*key)) == asdict(expected), key
            compared += 1
    assert compared > 600


@pytest.mark.parametrize("opset", [1, 6, 7, 13, 14, 22])
def test_the_schema_is_that_of_the_newest_version_up_to_the_opset(opset: int) -> None:
    for name in ("Add", "Clip", "Conv", "Pad", "Softmax", "Upsample", "GridSample"):
        definition, schema = definition_of("", name, opset), schema_of("", name, opset)
        assert (definition is None) == (schema is None), name
        if schema is not None:
            assert asdict(schema) == asdict(node_schemas._from_definition(definition)), name


@pytest.mark.parametrize(
    "key", [("", "Nonsense", 13), ("com.microsoft", "Gelu", 1), ("", "ai.onnx.ml Normalizer", 1), ("ai.onnx.ml", "", 1)]
)
def test_an_unknown_operator_has_no_schema(key: tuple[str, str, int]) -> None:
    assert schema_of(*key) is None


def test_opsets_newer_than_the_file_are_looked_up_in_the_onnx_package(monkeypatch) -> None:
    monkeypatch.setattr(node_schemas, "newest_opsets", lambda: {"": 6})
    schema_of.cache_clear()
    expected = node_schemas._from_definition(definition_of("", "Add", 14))
    assert asdict(schema_of("", "Add", 14)) == asdict(expected)
    assert schema_of("", "Nonsense", 14) is None
    schema_of.cache_clear()
