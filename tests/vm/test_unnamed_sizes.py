"""Random programs in which each function first discards the known sizes of its parameters."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.modes import assert_close, plain
from support.simple_programs import Generator, arguments

from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.vm import VirtualMachine, build

SIZES = ((2, 3), (1, 1), (0, 2))


@pytest.mark.parametrize("seed", range(12))
def test_sizes_known_at_run_time_only(seed: int) -> None:
    module = Generator(seed).module()
    forgetful = ""
    for text in re.split(r"(?m)^(?=(?:private )?def )", print_module(module, show_types=False))[1:]:
        head, _, body = text.partition("{")
        head = re.sub(r"\) -> .*$", ")", head)
        body = re.sub(r"\bp([123])\b", r"q\1", body)
        forgetful += f"{head} {{ q1: f32[_, _] = p1; q2: f32[_] = p2; q3: i64[_, _] = p3\n{body}"
    machine = VirtualMachine(build(parse_module(forgetful), target="numpy", verified=True))
    typed = infer_types(module)
    for n, m in SIZES:
        args = arguments(seed, n, m)
        for name in machine.functions:
            with np.errstate(all="ignore"):
                expected = evaluate(typed, name, *args)
            assert_close(plain(machine[name](*args)), expected, 1e-4)
