"""NumPy accepts a Tensor like an array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.runtime.tensor import Tensor

DTYPES = ("f32", "f64", "i8", "i64", "u8", "bool", "bf16", "f8e4m3fn", "str")
TEXT = "\n".join(f"def {dtype}(x: {dtype}[...]) => {dtype}[...] {{ return x }}" for dtype in DTYPES)


@pytest.fixture(scope="module")
def machine() -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(TEXT), target="numpy"))


@pytest.fixture
def tensor(machine: vm.VirtualMachine) -> Iterator[Callable[..., Tensor]]:
    """Return a function that creates a Tensor with the elements of an array."""

    def make(array: Any, dtype: str = "f32") -> Tensor:
        made = machine[dtype](array)
        assert isinstance(made, Tensor)
        return made

    yield make


X = np.float32([[1, 2, 3], [4, 5, 6]])
Y = np.float32([[1, 7, 3], [-4, 5, 2]])
NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne")
BINARY = [divmod, *(getattr(operator, name) for name in NAMES)]


def same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for pair in zip(got, expected, strict=True):
            same(*pair)
        return
    assert type(got) is type(expected) and got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("apply", BINARY)
def test_binary_operators(tensor, apply: Callable) -> None:
    expected = apply(X, Y)
    same(apply(tensor(X), tensor(Y)), expected)
    same(apply(tensor(X), Y), expected)
    same(apply(X, tensor(Y)), expected)


@pytest.mark.parametrize("apply", BINARY)
def test_operators_with_numbers(tensor, apply: Callable) -> None:
    same(apply(tensor(X), 2), apply(X, 2))
    same(apply(2, tensor(X)), apply(2, X))


@pytest.mark.parametrize("apply", [operator.neg, operator.pos, abs, np.exp, np.sum, np.sort, np.transpose])
def test_functions_of_one_array(tensor, apply: Callable) -> None:
    same(apply(tensor(X)), apply(X))


def test_matrix_products(tensor) -> None:
    same(tensor(X) @ tensor(Y.T.copy()), X @ Y.T)
    same(tensor(X) @ Y.T, X @ Y.T)
    same(X @ tensor(Y.T.copy()), X @ Y.T)


def test_integer_operators(tensor) -> None:
    a, b = np.array([1, 6, -3]), np.array([3, 2, 1])
    for name in ("and_", "or_", "xor", "lshift", "rshift"):
        apply = getattr(operator, name)
        same(apply(tensor(a, "i64"), b), apply(a, b))
        same(apply(a, tensor(b, "i64")), apply(a, b))
    same(~tensor(a, "i64"), ~a)


def test_equal_results_are_equal(tensor) -> None:
    y, z = tensor(X), tensor(X)
    assert (y == z).all() and not (y != z).any()
    same(y == Y, X == Y)
    same(y == "text", X == "text")
    same(y == None, X == None)  # noqa: E711
    with pytest.raises(ValueError, match="broadcast"):
        _ = y == np.ones(7)
    with pytest.raises(TypeError, match="unhashable"):
        hash(y)


@pytest.mark.parametrize("key", [0, -1, (1, 2), slice(1), ..., None, [1, 0], (slice(None), 0), X > 2], ids=repr)
def test_indexing(tensor, key: Any) -> None:
    same(tensor(X)[key], X[key])


def test_indexing_by_tensors(tensor) -> None:
    same(tensor(X)[tensor(np.array([1, 0]), "i64")], X[[1, 0]])
    same(tensor(X)[tensor(X > 2, "bool")], X[X > 2])
    same(tensor(X)[tensor(np.array([1]), "i64"), tensor(np.array([2]), "i64")], X[[1], [2]])
    assert ["a", "b", "c"][tensor(np.int64(1), "i64")] == "b" and range(5)[tensor(np.int64(-1), "i64")] == 4
    with pytest.raises(IndexError):
        tensor(X)[2]


def test_iteration_and_membership(tensor) -> None:
    for got, expected in zip(tensor(X), X, strict=True):
        same(got, expected)
    first, second = tensor(X)
    same(second, X[1])
    assert first.tolist() == [1, 2, 3]
    assert 5 in tensor(X) and 7 not in tensor(X) and tensor(np.float32(5)) in tensor(X)
    assert len(tensor(X)) == 2
    with pytest.raises(TypeError, match="0-d"):
        iter(tensor(np.float32(1)))
    with pytest.raises(TypeError):
        len(tensor(np.float32(1)))


def test_conversions_to_numbers(tensor) -> None:
    one = tensor(np.int64(3), "i64")
    assert (int(one), float(one), complex(one), operator.index(one), bool(one)) == (3, 3.0, 3 + 0j, 3, True)
    assert float(tensor(np.float32(1.5))) == 1.5
    assert f"{tensor(np.float32(1.5)):.2f}" == "1.50"
    with pytest.raises(TypeError, match="unsupported format"):
        format(tensor(X), ".2f")
    assert (one.size, one.nbytes, tensor(X).size, tensor(X).nbytes) == (1, 8, 6, 24)
    for convert in (int, float, complex):
        with pytest.raises(TypeError):
            convert(tensor(X))
    with pytest.raises(TypeError):
        operator.index(tensor(np.float32(1)))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tensor(X))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_floats_that_numpy_does_not_have(tensor, dtype: str) -> None:
    array = np.array([1, 2, 3], getattr(ml_dtypes, dtype))
    x = tensor(array, {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3fn"}[dtype])
    same(x + x, array + array)
    same(x < 2, array < 2)
    same(x == array, np.ones(3, bool))
    assert float(x[1]) == 2.0 and x.tolist() == [1, 2, 3] and 3 in x and [float(each) for each in x] == [1, 2, 3]


def test_strings(tensor) -> None:
    array = np.array(["a", "b"], object)
    x = tensor(array, "str")
    same(x == "a", np.array([True, False]))
    same(x + "c", np.array(["ac", "bc"], object))
    assert x[1] == "b" and list(x) == ["a", "b"] and "b" in x and x.nbytes == 18
    with pytest.raises(TypeError):
        _ = x - 1
    for change in (lambda: x.__setitem__(0, "q"), lambda: operator.iadd(x, "q")):
        with pytest.raises(RelvmTypeError, match=r"a tensor of strings cannot be changed; np\.array\(tensor\) copies"):
            change()
    assert x[0] == "a"


def test_assignments_change_the_tensor(tensor) -> None:
    x = tensor(X)
    view, kept = x.numpy(), x
    x[0] = tensor(np.float32([7, 8, 9]))
    x += 1
    assert x is kept and view.tolist() == [[8, 9, 10], [5, 6, 7]]
    np.multiply(x, 2, out=x)
    assert view[0, 0] == 16
    y = np.zeros((2, 3), np.float32)
    y += x
    same(y, view)


def test_elements_of_a_constant_are_read_only() -> None:
    module = parse_module("def main() -> f32[2] { return const(f32[2], [1, 2]) }")
    x = vm.VirtualMachine(vm.build(module, target="numpy"))["main"]()
    for change in (lambda: x.__setitem__(0, 3), lambda: operator.iadd(x, 1)):
        with pytest.raises(ValueError, match="read-only"):
            change()
    assert x.tolist() == [1, 2]


def test_text_is_short(tensor) -> None:
    lines = repr(tensor(np.zeros((3, 4, 5, 6), np.float32))).split("\n")
    assert len(lines) <= 40 and lines[-1].endswith("shape=(3, 4, 5, 6), dtype=float32)")
    shown = tensor(np.array(["<script>"], object), "str")._repr_html_()
    assert "Tensor str[1], 16 bytes" in shown and "<script>" not in shown


def test_a_tensor_has_the_attributes_and_methods_of_an_array(tensor: Callable[..., Tensor]) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = tensor(array)
    public = [name for name in dir(np.ndarray) if not name.startswith("_")]
    assert set(public) <= set(dir(made)) and all(hasattr(made, name) for name in public if hasattr(array, name))
    assert (made.mean(), made.argmax(), made.T.shape) == (2.5, 5, (3, 2))
    np.testing.assert_array_equal(made.astype(np.int8), array.astype(np.int8))
    made.fill(1)
    assert made.tolist() == [[1, 1, 1], [1, 1, 1]]
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'meen'"):
        made.meen  # noqa: B018
    with pytest.raises(RelvmTypeError, match="a tensor of strings cannot be changed"):
        tensor(np.array(["b", "a"], object), "str").sort()
