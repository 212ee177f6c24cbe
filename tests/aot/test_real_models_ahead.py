"""Exports of real models have bit-identical results to compiled mode, and pass sanitizers and analyzers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from exported import compile_programs, make, run_program
from real_models import DIGITS, DIMS, SMALL, digits, digits_model, real_model, write_with_trial
from support.modes import assert_same_bits, plain

from relvm import aot, vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.onnx import from_onnx

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="an export is built by a C compiler, and there is none")


@pytest.mark.parametrize("name", DIMS)
def test_a_real_model_gives_what_the_machine_gives(name: str, tmp_path: Path) -> None:
    model = real_model(name)
    program = aot.build(model.module, aot.AotConfig(name), verified=True)
    library = compile_programs([program], tmp_path)
    machine = vm.VirtualMachine(vm.build(model.module, "compiled"))
    assert len(model.calls) >= 2
    for args in model.calls:
        assert_same_bits(run_program(library, program, *args), plain(machine["main"](*args)))


@pytest.mark.parametrize("name", SMALL)
def test_make_tries_a_real_model_bit_for_bit(name: str, tmp_path: Path) -> None:
    write_with_trial(real_model(name), tmp_path, "x86-64")
    lines = make(tmp_path, "test", "TOLERANCE=0", "CFLAGS=-O3 -march=x86-64").splitlines()
    assert lines and all(line.endswith("values, the same") for line in lines)


@pytest.mark.parametrize("name", DIMS)
def test_no_sanitizer_finds_anything_in_a_real_model(name: str, tmp_path: Path) -> None:
    write_with_trial(real_model(name), tmp_path)
    checks = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert "values" in make(tmp_path, "test", f"CFLAGS={checks}")


@pytest.mark.parametrize("name", SMALL)
def test_no_analyzer_finds_anything_in_a_real_model(name: str, tmp_path: Path) -> None:
    aot.build(real_model(name).module).write(tmp_path)
    # gcc's analyzer reports false positives (uninitialized variables) for vectorized sums.
    make(tmp_path, "CFLAGS=-O1 -fanalyzer -URVM_OPENMP_SIMD")


@pytest.mark.parametrize("zipmap", [True, False], ids=["map", "array"])
def test_a_classifier_predicts_as_scikit_learn_does(zipmap: bool, tmp_path: Path) -> None:
    images, classifier = digits()
    program = aot.build(from_onnx(digits_model(zipmap=zipmap), dims=DIMS[DIGITS]))
    library = compile_programs([program], tmp_path)
    for first in range(0, 200, 8):
        some = images[first : first + 8]
        labels, probabilities = run_program(library, program, some)
        if zipmap:
            classes, probabilities = probabilities
            np.testing.assert_array_equal(classes, classifier.classes_)
        np.testing.assert_array_equal(labels, classifier.predict(some))
        np.testing.assert_allclose(probabilities, classifier.predict_proba(some), atol=1e-6)
