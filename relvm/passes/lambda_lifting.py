"""Lambda lifting: turn local functions into functions of the module (T. Johnsson, 1985)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from relvm.data_classes import value_record
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    DimValue,
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
from relvm.ir.node import Node, children, walk
from relvm.ir.symbolic import DimVar, dim_vars, var_dim
from relvm.ir.types import FuncType, Type, is_proven, type_vars
from relvm.ir.unique_names import unique_name
from relvm.ir.verifier import Stage
from relvm.ir.visitor import are_functions, free_vars, group_functions, substitute
from relvm.passes.pass_manager import module_pass
from relvm.passes.util.used_names import used_names


@module_pass("lambda_lifting", at=Stage.ANF)
def lambda_lifting(module: Module) -> Module:
    """Turn each local function into a function of the module.

    The values that a local function captures become additional parameters.  A call passes the captured values after the
    other arguments.  If the function is used as a value, the value is a closure:

    g = fn (a) { add(a, b) }; y = g(x)   ->   y = @main_g(x, b)            with  def main_g(a, b) { add(a, b) }
    g = fn (a) { add(a, b) }; t = (g,)   ->   g = make_closure(@main_g, b); t = (g,)

    A function that captures nothing needs no closure: the value is a reference to the function.  A local function that
    uses another local function also captures the values that the other function captures.

    A local function also captures the dimension variables of the surrounding functions that it uses, so that a type in
    its body means the same size as before.  A dimension variable that a captured value determines is not passed.
    Neither is one that the function's own parameters determine, if all calls are proven to pass arguments of the types
    of the parameters.  The others are passed together as one shape.  The function attribute `captured` is the number of
    added parameters.
    """
    lifter = _Lifter(used_names(module))
    outer = [lifter.top_level(function) for function in module.functions]
    return module.with_functions((*outer, *lifter.lifted))


@value_record
class _Lifted:
    """A lifted local function.

    reference: a reference to the new function of the module.
    captured: the captured variables, followed by a shape of the captured dimension variables, if there are any.
    """

    reference: FunctionRef
    captured: tuple[Expr, ...]

    def closure(self, type_: Type) -> BuiltinCall:
        return BuiltinCall("make_closure", (self.reference, *self.captured), type=type_)


_Known = Mapping[Var, _Lifted]  # the variable of a local function in scope -> the lifted function


class _Lifter:
    """Lifts the local functions of a module.

    names: the names in use, of functions, kernels and packed functions.
    lifted: the functions that are already lifted.
    values: the variables that the current module function uses as values, not only as callees.
    unproven: the variables that the current module function calls with an argument whose type is not proven.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.lifted: list[Function] = []
        self.values: set[Var] = set()
        self.unproven: set[Var] = set()

    def top_level(self, function: Function) -> Function:
        self.values, self.unproven = _used_as_values(function), _called_unproven(function)
        return replace(function, body=self.block(function.block, function.name, {}, _plain_dims(function.params)))

    def block(self, block: Block, owner: str, known: _Known, dims: frozenset[DimVar]) -> Block:
        """Lift the local functions of `block`, and return the block without them.

        owner: the name of the enclosing function.
        known: the local functions in scope.
        dims: the dimension variables in scope.
        """
        bindings: list[Binding | MatchCast] = []
        references = self.references(known)
        for run in group_functions(block.bindings):
            if are_functions(run):
                known = self.functions(run, owner, known, dims)
                references = self.references(known)
                for var in (binding.var for binding in run):
                    if var in self.values and known[var].captured:
                        bindings.append(Binding(var, substitute(known[var].closure(var.type), references)))
                continue
            (binding,) = run
            value = binding.value
            if isinstance(binding, MatchCast) or isinstance(value, PackedCall):
                dims |= _plain_dims([binding.var])
            match value:
                case Call(callee=Var() as callee, args=args) if callee in known:
                    lifted = known[callee]
                    value = replace(value, callee=lifted.reference, args=(*args, *lifted.captured))
                case If(then=Block() as then, orelse=Block() as orelse):
                    value = replace(
                        value, then=self.block(then, owner, known, dims), orelse=self.block(orelse, owner, known, dims)
                    )
            bindings.append(
                substitute(binding if value is binding.value else replace(binding, value=value), references)
            )
        return replace(block, bindings=tuple(bindings), result=substitute(block.result, references))

    def references(self, known: _Known) -> dict[Var, Expr]:
        """Map the variables of local functions that capture nothing to references to the lifted functions.

        The references replace these variables where they are used as values.  Functions that capture values become
        closures instead.

        known: the local functions in scope.
        """
        return {var: lifted.reference for var, lifted in known.items() if not lifted.captured and var in self.values}

    def functions(
        self, run: Sequence[Binding | MatchCast], owner: str, known: _Known, dims: frozenset[DimVar]
    ) -> _Known:
        """Lift the adjacent local functions in `run`, which can call each other.

        Return a copy of `known` with these functions added.

        owner: the name of the enclosing function.
        known: the local functions in scope.
        dims: the dimension variables in scope.
        """
        functions = {binding.var: binding.value for binding in run if isinstance(binding.value, Function)}
        captured = _find_captured(functions, known, dims, self.values | self.unproven)
        these = {}
        for var, local in functions.items():
            values = captured[var]
            params = (*(param.type for param in local.params), *(value.type for value in values))
            name = unique_name(f"{owner}_{local.name or var.name}", self.names)
            type_ = FuncType(params, local.func_type.result, local.pure)
            these[var] = _Lifted(FunctionRef(name, type=type_), values)
        known = {**known, **these}
        for var, local in functions.items():
            self.function(local, these[var], these, known, dims)
        return known

    def function(self, local: Function, lifted: _Lifted, run: _Known, known: _Known, dims: frozenset[DimVar]) -> None:
        """Add the lifted form of the local function `local` to the functions of the module.

        lifted: the name and the captured values of the new function.
        run: the functions that are lifted together with `local`.  If the body of `local` uses one of them as a value,
        the body itself creates the closure.
        known: the local functions in scope.
        dims: the dimension variables in scope.
        """
        body = self.block(local.block, lifted.reference.name, known, dims | _plain_dims(local.params))
        used = _used_as_values(body)
        own = {var: replace(var) for var in run if var in used}
        made = tuple(Binding(own[var], run[var].closure(var.type)) for var in own)
        body = replace(body, bindings=(*made, *substitute(body, own).bindings), result=substitute(body.result, own))
        added = {
            value: Var(getattr(value, "name", "dims"), type=value.type, origins=getattr(value, "origins", ()))
            for value in lifted.captured
        }
        body = substitute(body, {value: param for value, param in added.items() if isinstance(value, Var)})
        name, type_ = lifted.reference.name, lifted.reference.type
        attributes = local.attributes
        if added:
            attributes = (*attributes, ("captured", len(added)))
        params = (*local.params, *added.values())
        local = replace(local, name=name, params=params, body=body, private=True, attributes=attributes, type=type_)
        self.lifted.append(local)


