"""Type inference: from stage PARSED to stage TYPED.

Inference gives every expression a type, and every variable the type of its value.  If an annotation, such as a result
type, is more specific than the inferred type, inference inserts a `match_cast`, which checks the annotation at run
time.  An annotation that no value can satisfy is an error.

Inference also determines purity.  A function that makes an impure call is impure.  It is an error if the program
declares such a function pure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    counted,
    located,
    near_matches,
)
from relvm.ir.bind_dims import match_dims, plain_dim_vars
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    DimValue,
    Expr,
    Function,
    FunctionRef,
    Fused,
    If,
    KernelCall,
    KernelRun,
    MatchCast,
    Module,
    OpCall,
    PackedCall,
    Prim,
    PrimCall,
    Shape,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.kernel_call_types import typed_kernel_call
from relvm.ir.kernel_def import KernelDef
from relvm.ir.node import Node, children, map_children
from relvm.ir.operator import Effect, shape_claims
from relvm.ir.scalar_ops import DTYPE_OF_LETTER, find_row, has_defined_result
from relvm.ir.symbolic import AnyDim, DimVar, dim_vars
from relvm.ir.thread_updates import thread_updates
from relvm.ir.types import (
    OBJECT,
    FuncType,
    ListType,
    ObjectType,
    OptionalType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    forget_vars,
    is_proven,
    join,
    mismatch_reason,
    substitute_dims,
    type_vars,
)
from relvm.ir.verifier import expect_valid_names
from relvm.ir.visitor import AnyExpr, are_functions, function_references, group_functions
from relvm.tables import BUILTINS

_IMPURE_BUILTINS = frozenset(row.name for row in BUILTINS if row.effect == "IMPURE")
_CHECKS = frozenset(row.name for row in BUILTINS if row.effect == "CHECK")


def infer_types(module: Module, *, stated: bool = True) -> Module:
    """Return the module with every expression typed, and without calls that update arguments (`thread_updates`).

    Parameters
    ----------
    module
        A module at stage PARSED or TYPED.
    stated
        Whether the types of variables in `module` are annotations by the author of the program, which inference checks.
        If False, an earlier inference has set them, and inference replaces them.

    Raises
    ------
    RelvmTypeError, RelvmShapeError
        An expression is ill-typed, or a function that is declared pure has a side effect.  The message contains the
        source location, the function and the binding.
    RelvmNameError
        An expression refers to a function, kernel or dimension that is not defined, or the name of a function or kernel
        is not allowed (`expect_valid_names`).
    """
    expect_valid_names(module)
    module = thread_updates(module)
    references = {f.name: function_references(f) for f in module.functions}
    callers = _find_callers(module.functions)
    impure = _add_callers({f.name for f in module.functions if not f.pure or impure_call(f.body)}, callers)
    while True:
        declared = {f.name: replace(f, pure=f.claims_pure or f.name not in impure) for f in module.functions}
        finished: dict[str, Function] = {}
        for name in declared:
            _finish(name, declared, finished, references, (), stated, dict(module.kernels))
        found = {f.name for f in finished.values() if not f.pure} - impure
        if found.isdisjoint(name for names in references.values() for name in names):
            return module.with_functions(tuple(finished[f.name] for f in module.functions))
        impure = _add_callers(impure | found, callers)  # repeat inference, which found more impure functions


def infer_expr(
    expr: AnyExpr,
    functions: dict[str, FuncType],
    known_dims: Iterable[DimVar] = (),
    place: str = "expression",
    origin: str = "",
    kernels: Mapping[str, Any] = MappingProxyType({}),
) -> AnyExpr:
    """Return a single expression with its inferred type.

    The free variables of `expr` must have types.  The variables that are bound inside `expr` get newly inferred types,
    even if they already have types.

    Parameters
    ----------
    functions
        The types of the module's functions to which `expr` can refer.
    known_dims
        The dimension variables that `expr` can use.
    place
        A description of where `expr` is, for messages, such as "function: variable".
    origin
        The source location of `expr`.
    kernels
        The kernels of the module, by name.
    """
    inference = _Inference(place, functions.get, functions.keys(), set(known_dims), False, origin, kernels)
    typed = inference.expr(expr)
    assert isinstance(typed, type(expr))
    return typed


def _finish(
    name: str,
    declared: dict[str, Function],
    finished: dict[str, Function],
    references: dict[str, list[str]],
    waiting: tuple[str, ...],
    stated: bool,
    kernels: Mapping[str, Any],
) -> None:
    """Infer the types of function `name`, and add the typed function to `finished`.  First do the same for the
    functions to which it refers, if they have no annotated result type.

    waiting: the functions whose inference waits for this one, to detect recursion.
    stated: whether the types of variables are annotations by the author of the program, which inference checks.
    """
    if name in finished:
        return
    function = declared[name]
    for other in references[name]:
        if other in declared and other not in finished and declared[other].result_type is None:
            if other == name or other in waiting:
                error = RelvmTypeError(f"{other}: a recursive function needs a result type annotation")
                raise located(error, declared[other].origin)
            _finish(other, declared, finished, references, (*waiting, name), stated, kernels)

    def type_of(other: str) -> FuncType | None:
        known = finished.get(other) or declared.get(other)
        return known.func_type if known else None

    finished[name] = _Inference(name, type_of, declared.keys(), set(), stated, kernels=kernels).function(function)


def _find_callers(functions: Iterable[Function]) -> dict[str, list[str]]:
    """Map the name of each function to the functions that call it by name.  Calls in local functions do not count."""
    callers: dict[str, list[str]] = {}
    for function in functions:
        for item in _outer_nodes(function.body):
            match item:
                case Call(callee=FunctionRef(name)):
                    callers.setdefault(name, []).append(function.name)
    return callers


def _add_callers(names: set[str], callers: dict[str, list[str]]) -> set[str]:
    """Return `names` and the names of all functions that call one of them, directly or indirectly."""
    reached, waiting = set(names), list(names)
    while waiting:
        new = set(callers.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def impure_call(body: Expr) -> Expr | None:
    """Return the first call in a function's body that can have a side effect, or None if there is none.

    Local functions are skipped, because creating a closure has no effect.
    """
    return next((node for node in _outer_nodes(body) if isinstance(node, Expr) and is_impure_call(node)), None)


def _outer_nodes(body: Expr) -> Iterator[Node]:
    """Yield the nodes of a function's body, except those inside local functions."""
    stack: list[Node] = [body]
    while stack:
        item = stack.pop()
        yield item
        if not isinstance(item, Function):
            stack.extend(reversed(children(item)))


