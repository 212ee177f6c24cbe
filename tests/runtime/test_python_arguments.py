"""Tests of numbers, lists and dicts as inputs of a model, and of the advice in errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relvm
from relvm import vm
from relvm.errors import RelvmError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.runtime.python_arguments import as_tensor

TEXT = 'def main(x: f32[n, 3], rate: i64[]) -> f32[n, 3] = multiply(x, cast(rate, to="f32"))'
X = np.array([[1, 2, 3]], np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> relvm.Model:
    path = tmp_path_factory.mktemp("model") / "m.relvm"
    path.write_text(TEXT)
    return relvm.load_model(path, exec_mode="bytecode")


@pytest.mark.parametrize("rate", [2, np.int64(2), np.int32(2), np.array(2)])
@pytest.mark.parametrize("x", [X, X.tolist(), ((1, 2, 3.0),), [X[0]]], ids=["array", "list", "tuple", "list of arrays"])
def test_numbers_and_lists_are_inputs(model: relvm.Model, x: Any, rate: Any) -> None:
    named = {"rate": rate, "x": x}
    for result in (model(x, rate), model(x, rate=rate), model(named), model.run(None, named)[0]):
        np.testing.assert_array_equal(result, 2 * X)
    assert model.profile(x, rate).rows


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (X.astype(np.float64), 2),
            r"argument x: .* got a tensor of rank 2 and dtype f64; pass x\.astype\(np\.float32\)",
        ),
        ((X, 2.5), r"argument rate: .* got float; pass np\.array\(2\.5, np\.int64\)"),
        ((X, 2**63), "argument rate: .*64 bits"),
        (([[1, 2], [3]], 2), r"argument x: .* got list; pass np\.array\(\[\[1, 2\], \[3\]\], np\.float32\)"),
        (([["a"]], 2), "argument x: .* got list; pass"),
        ((X, True), "argument rate: .* got bool; pass"),
        (({"x": X}, 2), "argument x: .* got dict"),
        (({"x": X, "rat": 2},), "unknown argument rat: main has the parameters x, rate; did you mean rate"),
    ],
)
def test_what_cannot_be_converted_is_an_error_with_advice(model: relvm.Model, arguments: tuple, message: str) -> None:
    with pytest.raises(RelvmError, match=message):
        model(*arguments)


def test_a_function_of_a_machine_takes_only_tensors() -> None:
    main = vm.VirtualMachine(vm.build(parse_module(TEXT), target="numpy"))["main"]
    with pytest.raises(RelvmTypeError, match=r"argument rate: .* got int; pass np\.array\(2, np\.int64\)"):
        main(X, 2)
    with pytest.raises(RelvmTypeError, match=r"argument x: .* got list; pass np\.array\(x, np\.float32\)"):
        main([[0.0] * 100], np.int64(2))
    with pytest.raises(RelvmTypeError, match=r"rank 3 and dtype f32(?!;)"):
        main(X[None], np.int64(2))


@pytest.mark.parametrize(
    ("value", "stated", "expected"),
    [
        (1, "f16[]", np.array(1, np.float16)),
        ([], "i64[n]", np.zeros(0, np.int64)),
        ([1, -1], "i8[n]", np.array([1, -1], np.int8)),
        ([7, -8], "i4[n]", np.array([7, -8], ml_dtypes.int4)),
        (3, "u2[]", np.array(3, ml_dtypes.uint2)),
        (1.5, "bf16[]", np.array(1.5, ml_dtypes.bfloat16)),
        ([True], "bool[n]", np.array([True])),
        (["a", "bc"], "str[n]", np.array(["a", "bc"], object)),
        ("a", "str[]", np.array("a", object)),
    ],
)
def test_the_array_of_a_value(value: Any, stated: str, expected: np.ndarray) -> None:
    array = as_tensor(value, stated)
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == expected.dtype


@pytest.mark.parametrize(
    ("value", "stated"),
    [
        *(
            (200, "i8[]"),
            (-1, "u8[]"),
            (8, "i4[]"),
            (-9, "i4[]"),
            (4, "u2[]"),
            ([2.5], "i4[n]"),
            (1.0, "i64[]"),
            (1, "bool[]"),
            (1j, "f32[]"),
            ("a", "f32[]"),
            (1, "str[]"),
        ),
        *((1, "i64"), ([1], "list[i64]"), ([1], "(i64, i64)"), ([1], "shape[1]"), (None, "f32[]"), (2**80, "f64[]")),
    ],
)
def test_other_values_stay_as_they_are(value: Any, stated: str) -> None:
    assert as_tensor(value, stated) is value


def test_lists_of_strings_and_of_tensors(tmp_path: Path) -> None:
    (tmp_path / "s.relvm").write_text("def main(s: str[n], t: list[f32[n]]) = (s, list_length(t))")
    model = relvm.load_model(tmp_path / "s.relvm", exec_mode="bytecode")
    words, count = model(["a", "b"], [np.zeros(2, np.float32)])
    assert (words.tolist(), count) == (["a", "b"], 1)
