"""Liveness analysis: computes the lifetimes of the values of a block, and how they escape from the block.

A point of a block is the index of a binding.  One more point at the end stands for the use of the block's result.
"""

from __future__ import annotations

import enum
from collections import ChainMap
from dataclasses import dataclass, field

from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Expr,
    If,
    KernelCall,
    MatchCast,
    PackedCall,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.node import walk
from relvm.ir.types import PrimType, ShapeType, TupleType
from relvm.tables import BUILTINS, parse_signature

_SIGNATURES = {row.name: parse_signature(row.signature) for row in BUILTINS}
# Builtins that run other functions or code of the host.  These can store references to the arguments.
CALLS_OUT = frozenset(
    name
    for name, signature in _SIGNATURES.items()
    if signature.before[:1] == ("ctx",) and "any" in signature.before + signature.repeated
)
# Builtins whose result can be an argument, contain an argument, or be a view of an argument.
_HOLDS = frozenset(
    name for name, signature in _SIGNATURES.items() if signature.result in ("any", "tensor", "tuple", "list", "closure")
)

# A value is a variable, or a pair (variable, index) for one of several tensors that a kernel call computes.
Value = Var | tuple[Var, int]


class Escape(enum.IntEnum):
    """How a value escapes from a block: which references to it can exist after its last use in the block.

    A greater member restricts the reuse of the value's memory more.  If a value escapes in several ways, the greatest
    member is recorded.
    """

    NONE = 0
    RESULT = 1  # the value is in the block's result
    KEPT = 2  # a called function or closure can refer to it, or the result of an `if` in one branch


@dataclass
class Liveness:
    """The lifetimes of the values that a block computes or uses, including values of outer blocks.

    last: a value -> the last point at which it is needed.   escape: a value -> how it escapes.   Unused values are not
    in these dicts.
    """

    last: dict[Value, int] = field(default_factory=dict)
    escape: dict[Value, Escape] = field(default_factory=dict)

    def need(self, value: object, point: int, escape: Escape = Escape.NONE) -> None:
        """Record a use of `value` at `point`.  Do nothing if `value` is not a variable or a field of a variable.

        escape: how the value escapes through this use.
        """
        if isinstance(value, Var | tuple):
            self.last[value] = max(self.last.get(value, point), point)
            self.escape[value] = max(self.escape.get(value, escape), escape)

    def of(self, value: Value, point: int) -> tuple[int, Escape]:
        """Return the last point at which `value` is needed, and how it escapes.

        point: the point at which the value is computed.  If the value is unused, this is also the last point.
        """
        return self.last.get(value, point), self.escape.get(value, Escape.NONE)


Fields = ChainMap[object, tuple[object, ...]]  # the variable of a tuple -> the fields of the tuple, if known


def fields_in(block: Block, around: Fields) -> Fields:
    """Return the known fields of the tuples that `block` and its enclosing blocks bind.

    around: the known fields of the tuples of enclosing blocks.
    """
    fields = around.new_child()
    for binding in block.bindings:
        match binding.value:
            case Tuple(fields=parts):
                fields[binding.var] = parts
            case KernelCall(type=TupleType(fields=parts)):
                fields[binding.var] = tuple((binding.var, i) for i in range(len(parts)))
            case TupleItem(whole, index) if whole in fields and fields[whole][index] in fields:
                fields[binding.var] = fields[fields[whole][index]]
            case Var() as same if same in fields:
                fields[binding.var] = fields[same]
    return fields


def lifetimes(block: Block, fields: Fields) -> Liveness:
    """Return the lifetimes of all values that a block computes or uses.

    A value lives at least as long as any value that can refer to it, which can be a tuple, list, view, alias or the
    result of an `if`.

    Parameters
    ----------
    block
        A block of a module at stage LOWERED.
    fields
        The result of `fields_in` for the block.
    """
    found = Liveness()
    found.need(block.result, len(block.bindings), Escape.RESULT)
    for point in range(len(block.bindings) - 1, -1, -1):
        _binding(block.bindings[point], point, fields, found)
    return found


def _binding(binding: Binding | MatchCast, point: int, fields: Fields, found: Liveness) -> None:
    """Add the uses of the binding at `point` to `found`.  Later bindings are already processed."""
    last, escape = found.of(binding.var, point)
    match binding.value:
        case If(then=Block() as then, orelse=Block() as orelse) as value:
            found.need(value.cond, point)
            for branch in (then, orelse):
                _branch(branch, point, fields, found, last)
        case TupleItem(tuple=whole, index=index) if whole in fields:
            found.need(whole, point)
            found.need(fields[whole][index], last, escape)
        case Tuple() | TupleItem() | Var() as value:
            _need_all(value, last, escape, found)
        case Call() | PackedCall() as value:
            _need_all(value, point, Escape.KEPT, found)
        case BuiltinCall(name=name) as value if name in CALLS_OUT:
            _need_all(value, point, Escape.KEPT, found)
        case BuiltinCall(name=name) as value if name in _HOLDS and not isinstance(value.type, PrimType | ShapeType):
            _need_all(value, last, escape, found)
        case KernelCall(type=TupleType(fields=parts)) as value:
            _need_all(value, point, Escape.NONE, found)
            for i in range(len(parts)):
                found.need((binding.var, i), last, escape)
        case value:
            _need_all(value, point, Escape.NONE, found)


def _need_all(value: Expr, point: int, escape: Escape, found: Liveness) -> None:
    for item in walk(value):
        found.need(item, point, escape)


def _branch(branch: Block, point: int, fields: Fields, found: Liveness, last: int) -> None:
    """Add the uses in `branch`, a branch of the `if` at `point`, to `found`.

    last: the last use of the result of the `if`.  Values to which the result of the branch can refer live until then.
    """
    inner = lifetimes(branch, fields_in(branch, fields))
    for value, leaves in inner.escape.items():
        if leaves is Escape.NONE:
            found.need(value, point)
        else:
            found.need(value, last, Escape.KEPT)
