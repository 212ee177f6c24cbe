"""Exports of samples of every operator and dtype compile without warnings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from exported import FLAGS, SIMD
from ops.harness import Call, function_of
from ops.samples import SAMPLES
from ops.test_operators import static_type

from relvm import aot
from relvm.compiler.find_compiler import expect_compiler, find_compiler
from relvm.errors import RelvmUnsupportedError
from relvm.ir.expr import Module
from relvm.ir.operator import find_operator

# Operators on strings, lists and optional values, which cannot be exported.
NOT_EXPORTED = ("string_", "list_", "make_list", "sequence_", "is_null", "value_of", "element_at")


@pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler that could warn")
def test_no_compiler_warns_of_an_operator(tmp_path: Path) -> None:
    good = reversed([sample for sample in SAMPLES if not sample.fails])
    firsts = {(sample.op, *(getattr(arg, "dtype", None) for arg in sample.args)): sample for sample in good}
    units, refused = [], []
    for number, sample in enumerate(firsts.values()):
        operator = find_operator(sample.op)
        main = function_of("main", Call(operator, tuple(map(static_type, sample.args)), sample.attributes))
        try:
            program = aot.build(Module((main,)), aot.AotConfig(f"m{number}"))
        except RelvmUnsupportedError:
            refused.append(sample.op)
            continue
        place = tmp_path / f"m{number}"
        program.write(place)
        units += [[f"-I{place}/include", f"-I{place}/src", str(unit)] for unit in place.glob("src/*kernels.c")]
    assert all(op.startswith(NOT_EXPORTED) for op in refused), refused
    command = [*expect_compiler().command, *FLAGS.split(), *SIMD.split(), "-fsyntax-only"]
    for unit in units:
        done = subprocess.run([*command, *unit], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert len(units) > 400
