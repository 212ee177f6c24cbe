"""Checks of nodes against the schemas of ONNX: number of inputs and outputs, attributes, input types.

Operators of other domains have no schema.  Their converters check the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from relvm.errors import RelvmFormatError, RelvmTypeError, counted, near_matches, shortened
from relvm.frontend.onnx.node_schemas import NodeSchema
from relvm.frontend.onnx.values import HostValue
from relvm.frontend.onnx_element_types import ELEMENT_TYPES, element_number
from relvm.frontend.onnx_messages import ATTRIBUTE_TYPE_NAMES, ATTRIBUTE_TYPES, Message
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr
from relvm.ir.types import ListType, TensorType, Type


def expect_valid_node(proto: Message, schema: NodeSchema) -> None:
    """Check the attributes of the node `proto`, and the numbers of its inputs and outputs.

    Raises
    ------
    RelvmFormatError
        The node does not match the schema.
    """
    _expect_count("input", proto.input, *schema.inputs)
    _expect_count("output", proto.output, *schema.outputs)
    known = schema.attributes
    found = set()
    for attribute in proto.attribute:
        name = attribute.name
        if name in found:
            raise RelvmFormatError(f"attribute {shortened(name)} is given twice")
        found.add(name)
        if name.startswith("__"):  # private attribute of an implementation
            continue
        if name not in known:
            raise RelvmFormatError(f"unknown attribute {shortened(name)}{near_matches(shortened(name), known)}")
        if attribute.ref_attr_name:
            raise RelvmFormatError(
                f"attribute {name} refers to a function attribute, but the node is not inside a function"
            )
        kind, wanted = attribute.type, known[name]
        if kind != ATTRIBUTE_TYPES[wanted]:
            raise RelvmFormatError(f"attribute {name} has type {ATTRIBUTE_TYPE_NAMES[kind]}, expected {wanted}")
        field = _SINGLE.get(wanted)
        if field and not attribute.has(field):
            raise RelvmFormatError(f"attribute {name} of type {wanted} has no value")
        if name in _FLAGS and attribute.i not in (0, 1):
            raise RelvmFormatError(f"attribute {name} is {attribute.i}, expected 0 or 1")
    if missing := schema.required - found:
        raise RelvmFormatError(f"attribute {min(missing)} is missing")


# Boolean attributes.  ONNX does not define values other than 0 and 1, and implementations differ.
_FLAGS = frozenset(
    (
        "align_corners",
        "allowzero",
        "antialias",
        "ceil_mode",
        "center_point_box",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "exclude_outside",
        "exclusive",
        "input_forget",
        "interleaved",
        "inverse",
        "is_causal",
        "keepdims",
        "largest",
        "linear_before_reset",
        "noop_with_empty_axes",
        "onesided",
        "reverse",
        "saturate",
        "select_last_index",
        "sorted",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "upper",
    )
)

# The fields of attributes that hold one value.
_SINGLE = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "sparse_tensor"}


def _expect_count(what: str, names: Sequence[str], least: int, most: int | None) -> None:
    count = len(names)
    while most is not None and count > most and not names[count - 1]:
        count -= 1
    if least <= count and (most is None or count <= most):
        return
    expected = f"{least} or more {what}s" if most is None else f"{least} to {most} {what}s"
    raise RelvmFormatError(f"expected {counted(least, what) if least == most else expected}, got {count}")


def expect_types(values: Sequence[Expr | HostValue | None], schema: NodeSchema) -> None:
    """Check the types of a node's inputs, as far as they are known, against the schema of its operator.

    values: the inputs, with None for an omitted one.

    Raises
    ------
    RelvmFormatError
        A required input is omitted.
    RelvmTypeError
        The operator does not accept the type of an input, or two inputs that must have the same type differ.
    """
    formal, required = schema.formal_inputs, schema.required_inputs
    seen: dict[str, tuple[int, str]] = {}
    for i, value in enumerate(values):
        expected = formal[min(i, len(formal) - 1)]
        if value is None:
            if i < required:
                raise RelvmFormatError(f"input {i} ({expected.name}) is missing")
            continue
        got = _text_of(value.dtype) if isinstance(value, HostValue) else _type_text(value.type)
        if got is None:
            continue
        if got not in expected.types:
            raise RelvmTypeError(f"input {i} ({expected.name}) is {got}, expected {_listed(expected.types)}")
        if expected.kind == "mixed":
            continue
        first, other = seen.setdefault(expected.type_variable, (i, got))
        if other != got:
            raise RelvmTypeError(
                f"input {i} ({expected.name}) is {got}, but input {first} is {other}; both must have the same type"
            )


def _type_text(type_: Type | None) -> str | None:
    """Return a type in the notation of ONNX schemas, such as `tensor(float)`, or None if it is unknown or nullable."""
    match type_:
        case TensorType(dtype=DType() as dtype):
            return _text_of(dtype)
        case ListType(item=TensorType(dtype=DType() as dtype)):
            return f"seq({_text_of(dtype)})"
    return None


@cache
def _text_of(dtype: DType) -> str:
    return f"tensor({ELEMENT_TYPES[element_number(dtype.numpy)].text})"


def _listed(types: frozenset[str]) -> str:
    if all(text.startswith("seq(") for text in types):
        return "a sequence"
    return " or ".join(sorted(types)) if len(types) < 5 else f"one of {', '.join(sorted(types))}"
