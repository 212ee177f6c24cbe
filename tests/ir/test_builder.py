"""Tests of the Builder: immediate type inference, names, scopes of blocks, and linear time."""

from __future__ import annotations

import numpy as np
import pytest
from support.linear_time import assert_linear

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmShapeError, RelvmTypeError, RelvmVerifyError
from relvm.ir.builder import Builder
from relvm.ir.dtypes import BOOL, F32
from relvm.ir.expr import Tuple, constant, prim
from relvm.ir.interpreter import evaluate
from relvm.ir.printer import print_module
from relvm.ir.symbolic import dim_var
from relvm.ir.types import OBJECT, PrimType, TensorType, TupleType
from relvm.ir.verifier import Stage, verify

SCALAR = TensorType(F32, ())


def matrix() -> TensorType:
    return TensorType(F32, (dim_var("n"), 4))


def test_what_is_emitted_is_typed_and_named():
    b = Builder()
    type_ = matrix()
    with b.function("main", [("x", type_), ("c", PrimType(BOOL))]) as (x, c):
        y = b.op("relu", x)
        z = b.op("add", y, x, name="sum")
        again = b.op("add", z, z, name="sum")
        pair = b.emit(Tuple((again, c)))
        b.ret(pair)
    assert (y.name, z.name, again.name, pair.name) == ("relu_1", "sum", "sum_1", "tuple_1")
    assert (y.type, pair.type) == (type_, TupleType((type_, PrimType(BOOL))))
    module = b.module()
    verify(module, Stage.TYPED)
    assert module["main"].result_type == pair.type


def test_an_if_and_a_closure_see_the_variables_around_them():
    b = Builder()
    type_ = matrix()
    with b.function("main", [("x", type_), ("c", PrimType(BOOL))]) as (x, c):
        y = b.op("negative", x)
        add_y = b.local_function([("a", type_)], lambda a: b.op("add", a, y), name="add_y")
        b.ret(b.if_(c, lambda: b.call(add_y, x), lambda: b.op("multiply", y, y)))
    module = b.module()
    verify(module, Stage.TYPED)
    x = np.ones((2, 4), np.float32) * 3
    np.testing.assert_array_equal(evaluate(module, "main", x, True), np.zeros((2, 4)))
    np.testing.assert_array_equal(evaluate(module, "main", x, False), np.full((2, 4), 9))


def test_a_closure_and_a_function_may_call_themselves():
    b = Builder()
    one = constant(1.0)

    def body(this, n):
        done = b.op("less_equal", n, one)
        return b.if_(done, lambda: one, lambda: b.op("multiply", n, b.call(this, b.op("subtract", n, one))))

    with b.function("closure", [("n", SCALAR)]) as (n,):
        b.ret(b.call(b.local_function([("n", SCALAR)], body, SCALAR, name="fact", recursive=True), n))
    with b.function("fact", [("n", SCALAR)], SCALAR) as (n,):
        b.ret(body(b.function_ref("fact"), n))
    module = b.module()
    verify(module, Stage.TYPED)
    assert evaluate(module, "closure", np.float32(5)) == evaluate(module, "fact", np.float32(5)) == 120


def test_functions_are_built_inside_one_another_and_called_before_they_are_built():
    b = Builder()
    b.declare("later", [("x", SCALAR)], SCALAR)
    with b.function("main", [("x", SCALAR)]) as (x,):
        with b.function("inner", [("x", SCALAR)]) as (y,):
            b.ret(b.op("negative", y))
        b.ret(b.call("later", b.call("inner", x)))
    with b.function("later", [("x", SCALAR)]) as (x,):
        b.ret(b.op("add", x, x))
    assert evaluate(b.module(), "main", np.float32(2)) == -4


def test_a_function_with_effects_is_known_by_them():
    b = Builder()
    with b.function("noisy", [("x", SCALAR)]) as (x,):
        b.ret(b.packed("test.builder.note", x, result=SCALAR))
    with b.function("main", [("x", SCALAR)]) as (x,):
        closure = b.local_function([("y", SCALAR)], lambda y: b.call("noisy", y))
        pair = b.tuple_(closure, b.function_ref("noisy"))
        b.ret(pair)
    assert [field.pure for field in pair.type.fields] == [False, False]
    assert not b.module()["noisy"].pure


def test_match_cast_gives_new_dimensions_their_values():
    b = Builder()
    m = dim_var("m")
    with b.function("main", [("x", OBJECT)]) as (x,):
        y = b.match_cast(x, TensorType(F32, (m,)), "y")
        b.ret(b.op("add", y, y))
    module = b.module()
    verify(module, Stage.TYPED)
    assert y.type == TensorType(F32, (m,))
    assert evaluate(module, "main", np.ones(3, np.float32)).shape == (3,)


def test_a_packed_call_of_a_new_size_is_checked():
    b = Builder()
    m = dim_var("m")
    with b.function("main", [("x", SCALAR)]) as (x,):
        b.ret(b.packed("test.f", x, result=TensorType(F32, (m,)), name="y"))
    module = b.module()
    verify(module, Stage.TYPED)
    assert not module["main"].pure
    assert "y = match_cast(f_1, f32[m])" in print_module(module)


def test_a_branch_does_not_leak_into_its_surroundings():
    b = Builder()
    with b.function("main", [("c", PrimType(BOOL)), ("x", OBJECT)]) as (c, x):
        m = dim_var("m")
        y = b.if_(c, lambda: b.match_cast(x, TensorType(F32, (m,))), lambda: b.match_cast(x, TensorType(F32, (m,))))
        b.ret(y)
    assert y.type == TensorType(F32, None, 1)
    verify(b.module(), Stage.TYPED)


@pytest.mark.parametrize(
    ("misuse", "error", "message"),
    [
        (lambda b, x: b.op("reluu", x), RelvmNameError, "did you mean relu"),
        (lambda b, x: b.op("relu", x, x), RelvmArgumentError, "relu"),
        (lambda b, x: b.op("relu", prim(1)), RelvmTypeError, "main: relu"),
        (lambda b, x: b.op("add", x, constant(np.zeros((3, 5), np.float32))), RelvmShapeError, "main: add"),
        (lambda b, x: b.call("nothing", x), RelvmNameError, "no function nothing"),
        (lambda b, x: (b.ret(x), b.op("relu", x)), RelvmVerifyError, "after ret"),
        (lambda b, x: b.module(), RelvmVerifyError, "function is still being built"),
        (lambda b, x: b.local_function([], lambda this: this, recursive=True), RelvmTypeError, "needs a result type"),
    ],
)
def test_a_misuse_says_what_is_wrong(misuse, error, message):
    b = Builder()
    with pytest.raises(error, match=message), b.function("main", [("x", matrix())]) as (x,):
        misuse(b, x)


def test_misuse_outside_of_a_function():
    b = Builder()
    with pytest.raises(RelvmVerifyError, match="only be emitted inside a function"):
        b.op("relu", constant(1.0))
    with pytest.raises(RelvmVerifyError, match="main: no result"), b.function("main", []):
        pass
    b.declare("f", [], SCALAR)
    with pytest.raises(RelvmNameError, match="f is declared but not built"):
        b.module()
    with b.function("f", []):
        b.ret(constant(1.0))
    with pytest.raises(RelvmNameError, match="f is already built"), b.function("f", []):
        pass


def test_building_is_linear():
    def build(count: int) -> None:
        b = Builder()
        with b.function("main", [("x", matrix())]) as (x,):
            for _ in range(count):
                x = b.op("relu", x)
            b.ret(x)
        b.module()

    assert_linear(build)
