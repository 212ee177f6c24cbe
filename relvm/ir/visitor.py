"""Generic operations on expressions: rewriting, free variables, substitution, structural equality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

import numpy as np

from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Constant,
    DimValue,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Module,
    Shape,
    Var,
    is_atom,
)
from relvm.ir.kernel_def import KernelDef
from relvm.ir.kernel_def_printer import kernel_lines
from relvm.ir.node import Node, children, fields_of, map_children, walk
from relvm.ir.symbolic import AnyDim, DimVar, as_var, evaluate_with, var_dim
from relvm.ir.types import FuncType, TupleType, Type, dims_of, map_dims, substitute_dims, type_vars
from relvm.numpy_dtypes import plain_bytes

AnyBinding = Binding | MatchCast
OneBinding = TypeVar("OneBinding", bound=Binding | MatchCast)
AnyNode = TypeVar("AnyNode", bound=Node)
AnyExpr = TypeVar("AnyExpr", bound=Expr)


def rewrite(rule: Callable[[Expr], Expr | None], expr: AnyNode) -> AnyNode:
    """Return `expr` with `rule` applied to every expression in it, innermost first.

    `rule` returns the replacement of an expression, or None to leave the expression unchanged.
    """

    def visit(item: Any) -> Any:
        item = map_children(visit, item)
        changed = rule(item) if isinstance(item, Expr) else None
        return item if changed is None else changed

    return visit(expr)


def substitute(expr: AnyNode, values: Mapping[Var, Expr]) -> AnyNode:
    """Return `expr` with each use of a variable in `values` replaced by its value."""
    if not values:
        return expr
    return rewrite(lambda e: values.get(e) if isinstance(e, Var) else None, expr)


def inner_blocks(value: Expr) -> list[Block]:
    """Return the blocks directly inside a binding's value: the branches of an If, or the body of a local function."""
    if not isinstance(value, If | Function):
        return []
    return [part for part in children(value) if isinstance(part, Block)]


def map_blocks(function: Callable[[Block], Block], value: AnyExpr) -> AnyExpr:
    """Return `value`, the value of a binding, with `function` applied to its `inner_blocks`.

    Return the same object if nothing changed.
    """
    if not isinstance(value, If | Function):
        return value
    return map_children(lambda part: function(part) if isinstance(part, Block) else part, value)


def map_atoms_and_blocks(atom: Callable[[Expr], Expr], block: Callable[[Block], Block], value: Expr) -> Expr:
    """Return `value`, the value of a binding, with `atom` applied to each argument and `block` applied to each inner
    block.

    Return `value` itself if nothing changed.
    """
    if isinstance(value, Var):
        return atom(value)
    return map_children(lambda part: block(part) if isinstance(part, Block) else atom(part), value)


def with_value(binding: OneBinding, value: Expr) -> OneBinding:
    """Return `binding` with `value` as its value, or `binding` itself if it already has this value."""
    return binding if value is binding.value else replace(binding, value=value)


def with_bindings(block: Block, bindings: Sequence[AnyBinding], result: Expr | None = None) -> Block:
    """Return `block` with the given bindings and the given result.  If `result` is None, the block keeps its result.

    Return `block` itself if nothing changed.
    """
    result = block.result if result is None else result
    same = len(bindings) == len(block.bindings) and result is block.result
    if same and all(a is b for a, b in zip(bindings, block.bindings, strict=True)):
        return block
    return replace(block, bindings=tuple(bindings), result=result)


def bound_vars(expr: Node) -> set[Var]:
    """Return the variables that are bound inside `expr`, as parameters or in bindings."""
    bound: set[Var] = set()
    for item in walk(expr):
        match item:
            case Function(params=params):
                bound.update(params)
            case Binding(var=var) | MatchCast(var=var):
                bound.add(var)
    return bound


def free_vars(expr: Node) -> list[Var]:
    """Return the free variables of `expr`, each once, in order of first use."""
    bound = bound_vars(expr)  # a variable is bound in only one place, so scopes need not be tracked
    used = (item for item in walk(expr) if isinstance(item, Var) and item not in bound)
    return list(dict.fromkeys(used))


def function_references(expr: Node) -> list[str]:
    """Return the names of the functions to which `expr` refers, in order.  A name occurs once for each reference."""
    return [item.name for item in walk(expr) if isinstance(item, FunctionRef)]


def is_tail_binding(block: Block, binding: Binding | MatchCast) -> bool:
    """Return whether `binding` is the last one of the block, and its variable is the result of the block."""
    return binding is block.bindings[-1] and binding.var == block.result


def tail_calls(block: Block) -> Iterator[Call]:
    """Yield the calls in tail position of a block."""
    if not block.bindings or not is_tail_binding(block, block.bindings[-1]):
        return
    match block.bindings[-1].value:
        case Call() as call:
            yield call
        case If(_, Block() as then, Block() as orelse):
            yield from tail_calls(then)
            yield from tail_calls(orelse)


def use_counts(expr: Node) -> Counter[Var]:
    """Return the number of uses of each variable inside `expr`."""
    items = list(walk(expr))
    uses = Counter(item for item in items if isinstance(item, Var))
    uses.subtract(item.var for item in items if isinstance(item, Binding | MatchCast))
    return uses


def are_functions(run: Sequence[AnyBinding]) -> TypeGuard[Sequence[Binding]]:
    """Return whether `run`, a group that `group_functions` yields, consists of local functions."""
    return isinstance(run[0].value, Function)


