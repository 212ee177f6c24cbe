"""Tests of the text form: printing and parsing are inverse operations."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import EVERY_NODE, STAGES
from support.linear_time import assert_linear

from relvm.errors import RelvmSyntaxError, RelvmTypeError
from relvm.frontend.text import parse_expr, parse_module, parse_type
from relvm.ir import expr as ir
from relvm.ir.builder import Builder
from relvm.ir.dtypes import ALL_DTYPES, F32, F64
from relvm.ir.expr import Binding, Block, Function, Module, Null, Tuple, Var, constant, prim
from relvm.ir.node import walk
from relvm.ir.operator import operators
from relvm.ir.printer import KEYWORDS, print_expr, print_function, print_module
from relvm.ir.symbolic import dim_op, dim_var
from relvm.ir.type_inference import infer_types
from relvm.ir.types import OBJECT, FuncType, PrimType, ShapeType, TensorType, TupleType
from relvm.ir.visitor import structural_equal
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def check_round_trip(module: Module) -> str:
    """Return the text of a module, after checking that it parses to an equal module, which prints as the same text."""
    text = print_module(module)
    back = parse_module(text)
    assert structural_equal(back, module), text
    assert print_module(back) == text
    return text


def main_of(*bindings: Binding, result: ir.Expr | None = None, params: tuple[Var, ...] = ()) -> Module:
    return Module((Function("main", params, Block(bindings, Null() if result is None else result)),))


def test_every_node_reads_back():
    module = parse_module(EVERY_NODE)
    check_round_trip(module)
    used = {type(item) for item in walk(module)}
    expected = {
        cls for cls in vars(ir).values() if isinstance(cls, type) and issubclass(cls, ir.Expr) and cls is not ir.Expr
    }
    assert expected <= used


@pytest.mark.parametrize("count", range(len(build_pipeline("numpy")) + 1))
def test_every_stage_reads_back(count):
    check_round_trip(run_passes(parse_module(STAGES), build_pipeline("numpy")[:count]))


def test_the_meaning_of_a_text_is_what_it_says():
    module = parse_module(EVERY_NODE)
    f = module["f"]
    values = {b.var.name: b.value for b in f.body.bindings}
    assert module.attributes == (("source", "tests"), ("version", 3))
    assert isinstance(module["helper"].body, ir.OpCall) and isinstance(f.body, Block)
    assert not f.pure and module["helper"].pure and module["types"].result_type.fields[1].pure is False
    assert dict(values["z"].attributes)["axis"] == 0
    assert (values["p"].type, values["pp"].type) == (values["bt"].type,) * 2
    assert (values["p"].pure, values["pp"].pure) == (False, True)
    assert values["bits"].value.view(np.uint32) == [0x7FC00001]
    assert values["s2"].value == 'text with "quotes", \n and é'
    assert [v.value for v in values["extremes"].fields[3:]] == [1e20, -(2**63), 5e-324]
    assert module["a name, quoted"].attributes[0] == ("two words", (1, (2.5,), "three", None, F32, True))
    loop = values["loop"]
    assert loop.body.result.callee is next(b.var for b in f.body.bindings if b.var.name == "loop")


def test_names_are_made_unique_and_never_collide():
    type_ = TensorType(F32, (dim_var("n"), dim_var("n"), dim_var("min")))
    names = ("x", "x", "relu", "if", "_", "two words", "3", "", "x_1", "é")
    variables = tuple(Var(name, type=type_) for name in names)
    text = check_round_trip(main_of(result=Tuple(variables), params=variables))
    assert "def main(x: f32[n, n_1, min_1], x_1: " in text
    assert "return (x, x_1, relu_1, if_1, v_1, two_words, v3, v, x_2, é)" in text


def test_unused_variables_named_underscore_stay_so_and_used_ones_do_not():
    unused, used = Var("_"), Var("_")
    module = main_of(Binding(unused, prim(1)), Binding(used, prim(2)), result=used)
    assert check_round_trip(module) == "def main() {\n  _ = 1\n  v_1 = 2\n  return v_1\n}\n"


def test_dimensions_of_one_name_in_two_functions_are_two_variables():
    n, m = dim_var("n"), dim_var("n")
    functions = tuple(
        Function(name, (Var("x", type=TensorType(F32, (dim, dim * 2))),), Null()) for name, dim in [("f", n), ("g", m)]
    )
    assert "f32[n, n * 2]" in check_round_trip(Module(functions)).split("\n\n")[1]


def test_the_order_of_a_sum_does_not_depend_on_when_its_variables_were_made():
    late, early = dim_var("late"), dim_var("early")
    x = Var("x", type=TensorType(F32, (late, early, late + early, dim_op("min", late, early) * late - early)))
    check_round_trip(main_of(params=(x,)))


def test_a_function_type_of_another_function_reads_back():
    module = infer_types(parse_module("def g(x: f32[n]) -> f32[n] = x\ndef f(x: f32[n]) { h = @g\n return (h, h(x)) }"))
    assert "h: (f32[n_1]) -> f32[n_1] = @g" in check_round_trip(module)
    check_round_trip(Module(module.functions[::-1]))


@pytest.mark.parametrize("dtype", [dtype for dtype in ALL_DTYPES.values() if not dtype.is_string], ids=str)
def test_constants_keep_every_bit(dtype):
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 256, 100 * dtype.size_bytes, dtype=np.uint8)
    raw = raw % 2**dtype.bits if dtype.bits < 8 else raw
    every = (raw % 2).astype(np.bool_) if dtype.is_bool else raw.view(dtype.numpy)
    shapes = ((), (0,), (3, 0, 2), (2, 1, 3), (64,), (65,))
    arrays = [every[: int(np.prod(shape))].reshape(shape) for shape in shapes] + [every[i] for i in range(90)]
    check_round_trip(main_of(result=Tuple(tuple(constant(array) for array in arrays))))


@given(st.floats(width=32), st.floats(), st.integers(-(2**63), 2**63 - 1))
def test_numbers_keep_every_bit(single, double, integer):
    parts = (constant(np.float32(single)), constant(np.float64(double)), prim(double), prim(integer))
    back = parse_module(print_module(main_of(result=Tuple(parts))))["main"].body.result
    for part, copy in zip(parts, back.fields, strict=True):
        assert np.asarray(part.value).tobytes() == np.asarray(copy.value).tobytes() or part.value != part.value


def test_long_constants_can_be_elided_and_then_do_not_parse():
    module = main_of(result=constant(np.zeros((512, 64), np.float32)))
    text = print_module(module, elide_constants=True)
    assert "const(f32[512, 64], ...)" in text
    with pytest.raises(RelvmSyntaxError, match="omitted when it was printed"):
        parse_module(text)


def test_types_of_bindings_can_be_left_out():
    typed = infer_types(parse_module('def f(x: f32[n]) => f32[n] { y = relu(x)\n return packed("p", y) : f32[n] }'))
    text = print_module(typed, show_types=False)
    assert "  y = relu(x)\n" in text and 'packed("p", y) : f32[n]' in text
    assert print_module(infer_types(parse_module(text))) == print_module(typed)


def test_one_function_and_one_expression():
    module = parse_module("def f(x: f32[n]) { return add(x, x) }")
    assert print_function(module["f"]) == "def f(x: f32[n]) { return add(x, x) }"
    assert print_expr(module["f"].body.result) == "add(x, x)"
    assert print_expr(Binding(Var("y", type=OBJECT), prim(1))) == "y: object = 1"
    x = module["f"].params[0]
    assert print_expr(parse_expr("(x, shape(n + 1)).0", {"x": x})) == "(x, shape(n + 1)).0"


def test_an_attribute_without_a_text_form_is_an_error():
    with pytest.raises(RelvmTypeError, match="bytes cannot be printed"):
        print_module(Module((), attributes=(("a", b"x"),)))


def test_no_operator_has_the_name_of_a_keyword():
    assert not KEYWORDS & operators().keys()


def types() -> st.SearchStrategy:
    n, m = dim_var("n"), dim_var("m")
    dim = st.one_of(st.integers(0, 9), st.sampled_from([n, m, n * 2, n + m - 1, n // 2, dim_op("max", n, m)]))
    dims = st.one_of(st.none(), st.lists(dim, max_size=3).map(tuple))
    rank = st.one_of(st.none(), st.integers(0, 3))
    dtype = st.sampled_from([None, *ALL_DTYPES.values()])
    leaf = st.one_of(
        st.builds(TensorType, dtype, dims, rank),
        st.builds(ShapeType, dims, rank),
        st.sampled_from([OBJECT, PrimType(F64)]),
    )
    return st.recursive(
        leaf,
        lambda part: st.one_of(
            st.lists(part, max_size=3).map(lambda parts: TupleType(tuple(parts))),
            st.builds(FuncType, st.lists(part, max_size=2).map(tuple), part, st.booleans()),
        ),
        max_leaves=8,
    )


@given(types())
def test_every_type_reads_back(type_):
    names = {"n": None, "m": None}
    module = main_of(params=(Var("x", type=type_),))
    assert check_round_trip(module)
    back = parse_type(str(type_), names := {})
    assert str(back) == str(type_) and names.keys() <= {"n", "m"}


@st.composite
def modules(draw) -> Module:
    """Generate modules of random expressions, which use variables in scope.  Variables can have unusual names."""
    names = st.sampled_from(["x", "x_1", "y", "_", "relu", "add", "fn", "a b", ""])
    annotation = st.one_of(st.none(), types())

    def expression(scope: list[Var], depth: int):
        atoms = [
            prim(1),
            prim(-2.5),
            prim(True),
            Null(),
            ir.String('"\n'),
            constant([1.0, 2.0]),
            ir.FunctionRef("main"),
        ]
        if depth == 0:
            return draw(st.sampled_from([*atoms, *scope]))
        parts = tuple(expression(scope, depth - 1) for _ in range(draw(st.integers(0, 2))))
        part = expression(scope, depth - 1)
        result = draw(st.one_of(st.just(OBJECT), types()))
        relu, name = operators()["relu"], draw(st.sampled_from(["k", "a kernel", "if"]))
        kind = draw(st.integers(0, 11))
        match kind:
            case 0:
                return Tuple(parts)
            case 1:
                return ir.TupleItem(part, draw(st.integers(0, 20)))
            case 2:
                return ir.If(part, block(scope, depth - 1), expression(scope, depth - 1))
            case 3:
                return ir.Call(part, parts)
            case 4:
                return ir.OpCall(relu, (part,))
            case 5:
                return ir.PackedCall(name, parts, draw(st.booleans()), type=result)
            case 6:
                return ir.KernelCall(name, parts, type=result)
            case 7:
                return ir.KernelRun(name, parts)
            case 8:
                return ir.BuiltinCall("print", parts, type=result)
            case 9:
                return ir.Kill(part)
            case 10:
                return function(scope, depth - 1, draw(st.sampled_from(["", "f", "if", "relu"])))
        return block(scope, depth - 1)

    def block(scope: list[Var], depth: int) -> Block:
        scope, bindings = list(scope), []
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.integers(0, 3))
            var = Var(draw(names), type=draw(types() if kind == 0 else annotation))
            if kind == 0:
                where = draw(st.sampled_from(["", 'f: "x"\n']))
                bindings.append(ir.MatchCast(var, expression(scope, depth), where))
            elif kind == 1 and depth:
                bindings.append(Binding(var, function([*scope, var], depth - 1, "g")))
            else:
                bindings.append(Binding(var, expression(scope, depth)))
            scope.append(var)
        return Block(tuple(bindings), expression(scope, depth))

    def function(scope: list[Var], depth: int, name: str) -> Function:
        params = tuple(Var(draw(names), type=draw(types())) for _ in range(draw(st.integers(0, 2))))
        body = block([*scope, *params], depth) if draw(st.booleans()) else expression([*scope, *params], depth)
        return Function(name, params, body, draw(annotation), draw(st.booleans()))

    return Module((function([], 2, "main"), replace(function([], 1, "a name"), private=draw(st.booleans()))))


@settings(max_examples=60)
@given(modules())
def test_every_module_reads_back(module):
    check_round_trip(module)


def test_a_function_of_many_bindings_prints_and_parses_in_linear_time():
    def build_and_check(count: int) -> None:
        b = Builder()
        with b.function("main", [("x", TensorType(F32, (dim_var("n"),)))]) as (x,):
            for _ in range(count):
                x = b.op("relu", x)
            b.ret(x)
        check_round_trip(b.module())

    assert_linear(build_and_check)


def test_a_module_is_equal_only_to_a_module_of_the_same_meaning():
    first = parse_module("def f(x: f32[n], y: f32[m]) { z = add(x, x)\n return (z, y) }")
    renamed = parse_module("def f(a: f32[k], b: f32[n]) { c = add(a, a)\n return (c, b) }")
    others = [
        "def f(x: f32[n], y: f32[n]) { z = add(x, x)\n return (z, y) }",
        "def f(x: f32[n], y: f32[m]) { z = add(x, y)\n return (z, y) }",
        "def f(x: f32[n], y: f32[m]) { z = add(x, x)\n return (y, z) }",
        "def f(x: f32[n], y: f32[m]) { z: object = add(x, x)\n return (z, y) }",
        "def g(x: f32[n], y: f32[m]) { z = add(x, x)\n return (z, y) }",
        "def f(x: f32[n], y: f32[m]) => { z = add(x, x)\n return (z, y) }",
    ]
    assert structural_equal(first, renamed) and structural_equal(renamed, first)
    assert not any(structural_equal(first, parse_module(other)) for other in others)
    assert not structural_equal(first, replace(first, attributes=(("a", 1),)))


def test_constants_of_the_module_are_shared_and_long_ones_are_printed_once():
    data = base64.b64encode(np.arange(100, dtype=np.float32).tobytes()).decode()
    text = f"""
    const small = const(f32[2], [1, 2])
    const large = const(f32[100], "{data}")
    def main(x: f32[100]) -> f32[100] = add(x, large)
    def other(x: f32[100], large_: f32[2]) -> (f32[100], f32[2]) = (multiply(x, large), add(small, large_))
    """
    module = parse_module(text)
    constants = [item for item in walk(module) if isinstance(item, ir.Constant)]
    assert len(constants) == 3 and constants[0] is constants[1]
    printed = check_round_trip(module)
    assert printed.count("const constant_1 = const(f32[100]") == 1 and printed.count("constant_1") == 3
    for wrong, message in [
        ("const a = 3", "expected const"),
        ("const a = const(f32[], 1)\nconst a = const(f32[], 1)", "twice"),
    ]:
        with pytest.raises(RelvmSyntaxError, match=message):
            parse_module(wrong)
