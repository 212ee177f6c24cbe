"""Modules after the first passes of the pipeline."""

from __future__ import annotations

from relvm.ir.expr import Module
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def module_after(name: str, module: Module, *, target: str = "c", fused: bool = True) -> Module:
    """Run the passes up to and including `name`, verifying the module after each."""
    steps = build_pipeline(target, fused=fused)
    upto = [step.name for step in steps].index(name) + 1
    return run_passes(module, steps[:upto], verified=True)