def _used_as_values(expr: Node) -> set[Var]:
    """Return the variables that `expr` uses other than as the callee of a call."""
    found: set[Var] = set()
    stack = [expr]
    while stack:
        item = stack.pop()
        match item:
            case Var():
                found.add(item)
            case Call(callee=Var(), args=args):
                stack.extend(args)
            case Binding(value=value) | MatchCast(value=value):
                stack.append(value)
            case Function(body=body):
                stack.append(body)
            case _:
                stack.extend(children(item))
    return found


def _plain_dims(variables: Iterable[Var]) -> frozenset[DimVar]:
    return frozenset(dim for var in variables for dim in plain_dim_vars(var.type))


def _called_unproven(expr: Node) -> set[Var]:
    """Return the variables that `expr` calls with an argument that is not proven to be of the parameter's type."""
    found: set[Var] = set()
    for item in walk(expr):
        match item:
            case Call(callee=Var(type=FuncType(params=params)) as callee, args=args):
                if not all(is_proven(param, arg.type) for param, arg in zip(params, args, strict=True)):
                    found.add(callee)
    return found


def _find_captured(
    run: Mapping[Var, Function], known: _Known, scope: frozenset[DimVar], checked: Collection[Var]
) -> dict[Var, tuple[Expr, ...]]:
    """Return the values that each local function in `run` captures.

    A function captures the values that it uses itself, and those that the functions it uses capture.

    known: the lifted functions in scope.
    scope: the dimension variables of the surrounding functions that are in scope.
    checked: the variables of local functions whose arguments are checked at run time.
    """
    variables: dict[Var, dict[Var, None]] = {}
    uses: dict[Var, list[Var]] = {}
    dims: dict[Var, dict[DimVar, None]] = {}
    for var, local in run.items():
        free, values = free_vars(local), _used_as_values(local)
        uses[var] = [other for other in free if other in run]
        called = [known[other].captured for other in free if other in known]
        needs = [other for other in free if other not in run and _is_captured(other, values, known)]
        needs += [value for captured in called for value in captured if isinstance(value, Var)]
        variables[var] = dict.fromkeys(needs)
        dims[var] = dict.fromkeys(dim for captured in called for value in captured for dim in _dims(value))
        dims[var].update(dict.fromkeys(_free_dims(local, var in checked, checked)))
    _add_transitive_needs(variables, uses)
    known_dims = {
        var: _plain_dims(variables[var]) | (frozenset() if var in checked else _plain_dims(local.params))
        for var, local in run.items()
    }
    dims = {
        var: {dim: None for dim in needed if dim in scope and dim not in known_dims[var]}
        for var, needed in dims.items()
    }
    _add_transitive_needs(dims, uses)
    captured: dict[Var, tuple[Expr, ...]] = {}
    for var in run:
        missing = tuple(var_dim(dim) for dim in dims[var] if dim not in known_dims[var])
        captured[var] = (*variables[var], Shape(missing)) if missing else tuple(variables[var])
    return captured


