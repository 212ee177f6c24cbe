"""The compilation pipeline: the passes and their order."""

from __future__ import annotations

from collections.abc import Collection

from relvm.errors import RelvmArgumentError
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage
from relvm.lir.passes.copy_coalescing import copy_coalescing
from relvm.lir.passes.devirtualize_calls import devirtualize_calls
from relvm.lir.passes.tail_calls import tail_calls
from relvm.lir.passes.tail_recursion_to_loop import tail_recursion_to_loop
from relvm.passes.canonicalize.canonicalize import canonicalize
from relvm.passes.check_sizes import check_sizes
from relvm.passes.constant_folding import constant_folding
from relvm.passes.cse import cse
from relvm.passes.dce import dce
from relvm.passes.decompose import decompose
from relvm.passes.fold_scales import fold_scales
from relvm.passes.fuse_attention import fuse_attention
from relvm.passes.fuse_ops import fuse_ops
from relvm.passes.inline import inline
from relvm.passes.lambda_lifting import lambda_lifting
from relvm.passes.list_append_in_place import list_append_in_place
from relvm.passes.lower_shapes import lower_shapes
from relvm.passes.lower_string_moves import lower_string_moves
from relvm.passes.lower_to_kernels import lower_to_kernels
from relvm.passes.memory.insert_kills import insert_kills
from relvm.passes.memory.plan_memory import plan_memory
from relvm.passes.pack_weights import pack_weights
from relvm.passes.pass_manager import Pass
from relvm.passes.promote_half_floats import promote_half_floats
from relvm.passes.share_kernels import share_kernels
from relvm.passes.to_anf import to_anf
from relvm.passes.unbox_scalars import unbox_scalars

TARGETS = ("c", "bytecode", "numpy")

# The passes over routines, in order.  They run after the passes over modules.
LIR_PASSES = (
    devirtualize_calls,
    tail_calls,
    copy_coalescing,
    tail_recursion_to_loop,
)


def build_pipeline(
    target: str, *, fused: bool = True, favour: str = "speed", without: Collection[str] = ()
) -> tuple[Pass, ...]:
    """Return the passes, in order, that lower a module from stage PARSED to PLANNED, the input of code generation.

    Parameters
    ----------
    target
        One of TARGETS.
    fused
        Whether operators are fused into kernels.  The target "numpy" never fuses.
    favour
        The goal of the kernels, one of relvm.kernels.kernel_builder.FAVOURS.
    without
        Names of optional passes to leave out.  The name of an optional pass that the other arguments already exclude is
        valid, and has no effect.

    Raises
    ------
    RelvmArgumentError
        `without` contains something other than the name of an optional pass.
    """
    optional = [step.name for step in _passes("c", fused=True, favour="speed") if step.optional]
    for name in without:
        if name not in optional:
            raise RelvmArgumentError(f"without={name}: only optional passes can be left out: {', '.join(optional)}")
    return tuple(step for step in _passes(target, fused=fused, favour=favour) if step.name not in without)


def _passes(target: str, *, fused: bool, favour: str) -> tuple[Pass, ...]:
    return (
        Pass("infer_types", infer_types, Stage.PARSED, Stage.TYPED),
        to_anf,
        check_sizes,
        inline,
        lower_string_moves,
        promote_half_floats,
        constant_folding,
        canonicalize,
        cse,
        dce,
        lambda_lifting,
        unbox_scalars,
        *((fold_scales, pack_weights(favour=favour)) if target != "numpy" else ()),
        *((fuse_attention, decompose, fuse_ops, share_kernels) if target != "numpy" and fused else ()),
        lower_to_kernels(target, favour=favour),
        plan_memory,
        lower_shapes,
        list_append_in_place,
        insert_kills,
    )
