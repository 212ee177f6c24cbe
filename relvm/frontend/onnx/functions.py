"""Inlining of functions: operators defined by a graph of other operators, either in the model or in ONNX.

The body of a function is imported at each call, and its nodes become bindings of the caller's block.  A body has its
own scope of names and its own opsets.  A function of the model takes precedence over a converter.  A converter takes
precedence over a function that the onnx package defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.model_checker import Key, function_key, map_attribute_graphs, nested_nodes, opset_versions
from relvm.frontend.onnx.node_schemas import definition_of, is_function
from relvm.frontend.onnx.registry import Converter, OnnxNode, converter_for
from relvm.frontend.onnx.values import HostValue
from relvm.frontend.onnx_messages import Message, message, read_message
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
    body: Message
    defaults: Mapping[str, Message]


def converter_of(graph: ImportContext, proto: Message, opset: int) -> Converter | None:
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
    definition = definition_of(*key[:2], opset) if is_function(*key[:2]) else None
    if definition is None or not (definition.has_function or definition.has_context_dependent_function):
        return None
    return lambda node: _inline(node, _onnx_function(node, key, definition))


def _onnx_function(node: OnnxNode, key: Key, definition: Any) -> _InlinableFunction:
    """Return the function by which the onnx package defines the operator of a node.

    The body of the function can depend on the types of the node's inputs.

    key: the domain, name and overload of the function.   definition: the OpSchema of the operator.
    """
    from onnx import NodeProto

    versions = definition.function_opset_versions or definition.context_dependent_function_opset_versions
    own = node.graph.opsets.get("", node.opset)  # a body uses ONNX's own domain
    version = max((v for v in versions if v <= own), default=min(versions))
    if definition.has_function:
        found = definition.get_function_with_opset_version(version)
    else:
        types = [_type_of(value).SerializeToString() for value in node.inputs]
        proto = _filled(NodeProto(), node.proto).SerializeToString()
        try:
            found = definition.get_context_dependent_function_with_opset_version(version, proto, types)
        except RuntimeError as error:  # the onnx package writes the body as text and parses it
            raise RelvmFormatError(f"the onnx package failed to build function {node.proto.op_type}: {error}") from None
    if not found:
        raise RelvmUnsupportedError(f"function {node.proto.op_type} is not defined for these inputs and attributes")
    body = read_message("FunctionProto", found)
    stated = opset_versions(body.opset_import, node.here)
    more = (  # domains that the body does not import have the model's opsets
        message("OperatorSetIdProto", domain=other, version=opset)
        for other, opset in node.graph.opsets.items()
        if other not in stated
    )
    body = body.replace(opset_import=(*body.opset_import, *more))
    defaults = {each: attribute.default_value for each, attribute in definition.attributes.items()}
    return _InlinableFunction(
        key,
        body,
        {
            each: read_message("AttributeProto", value.SerializeToString())
            for each, value in defaults.items()
            if value.name
        },
    )


def _filled(proto: Any, source: Message) -> Any:
    """Copy the fields of a message to a message of the onnx package, and return the latter."""
    for name, value in source.fields().items():
        match value:
            case Message():
                getattr(proto, name).SetInParent()
                _filled(getattr(proto, name), value)
            case memoryview() if name == "raw_data":
                proto.raw_data = bytes(value)
            case tuple() if value and isinstance(value[0], Message):
                for each in value:
                    _filled(getattr(proto, name).add(), each)
            case tuple() | memoryview():
                getattr(proto, name).extend(value)
            case _:
                setattr(proto, name, value)
    return proto


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
        counts = f"{counted(len(node.inputs), 'input')} and {counted(len(node.proto.output), 'output')}"
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
        graph.file.count(nodes[-1].size_bytes, node.here)
    values = dict(zip(wanted, scope.import_nodes(nodes, wanted), strict=True))
    return tuple(values.get(name) for name in body.output[: len(node.proto.output)])


def _with_attributes(proto: Message, attributes: Mapping[str, Message]) -> Message:
    """Return `proto`, a node in a function body, with the attributes of a call inserted.

    An attribute of the node can refer to an attribute of the function.  Replace such references by the values in
    `attributes`, also in subgraphs.  Remove a reference to an attribute that the call does not have.
    """

    def inserted(graph: Message) -> Message:
        return graph.replace(node=tuple(_with_attributes(node, attributes) for node in graph.node))

    changed = []
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            changed.append(map_attribute_graphs(attribute, inserted))
        elif attribute.ref_attr_name in attributes:
            changed.append(attributes[attribute.ref_attr_name].replace(name=attribute.name))
    return proto.replace(attribute=tuple(changed)) if tuple(changed) != proto.attribute else proto
