"""Tests of the stored schemas of ONNX operators, which must be those of the onnx package."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.capi import _pybind_state

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx, node_schemas, registry
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


def test_operators_and_functions_are_known() -> None:
    assert node_schemas.is_operator("", "Add") and node_schemas.is_operator("ai.onnx.ml", "Normalizer")
    assert not node_schemas.is_operator("", "Nonsense") and not node_schemas.is_operator("com.microsoft", "Gelu")
    for definition in onnx.defs.get_all_schemas_with_history():
        if definition.has_function or definition.has_context_dependent_function:
            assert node_schemas.is_function(definition.domain, definition.name), definition.name
    assert not node_schemas.is_function("", "Add")


@pytest.mark.parametrize(("domain", "version"), [("", 29), ("ai.onnx.ml", 6), ("ai.onnx.preview.training", 2)])
def test_an_opset_newer_than_the_file_is_refused(domain: str, version: int) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {y = Exp(x)}'
    )
    del model.opset_import[:]
    model.opset_import.add(domain=domain, version=version)
    name = domain or "ai.onnx"
    message = f"^g: opset {version} of {name} is not supported: relvm supports up to {version - 1}$"
    with pytest.raises(RelvmUnsupportedError, match=message):
        from_onnx(model)


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _default_values() -> dict[tuple[str, str, str], list[Any]]:
    """Return, for (domain, operator, attribute), the default values in all versions of the operator's schema."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        for name, each in schema.attributes.items():
            if each.default_value.type:
                found.setdefault((schema.domain, schema.name, name), []).append(_value(each.default_value))
    for schema in _pybind_state.get_all_operator_schema():
        for name, each in schema.attributes.items():
            if schema.domain == "com.microsoft" and each._default_value:
                value = _value(onnx.AttributeProto.FromString(each._default_value))
                found.setdefault((schema.domain, schema.name, name), []).append(value)
    return found


def _functions_of(converter: Callable[..., Any]) -> Iterator[tuple[str, ast.AST]]:
    """Yield a converter and the functions of converters that it names, directly or not, each with its syntax tree."""
    found, to_read = {converter}, [converter]
    while to_read:
        function = to_read.pop()
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        yield f"{function.__module__}.{function.__qualname__}", tree
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        named = {value for name, value in function.__globals__.items() if name in names and inspect.isfunction(value)}
        new = {each for each in named if each.__module__.startswith("relvm.frontend.onnx.ops")} - found
        found |= new
        to_read += new


def test_missing_attributes_have_the_default_values_of_the_schemas() -> None:
    """If several operators share a function, its default value is compared with those of all these operators."""
    defaults, compared, wrong = _default_values(), set(), set()
    for name in registry.supported_operators():
        domain, _, op_type = name.rpartition(".")
        converter = registry.converter_for(domain, op_type)
        assert converter is not None
        for place, tree in _functions_of(converter):
            for node in ast.walk(tree):
                match node:
                    case ast.Call(ast.Attribute(attr="attribute"), [ast.Constant(name), default]):
                        expected = defaults.get((domain, op_type, name))
                    case ast.Call(ast.Attribute(attr="axis"), [default, _]):
                        name, expected = "axis", defaults.get((domain, op_type, "axis"))
                    case _:
                        continue
                if expected is None or not _is_literal(default):
                    continue
                value = ast.literal_eval(default)
                value = float(np.float32(value)) if isinstance(value, float) else value
                compared.add((place, name))
                if value not in expected:
                    wrong.add(f"{place}: {name} is {value} by default, expected {expected} for {op_type}")
    assert sorted(wrong) == []
    assert len(compared) > 150


def _is_literal(node: ast.AST) -> bool:
    return all(isinstance(each, ast.Constant | ast.List | ast.UnaryOp | ast.USub | ast.Load) for each in ast.walk(node))
