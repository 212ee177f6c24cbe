"""Tests of random numbers: their distribution, equal numbers in all modes for a seed, and new numbers in every run."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from frontend.onnx_models import parse_model
from support.modes import FEWER_WAYS, machines, plain

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

MODEL = parse_model("""
    g (float[n, 4] x, double[n] p) => (a, b, c, d, e, f, h, i)
    {
      a = RandomNormalLike<mean = 1.0, scale = 2.0>(x)
      b = RandomUniformLike<low = -1.0>(x)
      c = RandomUniformLike<low = -1.0>(x)
      d = Bernoulli(x)
      e = RandomNormal<shape = [20000], dtype = 11>()
      f = RandomUniform<shape = [5], seed = 3.0>()
      h = Multinomial<sample_size = 3, dtype = 7>(x)
      i = RandomUniformLike<dtype = 10>(p)
    }""")
SHARES = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
X = np.tile(SHARES, (20000, 1))
P = np.zeros(20000)


@pytest.fixture(scope="module")
def made():
    return machines(from_onnx(MODEL), FEWER_WAYS)


def runs(machine, count: int = 2) -> list[tuple[np.ndarray, ...]]:
    machine.seed(7)
    return [plain(machine["main"](X, P)) for _ in range(count)]


def test_a_seed_gives_the_same_numbers_in_every_way(made) -> None:
    first = runs(made["bytecode", "c"])
    for machine in made.values():
        for one, other in zip(first, runs(machine), strict=True):
            for x, y in zip(one, other, strict=True):
                np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=1e-4, atol=1e-5)


def test_every_run_and_every_node_has_numbers_of_its_own(made) -> None:
    one, other = runs(made["compiled", "c"])
    for i in (0, 1, 2, 4, 7):
        assert (one[i] == other[i]).mean() < 0.01
    assert (one[1] == one[2]).mean() < 0.01
    np.testing.assert_array_equal(one[5], other[5])  # the node has a seed


def test_numbers_are_distributed_as_asked_for(made) -> None:
    normal, uniform, _, coins, doubles, _, classes, halves = runs(made["bytecode", "c"])[0]
    assert abs(normal.mean() - 1) < 0.03 and abs(normal.std() - 2) < 0.03
    assert abs(np.corrcoef(normal[:-1, 0], normal[1:, 0])[0, 1]) < 0.03
    assert abs((np.abs(normal - 1) < 2).mean() - 0.6827) < 0.01
    assert uniform.min() >= -1 and uniform.max() < 1 and abs(uniform.mean()) < 0.02
    assert np.abs(np.histogram(uniform, 16, (-1, 1))[0] / uniform.size - 1 / 16).max() < 0.003
    np.testing.assert_allclose(coins.mean(axis=0), SHARES, atol=0.02)
    assert doubles.dtype == np.float64 and abs(doubles.std() - 1) < 0.03
    shares = np.exp(SHARES) / np.exp(SHARES).sum()
    assert classes.dtype == np.int64 and classes.shape == (20000, 3)
    np.testing.assert_allclose(np.bincount(classes.reshape(-1), minlength=4) / classes.size, shares, atol=0.01)
    assert halves.dtype == np.float16 and abs(halves.astype(np.float64).mean() - 0.5) < 0.01


def test_numbers_of_a_seed_are_those_of_splitmix64() -> None:
    """The seed is the pattern of bits of its float, which the second multiplier spreads."""

    def split_mix(state: int) -> int:
        first = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        second = (first ^ first >> 27) * 0x94D049BB133111EB % 2**64
        return second ^ second >> 31

    (bits,) = struct.unpack("<I", struct.pack("<f", 3.0))
    states = [(bits * 0x94D049BB133111EB + i * 0x9E3779B97F4A7C15) % 2**64 for i in range(5)]
    for number, digits in ((1, 24), (11, 53)):
        model = parse_model(f"g () => (y) {{ y = RandomUniform<shape = [5], seed = 3.0, dtype = {number}>() }}")
        expected = [(split_mix(state) >> 64 - digits) / 2**digits for state in states]
        for machine in machines(from_onnx(model), FEWER_WAYS).values():
            assert plain(machine["main"]()).tolist() == expected


def test_every_round_of_a_loop_has_its_own() -> None:
    model = parse_model("""
        g (int64 k) => (y)
        {
          go = Constant<value = bool {1}>()
          y = Loop(k, go) <body = b (int64 i, bool c) => (bool c2, float[2] r) {
            c2 = Identity(c)
            r = RandomUniform<shape = [2]>()
          }>
        }""")
    for machine in machines(from_onnx(model), FEWER_WAYS).values():
        assert np.unique(plain(machine["main"](np.array(100)))).size == 200


def test_machines_of_their_own_differ() -> None:
    model = parse_model("g () => (y) { y = RandomUniform<shape = [4]>() }")
    module = from_onnx(model)
    results = [plain(machines(module, [("bytecode", "numpy")])["bytecode", "numpy"]["main"]()) for _ in range(2)]
    assert (results[0] != results[1]).any()


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(
        RelvmUnsupportedError, match="random numbers of dtype i32 are not supported: expected a float dtype"
    ):
        from_onnx(parse_model("g () => (y) { y = RandomUniform<shape = [4], dtype = 6>() }"))
