"""Sharing of kernels between fused groups that differ only in scalar constants, such as scales of quantized layers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

from relvm.ir.expr import Binding, Block, Constant, Expr, Fused, MatchCast, Module, OpCall, Var
from relvm.ir.node import walk
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_blocks, with_bindings, with_value
from relvm.kernels.fusion_group import Group
from relvm.ops import add, divide, multiply, subtract
from relvm.passes.pass_manager import module_pass

# Operators whose kernels do the same for every value of a floating-point constant.  Kernels that divide integers by a
# constant do not check whether it is 0.
_OPERATORS = (add, subtract, multiply, divide)

# Positions of constants in a fused group: the index of a binding, and the index of an argument of its operator call.
_Position = tuple[int, int]


@module_pass("share_kernels", at=Stage.ANF, optional=True)
def share_kernels(module: Module) -> Module:
    """Replace scalar constants in fused groups by variables if the groups can then share a kernel:

    y = fused { s = add(a, b);  t = multiply(s, const(f32[], 0.5));   return t }
    z = fused { s = add(y, c);  t = multiply(s, const(f32[], 0.25));  return t }   ->
    k = const(f32[], 0.5)
    y = fused { s = add(a, b);  t = multiply(s, k);  return t }
    m = const(f32[], 0.25)
    z = fused { s = add(y, c);  t = multiply(s, m);  return t }

    A kernel contains its scalar constants as numbers, but reads variables from memory.  Only constants that differ
    between the groups are replaced.
    """
    fused = [item for function in module.functions for item in walk(function) if isinstance(item, Fused)]
    positions = _positions_to_replace([group for group in fused if isinstance(group.body, Block)])
    if not positions:
        return module

    def of_block(block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, Fused) and value in positions:
                value, constants = _with_variables(value, positions[value])
                bindings += [Binding(var, constant) for var, constant in constants.items()]
            bindings.append(with_value(binding, map_blocks(of_block, value)))
        return with_bindings(block, bindings)

    return module.with_functions(tuple(map_blocks(of_block, function) for function in module.functions))


def _positions_to_replace(groups: list[Fused]) -> dict[Fused, tuple[_Position, ...]]:
    """Return the positions of the constants to replace, for each group that has any.

    A position is a pair: the index of a binding, and the index of an argument of its operator call.
    """
    found: dict[Fused, tuple[_Position, ...]] = {}
    for alike in _buckets([group for group in groups if any(_constants(group))], _operators):
        if _differing(alike):
            for equal in _buckets(alike, _kernel_without_constants):
                if differing := _differing(equal):
                    found |= dict.fromkeys(equal, differing)
    return found


def _differing(groups: list[Fused]) -> tuple[_Position, ...]:
    """Return the positions at which `groups` have different constants, as pairs of a binding and an argument index.

    All groups must have constants at the same positions.
    """
    values: dict[_Position, set[bytes]] = {}
    for group in groups:
        for position, constant in _constants(group):
            values.setdefault(position, set()).add(constant.value.tobytes())
    return tuple(position for position, different in values.items() if len(different) > 1)


def _buckets(groups: list[Fused], key_of: Callable[[Fused], Hashable]) -> Iterator[list[Fused]]:
    """Yield lists of groups with equal keys.  Lists with a single group are left out."""
    buckets: dict[Hashable, list[Fused]] = {}
    for group in groups:
        buckets.setdefault(key_of(group), []).append(group)
    yield from (bucket for bucket in buckets.values() if len(bucket) > 1)


def _operators(group: Fused) -> Hashable:
    """Return a key of the operators in `group`, which is fast to compute.

    Groups with different keys cannot share a kernel.
    """
    return (*(at for at, _ in _constants(group)), *(call.op.name for _, call in _calls(group)))


def _kernel_without_constants(group: Fused) -> Hashable:
    """Return the key of the kernel that the group would have if its constants were variables."""
    variables, _ = _with_variables(group, tuple(at for at, _ in _constants(group)))
    result = variables.body.result
    return Group(dict(_calls(variables)), (result,)).kernel_key if isinstance(result, Var) else group


def _calls(group: Fused) -> list[tuple[Var, OpCall]]:
    return [(binding.var, binding.value) for binding in group.body.bindings if isinstance(binding.value, OpCall)]


def _constants(group: Fused) -> Iterator[tuple[_Position, Constant]]:
    """Yield the position and the value of each scalar constant that could be a variable."""
    for i, binding in enumerate(group.body.bindings):
        call = binding.value
        if isinstance(call, OpCall) and call.op in _OPERATORS:
            for k, arg in enumerate(call.args):
                if isinstance(arg, Constant) and arg.value.size == 1 and arg.tensor_type.known_dtype.is_float:
                    yield (i, k), arg


def _with_variables(group: Fused, positions: tuple[_Position, ...]) -> tuple[Fused, dict[Var, Expr]]:
    """Replace the constants at `positions` by new variables.  Return the new group, and the value of each variable."""
    constants: dict[Var, Expr] = {}
    bindings = list(group.body.bindings)
    for i, k in positions:
        call = bindings[i].value
        assert isinstance(call, OpCall)
        var = bindings[i].var.intermediate("constant", call.args[k].type)
        constants[var] = call.args[k]
        bindings[i] = with_value(bindings[i], replace(call, args=(*call.args[:k], var, *call.args[k + 1 :])))
    return replace(group, body=replace(group.body, bindings=tuple(bindings))), constants
