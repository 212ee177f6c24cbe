"""The generator of random modules: entry functions, and calls of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from random_programs import control, effects, functions, kernels, tensors
from random_programs.arguments import arguments
from random_programs.replay import Run
from random_programs.scalars import scalar
from random_programs.state import Callee, Source, State, has_function
from random_programs.types import SCALARS
from relvm.ir.dtypes import F64
from relvm.ir.expr import DimValue, DTypeValue, Expr, Module, Null, String, Tuple
from relvm.ir.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType, Type


@dataclass(frozen=True)
class Programs:
    """A module, the entry functions that Python can call, and calls of them.

    An entry function with all functions that it calls is one program.  About a quarter of the functions are private.
    """

    module: Module
    entries: tuple[str, ...]
    runs: tuple[Run, ...]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a short text for hypothesis.  The text that reproduces a failure is in a note of the error."""
        printer.text(f"<{len(self.entries)} programs>")


@st.composite
def programs(draw: Callable[[st.SearchStrategy], Any], most: int = 22, has_kernels: bool = True) -> Programs:
    """Generate a module with up to `most` functions, or up to two more if the last ones are mutually recursive.

    has_kernels: whether the module may define kernels.
    """
    source = Source(draw)
    state = State(source, make, has_kernels=has_kernels)
    entries: list[Callee] = []
    while len(entries) < most and source.more(100):
        entries.extend(_entry(state, len(entries)))
    private = {callee.target for callee in entries if source.one_in(4)}
    module = state.builder.module()
    module = module.with_functions(tuple(replace(f, private=f.name in private) for f in module.functions))
    public = [callee for callee in entries if callee.target not in private]
    callable_ones = [callee for callee in public if not has_function(TupleType(callee.params))]
    runs = [
        Run(callee.target, arguments(source, callee)) for callee in callable_ones for _ in range(source.integer(1, 3))
    ]
    return Programs(module, tuple(callee.target for callee in callable_ones), tuple(runs))


def _entry(state: State, number: int) -> list[Callee]:
    kind = state.source.integer(0, 7)
    if kind < 6:
        made = [functions.module_function(state, f"f{number}", add_statements)]
    else:
        names = [f"f{number + i}" for i in range(1 if kind == 6 else state.source.integer(2, 3))]
        made = functions.recursive_functions(state, names, add_statements)
    state.callees.extend(made)
    return made


def make(state: State, type_: Type) -> Expr:
    """Return an expression of type `type_`, which can use the variables in scope."""
    match type_:
        case PrimType(dtype, value):
            if value is None:
                return scalar(state, dtype)
            return state.find_type(type_) or DimValue(value)
        case TensorType():
            return tensors.tensor(state, type_)
        case ShapeType():
            return tensors.shape(state, type_)
        case TupleType(fields):
            found = state.find_type(type_) if state.source.integer(0, 2) else None
            return found or Tuple(tuple(make(state, field) for field in fields))
        case FuncType():
            return functions.function_value(state, type_, add_statements)
        case ObjectType():
            found = state.find(lambda t: not has_function(t)) if state.source.integer(0, 2) else None
            return found or state.source.choice([Null(), String("a text"), DTypeValue(F64)])
    raise AssertionError(f"nothing makes a {type_}")


def add_statements(state: State, count: int) -> None:
    """Add up to `count` random statements to the current block."""
    while count > 0 and state.affords(2) and state.source.more(6):
        state.source.choice(_STATEMENTS)(state)
        count -= 1


def _bound(function: Callable[[State], Expr | None]) -> Callable[[State], None]:
    """Return a statement that binds the expression that `function` returns, if there is one."""

    def statement(state: State) -> None:
        expr = function(state)
        if expr is not None:
            state.emit(expr)

    return statement


def _any_scalar(state: State) -> Expr:
    return scalar(state, state.source.choice(SCALARS).dtype)


def _conditional(state: State) -> Expr | None:
    return control.conditional(state, add_statements)


def _local_function(state: State) -> None:
    functions.local_function(state, add_statements)


def _value(state: State) -> Expr:
    return make(state, functions.value_type(state))


def _if_has_effects(function: Callable[[State], None]) -> Callable[[State], None]:
    """Return a statement that does nothing in pure functions, and calls `function` elsewhere."""

    def statement(state: State) -> None:
        if state.may_have_effects:
            function(state)

    return statement


_operator = _bound(tensors.operator_on_tensors)
_STATEMENTS: tuple[Callable[[State], None], ...] = (
    _operator,
    _operator,
    _operator,
    _operator,
    _bound(_any_scalar),
    _bound(_any_scalar),
    _bound(control.tuple_of_scope),
    _bound(control.item),
    _bound(control.item),
    functions.call,
    functions.call,
    functions.call,
    _local_function,
    _bound(_value),
    functions.call_of_value,
    functions.call_of_value,
    functions.reference,
    _bound(_conditional),
    _bound(_conditional),
    _bound(tensors.operator_on_shapes),
    control.checked,
    kernels.kernel_call,
    effects.echo,
    effects.part,
    effects.pure_number,
    effects.pick,
    _if_has_effects(effects.tell_of_scope),
    effects.call_back,
    effects.packed_value,
)
