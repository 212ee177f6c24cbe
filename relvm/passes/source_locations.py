"""Tracking of source locations (origins) across passes.

If a pass removes a value, the origins of the value are added to the values that used it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field, replace

from relvm.data_classes import dataclass, value_record
from relvm.ir.expr import Binding, Block, Function, KernelCall, MatchCast, Module, OpCall, Var
from relvm.ir.node import Node, children
from relvm.ir.types import VOID, TupleType
from relvm.ir.visitor import bound_vars, rewrite

MOST = 64  # maximum number of origins of a variable to which origins are added

Origins = tuple[str, ...]
AddedOrigins = dict[Hashable, dict[str, None]]  # a user -> the origins to add to it, in order


class Provenance:
    """Tracks the origins (source locations) in a module through passes, and restores the origins that a pass loses.

    An origin (`Var.origins`) is lost if a used variable has it before a pass, and no used variable has it afterwards.
    The origin is then added to the users of the variable that had it.  Users are identified by their first origin, so
    all copies of a user get the lost origin.  If the variable was the result of a function, the variable that the
    function now returns gets the origin.  If a user is lost as well, its own users get the origin.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.origin_uses: dict[Node, _OriginUses] = {}
        self.used: set[str] = set()
        self._record_origins(module)

    def restore_origins(self, module: Module) -> Module:
        """Return `module`, the result of a pass, with the lost origins (source locations) restored.

        The next call compares its argument with the module that this call returns.
        """
        if module is self.module:
            return module
        before, used = self.origin_uses.values(), self.used
        self._record_origins(module)
        if lost := used - self.used:
            added = _assign_lost_origins(before, lost)
            module = module.with_functions(
                tuple(_add_assigned_origins(function, added) for function in module.functions)
            )
            self._record_origins(module)
        self.module = module
        return module

    def _record_origins(self, module: Module) -> None:
        """Record how each part of `module` uses source locations (see `_OriginUses`), in place of the previous records.

        The records of parts that have not changed are reused.
        """
        known, self.origin_uses = self.origin_uses, {}
        for function in module.functions:
            for part in _parts(function):
                self.origin_uses[part] = known.get(part) or _find_origin_uses(part, function.name)
        self.used = {origin for trail in self.origin_uses.values() for origins in trail.used for origin in origins}


def add_origins(function: Function, additional: Mapping[Var, Iterable[str]]) -> Function:
    """Return `function` with additional origins (source locations) for some variables.

    additional: a variable -> its additional origins.  A variable that has MOST origins gets no more.
    """
    heirs: dict[Var, Var] = {}
    for var, more in additional.items():
        origins = tuple(dict.fromkeys((*var.origins, *more)))[: max(MOST, len(var.origins))]
        if origins != var.origins:
            heirs[var] = replace(var, origins=origins)
    if not heirs:
        return function
    return rewrite(lambda expr: heirs.get(expr) if isinstance(expr, Var) else None, function)


@value_record
class _ResultUser:
    """The user of the variable that a function of the module returns: it stands for the return itself.

    function: the name of the function.
    """

    function: str


@dataclass
class _OriginUses:
    """The origins (source locations) in a part of a function, and their users.

    bound: the origins of each variable that the part binds, in order.
    used: the origins of each variable that the part uses, and of each operator call, kernel call and block in it.
    users: for each use of a variable, the origins of the variable and the first origin of its user.
    """

    bound: list[Origins] = field(default_factory=list)
    used: list[Origins] = field(default_factory=list)
    users: list[tuple[Origins, Hashable]] = field(default_factory=list)

    def visit(self, item: Node, user: Hashable, var_origins: Origins = ()) -> None:
        """Record the origins (source locations) in `item`.

        user: the first origin of the computation that contains `item`.
        var_origins: the origins of the variable that is bound to `item`.  They count as used only where that variable
        is used.
        """
        match item:
            case Var(origins=origins):
                self.used.append(origins)
                self.users.append((origins, user))
                return
            case Binding(var=var, value=value) | MatchCast(var=var, value=value):
                self.bound.append(var.origins)
                if isinstance(var.type, TupleType) and var.type == VOID:
                    # The value is bound for its effect, which counts as a use.
                    self.used.append(var.origins)
                self.visit(value, var.origin or user, var.origins)
                return
            case Function(params=params):
                self.bound += (param.origins for param in params)
                self.visit(item.body, user)
                return
            case OpCall(origins=origins) | KernelCall(origins=origins):
                self.used.append(tuple(origin for origin in origins if origin not in var_origins))
                user = user if var_origins or not origins else origins[0]
            case Block(origin=origin) if origin:
                self.used.append((origin,))
        for child in children(item):
            self.visit(child, user)


def _parts(function: Function) -> Iterator[Node]:
    """Yield the parts of a function: the function itself, then each binding of its body.

    The origins of each part are recorded separately (`_OriginUses`).  If a pass does not change a binding, its record
    can thus be reused.
    """
    yield function
    if isinstance(function.body, Block):
        yield from function.body.bindings


def _find_origin_uses(part: Node, function: str) -> _OriginUses:
    trail = _OriginUses()
    if not isinstance(part, Function):
        trail.visit(part, "")
        return trail
    trail.bound += (param.origins for param in part.params)
    result = part.body
    if isinstance(result, Block):  # the bindings of the block are separate parts
        trail.used.append((result.origin,) if result.origin else ())
        result = result.result
    trail.visit(result, _ResultUser(function))
    return trail


def _assign_lost_origins(uses_before: Iterable[_OriginUses], lost: set[str]) -> AddedOrigins:
    """Return the lost origins (source locations) to add to each computation that used a lost variable.

    The result maps the user, identified by its first origin, to the origins.

    uses_before: the origins in the parts of the module before the pass, and their users.
    lost: the origins that the pass lost.
    """
    users: dict[str, dict[Hashable, None]] = {}
    order: dict[str, None] = {}
    for trail in uses_before:
        order.update((origin, None) for origins in trail.bound for origin in origins if origin in lost)
        for origins, user in trail.users:
            for origin in lost.intersection(origins):
                if origin != user:
                    users.setdefault(origin, {})[user] = None
    added: AddedOrigins = {}
    for origin in order:
        handed = {**added.pop(origin, {}), origin: None}  # complete, because users follow the values that they use
        for user in users.get(origin, ()):
            heirs = added.setdefault(user, {})
            if len(heirs) < MOST:
                heirs.update(handed)
    return added


def _add_assigned_origins(function: Function, added: AddedOrigins) -> Function:
    found = {var: added[var.origin] for var in bound_vars(function) if var.origin in added}
    result = function.body.result if isinstance(function.body, Block) else None
    if isinstance(result, Var) and (of_result := added.get(_ResultUser(function.name))):
        found[result] = {**found.get(result, {}), **of_result}
    return add_origins(function, found)
