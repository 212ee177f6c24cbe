"""Generic operations on expressions: rewriting, free variables, substitution, structural equality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from relvm.ir.dims import AnyDim, DimVar, as_var, dim_vars, evaluate_with, var_dim
from relvm.ir.expr import Binding, Block, Constant, Expr, Function, MatchCast, Module, Shape, Var
from relvm.ir.node import Node, fields_of, map_children, walk
from relvm.ir.types import FuncType, TupleType, Type, dims_of, map_dims, type_vars


def rewrite(rule: Callable[[Expr], Expr | None], expr: Node) -> Node:
    """`expr` with `rule` applied to every expression in it, innermost first; None from the rule leaves it as it is."""

    def visit(item: Node) -> Node:
        item = map_children(visit, item)
        changed = rule(item) if isinstance(item, Expr) else None
        return item if changed is None else changed

    return visit(expr)


def substitute(expr: Node, values: Mapping[Var, Expr]) -> Node:
    """`expr` with free uses of the variables in `values` replaced."""
    if not values:
        return expr
    return rewrite(lambda e: values.get(e) if isinstance(e, Var) else None, expr)


def bound_vars(expr: Node) -> set[Var]:
    """Every variable that a parameter or a binding inside `expr` binds."""
    bound: set[Var] = set()
    for item in walk(expr):
        match item:
            case Function(params=params):
                bound.update(params)
            case Binding(var=var) | MatchCast(var=var):
                bound.add(var)
    return bound


def free_vars(expr: Node) -> list[Var]:
    """The variables that `expr` uses and does not bind, each once, in order of first use."""
    bound = bound_vars(expr)  # a variable is bound in one place only, so scopes need not be tracked
    used = (item for item in walk(expr) if isinstance(item, Var) and item not in bound)
    return list(dict.fromkeys(used))


def free_dim_vars(function: Function) -> list[DimVar]:
    """The dimension variables a function uses that neither its parameters nor its match_casts bind, in order of first
    use."""
    bound: set[DimVar] = {var for p in function.params for var in type_vars(p.type)}
    used: dict[DimVar, None] = {}
    for item in walk(function):
        match item:
            case MatchCast(var=var):
                bound.update(type_vars(var.type))
            case Shape(dims=dims):
                used.update(dict.fromkeys(v for dim in dims for v in dim_vars(dim)))
            case Function(params=params) if item is not function:
                bound.update(v for p in params for v in type_vars(p.type))
            case Expr(type=Type() as type_):
                used.update(dict.fromkeys(type_vars(type_)))
    return [var for var in used if var not in bound]


def map_expr_dims(function: Callable[[AnyDim], AnyDim], expr: Node) -> Node:
    """`expr` with `function` applied to every dimension in it, those of types included; variables whose type changes
    are replaced by new ones throughout."""
    renamed: dict[Var, Var] = {}

    def visit(item: Node) -> Node:
        if isinstance(item, Var):
            if item not in renamed:
                new_type = item.type and map_dims(function, item.type)
                renamed[item] = item if new_type == item.type else replace(item, type=new_type)
            return renamed[item]
        if isinstance(item, Shape):
            return Shape(tuple(map(function, item.dims)))
        item = map_children(visit, item)
        if isinstance(item, Function) and item.result_type is not None:
            item = replace(item, result_type=map_dims(function, item.result_type))
        if isinstance(item, Expr) and item.type is not None and not isinstance(item, Constant):
            new_type = map_dims(function, item.type)
            item = item if new_type == item.type else replace(item, type=new_type)
        return item

    return visit(expr)


def structural_equal(first: Node, second: Node) -> bool:
    """Whether the two are the same program up to the names and identities of variables and of dimension variables."""
    return _Matcher().same(first, second)


class _Matcher:
    """Pairs up bound variables and dimension variables as they are met, one to one."""

    def __init__(self) -> None:
        self.pairs: dict[Var | DimVar, Var | DimVar] = {}
        self.taken: set[Var | DimVar] = set()

    def same(self, a, b) -> bool:
        if type(a) is not type(b):
            return False
        match a:
            case Var():
                return (a in self.pairs and self.pairs[a] is b) or (
                    (a.type is None) == (b.type is None)
                    and (a.type is None or self._same_type(a.type, b.type))
                    and self._pair(a, b)
                )
            case Constant():
                same_type = a.value.dtype == b.value.dtype and a.value.shape == b.value.shape
                return same_type and (a.value is b.value or a.value.tobytes() == b.value.tobytes())
            case Type():
                return self._same_type(a, b)
            case Shape():
                return self._same_type(a.type, b.type)
            case float():
                return a == b or (a != a and b != b)
            case tuple():
                return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
            case Module():  # variables belong to one function, and so do dimension variables
                same = a.attributes == b.attributes and len(a.functions) == len(b.functions)
                return same and all(_Matcher().same(f, g) for f, g in zip(a.functions, b.functions, strict=True))
            case Node():
                return all(self.same(getattr(a, name), getattr(b, name)) for name in _in_binding_order(a))
        return a == b

    def _same_type(self, a: Type, b: Type) -> bool:
        match a, b:
            case FuncType(), FuncType():  # it binds its own variables
                inside = _Matcher()
                same = len(a.params) == len(b.params) and a.pure == b.pure
                return same and all(map(inside._same_type, (*a.params, a.result), (*b.params, b.result)))
            case TupleType(fields), TupleType(others):
                return len(fields) == len(others) and all(map(self._same_type, fields, others))
        ours, theirs = list(dims_of(a)), list(dims_of(b))
        if len(ours) != len(theirs):
            return False
        plain = [(as_var(x), as_var(y)) for x, y in zip(ours, theirs, strict=True)]
        if not all(self._pair(x, y) for x, y in plain if x and y):
            return False
        unpaired = [v for v in type_vars(a) if v not in self.pairs]
        partners = [v for v in type_vars(b) if v not in self.taken]
        if len(unpaired) != len(partners) or not all(map(self._pair, unpaired, partners)):
            return False
        return map_dims(lambda dim: evaluate_with(dim, lambda v: var_dim(self.pairs[v])), a) == b

    def _pair(self, a: Var | DimVar, b: Var | DimVar) -> bool:
        if a in self.pairs or b in self.taken:
            return self.pairs.get(a) is b
        self.pairs[a] = b
        self.taken.add(b)
        return True


def _in_binding_order(item: Node) -> list[str]:
    """A node's fields with the parameters of a function first, so that they are paired before they are used."""
    return sorted(fields_of(item), key=lambda name: name != "params")


def block_of(expr: Expr) -> Block:
    """`expr` as a block: itself, or a block without bindings."""
    return expr if isinstance(expr, Block) else Block((), expr, type=expr.type)