def is_impure_call(item) -> bool:
    """Return whether evaluating the node `item` can have a side effect, apart from the evaluation of its arguments."""
    match item:
        case PackedCall(pure=pure):
            return not pure
        case OpCall(op=op):
            return op.effect is Effect.IMPURE
        case BuiltinCall(name=name):
            return name in _IMPURE_BUILTINS
        case KernelRun():
            return True
        case Call(callee=Expr(type=FuncType(pure=pure))):
            return not pure
        case Call(
            callee=callee
        ):  # the purity of module functions is known separately; unknown functions can have effects
            return not isinstance(callee, FunctionRef) and callee.type is not None
    return False


def may_fail(item) -> bool:
    """Return whether evaluating `item` can fail: whether it is a check, or scalar arithmetic that can be undefined.

    Such an item is not dead code, even if its value is unused, because its error must be raised.
    """
    if isinstance(item, BuiltinCall):
        return item.name in _CHECKS
    if not isinstance(item, PrimCall):
        return False
    row = find_row(item.function, tuple(arg.known_element_type for arg in item.args))
    if not row.fails:
        return False
    last = item.args[-1]
    return not (isinstance(last, Prim) and has_defined_result(row, (0, last.value)[-len(item.args) :]))


class _Inference:
    """Infers the types in one function of the module.

    place: a description of the current binding, for messages.
    origin: the nearest known source location.
    known: the dimension variables that are bound so far.
    """

    def __init__(
        self,
        name: str,
        type_of,
        names: Iterable[str],
        known_dims: set[DimVar],
        stated: bool = True,
        origin: str = "",
        kernels: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.kernels = kernels
        self.name = name
        self.type_of = type_of
        self.names = names
        self.vars: dict[Var, Var] = {}  # untyped variable -> typed variable
        self.known = known_dims
        self.stated = stated
        self.place = name
        self.origin = origin

    def error(self, message: str, kind: type[RelvmError] = RelvmTypeError, origin: str = "") -> RelvmError:
        return located(kind(f"{self.place}: {message}"), origin or self.origin)

    @contextlib.contextmanager
    def add_location_to_errors(self) -> Iterator[None]:
        """Context manager: add the current location to an error that is raised without one."""
        try:
            yield
        except RelvmError as error:
            if error.origin or str(error).startswith(self.name):
                raise
            raise self.error(str(error), type(error)) from error

    def function(self, function: Function) -> Function:
        outer_known = set(self.known)
        outer, self.origin = self.origin, function.origin or self.origin
        for param in function.params:
            if param.type is None:
                raise self.error(f"{function.name}: parameter {param.name} needs a type", origin=param.origin)
            self.known.update(plain_dim_vars(param.type))
        for param in function.params:
            self.origin = param.origin or self.origin
            if not isinstance(param.type, FuncType):  # a function type binds its own variables
                self.check_vars(type_vars(param.type))
        params_known = set(self.known)
        self.origin = function.origin or outer
        with self.add_location_to_errors():
            body = self.expr(function.body)
        declared = function.result_type
        if declared is not None:
            reason = mismatch_reason(declared, body.type)
            if reason:
                raise self.error(f"the result of {function.name}: {reason}", origin=_result_origin(function.body))
            if not is_proven(declared, body.type):
                body = _check_result(body, declared)
            result = declared
        else:
            result = forget_vars(body.type, params_known.__contains__)
        self.known = outer_known
        effect = impure_call(body)
        if effect and function.claims_pure:
            raise self.error(f"declared as pure with ->, but {_describe(effect)} may have effects; use => instead")
        pure = function.pure and effect is None
        func_type = FuncType(tuple(p.type for p in function.params), result, pure)
        self.origin = outer
        return replace(function, body=body, result_type=result, pure=pure, type=func_type)

    def expr(self, expr: Expr) -> Expr:
        match expr:
            case Var():
                return self.var(expr)
            case FunctionRef(name):
                found = self.type_of(name)
                if found is None:
                    raise self.error(f"no function {name}{near_matches(name, self.names)}", RelvmNameError)
                return replace(expr, type=found)
            case Shape(dims):
                self.check_dims(dims)
                try:
                    shape_claims(dims)
                except RelvmShapeError as error:
                    raise self.error(str(error), RelvmShapeError) from None
                return expr
            case DimValue(dim):
                self.check_dims((dim,))
                return expr
            case Function():
                return self.function(expr)
            case Block():
                return self.block(expr)
            case Fused():
                body = self.block(expr.body)
                return replace(expr, body=body, type=body.type)
            case If():
                return self.conditional(expr)
        expr = map_children(self.expr, expr)
        match expr:
            case Tuple(fields):
                return replace(expr, type=TupleType(tuple(field.type for field in fields)))
            case TupleItem(tuple_, index):
                return replace(expr, type=self.item_type(tuple_.type, index))
            case OpCall():
                return replace(expr, type=self.op_type(expr))
            case PrimCall():
                return replace(expr, type=self.prim_type(expr))
            case Call():
                return replace(expr, type=self.call_type(expr))
            case KernelCall(name) if isinstance(kernel := self.kernels.get(name), KernelDef):
                return self.kernel_call(expr, kernel)
            case KernelCall(name) if expr.type is None:
                origin = expr.origins[0] if expr.origins else ""
                raise self.error(f"no kernel {name}{near_matches(name, self.kernels)}", RelvmNameError, origin)
            case PackedCall(name) if expr.type is None:
                raise self.error(f"the call of {name} needs a type")
            case BuiltinCall("make_closure", (callee, *captured)) if expr.type in (None, OBJECT):
                return replace(expr, type=self.closure_type(callee, captured))
            case PackedCall():
                self.bind_dims(expr.type)  # the result is checked at run time, as in a match_cast
        return expr

    def var(self, var: Var) -> Var:
        typed = self.vars.get(var, var)
        if typed.type is None:
            raise self.error(
                f"variable {var.name} is used before it has a type (a recursive function needs a result type)"
            )
        return typed

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        place, origin = self.place, self.origin
        for run in group_functions(block.bindings):
            self.place, self.origin = f"{self.name}: {run[0].var.name}", run[0].var.origin or origin
            with self.add_location_to_errors():
                bindings.extend(self.functions(run) if are_functions(run) else self.binding(run[0]))
        self.place, self.origin = place, block.origin or origin
        result = self.expr(block.result)
        self.origin = origin
        return replace(block, bindings=tuple(bindings), result=result, type=result.type)

    def functions(self, run: Sequence[Binding]) -> Iterable[Binding]:
        """Infer the types of the local functions bound in `run`, which can call themselves and each other.

        If a function declares its result type, its type is known before its body is processed.  Inference is repeated
        until no type changes.
        """
        for binding in run:
            if binding.function.result_type is not None:
                self.vars[binding.var] = replace(binding.var, type=binding.function.func_type)
        while True:
            typed = []
            changed = False
            for binding in run:
                self.place, self.origin = f"{self.name}: {binding.var.name}", binding.var.origin or self.origin
                value = self.function(binding.function)
                known = self.vars.get(binding.var)
                if known is None or known.type != value.type:  # the type changed, so repeat
                    changed |= known is not None
                    self.vars[binding.var] = replace(binding.var, type=value.type)
                typed.append(Binding(self.vars[binding.var], value))
            if not changed:
                return typed

    def binding(self, binding: Binding | MatchCast) -> Iterable[Binding | MatchCast]:
        var = binding.var
        value = self.expr(binding.value)
        expected = var.type if self.stated or isinstance(binding, MatchCast) else None
        if expected is not None and (reason := mismatch_reason(expected, value.type)):
            raise self.error(f"{reason}")
        if isinstance(binding, MatchCast):
            if expected is None:
                raise self.error("match_cast needs a type")
            self.bind_dims(expected)
            self.vars[var] = var
            return [replace(binding, value=value)]
        if expected is not None and not is_proven(expected, value.type):
            self.bind_dims(expected)
            self.vars[var] = var
            unchecked = Var(var.name, type=value.type, origins=var.origins)
            return [Binding(unchecked, value), MatchCast(var, unchecked)]
        known = value.type if expected is None or _is_wider(expected, value.type) else expected
        self.vars[var] = var if var.type == known else replace(var, type=known)
        if known != value.type and isinstance(value, OpCall):  # passes rely on the type of an operator's result
            inferred = Var(var.name, type=value.type, origins=var.origins)
            return [Binding(inferred, value), Binding(self.vars[var], inferred)]
        return [replace(binding, var=self.vars[var], value=value)]

    def conditional(self, expr: If) -> If:
        cond = self.expr(expr.cond)
        if not _is_condition(cond.type):
            raise self.error(f"the condition of an if is {cond.type}, expected a bool or integer scalar or 0-d tensor")
        known = set(self.known)
        then = self.expr(expr.then)
        self.known = set(known)
        orelse = self.expr(expr.orelse)
        self.known = known
        both = join(forget_vars(then.type, known.__contains__), forget_vars(orelse.type, known.__contains__))
        if both is None:
            raise self.error(f"the branches of an if have incompatible types: {then.type} and {orelse.type}")
        return replace(expr, cond=cond, then=then, orelse=orelse, type=both)

    def item_type(self, type_: Type, index: int) -> Type:
        match type_:
            case TupleType(fields):
                if not 0 <= index < len(fields):
                    raise self.error(f"item {index} is out of range; the tuple has {counted(len(fields), 'item')}")
                return fields[index]
            case ObjectType():
                return OBJECT
        raise self.error(f"cannot take item {index} of {type_}; expected a tuple")

    def op_type(self, call: OpCall) -> Type:
        try:
            result = call.op.infer(tuple(arg.type for arg in call.args), call.attributes)
        except RelvmError as error:
            raise self.error(str(error), type(error), call.origins[0] if call.origins else "") from error
        return result

    def closure_type(self, callee: Expr, captured: list[Expr]) -> Type:
        """Return the type of a partial application of `callee`, with its last arguments fixed to `captured`."""
        match callee.type:
            case FuncType(params, result, pure) if len(params) >= len(captured):
                given = len(params) - len(captured)
                for i, (param, value) in enumerate(zip(params[given:], captured, strict=True)):
                    if reason := mismatch_reason(forget_vars(param, lambda var: False), value.type):
                        raise self.error(f"argument {given + i} of {getattr(callee, 'name', 'the function')}: {reason}")
                return FuncType(params[:given], forget_vars(result, set(_own_dims(params[:given])).__contains__), pure)
            case FuncType(params):
                raise self.error(
                    f"cannot bind {counted(len(captured), 'argument')}; the function takes {len(params)}",
                    RelvmArgumentError,
                )
            case ObjectType():
                return OBJECT
        raise self.error(f"cannot bind arguments to {callee.type}; expected a function")

    def prim_type(self, call: PrimCall) -> Type:
        dtypes = tuple(arg.type.dtype for arg in call.args if isinstance(arg.type, PrimType))
        if len(dtypes) < len(call.args):
            got = ", ".join(str(arg.type) for arg in call.args)
            raise self.error(f"scalar {call.function}: expected scalars, got ({got})")
        try:
            return PrimType(DTYPE_OF_LETTER[find_row(call.function, dtypes).result])
        except RelvmTypeError as error:
            raise self.error(str(error)) from None

    def call_type(self, call: Call) -> Type:
        match call.callee.type:
            case ObjectType():
                return OBJECT
            case FuncType(params, result):
                return self.call_result_type(call, params, result)
        raise self.error(f"cannot call {call.callee.type}; expected a function")

    def call_result_type(self, call: Call, params: tuple[Type, ...], result: Type) -> Type:
        """Return the result type of a call.

        The types of the arguments determine the values of the callee's dimension variables.  If they leave a variable
        undetermined, shapes that contain it become unknown in the result type.  The variable must not remain in the
        result type: in a recursive call, the caller has the same variable, possibly with another value.
        """
        callee = getattr(call.callee, "name", "the function")
        if len(params) != len(call.args):
            raise self.error(
                f"{callee} takes {counted(len(params), 'argument')}, got {len(call.args)}", RelvmArgumentError
            )
        values: dict[DimVar, AnyDim] = {}
        for param, arg in zip(params, call.args, strict=True):
            match_dims(param, arg.type, values)
        for i, (param, arg) in enumerate(zip(params, call.args, strict=True)):
            if reason := mismatch_reason(substitute_dims(param, values), arg.type):
                raise self.error(f"argument {i} of {callee}: {reason}")
        mentioned = {var for dims in values.values() for var in dim_vars(dims)}
        outer = self.known.difference(_own_dims(params)) | mentioned
        return forget_vars(substitute_dims(result, values), outer.__contains__)

    def kernel_call(self, call: KernelCall, kernel: KernelDef) -> KernelCall:
        try:
            typed = typed_kernel_call(call, kernel, self.name)
        except RelvmError as error:
            raise self.error(str(error), type(error), call.origins[0] if call.origins else "") from error
        self.check_vars(type_vars(typed.type))
        return typed

    def bind_dims(self, type_: Type) -> None:
        """Bind the variables that are whole dimensions of `type_`.  Check that its other variables are bound."""
        self.known.update(plain_dim_vars(type_))
        if not isinstance(type_, FuncType):
            self.check_vars(type_vars(type_))

    def check_dims(self, dims: tuple[AnyDim, ...]) -> None:
        self.check_vars(var for dim in dims for var in dim_vars(dim))

    def check_vars(self, variables: Iterable[DimVar]) -> None:
        for var in variables:
            if var not in self.known:
                raise self.error(
                    f"dimension {var.name} is not defined here; no parameter's shape determines it", RelvmNameError
                )


def _result_origin(body: Expr) -> str:
    """Return the source location of a function's result, or "" if it is unknown."""
    return body.origin if isinstance(body, Block) else ""


def _own_dims(types: Iterable[Type]) -> Iterable[DimVar]:
    return (var for type_ in types for var in plain_dim_vars(type_))


def _describe(call: Expr) -> str:
    """Describe an impure call, for error messages."""
    match call:
        case PackedCall(name=name):
            return f"packed function {name}"
        case OpCall(op=op):
            return f"operator {op}"
        case KernelRun(kernel=name):
            return f"kernel {name}"
        case Call(callee=FunctionRef(name) | Var(name)):
            return f"the call of {name}"
        case BuiltinCall(name=name):
            return f"builtin {name}"
    return "a call of a value"


def _is_condition(type_: Type) -> bool:
    match type_:
        case PrimType(dtype):
            return dtype.is_bool or dtype.is_integer
        case TensorType(dtype, _, rank):
            return rank in (0, None) and (dtype is None or dtype == BOOL or dtype.is_integer)
    return isinstance(type_, ObjectType)


def _check_result(body: Expr, type_: Type) -> Block:
    """Return `body` with a final `match_cast`, which checks that the result has type `type_`."""
    block = body if isinstance(body, Block) else Block((), body, type=body.type)
    unchecked, checked = Var("result", type=body.type), Var("result", type=type_)
    added = (Binding(unchecked, block.result), MatchCast(checked, unchecked))
    return Block((*block.bindings, *added), checked, type=type_)


def _is_wider(annotation: Type, inferred: Type) -> bool:
    """Return whether the annotation of a value states nothing beyond its inferred type, and can be dropped.

    A list or an optional keeps its annotation, which determines what can be stored in it later.  A function keeps an
    annotated result type that is more specific than its own, because the results of its calls are checked against it.
    """
    return not _has_container(annotation) and join(annotation, inferred) == annotation


def _has_container(type_: Type) -> bool:
    """Return whether a value of `type_` contains a list or an optional."""
    match type_:
        case ListType() | OptionalType():
            return True
        case TupleType(fields):
            return any(map(_has_container, fields))
    return False
