"""Lambda lifting: local functions become functions of the module."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from relvm.ir.dims import DimVar, dim_vars, var_dim
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Module,
    PackedCall,
    Shape,
    Var,
)
from relvm.ir.infer import plain_dim_vars
from relvm.ir.node import walk
from relvm.ir.stages import Stage
from relvm.ir.structure import free_vars, substitute
from relvm.ir.types import type_vars
from relvm.transform.passes import module_pass


@module_pass("lift_lambdas", at=Stage.NORMAL)
def lift_lambdas(module: Module) -> Module:
    """Turn each local function into a function of the module that takes what it captured as its last parameters, and
    its definition into the making of a closure:

    g = fn (a) { add(a, b) }   ->   g = make_closure(@main_g, b)     with  private def main_g(a, b) { add(a, b) }

    A function that captures nothing becomes a plain reference.  Dimensions of the surrounding function that no
    parameter's shape gives are captured as one shape.
    """
    lifter = _Lifter({f.name for f in module.functions})
    outer = [replace(f, body=lifter.block(f.body, f.name)) for f in module.functions]
    return module.with_functions((*outer, *lifter.lifted))


class _Lifter:
    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.lifted: list[Function] = []

    def block(self, block: Block, owner: str) -> Block:
        bindings: list[Binding | MatchCast] = []
        references: dict[Var, Expr] = {}  # functions that capture nothing, by the variable they were bound to
        for binding in block.bindings:
            match binding.value:
                case Function() as local:
                    local = substitute(local, references)
                    made = self.lift(binding.var, local, owner)
                    if isinstance(made, FunctionRef):
                        references[binding.var] = made
                    else:
                        bindings.append(replace(binding, value=made))
                    continue
                case If(then=then, orelse=orelse) as value:
                    value = substitute(value, references) if references else value
                    then, orelse = self.block(value.then, owner), self.block(value.orelse, owner)
                    bindings.append(replace(binding, value=replace(value, then=then, orelse=orelse)))
                    continue
            bindings.append(substitute(binding, references) if references else binding)
        return replace(block, bindings=tuple(bindings), result=substitute(block.result, references))

    def lift(self, var: Var, local: Function, owner: str) -> Expr:
        """Adds the lifted function; gives what stands for `local` where it was defined: a reference or a closure."""
        name = self.unique(f"{owner}_{local.name or var.name}")
        captured = [free for free in free_vars(local) if free is not var]
        dims = _missing_dims(local, captured)
        params = [Var(free.name, type=free.type) for free in captured]
        values: list[Expr] = list(captured)
        if dims:
            shape = Shape(tuple(map(var_dim, dims)))
            params.append(Var("dims", type=shape.type))
            values.append(shape)
        reference = FunctionRef(name, type=local.type)
        body = substitute(local.body, dict(zip(captured, params, strict=False)))
        if any(item is var for item in walk(body)):  # it calls itself: by name, or through a closure made anew
            own: Expr = reference
            if values:
                own = Var(var.name, type=var.type)
                closure = BuiltinCall("make_closure", (reference, *params), type=var.type)
                body = replace(body, bindings=(Binding(own, closure), *body.bindings))
            body = substitute(body, {var: own})
        body = self.block(body, name)
        lifted = replace(local, name=name, params=(*local.params, *params), body=body, type=None, private=True)
        self.lifted.append(replace(lifted, type=lifted.func_type))
        if not values:
            return reference
        return BuiltinCall("make_closure", (reference, *values), type=var.type)

    def unique(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self.names:
            count += 1
            name = f"{wanted}_{count}"
        self.names.add(name)
        return name


def _missing_dims(local: Function, captured: list[Var]) -> list[DimVar]:
    """The dimension variables of the surrounding function that the body needs and no parameter or captured value
    gives."""
    given = {dim for var in (*local.params, *captured) for dim in plain_dim_vars(var.type)}
    needed: dict[DimVar, None] = {}
    for item in walk(local):
        match item:
            case MatchCast(var=Var(type=type_)) | PackedCall(type=type_):
                given.update(plain_dim_vars(type_))
            case Function(params=params) if item is not local:
                given.update(dim for p in params for dim in plain_dim_vars(p.type))
        if isinstance(item, Expr) and not isinstance(item, Function):
            needed.update(dict.fromkeys(_used_dims(item)))
    if local.result_type is not None:
        needed.update(dict.fromkeys(type_vars(local.result_type)))
    return [dim for dim in needed if dim not in given]


def _used_dims(expr: Expr) -> Iterable[DimVar]:
    if isinstance(expr, Shape):
        return (var for dim in expr.dims for var in dim_vars(dim))
    return type_vars(expr.type) if expr.type is not None else ()
