"""Checks of nodes against the schemas in the onnx package: number of inputs and outputs, attributes, input types.

Operators of other domains have no schema.  Their converters check the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from relvm.errors import RelvmFormatError, RelvmTypeError, near_matches, shortened
from relvm.frontend.onnx.model_checker import plain_domain
from relvm.frontend.onnx.values import HostValue
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr
from relvm.ir.types import ListType, TensorType, Type

_MANY = 2**31 - 1  # the schema's number for any number of inputs or outputs


@cache
def schema_of(domain: str, name: str, opset: int) -> Any:
    """Return the onnx package's schema of an operator in an opset, or None if the package has no such operator."""
    from onnx import defs

    domain = plain_domain(domain)
    return defs.get_schema(name, opset, domain) if defs.has(name, opset, domain) else None


def expect_valid_node(proto: Any, schema: Any) -> None:
    """Check the attributes of the node `proto`, and the numbers of its inputs and outputs.

    Raises
    ------
    RelvmFormatError
        The node does not match the schema.
    """
    _expect_count("inputs", proto.input, schema.min_input, schema.max_input)
    _expect_count("outputs", proto.output, schema.min_output, schema.max_output)
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
        kind, wanted = attribute.type, known[name].type
        if kind != wanted.value:
            kinds = attribute.AttributeType.DESCRIPTOR.values_by_number
            got = kinds[kind].name if kind in kinds else kind
            raise RelvmFormatError(f"attribute {name} has type {got}, expected {wanted.name}")
        field = _SINGLE.get(wanted.name)
        if field and not attribute.HasField(field):
            raise RelvmFormatError(f"attribute {name} of type {wanted.name} has no value")
        if name in _FLAGS and attribute.i not in (0, 1):
            raise RelvmFormatError(f"attribute {name} is {attribute.i}, expected 0 or 1")
    for name, attribute in known.items():
        if attribute.required and name not in found:
            raise RelvmFormatError(f"attribute {name} is missing")


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


def _expect_count(what: str, names: Sequence[str], least: int, most: int) -> None:
    count = len(names)
    while count > most and not names[count - 1]:
        count -= 1
    if least <= count <= most:
        return
    limits = f"{least}" if least == most else f"{least} or more" if most == _MANY else f"{least} to {most}"
    raise RelvmFormatError(f"expected {limits} {what}, got {count}")


def expect_types(values: Sequence[Expr | HostValue | None], schema: Any) -> None:
    """Check the types of a node's inputs, as far as they are known, against the schema of its operator.

    values: the inputs, with None for an omitted one.

    Raises
    ------
    RelvmFormatError
        A required input is omitted.
    RelvmTypeError
        The operator does not accept the type of an input, or two inputs that must have the same type differ.
    """
    formal, required = _formal_inputs(schema)
    seen: dict[str, tuple[int, str]] = {}
    for i, value in enumerate(values):
        name, variable, allowed, is_homogeneous = formal[min(i, len(formal) - 1)]
        if value is None:
            if i < required:
                raise RelvmFormatError(f"input {i} ({name}) is missing")
            continue
        got = _text_of(value.dtype) if isinstance(value, HostValue) else _type_text(value.type)
        if got is None:
            continue
        if got not in allowed:
            raise RelvmTypeError(f"input {i} ({name}) is {got}, expected {_listed(allowed)}")
        if not is_homogeneous:
            continue
        first, other = seen.setdefault(variable, (i, got))
        if other != got:
            raise RelvmTypeError(
                f"input {i} ({name}) is {got}, but input {first} is {other}; both must have the same type"
            )


@cache
def _formal_inputs(schema: Any) -> tuple[list[tuple[str, str, frozenset[str], bool]], int]:
    """Return the formal inputs in a schema, and the number of them that are required.  Required inputs come first.

    A formal input is a tuple: its name, its type or type variable, the allowed types, and whether all values of a
    variadic input must have the same type.
    """
    formal = [(each.name, each.type_str, frozenset(each.types), each.is_homogeneous) for each in schema.inputs]
    return formal, sum(each.option == each.option.Single for each in schema.inputs[: schema.min_input])


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
    from onnx import TensorProto, helper

    return f"tensor({TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(dtype.numpy)).lower()})"


def _listed(types: frozenset[str]) -> str:
    if all(text.startswith("seq(") for text in types):
        return "a sequence"
    return " or ".join(sorted(types)) if len(types) < 5 else f"one of {', '.join(sorted(types))}"
