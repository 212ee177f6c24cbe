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
from relvm.errors import RelvmTypeError
from relvm.frontend.script.control_flow import ControlFlowTranslator, JoinPoint, OpenPaths, packed
from relvm.frontend.script.name_analysis import loads, returns, stores
from relvm.frontend.script.values import Unbound
from relvm.ir.builder import OpenFunction
from relvm.ir.dtypes import I64
from relvm.ir.expr import Call, Expr, prim
from relvm.ir.types import PrimType, Type, is_proven, join


@value_record
class Continuation:
    """The code that follows statements if they do not return.

    value: a function that translates this code and returns its result.  live: the names that this code uses.
    """

    value: Callable[[], Expr]
    live: frozenset[str]


@value_record
class LoopExits:
    """The two ways to leave the body of a loop.

    Each is a function that returns the expression with which the current path through the body ends.   next: continue
    with the next iteration.   leave: end the loop.
    """

    next: Callable[[], Expr]
    leave: Callable[[], Expr]


@value_record
class _Counter:
    """The counter `name` of a `for`, which runs from `start` to `stop` (exclusive) in steps of `step`.

    The step is a nonzero constant.
    """

    name: str
    start: Expr
    stop: Expr
    step: int


class _WiderError(Exception):
    """Raised if an iteration computes values of wider types than those for which the loop was translated.

    types: the types of the loop-carried values after the iteration.
    """

    def __init__(self, types: list[Type]) -> None:
        self.types = types


