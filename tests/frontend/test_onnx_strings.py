"""Tests of ONNX models with strings, in every mode, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import onnxruntime_answers, outputs
from frontend.onnx_models import parse_model
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support.modes import machines, plain

from relvm.errors import RelvmArithmeticError, RelvmError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.ir.dtypes import BF16
from relvm.onnx_backend import prepare
from relvm.ops.regex_compiler import compile_pattern
from relvm.ops.string_reference import longest_match

TYPES = {"str": TensorProto.STRING, "i64": TensorProto.INT64, "f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16}


def node_model(op: str, inputs: list[tuple[str, list]], outputs: int, domain: str = "", **attributes: Any) -> Any:
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        op,
        [
            helper.make_tensor_value_info(name, TYPES[kind], dims)
            for name, (kind, dims) in zip(names, inputs, strict=True)
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    opsets = [
        helper.make_opsetid("", 20),
        helper.make_opsetid("ai.onnx.ml", 4),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def expect(model: Any, feeds: list[np.ndarray], wanted: list[Any]) -> None:
    for machine in machines(from_onnx(model)).values():
        for each, right in zip(outputs(plain(machine["main"](*feeds))), wanted, strict=True):
            right = np.asarray(right)
            assert each.shape == right.shape
            if right.dtype.kind == "f":
                np.testing.assert_allclose(each, right, rtol=1e-5)
            else:
                assert each.tolist() == right.tolist()


def against_onnxruntime(model: Any, *feeds: np.ndarray) -> None:
    expect(model, list(feeds), onnxruntime_answers(model, feeds))


def texts(*each: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    array = np.array(each, object)
    return array if shape is None else array.reshape(shape)


NAMES = texts("Amy", "", "ß日本", "Bob", "amy", "Amy", shape=(2, 3))
SYMBOLIC = ("str", ["n", "m"])


@pytest.mark.parametrize(
    ("op", "domain", "attributes"),
    [
        (
            "LabelEncoder",
            "ai.onnx.ml",
            {"keys_strings": ["Amy", "ß日本"], "values_int64s": [5, 6], "default_int64": -3},
        ),
        ("LabelEncoder", "ai.onnx.ml", {"keys_strings": ["Amy", ""], "values_strings": ["x", "y"]}),
        ("LabelEncoder", "ai.onnx.ml", {"keys_strings": ["Bob"], "values_floats": [0.5], "default_float": 2.0}),
        ("CategoryMapper", "ai.onnx.ml", {"cats_strings": ["amy", "Amy"], "cats_int64s": [7, 8]}),
        ("OneHotEncoder", "ai.onnx.ml", {"cats_strings": ["Amy", "", "Bob"]}),
        ("Identity", "", {}),
        ("Transpose", "", {"perm": [1, 0]}),
        ("RegexFullMatch", "", {"pattern": "(?i)a.y|[^a-z]*"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_of_one_tensor_as_onnxruntime_has_it(op: str, domain: str, attributes: dict) -> None:
    against_onnxruntime(node_model(op, [SYMBOLIC], 1, domain, **attributes), NAMES)


def test_numbers_become_strings() -> None:
    numbers = {"keys_int64s": [1, 2], "values_strings": ["one", "two"], "default_string": "many"}
    against_onnxruntime(node_model("LabelEncoder", [("i64", ["n"])], 1, "ai.onnx.ml", **numbers), np.array([2, 9, 1]))
    mapper = {"cats_strings": ["a", "b"], "cats_int64s": [7, 8], "default_string": "?"}
    against_onnxruntime(node_model("CategoryMapper", [("i64", ["n"])], 1, "ai.onnx.ml", **mapper), np.array([8, 9]))


def test_of_equal_keys_the_last_one_counts() -> None:
    model = node_model("LabelEncoder", [("str", ["n"])], 1, "ai.onnx.ml", keys_strings=["a", "a"], values_int64s=[5, 6])
    expect(model, [texts("a", "b")], [[6, -1]])  # as in the schema; ONNX Runtime uses the first key


def test_joined_under_broadcasting() -> None:
    model = node_model("StringConcat", [SYMBOLIC, ("str", ["m"])], 1)
    expect(model, [NAMES, texts("-", "", "ü")], [[["Amy-", "", "ß日本ü"], ["Bob-", "amy", "Amyü"]]])


def test_split_as_onnxruntime_has_it() -> None:
    x = texts("a,b,,c", ",", " a  b ", "x")
    for attributes in ({"delimiter": ","}, {"delimiter": ",", "maxsplit": 1}, {}, {"delimiter": "b,"}):
        against_onnxruntime(node_model("StringSplit", [("str", ["n"])], 2, **attributes), x)


def test_split_as_the_reference_of_onnx_has_it() -> None:
    """An empty string has one part if there is a delimiter, and the last part is not stripped."""
    one = node_model("StringSplit", [("str", ["n"])], 2, delimiter=",")
    expect(one, [texts("", "a,b")], [[["", ""], ["a", "b"]], [1, 2]])
    rest = node_model("StringSplit", [("str", ["n"])], 2, maxsplit=1)
    expect(rest, [texts(" a  b c ", "")], [[["a", "b c "], ["", ""]], [2, 0]])


@pytest.mark.parametrize("change", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("stopwords", [None, ["amy", "Bob"]], ids=["all", "some"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalised_as_onnxruntime_has_it(change: str, stopwords: list[str] | None, sensitive: int) -> None:
    attributes = {"case_change_action": change, "is_case_sensitive": sensitive, "locale": "C"}
    if stopwords:
        attributes["stopwords"] = stopwords
    x = texts("Amy", "Bob", "", "cAt", "amy")
    against_onnxruntime(node_model("StringNormalizer", [("str", ["n"])], 1, **attributes), x)
    against_onnxruntime(node_model("StringNormalizer", [("str", [1, "n"])], 1, **attributes), x[None])
    if stopwords:
        against_onnxruntime(node_model("StringNormalizer", [("str", ["n"])], 1, **attributes), texts("amy", "amy"))


def test_letters_beyond_ascii_change_their_case() -> None:
    model = node_model("StringNormalizer", [("str", ["n"])], 1, case_change_action="UPPER", stopwords=["ÄX"])
    expect(model, [texts("äx", "straße", "жя", "Ωω")], [["STRAßE", "ЖЯ", "ΩΩ"]])


def test_words_are_counted_as_onnxruntime_has_it() -> None:
    grams = {
        "pool_strings": ["a", "b", "b", "a", "c", "a"],
        "ngram_counts": [0, 2],
        "ngram_indexes": [0, 2, 1, 3],
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 1,
    }
    x = texts("a", "b", "x", "a", "b", "b", "c", "a", shape=(2, 4))
    against_onnxruntime(node_model("TfIdfVectorizer", [SYMBOLIC], 1, **grams), x)


def test_tokens_as_onnxruntime_has_them() -> None:
    x = texts("the cat-sat, on", "", "déjà vu!")
    for attributes in ({"tokenexp": "[a-zA-Z0-9_]+"}, {"tokenexp": "a|at|."}, {"separators": [""]}):
        attributes |= {"mark": 0, "mincharnum": 1, "pad_value": "#"}
        against_onnxruntime(node_model("Tokenizer", [("str", ["n"])], 1, "com.microsoft", **attributes), x)


MOVES = """
g (string[n, m] x, int64[k] i, bool[n, m] c) => (string[a, b] y, string[p] z, bool[n, m] e, string[q, m] s) {
  axis = Constant <value_ints = [0]> ()
  one = Constant <value_ints = [1]> ()
  flat = Constant <value_ints = [-1]> ()
  dash = Constant <value_string = "-"> ()
  picked = Gather <axis = 0> (x, i)
  y = Concat <axis = 0> (picked, x)
  w = Where (c, x, dash)
  z = Reshape (w, flat)
  e = Equal (w, x)
  s = Slice (x, axis, one, axis)
}
"""


def test_moved_strings_as_the_reference_of_onnx_has_them() -> None:
    """Compare with ONNX's reference evaluator, because ONNX Runtime loses some of the joined strings here."""
    model = parse_model(MOVES, opset=20)
    feeds = {"x": NAMES, "i": np.array([1, -1, 0]), "c": np.array([[True, False, True], [False, True, False]])}
    expect(model, list(feeds.values()), ReferenceEvaluator(model).run(None, feeds))


