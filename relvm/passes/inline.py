"""Inlining of private and local functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from relvm.ir.bind_dims import match_dims, plain_dim_vars
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Expr,
    Function,
    FunctionRef,
    MatchCast,
    Module,
    PackedCall,
    Var,
    is_atom,
)
from relvm.ir.node import walk
from relvm.ir.symbolic import AnyDim, DimVar, dim_var
from relvm.ir.types import is_proven, substitute_dims
from relvm.ir.value_ranges import LOWER, UPPER
from relvm.ir.verifier import Stage
from relvm.ir.visitor import (
    fresh_copy,
    function_references,
    inner_blocks,
    map_atoms_and_blocks,
    map_blocks,
    with_bindings,
    with_value,
)
from relvm.passes.pass_manager import module_pass
from relvm.passes.util.match_casts import sort_match_casts

SMALL = 8  # maximum number of bindings, in all blocks, of a function that is inlined at every call
DEEPEST = 24  # maximum nesting depth of blocks that inlining produces


@module_pass("inline", at=Stage.ANF, optional=True)
def inline(module: Module) -> Module:
    """Replace the call of a private function by its body if this is the only use, or if the body is small:

    private def _f(a) { b = relu(a); return b }
    y = @_f(x)   ->   b = relu(x), and b replaces the uses of y

    A local function is inlined if its only use is a call.  A recursive function is not inlined, nor is a function with
    the attribute inline=false.  A function that declares bounds of its dimensions is not inlined either, because each
    call checks them.  If the type of an argument is not proven, a match_cast checks the argument, as the call would.
    Each inlined call makes the module larger by at most SMALL bindings.
    """
    functions = {f.name: f for f in module.functions}
    has_private = any(f.private for f in module.functions)
    references = {f.name: function_references(f.body) if has_private else [] for f in module.functions}
    uses = Counter(name for names in references.values() for name in names)
    inlinable: dict[str, Function] = {}
    for name in _callees_first(references):
        functions[name] = done = _Inliner(inlinable).function(functions[name])
        is_inlined = done.private and _may_inline(done) and (uses[name] == 1 or _is_small(done))
        if is_inlined and name not in function_references(done.body):
            inlinable[name] = done
    return module.with_functions(tuple(functions[f.name] for f in module.functions))


def _may_inline(function: Function) -> bool:
    declares_bounds = any(name in (LOWER, UPPER) for name, _ in function.attributes)
    return ("inline", False) not in function.attributes and not declares_bounds


def _is_small(function: Function) -> bool:
    return sum(1 for _ in islice(_nested_bindings(function.block), SMALL + 1)) <= SMALL


def _nested_bindings(block: Block) -> Iterator[Binding | MatchCast]:
    """Yield the bindings of `block` and of all blocks inside it."""
    for binding in block.bindings:
        yield binding
        for inner in inner_blocks(binding.value):
            yield from _nested_bindings(inner)


def _depth(block: Block) -> int:
    """Return the nesting depth of the blocks inside `block`: 0 if it contains none."""
    return max((1 + _depth(inner) for b in block.bindings for inner in inner_blocks(b.value)), default=0)


def _callees_first(references: Mapping[str, list[str]]) -> list[str]:
    """Return the names of the functions in depth-first postorder, so that callees come before their callers.

    references: a function -> the functions to which it refers.  In a cycle, the function that is visited first comes
    last.
    """
    order: dict[str, None] = {}
    entered: set[str] = set()
    stack = [(name, False) for name in reversed(list(references))]
    while stack:
        name, left = stack.pop()
        if left:
            order[name] = None
        elif name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack.extend((other, False) for other in references[name] if other not in entered)
    return list(order)


class _Inliner:
    """Inlines calls in the body of one function of the module.

    inlinable: the functions of the module that can be inlined, by name.
    called_once: the variables of local functions whose only use is a call.
    locals: the variable of such a function -> a pair of the function and the dimension variables that it binds.
    renamed: the variable of an inlined call -> the value that replaces the variable.
    known: the dimension variables that are bound so far.
    depth: the nesting depth of the current block.
    """

    def __init__(self, inlinable: Mapping[str, Function]) -> None:
        self.inlinable = inlinable
        self.called_once: set[Var] = set()
        self.locals: dict[Var, tuple[Function, list[DimVar]]] = {}
        self.renamed: dict[Var, Expr] = {}
        self.known: set[DimVar] = set()
        self.depth = 0

    def function(self, function: Function) -> Function:
        self.called_once = _called_once(function)
        for param in function.params:
            self.known.update(plain_dim_vars(param.type))
        return map_blocks(self.block, function)

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        self.depth += 1
        for binding in block.bindings:
            self.binding(binding, bindings)
        self.depth -= 1
        return with_bindings(block, bindings, self.atom(block.result))

    def binding(self, binding: Binding | MatchCast, bindings: list[Binding | MatchCast]) -> None:
        """Append to `bindings` the bindings that replace `binding`."""
        value = binding.value
        own: list[DimVar] = []
        if isinstance(value, Function):
            dims = [dim for param in value.params for dim in plain_dim_vars(param.type)]
            own = [dim for dim in dims if dim not in self.known]
            self.known.update(own)
        value = map_atoms_and_blocks(self.atom, self.block, value)
        if isinstance(value, Function) and binding.var in self.called_once:
            self.locals[binding.var] = value, own
            return
        match binding, value:
            case (MatchCast(var=Var(type=type_)), _) | (_, PackedCall(type=type_)):
                self.known.update(plain_dim_vars(type_))
            case _, Call():
                value = self.inline_if_possible(value, binding.var.origins, bindings)
                if value.type == binding.var.type and is_atom(value):
                    self.renamed[binding.var] = value
                    return
        bindings.append(with_value(binding, value))

    def atom(self, expr: Expr) -> Expr:
        return self.renamed.get(expr, expr) if isinstance(expr, Var) else expr

    def inline_if_possible(self, call: Call, origins: tuple[str, ...], bindings: list[Binding | MatchCast]) -> Expr:
        """Return the result of the inlined body of the callee, or `call` itself if the callee is not inlined.

        Append the bindings of an inlined body to `bindings`.

        origins: the source locations of the call.
        """
        match call.callee:
            case FunctionRef(name) if name in self.inlinable:
                function = self.inlinable[name]
                own = list(_bound_dims(function))
                return self.inline_call(name, function, own, call.args, origins, bindings) or call
            case Var() as var if var in self.locals:
                function, own = self.locals[var]
                result = self.inline_call(function.name or var.name, function, own, call.args, origins, bindings)
                if result is None:
                    bindings.append(Binding(var, function))
                return result or call
            case Var() as var:  # a local function that is defined later cannot be inlined here
                self.called_once.discard(var)
        return call

    def inline_call(
        self,
        name: str,
        function: Function,
        bound_dims: list[DimVar],
        args: tuple[Expr, ...],
        origins: tuple[str, ...],
        bindings: list,
    ) -> Expr | None:
        """Append to `bindings` a copy of the body of `function`, applied to `args`.  Return the result of the body.

        Return None and append nothing if match_casts cannot express the checks of the arguments, or if blocks would be
        nested too deeply.

        name: the function's name, for messages.
        bound_dims: the dimension variables that the function binds.
        origins: the source locations of the call, which are added to those of the copied bindings.
        """
        if self.depth + _depth(function.block) > DEEPEST:
            return None
        dims: dict[DimVar, AnyDim] = {}
        for param, arg in zip(function.params, args, strict=True):
            match_dims(param.type, arg.type, dims)
        dims = {var: dims[var] if var in dims else dim_var(var.name) for var in dict.fromkeys(bound_dims)}
        values: dict[Var, Expr] = {}
        casts: list[MatchCast] = []
        for param, called, arg in zip(function.params, function.input_names, args, strict=True):
            type_ = substitute_dims(param.type, dims)
            values[param] = arg
            if not is_proven(type_, arg.type):
                values[param] = checked = replace(param, type=type_)
                casts.append(MatchCast(checked, arg, f"{name}: argument {called}"))
        new = [var for cast in casts for var in plain_dim_vars(cast.var.type) if var not in self.known]
        ordered = sort_match_casts(casts, new)
        if ordered is None:
            return None
        body = fresh_copy(function.block, values, dims, origins)
        bindings += ordered
        bindings += body.bindings
        self.known.update(new)
        self.known.update(_bound_dims(body))
        return body.result


def _called_once(function: Function) -> set[Var]:
    """Return the variables of the local functions that may be inlined, and whose only use is a call.

    Recursive functions are not among them.
    """
    found = {each.var: each.value for each in _nested_bindings(function.block) if isinstance(each.value, Function)}
    if not found:
        return set()
    uses = Counter(item for item in walk(function.body) if isinstance(item, Var))
    called = {item.callee for item in walk(function.body) if isinstance(item, Call)}
    once = {var: local for var, local in found.items() if _may_inline(local) and uses[var] == 2 and var in called}
    return {var for var, local in once.items() if all(item is not var for item in walk(local))}


def _bound_dims(expr: Expr) -> Iterator[DimVar]:
    """Yield the dimension variables that are bound inside `expr`: by parameters, match_casts or results of packed
    functions."""
    for item in walk(expr):
        match item:
            case Function(params=params):
                for param in params:
                    yield from plain_dim_vars(param.type)
            case MatchCast(var=Var(type=type_)) | PackedCall(type=type_):
                yield from plain_dim_vars(type_)
