"""Tests of the passes of an export on small programs: their results, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden_cases import Case, check_case, golden

from relvm import aot
from relvm.aot.config import CallKind
from relvm.aot.lower.place_storage import format_placement
from relvm.aot.lower.printer import format_lowered, format_storage
from relvm.errors import (
    RelvmArgumentError,
    RelvmMemoryError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.quoting import c_identifier

FOLDER = Path(__file__).parent


def exported(text: str, **options) -> aot.AotProgram:
    return aot.build(parse_module(text), aot.AotConfig(**options), verified=True)


@golden(FOLDER / "storage.cases")
def test_storage(case: Case, update: bool) -> None:
    check_case(case, format_storage(exported(case.source).lowered.functions[-1]), update)


@golden(FOLDER / "lower_main.cases")
def test_lower_main(case: Case, update: bool) -> None:
    check_case(case, format_lowered(exported(case.source).lowered), update)


@golden(FOLDER / "place_storage.cases")
def test_placement(case: Case, update: bool) -> None:
    program = exported(case.source)
    check_case(case, format_placement(program.placements, program.config.pools), update)


TWO_STEPS = """
def main(x: f32[64], y: f32[64, 64]) -> f32[64] {
  a = softmax(matmul(x, y), axis=0)
  return softmax(matmul(a, y), axis=0)
}"""


@pytest.mark.parametrize("alignment", [1, 4, 64, 4096])
def test_tensors_are_aligned(alignment: int) -> None:
    program = exported(TWO_STEPS, alignment=alignment)
    slots = [slot for found in program.placements.values() for slot in found.slots.values()]
    assert slots and all(slot.offset % alignment == 0 for slot in slots)


def test_what_does_not_fit_goes_into_the_next_pool() -> None:
    whole = exported(TWO_STEPS).sources.pool_bytes[0]
    pools = (aot.Pool("fast", whole - 1), aot.Pool("slow"))
    program = exported(TWO_STEPS, pools=pools)
    fast, slow = program.sources.pool_bytes
    assert slow > 0
    assert fast < whole


def test_a_pool_that_is_too_small_is_an_error_that_says_by_how_much() -> None:
    whole = exported(TWO_STEPS).sources.pool_bytes[0]
    message = (
        f"pool workspace is too small for .* bytes.: {whole} bytes are needed, 1 more than the limit of {whole - 1}"
    )
    with pytest.raises(RelvmMemoryError, match=message):
        exported(TWO_STEPS, pools=(aot.Pool("workspace", whole - 1),))
    assert exported(TWO_STEPS, pools=(aot.Pool("workspace", whole),)).sources.pool_bytes == (whole,)


def test_constants_that_are_too_large_are_an_error_that_says_by_how_much() -> None:
    text = "def main(x: f32[8]) -> f32[8] { return add(x, const(f32[8], [1, 2, 3, 4, 5, 6, 7, 8])) }"
    with pytest.raises(RelvmMemoryError, match=r"32 bytes, 1 more than the limit of 31; the largest is f32\[8\]"):
        exported(text, constants_limit_bytes=31)
    assert exported(text, constants_limit_bytes=32).sources.constants_bytes == 32


REFUSED = {
    "main: result: .*a closure as the result of a function or an if branch": """
        def main(x: f32[n]) -> (f32[n]) -> f32[n] { return fn (a: f32[n]) -> f32[n] { return add(a, x) } }""",
    "main: f: .*a closure as the result of a function or an if branch": """
        def main(c: bool, x: f32[4]) -> f32[4] {
          f = if c then fn (a: f32[4]) -> f32[4] { return relu(a) } else fn (a: f32[4]) -> f32[4] { return add(a, x) }
          return f(x)
        }""",
    "factorial: value.*: .*recursion other than tail calls": """
        def main(i: i64) -> i64 { return @factorial(i) }
        def factorial(i: i64) -> i64 { return if i == 0 then 1 else i * @factorial(i - 1) }""",
    "odd: .*: .*recursion other than tail calls: odd must call even only as its last step": """
        def main(i: i64) -> i64 { return @even(i) }
        def even(i: i64) -> i64 { return if i == 0 then 1 else @odd(i - 1) }
        def odd(i: i64) -> i64 { return if i == 0 then 0 else @even(i - 1) + 1 }""",
    r"main: .*: .*f32\[n, m\] of unbounded size; give m an upper bound": """
        def main(x: f32[n, m]) -> f32[] with (upper_bounds=(("n", 4),)) {
          a = softmax(x, axis=1)
          return sum(softmax(a, axis=1))
        }""",
    "main: .*: .*of unbounded size; give .* an upper bound": """
        def main(x: f32[8], size: i64[1]) -> f32[] {
          sizes: shape[k] = tensor_to_shape(size)
          y = softmax(broadcast_to(const(f32[1], [1]), sizes), axis=0)
          return sum(softmax(y, axis=0))
        }""",
    "main: .*: .*of unbounded size; give sizes_0 an upper bound": """
        def main(x: f32[1], size: i64[1]) => f32[] {
          sizes: shape[k] = tensor_to_shape(size)
          y = softmax(broadcast_to(x, sizes), axis=0)
          z = sum(softmax(y, axis=0))
          _ = builtin.assert(dim(k) <= 16, "too late: y is made")
          return z
        }""",
    r"main: result: .*an argument of type \(f32\[4\], f32\[4\]\) of the host function test.aot.host": """
        def main(x: f32[4]) => f32[4] { return packed("test.aot.host", (x, x)) : f32[4] }""",
    "main: .*: .*list": """
        def main(x: f32[4]) -> list[f32[4]] { return make_list(x, x) }""",
    "main: x: .*tensors of strings": "def main(x: str[4]) -> str[4] { return x }",
    "main: y: .*device to": """
        def main(x: f32[4], to: i64) -> f32[4] {
          y: f32[4] = builtin.to_device(x, to)
          return relu(y)
        }""",
    "main: y: .*device 1": """
        def main(x: f32[4]) -> f32[4] {
          y: f32[4] = builtin.to_device(x, 1)
          return relu(y)
        }""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_needs_a_machine_is_refused_by_what_it_is_and_where(message: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=message):
        exported(REFUSED[message])


