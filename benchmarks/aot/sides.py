"""C code generators: relvm and others.  Each writes sources that define the function `run`, which board.c calls."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.aot.models import Model
from relvm import aot
from relvm.frontend.onnx import from_onnx


@dataclass(frozen=True)
class Sources:
    """The C sources of a model.

    files: the files to compile.  include: folders for #include.  options: compiler options that the sources need.
    bound_bytes: the maximum of live bytes in a run, only for relvm.  tensors_bytes: the same without scratch memory of
    kernels.
    """

    files: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    bound_bytes: int | None = None
    tensors_bytes: int | None = None


def nothing(model: Model, folder: Path) -> Sources:
    """Generate the baseline: an image without a model."""
    return Sources((_run(folder, "", "(void)in;\n  (void)out;"),))


def relvm(model: Model, folder: Path) -> Sources:
    """Generate code as `relvm export --board` does."""
    path = folder / "model.onnx"
    onnx.save(model.proto, path)
    program = aot.build(from_onnx(path), aot.AotConfig("model", favour="size"))
    program.write(folder)
    (placement,) = program.placements.values()
    placed = [request for arena in placement.arenas for request in arena.requests]
    points = range(max(one.last for one in placed) + 1)
    tensors = [one for one in placed if not one.name.startswith("scratch of")]
    tensors_bytes = max(sum(one.size_bytes for one in tensors if one.first <= at <= one.last) for at in points)
    (x,), (y,) = program.lowered.inputs, program.lowered.outputs
    call = f"""const struct model_inputs inputs = {{.{x.name} = in}};
  const struct model_outputs outputs = {{.{y.name} = out}};
  model_run(&inputs, &outputs);"""
    files = (*sorted(folder.glob("src/*.c")), _run(folder, '#include "model.h"', call))
    include = folder / "include", folder / "src"
    return Sources(
        files,
        include,
        ("-ffp-contract=off",),
        sum(arena.lower_bound_bytes for arena in placement.arenas),
        tensors_bytes,
    )


def emx_onnx_cgen(model: Model, folder: Path) -> Sources | None:
    """Generate code with emx-onnx-cgen, with temporaries on the stack and weights in the program.

    Return None for trees, which it does not support.
    """
    if any(node.domain == "ai.onnx.ml" for node in model.proto.graph.node):
        return None
    path, made = folder / "model.onnx", folder / "model.c"
    onnx.save(model.proto, path)
    options = ["--large-temp-threshold", "0", "--large-weight-threshold", "0", "--model-name", "model"]
    command = [sys.executable, "-m", "emx_onnx_cgen", "compile", *options, str(path), str(made)]
    subprocess.run(command, check=True, capture_output=True)
    x, y = (f"float {name}{_brackets(shape)}" for name, shape in (("x", model.input.shape), ("y", model.output_shape)))
    return Sources((made, _run(folder, f"void model(const {x}, {y});", "model((const void *)in, (void *)out);")))


def emlearn(model: Model, folder: Path) -> Sources | None:
    """Generate code with emlearn: tables of weights or nodes, and functions of its header.

    Return None if the model was not trained with scikit-learn.  Trees have integer inputs, and bytes in their leaves.
    """
    if model.trained is None:
        return None
    import emlearn as package
    from emlearn.convert import convert

    sizes = f"{model.input.size}, out, {np.prod(model.output_shape)}"
    if hasattr(model.trained, "estimators_"):
        options, saved = {"leaf_bits": 8}, {"include_proba": True}
        call = f"""int16_t whole[{model.input.size}];
  for (int i = 0; i < {model.input.size}; i++) whole[i] = (int16_t)in[i];
  trained_predict_proba(whole, {sizes});"""
    else:
        options, saved = {}, {}
        call = f"eml_net_predict_proba(&trained, in, {sizes});"
    with contextlib.chdir(folder):  # emlearn writes compiled files into the current folder
        text = convert(model.trained, method="loadable", **options).save(name="trained", **saved)
    (folder / "trained.h").write_text(text)
    return Sources((_run(folder, '#include "trained.h"', call),), include=(Path(package.includedir),))


def m2cgen(model: Model, folder: Path) -> Sources | None:
    """Generate code with m2cgen: nested ifs in double precision.

    Return None unless the model is a scikit-learn forest.
    """
    if not hasattr(model.trained, "estimators_"):
        return None
    import m2cgen as package

    (folder / "trained.h").write_text(package.export_to_c(model.trained))
    sizes = model.input.size, np.prod(model.output_shape)
    call = f"""double values[{sizes[0]}], scores[{sizes[1]}];
  for (int i = 0; i < {sizes[0]}; i++) values[i] = in[i];
  score(values, scores);
  for (int i = 0; i < {sizes[1]}; i++) out[i] = (float)scores[i];"""
    return Sources((_run(folder, '#include "trained.h"', call),))


SIDES: tuple[Callable[[Model, Path], Sources | None], ...] = (relvm, emx_onnx_cgen, emlearn, m2cgen)


def _run(folder: Path, before: str, body: str) -> Path:
    path = folder / "run.c"
    path.write_text(f"""{before}

void run(const float *in, float *out);

void run(const float *in, float *out) {{
  {body}
}}
""")
    return path


def _brackets(shape: tuple[int, ...]) -> str:
    return "".join(f"[{size}]" for size in shape)
