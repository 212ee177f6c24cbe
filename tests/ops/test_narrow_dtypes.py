"""Tests of floats of at most 16 bits and integers of less than 8 bits: every bit pattern, with NumPy and C kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from ops.harness import Call, function_of
from ops.samples import SAMPLES, Sample
from ops.test_operators import static_type
from support.modes import FEWER_WAYS, machines, machines_of_forms, plain

from relvm import vm
from relvm.compiler.build import lower
from relvm.errors import RelvmArgumentError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import ALL_DTYPES, STR, DType
from relvm.ir.expr import Module
from relvm.ir.operator import find_operator
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

NARROW = [dtype for dtype in ALL_DTYPES.values() if dtype.is_narrow_float or dtype.bits < 8]
COMPUTED = [dtype for dtype in NARROW if dtype.is_arithmetic]
WIDE = [dtype for dtype in ALL_DTYPES.values() if dtype not in NARROW and dtype != STR]
MOVES = {
    "transpose": "transpose(x)",
    "slice": "slice(x, begin=(1,), end=(3,))",
    "concat": "concat(x, y, axis=0)",
    "gather": "gather(x, const(i64[2], [1, 0]))",
    "pad": "pad(x, pads=(1, 0, 0, 1), value=1)",
    "reshape": "reshape(x, shape(2, 6))",
    "where": "where(const(bool[4], [true, false, true, false]), x, y)",
    "constant": "concat(x, const({}[1, 4], [[1, 0, 1, 1]]), axis=0)",
}


def codes(dtype: DType) -> np.ndarray:
    """Return an array of all values of a narrow dtype."""
    bits = np.arange(2**dtype.bits, dtype=f"u{dtype.size_bytes}")
    return bits.view(dtype.numpy)


def numbers(dtype: DType, target: DType) -> np.ndarray:
    """Return numbers of `dtype`, most of them equal to or halfway between values of the narrow dtype `target`."""
    if dtype in NARROW:
        return codes(dtype)
    if not dtype.is_float:
        random = np.random.default_rng(0).bytes(300 * dtype.size_bytes)
        values = np.frombuffer(random, dtype.numpy) if dtype.is_integer else np.array([False, True])
        return np.concatenate([values, np.arange(100).astype(dtype.numpy)])
    with np.errstate(all="ignore"):
        exact = codes(target).astype(np.float64)
        middle = (exact[:-1] + exact[1:]) / 2
        values = np.concatenate(
            [exact, middle, middle * (1 + 1e-7), middle * (1 - 1e-12), [1e300, -1e30, np.inf, -np.inf]]
        )
        return values[~np.isnan(values)].astype(dtype.numpy)


CASTS = [(a, b) for a, b in itertools.product(NARROW + WIDE, repeat=2) if a in NARROW or b in NARROW]
# Conversions in which NaN, infinities and large numbers have no defined result.
LOST_IN_INTEGERS = {(a, b) for a, b in CASTS if a.is_float and b.is_integer}


@pytest.fixture(scope="module")
def cast_machines():
    functions = [parse_module(f'def main(x: {a}[n]) = cast(x, to="{b}")')["main"] for a, b in CASTS]
    return machines_of_forms(named(functions, [f"{a}_{b}" for a, b in CASTS]), FEWER_WAYS)


def named(functions, names) -> Module:
    return Module(tuple(replace(function, name=name) for function, name in zip(functions, names, strict=True)))


@pytest.mark.parametrize(("source", "target"), CASTS, ids=lambda dtype: dtype.name)
def test_casts_are_those_of_ml_dtypes(cast_machines, source, target) -> None:
    values = numbers(source, target)
    if (source, target) in LOST_IN_INTEGERS:
        lowest, highest = target.limits
        as_doubles = values.astype(np.float64)
        values = values[(as_doubles > lowest - 1) & (as_doubles < highest + 1) & (np.abs(as_doubles) < 2.0**62)]
    with np.errstate(all="ignore"):
        expected = find_operator("cast").numpy(values, to=target)
        assert source not in WIDE or (bits(expected) == bits(values.astype(target.numpy))).all()
    for machine in cast_machines.values():
        got = plain(machine[f"{source}_{target}"](values))
        assert got.dtype == expected.dtype
        different = bits(got) != bits(expected)
        assert not different.any(), (values[different][:5], got[different][:5], expected[different][:5])


def bits(array: np.ndarray) -> np.ndarray:
    """Return the bit patterns of the elements.  All NaNs have the same result."""
    if array.dtype.kind in "biu":
        return array
    is_nan = np.isnan(array.astype(np.float64)) if array.dtype.name[:3] not in ("int", "uin") else False
    return np.where(is_nan, 0x7FC1, array.view(f"u{array.itemsize}").astype(np.int64))


@pytest.fixture(scope="module")
def moving_machines():
    rows = list(itertools.product(NARROW, MOVES))
    functions = [
        parse_module(f"def main(x: {dtype}[3, 4], y: {dtype}[3, 4]) = {MOVES[move].format(dtype)}")["main"]
        for dtype, move in rows
    ]
    return machines_of_forms(named(functions, [f"{dtype}_{move}" for dtype, move in rows]), FEWER_WAYS)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_elements_are_moved_as_they_are(moving_machines, dtype, move) -> None:
    every = codes(dtype)
    finite = every[np.isfinite(every.astype(np.float64))]
    x, y = (np.resize(finite[at:], (3, 4)) for at in (0, 1))
    expected = {
        "transpose": lambda: x.T,
        "slice": lambda: x[1:3],
        "concat": lambda: np.concatenate([x, y]),
        "gather": lambda: x[[1, 0]],
        "pad": lambda: np.pad(x, ((1, 0), (0, 1)), constant_values=np.array(1, dtype.numpy)),
        "reshape": lambda: x.reshape(2, 6),
        "where": lambda: np.where([True, False, True, False], x, y),
        "constant": lambda: np.concatenate([x, np.array([[1, 0, 1, 1]], dtype.numpy)]),
    }[move]()
    for machine in moving_machines.values():
        got = plain(machine[f"{dtype}_{move}"](x, y))
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(bits(got), bits(np.ascontiguousarray(expected)))


@pytest.mark.parametrize("dtype", COMPUTED, ids=lambda dtype: dtype.name)
def test_arithmetic_is_that_of_f32_rounded_once(dtype) -> None:
    module = parse_module(
        f"def main(x: {dtype}[n, 8], w: {dtype}[8, 4]) = softmax(relu(matmul(add(x, exp(x)), w)), axis=1)"
    )
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape).astype(dtype.numpy) for shape in ((5, 8), (8, 4)))
    wide = np.maximum((x.astype(np.float64) + np.exp(x.astype(np.float64))) @ w.astype(np.float64), 0)
    shares = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = (shares / shares.sum(axis=1, keepdims=True)).astype(dtype.numpy)
    for machine in machines(module).values():
        got = plain(machine["main"](x, w))
        assert got.dtype == dtype.numpy
        steps = bits(got).astype(np.int64) - bits(expected).astype(np.int64)
        assert np.abs(steps).max() <= 1


@pytest.mark.parametrize("dtype", [dtype for dtype in NARROW if dtype not in COMPUTED], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("call", ["add(x, x)", "relu(x)", "exp(x)", "sum(x)"])
def test_what_is_only_moved_is_not_computed_with(dtype, call) -> None:
    with pytest.raises(RelvmTypeError, match=f"has dtype {dtype}, which does not support arithmetic"):
        infer_types(parse_module(f"def main(x: {dtype}[n]) = {call}"))


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_arrays_without_unused_bits_go_in_and_out_in_place(dtype) -> None:
    executable = vm.build(parse_module(f'def main(x: {dtype}[n]) = (x, cast(x, to="f32"))'), target="numpy")
    machine = vm.VirtualMachine(executable, results_may_share=True)
    values = codes(dtype)
    same, _ = machine["main"](values)
    assert same.dtype == dtype.numpy and same.numpy().dtype == dtype.numpy
    # Bytes of a dtype with unused bits are copied in canonical form.
    assert np.shares_memory(same.numpy(), values) == (dtype.bits >= 8)
    np.testing.assert_array_equal(bits(np.asarray(same)), bits(values))
    strided = np.repeat(values, 2)[::2]
    np.testing.assert_array_equal(bits(plain(machine["main"](strided)[0])), bits(values))


def narrowed_samples() -> Iterator[tuple[Sample, str, DType]]:
    """Yield samples of every operator, each with a dtype to replace and the narrow dtype that replaces it."""
    seen = set()
    for sample in SAMPLES:
        for source in ("float32", "int32", "uint8"):
            key = (sample.op, source, str(sample.attributes)[:80])
            if key not in seen and any(isinstance(arg, np.ndarray) and arg.dtype == source for arg in sample.args):
                seen.add(key)
                yield from ((sample, source, ALL_DTYPES[name]) for name in ("f16", "bf16", "f8e4m3fn", "i4", "u2"))


def test_every_operator_takes_narrow_dtypes_or_refuses_them() -> None:
    taken = set()
    for sample, source, dtype in narrowed_samples():
        types = [
            TensorType(dtype, type_.shape) if isinstance(type_, TensorType) and type_.dtype.numpy == source else type_
            for type_ in map(static_type, sample.args)
        ]
        try:
            function = function_of("main", Call(find_operator(sample.op), tuple(types), sample.attributes))
            lower(run_passes(Module((function,)), build_pipeline("c"), verified=True))
        except (RelvmTypeError, RelvmUnsupportedError, RelvmArgumentError):
            continue
        taken.add((sample.op, dtype.name))
    assert {("add", "f16"), ("lstm", "bf16"), ("softmax", "f16"), ("transpose", "i4")} <= taken
    assert not {("add", "i4"), ("add", "f8e4m3fn"), ("equal", "u2")} & taken