class LoopTranslator(ControlFlowTranslator):
    """Translates loops.

    result_type: the result type of the function being translated.  loop: the exits of the innermost enclosing loop.
    end: the continuation, which runs if the statements being translated do not return.  It is None if they must return.
    """

    result_type: Type | None = None
    loop: LoopExits | None = None
    end: Continuation | None = None

    @abstractmethod
    def path(self, body: list[ast.stmt], node: ast.stmt, end: Continuation | None) -> Expr:
        """Translate the statements `body` in a copy of the scope.

        Return their result, or the result of `end` if they do not return.   node: the statement to which an error
        refers if they must return but do not.
        """

    def loop_statement(
        self, statement: ast.While | ast.For, rest: list[ast.stmt], live: frozenset[str]
    ) -> tuple[Expr | None, bool]:
        """Translate a loop.  rest: the statements after the loop.  live: the names used after `rest`.

        Returns
        -------
        Expr | None
            The result of the loop followed by `rest` if the loop contains a return, otherwise None.
        bool
            Whether the loop contains a return.
        """
        if statement.orelse:
            raise self.unsupported("the else clause of a loop", statement)
        counter = self.counter(statement) if isinstance(statement, ast.For) else None
        whole = returns(statement)
        if whole and self.result_type is None:
            reason = "a return inside a loop requires an annotated result type"
            raise self.error(RelvmTypeError, reason, statement)
        assigned = list(dict.fromkeys(stores([statement])))
        later = loads(rest) | live
        used = loads([statement]) | later
        carried = [name for name in assigned if name in used and not isinstance(self.scope[name], Unbound)]
        given = [self.as_expr(self.scope[name]) for name in carried]
        types = [_plain(value.type) for value in given]
        while True:
            names = self.builder.names()
            exits = OpenPaths([name for name in assigned if name in later])
            try:
                function = self.open_loop(statement, counter, carried, types, exits, whole)
                break
            except _WiderError as wider:
                self.builder.restore_names(names)
                types = self.widened(statement, carried, types, wider.types)

        meeting = self.exit(statement, exits, carried, types)
        end = self.rest_function(statement, rest, meeting) if whole and exits.taken else packed
        body = self.closed(function.body, exits, meeting, end)
        loop = self.builder.close_function(function, body, self.value_type if whole else meeting.packed_type)
        start = [counter.start] if counter else []
        value = self.builder.call(loop, *start, *given, name="result" if whole else meeting.value_name)
        if whole:
            return value, True
        self.unpack(meeting, value)
        return None, False

    def exit(
        self, statement: ast.While | ast.For, exits: OpenPaths, carried: list[str], types: list[Type]
    ) -> JoinPoint:
        """Return the join point of the paths `exits`, which leave the loop.

        If no path leaves the loop, the `params` of the join point are the loop-carried names that are used after the
        loop.

        carried: the loop-carried names.   types: the types of their values.
        """
        if not exits.taken:
            return JoinPoint(
                [(name, type_) for name, type_ in zip(carried, types, strict=True) if name in exits.names], {}
            )
        where = f"the loop at line {statement.lineno}"
        unset = f"is assigned only in {where}, which may run zero iterations"
        if _never_ends_by_itself(statement):
            unset = f"is assigned only on some paths out of {where}"
        return self.meeting(exits, stores([statement]), unset, where)

    def rest_function(
        self, statement: ast.stmt, rest: list[ast.stmt], meeting: JoinPoint
    ) -> Callable[[list[Expr]], Expr]:
        """Translate the statements `rest` after `statement`, from the join point `meeting` on, to a local function.

        Return a Python function that builds a call of the local function.
        """

        def body(*values: Expr) -> Expr:
            outer = self.scope
            self.scope = {**outer, **meeting.scope, **dict(zip(dict(meeting.params), values, strict=True))}
            try:
                return self.path(rest, statement, self.end)
            finally:
                self.scope = outer

        function = self.builder.local_function(meeting.params, body, self.value_type, name="rest")
        return lambda values: Call(function, tuple(values))

    def counter(self, statement: ast.For) -> _Counter:
        call = statement.iter
        match call:
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if "range" not in self.scope:
                pass
            case _:
                args = []
        if not 1 <= len(args) <= 3:
            raise self.unsupported("a for loop over anything but range(...) or a Python tuple or list", call)
        if not isinstance(statement.target, ast.Name):
            raise self.unsupported("a loop variable that is not a name", statement.target)
        bounds = [self.located(arg, partial(self.bound, arg)) for arg in args[:2]]
        step = self.expression(args[2]) if len(args) == 3 else 1
        if type(step) is not int or step == 0 or not -(1 << 63) <= step < 1 << 63:
            raise self.error(
                RelvmTypeError, "the step of a range must be a nonzero integer known at translation time", call
            )
        start, stop = bounds if len(bounds) == 2 else (prim(0), bounds[0])
        return _Counter(statement.target.id, start, stop, step)

    def bound(self, node: ast.expr) -> Expr:
        return self.integer(self.expression(node))

    def open_loop(
        self,
        statement: ast.While | ast.For,
        counter: _Counter | None,
        carried: list[str],
        types: list[Type],
        exits: OpenPaths,
        whole: bool,
    ) -> OpenFunction:
        """Translate a loop to a local function.  Raise _WiderError if an iteration computes values that do not fit
        `types`.

        carried: the loop-carried names, which become parameters.   types: the types of these parameters.   exits: a
        collection to which the paths that leave the loop are added.   whole: whether the local function returns the
        result of the enclosing function, because it includes the statements after the loop.
        """
        params: list[tuple[str, Type]] = [(f"{counter.name}_count", PrimType(I64))] if counter else []
        params += zip(carried, types, strict=True)

        def body(function: Expr, *variables: Expr) -> Expr:
            count = variables[0] if counter else None
            scope = dict(self.scope)
            scope.update(zip(carried, variables[1:] if counter else variables, strict=True))
            outer = self.scope, self.value_type
            self.scope, self.value_type = scope, self.value_type if whole else None
            try:
                return self.round(statement, counter, count, carried, types, function, exits)
            finally:
                self.scope, self.value_type = outer

        return self.builder.open_function("loop", params, body, self.value_type if whole else None)

    def round(
        self,
        statement: ast.While | ast.For,
        counter: _Counter | None,
        count: Expr | None,
        carried: list[str],
        types: list[Type],
        function: Expr,
        exits: OpenPaths,
    ) -> Expr:
        """Translate the body of the local function: one iteration followed by a recursive call, or the exit.

        count: the current value of the counter of a `for`, otherwise None.   function: the variable of the local
        function.   carried, types, exits: as for `open_loop`.
        """

        def following() -> Expr:
            values = [
                self.as_expr(self.lookup(name, statement), type_) for name, type_ in zip(carried, types, strict=True)
            ]
            found = [value.type for value in values]
            if not all(map(is_proven, types, found)):
                raise _WiderError(found)
            ahead = [self.next_count(counter, count)] if counter and count else []
            return self.builder.call(function, *ahead, *values)

        def leave() -> Expr:
            return self.take(exits)

        def inside() -> Expr:
            if counter and count:
                self.scope[counter.name] = count
            outer, self.loop = self.loop, LoopExits(following, leave)
            try:
                return self.path(
                    statement.body, statement, Continuation(following, frozenset((*carried, *exits.names)))
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
        return self.builder.if_(self.as_expr(test), lambda: self.copied(inside), lambda: self.copied(leave))

    def copied(self, action: Callable[[], Expr]) -> Expr:
        """Return the result of `action`, run in a copy of the scope."""
        outer, self.scope = self.scope, dict(self.scope)
        try:
            return action()
        finally:
            self.scope = outer

    def next_count(self, counter: _Counter, count: Expr) -> Expr:
        """Return the counter of the next iteration, or the stop of the range if the counter would overflow i64."""
        ahead = self.builder.prim("add", count, prim(counter.step))
        if abs(counter.step) == 1:
            return ahead
        fits = self.builder.prim("gt" if counter.step > 0 else "lt", ahead, count)
        return self.builder.if_(fits, lambda: ahead, lambda: counter.stop)

    def widened(self, statement: ast.stmt, carried: list[str], types: list[Type], found: list[Type]) -> list[Type]:
        """Return types that cover the values of the names `carried` both before the loop and after an iteration.

        types: the types before the loop.   found: the types after an iteration.
        """
        joined = []
        for name, before, after in zip(carried, types, found, strict=True):
            both = join(before, self.visible(after))
            if both is None:
                raise self.error(
                    RelvmTypeError, f"{name} is {before} before the loop but {after} after an iteration", statement
                )
            joined.append(both)
        return joined


def _never_ends_by_itself(statement: ast.While | ast.For) -> bool:
    return isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)


def _plain(type_: Type) -> Type:
    """Return the type without the known value of a scalar, because each iteration can change the value."""
    return PrimType(type_.dtype) if isinstance(type_, PrimType) else type_
