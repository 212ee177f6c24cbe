"""State of the generator while it builds a module: choices, the scope, and the functions that can be called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.builder import Builder
from relvm.ir.dtypes import DType
from relvm.ir.expr import Expr, Var
from relvm.ir.symbolic import AnyDim, DimVar, dim_vars, evaluate_with, var_dim
from relvm.ir.types import FuncType, TensorType, TupleType, Type, dims_of, format_type, is_proven

T = TypeVar("T")

PLAIN_COST = 20  # maximum cost of a call of a function value
DIM_LIMIT = 64  # maximum size of a dimension
SIZE_LIMIT = 2000  # maximum number of elements of a tensor
PARAMETER_LIMIT = 4  # maximum size of a dimension of a parameter


@functools.cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


@dataclass(frozen=True)
class Source:
    """Random choices, drawn from hypothesis.  They shrink towards the first option, the smallest number, and False."""

    draw: Callable[[st.SearchStrategy], Any]

    def integer(self, low: int, high: int) -> int:
        return self.draw(_integers(low, high))

    def one_in(self, count: int) -> bool:
        return self.draw(_integers(0, count - 1)) == count - 1

    def choice(self, options: Sequence[T]) -> T:
        return options[self.draw(_integers(0, len(options) - 1))] if len(options) > 1 else options[0]

    def more(self, average: int) -> bool:
        """Choose whether a list has one more element."""
        return self.draw(_integers(0, average)) != 0


@dataclass(frozen=True)
class Callee:
    """A function that can be called.

    cost: the maximum cost of a call, in executed statements.  own: the dimension variables that a call binds; other
    variables in the parameter types belong to the enclosing function.  bound: the maximum of the first parameter if it
    is a counter, otherwise None.  pure: whether a call has no side effects.  fails: whether a call can fail.  plain:
    whether the function can be used as a value.
    """

    target: str | Var
    params: tuple[Type, ...]
    result: Type
    cost: int
    own: tuple[DimVar, ...] = ()
    bound: int | None = None
    pure: bool = True
    fails: bool = False
    plain: bool = True


@dataclass
class Frame:
    """A function or a branch being built.

    scope: the variables in scope.  dims: the known dimensions.  pure: whether side effects are forbidden.  may_fail:
    whether failures are allowed.  depth: the nesting depth.
    """

    scope: list[Var]
    dims: list[AnyDim]
    pure: bool = False
    may_fail: bool = True
    depth: int = 0


@dataclass
class Account:
    """The cost of a function being built, and whether it has side effects or can fail.

    budget: the maximum of `spent`.
    """

    budget: int
    spent: int = 0
    effects: bool = False
    fails: bool = False


@dataclass
class State:
    """The module being built.

    make: a function that returns an expression of a given type.  callees: the functions of the module.  locals: the
    local functions, by variable.  limits: the largest value of each dimension variable.  kernels: the dtype and the
    rank of the parameter of each kernel, by name.
    """

    source: Source
    make: Callable[[State, Type], Expr]
    builder: Builder = field(default_factory=Builder)
    callees: list[Callee] = field(default_factory=list)
    locals: dict[Var, Callee] = field(default_factory=dict)
    limits: dict[DimVar, int] = field(default_factory=dict)
    has_kernels: bool = True
    kernels: dict[str, tuple[DType, int]] = field(default_factory=dict)
    frame: Frame = field(default_factory=lambda: Frame([], []))
    account: Account = field(default_factory=lambda: Account(0))

    def value(self, type_: Type) -> Expr:
        """Return an expression of a type, which can use the variables in scope."""
        return self.make(self, type_)

    def emit(self, expr: Expr, name: str | None = None) -> Var:
        """Bind an expression to a new variable, add the variable to the scope, and return it."""
        return self.see(self.builder.emit(expr, name))

    def see(self, var: Var) -> Var:
        self.frame.scope.append(var)
        self.account.spent += 1
        return var

    @contextmanager
    def inside(self, **changes: Any) -> Iterator[Frame]:
        """Enter a nested frame as a context manager.  Variables added inside it are not visible outside.

        changes: attributes of the new frame that differ from those of the enclosing frame.
        """
        outer = self.frame
        self.frame = replace(outer, scope=list(outer.scope), dims=list(outer.dims), depth=outer.depth + 1)
        self.frame = replace(self.frame, **changes)
        try:
            yield self.frame
        finally:
            self.frame = outer

    @contextmanager
    def spending(self, budget: int) -> Iterator[Account]:
        """Replace the account by a new one, as a context manager.

        The cost of statements added meanwhile does not count for the enclosing function.
        """
        outer = self.account
        self.account = account = Account(budget)
        try:
            yield account
        finally:
            self.account = outer

    def affords(self, cost: int) -> bool:
        return self.account.spent + cost <= self.account.budget

    @property
    def may_have_effects(self) -> bool:
        return not self.frame.pure

    def bind(self, params: Sequence[Var]) -> None:
        """Add parameters to the scope, and their dimension variables to the known dimensions."""
        for param in params:
            self.frame.scope.append(param)
            self.know(param.type, PARAMETER_LIMIT)

    def know(self, type_: Type, limit: int) -> None:
        """Add the dimension variables that are themselves sizes in a type to the known dimensions.

        limit: the largest value of these variables.
        """
        for var in plain_dim_vars(type_):
            if var_dim(var) not in self.frame.dims:
                self.frame.dims.append(var_dim(var))
                self.limits[var] = limit

    def limit(self, dim: AnyDim) -> int:
        """Return an upper bound of a dimension.  It exceeds DIM_LIMIT if the dimension is not known."""
        if isinstance(dim, int):
            return dim
        if any(var not in self.limits for var in dim_vars(dim)):
            return DIM_LIMIT + 1
        positive = replace(dim, terms=tuple((m, c) for m, c in dim.terms if c > 0))
        value = evaluate_with(positive, self.limits.get)
        return value if isinstance(value, int) else DIM_LIMIT + 1

    def fits(self, type_: Type) -> bool:
        """Return whether values of a type are within DIM_LIMIT and SIZE_LIMIT.

        Types other than tensor types of known shape always fit.
        """
        if not isinstance(type_, TensorType) or type_.shape is None:
            return True
        size = 1
        for dim in type_.shape:
            size *= max(1, self.limit(dim))
        return size <= SIZE_LIMIT and all(self.limit(dim) <= DIM_LIMIT for dim in type_.shape)

    def find(self, test: Callable[[Type], bool]) -> Var | None:
        """Choose a variable in scope whose type passes the test, preferably a late one.  Return None if none does."""
        found = [var for var in reversed(self.frame.scope) if test(var.type) and self.is_plain(var)]
        return self.source.choice(found) if found else None

    def find_type(self, type_: Type) -> Var | None:
        """Choose a variable in scope whose type is `type_` or more specific.  Return None if there is none."""
        return self.find(lambda got: is_of(type_, got))

    def is_plain(self, var: Var) -> bool:
        """Return whether a variable can be used as a value.  This is false for some local functions."""
        return var not in self.locals or self.locals[var].plain


def is_of(expected: Type, got: Type) -> bool:
    """Return whether values of type `got` have type `expected`.

    Function types must agree up to the names of dimension variables.
    """
    match expected, got:
        case FuncType(), FuncType():
            return (got.pure or not expected.pure) and _form(expected) == _form(got)
        case TupleType(a), TupleType(b):
            return len(a) == len(b) and all(is_of(x, y) for x, y in zip(a, b, strict=True))
    return is_proven(expected, got)


def _form(type_: Type) -> str:
    """Return the text of a type with numbered dimension variables and without the side effects of functions."""
    names: dict[DimVar, str] = {}
    return format_type(type_, lambda var: names.setdefault(var, f"d{len(names)}")).replace("=>", "->")


def has_function(type_: Type) -> bool:
    match type_:
        case FuncType():
            return True
        case TupleType(fields):
            return any(map(has_function, fields))
    return False


def is_known(type_: Type, dims: Sequence[AnyDim]) -> bool:
    """Return whether every dimension variable in a type is one of `dims`."""
    known = set(dims)
    return all(var_dim(var) in known for dim in dims_of(type_) for var in dim_vars(dim))
