"""relvm reads the messages of ONNX files as the onnx package does."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from frontend.onnx_comparison import differences
from frontend.onnx_suite import suite_models
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from onnx import TensorProto, helper, numpy_helper

from relvm._binding import onnx_table, read_onnx
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.model_checker import NEWEST_IR_VERSION
from relvm.frontend.onnx.model_file import read_model_file
from relvm.frontend.onnx_element_types import ELEMENT_TYPES, element_dtype, element_name, element_number
from relvm.frontend.onnx_messages import (
    ATTRIBUTE_FIELDS,
    ATTRIBUTE_TYPES,
    Message,
    OnnxLimits,
    attribute_value,
    check_model,
    make_node,
    message,
    read_message,
)

# ---- the table ----

KINDS = {
    FieldDescriptor.TYPE_INT32: 0,
    FieldDescriptor.TYPE_INT64: 1,
    FieldDescriptor.TYPE_UINT64: 2,
    FieldDescriptor.TYPE_FLOAT: 3,
    FieldDescriptor.TYPE_DOUBLE: 4,
    FieldDescriptor.TYPE_ENUM: 5,
    FieldDescriptor.TYPE_STRING: 6,
    FieldDescriptor.TYPE_BYTES: 7,
    FieldDescriptor.TYPE_MESSAGE: 9,
}
VIEW = 8


def descriptors(root: Descriptor, found: dict[str, Descriptor]) -> dict[str, Descriptor]:
    """Return the descriptors of a message and of all messages in its fields, by name."""
    name = root.full_name.removeprefix("onnx.").replace(".", "_")
    if name not in found:
        found[name] = root
        for field in root.fields:
            if field.message_type is not None:
                descriptors(field.message_type, found)
    return found


def test_the_table_has_the_messages_and_fields_of_the_onnx_package() -> None:
    messages, attributes, elements = onnx_table()
    expected = descriptors(onnx.ModelProto.DESCRIPTOR, {})
    assert {name for name, _ in messages} == set(expected)
    names = [name for name, _ in messages]
    for name, fields in messages:
        wanted = {field.name: field for field in expected[name].fields}
        assert [each[0] for each in fields] == sorted(wanted, key=lambda each: wanted[each].number)
        for field, kind, label, type_ in fields:
            descriptor = wanted[field]
            assert kind == (VIEW if field == "raw_data" else KINDS[descriptor.type]), (name, field)
            oneof = descriptor.containing_oneof
            assert label == (1 if descriptor.is_repeated else 2 if oneof else 0), (name, field)
            if descriptor.message_type is not None:
                inner = descriptor.message_type.full_name.removeprefix("onnx.").replace(".", "_")
                assert names[type_] == inner, (name, field)
            if descriptor.enum_type is not None:
                assert {value.number for value in descriptor.enum_type.values} == set(range(type_ + 1)), (name, field)
        assert len({field.containing_oneof for field in wanted.values() if field.containing_oneof}) < 2, name
        assert not {field for field, *_ in fields} & set(dir(Message)), name
    assert {name: number for name, number, _ in attributes} == dict(onnx.AttributeProto.AttributeType.items())
    assert {name: number for name, number, *_ in elements} == dict(TensorProto.DataType.items())
    assert [number for _, number, *_ in elements] == list(range(len(elements)))
    assert NEWEST_IR_VERSION == onnx.IR_VERSION


def test_the_values_of_attributes_are_in_their_fields() -> None:
    values = {"f": 1.5, "i": 2, "s": "t", "floats": [1.5, 2.5], "ints": [3, 4], "strings": ["a", "b"]}
    for value in values.values():
        proto = helper.make_attribute("name", value)
        found = read_message("AttributeProto", proto.SerializeToString())
        assert attribute_value(found) == helper.get_attribute_value(proto)
    assert set(ATTRIBUTE_FIELDS) == set(onnx.AttributeProto.AttributeType.values()) - {0}
    with pytest.raises(ValueError, match="attribute a refers to attribute b of a function"):
        attribute_value(message("AttributeProto", name="a", ref_attr_name="b"))


# ---- whole models ----


def test_all_models_of_the_suite_are_read_alike() -> None:
    models = suite_models()
    assert len(models) > 1000
    for model in models:
        found = check_model(memoryview(model.SerializeToString()), "model").model
        assert not list(differences(found, model, model.graph.name))


# ---- single messages ----


def field(number: int, content: bytes) -> bytes:
    assert number < 16 and len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


ATTRIBUTE, TYPE, MODEL, DIM = onnx.AttributeProto, onnx.TypeProto, onnx.ModelProto, onnx.TensorShapeProto.Dimension
TENSOR_TYPE, SEQUENCE_TYPE = field(1, b"\x08\x01"), field(4, b"")
MESSAGES = {
    "nothing": (MODEL, b""),
    "the last of two numbers": (MODEL, b"\x08\x05\x08\x06"),
    "the last of two strings": (ATTRIBUTE, field(1, b"ab") + field(1, b"c")),
    "two parts of a message": (MODEL, field(7, field(2, b"first")) + b"\x08\x05" + field(7, field(2, b"second"))),
    "two parts of a list": (MODEL, field(7, field(1, field(3, b"a"))) + field(7, field(1, field(3, b"b")))),
    "a negative number": (MODEL, b"\x08" + b"\xff" * 9 + b"\x01"),
    "bits above the 64th": (MODEL, b"\x08" + b"\xff" * 9 + b"\x7f"),
    "an int32 of 64 bits": (onnx.TensorProto, b"\x10\x82\x80\x80\x80\x18"),
    "an unknown number of an enumeration": (ATTRIBUTE, b"\xa0\x01\x02\xa0\x01\x0f"),
    "a string that is not UTF-8": (ATTRIBUTE, field(1, b"\xff")),
    "strings that are not UTF-8": (onnx.NodeProto, field(1, b"\xff") + field(1, b"x")),
    "numbers that are packed or not": (ATTRIBUTE, b"\x40\x07" + field(8, b"\x01\x96\x01") + b"\x40\x02"),
    "numbers after none": (ATTRIBUTE, field(8, b"") + field(8, b"\x01")),
    "floats that are packed": (ATTRIBUTE, field(7, b"\0\0\x80\x3f\0\0\0\x40")),
    "floats that are packed twice": (ATTRIBUTE, field(7, b"\0\0\x80\x3f") + field(7, b"\0\0\x80\x40")),
    "floats that are packed, and one that is not": (ATTRIBUTE, field(7, b"\0\0\x80\x3f") + b"\x3d\0\0\0\x40"),
    "floats that are not packed": (ATTRIBUTE, b"\x3d\0\0\x80\x3f\x3d\0\0\0\x40"),
    "no packed floats": (ATTRIBUTE, field(7, b"")),
    "another wire type": (MODEL, b"\x10\x05" + field(1, b"a")),
    "unknown fields and groups": (MODEL, b"\xa3\x06\x08\x01\xa3\x06\xa4\x06\xa4\x06\x0b\x08\x01\x0c\xf8\x07\x05"),
    "a key and a length with superfluous bytes": (MODEL, b"\x92\x80\x00\x82\x80\x80\x00ab"),
    "one type and then another": (TYPE, TENSOR_TYPE + SEQUENCE_TYPE),
    "one type, another, and the first": (TYPE, TENSOR_TYPE + SEQUENCE_TYPE + field(1, b"")),
    "two parts of a type": (TYPE, TENSOR_TYPE + field(1, field(2, b""))),
    "a size that is a number and a name": (DIM, b"\x08\x01" + field(2, b"n")),
    "an empty message": (MODEL, field(7, b"")),
    "empty strings": (onnx.NodeProto, field(1, b"") + field(3, b"") + field(2, b"y")),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_is_read_as_protobuf_requires(case: str) -> None:
    class_, content = MESSAGES[case]
    found = read_message(class_.DESCRIPTOR.full_name.removeprefix("onnx.").replace(".", "_"), content)
    expected = class_.FromString(content)
    assert not list(differences(found, expected, "message"))
    for each in class_.DESCRIPTOR.fields:
        if not each.is_repeated:
            assert found.has(each.name) == expected.HasField(each.name), each.name
    if class_ in (TYPE, DIM):
        assert found.which_oneof() == expected.WhichOneof("value")


def test_fields_have_defaults() -> None:
    node = read_message("NodeProto", b"")
    assert (node.name, node.input, node.attribute, node.fields()) == ("", (), (), {})
    attribute = read_message("AttributeProto", b"")
    assert (attribute.f, attribute.i, attribute.s, attribute.type) == (0.0, 0, b"", 0)
    assert attribute.g.node == () and not attribute.has("g") and attribute.t.raw_data == b""
    with pytest.raises(AttributeError, match="NodeProto has no field inputs"):
        node.inputs  # noqa: B018


def test_raw_data_and_packed_floats_are_not_copied() -> None:
    tensor = TensorProto(raw_data=bytes(range(8)), float_data=[1, 2], double_data=[3])
    content = memoryview(bytearray(tensor.SerializeToString()))
    found = Message([name for name, _ in onnx_table()[0]].index("TensorProto"), content, (0, len(content)))
    for value in (found.raw_data, found.float_data, found.double_data):
        assert np.shares_memory(np.frombuffer(value, np.uint8), np.frombuffer(content, np.uint8))


def test_a_message_that_is_not_in_a_file() -> None:
    node = make_node("Foo", ["x", ""], ["y"], axis=3, alpha=1.5, mode="m", axes=[1, 2], body=message("GraphProto"))
    assert [attribute_value(each) for each in node.attribute][:4] == [3, 1.5, b"m", [1, 2]]
    assert [each.type for each in node.attribute] == [
        ATTRIBUTE_TYPES[name] for name in ("INT", "FLOAT", "STRING", "INTS", "GRAPH")
    ]
    changed = node.replace(op_type="Bar")
    assert (changed.op_type, node.op_type, changed.input) == ("Bar", "Foo", ("x", ""))
    assert node.size_bytes > len("Fooxy") and read_message("NodeProto", b"\x22\x01a").size_bytes == 3
    assert repr(read_message("NodeProto", b"\x22\x01a\x0a\x01b")) == "NodeProto(op_type='a')"


# ---- errors ----


def test_the_limits_are_options() -> None:
    content = memoryview(helper.make_model(helper.make_graph([], "name", [], [])).SerializeToString())
    check_model(content, "m", OnnxLimits(messages=3, strings=2, string_bytes=4, file_bytes=len(content), depth=1))
    with pytest.raises(
        RelvmUnsupportedError, match=r"^m: .* graph\.name, byte \d+: the string has more bytes, but the"
    ):
        check_model(content, "m", OnnxLimits(string_bytes=3))
    with pytest.raises(RelvmUnsupportedError, match=r"^m: .* graph\.name, byte \d+: the string has more bytes, but"):
        check_model(content, "m", OnnxLimits(string_bytes=3))
    with pytest.raises(RelvmUnsupportedError, match=rf"^m: .*: it has {len(content)} bytes, but the limit is 2"):
        check_model(content, "m", OnnxLimits(file_bytes=2))


def test_a_file_that_ends_too_early() -> None:
    content = onnx.ModelProto(producer_name="relvm").SerializeToString()
    for size in range(1, len(content)):
        with pytest.raises(RelvmFormatError, match=r"^m is not an ONNX model: producer_name, byte 0: .*(ends|length)"):
            check_model(memoryview(content[:size]), "m")


@pytest.mark.parametrize(
    "arguments",
    [(-1, b"", ()), (1000, b"", ()), (0, b"ab", (0, 3)), (0, b"ab", (-1, 1)), (0, b"ab", (2, 1)), (0, b"\x08", (0, 1))],
)
def test_the_binding_checks_its_arguments(arguments: tuple[Any, ...]) -> None:
    number, content, ranges = arguments
    with pytest.raises(ValueError, match=r"no message|the range|byte 0: its value"):
        read_onnx(number, memoryview(content), ranges)


# ---- the elements of tensors ----

NUMBERS = [each.number for each in ELEMENT_TYPES if each.numpy]


def array_of(tensor: TensorProto) -> np.ndarray:
    model = helper.make_model(helper.make_graph([], "g", [], [], [tensor]))
    file = read_model_file(model)
    return file.array(file.proto.graph.initializer[0], "w")


def sample(number: int, dims: tuple[int, ...]) -> np.ndarray:
    """Return an array with many different elements."""
    dtype, random = element_dtype(number), np.random.default_rng(number)
    assert dtype is not None
    if dtype.kind == "O":
        return np.array([f"text {i} ü" for i in range(math.prod(dims))], object).reshape(dims)
    if ELEMENT_TYPES[number].bits < 8:
        return random.integers(0, 1 << ELEMENT_TYPES[number].bits, dims).astype(np.uint8).view(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, dims).astype(dtype)
    return np.frombuffer(random.bytes(dtype.itemsize * math.prod(dims)), dtype).reshape(dims)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: ELEMENT_TYPES[number].name)
@pytest.mark.parametrize("dims", [(3, 5), (), (7,), (2, 0)], ids=str)
def test_the_elements_of_a_tensor_are_those_of_the_onnx_package(number: int, dims: tuple[int, ...]) -> None:
    values = sample(number, dims)
    tensors = [numpy_helper.from_array(values, "w")]
    raw = bytes(tensors[0].raw_data)
    if number != TensorProto.STRING:
        plain = TensorProto(name="w", data_type=number, dims=dims)
        item = ELEMENT_TYPES[number]
        if item.field == "int32_data" and item.bits != 6:
            unit = np.uint8 if item.bits <= 8 else np.dtype(f"u{item.bits // 8}")
            plain.int32_data.extend(np.frombuffer(raw, unit).astype(np.uint32).view(np.int32).tolist())
        elif item.field == "int32_data":
            plain.int32_data.extend(values.view(np.uint8).reshape(-1).tolist())
        else:
            unit = {"float_data": "f4", "double_data": "f8", "int64_data": "i8"}.get(item.field)
            getattr(plain, item.field).extend(np.frombuffer(raw, unit or element_dtype(number)).tolist())
        tensors.append(plain)
    for tensor in tensors:
        found, expected = array_of(tensor), numpy_helper.to_array(tensor)
        assert found.shape == expected.shape == dims and found.dtype == element_dtype(number)
        if number == TensorProto.STRING:
            assert found.tolist() == expected.tolist()
        else:
            assert found.tobytes() == expected.tobytes() == values.tobytes()


def test_element_types_have_names_and_numbers() -> None:
    for number in NUMBERS:
        dtype = element_dtype(number)
        assert dtype is not None and element_number(dtype) == number
        assert dtype == helper.tensor_dtype_to_np_dtype(number)
        assert element_name(number) == TensorProto.DataType.Name(number)
    assert (element_dtype(0), element_dtype(99), element_dtype(-1)) == (None, None, None)
    assert (element_name(0), element_name(99)) == ("UNDEFINED", 99)


TENSORS = {
    "too few numbers": (TensorProto(data_type=1, dims=[3], float_data=[1, 2]), "expected 3 items in float_data.*got 2"),
    "too many numbers": (TensorProto(data_type=7, dims=[1], int64_data=[1, 2]), "expected 1 item in int64_data.*2"),
    "numbers in another field": (TensorProto(data_type=1, dims=[1], int64_data=[1]), "expected 1 item in float_data"),
    "too few halves of bytes": (TensorProto(data_type=22, dims=[3], int32_data=[1]), "expected 2 items in int32_data"),
    "half of a complex number": (TensorProto(data_type=14, dims=[1], float_data=[1]), "expected 2 items in float_data"),
    "raw strings": (TensorProto(data_type=8, dims=[1], raw_data=b"a"), "expected 1 item in string_data"),
    "a string that is not UTF-8": (TensorProto(data_type=8, dims=[1], string_data=[b"\xff"]), "a string is not UTF-8"),
    "too few bytes": (TensorProto(data_type=1, dims=[2], raw_data=b"1234"), "expected 8 bytes for float32"),
    "an unknown type": (TensorProto(data_type=99, dims=[1]), "unknown element type 99"),
    "no type": (TensorProto(dims=[1]), "unknown element type 0"),
    "a negative dimension": (TensorProto(data_type=1, dims=[-1]), r"invalid dimensions \[-1\]"),
    "a segment": (
        TensorProto(data_type=1, dims=[1], float_data=[1], segment=TensorProto.Segment(begin=0, end=1)),
        "tensors in segments are not supported",
    ),
}


@pytest.mark.parametrize("case", TENSORS)
def test_an_inconsistent_tensor_is_refused(case: str) -> None:
    tensor, expected = TENSORS[case]
    with pytest.raises(RelvmFormatError, match=f"^w: {expected}"):
        array_of(tensor)


# ---- without the onnx package ----

WITHOUT_ONNX = """
import sys
sys.modules["onnx"] = None
import numpy as np
import relvm
import relvm.onnxruntime
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.ir.interpreter import evaluate
model, function = sys.argv[1:]
print(evaluate(from_onnx(model), "main", np.float32([1, -2])).tolist())
print([value.name for value in relvm.onnxruntime.InferenceSession(model).get_inputs()])
try:
    from_onnx(function)
except RelvmUnsupportedError as error:
    print(error)
assert not [name for name in sys.modules if name.startswith(("onnx.", "google.protobuf"))]
"""


def test_models_are_read_without_the_onnx_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    texts = {
        "plain": "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { z = Mul(x, w) y = Relu(z) }",
        "function": "g (float[2, 3] x, int64[2] t) => (float y) { y = NegativeLogLikelihoodLoss(x, t) }",
    }
    paths = []
    for name, text in texts.items():
        paths.append(tmp_path / f"{name}.onnx")
        proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
        paths[-1].write_bytes(proto.SerializeToString())
    done = subprocess.run([sys.executable, "-P", "-c", WITHOUT_ONNX, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    values, names, error = done.stdout.splitlines()
    assert (values, names) == ("[1.0, 0.0]", "['x']")
    assert "NegativeLogLikelihoodLoss is imported as the function by which the onnx package defines it" in error
    assert "pip install onnx" in error
