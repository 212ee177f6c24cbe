"""Golden tests of each pass on small programs.  The result is also verified, printed and parsed again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden_cases import Case, check_case, golden

from relvm.errors import RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage, verify
from relvm.passes.pass_manager import Pass, run_passes
from relvm.passes.pipeline import build_pipeline

FUSED = ("fuse_attention", "decompose", "fuse_ops", "share_kernels", "lower_to_kernels")
PASSES = {step.name: step for step in build_pipeline("c")}


def after(name: str, text: str) -> str:
    """Return the text of a module after the pass `name`.

    text: the module before the pass, as the previous passes left it.  For passes after lower_to_kernels, it is the
    module before lower_to_kernels, because the text of a module does not contain its kernels.
    """
    steps = build_pipeline("c", fused=name in FUSED)
    names = [step.name for step in steps]
    first, last = min(names.index(name), names.index("lower_to_kernels")), names.index(name)
    module = parse_module(text)
    module = run_passes(module if first == 0 else infer_types(module), steps[first : last + 1], verified=True)
    printed = print_module(module)
    assert print_module(parse_module(printed)) == printed, "the result does not read back"
    return printed


@golden(*(Path(__file__).parent / f"{name}.cases" for name in PASSES))
def test_golden_cases(case: Case, update: bool) -> None:
    check_case(case, after(case.path.stem, case.source), update)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_says_what_it_does(name: str) -> None:
    assert PASSES[name].doc.strip()


def test_the_observer_sees_every_pass_in_order() -> None:
    seen = []
    module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }")
    run_passes(
        module,
        build_pipeline("c"),
        observer=lambda step, before, after, seconds: seen.append((step.name, seconds >= 0)),
    )
    assert seen == [(name, True) for name in PASSES]


def test_a_pass_that_breaks_its_promise_is_found() -> None:
    broken = Pass("broken", lambda module: module, Stage.PARSED, Stage.ANF)
    module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(relu(x)) }")
    with pytest.raises(RelvmVerifyError, match="main"):
        run_passes(module, [broken], verified=True)


@pytest.mark.parametrize("count", [20_000])
def test_long_functions_pass_without_deep_recursion(count: int) -> None:
    lines = [f"  v{i + 1} = relu(v{i})" for i in range(count)]
    text = "def main(v0: f32[n]) -> f32[n] {\n" + "\n".join(lines) + f"\n  return v{count}\n}}"
    module = run_passes(parse_module(text), build_pipeline("c"))
    verify(module, Stage.PLANNED)
