"""Liveness: the lifetimes of the values of a block, and whether they escape it.

The points of a block are its bindings, numbered from 0, and one more at its end, where the result is taken.
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
# Builtins whose arguments the machine or the host may keep, because they run other functions or code of the host.
CALLS_OUT = frozenset(
    name
    for name, signature in _SIGNATURES.items()
    if signature.before[:1] == ("ctx",) and "any" in signature.before + signature.repeated
)
# Builtins whose result may be an argument, hold one, or be a view of one.
_HOLDS = frozenset(
    name for name, signature in _SIGNATURES.items() if signature.result in ("any", "tensor", "tuple", "list", "closure")
)

# A value: a variable, or one of several tensors that a kernel call makes, as (variable, index).
Value = Var | tuple[Var, int]


class Escape(enum.IntEnum):
    """Escape class of a value: which reference may outlive its last use in a block.  Greater ones are less precise."""

    NONE = 0
    RESULT = 1  # in the block's result
    KEPT = 2  # held by a function or closure that it was passed to, or in the result of an `if` on one path


@dataclass
class Liveness:
    """The lifetimes of the values that a block makes or uses, those of outer blocks included.

    last: the last point at which a value is needed.   escape: what may hold it afterwards.   Neither contains unused
    values.
    """

    last: dict[Value, int] = field(default_factory=dict)
    escape: dict[Value, Escape] = field(default_factory=dict)

    def need(self, value: object, point: int, escape: Escape = Escape.NONE) -> None:
        """Record a use of `value` if it is a variable or a field of one."""
        if isinstance(value, Var | tuple):
            self.last[value] = max(self.last.get(value, point), point)
            self.escape[value] = max(self.escape.get(value, escape), escape)

    def of(self, value: Value, point: int) -> tuple[int, Escape]:
        """Return the last point and the escape of a value that is made at `point`."""
        return self.last.get(value, point), self.escape.get(value, Escape.NONE)


Fields = ChainMap[object, tuple[object, ...]]  # variable of a tuple -> the fields of the tuple, where they are known


def fields_in(block: Block, around: Fields) -> Fields:
    """Return the known fields of the tuples in a block and in enclosing blocks."""
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
    """Return the lifetimes of all values that a block makes or uses.

    A value lives as long as anything that may hold it: tuples, lists, views, aliases and the results of ifs.

    Parameters
    ----------
    block
        At stage LOWERED.
    fields
        `fields_in` of the block.
    """
    found = Liveness()
    found.need(block.result, len(block.bindings), Escape.RESULT)
    for point in range(len(block.bindings) - 1, -1, -1):
        _binding(block.bindings[point], point, fields, found)
    return found


def _binding(binding: Binding | MatchCast, point: int, fields: Fields, found: Liveness) -> None:
    """Add the uses of one binding; later bindings have been processed."""
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
    """Add the uses of a branch of the `if` at `point`.

    Values that the result of the branch may hold live until `last`, as the result of the `if` does.
    """
    inner = lifetimes(branch, fields_in(branch, fields))
    for value, leaves in inner.escape.items():
        if leaves is Escape.NONE:
            found.need(value, point)
        else:
            found.need(value, last, Escape.KEPT)
