"""Programs as users of JAX write them give the results of JAX, traced and from files of `jax.export`.

The tests need JAX, which the test extra does not install: `pip install jax`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="JAX IS MISSING: pip install jax to run these tests")

from frontend.jax_programs import PROGRAMS  # noqa: E402

import relvm.jax  # noqa: E402


def expect_close(found: list[Any], expected: list[Any]) -> None:
    for x, y in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if y.dtype.kind in "iub":
            np.testing.assert_array_equal(x, y)
            continue
        wide = y.astype(np.float64)
        largest = float(np.abs(wide[np.isfinite(wide)]).max(initial=0))
        tolerance = 1e-4 if y.dtype.itemsize == 4 else 1e-2
        np.testing.assert_allclose(x.astype(np.float64), wide, rtol=10 * tolerance, atol=tolerance * largest)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_results_are_those_of_jax(name: str) -> None:
    function, args = PROGRAMS[name]
    compiled = jax.jit(function)
    expected = jax.tree.leaves(compiled(*args))
    traced = relvm.jax.jit(function, exec_mode="bytecode", target="bytecode")
    expect_close(jax.tree.leaves(traced(*args)), expected)
    model = relvm.load_model(bytes(jax.export.export(compiled)(*args).serialize()))
    found = model(*jax.tree.leaves(args))
    expect_close(list(found) if isinstance(found, tuple) else [found], expected)
