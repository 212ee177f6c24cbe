"""Typical first attempts to use the Builder work if they are unambiguous.  Otherwise the error shows the right form."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmError, RelvmSyntaxError, RelvmTypeError, RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import prim
from relvm.ir.symbolic import dim_var
from relvm.ir.types import PrimType, TensorType
from relvm.ir.visitor import structural_equal

X = np.float32([1, 2, 3, 4])


def main_of(body, params=None):
    """Build a function whose result is `body(builder, *parameters)`, and return it as a callable."""
    b = Builder()
    with b.function("main", params or [("x", TensorType("f32", (4,)))]) as variables:
        b.ret(body(b, *variables))
    return vm.VirtualMachine(vm.build(b.module(), target="numpy", verified=True))["main"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda b, x: b.op("add", x, 3), X + 3),
        (lambda b, x: b.op("add", 3, x), X + 3),
        (lambda b, x: x + x, X + X),
        (lambda b, x: 2 * -x / 4 - 1, 2 * -X / 4 - 1),
        (lambda b, x: x @ x, X @ X),
        (lambda b, x: b.emit(x + 1) * 2, (X + 1) * 2),
    ],
)
def test_numbers_and_arithmetic_of_python(body, expected) -> None:
    np.testing.assert_allclose(main_of(body)(X).numpy(), expected)


def test_numbers_are_results_and_scalars() -> None:
    assert main_of(lambda b, x: 3)(X) == 3
    assert main_of(lambda b, n: n * 2 + 1, [("n", PrimType(I64))])(20) == 41


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TensorType("f32", ("n", 4)),
            r"expected an integer or a dimension, got 'n'; create a dimension with dim_var\('n'\)",
        ),
        (lambda: TensorType("f32", 4), "TensorType: expected a tuple of dimensions, got int"),
        (lambda: TensorType("float31", (4,)), "float31"),
        (
            lambda: main_of(lambda b, x: b.op("add", x, "3")),
            "add: argument 1 is '3', expected an expression, a number or an array",
        ),
        (lambda: main_of(lambda b, x: b.ret([x])), "ret: expected an expression, a number or an array, got list"),
        (lambda: main_of(lambda b, i: i + 2.5, [("i", TensorType("i64", (4,)))]), "2.5, which i64 cannot represent"),
        (
            lambda: main_of(lambda b, n: n @ n, [("n", PrimType(I64))]),
            "@: scalars are not supported; convert them with to_tensor",
        ),
    ],
)
def test_mistakes_say_what_to_write(make, message: str) -> None:
    with pytest.raises(RelvmTypeError, match=message):
        make()


def test_a_value_of_a_branch_stays_in_it() -> None:
    def body(b, x, c):
        kept = []

        def then():
            kept.append(b.op("relu", x))
            return kept[0]

        b.if_(c, then, lambda: x)
        return b.op("add", kept[0], x)

    params = [("x", TensorType(F32, (dim_var("n"),))), ("c", TensorType("bool", ()))]
    with pytest.raises(RelvmVerifyError, match=r"test_first_mistakes.py:\d+: .* belongs to a block .* that has ended"):
        main_of(body, params)


@pytest.mark.parametrize("count", [50, 51, 52, 150, 1000])
def test_a_chain_of_operators_is_not_nested(count: int) -> None:
    text = "def main(n: i64) -> i64 = " + " - ".join(["n"] * count) + " + 2 * n"
    for mode in ("bytecode", "compiled"):
        assert vm.VirtualMachine(vm.build(parse_module(text), mode, "bytecode"))["main"](3) == 3 * (4 - count)
    deep = "def main(n: i64) -> i64 = " + "-(" * 151 + "n" + ")" * 151
    with pytest.raises(RelvmSyntaxError, match="nested more than 150 levels deep; bind a part to a variable"):
        parse_module(deep)


def test_integers_beyond_64_bits() -> None:
    with pytest.raises(RelvmError, match="out of the range of i64"):
        prim(2**70 + 3)
    for text in (
        "def main(n: i64(n)) -> i64 = dim(n * (4611686018427387904 * 4 + 5))",
        "def main(x: f32[...]) -> object { y = match_cast(x, f32[18446744073709551619]); return y }",
    ):
        for mode in ("bytecode", "compiled"):
            with pytest.raises(RelvmError, match="out of the range of"):
                vm.build(parse_module(text), mode, "numpy")


MODULE = """
def main(x: f32[n, 4], w: f32[4, m]) -> f32[n, m] { y = matmul(x, w); return relu(add(y, const(f32[], 1.5))) }"""


def test_modules_are_pickled() -> None:
    module = parse_module(MODULE)
    assert structural_equal(pickle.loads(pickle.dumps(module)), module)
    load = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer).functions))"
    found = subprocess.run(
        [sys.executable, "-P", "-c", load], input=pickle.dumps(module), capture_output=True, check=True
    )
    assert found.stdout.strip() == b"1"