@pytest.mark.parametrize("number", ["i64", "f32"])
def test_numbers_in_strings(number: str) -> None:
    model = node_model("Cast", [("str", ["n"])], 1, to=TYPES[number])
    against_onnxruntime(model, texts("12", "-7", "0"))
    for machine in machines(from_onnx(model)).values():
        with pytest.raises(RelvmArithmeticError, match="string_to_number"):
            machine["main"](texts("1", "twelve"))
    to_text = node_model("Cast", [(number, ["n"])], 1, to=TensorProto.STRING)
    expect(
        to_text,
        [np.array([12, -7]).astype({"i64": int, "f32": np.float32}[number])],
        [["12", "-7"] if number == "i64" else ["12.0", "-7.0"]],
    )


def test_numbers_of_bf16_are_written_as_those_of_f32() -> None:
    model = node_model("Cast", [("bf16", ["n"])], 1, to=TensorProto.STRING)
    expect(model, [np.array([0.1, -2.5, 1e30]).astype(BF16.numpy)], [["0.100097656", "-2.5", "1.00025555e+30"]])


def test_maps() -> None:
    model = node_model("ZipMap", [("f32", ["n", 2])], 1, "ai.onnx.ml", classlabels_strings=["no", "yes"])
    map_type = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(map_type))
    scores = np.array([[0.25, 0.75], [1, 0]], np.float32)
    assert prepare(model).run([scores])[0] == [{"no": 0.25, "yes": 0.75}, {"no": 1.0, "yes": 0.0}]
    expect(model, [scores], [["no", "yes"], scores])

    def of_a_map(op: str, key: int, **attributes: Any) -> Any:
        model = node_model(op, [("f32", [])], 1, "ai.onnx.ml", **attributes)
        value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        model.graph.input[0].type.CopyFrom(helper.make_map_type_proto(key, value))
        return model

    values = np.array([4, 8, 2], np.float32)
    row = of_a_map("DictVectorizer", TensorProto.STRING, string_vocabulary=["a", "c", "b", "z"])
    expect(row, [(texts("a", "c", "q"), values)], [[[4.0, 8.0, 0.0, 0.0]]])
    dense = of_a_map("CastMap", TensorProto.INT64, map_form="DENSE")
    expect(dense, [(np.array([7, 1, 3]), values)], [[[8.0, 2.0, 4.0]]])
    sparse = of_a_map("CastMap", TensorProto.INT64, map_form="SPARSE", max_map=4, cast_to="TO_INT64")
    expect(sparse, [(np.array([3, 1, 9]), values)], [[[0, 8, 0, 4]]])


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("RegexFullMatch", {"pattern": "(?=a)b"}, r"pattern '(?=a)b', at 3: (?= is not supported"),
        ("RegexFullMatch", {"pattern": r"(a)\1"}, r"\1 is not supported"),
        ("Cast", {"to": TensorProto.BOOL}, "converting strings to bool is not supported"),
        ("Neg", {}, "input 0 (X) is tensor(string)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(op: str, attributes: dict, message: str) -> None:
    with pytest.raises(RelvmError) as raised:
        from_onnx(node_model(op, [("str", ["n"])], 1, **attributes))
    assert message in str(raised.value)


def matches(pattern: str, text: str) -> bool:
    return longest_match(compile_pattern(pattern).tolist(), text) == len(text)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"[[:alpha:]_]\w*", "a_1", "1a"),
        (r"\d{2,3}-\x41\x{42}", "123-AB", "1-AB"),
        (r"a{,2}", "a{,2}", "aa"),
        (r"[]a-]+", "]a-", "b"),
        (r"[^\d\s]*", "ab", "a b"),
        (r"(?s:.)a.", "\nab", "ba\n"),
        (r"(?m)a$\n^b", "a\nb", "ab"),
        (r"(?P<name>x|(?:yz)+?)*", "xyzyzx", "y"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        (r"\bfoo\b.*", "foo bar", "foobar"),
        (r"(?i)[^a]É", "Bé", "Aé"),
        (r"", "", "a"),
        (r"()*|(a*)*", "aaa", "b"),
        ("(" * 20 + "".join("){1000}" for _ in range(20)) + "a", "a", "aa"),
    ],
)
def test_patterns(pattern: str, good: str, bad: str) -> None:
    assert matches(pattern, good) and not matches(pattern, bad)


@pytest.mark.parametrize(
    "pattern", ["(", ")", "a**", "[a", "*", "a{2,1}", "a{1001}", r"\pL", "[b-a]", r"\x4", "(" * 200]
)
def test_patterns_that_are_refused(pattern: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match="is not supported"):
        compile_pattern(pattern)


def test_a_program_has_at_most_20000_instructions() -> None:
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))  # an instruction each
    with pytest.raises(RelvmUnsupportedError, match="needs more than 20000 instructions"):
        compile_pattern(f"(a{{1000}}){{9}}[{characters}]")


def test_a_pattern_takes_no_longer_than_the_text() -> None:
    model = node_model("RegexFullMatch", [("str", ["n"])], 1, pattern="(a?){50}a{50}(a*)*b")
    expect(model, [texts("a" * 2000)], [[False]])
