"""Construction of small ONNX models, from nodes or from the text form of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper, parser  # noqa: E402  (after the check that onnx is there)

Input = tuple[str, np.typing.DTypeLike, Sequence[int | str]]


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Iterable[Input],
    outputs: Iterable[str],
    constants: Mapping[str, np.typing.ArrayLike] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """Return a model with the given nodes.

    inputs: the name, the dtype and the shape of each input.  A symbolic size is a str.   constants: initializers by
    name.
    """
    graph = helper.make_graph(
        nodes,
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, dtype, shape in inputs
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    domains = sorted({node.domain for node in nodes} - {""})
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def parse_model(text: str, opset: int = 17) -> onnx.ModelProto:
    """Return a model with a graph in ONNX's text form."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]> {text}')
