"""Inlining of functions: operators defined by a graph of other operators, either in the model or in ONNX.

The body of a function is imported at each call, and its nodes become bindings of the caller's block.  A body has its
own scope of names and its own opsets.  A function of the model takes precedence over a converter.  A converter takes
precedence over a function that the onnx package defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.model_checker import Key, attribute_graphs, function_key, nested_nodes, opset_versions
from relvm.frontend.onnx.node_schemas import definition_of
from relvm.frontend.onnx.registry import Converter, OnnxNode, converter_for
from relvm.frontend.onnx.values import HostValue
from relvm.ir.expr import Expr
from relvm.ir.types import TensorType


@record
class _InlinableFunction:
    """A function to inline.

    key: the domain, name and overload of the function.
    body: its FunctionProto.
    defaults: the default values of its attributes, as AttributeProtos, by name.
    """

    key: Key
    body: Any
    defaults: Mapping[str, Any]


def converter_of(graph: ImportContext, proto: Any, opset: int) -> Converter | None:
    """Return a function that converts a node, or None if the operator of the node is not supported.

    If the model defines the operator as a function, the converter inlines that function.  Otherwise return the
    registered converter.  If there is none, the converter inlines the function by which ONNX defines the operator.

    opset: the opset version of the node's domain.
    """
    key = function_key(proto)
    if own := graph.functions.get(key):
        return lambda node: _inline(node, _InlinableFunction(key, own, {a.name: a for a in own.attribute_proto}))
    if convert := converter_for(*key[:2]):
        return convert
    definition = definition_of(*key[:2], opset)
    if definition is None or not (definition.has_function or definition.has_context_dependent_function):
        return None
    return lambda node: _inline(node, _onnx_function(node, key, definition))


def _onnx_function(node: OnnxNode, key: Key, definition: Any) -> _InlinableFunction:
    """Return the function by which the onnx package defines the operator of a node.

    The body of the function can depend on the types of the node's inputs.

    key: the domain, name and overload of the function.   definition: the OpSchema of the operator.
    """
    from onnx import FunctionProto

    versions = definition.function_opset_versions or definition.context_dependent_function_opset_versions
    own = node.graph.opsets.get("", node.opset)  # a body uses ONNX's own domain
    version = max((v for v in versions if v <= own), default=min(versions))
    if definition.has_function:
        found = definition.get_function_with_opset_version(version)
    else:
        types = [_type_of(value) for value in node.inputs]
        try:
            found = definition.get_context_dependent_function_with_opset_version(
                version, node.proto.SerializeToString(), [type_.SerializeToString() for type_ in types]
            )
        except RuntimeError as error:  # the onnx package writes the body as text and parses it
            raise RelvmFormatError(f"the onnx package failed to build function {node.proto.op_type}: {error}") from None
    if not found:
        raise RelvmUnsupportedError(f"function {node.proto.op_type} is not defined for these inputs and attributes")
    body = FunctionProto.FromString(found)
    stated = opset_versions(body.opset_import, node.here)
    for other, opset in node.graph.opsets.items():  # domains that the body does not import have the model's opsets
        if other not in stated:
            body.opset_import.add(domain=other, version=opset)
    attributes = definition.attributes.items()
    return _InlinableFunction(key, body, {each: a.default_value for each, a in attributes if a.default_value.name})


def _type_of(value: Expr | HostValue | None) -> Any:
    """Return the type of a node's input as a TypeProto.  If the input is omitted, the TypeProto is empty."""
    from onnx import TypeProto, helper

    if value is None:
        return TypeProto()
    if isinstance(value, HostValue):
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype.numpy), value.array.shape)
    if not isinstance(value.type, TensorType) or value.type.dtype is None:
        raise RelvmUnsupportedError(f"a function input has type {value.type}, expected a tensor of known dtype")
    dims = value.type.shape if value.type.rank is None or value.type.shape else (None,) * value.type.rank
    shape = None if dims is None else [dim if isinstance(dim, int) or dim is None else str(dim) for dim in dims]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.type.dtype.numpy), shape)


def _inline(node: OnnxNode, call: _InlinableFunction) -> tuple[Any, ...]:
    """Inline the function that `node` calls: add its nodes to the caller's block, and return the outputs.

    Raises
    ------
    RelvmFormatError
        The call has more inputs or outputs than the function, the call lacks a required attribute, or the function
        calls itself.
    """
    graph, body = node.graph, call.body
    name = ".".join(part for part in call.key if part)
    if call.key in graph.calls:
        raise RelvmFormatError(f"function {name} calls itself")
    if len(node.inputs) > len(body.input) or len(node.proto.output) > len(body.output):
        counts = f"{len(node.inputs)} inputs and {len(node.proto.output)} outputs"
        raise RelvmFormatError(
            f"got {counts}, but function {name} takes {len(body.input)} and returns {len(body.output)}"
        )
    attributes_given = {attribute.name: attribute for attribute in node.proto.attribute}
    for required in body.attribute:
        if required not in attributes_given and call.key in graph.functions:
            raise RelvmFormatError(f"missing attribute {required}, which function {name} requires")

    scope = graph.function_context(opset_versions(body.opset_import, node.here), node.here, call.key)
    scope.values.update(dict.fromkeys(body.input))
    scope.values.update(zip(body.input, node.inputs, strict=False))
    attributes = {**call.defaults, **attributes_given}
    wanted = [inner for inner, outer in zip(body.output, node.proto.output, strict=False) if outer]
    nodes = []
    for inner in body.node:
        nodes.append(_with_attributes(inner, attributes))
        graph.node_counter.count(sum(1 for _ in nested_nodes(nodes[-1])), graph.file.place)
        graph.file.count(nodes[-1].ByteSize(), node.here)
    values = dict(zip(wanted, scope.import_nodes(nodes, wanted), strict=True))
    return tuple(values.get(name) for name in body.output[: len(node.proto.output)])


def _with_attributes(proto: Any, attributes: Mapping[str, Any]) -> Any:
    """Return a copy of `proto`, a node in a function body, with the attributes of a call inserted.

    An attribute of the node can refer to an attribute of the function.  Replace such references by the values in
    `attributes`, also in subgraphs.  Remove a reference to an attribute that the call does not have.
    """
    from onnx import NodeProto

    copy = NodeProto()
    copy.CopyFrom(proto)
    del copy.attribute[:]
    for attribute in proto.attribute:
        value = attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in attributes:
                continue
            value = attributes[attribute.ref_attr_name]
        added = copy.attribute.add()
        added.CopyFrom(value)
        added.name = attribute.name
        for graph in attribute_graphs(added):
            inner = (
                [_with_attributes(node, attributes) for node in graph.node] if value is attribute else list(graph.node)
            )
            del graph.node[:]
            graph.node.extend(inner)
    return copy
