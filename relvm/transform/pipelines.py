"""The passes of every pipeline, in order; nowhere else."""

from __future__ import annotations

from relvm.ir.infer import infer_types
from relvm.ir.stages import Stage
from relvm.transform.append_in_place import append_in_place
from relvm.transform.check_sizes import check_sizes
from relvm.transform.decompose import decompose
from relvm.transform.eliminate_common import eliminate_common
from relvm.transform.eliminate_dead import eliminate_dead
from relvm.transform.fold_constants import fold_constants
from relvm.transform.fold_scales import fold_scales
from relvm.transform.fuse import fuse
from relvm.transform.fuse_attention import fuse_attention
from relvm.transform.inline_functions import inline_functions
from relvm.transform.kill_dead import kill_dead
from relvm.transform.legalize import legalize
from relvm.transform.lift_lambdas import lift_lambdas
from relvm.transform.lower_shapes import lower_shapes
from relvm.transform.move_strings import move_strings
from relvm.transform.normalize import normalize
from relvm.transform.pack_weights import pack_weights
from relvm.transform.passes import Pass
from relvm.transform.plan_memory import plan_memory
from relvm.transform.simplify import simplify
from relvm.transform.widen_floats import widen_floats

TARGETS = ("c", "numpy")


def build_pipeline(target: str, *, fused: bool = True, is_compact: bool = False) -> tuple[Pass, ...]:
    """From a module as written to one that code generation takes: PARSED -> PLANNED.

    Parameters
    ----------
    target
        One of TARGETS.
    fused
        Whether operators share kernels; never where they are NumPy's.
    is_compact
        Whether memory matters more than time.
    """
    return (
        Pass("infer_types", infer_types, Stage.PARSED, Stage.TYPED),
        normalize,
        check_sizes,
        inline_functions,
        move_strings,
        widen_floats,
        fold_constants,
        simplify,
        eliminate_common,
        eliminate_dead,
        lift_lambdas,
        *((fold_scales, pack_weights) if target == "c" else ()),
        *((fuse_attention, decompose, fuse) if target == "c" and fused else ()),
        legalize(target, is_compact=is_compact),
        plan_memory,
        lower_shapes,
        append_in_place,
        kill_dead,
    )
