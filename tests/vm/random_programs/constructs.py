"""Names of the constructs in a module, to check that the generator still produces them all."""

from __future__ import annotations

from collections.abc import Iterator

from random_programs.state import has_function
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    DimValue,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Module,
    OpCall,
    PackedCall,
    PrimCall,
    Shape,
    Tuple,
    Var,
)
from relvm.ir.node import Node, walk
from relvm.ir.scalar_ops import find_row
from relvm.ir.symbolic import AnyDim, as_var, dim_vars
from relvm.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type, dims_of
from relvm.ir.verifier import RULES, Stage
from relvm.tables import PRIM_OPERATORS

# Programs of the front ends contain no builtins, which only replace operators during compilation.
NODES = {node.__name__ for node in (*RULES[Stage.TYPED].nodes, Binding, MatchCast)} - {"BuiltinCall"}
ROWS = {f"scalar {row.name}" for row in PRIM_OPERATORS}
CONSTRUCTS = {
    "a bool scalar as a condition",
    "an i64 scalar as a condition",
    "a tensor as a condition",
    "an if in an if",
    "to_scalar",
    "to_tensor",
    "several dimension variables",
    "a compound dimension",
    "a new dimension in a match_cast",
    "a parameter that is a shape",
    "a parameter that is a dimension's value",
    "a tensor of known rank only",
    "a tensor of unknown rank",
    "a tuple in a tuple",
    "a function in a tuple",
    "a call of another function",
    "a call of itself at the end",
    "a call of itself not at the end",
    "functions that call each other",
    "a local function that calls itself",
    "a loop that carries a tuple",
    "a closure over a scalar",
    "a closure over a tensor",
    "a closure over a dimension",
    "a closure over a tuple",
    "a closure over a function",
    "a closure in a closure",
    "a function with a function as a parameter",
    "a function that returns a function",
    "a function of the module as a value",
    "a call of a function value",
    "a packed function with effects",
    "a packed function without effects",
    "a function given to the host",
    "a private function",
}


def constructs(module: Module) -> set[str]:
    """Return the names of the constructs that occur in a typed module."""
    found: set[str] = set()
    calls = {f.name: {item.name for item in walk(f) if isinstance(item, FunctionRef)} for f in module.functions}
    for function in module.functions:
        found.update(_of_function(function))
        found.update(_of_calls(function, calls))
        for item in walk(function.body):
            found.add(type(item).__name__)
            found.update(_of_item(item))
            if isinstance(item, Function):
                found.update(_of_closure(item))
            if isinstance(getattr(item, "type", None), FuncType):
                found.update(_of_function_type(item.type))
    return found


def _of_function(function: Function) -> Iterator[str]:
    for param in function.params:
        yield from _of_type(param.type)
        if isinstance(param.type, ShapeType):
            yield "a parameter that is a shape"
        if isinstance(param.type, PrimType) and param.type.value is not None:
            yield "a parameter that is a dimension's value"
    if len({var for param in function.params for var in plain_dim_vars(param.type)}) > 1:
        yield "several dimension variables"
    if function.private:
        yield "a private function"
    yield from _of_function_type(function.type)


def _of_function_type(type_: FuncType) -> Iterator[str]:
    if any(map(has_function, type_.params)):
        yield "a function with a function as a parameter"
    if has_function(type_.result):
        yield "a function that returns a function"


def _of_type(type_: Type) -> Iterator[str]:
    match type_:
        case TensorType(shape=None, rank=rank):
            yield "a tensor of unknown rank" if rank is None else "a tensor of known rank only"
        case TupleType(fields):
            if any(isinstance(field, TupleType) for field in fields):
                yield "a tuple in a tuple"
    if any(_is_compound(dim) for dim in dims_of(type_)):
        yield "a compound dimension"


def _is_compound(dim: AnyDim) -> bool:
    return not isinstance(dim, int) and as_var(dim) is None


