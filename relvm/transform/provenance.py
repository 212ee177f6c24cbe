"""What a pass removes lives on, by its origins, in what used it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from relvm.ir.expr import Binding, Block, Function, KernelCall, MatchCast, Module, OpCall, Var
from relvm.ir.node import Node, children
from relvm.ir.structure import bound_vars, rewrite
from relvm.ir.types import VOID

MOST = 64  # origins; a variable that has so many takes over no more

Taken = dict[Hashable, dict[str, None]]  # who takes over -> origins, in order


class Provenance:
    """Follows a module through passes, and gives back what origins these lose.

    An origin (`Var.origins`) is lost where a variable that has it is used before a pass, and nothing that is used has
    it after.  What used it takes it over: every variable whose own place is that of the user, copies included; the
    variable that a function returns, where it was the result; and where the user is lost as well, what used that.
    """

    def __init__(self, module: Module) -> None:
        self.trails: dict[Node, _Trail] = {}
        self._follow(module)

    def hand_on(self, after: Module) -> Module:
        """What a pass made of the module followed so far, with the origins that it lost; followed from now on."""
        before = list(self.trails.values())
        used = {origin for trail in before for origin in trail.used}
        self._follow(after)
        lost = used.difference(*(trail.used for trail in self.trails.values()))
        if lost:
            taken = _taken(before, lost)
            after = after.with_functions(tuple(_with_taken(function, taken) for function in after.functions))
            self._follow(after)
        return after

    def _follow(self, module: Module) -> None:
        """Reads the parts of a module that are not among those read before; only those of this module are kept."""
        known, self.trails = self.trails, {}
        for function in module.functions:
            for part in _parts(function):
                self.trails[part] = known.get(part) or _trail(part, function.name)


def take_over(function: Function, taken: Mapping[Var, Iterable[str]]) -> Function:
    """`function` with more origins for some of its variables, as far as these have fewer than MOST."""
    heirs: dict[Var, Var] = {}
    for var, more in taken.items():
        origins = tuple(dict.fromkeys((*var.origins, *more)))[: max(MOST, len(var.origins))]
        if origins != var.origins:
            heirs[var] = replace(var, origins=origins)
    if not heirs:
        return function
    return rewrite(lambda expr: heirs.get(expr) if isinstance(expr, Var) else None, function)


@dataclass(frozen=True)
class _Result:
    """The result of a function of the module, as the user of what it is."""

    function: str


@dataclass
class _Trail:
    """Where the origins in a part of a function lead.

    bound: origins of variables that it binds, in order.  used: of variables that it uses, and of the operators,
    kernels and blocks in it.  users: an origin of a variable -> the own places of what uses that here.
    """

    bound: dict[str, None] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)
    users: dict[str, dict[Hashable, None]] = field(default_factory=dict)

    def visit(self, item: Node, user: Hashable, own: tuple[str, ...] = ()) -> None:
        """user: the own place of what `item` is a part of.  own: the origins of the variable that is bound to it; they
        are used where that is."""
        match item:
            case Var(origins=origins):
                for origin in origins:
                    self.used[origin] = None
                    if user != origin:
                        self.users.setdefault(origin, {})[user] = None
                return
            case Binding(var=var, value=value) | MatchCast(var=var, value=value):
                self.bound.update(dict.fromkeys(var.origins))
                if var.type == VOID:  # what it does is its use
                    self.used.update(dict.fromkeys(var.origins))
                self.visit(value, var.origin or user, var.origins)
                return
            case Function(params=params):
                for param in params:
                    self.bound.update(dict.fromkeys(param.origins))
                self.visit(item.body, user)
                return
            case OpCall(origins=origins) | KernelCall(origins=origins):
                self.used.update(dict.fromkeys(origin for origin in origins if origin not in own))
                user = user if own or not origins else origins[0]
            case Block(origin=origin) if origin:
                self.used[origin] = None
        for child in children(item):
            self.visit(child, user)


def _parts(function: Function) -> Iterator[Node]:
    """What a function of the module is read by: its bindings, so that those that a pass leaves are not read again."""
    yield function
    if isinstance(function.body, Block):
        yield from function.body.bindings


def _trail(part: Node, function: str) -> _Trail:
    trail = _Trail()
    if not isinstance(part, Function):
        trail.visit(part, "")
        return trail
    for param in part.params:
        trail.bound.update(dict.fromkeys(param.origins))
    if isinstance(part.body, Block):
        trail.used.update(dict.fromkeys(filter(None, (part.body.origin,))))
        trail.visit(part.body.result, _Result(function))
    else:
        trail.visit(part.body, _Result(function))
    return trail


def _taken(trails: list[_Trail], lost: set[str]) -> Taken:
    """What the users of lost origins take over."""
    users: dict[str, dict[Hashable, None]] = {}
    for trail in trails:
        for origin in lost.intersection(trail.users):
            users.setdefault(origin, {}).update(trail.users[origin])
    taken: Taken = {}
    for origin in dict.fromkeys(origin for trail in trails for origin in trail.bound):
        if origin not in lost:
            continue
        handed = {**taken.pop(origin, {}), origin: None}  # all of it: users come after what they use
        for user in users.get(origin, ()):
            heirs = taken.setdefault(user, {})
            if len(heirs) < MOST:
                heirs.update(handed)
    return taken


def _with_taken(function: Function, taken: Taken) -> Function:
    found = {var: taken[var.origin] for var in bound_vars(function) if var.origin in taken}
    result = function.body.result if isinstance(function.body, Block) else None
    if isinstance(result, Var) and (of_result := taken.get(_Result(function.name))):
        found[result] = {**found.get(result, {}), **of_result}
    return take_over(function, found)
