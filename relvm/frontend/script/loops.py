"""Loops of scripts: each loop becomes a tail-recursive local function.

    while c:            def loop(x):
        x = f(x)            return loop(f(x)) if c else x
                        x = loop(x)

Variables that exist before the loop and are assigned in it are loop-carried: they become parameters of the function.
The example shows a loop on the left, and its translation on the right.  If the loop contains a return, the statements
after the loop become part of the function.  Every exit of the loop then ends with the result of the enclosing function.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.frontend.script.array_functions import as_size
from relvm.frontend.script.control_flow import ControlFlowTranslator, JoinPoint, OpenPaths, pack
from relvm.frontend.script.iteration import LoopItems
from relvm.frontend.script.name_analysis import contains_return, loaded_names, stored_names
from relvm.frontend.script.values import Unbound, is_static
from relvm.ir.builder import OpenFunction
from relvm.ir.dtypes import F64, I64, DType
from relvm.ir.expr import Call, Expr, prim
from relvm.ir.types import PrimType, TensorType, Type, is_proven, join


@value_record
class Continuation:
    """The code that runs after statements if they do not return.

    value: a function that translates this code and returns its result.  live: the names that this code uses.
    """

    value: Callable[[], Expr]
    live: frozenset[str]


@value_record
class LoopExits:
    """The translations of `continue` and `break` in the body of a loop.

    Each is a function that returns the expression with which the current path through the body ends.

    next: continue with the next iteration.   leave: end the loop.
    """

    next: Callable[[], Expr]
    leave: Callable[[], Expr]


@value_record
class _Counter:
    """The counter `name` of a `for`, which runs from `start` to `stop` (exclusive) in steps of `step`.

    The step is a nonzero constant.  In a loop over items, the counter is their index.

    target: the target of a loop over items, or None.   items: the items, or None.
    """

    name: str
    start: Expr
    stop: Expr
    step: int
    target: ast.expr | None = None
    items: LoopItems | None = None


class _WidenedTypesError(Exception):
    """Raised if an iteration computes values whose types are wider than those for which the loop was translated.

    The loop is then translated again, for wider types.

    types: the types of the loop-carried values after the iteration.
    """

    def __init__(self, types: list[Type]) -> None:
        self.types = types


class LoopTranslator(ControlFlowTranslator):
    """Translates loops.

    result_type: the result type of the function being translated.
    loop: the exits of the innermost enclosing loop.
    end: the continuation, which runs if the statements being translated do not return.  It is None if they must return.
    """

    result_type: Type | None = None
    loop: LoopExits | None = None
    end: Continuation | None = None

    @abstractmethod
    def translate_path(self, body: list[ast.stmt], node: ast.stmt, end: Continuation | None) -> Expr:
        """Translate the statements `body` in a copy of the scope.

        Return their result, or the result of the continuation `end` if they do not return.  If `end` is None, they must
        return.

        node: the statement at which an error is reported if they must return but do not.
        """

    def loop_statement(
        self,
        statement: ast.While | ast.For,
        following: list[ast.stmt],
        live: frozenset[str],
        items: LoopItems | None = None,
    ) -> tuple[Expr | None, bool]:
        """Translate a loop.

        following: the statements after the loop.  live: the names used after these statements.
        items: the items of a for loop that does not iterate over a range.

        Returns
        -------
        Expr | None
            If the loop contains a return, the result of the loop and the statements after it, otherwise None.
        bool
            Whether the loop contains a return.
        """
        if statement.orelse:
            raise self.unsupported("the else clause of a loop", statement, "set a variable before each break")
        counter = self.counter(statement, items) if isinstance(statement, ast.For) else None
        has_return = contains_return(statement)
        if has_return and self.result_type is None:
            reason = "a return inside a loop requires an annotated result type"
            raise self.error(RelvmTypeError, reason, statement)
        assigned = list(dict.fromkeys(stored_names([statement])))
        used_later = loaded_names(following) | live
        used = loaded_names([statement]) | used_later
        carried = [name for name in assigned if name in used and not isinstance(self.scope[name], Unbound)]
        initial_values = [self.as_expr(self.scope[name]) for name in carried]
        types = [_without_known_value(value.type) for value in initial_values]
        while True:
            names = self.builder.names()
            exits = OpenPaths([name for name in assigned if name in used_later])
            try:
                function = self.open_loop(statement, counter, carried, types, exits, has_return)
                break
            except _WidenedTypesError as widened:
                self.builder.restore_names(names)
                types = self.widen_types(statement, carried, types, widened.types)
                initial_values = [
                    self.as_expr(self.scope[name], type_) if is_static(self.scope[name]) else value
                    for name, type_, value in zip(carried, types, initial_values, strict=True)
                ]

        join_point = self.exit_join_point(statement, exits, carried, types)
        end = self.continuation_function(statement, following, join_point) if has_return and exits.ended_paths else pack
        body = self.close_paths(function.body, exits, join_point, end)
        loop = self.builder.close_function(function, body, self.value_type if has_return else join_point.packed_type)
        start = [counter.start] if counter else []
        value = self.builder.call(loop, *start, *initial_values, name="result" if has_return else join_point.value_name)
        if has_return:
            return value, True
        self.assign_join_values(join_point, value)
        return None, False

    def exit_join_point(
        self, statement: ast.While | ast.For, exits: OpenPaths, carried: list[str], types: list[Type]
    ) -> JoinPoint:
        """Return the join point of the paths that leave a loop.

        If no path leaves the loop, the `params` of the join point are the loop-carried names that are used after the
        loop.

        exits: the paths.   carried: the loop-carried names.   types: the types of their values.
        """
        if not exits.ended_paths:
            return JoinPoint(
                [(name, type_) for name, type_ in zip(carried, types, strict=True) if name in exits.names], {}
            )
        where = f"the loop at line {statement.lineno}"
        unset_message = f"is assigned only in {where}, which may run zero iterations"
        if _never_ends_by_itself(statement):
            unset_message = f"is assigned only on some paths out of {where}"
        return self.make_join_point(exits, stored_names([statement]), unset_message, where)

    def continuation_function(
        self, statement: ast.stmt, following: list[ast.stmt], join_point: JoinPoint
    ) -> Callable[[list[Expr]], Expr]:
        """Translate the code from a join point on to a local function.

        Return a Python function that builds a call of the local function from the values of the join point's `params`.

        statement: the statement before the join point.   following: the statements after it.
        """

        def body(*values: Expr) -> Expr:
            outer = self.scope
            self.scope = {**outer, **join_point.scope, **dict(zip(dict(join_point.params), values, strict=True))}
            try:
                return self.translate_path(following, statement, self.end)
            finally:
                self.scope = outer

        function = self.builder.local_function(join_point.params, body, self.value_type, name="rest")
        return lambda values: Call(function, tuple(values))

    def counter(self, statement: ast.For, items: LoopItems | None) -> _Counter:
        target = statement.target
        if items is not None:
            name = target.id if isinstance(target, ast.Name) else "item"
            return _Counter(name, prim(0), as_size(items.count), 1, target, items)
        call = statement.iter
        assert isinstance(call, ast.Call), "a loop over anything else has items"
        args = call.args
        if not 1 <= len(args) <= 3 or call.keywords:
            raise self.error(RelvmArgumentError, "range: expected 1 to 3 integers", call)
        if not isinstance(statement.target, ast.Name):
            raise self.unsupported("a loop variable that is not a name", statement.target)
        bounds = [self.at_node(arg, partial(self.bound, arg)) for arg in args[:2]]
        step = self.expression(args[2]) if len(args) == 3 else 1
        if type(step) is not int or step == 0 or not -(1 << 63) <= step < 1 << 63:
            raise self.error(
                RelvmTypeError, "the step of a range must be a nonzero integer known at translation time", call
            )
        start, stop = bounds if len(bounds) == 2 else (prim(0), bounds[0])
        return _Counter(statement.target.id, start, stop, step)

    def bound(self, node: ast.expr) -> Expr:
        return self.as_integer(self.expression(node))

    def open_loop(
        self,
        statement: ast.While | ast.For,
        counter: _Counter | None,
        carried: list[str],
        types: list[Type],
        exits: OpenPaths,
        has_return: bool,
    ) -> OpenFunction:
        """Translate a loop to a local function.

        Raise _WidenedTypesError if an iteration computes values that do not have the types in `types`.

        carried: the loop-carried names, which become parameters.
        types: the types of these parameters.
        exits: a collection to which the paths that leave the loop are added.
        has_return: whether the loop contains a return.  The local function then includes the statements after the loop,
        and returns the result of the enclosing function.
        """
        params: list[tuple[str, Type]] = [(f"{counter.name}_count", PrimType(I64))] if counter else []
        params += zip(carried, types, strict=True)

        def body(function: Expr, *variables: Expr) -> Expr:
            count = variables[0] if counter else None
            scope = dict(self.scope)
            scope.update(zip(carried, variables[1:] if counter else variables, strict=True))
            outer = self.scope, self.value_type
            self.scope, self.value_type = scope, self.value_type if has_return else None
            try:
                return self.translate_iteration(statement, counter, count, carried, types, function, exits)
            finally:
                self.scope, self.value_type = outer

        return self.builder.open_function("loop", params, body, self.value_type if has_return else None)

    def translate_iteration(
        self,
        statement: ast.While | ast.For,
        counter: _Counter | None,
        count: Expr | None,
        carried: list[str],
        types: list[Type],
        function: Expr,
        exits: OpenPaths,
    ) -> Expr:
        """Translate the body of the local function: one iteration followed by a recursive call, or the end of the loop.

        counter, count: the counter of a `for` and its current value, or None for a `while`.
        carried: the loop-carried names, which are parameters of the local function.
        types: the types of these parameters.
        function: the variable of the local function.
        exits: a collection to which the paths that leave the loop are added.
        """

        def next_iteration() -> Expr:
            values = [
                self.as_expr(self.lookup(name, statement), type_) for name, type_ in zip(carried, types, strict=True)
            ]
            new_types = [value.type for value in values]
            if not all(map(is_proven, types, new_types)):
                raise _WidenedTypesError(new_types)
            next_count = [self.next_count(counter, count)] if counter and count else []
            return self.builder.call(function, *next_count, *values)

        def leave() -> Expr:
            return self.end_path(exits)

        def inside() -> Expr:
            if counter and count and counter.items and counter.target:
                self.assign(counter.target, counter.items.item(count))
            elif counter and count:
                self.scope[counter.name] = count
            outer, self.loop = self.loop, LoopExits(next_iteration, leave)
            try:
                return self.translate_path(
                    statement.body, statement, Continuation(next_iteration, frozenset((*carried, *exits.names)))
                )
            finally:
                self.loop = outer

        if counter and count:
            test: bool | Expr = self.builder.prim("lt" if counter.step > 0 else "gt", count, counter.stop)
        else:
            assert isinstance(statement, ast.While)
            test = self.condition(statement.test)
        if test is True:
            return inside()
        return self.builder.if_(
            self.as_expr(test), lambda: self.in_scope_copy(inside), lambda: self.in_scope_copy(leave)
        )

    def in_scope_copy(self, action: Callable[[], Expr]) -> Expr:
        """Call `action` with a copy of the scope, so that its assignments are undone.  Return its result."""
        outer, self.scope = self.scope, dict(self.scope)
        try:
            return action()
        finally:
            self.scope = outer

    def next_count(self, counter: _Counter, count: Expr) -> Expr:
        """Return the counter of the next iteration, or the stop of the range if the counter would overflow i64.

        count: the current value of the counter.
        """
        next_count = self.builder.prim("add", count, prim(counter.step))
        if abs(counter.step) == 1:
            return next_count
        fits = self.builder.prim("gt" if counter.step > 0 else "lt", next_count, count)
        return self.builder.if_(fits, lambda: next_count, lambda: counter.stop)

    def widen_types(
        self, statement: ast.stmt, carried: list[str], types: list[Type], new_types: list[Type]
    ) -> list[Type]:
        """Return types that cover the values of the loop-carried names before the loop and after an iteration.

        carried: the loop-carried names.
        types: their types before the loop.
        new_types: their types after an iteration.
        """
        joined = []
        for name, before, after in zip(carried, types, new_types, strict=True):
            both = self.number_type(name, before, after) or join(before, self.outer_type(after))
            if both is None:
                raise self.error(
                    RelvmTypeError, f"{name} is {before} before the loop but {after} after an iteration", statement
                )
            joined.append(both)
        return joined

    def number_type(self, name: str, before: Type, after: Type) -> Type | None:
        """Return the type of a variable that is a Python number before the loop, and a wider number afterwards.

        As in NumPy, the number takes the dtype of the tensor or scalar with which the loop combines it.  For any other
        variable, return None.
        """
        number = self.scope[name]
        if type(number) not in (int, float) or not isinstance(before, PrimType):
            return None
        is_integer = type(number) is int
        match after:
            case TensorType(dtype=DType() as dtype, rank=0) if dtype.is_float or (dtype.is_integer and is_integer):
                return TensorType(dtype, ())
            case PrimType(dtype=dtype) if dtype == F64 and is_integer:
                return PrimType(F64)
        return None


def _never_ends_by_itself(statement: ast.While | ast.For) -> bool:
    return isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)


def _without_known_value(type_: Type) -> Type:
    """Return `type_` without the known value of a scalar, because each iteration can change the value."""
    return PrimType(type_.dtype) if isinstance(type_, PrimType) else type_
