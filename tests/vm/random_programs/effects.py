"""Calls of the host: packed functions that keep a log, fail, and call back."""

from __future__ import annotations

from random_programs.control import largest, renamed
from random_programs.scalars import scalar
from random_programs.state import PLAIN_COST, State, has_function
from random_programs.types import FUNCTIONS
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Call, DTypeValue, Expr, Null, PackedCall, PackedRef, String, Var, prim
from relvm.ir.symbolic import dim_var
from relvm.ir.types import OBJECT, PrimType, TensorType

INTEGER = PrimType(I64)
_PURE, _IMPURE = FUNCTIONS[0], FUNCTIONS[2]


def _effect(state: State) -> None:
    assert state.may_have_effects
    state.account.effects = True


def tell(state: State, *values: Expr) -> Var:
    """Add a call that appends `values` to the host's log.  Return its result, the length of the log."""
    _effect(state)
    return state.emit(PackedCall("random.tell", values, type=INTEGER))


def tell_of_scope(state: State) -> None:
    known = [var for var in reversed(state.frame.scope) if not has_function(var.type)]
    values: list[Expr] = [state.source.choice(known)] if known else []
    if state.source.one_in(2):
        values.append(state.source.choice([String("told"), Null(), DTypeValue(F32), scalar(state, I64, 2)]))
    tell(state, *values)


def echo(state: State) -> None:
    """Pass a value to a host function that returns it.

    The call declares the type of the value, or a match_cast recovers the type from an untyped result.
    """
    var = state.find(lambda type_: not has_function(type_) and type_ != OBJECT)
    if var is None:
        return
    pure = state.frame.pure or state.source.one_in(2)
    if not pure:
        _effect(state)
    if state.source.one_in(2):
        state.emit(PackedCall("random.echo", (var,), pure, type=var.type))
        return
    back = state.emit(PackedCall("random.echo", (var,), pure))
    wanted = renamed(state, var.type)
    cast = state.builder.match_cast(back, wanted)
    state.know(wanted, largest(state, var.type))
    state.see(cast)


def part(state: State) -> None:
    """Call a host function that returns the first elements of a tensor, at most three.

    Their number is only known at run time.
    """
    x = state.find(lambda type_: isinstance(type_, TensorType) and type_.dtype is not None)
    if x is None or state.frame.pure:
        return
    _effect(state)
    type_ = TensorType(x.type.dtype, (dim_var("p"),))
    result = state.builder.packed("random.part", x, result=type_)
    state.know(type_, 3)
    state.see(result)


def pure_number(state: State) -> None:
    state.emit(PackedCall("random.pure", (scalar(state, I64, 2),), pure=True, type=INTEGER))


def pick(state: State) -> None:
    """Call a host function that selects one of several integers.  It fails if the index is out of range."""
    if not state.frame.may_fail or state.frame.pure:
        return
    _effect(state)
    state.account.fails = True
    index = scalar(state, I64, 2) if state.source.one_in(4) else prim(state.source.integer(0, 1))
    values = tuple(scalar(state, I64, 3) for _ in range(state.source.integer(1, 3)))
    state.emit(PackedCall("random.pick", (index, *values), type=INTEGER))


def call_back(state: State) -> None:
    """Pass a function value to the host, which calls it now or in a later call."""
    if state.frame.pure or not state.affords(PLAIN_COST):
        return
    _effect(state)
    state.account.spent += PLAIN_COST
    function = state.value(state.source.choice((_PURE, _IMPURE)))
    match state.source.integer(0, 2):
        case 0:
            state.emit(PackedCall("random.call", (function, scalar(state, I64, 2)), type=INTEGER))
            return
        case 1:
            state.emit(PackedCall("random.keep", (function,), type=OBJECT), "kept")
    state.emit(PackedCall("random.call_kept", (scalar(state, I64, 2),), type=INTEGER))


def packed_value(state: State) -> None:
    """Call a packed function that is used as a value."""
    if state.frame.pure:
        return
    _effect(state)
    function = state.builder.emit(PackedRef("random.pure"))
    result = state.emit(Call(function, (scalar(state, I64, 2),)))
    state.see(state.builder.match_cast(result, INTEGER))
