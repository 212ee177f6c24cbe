"""Tests of sequences and optional values, compared with ONNX Runtime: operators, loop states and subgraphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontend.onnx_answers import assert_answers, c_answers, onnxruntime_answers
from frontend.onnx_models import parse_model
from onnx import TensorProto, helper
from onnx.helper import make_node

from relvm.errors import RelvmError, RelvmIndexError, RelvmShapeError, RelvmTypeError
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import OpCall
from relvm.ir.node import walk

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


PROGRAMS = {
    "ragged": (
        """g (int64 m, float[3] x) => (seq(float[N]) out, int64 n) {
          e = SequenceEmpty<dtype=1>()
          out = Loop(m, , e) <body = b (int64 i, bool c, seq(float[N]) s) => (bool c1, seq(float[N]) s2) {
            c1 = Identity(c)
            s2 = Loop(i, , s) <body = b2 (int64 j, bool d, seq(float[N]) t) => (bool d1, seq(float[N]) t2) {
              d1 = Identity(d)
              one = Constant<value = int64 {1}>()
              zero = Constant<value = int64[1] {0}>()
              more = Add(j, one)
              end = Unsqueeze(more, zero)
              y = Slice(x, zero, end)
              t2 = SequenceInsert(t, y)
            }>
          }>
          n = SequenceLength(out)
        }""",
        [(number(n), X[0, :3]) for n in (4, 1, 0)],
    ),
    "what the last round left": (
        """g (int64 m, float[3] x) => (float[A, B] y) {
          e = SequenceEmpty<dtype=1>()
          out = Loop(m, , e) <body = b (int64 i, bool c, seq(float[3]) s) => (bool c1, seq(float[3]) s2) {
            c1 = Identity(c)
            n = SequenceLength(s)
            zero = Constant<value = int64 {0}>()
            first = Equal(n, zero)
            next = If(first) <then_branch = t () => (float[3] a) { a = Identity(x) },
              else_branch = f () => (float[3] b2) {
                k = Constant<value = int64 {-1}>()
                last = SequenceAt(s, k)
                b2 = Add(last, x)
              }>
            s2 = SequenceInsert(s, next)
          }>
          y = ConcatFromSequence<axis=-1, new_axis=1>(out)
        }""",
        [(number(n), X[0, :3]) for n in (3, 1)],
    ),
    "a queue": (
        """g (int64 m, float[3] x) => (seq(float[3]) out) {
          e = SequenceConstruct(x, x)
          out = Loop(m, , e) <body = b (int64 i, bool c, seq(float[3]) s) => (bool c1, seq(float[3]) s3) {
            c1 = Identity(c)
            zero = Constant<value = int64 {0}>()
            head = SequenceAt(s, zero)
            s1 = SequenceErase(s, zero)
            j = Cast<to=1>(i)
            new = Add(head, j)
            p = SequenceLength(s1)
            s3 = SequenceInsert(s1, new, p)
          }>
        }""",
        [(number(5), X[0, :3]), (number(0), X[0, :3])],
    ),
    "rows of a size that the data says": (
        """g (int64 m, float[N] x) => (float[A, B] rows, float[C] y) {
          y, rows = Loop(m, , x) <body = b (int64 i, bool c, float[N] s) => (bool c1, float[N] s2, float[Q] r) {
            c1 = Identity(c)
            found = NonZero(x)
            zero = Constant<value = int64[1] {0}>()
            where = Squeeze(found, zero)
            r = Gather(s, where)
            s2 = Add(s, x)
          }>
        }""",
        [(number(3), X[0]), (number(1), X[1])],
    ),
    "what is seen three graphs out": (
        """g (int64 m, float[N] x, bool cc) => (float[N] y) {
          q = Mul(x, x)
          y = Loop(m, , x) <body = b (int64 i, bool c, float[N] s) => (bool c1, float[N] s2) {
            c1 = Identity(c)
            s2 = If(cc) <then_branch = t () => (float[N] a) {
              a = Loop(i, , s) <body = b3 (int64 j, bool d, float[N] u) => (bool d1, float[N] u2) {
                d1 = Identity(d)
                qq = Add(q, x)
                u2 = Add(u, qq)
              }>
            }, else_branch = f () => (float[N] bb) { bb = Sub(s, q) }>
          }>
        }""",
        [(number(3), X[1], np.array(True)), (number(2), X[1], np.array(False))],
    ),
    "an If in a Loop in a Scan": (
        """g (float[N, 4] x, int64 m) => (float[4] y, float[A, B] rows) {
          z = Constant<value = float[4] {0, 0, 0, 0}>()
          y, rows = Scan<num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1],
              scan_output_axes=[1], body = sb (float[4] s, float[4] row) => (float[4] s2, float[4] o) {
            o = Loop(m, , row) <body = b (int64 i, bool c, float[4] u) => (bool c1, float[4] u2) {
              c1 = Identity(c)
              t = ReduceSum<keepdims=0>(u)
              most = Constant<value = float {20}>()
              big = Greater(t, most)
              u2 = If(big) <then_branch = t1 () => (float[4] a) { a = Sub(u, s) },
                else_branch = f1 () => (float[4] bb) { bb = Add(u, row) }>
            }>
            s2 = Add(s, o)
          }>(z, x)
        }""",
        [(X, number(3)), (X[:1], number(0))],
    ),
    "branches of several lengths": (
        """g (bool c, float[N] x, int64 k) => (float[M] y, int64 n) {
          s = If(c) <then_branch = t () => (seq(float[P]) a) { a = SequenceConstruct(x, x) },
            else_branch = f () => (seq(float[Q]) b) {
              xx = Concat<axis=0>(x, x)
              b = SequenceConstruct(x, xx, xx)
            }>
          y = SequenceAt(s, k)
          n = SequenceLength(s)
        }""",
        [(np.array(True), X[0], number(-2)), (np.array(False), X[0], number(2))],
    ),
    "items or none": (
        """g (bool c, float[N] x) => (seq(float[M]) s) {
          s = If(c) <then_branch = t () => (seq(float[P]) a) { a = SequenceConstruct(x, x) },
            else_branch = f () => (seq(float[Q]) b) { b = SequenceEmpty() }>
        }""",
        [(np.array(True), X[0]), (np.array(False), X[0])],
    ),
    "parts of sizes that are inputs": (
        """g (float[A, B] x, int64[K] sp, int64 one) =>
            (seq(float[C, D]) s, seq(float[E, F]) t, seq(float[A]) u, float[A, B] y) {
          s = SplitToSequence<axis=1>(x, sp)
          t = SplitToSequence<axis=-2>(x, one)
          u = SplitToSequence<axis=1, keepdims=0>(x)
          y = ConcatFromSequence<axis=1>(s)
        }""",
        [(X, np.int64([1, 3]), number(2)), (X, np.int64([0, 4]), number(1)), (X[:0], np.int64([4]), number(5))],
    ),
    "items of an input": (
        """g (seq(float[N]) s, float[N] x) => (float[M, K] y, float[K, M] z, float[L] w) {
          t = SequenceInsert(s, x)
          y = ConcatFromSequence<axis=0, new_axis=1>(t)
          z = ConcatFromSequence<axis=-1, new_axis=1>(t)
          w = ConcatFromSequence<axis=0>(t)
        }""",
        [([], X[0]), ([X[0], X[1]], X[2])],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_onnxruntime_has_it(name: str) -> None:
    text, feeds = PROGRAMS[name]
    model = parse_model(text)
    for feed in feeds:
        assert_answers(c_answers(model, feed), onnxruntime_answers(model, feed))


def test_a_model_that_splits_and_picks_makes_no_list() -> None:
    model = parse_model("""g (float[4, 6] x) => (float[4, 2] a, int64 n, float[4, 6] y, float[6] r) {
      two = Constant<value = int64 {2}>()
      s = SplitToSequence<axis=1>(x, two)
      a = SequenceAt(s, two)
      n = SequenceLength(s)
      y = ConcatFromSequence<axis=1>(s)
      u = SplitToSequence<axis=0, keepdims=0>(x)
      r = SequenceAt(u, two)
    }""")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert_answers(c_answers(model, [x]), onnxruntime_answers(model, [x]))
    main = from_onnx(model)["main"]
    assert [str(field) for field in main.body.type.fields] == ["f32[4, 2]", "i64[]", "f32[4, 6]", "f32[6]"]
    used = {call.op.name for call in walk(main) if isinstance(call, OpCall)}
    assert not used & {"list_item", "list_concat", "list_split"}


def sequence_map() -> Any:
    return parse_model(
        """g (seq(float[N]) s, seq(float[N]) t, float[M] w, float k) => (seq(float[N]) a, seq(int64[1]) b) {
          a, b = SequenceMap<body = b (float[N] p, float[N] q, float[M] ww) => (float[N] o, int64[1] size) {
            sum = Add(p, q)
            r = ReduceSum<keepdims=0>(sum)
            big = Greater(r, k)
            o = If(big) <then_branch = t1 () => (float[N] x1) { x1 = Mul(sum, k) },
              else_branch = f1 () => (float[N] x2) { x2 = Concat<axis=0>(sum, ww) }>
            size = Shape(o)
          }>(s, t, w)
        }""",
        opset=18,
    )


def test_a_body_for_each_item() -> None:
    """The body contains a branch and uses outer values.  ONNX Runtime does not support such bodies of SequenceMap."""
    w, k = X[0, :2], np.float32(20)
    made, sizes = c_answers(sequence_map(), [[X[0], X[0, :2]], [X[1], X[0, 1:3]], w, k])
    assert_answers(made, [(X[0] + X[1]) * k, np.concatenate([X[0, :2] + X[0, 1:3], w])])
    assert_answers(sizes, [np.int64([4]), np.int64([4])])
    assert c_answers(sequence_map(), [[], [], w, k]) == [[], []]
    with pytest.raises(RelvmShapeError, match=r"SequenceMap.*expected 1, got 2"):
        c_answers(sequence_map(), [[X[0]], [X[0], X[1]], w, k])


# ---- optional values, for which ONNX's text form has no attributes ----

VECTOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [3])
SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
I64, BOOL = (helper.make_tensor_type_proto(dtype, []) for dtype in (TensorProto.INT64, TensorProto.BOOL))


def infos(**types: Any) -> list:
    return [helper.make_value_info(name, type_) for name, type_ in types.items()]


def model_of(nodes: list, inputs: list, outputs: list) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_a_loop_that_starts_with_null() -> None:
    optional = helper.make_optional_type_proto(VECTOR)
    nodes = [make_node("OptionalGetElement", ["o"], ["v"]), make_node("Add", ["v", "x"], ["a"])]
    then = helper.make_graph(nodes, "then", [], infos(a=VECTOR))
    orelse = helper.make_graph([make_node("Identity", ["x"], ["b"])], "else", [], infos(b=VECTOR))
    nodes = [
        make_node("Identity", ["c"], ["c1"]),
        make_node("OptionalHasElement", ["o"], ["has"]),
        make_node("If", ["has"], ["w"], then_branch=then, else_branch=orelse),
        make_node("Optional", ["w"], ["o2"]),
    ]
    body = helper.make_graph(nodes, "body", infos(i=I64, c=BOOL, o=optional), infos(c1=BOOL, o2=optional))
    nodes = [
        make_node("Optional", [], ["o0"], type=VECTOR),
        make_node("Loop", ["m", "", "o0"], ["o1"], body=body),
        make_node("OptionalHasElement", ["o1"], ["some"]),
    ]
    model = model_of(nodes, infos(m=I64, x=VECTOR), infos(o1=optional, some=BOOL))
    for rounds in (0, 1, 3):
        feed = [number(rounds), X[0, :3]]
        assert_answers(c_answers(model, feed), onnxruntime_answers(model, feed))


def test_an_optional_sequence_that_is_an_input() -> None:
    nodes = [make_node("OptionalGetElement", ["o"], ["s"]), make_node("SequenceAt", ["s", "k"], ["a"])]
    then = helper.make_graph(nodes, "then", [], infos(a=VECTOR))
    orelse = helper.make_graph([make_node("Identity", ["x"], ["b"])], "else", [], infos(b=VECTOR))
    nodes = [
        make_node("OptionalHasElement", ["o"], ["has"]),
        make_node("If", ["has"], ["y"], then_branch=then, else_branch=orelse),
    ]
    model = model_of(nodes, infos(o=helper.make_optional_type_proto(SEQUENCE), k=I64, x=VECTOR), infos(y=VECTOR))
    for items in ([X[0, :3], X[1, :3]], None):
        feed = [items, number(-1), X[2, :3]]
        assert_answers(c_answers(model, feed), onnxruntime_answers(model, feed))


# ---- errors ----

AT = "g (seq(float[N]) s, int64 k) => (float[N] y) { y = SequenceAt(s, k) }"
CONCAT = "g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence<axis=0>(s) }"
LENGTH = "g (seq(float[3]) s) => (int64 n) { n = SequenceLength(s) }"
FAILING = [
    (AT, [[X[0]], number(1)], RelvmIndexError, "index 1 is out of range; the list has 1 item"),
    (AT, [[], number(0)], RelvmIndexError, "index 0 is out of range; the list has 0 items"),
    (CONCAT, [[]], RelvmIndexError, "the list has no items"),
    (CONCAT, [[X[0], X]], RelvmTypeError, "argument s, item 1: expected a tensor of rank 1"),
    (LENGTH, [[X[0]]], RelvmShapeError, "argument s, item 0: expected dimension 0 to be 3, got 4"),
    (
        LENGTH,
        [[np.float64([1, 2, 3])]],
        RelvmTypeError,
        "argument s, item 0: expected a tensor of rank 1 and dtype f32",
    ),
    (LENGTH, [X[0]], RelvmTypeError, "argument s: expected a list, got a tensor"),
]


@pytest.mark.parametrize(("text", "feed", "error", "message"), FAILING, ids=range(len(FAILING)))
def test_what_fails_when_it_runs(text: str, feed: list, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        c_answers(parse_model(text), feed)


REFUSED = [
    ("g (seq(int64[N]) s, float[N] x) => (int64 n) { t = SequenceInsert(s, x) }", "dtype f32 to a sequence of i64"),
    ("g (seq(complex64[N]) s) => (int64 n) { n = SequenceLength(s) }", "s: element type COMPLEX64 is not supported"),
    ("g (float[N] s) => (int64 n) { n = SequenceLength(s) }", r"input 0 .*, expected a sequence"),
    ("g (float[N] x) => (float y) { s = SequenceEmpty() k = Constant<value = int64 {0}>() y = SequenceAt(s, k) }",
     "position 0 is out of range; the sequence has 0 items"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RelvmError, match=message):
        from_onnx(parse_model(text))


@pytest.mark.parametrize("position", range(-4, 5))
def test_positions_that_are_known(position: int) -> None:
    """A negative position counts from the end.  SequenceInsert also takes the position after the last item."""
    nodes = {
        "SequenceAt": "y = SequenceAt (s, p)",
        "SequenceErase": "t = SequenceErase (s, p) y = ConcatFromSequence <axis = 0> (t)",
        "SequenceInsert": "t = SequenceInsert (s, x, p) y = ConcatFromSequence <axis = 0> (t)",
    }
    for op, text in nodes.items():
        model = parse_model(f"""g (float[4] x, float[4] a, float[4] b) => (y) {{
          p = Constant <value = int64 {{{position}}}> ()
          s = SequenceConstruct (a, b, x)
          {text} }}""")
        items = [X[1], X[2], X[0]]
        if not -3 <= position < 3 + (op == "SequenceInsert"):
            with pytest.raises(RelvmIndexError, match="out of range"):
                c_answers(model, [X[0], X[1], X[2]])
            continue
        if op == "SequenceAt":
            expected = items[position]
        else:
            place = position + 3 if position < 0 else position
            kept = (
                [*items[:place], X[0], *items[place:]] if op == "SequenceInsert" else items[:place] + items[place + 1 :]
            )
            expected = np.concatenate(kept)
        assert_answers(c_answers(model, [X[0], X[1], X[2]]), [expected])
