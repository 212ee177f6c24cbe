"""Random numbers that are the same everywhere: with every version of NumPy, and on every processor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Size = int | Sequence[int] | None


class PortableRandom:
    """A generator with the methods of `numpy.random.Generator` that random inputs need.

    NumPy may change the numbers of its generators with every version.  For the normal distribution, it also uses
    functions of the C library, whose rounding differs.  This generator uses only integer arithmetic, and float
    subtraction, multiplication and division, which IEEE 754 rounds the same everywhere.

    Number k of a generator is SplitMix64: the finalizer of seed + (k + 1) * 0x9e3779b97f4a7c15, modulo 2^64.  Each
    element of an array is computed from the next number, z.

    Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.

    Parameters
    ----------
    seed
        The seed, taken modulo 2^64.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed % 2**64

    def _numbers(self, size: Size) -> np.ndarray:
        """Return the next numbers, as u64."""
        shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        count = math.prod(shape)
        step = np.uint64(0x9E3779B97F4A7C15)
        with np.errstate(over="ignore"):
            z = np.uint64(self._state) + np.arange(1, count + 1, dtype=np.uint64) * step
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        self._state = (self._state + count * int(step)) % 2**64
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def random(self, size: Size = None) -> np.ndarray:
        """Return floats in [0, 1): the upper 53 bits of z, divided by 2^53."""
        return (self._numbers(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, low: int, high: int, size: Size = None) -> np.ndarray:
        """Return integers in [low, high): low + z modulo (high - low)."""
        return (self._numbers(size) % np.uint64(high - low)).astype(np.int64) + low

    def standard_normal(self, size: Size = None) -> np.ndarray:
        """Return floats that approximate the normal distribution with mean 0 and variance 1, between -3.5 and 3.5.

        The four 16-bit parts of z are added.  The sum minus 131070 is divided by 37837, and rounded to f64.
        """
        z = self._numbers(size)
        parts = [(z >> np.uint64(shift)) & np.uint64(0xFFFF) for shift in (0, 16, 32, 48)]
        return np.asarray((np.sum(parts, axis=0).astype(np.float64) - 131070.0) / 37837.0)
