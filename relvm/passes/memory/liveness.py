"""Liveness analysis: computes the lifetimes of the values of a block, and how they escape from the block.

A point of a block is the index of a binding.  One more point at the end stands for the use of the block's result.
"""

from __future__ import annotations

import enum
from collections import ChainMap
from dataclasses import field

from relvm.data_classes import dataclass
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

    The greater the member, the more it restricts the reuse of the value's memory.  If a value escapes in several ways,
    the greatest member is recorded.
    """

    NONE = 0
    RESULT = 1  # the value is in the block's result
    KEPT = 2  # a called function or closure can refer to it, or the result of an `if` in one branch


Roots = ChainMap[Var, Var]  # a variable that is another name of a value -> the first name of this value


def alias_roots(block: Block, outer: Roots) -> Roots:
    """Return a mapping from each alias that `block` and its enclosing blocks bind to the first name of its value.

    For example, `b` is an alias of `a` after `b = a` or `b = match_cast(a, ...)`.  The pass lower_shapes replaces each
    alias by the first name.

    outer: the result for the enclosing blocks.
    """
    roots = outer.new_child()
    for binding in block.bindings:
        if isinstance(binding.value, Var):
            roots[binding.var] = roots.get(binding.value, binding.value)
    return roots


@dataclass
class Scope:
    """The aliases and uses of the variables that a block and its enclosing blocks bind.

    fields: the result of `tuple_fields` for the block.
    roots: the result of `alias_roots` for the block.
    needed: the roots of the variables that the enclosing blocks use after the block.
    """

    fields: Fields = field(default_factory=ChainMap)
    roots: Roots = field(default_factory=ChainMap)
    needed: frozenset[Var] = frozenset()

    def enter(self, block: Block, needed: frozenset[Var]) -> Scope:
        """Return the scope of `block`, an inner block.   needed: see `Scope.needed`."""
        return Scope(tuple_fields(block, self.fields), alias_roots(block, self.roots), needed)

    def root(self, var: Var) -> Var:
        """Return the first name of the value of `var`."""
        return self.roots.get(var, var)


@dataclass
class Liveness:
    """The lifetimes of the values that a block computes or uses, including values of outer blocks.

    last: a value -> the last point at which it is needed.
    escape: a value -> how it escapes.

    Neither dict contains unused values.
    """

    last: dict[Value, int] = field(default_factory=dict)
    escape: dict[Value, Escape] = field(default_factory=dict)

    def record_use(self, value: object, point: int, escape: Escape = Escape.NONE) -> None:
        """Record that `value` is used at `point`.  Ignore values other than variables and fields of variables.

        escape: how the value escapes through this use.
        """
        if isinstance(value, Var | tuple):
            self.last[value] = max(self.last.get(value, point), point)
            self.escape[value] = max(self.escape.get(value, escape), escape)

    def last_use(self, value: Value, point: int) -> tuple[int, Escape]:
        """Return the last point at which `value` is needed, and how it escapes.

        point: the point at which the value is computed.  For an unused value, this is also the last point.
        """
        return self.last.get(value, point), self.escape.get(value, Escape.NONE)


Fields = ChainMap[object, tuple[object, ...]]  # the variable of a tuple -> the fields of the tuple, if known


def tuple_fields(block: Block, outer: Fields) -> Fields:
    """Return the known fields of the tuples that `block` and its enclosing blocks bind.

    The result maps the variable of a tuple to the values of its fields.

    outer: the known fields of the tuples that the enclosing blocks bind.
    """
    fields = outer.new_child()
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

    A tuple, a list, a view, an alias or the result of an `if` can refer to the memory of other values.  A value lives
    at least as long as all values that can refer to it.

    Parameters
    ----------
    block
        A block of a module at stage LOWERED.
    fields
        The result of `tuple_fields` for the block.
    """
    found = Liveness()
    found.record_use(block.result, len(block.bindings), Escape.RESULT)
    for point in range(len(block.bindings) - 1, -1, -1):
        _record_binding(block.bindings[point], point, fields, found)
    return found


def _record_binding(binding: Binding | MatchCast, point: int, fields: Fields, liveness: Liveness) -> None:
    """Record in `liveness` the values that the binding at `point` uses.

    Bindings are processed from the last to the first, so `liveness` already contains the uses in later bindings.
    """
    last, escape = liveness.last_use(binding.var, point)
    match binding.value:
        case If(then=Block() as then, orelse=Block() as orelse) as value:
            liveness.record_use(value.cond, point)
            for branch in (then, orelse):
                _record_branch(branch, point, fields, liveness, last)
        case TupleItem(tuple=whole, index=index) if whole in fields:
            liveness.record_use(whole, point)
            liveness.record_use(fields[whole][index], last, escape)
        case Tuple() | TupleItem() | Var() as value:
            _record_all_uses(value, last, escape, liveness)
        case Call() | PackedCall() as value:
            _record_all_uses(value, point, Escape.KEPT, liveness)
        case BuiltinCall(name=name) as value if name in CALLS_OUT:
            _record_all_uses(value, point, Escape.KEPT, liveness)
        case BuiltinCall(name=name) as value if name in _HOLDS and not isinstance(value.type, PrimType | ShapeType):
            _record_all_uses(value, last, escape, liveness)
        case KernelCall(type=TupleType(fields=parts)) as value:
            _record_all_uses(value, point, Escape.NONE, liveness)
            for i in range(len(parts)):
                liveness.record_use((binding.var, i), last, escape)
        case value:
            _record_all_uses(value, point, Escape.NONE, liveness)


def _record_all_uses(value: Expr, point: int, escape: Escape, liveness: Liveness) -> None:
    for item in walk(value):
        liveness.record_use(item, point, escape)


def _record_branch(branch: Block, point: int, fields: Fields, liveness: Liveness, last_result_use: int) -> None:
    """Record in `liveness` the values that `branch`, a branch of the `if` at `point`, uses.

    last_result_use: the last use of the result of the `if`.  Values to which the result of the branch can refer live
    until then.
    """
    inner = lifetimes(branch, tuple_fields(branch, fields))
    for value, leaves in inner.escape.items():
        if leaves is Escape.NONE:
            liveness.record_use(value, point)
        else:
            liveness.record_use(value, last_result_use, Escape.KEPT)
