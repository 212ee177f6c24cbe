"""The names that programs import for scripts and kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from relvm.frontend.script.values import ScriptFunctionName

call_kernel = ScriptFunctionName("call_kernel")
simd = range  # in Python, the loops of a kernel run in order
parallel = range


def grid(*sizes: int) -> Iterator[tuple[int, ...]]:
    """Yield the indices of a grid, in row-major order: `for i, j in grid(n, m)`.  A kernel reads it as nested loops."""
    return itertools.product(*map(range, sizes))
