"""Common subexpression elimination: compute equal expressions only once."""

from __future__ import annotations

from collections.abc import Hashable

from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    DimValue,
    DTypeValue,
    Expr,
    Function,
    FunctionRef,
    MatchCast,
    Null,
    OpCall,
    PackedCall,
    PackedRef,
    Prim,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
    constant_key,
)
from relvm.ir.type_inference import is_impure_call
from relvm.ir.types import FuncType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_atoms_and_blocks, map_blocks, with_bindings, with_value
from relvm.passes.pass_manager import function_pass
from relvm.passes.source_locations import add_origins
from relvm.tables import BUILTINS

_MERGED_BUILTINS = frozenset(row.name for row in BUILTINS if row.effect == "PURE")


@function_pass("cse", at=Stage.ANF, optional=True)
def cse(function: Function) -> Function:
    """Reuse the result of a computation instead of repeating it with the same arguments:

    y = relu(x); z = relu(x); t = (y, z)   ->   y = relu(x); t = (y, y)

    The results of operators, tuples, tuple items and calls without effects are reused in the rest of their block and in
    its inner blocks.  They are not reused in local functions, which would have to capture them.  Closures and objects
    that a builtin allocates are not merged.  The source locations (origins) of the removed variables are added to those
    of the reused variable.
    """
    eliminator = _Eliminator()
    return add_origins(map_blocks(eliminator.block, function), eliminator.added_origins)


class _Eliminator:
    """Removes repeated computations from the blocks of one function.

    values: the key of a computation -> the variable bound to its result.
    renamed: a removed variable -> its replacement.
    added_origins: a reused variable -> the source locations (origins) of the variables that it replaces.
    """

    def __init__(self) -> None:
        self.values: dict[Hashable, Var] = {}
        self.renamed: dict[Var, Expr] = {}
        self.added_origins: dict[Var, dict[str, None]] = {}

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        added: list[Hashable] = []
        for binding in block.bindings:
            kept = self.binding(binding, added)
            if kept is not None:
                bindings.append(kept)
        for key in added:
            del self.values[key]
        return with_bindings(block, bindings, self.atom(block.result))

    def binding(self, binding: Binding | MatchCast, added: list[Hashable]) -> Binding | MatchCast | None:
        """Return `binding` with removed variables replaced by the variables that have the same values.

        Return None if an earlier binding already computes the value of `binding`.

        If the value is new and can be reused, record it in `values`, and append its key to `added`.
        """
        var, value = binding.var, self.value(binding.value)
        if isinstance(binding, Binding) and (key := computation_key(value)) is not None:
            key = (key, var.type)
            if key in self.values:
                self.renamed[var] = self.values[key]
                self.added_origins.setdefault(self.values[key], {}).update(dict.fromkeys(var.origins))
                return None
            self.values[key] = var
            added.append(key)
        return with_value(binding, value)

    def value(self, value: Expr) -> Expr:
        outer = self.values
        if isinstance(value, Function):
            self.values = {}
        value = map_atoms_and_blocks(self.atom, self.block, value)
        self.values = outer
        return value

    def atom(self, expr: Expr) -> Expr:
        return self.renamed.get(expr, expr) if isinstance(expr, Var) else expr


def computation_key(value: Expr) -> Hashable:
    """Return a key of the computation `value`, or None if its result must not be reused.

    Computations with equal keys have the same result.
    """
    match value:
        case OpCall(op, args, attributes):
            return None if is_impure_call(value) else (op, _attribute_key(attributes), *map(_atom_key, args))
        case Tuple(fields):
            return (Tuple, *map(_atom_key, fields))
        case TupleItem(tuple_, index):
            return (TupleItem, index, _atom_key(tuple_))
        case PackedCall(name, args, True):
            return (PackedCall, name, *map(_atom_key, args))
        case Call(Expr(type=FuncType(pure=True)) as callee, args):
            return (Call, _atom_key(callee), *map(_atom_key, args))
        case BuiltinCall(name, args) if name in _MERGED_BUILTINS:
            return (BuiltinCall, name, *map(_atom_key, args))
    return None


def _atom_key(atom: Expr) -> Hashable:
    match atom:
        case Var():
            return atom
        case Constant(value=array):
            return (Constant, constant_key(array))
        case Prim(value, dtype):
            return (Prim, dtype, repr(value))
        case String(value) | DTypeValue(value) | FunctionRef(value) | PackedRef(value):
            return (type(atom), value)
        case Shape(dims):
            return (Shape, dims)
        case DimValue(dim):
            return (DimValue, dim)
        case Null():
            return Null
    raise AssertionError(f"expected an atom, got {type(atom).__name__}")


def _attribute_key(value: object) -> Hashable:
    """Return a key for the value of an attribute.

    Unlike with `==`, the values 1, 1.0 and true have different keys, and so do 0.0 and -0.0.
    """
    if isinstance(value, tuple):
        return tuple(map(_attribute_key, value))
    return repr(value) if isinstance(value, float) else (type(value), value)
