"""Programs whose results incorrect rewriting or fusion would change."""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import MODES, assert_close, machines

from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

PROGRAMS = {
    "a shared value does not wait in a result of another dtype": (
        "def main(x: f32[n]) => { e = exp(x); s = sum(e, keepdims=true)\n"
        " return add(cast(multiply(e, e), to=i32), cast(s, to=i32)) }",
        [0.3, 0.9],
    ),
    "a comparison behind softmax": (
        "def main(x: f32[n]) => { return greater(softmax(x), const(f32[], 0.5)) }",
        [1, 2, 3, 4],
    ),
    "a cast behind softmax": ("def main(x: f32[n]) => { return cast(softmax(x), to=f64) }", [1, 2, 3, 4]),
    "a quotient that is compared": (
        "def main(x: f32[n]) => { return equal(divide(x, const(f32[], 41)), const(f32[], 1)) }",
        [41, 47],
    ),
    "a quotient that is rounded behind an if": (
        "def main(x: f32[n]) => { y = if to_scalar(sum(x)) > 0.0 then divide(x, const(f32[], 41)) else x\n"
        " return floor(y) }",
        [41, 82],
    ),
    "a sum that rounds": (
        "def main(x: f32[n]) => { return subtract(add(x, const(f32[], 12582912)), const(f32[], 12582912)) }",
        [1.3, 2.7],
    ),
    "a product that overflows": (
        "def main(x: f32[n]) => { return multiply(multiply(x, const(f32[], 1e30)), const(f32[], 1e-30)) }",
        [1e38, 1],
    ),
    "zeros of two signs": (
        "def main(x: f32[n]) => { return (pad(x, pads=(1, 0), value=0.0), pad(x, pads=(1, 0), value=-0.0)) }",
        [1, 2],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_computed_stays(name: str) -> None:
    text, elements = PROGRAMS[name]
    module, x = parse_module(text), np.float32(elements)
    wanted = evaluate(infer_types(module), "main", x)
    for machine in machines(module, [(mode, "c") for mode in MODES]).values():
        got = machine["main"](x)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for one, other in pairs:
            assert_close(one, other, 1e-6)
            signs = (np.signbit(np.asarray(array, np.float64)) for array in (one, other))
            assert np.array_equal(*signs)
