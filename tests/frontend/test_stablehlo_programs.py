"""StableHLO programs: every mode and target gives the results of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.stablehlo_programs import CASES, Case

from relvm import vm
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.stablehlo import from_stablehlo


def results_of(case: Case, target: str) -> list[np.ndarray]:
    machine = vm.VirtualMachine(vm.build(from_stablehlo(case.text.encode()), target=target, verified=True))
    found = machine["main"](*case.args)
    return [each.numpy() for each in (found if isinstance(found, list | tuple) else (found,))]


@pytest.mark.parametrize("target", ["bytecode", "numpy"])
@pytest.mark.parametrize("name", CASES)
def test_programs_give_what_the_specification_gives(name: str, target: str) -> None:
    for found, expected in zip(results_of(CASES[name], target), CASES[name].results, strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, expected)
        else:
            rtol = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6}.get(found.dtype.name, 1e-9)
            np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=1e-30)


_ROUNDED_DOWN = """
func.func @main(%x: tensor<?xf32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %minus = stablehlo.constant dense<-1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %m = stablehlo.multiply %n, %minus : tensor<i32>
  %q, %r = func.call @divmod(%m, %two) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %p = stablehlo.multiply %q, %minus : tensor<i32>
  %s = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>
  %t = stablehlo.reshape %r : (tensor<i32>) -> tensor<1xi32>
  %half = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %rest = stablehlo.dynamic_iota %t, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  return %half, %rest : tensor<?xi32>, tensor<?xi32>
}
func.func private @divmod(%x: tensor<i32>, %y: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %q = stablehlo.divide %x, %y : tensor<i32>
  %sx = stablehlo.sign %x : tensor<i32>
  %sy = stablehlo.sign %y : tensor<i32>
  %differ = stablehlo.compare NE, %sx, %sy, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = stablehlo.remainder %x, %y : tensor<i32>
  %is_rest = stablehlo.compare NE, %r, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %both = stablehlo.and %differ, %is_rest : tensor<i1>
  %less = stablehlo.subtract %q, %one : tensor<i32>
  %floor = func.call @where(%both, %less, %q) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %below = stablehlo.compare LT, %r, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %negative = stablehlo.compare LT, %y, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %other = stablehlo.compare NE, %below, %negative, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %moves = stablehlo.and %other, %is_rest : tensor<i1>
  %more = stablehlo.add %r, %y : tensor<i32>
  %mod = stablehlo.select %moves, %more, %r : tensor<i1>, tensor<i32>
  return %floor, %mod : tensor<i32>, tensor<i32>
}
func.func private @where(%c: tensor<i1>, %x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {
  %z = stablehlo.select %c, %x, %y : tensor<i1>, tensor<i32>
  return %z : tensor<i32>
}
"""


def test_a_negative_size_is_divided_as_jax_divides_it() -> None:
    """The sizes are -(-n // 2) and -n % 2, which round toward minus infinity."""
    machine = vm.VirtualMachine(vm.build(from_stablehlo(_ROUNDED_DOWN.encode()), target="bytecode", verified=True))
    for n in range(6):
        half, rest = machine["main"](np.zeros(n, np.float32))
        assert (half.shape, rest.shape) == ((-(-n // 2),), (-n % 2,))


_WINDOWS = """
func.func @main(%x: tensor<?x3xTYPE>) -> tensor<?x3xTYPE> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %ones = stablehlo.constant dense<1> : tensor<2xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %none = stablehlo.constant dense<0> : tensor<1xi32>
  %init = stablehlo.constant dense<INIT> : tensor<TYPE>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xTYPE>) -> tensor<i32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %less = stablehlo.subtract %m, %one : tensor<1xi32>
  %size = stablehlo.concatenate %SIZE, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %pad = stablehlo.concatenate PADDING, %none, %none, dim = 0 :
    (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
  %pads = stablehlo.reshape %pad : (tensor<4xi32>) -> tensor<2x2xi32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %init, %size, %ones, %ones, %ones, %pads)
    {called_computations = [@combine]} : (tensor<?x3xTYPE>, tensor<TYPE>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>,
    tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x3xTYPE>
  return %r : tensor<?x3xTYPE>
}
func.func private @combine(%a: tensor<TYPE>, %b: tensor<TYPE>) -> tensor<TYPE> {
  %c = stablehlo.OPERATION %a, %b : tensor<TYPE>
  return %c : tensor<TYPE>
}
"""


def _windows(operation: str, init: str, *, dtype: str = "f32", size: str = "m", padding: str = "%less, %none") -> str:
    text = _WINDOWS.replace("OPERATION", operation).replace("INIT", init).replace("TYPE", dtype)
    return text.replace("%SIZE", f"%{size}").replace("PADDING", padding)


def _run(text: str, x: np.ndarray) -> np.ndarray:
    return vm.VirtualMachine(vm.build(from_stablehlo(text.encode()), target="bytecode", verified=True))["main"](
        x
    ).numpy()


@pytest.mark.parametrize("rows", [1, 4])
def test_windows_of_symbolic_sizes_are_cumulative(rows: int) -> None:
    x = np.random.default_rng(rows).integers(-4, 5, (rows, 3)).astype(np.float32)
    np.testing.assert_array_equal(_run(_windows("add", "0.0"), x), np.cumsum(x, 0))
    np.testing.assert_array_equal(_run(_windows("multiply", "1.0"), x), np.cumprod(x, 0))
    largest = _windows("maximum", "0xFF800000", padding="%none, %less")
    np.testing.assert_array_equal(_run(largest, x), np.maximum.accumulate(x[::-1])[::-1])
    least = _windows("minimum", "2147483647", dtype="i32")
    np.testing.assert_array_equal(_run(least, x.astype(np.int32)), np.minimum.accumulate(x.astype(np.int32)))
    pairs = _windows("add", "0.0", size="two", padding="%one, %none")  # windows of a known size
    np.testing.assert_array_equal(_run(pairs, x), x + np.concatenate([np.zeros((1, 3), np.float32), x[:-1]]))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (_windows("add", "1.0"), RelvmUnsupportedError, "only for cumulative operations"),
        (_windows("subtract", "0.0"), RelvmUnsupportedError, "only for cumulative operations"),
        (_windows("add", "0.0", padding="%none, %none"), RelvmUnsupportedError, "only for cumulative operations"),
        (_windows("add", "0.0").replace("[@combine]", "[@other]"), RelvmFormatError, "expected the name of a function"),
    ],
    ids=["an initial value that counts", "another reducer", "no padding", "no reducer"],
)
def test_other_windows_of_symbolic_sizes_are_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_stablehlo(text.encode())