def _of_item(item: Node) -> Iterator[str]:
    match item:
        case If(cond=cond, then=then, orelse=orelse):
            yield _of_condition(cond)
            if any(isinstance(part, If) for branch in (then, orelse) for part in walk(branch)):
                yield "an if in an if"
        case OpCall(op=op) if op.name in ("to_scalar", "to_tensor"):
            yield op.name
        case PrimCall(function, args):
            yield f"scalar {find_row(function, tuple(arg.type.dtype for arg in args)).name}"
        case MatchCast(var, _):
            yield from _of_type(var.type)
            if any(dim.name.startswith("d") for dim in plain_dim_vars(var.type)):
                yield "a new dimension in a match_cast"
        case Tuple(fields):
            yield from _of_type(item.type)
            if any(isinstance(field.type, FuncType) for field in fields):
                yield "a function in a tuple"
            yield from _references(fields)
        case PackedCall(_, args, pure):
            yield "a packed function without effects" if pure else "a packed function with effects"
            if any(isinstance(arg.type, FuncType) for arg in args):
                yield "a function given to the host"
        case Call(callee, args):
            yield "a call of another function" if isinstance(callee, FunctionRef) else "a call of a function value"
            yield from _references(args)


def _references(values: tuple[Expr, ...]) -> Iterator[str]:
    if any(isinstance(value, FunctionRef) for value in values):
        yield "a function of the module as a value"


def _of_condition(cond: Expr) -> str:
    match cond.type:
        case PrimType(dtype):
            return "a bool scalar as a condition" if dtype == BOOL else "an i64 scalar as a condition"
    return "a tensor as a condition"


def _of_calls(function: Function, calls: dict[str, set[str]]) -> Iterator[str]:
    name = function.name
    if name in calls[name]:
        at_end = {id(call) for call in _calls_at_end(function.body)}
        own = [c for c in walk(function.body) if isinstance(c, Call) and getattr(c.callee, "name", "") == name]
        for call in own:
            yield "a call of itself at the end" if id(call) in at_end else "a call of itself not at the end"
    elif any(name in calls[other] for other in calls[name]):
        yield "functions that call each other"


def _calls_at_end(expr: Expr) -> Iterator[Call]:
    match expr:
        case Block(bindings=(*_, Binding(var, value)), result=result) if result is var:
            yield from _calls_at_end(value)
        case Block(result=result):
            yield from _calls_at_end(result)
        case If(then=then, orelse=orelse):
            yield from _calls_at_end(then)
            yield from _calls_at_end(orelse)
        case Call():
            yield expr


def _of_closure(function: Function) -> Iterator[str]:
    own = {item.var for item in walk(function.body) if isinstance(item, Binding | MatchCast)} | set(function.params)
    inner = [item for item in walk(function.body) if isinstance(item, Function)]
    own.update(param for item in inner for param in item.params)
    if inner:
        yield "a closure in a closure"
    for item in walk(function.body):
        if not isinstance(item, Var) or item in own:
            continue
        if item.name == function.name and isinstance(item.type, FuncType):
            yield "a local function that calls itself"
            if isinstance(function.result_type, TupleType) and function.result_type.fields:
                yield "a loop that carries a tuple"
            continue
        for kind, name in ((PrimType, "scalar"), (TensorType, "tensor"), (TupleType, "tuple"), (FuncType, "function")):
            if isinstance(item.type, kind):
                yield f"a closure over a {name}"
    known = {var for param in function.params for var in plain_dim_vars(param.type)}
    if {var for dim in _dims_in(function.body) for var in dim_vars(dim)} - known:
        yield "a closure over a dimension"


def _dims_in(expr: Expr) -> Iterator[AnyDim]:
    """Yield the dimensions that an expression computes with."""
    for item in walk(expr):
        match item:
            case DimValue(dim):
                yield dim
            case Shape(dims):
                yield from dims
