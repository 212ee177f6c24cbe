"""What makes C of a model: relvm, and its peers.  Each writes sources that define `run` of board.c."""

from __future__ import annotations

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
    """files: what is compiled.  include: folders.  bound_bytes, tensors_bytes: relvm's, of the memory of a run: the
    most bytes alive at once, and without what kernels need for themselves."""

    files: tuple[Path, ...]
    include: tuple[Path, ...] = ()
    bound_bytes: int | None = None
    tensors_bytes: int | None = None


def nothing(model: Model, folder: Path) -> Sources:
    """What the others are measured against: an image without a model."""
    return Sources((_run(folder, "", "(void)in;\n  (void)out;"),))


def relvm(model: Model, folder: Path) -> Sources:
    """`relvm export`."""
    path = folder / "model.onnx"
    onnx.save(model.proto, path)
    program = aot.build(from_onnx(path), aot.AotConfig("model"))
    program.write(folder)
    (placement,) = program.placements.values()
    points = range(max(one.last for one in placement.placed) + 1)
    tensors = [one for one in placement.placed if not one.name.startswith("scratch of")]
    tensors_bytes = max(sum(one.size_bytes for one in tensors if one.first <= at <= one.last) for at in points)
    (x,), (y,) = program.lowered.inputs, program.lowered.outputs
    call = f"""const struct model_inputs inputs = {{.{x.name} = in}};
  const struct model_outputs outputs = {{.{y.name} = out}};
  model_run(&inputs, &outputs);"""
    files = (*sorted(folder.glob("src/*.c")), _run(folder, '#include "model.h"', call))
    return Sources(files, (folder / "include", folder / "src"), sum(placement.lower_bound_bytes), tensors_bytes)


def emx_onnx_cgen(model: Model, folder: Path) -> Sources:
    """emmtrix's generator, with all temporaries on the stack and all weights in the program."""
    path, made = folder / "model.onnx", folder / "model.c"
    onnx.save(model.proto, path)
    options = ["--large-temp-threshold", "0", "--large-weight-threshold", "0", "--model-name", "model"]
    command = [sys.executable, "-m", "emx_onnx_cgen", "compile", *options, str(path), str(made)]
    subprocess.run(command, check=True, capture_output=True)
    x, y = (f"float {name}{_brackets(shape)}" for name, shape in (("x", model.input.shape), ("y", model.output_shape)))
    return Sources((made, _run(folder, f"void model(const {x}, {y});", "model((const void *)in, (void *)out);")))


def emlearn(model: Model, folder: Path) -> Sources | None:
    """emlearn's networks: tables of weights, and its header's functions.  It takes networks of scikit-learn."""
    if model.network is None:
        return None
    import emlearn as package
    from emlearn.convert import convert

    (folder / "network.h").write_text(convert(model.network, method="loadable").save(name="network"))
    sizes = f"{model.input.size}, out, {np.prod(model.output_shape)}"
    made = _run(folder, '#include "network.h"', f"eml_net_predict_proba(&network, in, {sizes});")
    return Sources((made,), (Path(package.includedir),))


SIDES: tuple[Callable[[Model, Path], Sources | None], ...] = (relvm, emx_onnx_cgen, emlearn)


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
