"""The ways through statements of a script to what follows them, where they meet.

    if a:                   def rest(x):
        if b:                   ...
            return y        if a then (if b then y else rest(x)) else rest(f(x))
    else:
        x = f(x)
    ...

Each way ends with an open call, of a variable of its own, of the values that it has for the names that are used later.
When all ways are translated it is known which names all of them set, and to what; then the open calls become calls of
the rest, or tuples.  So what follows is translated once, however many ways lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from relvm.errors import RelvmTypeError
from relvm.frontend.script.expressions import ExpressionTranslator
from relvm.frontend.script.values import Template, Unbound, Value, is_static
from relvm.ir.expr import Block, Call, DimValue, Expr, Null, Tuple, TupleItem, Var
from relvm.ir.types import OBJECT, FuncType, PrimType, TupleType, Type, forget_vars, join, type_vars
from relvm.ir.visitor import rewrite


@dataclass(frozen=True)
class ControlPath:
    """The end of one way.

    values: of the names, as they are there.  types: of those that can be values of the program, which are the arguments
    of the open call, in their order.  reasons: why others cannot.
    """

    values: dict[str, Value]
    types: dict[str, Type]
    reasons: dict[str, str]


@dataclass(frozen=True)
class OpenPaths:
    """names: those that the ways may assign and that are used after them.  taken: by what the open calls call."""

    names: list[str]
    taken: dict[Var, ControlPath] = field(default_factory=dict)


@dataclass(frozen=True)
class JoinPoint:
    """Where ways meet.

    params: the names that have other values on other ways, with their types.  scope: the values of the other names.
    """

    params: list[tuple[str, Type]]
    scope: dict[str, Value]

    @property
    def packed_type(self) -> Type:
        """Of the values of `params`, packed."""
        types = tuple(type_ for _, type_ in self.params)
        if not types:
            return OBJECT
        return types[0] if len(types) == 1 else TupleType(types)

    @property
    def value_name(self) -> str | None:
        """Of a variable that holds the values of `params`, packed."""
        return self.params[0][0] if len(self.params) == 1 else None if self.params else "_"


class ControlFlowTranslator(ExpressionTranslator):
    """Translates the ends of ways, and where they meet.

    value_type: of the result that the statements being translated end in; None where that is not known yet.
    """

    value_type: Type | None = None

    def take(self, ways: OpenPaths) -> Expr:
        """Ends a way here: gives the open call."""
        values = {name: self.scope[name] for name in ways.names}
        arguments: dict[str, Expr] = {}
        reasons: dict[str, str] = {}
        for name, value in values.items():
            if isinstance(value, Unbound):
                continue
            try:
                arguments[name] = self.as_expr(value)
            except RelvmTypeError as error:
                reasons[name] = f"{name}: {error}"
        var = Var("way", type=FuncType((OBJECT,) * len(arguments), self.value_type or OBJECT))
        ways.taken[var] = ControlPath(values, {name: value.type for name, value in arguments.items()}, reasons)
        return Call(var, tuple(arguments.values()))

    def meeting(self, ways: OpenPaths, assigned: Iterable[str], unset: str, where: str) -> JoinPoint:
        """Where ways, at least one, meet, seen from the scope before them.

        assigned: the names that statements on the ways assign.  unset: what is said of one that is not set on all ways.
        where: the statements, for messages.
        """
        params: list[tuple[str, Type]] = []
        scope: dict[str, Value] = {name: Unbound(f"{name} {unset}") for name in assigned}
        taken = list(ways.taken.values())
        for name in ways.names:
            values = [way.values[name] for way in taken]
            missing = [value for value in values if isinstance(value, Unbound)]
            if missing:
                scope.update((name, value) for value in missing if value.kind is RelvmTypeError)
            elif self.agreed(name, values):
                scope[name] = values[0]
            elif isinstance(type_ := self.joined(name, taken, where), Unbound):
                scope[name] = type_
            else:
                params.append((name, type_))
        return JoinPoint(params, scope)

    def joined(self, name: str, ways: list[ControlPath], where: str) -> Type | Unbound:
        """The type that holds a name's values on all ways."""
        for way in ways:
            if name in way.reasons:
                return Unbound(way.reasons[name], RelvmTypeError)
        types = [self.visible(way.types[name]) for way in ways]
        joined = types[0]
        for type_ in types[1:]:
            both = join(joined, type_)
            if both is None:
                reason = f"{name} is {joined} on one path and {type_} on another, in {where}"
                return Unbound(reason, RelvmTypeError)
            joined = both
        return joined

    def agreed(self, name: str, values: list[Value]) -> bool:
        """Whether all ways have the same value, and that is one in the scope before them too."""
        first = values[0]
        if all(value is first for value in values) and self.scope[name] is first:
            return True
        return self.outlasts(first) and all(_same(first, value) for value in values)

    def outlasts(self, value: Value) -> bool:
        """Whether a value is the same out of the block that it was computed in."""
        match value:
            case DimValue():
                return all(var in self.builder.known_dims() for var in type_vars(value.type))
            case Expr() | Template():
                return False
            case tuple() | list():
                return all(map(self.outlasts, value))
        return True

    def visible(self, type_: Type) -> Type:
        """The type without the dimensions that only a block inside knows, and without the value of a scalar, which may
        be another each time."""
        type_ = PrimType(type_.dtype) if isinstance(type_, PrimType) else type_
        return forget_vars(type_, self.builder.known_dims().__contains__)

    def closed(self, block: Block, ways: OpenPaths, meeting: JoinPoint, end: Callable[[list[Expr]], Expr]) -> Block:
        """`block` with its open calls replaced by what `end` makes of the values of the meeting's `params`."""

        def close(expr: Expr) -> Expr | None:
            if not isinstance(expr, Call) or expr.callee not in ways.taken:
                return None
            arguments = dict(zip(ways.taken[expr.callee].types, expr.args, strict=True))
            return end([arguments[name] for name, _ in meeting.params])

        return rewrite(close, block)

    def unpack(self, meeting: JoinPoint, value: Expr) -> None:
        """The scope where ways have met, whose values are packed in `value`."""
        self.scope.update(meeting.scope)
        for i, (name, _) in enumerate(meeting.params):
            self.scope[name] = self.builder.emit(TupleItem(value, i), name) if len(meeting.params) > 1 else value


def packed(values: list[Expr]) -> Expr:
    """What stands for the values: one, or a tuple of them."""
    if not values:
        return Null()
    return values[0] if len(values) == 1 else Tuple(tuple(values))


def _same(first: Value, second: Value) -> bool:
    """Whether two values that need no block are known to be the same; 1, 1.0 and True are not."""
    if isinstance(first, DimValue) and isinstance(second, DimValue):
        return first.dim == second.dim
    return first is second or (is_static(first) and is_static(second) and repr(first) == repr(second))
