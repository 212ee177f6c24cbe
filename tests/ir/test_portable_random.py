"""The numbers of PortableRandom are those that docs/determinism.md states."""

from __future__ import annotations

import numpy as np

from relvm.ir.portable_random import PortableRandom

MASK = 2**64 - 1


def splitmix64(seed: int, count: int) -> list[int]:
    """Return numbers by the formulas of the document, with integers of Python."""
    numbers = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(z ^ (z >> 31))
    return numbers


def test_the_sequence_is_that_of_splitmix64() -> None:
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]  # as published with the algorithm
    for seed in (0, 7, 2**64 - 1):
        rng = PortableRandom(seed)
        made = [*rng.integers(0, 2**62, 3), *rng.integers(0, 2**62, (2, 2)).ravel(), rng.integers(0, 2**62)]
        assert [int(number) for number in made] == [number % 2**62 for number in splitmix64(seed, 8)]


def test_floats_are_exact_functions_of_the_numbers() -> None:
    numbers = splitmix64(3, 5)
    assert PortableRandom(3).random(5).tolist() == [(number >> 11) / 2**53 for number in numbers]
    normal = [(sum(number >> shift & 0xFFFF for shift in (0, 16, 32, 48)) - 131070) / 37837 for number in numbers]
    assert PortableRandom(3).standard_normal(5).tolist() == normal


def test_normal_numbers_have_mean_0_and_variance_1() -> None:
    made = PortableRandom(0).standard_normal((100, 1000))
    assert made.shape == (100, 1000) and made.dtype == np.float64
    assert abs(made.mean()) < 0.01 and abs(made.std() - 1) < 0.01 and np.abs(made).max() <= 3.5
