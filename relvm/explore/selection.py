"""Selection of the module, the stage and the function to inspect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from relvm.errors import RelvmArgumentError, RelvmNameError, expect_choice, expect_path, expect_type, known_names
from relvm.frontend.read_model import read_model
from relvm.ir.expr import HasModule, Module, expect_module
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import TARGETS, build_pipeline


def run_to_stage(module: Module | HasModule, stage: Stage, target: str, *, fused: bool) -> Module:
    """Run the passes of a build up to and including `stage`, and return the module.

    Parameters
    ----------
    module
        A module as a front end returns it, at any stage from PARSED to ANF.
    stage
        The stage of the result.  Passes that lower a module to a later stage do not run.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmTypeError
        `module` is not a module, or `fused` is not a bool.
    RelvmArgumentError
        The target is unknown.
    """
    module = expect_module("module", module)
    expect_type("fused", fused, bool, "True or False")
    expect_choice("target", target, TARGETS)
    return run_passes(module, [step for step in build_pipeline(target, fused=fused) if step.to <= stage])


def as_module(
    model: Module | HasModule | str | Path, dims: Mapping[str, int | tuple[int, int] | None] | None
) -> Module:
    """Return `model` if it is a module, otherwise read the module from the file `model`.

    Parameters
    ----------
    model
        A module, a function that is decorated by `script`, or the path of an .onnx, .relvm, .mlir or .pt2 file.
    dims
        Sizes of symbolic dimensions of an ONNX model or a .pt2 file, as for `from_onnx` and `from_pt2`.

    Raises
    ------
    RelvmTypeError
        `model` is neither a module nor a path.
    RelvmArgumentError
        `dims` is given for a module or for a .relvm or .mlir file, which state their sizes themselves.
    RelvmFormatError
        The file is none of these.
    """
    if isinstance(model, str | os.PathLike):
        expect_path("model", model)
        return read_model(Path(model), dims)
    module = expect_module("model", model)
    if dims:
        raise RelvmArgumentError(
            f"dims: {', '.join(dims)}: sizes apply only to model files; a module already has its sizes"
        )
    return module


def title_of(model: Module | HasModule | str | Path) -> str:
    """Return the name of the file `model`, or "module"."""
    return Path(model).name if isinstance(model, str | os.PathLike) else "module"


def choose_function(built: Module, name: str | None) -> str:
    """Return the name of the function to show: `name`, or by default the first public function.

    Parameters
    ----------
    built
        The module after the passes, which remove inlined functions and lift local functions to the top level.
    name
        Name of the function that the user requests, or None.

    Raises
    ------
    RelvmNameError
        The module has no such function.
    """
    names = [function.name for function in built.functions]
    public = [function.name for function in built.functions if not function.private]
    chosen = next(iter(public), "that is public") if name is None else name
    if chosen not in names:
        raise RelvmNameError(f"no function {chosen} in the built module{known_names(chosen, names)}")
    return chosen
