"""Control flow of scripts: the paths through statements, and the join points at which they meet.

    if a:                   def rest(x):
        if b:                   ...
            return y        if a then (if b then y else rest(x)) else rest(f(x))
    else:
        x = f(x)
    ...

The example shows a script on the left, and its translation on the right.  Each path ends with an open call.  The callee
of an open call is a placeholder variable.  Its arguments are the values, at the end of the path, of the names that
later code uses.  Which of these names every path sets, and to which values, is known only after all paths are
translated.  The open calls are then replaced by calls of the continuation, or by tuples.  The code after the join point
is thus translated only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from relvm.data_classes import value_record
from relvm.errors import RelvmTypeError
from relvm.frontend.script.expressions import ExpressionTranslator
from relvm.frontend.script.values import Template, Unbound, Value, is_static
from relvm.ir.expr import Block, Call, DimValue, Expr, Null, Tuple, TupleItem, Var
from relvm.ir.types import OBJECT, FuncType, PrimType, TupleType, Type, forget_vars, join, type_vars
from relvm.ir.visitor import rewrite


@value_record
class ControlPath:
    """The end of one path through statements.

    values: for each name that is used later, its value at the end of the path.  types: the type of each value that the
    IR can represent, by name, in the order of the open call's arguments.  reasons: why the IR cannot represent each of
    the other values, by name.
    """

    values: dict[str, Value]
    types: dict[str, Type]
    reasons: dict[str, str]


@value_record
class OpenPaths:
    """The paths that lead to one join point.

    names: the names that are assigned on some of the paths and used after the join point.  taken: the paths translated
    so far, by the placeholder variable that their open call calls.
    """

    names: list[str]
    taken: dict[Var, ControlPath] = field(default_factory=dict)


@value_record
class JoinPoint:
    """A join point, at which paths meet.

    params: the names whose values differ between paths, each with a type that covers its values.  scope: the values of
    the other names that the paths assign.  If such a name has no usable value, its value is an Unbound.
    """

    params: list[tuple[str, Type]]
    scope: dict[str, Value]

    @property
    def packed_type(self) -> Type:
        """The type of one expression that contains the values of all `params` (see `packed`)."""
        types = tuple(type_ for _, type_ in self.params)
        if not types:
            return OBJECT
        return types[0] if len(types) == 1 else TupleType(types)

    @property
    def value_name(self) -> str | None:
        """The name for a variable that contains the values of all `params`, or None if it needs no particular name."""
        return self.params[0][0] if len(self.params) == 1 else None if self.params else "_"


class ControlFlowTranslator(ExpressionTranslator):
    """Translates the ends of paths, and the join points at which they meet.

    value_type: the result type of the statements being translated, or None if it is not known yet.
    """

    value_type: Type | None = None

    def take(self, ways: OpenPaths) -> Expr:
        """End a path at the current statement, and return its open call.

        ways: the paths to the next join point, to which the path is added.
        """
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
        """Return the join point at which the paths `ways` meet.

        The current scope must be the one in which the paths begin.

        assigned: the names that the paths assign.  unset: the error message for a name that some path does not assign.
        where: a description of the statements that contain the paths, for messages.
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
        """Return a type that covers the values of `name` on all paths, or an Unbound if there is none.

        ways: the paths.  where: as for `meeting`.
        """
        for way in ways:
            if name in way.reasons:
                return Unbound(way.reasons[name], RelvmTypeError)
        types = [self.visible(way.types[name]) for way in ways]
        joined = types[0]
        for type_ in types[1:]:
            both = join(joined, type_)
            if both is None:
                reason = f"{name} is {joined} on one path but {type_} on another ({where})"
                return Unbound(reason, RelvmTypeError)
            joined = both
        return joined

    def agreed(self, name: str, values: list[Value]) -> bool:
        """Return whether `name` has the same value on all paths, and this value remains valid after them.

        values: the value at the end of each path.
        """
        first = values[0]
        if all(value is first for value in values) and self.scope[name] is first:
            return True
        return self.outlasts(first) and all(_same(first, value) for value in values)

    def outlasts(self, value: Value) -> bool:
        """Return whether a value remains valid outside the block that computed it."""
        match value:
            case DimValue():
                return all(var in self.builder.known_dims() for var in type_vars(value.type))
            case Expr() | Template():
                return False
            case tuple() | list():
                return all(map(self.outlasts, value))
        return True

    def visible(self, type_: Type) -> Type:
        """Return `type_` without dimensions local to an inner block, and without the known value of a scalar.

        The value of a scalar can differ between paths.
        """
        type_ = PrimType(type_.dtype) if isinstance(type_, PrimType) else type_
        return forget_vars(type_, self.builder.known_dims().__contains__)

    def closed(self, block: Block, ways: OpenPaths, meeting: JoinPoint, end: Callable[[list[Expr]], Expr]) -> Block:
        """Return `block` with each open call of the paths `ways` replaced by the result of `end`.

        end: a function that translates the end of a path.  Its argument is the list of the values that the `params` of
        the join point `meeting` have there.
        """

        def close(expr: Expr) -> Expr | None:
            if not isinstance(expr, Call) or expr.callee not in ways.taken:
                return None
            arguments = dict(zip(ways.taken[expr.callee].types, expr.args, strict=True))
            return end([arguments[name] for name, _ in meeting.params])

        return rewrite(close, block)

    def unpack(self, meeting: JoinPoint, value: Expr) -> None:
        """Set the names in the scope to their values after the join point `meeting`.

        value: the values of its `params`, packed into one expression by `packed`.
        """
        self.scope.update(meeting.scope)
        for i, (name, _) in enumerate(meeting.params):
            self.scope[name] = self.builder.emit(TupleItem(value, i), name) if len(meeting.params) > 1 else value


def packed(values: list[Expr]) -> Expr:
    """Pack values into one expression: null, the single value, or a tuple."""
    if not values:
        return Null()
    return values[0] if len(values) == 1 else Tuple(tuple(values))


def _same(first: Value, second: Value) -> bool:
    """Return whether two values are known to be equal.  1, 1.0 and True are different values.

    Both must remain valid outside the block that computed them (see `ControlFlowTranslator.outlasts`).
    """
    if isinstance(first, DimValue) and isinstance(second, DimValue):
        return first.dim == second.dim
    return first is second or (is_static(first) and is_static(second) and repr(first) == repr(second))