def test_names_that_are_the_same_in_c_are_an_error() -> None:
    with pytest.raises(RelvmArgumentError, match=r"outputs 'a.b' and 'a_b' have the same C name a_b"):
        exported('def main(x: f32[4]) -> (f32[4], f32[4]) with (output_tensor_names=("a.b", "a_b")) { return (x, x) }')


def test_outputs_of_a_tuple_that_has_one_name_have_numbers_behind_it() -> None:
    text = """
    def main(x: f32[4]) -> (f32[4], (f32[4], i64, ())) with (output_names=("a", "b")) { return (x, (x, 1, ())) }"""
    assert [port.name for port in exported(text).lowered.outputs] == ["a", "b_0", "b_1"]


@pytest.mark.parametrize("names", ['("a",)', "3", '("a", "b", "c")'])
def test_names_of_outputs_must_be_as_many_texts(names: str) -> None:
    with pytest.raises((RelvmArgumentError, RelvmTypeError), match="output_tensor_names"):
        exported(f"def main(x: f32[4]) -> (f32[4], f32[4]) with (output_tensor_names={names}) {{ return (x, x) }}")


def test_an_entry_that_is_not_there_is_an_error() -> None:
    module = parse_module("def main(x: f32[4]) -> f32[4] { return x }")
    with pytest.raises(RelvmNameError, match="no function mian; did you mean main"):
        aot.build(module, entry="mian")


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({"runtime": "bare", "interface": "c", "unpacked": True}, CallKind.UNPACKED),
        ({"runtime": "bare", "interface": "packed", "unpacked": True}, CallKind.UNPACKED),
        ({"runtime": "bare", "interface": "packed", "unpacked": False}, CallKind.CPACKED),
        ({"runtime": "hosted", "interface": "packed", "unpacked": False}, CallKind.PACKED),
    ],
)
def test_options_that_go_together(options: dict, calls: CallKind) -> None:
    assert aot.AotConfig(**options).calls is calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime": "bare", "interface": "c", "unpacked": False}, 'requires interface="packed" or unpacked=True'),
        ({"runtime": "hosted", "interface": "c", "unpacked": False}, 'requires interface="packed" and unpacked=False'),
        ({"runtime": "hosted", "interface": "c", "unpacked": True}, 'requires interface="packed" and unpacked=False'),
        (
            {"runtime": "hosted", "interface": "packed", "unpacked": True},
            'requires interface="packed" and unpacked=False',
        ),
        (
            {"runtime": "hosted", "interface": "packed", "unpacked": False, "workspace": "static"},
            "runtime='hosted' requires workspace='caller'",
        ),
    ],
)
def test_options_that_do_not_go_together_are_all_quoted(options: dict, message: str) -> None:
    quoted = ", ".join(f"{name}={value!r}" for name, value in options.items())
    with pytest.raises(RelvmArgumentError) as caught:
        aot.AotConfig(**options)
    assert str(caught.value).startswith(quoted)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime": "bear"}, "runtime='bear': expected one of bare, hosted; did you mean bare?"),
        ({"interface": "C"}, "interface='C'"),
        ({"workspace": "heap"}, "workspace='heap'"),
        ({"favour": "power"}, "favour='power': expected one of memory, speed, size"),
        ({"name": "2fast"}, "name='2fast'"),
        ({"name": ""}, "name=''"),
        ({"alignment": 12}, "alignment=12: expected a power of two"),
        ({"alignment": 0}, "alignment=0"),
        ({"alignment": 1 << 29}, "expected a power of two up to 65536"),
        ({"name": None}, "name=None"),
        ({"name": "int"}, "name='int'"),
        ({"name": "rvm"}, "name='rvm'"),
        ({"name": "math"}, "math.h is a required header"),
        ({"name": "winograd"}, "winograd.h is a required header"),
        ({"name": "m" * 65}, "a C identifier of up to 64 characters"),
        ({"unpacked": "no"}, "unpacked='no': expected True or False"),
        ({"pools": ("a",)}, "pools=('a',): expected a tuple of Pool"),
        ({"pools": aot.Pool("a")}, "expected a tuple of Pool"),
        ({"pools": (aot.Pool("a"), aot.Pool("A"))}, "two pools are named a"),
        ({"pools": ()}, "pools: expected at least one"),
        ({"pools": (aot.Pool("a"), aot.Pool("a"))}, "two pools are named a"),
        ({"constants_limit_bytes": 1.5}, "constants: the limit in bytes must be an integer of at least 0, got 1.5"),
    ],
)
def test_options_that_no_export_takes(options: dict, message: str) -> None:
    with pytest.raises(RelvmArgumentError) as caught:
        aot.AotConfig(**options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("int",), "pools: 'int'"),
        (("constants",), "pools: the name constants is reserved"),
        (("a b",), "pools: 'a b'"),
        ((3,), "pools: 3: expected a C identifier"),
        (("a", -1), "a: the limit in bytes must be an integer of at least 0, got -1"),
        (("a", True), "a: the limit in bytes must be an integer of at least 0, got True"),
    ],
)
def test_a_pool_has_a_name_in_c_and_a_limit(arguments: tuple, message: str) -> None:
    with pytest.raises(RelvmArgumentError) as caught:
        aot.Pool(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "interface", "unpacked"),
    [
        ({}, "c", True),
        ({"runtime": "hosted"}, "packed", False),
        ({"runtime": "hosted", "interface": "packed"}, "packed", False),
        ({"runtime": "hosted", "unpacked": False}, "packed", False),
        ({"interface": "packed"}, "packed", True),
        ({"unpacked": False}, "packed", False),
    ],
)
def test_options_that_are_not_given_follow_from_the_others(options: dict, interface: str, unpacked: bool) -> None:
    config = aot.AotConfig(**options)
    assert (config.interface, config.unpacked) == (interface, unpacked)


