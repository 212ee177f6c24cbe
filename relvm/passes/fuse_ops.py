"""Operator fusion: combine several operators in one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relvm.ir.expr import Binding, Block, Expr, Function, Fused, MatchCast, OpCall, Var
from relvm.ir.node import walk
from relvm.ir.operator import Effect
from relvm.ir.types import TensorType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.fused_expr import NotFusable
from relvm.kernels.fusion_group import Group
from relvm.kernels.lowering_rules import Contraction, DataMovement, GatherKernel, Pointwise, Reduce, Reinterpret
from relvm.passes.pass_manager import function_pass

_MAX_MEMBERS = 32  # larger groups gain little, and their values no longer fit in registers


@function_pass("fuse_ops", at=Stage.ANF, optional=True)
def fuse_ops(function: Function) -> Function:
    """Fuse an operator into the kernel of its only user:

    t = add(x, b)
    y = relu(t)     ->   y = fused { t = add(x, b); y = relu(t); return y }

    A group consists of elementwise operators, transpositions, slices, gathers, views and reductions that one loop nest
    can compute, or of a matmul and its epilogue (relvm/kernels/fused_expr.py).  The intermediate results of a group are
    not stored in memory.
    """
    return map_blocks(_block, function)


def _block(block: Block) -> Block:
    users = _find_users(block)
    place: dict[Expr, int] = {binding.var: i for i, binding in enumerate(block.bindings)}
    calls = {i: call for i, binding in enumerate(block.bindings) if (call := _fusible_call(binding)) is not None}
    grouped: set[int] = set()
    fused: dict[int, Fused] = {}
    for i in range(len(block.bindings) - 1, -1, -1):
        if i in grouped or i not in calls or isinstance(calls[i].op.lower, Reinterpret):
            continue
        members = _grow_group(block, calls, i, users, place, grouped)
        if len(members) > 1:
            grouped |= members
            fused[i] = _fused(block, i, members)
    bindings = []
    for i, binding in enumerate(block.bindings):
        if i in fused:
            bindings.append(replace(binding, value=fused[i]))
        elif i not in grouped:
            bindings.append(with_value(binding, map_blocks(_block, binding.value)))
    return with_bindings(block, bindings)


def _find_users(block: Block) -> dict[Expr, set[int]]:
    """Map each variable to the indices of the bindings that use it.

    The result of the block counts as a user, whose index follows that of the last binding.
    """
    users: dict[Expr, set[int]] = {}
    for i, value in enumerate([*(binding.value for binding in block.bindings), block.result]):
        for item in walk(value):
            if isinstance(item, Var):
                users.setdefault(item, set()).add(i)
    return users


def _fusible_call(binding: Binding | MatchCast) -> OpCall | None:
    """Return the operator call of `binding` if it can belong to a fusion group, otherwise None."""
    value = binding.value
    if not isinstance(value, OpCall) or isinstance(binding, MatchCast) or value.op.effect is not Effect.PURE:
        return None
    if not isinstance(value.op.lower, Pointwise | DataMovement | GatherKernel | Reduce | Contraction | Reinterpret):
        return None
    types = [value.type, *(arg.type for arg in value.args)]
    known = all(type_.shape is not None and type_.dtype for type_ in types if isinstance(type_, TensorType))
    return value if known else None


def _grow_group(
    block: Block,
    calls: Mapping[int, OpCall],
    root: int,
    users: dict[Expr, set[int]],
    index_of: dict[Expr, int],
    grouped: set[int],
) -> set[int]:
    """Return the fusion group whose last member is the binding at index `root`, as a set of indices of bindings.

    A binding can join the group only if nothing outside the group uses its variable.  Candidates are tried from the
    last to the first.  The time to check a group is proportional to its size.  Therefore, all candidates are first
    checked at once.  If they do not fit, binary search finds how many of them do.

    calls: the operator calls that can join a group, by the index of their binding.
    users: a variable of the block -> the indices of the bindings that use it.
    index_of: a variable of the block -> the index of its binding.
    grouped: the members of other groups.
    """
    members = {root}
    refused = set(grouped)
    while new := _candidates(block, calls, members, users, index_of, refused):
        fitting, failing = 0, len(new) + 1  # a number of candidates that fit, and a larger number that do not
        while fitting + 1 < failing:
            count = len(new) if failing > len(new) else (fitting + failing) // 2
            if _fits_in_one_kernel(block, calls, root, {*members, *new[:count]}):
                fitting = count
            else:
                failing = count
        members.update(new[:fitting])
        refused.update(new[fitting : fitting + 1])
    return members


def _candidates(
    block: Block,
    calls: Mapping[int, OpCall],
    members: set[int],
    users: dict[Expr, set[int]],
    index_of: dict[Expr, int],
    excluded: set[int],
) -> list[int]:
    """Return the indices of the bindings that can be added to the group `members`, in the order in which to try them.

    calls: the operator calls that can join a group, by the index of their binding.
    users: a variable of the block -> the indices of the bindings that use it.
    index_of: a variable of the block -> the index of its binding.
    excluded: the bindings that must not be added.
    """
    found: list[int] = []
    group, skipped = set(members), set(excluded)
    product = next((calls[member] for member in members if isinstance(calls[member].op.lower, Contraction)), None)
    while len(group) < _MAX_MEMBERS:
        args = (arg for member in group for arg in calls[member].args)
        waiting = {index_of[arg] for arg in args if arg in index_of} - group - skipped
        if not waiting:
            break
        new = max(waiting)
        var = block.bindings[new].var
        joins = new in calls and users[var] <= group
        if joins and product is not None:  # a kernel has at most one contraction, and reads its operands from memory
            joins = var not in product.args and not isinstance(calls[new].op.lower, Contraction)
        if not joins:
            skipped.add(new)
            continue
        if isinstance(calls[new].op.lower, Contraction):
            product = calls[new]
        group.add(new)
        found.append(new)
    return found


def _fits_in_one_kernel(block: Block, calls: Mapping[int, OpCall], root: int, members: set[int]) -> bool:
    """Return whether one kernel can compute all `members` without repeating an expensive computation.

    members: the indices of bindings, of which `root` is the last one.
    calls: the operator calls that can join a group, by the index of their binding.
    """
    group = {block.bindings[member].var: calls[member] for member in sorted(members)}
    result = block.bindings[root].var
    if all(isinstance(call.op.lower, Pointwise) and var.type == result.type for var, call in group.items()):
        return True
    try:
        Group(group, (result,)).check_fusable()
    except NotFusable:
        return False
    return True


def _fused(block: Block, root: int, members: set[int]) -> Fused:
    bindings = [block.bindings[member] for member in sorted(members)]
    result = block.bindings[root].var
    own = replace(result)
    bindings[-1] = replace(bindings[-1], var=own)
    return Fused(Block(tuple(bindings), own, type=own.type), type=own.type)