def _is_captured(var: Var, values: set[Var], known: _Known) -> bool:
    """Return whether the free variable `var` of a local function must be captured.

    The variable of a lifted function is captured only if it is used as a value and is a closure.

    values: the variables that are used as values.
    known: the lifted functions in scope.
    """
    return var not in known or (var in values and bool(known[var].captured))


def _add_transitive_needs(needs: dict[Var, dict], uses: dict[Var, list[Var]]) -> None:
    """Add to the needs of each function the needs of all functions that it uses, directly or indirectly.

    needs: a function -> a dict whose keys are the values or dimensions that it needs.  The dicts are updated.
    uses: a function -> the functions that it uses directly.
    """
    changed = True
    while changed:
        changed = False
        for var, others in uses.items():
            before = len(needs[var])
            for other in others:
                needs[var].update(needs[other])
            changed |= len(needs[var]) > before


def _dims(value: Expr) -> Iterable[DimVar]:
    return (var for dim in value.dims for var in dim_vars(dim)) if isinstance(value, Shape) else ()


def _free_dims(local: Function, is_checked: bool, checked: Collection[Var]) -> Iterator[DimVar]:
    """Yield the dimension variables whose values a local function needs, apart from those that its arguments determine.

    Variables that the body binds, in a match_cast or by the result of a packed function, are included.

    is_checked: whether the arguments are checked at run time.  If not, they determine the plain dimension variables of
    the parameters.
    checked: the variables of local functions whose arguments are checked.
    """
    own = frozenset() if is_checked else _plain_dims(local.params)
    yield from (dim for dim in _used_dims(local, checked) if dim not in own)


def _used_dims(local: Function, checked: Collection[Var]) -> Iterator[DimVar]:
    """Yield the dimension variables whose values a local function needs: in its parameters, its body and its result.

    checked: the variables of local functions whose arguments are checked.
    """
    for param in local.params:
        yield from type_vars(param.type)
    if local.result_type is not None:
        yield from type_vars(local.result_type)
    stack: list[Node] = [local.body]
    while stack:
        item = stack.pop()
        match item:
            case Binding(var, Function() as inner):
                yield from _free_dims(inner, var in checked, checked)
                continue
            case Shape():
                yield from _dims(item)
            case DimValue(dim):
                yield from dim_vars(dim)
            case Expr(type=type_) if type_ is not None and not isinstance(type_, FuncType):
                yield from type_vars(type_)
        stack.extend(children(item))