def test_a_bound_that_is_invalid_is_an_error() -> None:
    text = 'def main(x: f32[n]) -> f32[n] with (upper_bounds=(("n", -1))) { return x }'
    with pytest.raises((RelvmShapeError, RelvmTypeError)):
        exported(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (
            "def main(x: f32[n]) -> (f32[n]) -> f32[n] {\n  return fn (a: f32[n]) -> f32[n] { return add(a, x) }\n}",
            "1:9",
        ),
        (
            "def main(i: i64) -> i64 { return @f(i) }\n"
            "def f(i: i64) -> i64 {\n  return if i == 0 then 1 else i * @f(i - 1)\n}",
            "3:10",
        ),
        (
            'def main(x: f32[n, m]) -> f32[] with (upper_bounds=(("n", 4),)) {\n'
            "  a = softmax(x, axis=1)\n\n  return sum(softmax(a, axis=1))\n}",
            "4:14",
        ),
        ("def main(x: f32[4]) => f32[4] {\n  y = relu(x)\n  z: f32[4] = packed('f', (y, y))\n  return z\n}", "3:3"),
        ("def main(x: f32[2], y: str[4]) -> f32[2] { return x }", "1:21"),
    ],
)
def test_a_refusal_says_where_in_the_source(text: str, place: str) -> None:
    with pytest.raises(RelvmUnsupportedError) as caught:
        aot.build(parse_module(text.replace("'", '"'), "model.relvm"))
    assert str(caught.value).startswith(f"model.relvm:{place}: ")


