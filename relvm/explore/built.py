"""What a build makes of a module on its way, and the function of it that somebody asks for."""

from __future__ import annotations

from relvm.errors import RelvmNameError, expect_choice, near_matches
from relvm.ir.expr import Module
from relvm.ir.stages import Stage
from relvm.transform.passes import run_passes
from relvm.transform.pipelines import TARGETS, build_pipeline


def module_at(module: Module, stage: Stage, target: str, *, fused: bool) -> Module:
    """The module after the last pass of a build whose result is at `stage`.

    Parameters
    ----------
    module
        As a front end made it (stage PARSED or later, up to NORMAL).

    Raises
    ------
    RelvmArgumentError
        There is no such target.
    """
    expect_choice("target", target, TARGETS)
    return run_passes(module, [step for step in build_pipeline(target, fused=fused) if step.to <= stage])


def function_name(built: Module, name: str | None) -> str:
    """`name`, or that of the first public function where it is None.

    Parameters
    ----------
    built
        After passes, which remove functions that are inlined, and make functions of local ones.

    Raises
    ------
    RelvmNameError
        It has no such function.
    """
    names = [function.name for function in built.functions]
    public = [function.name for function in built.functions if not function.private]
    chosen = next(iter(public), "that is public") if name is None else name
    if chosen not in names:
        raise RelvmNameError(f"no function {chosen} in what is built{near_matches(chosen, names)}")
    return chosen
