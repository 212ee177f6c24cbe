"""The passes of every pipeline, in order; nowhere else."""

from __future__ import annotations

from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage
from relvm.passes.canonicalize.canonicalize import simplify
from relvm.passes.check_sizes import check_sizes
from relvm.passes.constant_folding import fold_constants
from relvm.passes.cse import eliminate_common
from relvm.passes.dce import eliminate_dead
from relvm.passes.decompose import decompose
from relvm.passes.fold_scales import fold_scales
from relvm.passes.fuse_attention import fuse_attention
from relvm.passes.fuse_ops import fuse
from relvm.passes.inline import inline_functions
from relvm.passes.lambda_lifting import lift_lambdas
from relvm.passes.list_append_in_place import append_in_place
from relvm.passes.lower_shapes import lower_shapes
from relvm.passes.lower_string_moves import move_strings
from relvm.passes.lower_to_kernels import legalize
from relvm.passes.memory.insert_kills import kill_dead
from relvm.passes.memory.plan_memory import plan_memory
from relvm.passes.pack_weights import pack_weights
from relvm.passes.pass_manager import Pass
from relvm.passes.promote_half_floats import widen_floats
from relvm.passes.to_anf import normalize

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