def test_all_parts_that_cannot_be_exported_are_listed_at_once() -> None:
    text = """
def main(x: f32[n], y: f32[4], s: str[2], c: bool) => (f32[4], str[2], i64, f32[n]) {
  a: f32[4] = packed("host.f", (y, y))
  b = exp(a)
  l = make_list(y)
  m = list_item(l, 0)
  e = if c then { g: f32[4] = packed("host.g", (y, y))
    return g } else y
  u = softmax(softmax(x, axis=0), axis=0)
  return (add(add(b, e), m), s, @fac(3), u)
}
def fac(i: i64) -> i64 { return if i == 0 then 1 else i * @fac(i - 1) }
def other(x: f32[4]) => f32[4] {
  y: f32[4] = packed("host.unused", x)
  return y
}
"""
    with pytest.raises(RelvmUnsupportedError) as caught:
        aot.build(parse_module(text, "model.relvm"))
    first, *lines = str(caught.value).splitlines()
    parts = ["host function host.f", "host function host.g", "lists", "tensors of strings", "of unbounded size"]
    parts += ["recursion other than tail calls"]
    for part in parts:
        assert any(part in line for line in lines), (part, lines)
    assert first.startswith(f"{len(lines)} parts of the program cannot be exported")
    assert all(line.startswith("  model.relvm:") for line in lines)
    assert len(set(lines)) == len(lines)
    assert not any("host.unused" in line or "b:" in line for line in lines)


def test_a_value_that_depends_on_an_unsupported_one_is_not_listed() -> None:
    text = """
def main(x: f32[4]) => f32[k] {
  s: shape[k] = packed("host.sizes", x)
  y = softmax(softmax(broadcast_to(max(x), s), axis=0), axis=0)
  return y
}"""
    with pytest.raises(RelvmUnsupportedError, match=r"^model\.relvm:3:3: main: [^\n]*host\.sizes[^\n]*$"):
        aot.build(parse_module(text, "model.relvm"))


def test_a_refusal_names_the_node_of_a_model() -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [
        onnx.helper.make_node("Softmax", ["x"], ["y"], name="first", axis=1),
        onnx.helper.make_node("Softmax", ["y"], ["z"], name="second", axis=1),
    ]
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 4]) for name in ("x", "z")]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "graph", value[:1], value[1:]))
    with pytest.raises(RelvmUnsupportedError, match=r"node 'first' \(Softmax, opset \d+\): main: y.*batch"):
        aot.build(from_onnx(model))


def test_what_favours_memory_takes_less_of_it() -> None:
    text = "def main(x: f32[64, 64], y: f32[64, 64]) -> f32[64, 64] { return matmul(x, y) }"
    less, more = (exported(text, favour=favour).sources.pool_bytes[0] for favour in ("memory", "speed"))
    assert less < more
    assert exported(text).sources.pool_bytes == (less,)
    assert aot.AotConfig(runtime="hosted").kernel_favour == "speed"


@pytest.mark.parametrize("alignment", [16, 64])
def test_a_pool_never_takes_more_than_its_limit(alignment: int) -> None:
    text = "def main(x: f32[4]) -> f32[4] { return softmax(softmax(softmax(x, axis=0), axis=0), axis=0) }"
    pools = (aot.Pool("small", alignment + 4), aot.Pool("rest"))
    small, rest = exported(text, alignment=alignment, pools=pools).sources.pool_bytes
    assert small <= alignment + 4
    assert small + rest > 0


def test_elements_are_aligned_whatever_the_alignment() -> None:
    text = """
    def main(x: u8[5], y: f64[5]) -> (f64[], u8[]) {
      a = max(add(x, x), axes=(0,))
      b = softmax(y, axis=0)
      return (sum(multiply(softmax(b, axis=0), b)), a)
    }"""
    program = exported(text, alignment=1)
    (function,) = program.lowered.functions
    slots = program.placements["main"].slots
    for (kind, number), slot in slots.items():
        if kind == "storage":
            assert slot.offset % function.storages[number].dtype.size_bytes == 0
    assert "RVM_ALIGNED(8) uint8_t" in program.sources.files["src/model.c"]


NAMES = {
    "NULL": "NULL_",
    "NAN": "NAN_",
    "INT64_MIN": "INT64_MIN_",
    "_Bool": "x_Bool",
    "int": "int_",
    "3d": "_3d",
    "a.b": "a_b",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_mean_something_in_c_are_others(name: str) -> None:
    assert c_identifier(name) == NAMES[name]


def test_a_size_that_is_named_like_an_input_gets_another_name() -> None:
    program = exported(
        "def main(n: f32[n]) -> f32[n] with (upper_bounds=(('n', 4),)) { return relu(n) }".replace("'", '"')
    )
    assert [port.name for port in program.lowered.inputs] == ["n", "n_size"]