def group_functions(bindings: Iterable[AnyBinding]) -> Iterator[tuple[AnyBinding, ...]]:
    """Divide bindings into groups of local functions and single other bindings, and yield the groups in order.

    Adjacent bindings of local functions form one group, because these functions can call each other.
    """
    run: list[AnyBinding] = []
    for binding in bindings:
        is_function = isinstance(binding, Binding) and isinstance(binding.value, Function)
        if run and not is_function:
            yield tuple(run)
            run = []
        if is_function:
            run.append(binding)
        else:
            yield (binding,)
    if run:
        yield tuple(run)


def fresh_copy(
    expr: AnyNode, values: Mapping[Var, Expr], dims: Mapping[DimVar, AnyDim], origins: tuple[str, ...] = ()
) -> AnyNode:
    """Return a copy of a typed `expr`, with new variables in place of the variables that `expr` binds.

    The copy and the original can therefore be in the same function.  The variables in `values` and the dimension
    variables in `dims` are replaced by their values.

    origins: source locations to add to those of the new variables.
    """
    return _Copier(dict(values), dims, origins)(expr)


class _Copier:
    def __init__(self, values: dict[Var, Expr], dims: Mapping[DimVar, AnyDim], origins: tuple[str, ...]) -> None:
        self.values = values
        self.origins = origins
        self.dims = dims
        self.types: dict[Any, Any] = {None: None}

    def type(self, type_: Any) -> Any:
        if type_ not in self.types:
            self.types[type_] = substitute_dims(type_, self.dims)
        return self.types[type_]

    def bind(self, var: Var) -> None:
        origins = tuple(dict.fromkeys((*var.origins, *self.origins)))
        self.values[var] = replace(var, type=self.type(var.type), origins=origins)

    def __call__(self, item: Any) -> Any:
        match item:
            case Var():
                return self.values.get(item, item)
            case Shape(dims):
                return Shape(tuple(evaluate_with(dim, self.dims.get) for dim in dims))
            case DimValue(dim):
                return DimValue(evaluate_with(dim, self.dims.get))
            case Block(bindings=bindings):  # local functions are visible in earlier bindings
                for binding in bindings:
                    if isinstance(binding.value, Function):
                        self.bind(binding.var)
            case Binding(value=Function()):
                return map_children(self, item)
            case Binding(var=var) | MatchCast(var=var):
                self.bind(var)
                return map_children(self, item)
            case Function(params=params):
                for param in params:
                    self.bind(param)
                item = replace(item, result_type=self.type(item.result_type))
            case _ if is_atom(item):
                return item
        item = map_children(self, item)
        type_ = self.type(item.type)
        return item if type_ is item.type else replace(item, type=type_)


def structural_equal(first: Node, second: Node) -> bool:
    """Return whether two programs are equal except for the names of variables and dimension variables.

    `first` and `second` are nodes of the same kind.  If they are modules, kernel definitions are compared by their
    text.
    """
    return _Matcher().is_same(first, second)


class _Matcher:
    """Compares two programs, and maps the variables of the first one-to-one to those of the second.

    pairs: a variable or dimension variable of the first program -> the corresponding one of the second.
    matched: the variables of the second program in `pairs`.
    """

    def __init__(self) -> None:
        self.pairs: dict[Any, Any] = {}
        self.matched: set[Var | DimVar] = set()

    def is_same(self, a, b) -> bool:
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
                return same_type and (a.value is b.value or np.array_equal(plain_bytes(a.value), plain_bytes(b.value)))
            case Type():
                return self._same_type(a, b)
            case Shape() | DimValue():
                return self._same_type(a.type, b.type)
            case float():
                return a == b or (a != a and b != b)
            case tuple():
                return len(a) == len(b) and all(self.is_same(x, y) for x, y in zip(a, b, strict=True))
            case Module():  # each variable and dimension variable belongs to one function
                same = a.attributes == b.attributes and len(a.functions) == len(b.functions)
                same = same and _kernel_texts(a) == _kernel_texts(b)
                return same and all(_Matcher().is_same(f, g) for f, g in zip(a.functions, b.functions, strict=True))
            case Node():
                return all(self.is_same(getattr(a, name), getattr(b, name)) for name in _fields_in_binding_order(a))
        return a == b

    def _same_type(self, a: Type, b: Type) -> bool:
        match a, b:
            case FuncType(), FuncType():  # a function type binds its own variables
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
        partners = [v for v in type_vars(b) if v not in self.matched]
        if len(unpaired) != len(partners) or not all(map(self._pair, unpaired, partners)):
            return False
        return map_dims(lambda dim: evaluate_with(dim, lambda v: var_dim(self.pairs[v])), a) == b

    def _pair(self, a: Var | DimVar, b: Var | DimVar) -> bool:
        if a in self.pairs or b in self.matched:
            return self.pairs.get(a) is b
        self.pairs[a] = b
        self.matched.add(b)
        return True


def _fields_in_binding_order(item: Node) -> list[str]:
    """Return the names of a node's fields, with `params` first.

    Parameters of two functions are then paired before their uses are compared.
    """
    return sorted(fields_of(item), key=lambda name: name != "params")


def _kernel_texts(module: Module) -> list[list[str]]:
    kernels = (kernel for _, kernel in module.kernels if isinstance(kernel, KernelDef))
    return [[line for line, _ in kernel_lines(kernel, kernel.name)] for kernel in kernels]
