"""Nodes with a wrong attribute or input are refused with an error of relvm, never with an error of Python's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frontend.onnx_models import onnx
from frontend.onnx_suite import suite_models

from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx

_LARGE = 2**40
_MODELS: dict[str, list[onnx.ModelProto]] = {}
_MAX_BYTES = 20_000  # larger models only take more time


def _operators() -> list[str]:
    """Return the operators of the suite, and group its models by operator."""
    for model in suite_models():
        nested = any(attribute.type in (5, 10) for attribute in model.graph.node[0].attribute)  # graphs
        if model.ByteSize() <= _MAX_BYTES and not nested:
            _MODELS.setdefault(model.graph.node[0].op_type, []).append(model)
    return sorted(_MODELS)


def _attribute_mutants(attribute: onnx.AttributeProto) -> Iterator[tuple[str, onnx.AttributeProto]]:
    """Yield wrong or unusual values of an attribute, each with a description."""

    def mutant(**fields: object) -> onnx.AttributeProto:
        return onnx.AttributeProto(name=attribute.name, type=attribute.type, **fields)

    kinds = onnx.AttributeProto
    match attribute.type:
        case kinds.INTS:
            values = list(attribute.ints)
            for changed in (values[:-1], [*values, 1], *([n] * len(values) for n in (0, -1, _LARGE)), []):
                yield f"{changed}", mutant(ints=changed)
        case kinds.INT:
            for number in (0, -1, -7, 3, _LARGE):
                yield f"{number}", mutant(i=number)
        case kinds.FLOAT:
            for real in (0.0, -1.0, float("nan"), float("inf")):
                yield f"{real}", mutant(f=real)
        case kinds.STRING:
            for text in (b"XX", b"", b"\xff\xfe"):
                yield f"{text!r}", mutant(s=text)
        case kinds.FLOATS:
            yield "one fewer", mutant(floats=attribute.floats[:-1])
        case kinds.STRINGS:
            yield "one fewer", mutant(strings=attribute.strings[:-1])
    if attribute.type != kinds.INT:
        yield "an integer", kinds(name=attribute.name, type=kinds.INT, i=3)


def _mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield copies of a model whose node or inputs differ in one thing, each with a description."""

    def copy() -> onnx.ModelProto:
        made = onnx.ModelProto()
        made.CopyFrom(model)
        for output in made.graph.output:
            output.ClearField("type")  # it would contradict the changed node first
        return made

    node = model.graph.node[0]
    for i, attribute in enumerate(node.attribute):
        for what, changed in _attribute_mutants(attribute):
            mutant = copy()
            mutant.graph.node[0].attribute[i].CopyFrom(changed)
            yield f"{attribute.name}: {what}", mutant
    for i in range(len(node.input)):
        mutant = copy()
        mutant.graph.node[0].input[i] = ""
        yield f"input {i} absent", mutant
    if node.input:
        mutant = copy()
        mutant.graph.node[0].input.append(node.input[0])
        yield "one more input", mutant
        mutant = copy()
        del mutant.graph.node[0].input[-1]
        yield "one input fewer", mutant
    for i, value in enumerate(model.graph.input):
        if not value.type.HasField("tensor_type"):
            continue
        mutant = copy()
        mutant.graph.input[i].type.tensor_type.shape.dim.add().dim_value = 2
        yield f"input {i} of a higher rank", mutant
        if value.type.tensor_type.shape.dim:
            mutant = copy()
            del mutant.graph.input[i].type.tensor_type.shape.dim[-1]
            yield f"input {i} of a lower rank", mutant
            mutant = copy()
            mutant.graph.input[i].type.tensor_type.shape.dim[-1].dim_value = 0
            yield f"input {i} empty", mutant
        for element_type in (onnx.TensorProto.BOOL, onnx.TensorProto.STRING):
            mutant = copy()
            mutant.graph.input[i].type.tensor_type.elem_type = element_type
            yield f"input {i} of type {element_type}", mutant


@pytest.mark.parametrize("operator", _operators())
def test_no_converter_fails_with_an_error_of_python(operator: str) -> None:
    seen, failed = set(), []
    for model in _MODELS[operator]:
        for what, mutant in _mutants(model):
            if what in seen:
                continue
            seen.add(what)
            try:
                from_onnx(mutant.SerializeToString())
            except RelvmError as error:
                if "malformed: " in str(error):
                    failed.append(f"{what}: {error}")
    assert not failed, "\n".join(failed)
