"""Random functions: function values, local functions, functions of the module, calls and recursion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from random_programs.control import Statements
from random_programs.effects import tell
from random_programs.scalars import counter
from random_programs.state import PARAMETER_LIMIT, PLAIN_COST, Account, Callee, State, has_function, is_of
from random_programs.types import FUNCTIONS, data_type, dimension, parameter_types, value_type
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.dtypes import F64, I64
from relvm.ir.expr import Call, Expr, PrimCall, Tuple, Var, prim
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_var, var_dim
from relvm.ir.types import FuncType, PrimType, TensorType, TupleType, Type, substitute_dims

COUNTER = PrimType(I64)
FUNCTION_COST = 300  # limit on the cost of a call of a function of the module


def own_dims(params: Sequence[Type]) -> tuple[DimVar, ...]:
    """Return the dimension variables that the arguments of a call bind."""
    return tuple(dict.fromkeys(var for param in params for var in plain_dim_vars(param)))


def renamed_dims(types: Sequence[Type]) -> dict[DimVar, AnyDim]:
    """Map each dimension variable that the types bind to a new variable."""
    return {var: dim_var(var.name) for var in own_dims(types)}


def named(params: Sequence[Type]) -> list[tuple[str, Type]]:
    return [(f"p{i}", type_) for i, type_ in enumerate(params)]


# ---- calls ----


def call(state: State) -> None:
    """Call a function of the module or a local function, if one can be called here."""
    known = [state.locals[var] for var in reversed(state.frame.scope) if var in state.locals]
    known += reversed(state.callees)
    fitting = [c for c in known if state.affords(c.cost) and (c.pure or state.may_have_effects)]
    fitting = [c for c in fitting if not c.fails or (state.frame.may_fail and (not c.pure or _can_be_told(state, c)))]
    if not fitting:
        return
    callee = state.source.choice(fitting)
    result = call_of(state, callee, _chosen_dims(state, callee))
    if callee.fails and callee.pure:
        tell(state, result)  # an unused call of a pure function may be removed, and would then not fail


def _can_be_told(state: State, callee: Callee) -> bool:
    return state.may_have_effects and not has_function(callee.result)


def _chosen_dims(state: State, callee: Callee) -> dict[DimVar, AnyDim]:
    return {var: _small_dim(state) for var in callee.own}


def _small_dim(state: State) -> AnyDim:
    dim = dimension(state, simple=True)
    return dim if state.limit(dim) <= PARAMETER_LIMIT else state.source.integer(1, 3)


def call_of(state: State, callee: Callee, dims: Mapping[DimVar, AnyDim], first: Expr | None = None) -> Var:
    """Call `callee` with new arguments, and return the result.

    dims: values for the dimension variables of the callee.   first: the counter of a recursive function.  The default
    is a new counter.
    """
    params = [substitute_dims(param, dims) for param in callee.params]
    args = []
    for i, param in enumerate(params):
        if i == 0 and callee.bound is not None:
            args.append(first if first is not None else counter(state, callee.bound))
        else:
            args.append(state.value(param))
    state.account.spent += callee.cost
    state.account.effects |= not callee.pure
    state.account.fails |= callee.fails
    target = state.builder.function_ref(callee.target) if isinstance(callee.target, str) else callee.target
    return state.emit(Call(target, tuple(args)))


def call_of_value(state: State) -> None:
    """Call a function value in scope, if there is one that can be called here."""
    if not state.affords(PLAIN_COST):
        return
    function = state.find(lambda t: isinstance(t, FuncType) and (t.pure or state.may_have_effects))
    if function is None:
        return
    type_ = function.type
    callee = Callee(
        function, type_.params, type_.result, PLAIN_COST, own_dims(type_.params), pure=type_.pure, fails=not type_.pure
    )
    if callee.fails and not state.frame.may_fail:
        return
    call_of(state, callee, _chosen_dims(state, callee))


# ---- function values ----


def reference(state: State) -> None:
    """Add a tuple that contains a function of the module with scalar parameters, for other statements to use."""
    fitting = [c for c in state.callees if _is_value(c) and (c.pure or state.may_have_effects)]
    if fitting:
        state.emit(Tuple((state.builder.function_ref(state.source.choice(fitting).target),)))


def _is_value(callee: Callee) -> bool:
    """Return whether the function can be used as a function value.

    A pure function must not fail.  Each parameter must be a scalar without a fixed value, because `outcomes._sample`
    returns arguments only for such types.
    """
    scalars = all(isinstance(param, PrimType) and param.value is None for param in callee.params)
    small = callee.plain and callee.cost <= PLAIN_COST
    return scalars and small and callee.bound is None and callee.fails != callee.pure


def function_value(state: State, type_: FuncType, statements: Statements) -> Expr:
    """Return a function of a type: a variable in scope, a function of the module, or a new closure.

    In a pure function, the result is pure, too: a function counts as impure even if it only creates an impure closure.
    """
    if state.frame.pure:
        type_ = replace(type_, pure=True)
    choice = state.source.integer(0, 3)
    if choice < 2 and (found := state.find_type(type_)) is not None:
        return found
    if choice == 2 and (fitting := [c for c in state.callees if c.plain and _has_form(state, c, type_)]):
        return state.builder.function_ref(state.source.choice(fitting).target)
    return closure(state, type_, statements)


def _has_form(state: State, callee: Callee, type_: FuncType) -> bool:
    return callee.cost <= PLAIN_COST and is_of(type_, state.builder.function_ref(callee.target).type)


def closure(state: State, type_: FuncType, statements: Statements) -> Var:
    """Return a new closure of a type.  Its body can use the variables in scope."""
    dims = renamed_dims(type_.params)
    params = [substitute_dims(param, dims) for param in type_.params]
    result = substitute_dims(type_.result, dims)
    changes = {"pure": type_.pure, "may_fail": not type_.pure}

    def body(*variables: Var) -> Expr:
        state.bind(variables)
        if not type_.pure:
            tell(state)
        statements(state, 2)
        return state.value(result)

    with state.inside(**changes), state.spending(PLAIN_COST):
        var = state.builder.local_function(named(params), body, result)
    return state.see(var)


def local_function(state: State, statements: Statements) -> None:
    """Add a local function, which may be a loop.

    Its parameters can have dimensions of the enclosing function and new dimensions.
    """
    if state.frame.depth > 3:
        return
    pure = state.frame.pure or state.source.one_in(2)
    own = dim_var("q") if state.source.one_in(2) else None
    params: list[Type] = [data_type(state) for _ in range(state.source.integer(0, 2))]
    if own is not None:
        params.insert(0, TensorType(F64, (own,)))
    loop = state.source.one_in(2)
    bound = state.source.choice((3, 2, 8)) if loop else None
    result = _loop_result(state, params) if loop else value_type(state)
    if loop:
        params.insert(0, COUNTER)
    dims = () if own is None else (as_var(own),)
    budget = min(FUNCTION_COST // 6, state.account.budget - state.account.spent) // ((bound or 0) + 1)
    this = Callee("", tuple(params), result, 0, dims, bound, pure=pure)

    def body(*variables: Var) -> Expr:
        if loop:
            nonlocal this
            this, variables = replace(this, target=variables[0]), variables[1:]
        state.bind(variables)
        if not pure:
            tell(state)
        if loop:
            return counted_body(state, statements, variables[0], result, this, {})
        statements(state, 3)
        return state.value(result)

    may_fail = state.frame.may_fail and not (loop and pure)
    with state.inside(pure=pure, may_fail=may_fail), state.spending(budget) as account:
        var = state.builder.local_function(named(params), body, result, name="local", recursive=loop)
    cost = account.spent * ((bound or 0) + 1)
    state.locals[var] = replace(this, target=var, cost=cost, fails=account.fails, plain=False)
    state.see(var)


def _loop_result(state: State, carried: Sequence[Type]) -> Type:
    """Choose the result type of a loop: the types of the loop-carried values, or any data type."""
    if carried and not state.source.one_in(3):
        return TupleType(tuple(carried)) if len(carried) > 1 else carried[0]
    return data_type(state)


# ---- recursion ----


def counted_body(
    state: State, statements: Statements, count: Var, result: Type, partner: Callee, dims: Mapping[DimVar, AnyDim]
) -> Expr:
    """Return the body of a recursive function, which calls `partner` with count - 1 unless the counter is 0 or less.

    The recursive call may be a tail call.   partner: the function to call.   dims: values for its dimension variables.
    """

    def done() -> Expr:
        with state.inside():
            statements(state, 1)
            return state.value(result)

    def again() -> Expr:
        with state.inside():
            statements(state, 2)
            one_less = PrimCall("sub", (count, prim(1)))
            last = call_of(state, replace(partner, cost=0), dims, one_less)
            if not state.source.one_in(2):
                return last
            if state.source.one_in(3) and partner.bound is not None and partner.bound <= 3:
                call_of(state, replace(partner, cost=0), dims, PrimCall("sub", (count, prim(2))))
            statements(state, 2)
            return state.value(result)

    return state.see(state.builder.if_(PrimCall("le", (count, prim(0))), done, again))


# ---- functions of the module ----


def module_function(state: State, name: str, statements: Statements) -> Callee:
    """Add a function of the module that Python can call."""
    if state.source.one_in(8):
        return _value_function(state, name, statements)
    params = parameter_types(state)
    pure = not state.source.one_in(3)
    with state.inside(scope=[], dims=[], pure=pure, depth=0), state.spending(FUNCTION_COST) as account:
        with state.builder.function(name, named(params)) as variables:
            state.bind(variables)
            if not pure:
                tell(state)
            statements(state, 10)
            state.builder.ret(_result(state))
        result = state.builder.function_ref(name).type.result
    return Callee(name, params, result, account.spent, own_dims(params), pure=pure, fails=account.fails)


def _result(state: State) -> Expr:
    """Return a new value, the latest variable in scope, or a tuple of the latest variables."""
    latest = [var for var in state.frame.scope[-6:] if state.is_plain(var)]
    if state.source.one_in(3) or not latest:
        return state.value(value_type(state))
    return latest[-1] if len(latest) == 1 else Tuple(tuple(latest[-3:]))


def _value_function(state: State, name: str, statements: Statements) -> Callee:
    """Add a function of the module whose type is one of FUNCTIONS, so that it can be used as a function value."""
    type_ = state.source.choice(FUNCTIONS)
    dims = renamed_dims(type_.params)
    params = tuple(substitute_dims(param, dims) for param in type_.params)
    result = substitute_dims(type_.result, dims)
    changes = {"scope": [], "dims": [], "pure": type_.pure, "may_fail": not type_.pure, "depth": 0}
    function = state.builder.function(name, named(params), result)
    with state.inside(**changes), state.spending(PLAIN_COST) as account, function as variables:
        state.bind(variables)
        if not type_.pure:
            tell(state)
        statements(state, 3)
        state.builder.ret(state.value(result))
    return Callee(name, params, result, account.spent, own_dims(params), pure=type_.pure, fails=account.fails)


def recursive_functions(state: State, names: Sequence[str], statements: Statements) -> list[Callee]:
    """Add mutually recursive functions with a counter.  Each calls the next one, and the last calls the first."""
    with state.inside(scope=[], dims=[], depth=0):
        data = parameter_types(state)
        for type_ in data:
            state.know(type_, PARAMETER_LIMIT)
        result = data_type(state)
    pure, bound = not state.source.one_in(3), state.source.choice((4, 2, 10, 3))
    made: list[Callee] = []
    for name in names:
        dims = renamed_dims(data)
        params = tuple(substitute_dims(type_, dims) for type_ in (COUNTER, *data))
        given = substitute_dims(result, dims)
        state.builder.declare(name, named(params), given)
        made.append(Callee(name, params, given, 0, own_dims(params), bound, pure=pure))
    spent, fails = 0, False
    for i, callee in enumerate(made):
        account = _recursive_function(state, callee, made[(i + 1) % len(made)], statements)
        spent, fails = spent + account.spent, fails or account.fails
    factor = (bound + 1) if bound > 4 else 8
    return [replace(callee, cost=spent * factor, fails=fails) for callee in made]


def _recursive_function(state: State, callee: Callee, partner: Callee, statements: Statements) -> Account:
    name = callee.target
    dims = {theirs: var_dim(ours) for theirs, ours in zip(partner.own, callee.own, strict=True)}
    budget = FUNCTION_COST // (callee.bound + 1)
    changes = {"scope": [], "dims": [], "pure": callee.pure, "may_fail": not callee.pure, "depth": 0}
    function = state.builder.function(name, named(callee.params), callee.result)
    with state.inside(**changes), state.spending(budget) as account, function as variables:
        state.bind(variables)
        if not callee.pure:
            tell(state, variables[0])
        state.builder.ret(counted_body(state, statements, variables[0], callee.result, partner, dims))
    return account
