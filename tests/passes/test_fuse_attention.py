"""Fused attention has the same results as the separate operators, including NaN and infinities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.golden_cases import read_cases
from support.modes import MODES, assert_close, machines

from relvm.frontend.text import parse_module
from relvm.ir.dtypes import BOOL
from relvm.ir.interpreter import evaluate
from relvm.ir.symbolic import evaluate_with
from relvm.ir.type_inference import infer_types

CASES = {case.title: case.source for case in read_cases(Path(__file__).parent / "fuse_attention.cases")}
SIZES = {"b": 2, "m": 7, "n": 5}


def inputs(module, special: float | None) -> list[np.ndarray]:
    """Return random arguments of main.  special: a number that replaces some elements, or None."""
    random, made = np.random.default_rng(3), []
    for param in module["main"].params:
        shape = tuple(evaluate_with(dim, lambda var: SIZES[var.name]) for dim in param.type.shape)
        if param.type.dtype == BOOL:
            made.append(np.asarray(random.random(shape) < 0.5))
            continue
        made.append(np.asarray(random.standard_normal(shape), param.type.dtype.numpy))
        if special is not None and made[-1].ndim > 1:
            made[-1].reshape(-1)[:: made[-1].shape[-1] * 3] = special
    return made


@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("title", CASES)
def test_attention_computes_what_its_parts_do(title: str, special: float | None) -> None:
    module = infer_types(parse_module(CASES[title]))
    args = inputs(module, special)
    wanted = evaluate(module, "main", *args)
    for machine in machines(module, [(mode, "c") for mode in MODES]).values():
        got = machine["main"](*args)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for one, other in pairs:
            assert_close(one, other, 1e-5)
