"""Control flow of scripts: the paths through statements, and the join points at which they meet.

    if a:                   def rest(x):
        if b:                   ...
            return y        if a then (if b then y else rest(x)) else rest(f(x))
    else:
        x = f(x)
    ...

The example shows a script on the left, and its translation on the right.  The code after the join point is translated
only once: to the function `rest`.

At first, each path ends with an open call.  This is a call whose callee is a placeholder variable, and whose arguments
are the values of the names that later code uses.  After all paths are translated, it is known which of these names need
a parameter.  Each open call is then replaced by a call of the continuation, or by a tuple of values.
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
    """The state at the end of one path through statements.

    At first, a path ends with an open call: a call of a placeholder variable.  The call is replaced later.

    values: the value of each name that later code uses.
    types: the type of each value that the IR can represent, by name, in the order of the open call's arguments.
    reasons: error messages for the other values, by name.
    """

    values: dict[str, Value]
    types: dict[str, Type]
    reasons: dict[str, str]


@value_record
class OpenPaths:
    """The paths that lead to one join point.

    names: the names that are assigned on some of the paths and used after the join point.
    ended_paths: the paths that have been translated so far, by the placeholder variable that is called at their end.
    """

    names: list[str]
    ended_paths: dict[Var, ControlPath] = field(default_factory=dict)


@value_record
class JoinPoint:
    """A point in a script at which several paths meet.

    params: the names whose values differ between paths, each with a type that covers its values.
    scope: the values of the other names that the paths assign.  A name that later code cannot use has an Unbound as its
    value.
    """

    params: list[tuple[str, Type]]
    scope: dict[str, Value]

    @property
    def packed_type(self) -> Type:
        """The type of the expression into which `pack` packs the values of all `params`."""
        types = tuple(type_ for _, type_ in self.params)
        if not types:
            return OBJECT
        return types[0] if len(types) == 1 else TupleType(types)

    @property
    def value_name(self) -> str | None:
        """The name for the variable that contains the values of all `params`.

        It is the name of the only parameter, or "_" if there are no parameters.  None means that any name can be used.
        """
        return self.params[0][0] if len(self.params) == 1 else None if self.params else "_"


class ControlFlowTranslator(ExpressionTranslator):
    """Translates the control flow of statements: where a path of execution ends, and where several paths join.

    value_type: the result type of the statements being translated, or None if it is not known yet.
    """

    value_type: Type | None = None

    def end_path(self, paths: OpenPaths) -> Expr:
        """End the current path, and return its open call.

        An open call is a call of a placeholder variable.  It is replaced later.

        paths: the paths that lead to the same join point, to which this path is added.
        """
        values = {name: self.scope[name] for name in paths.names}
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
        paths.ended_paths[var] = ControlPath(values, {name: value.type for name, value in arguments.items()}, reasons)
        return Call(var, tuple(arguments.values()))

    def make_join_point(self, paths: OpenPaths, assigned: Iterable[str], unset_message: str, where: str) -> JoinPoint:
        """Return the join point of the given paths.

        The current scope must be the one in which the paths begin.

        assigned: the names that the paths assign.
        unset_message: the error message, without the name, for using a name that some path does not assign.
        where: a description of the statements that contain the paths, for messages.
        """
        params: list[tuple[str, Type]] = []
        scope: dict[str, Value] = {name: Unbound(f"{name} {unset_message}") for name in assigned}
        ended_paths = list(paths.ended_paths.values())
        for name in paths.names:
            values = [path.values[name] for path in ended_paths]
            missing = [value for value in values if isinstance(value, Unbound)]
            if missing:
                scope.update((name, value) for value in missing if value.kind is RelvmTypeError)
            elif self.is_same_on_all_paths(name, values):
                scope[name] = values[0]
            elif isinstance(type_ := self.join_types(name, ended_paths, where), Unbound):
                scope[name] = type_
            else:
                params.append((name, type_))
        return JoinPoint(params, scope)

    def join_types(self, name: str, paths: list[ControlPath], where: str) -> Type | Unbound:
        """Return a type that covers the values of `name` on all paths, or an Unbound if there is no such type.

        where: a description of the statements that contain the paths, for messages.
        """
        for path in paths:
            if name in path.reasons:
                return Unbound(path.reasons[name], RelvmTypeError)
        types = [self.outer_type(path.types[name]) for path in paths]
        joined = types[0]
        for type_ in types[1:]:
            both = join(joined, type_)
            if both is None:
                reason = f"{name} is {joined} on one path but {type_} on another ({where})"
                return Unbound(reason, RelvmTypeError)
            joined = both
        return joined

    def is_same_on_all_paths(self, name: str, values: list[Value]) -> bool:
        """Return whether `name` has the same value at the end of all paths, and later code can use this value directly.

        values: the value of `name` at the end of each path.
        """
        first = values[0]
        if all(value is first for value in values) and self.scope[name] is first:
            return True
        return self.is_valid_outside_block(first) and all(_same(first, value) for value in values)

    def is_valid_outside_block(self, value: Value) -> bool:
        """Return whether code outside of the block that computed `value` can use the value."""
        match value:
            case DimValue():
                return all(var in self.builder.known_dims() for var in type_vars(value.type))
            case Expr() | Template():
                return False
            case tuple() | list():
                return all(map(self.is_valid_outside_block, value))
        return True

    def outer_type(self, type_: Type) -> Type:
        """Return a less precise type that is valid after the paths have met.

        The result does not mention dimension variables that an inner block defines, nor the known value of a scalar,
        which can differ between paths.
        """
        type_ = PrimType(type_.dtype) if isinstance(type_, PrimType) else type_
        return forget_vars(type_, self.builder.known_dims().__contains__)

    def close_paths(
        self, block: Block, paths: OpenPaths, join_point: JoinPoint, end: Callable[[list[Expr]], Expr]
    ) -> Block:
        """Return `block` with the placeholder call at the end of each path replaced by the result of `end`.

        end: a function that returns the expression with which a path ends.  Its argument is the list of the values of
        the join point's `params` at the end of the path.
        """

        def close(expr: Expr) -> Expr | None:
            if not isinstance(expr, Call) or expr.callee not in paths.ended_paths:
                return None
            arguments = dict(zip(paths.ended_paths[expr.callee].types, expr.args, strict=True))
            return end([arguments[name] for name, _ in join_point.params])

        return rewrite(close, block)

    def assign_join_values(self, join_point: JoinPoint, value: Expr) -> None:
        """Set the names in the scope to their values after the join point.

        value: an expression with the values of the join point's `params`, as `pack` returns it.
        """
        self.scope.update(join_point.scope)
        for i, (name, _) in enumerate(join_point.params):
            self.scope[name] = self.builder.emit(TupleItem(value, i), name) if len(join_point.params) > 1 else value


def pack(values: list[Expr]) -> Expr:
    """Pack values into one expression: null, the single value, or a tuple."""
    if not values:
        return Null()
    return values[0] if len(values) == 1 else Tuple(tuple(values))


def _same(first: Value, second: Value) -> bool:
    """Return whether two values are known to be equal.  `first` must be valid outside of its block.

    1, 1.0 and True are different values.
    """
    if isinstance(first, DimValue) and isinstance(second, DimValue):
        return first.dim == second.dim
    return first is second or (is_static(first) and is_static(second) and repr(first) == repr(second))
