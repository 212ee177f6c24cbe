"""Translation of the statements of a script.

Variables that an `if` assigns and later statements use become the value of an If: one value, or a tuple.  If an `if`
contains a jump, which is a return, break or continue, the If includes the statements after it.  Each path then ends
with its own result.  These statements become part of the branch that reaches them.  If several paths reach them, they
become a local function that each path calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import partial

from relvm.errors import RelvmNameError, RelvmSyntaxError, RelvmTypeError
from relvm.frontend.script.control_flow import JoinPoint, OpenPaths, packed
from relvm.frontend.script.expressions import plain_parameters
from relvm.frontend.script.loops import Continuation, LoopTranslator
from relvm.frontend.script.name_analysis import ends_round, falls_through, jumps, loads, stores
from relvm.frontend.script.values import Located, Unbound, Value
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import Block, Expr, If, Null, TupleItem
from relvm.ir.types import OBJECT, FuncType, TupleType, Type, forget_vars, is_proven, mismatch_reason, type_vars

_MAX_REPEATED = 20_000


class _Assigned(ast.stmt):
    """An assignment of a Python value, `target = item`, created when a loop is unrolled."""

    _fields = ("target",)
    target: ast.expr

    def __init__(self, target: ast.expr, item: Value) -> None:
        super().__init__()
        self.target = target
        self.item = item


class StatementTranslator(LoopTranslator):
    """Translates the body of a function, and of the functions nested in it."""

    def whole_body(self, function: ast.FunctionDef, params: Iterable[tuple[str, Value]], result: Type | None) -> Expr:
        """Translate the body of `function` in its own scope, and return the result.

        As in Python, a name that the body assigns is local throughout the body.
        """
        outer = self.scope, self.result_type, self.value_type, self.loop
        reason = "has no value here; it is assigned later or on other paths"
        unset = {name: Unbound(f"{name} {reason}") for name in stores(function.body)}
        self.scope, self.result_type, self.loop = {**self.scope, **unset, **dict(params)}, result, None
        self.value_type = result and forget_vars(result, self.builder.known_dims().__contains__)
        try:
            self.check_dims(function, result)
            return self.path(function.body, function, None)
        finally:
            self.scope, self.result_type, self.value_type, self.loop = outer

    def check_dims(self, function: ast.FunctionDef, result: Type | None) -> None:
        """Raise RelvmNameError if a dimension variable in the function's types has no value.

        A variable has a value if it is itself a size of a parameter or of the result, not only part of an expression.
        """
        stated: list[tuple[Type, Located]] = [
            (self.scope[param.arg].type, param.annotation or param) for param in plain_parameters(self, function)
        ]
        known = set(self.builder.known_dims())
        if result is not None:
            stated.append((result, function.returns or function))
            known.update(plain_dim_vars(result))
        for type_, annotation in stated:
            if isinstance(type_, FuncType):  # a function type binds its own variables
                continue
            for var in type_vars(type_):
                if var not in known:
                    reason = f"dimension {var.name} is not defined here; no parameter's shape determines it"
                    raise self.error(RelvmNameError, reason, annotation)

    def path(self, body: list[ast.stmt], node: ast.stmt, end: Continuation | None) -> Expr:
        outer, self.scope = self.scope, dict(self.scope)
        outer_end, self.end = self.end, end
        try:
            result = self.statements(body, end.live if end else frozenset())
            if result is None and end is not None:
                result = end.value()
        finally:
            self.scope, self.end = outer, outer_end
        if result is None:
            raise self.error(RelvmSyntaxError, "a path through the function ends without a return", node)
        return result

    repeated = 0  # statements repeated by unrolling for loops so far

    def statements(self, body: list[ast.stmt], live: frozenset[str]) -> Expr | None:
        """Translate statements in order.  Return their result if they return, otherwise None.

        live: the names used after the statements.
        """
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            self.builder.place = f"{self.function.source.name}:{statement.lineno}:{statement.col_offset + 1}"
            match statement:
                case ast.Return():
                    return self.result(statement)
                case ast.If(test=test):
                    cond = self.condition(test)
                    if isinstance(cond, bool):
                        return self.statements((statement.body if cond else statement.orelse) + rest, live)
                    result = self.if_statement(cond, statement, rest, frozenset(loads(rest)) | live)
                    if result is not None:
                        return result
                case ast.For() if (values := self.python_sequence(statement)) is not None:
                    return self.statements([*self.unrolled(statement, values), *rest], live)
                case ast.While() | ast.For():
                    result, took_rest = self.loop_statement(statement, rest, live)
                    if took_rest:
                        return result
                case ast.Continue() | ast.Break():
                    if self.loop is None:
                        raise self.unsupported("a break or continue outside a loop of the program", statement)
                    return self.loop.next() if isinstance(statement, ast.Continue) else self.loop.leave()
                case ast.FunctionDef():
                    run = _function_run(body[position:])
                    if _calls_ahead(run):
                        self.located(statement, partial(self.local_functions, run))
                    else:
                        for function in run:
                            self.located(function, partial(self.statement, function))
                    return self.statements(body[position + len(run) :], live)
                case _:
                    self.located(statement, partial(self.statement, statement))
        return None

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                name = targets[0].id if isinstance(targets[0], ast.Name) else None
                result = self.expression(value, name)
                for target in targets:
                    self.assign(target, result)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                left = ast.copy_location(ast.Name(name, ast.Load()), target)
                self.scope[name] = self.operation(op, [left, value], statement, name)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if value is not None:
                self.scope[name] = self.annotated(name, self.type(annotation), value)
            case ast.FunctionDef(name=name):
                self.scope[name] = self.local_function(statement)
            case _Assigned():
                self.assign(statement.target, statement.item)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.expression(call)
            case _:
                raise self.unsupported(
                    _STATEMENTS.get(type(statement), f"the syntax {type(statement).__name__}"), statement
                )

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for part, item in zip(targets, self.items(value, targets, target), strict=True):
                    self.assign(part, item)
            case _:
                raise self.unsupported("an assignment to anything but a name or a tuple of names", target)

    def items(self, value: Value, targets: list[ast.expr], target: ast.expr) -> list[Value]:
        """Return the items of the tuple `value`, one for each of `targets`.

        target: the whole left-hand side of the assignment, to which errors refer.
        """
        match value:
            case Expr(type=TupleType(fields=fields)):
                size = len(fields)
            case Expr():
                raise self.error(RelvmTypeError, f"a value of type {value.type} cannot be unpacked", target)
            case tuple() | list():
                size = len(value)
            case _:
                raise self.error(RelvmTypeError, f"{value!r} cannot be unpacked", target)
        if size != len(targets):
            raise self.error(RelvmTypeError, f"expected a tuple of {len(targets)} items, got one of {size}", target)
        if not isinstance(value, Expr):
            return list(value)
        names = [part.id if isinstance(part, ast.Name) else None for part in targets]
        return [self.builder.emit(TupleItem(value, i), name) for i, name in enumerate(names)]

    def annotated(self, name: str, type_: Type, node: ast.expr) -> Expr:
        """Translate `name: type = value`.  The type is checked at run time unless it is proven."""
        value = self.typed(name, type_, node, name)
        return value if is_proven(type_, value.type) else self.builder.match_cast(value, type_, name)

    def typed(self, what: str, type_: Type | None, node: ast.expr, name: str | None = None) -> Expr:
        """Translate the expression `node`, and check that its value has the type `type_`.

        what: a name for the value in the message, such as "result".   type_: the declared type, or None for any type.
        name: the name of the variable to which the value will be assigned.
        """
        value = self.expr(node, type_, name)
        reason = type_ and mismatch_reason(type_, value.type)
        if isinstance(value, Null) and type_ not in (None, OBJECT):
            reason = f"expected {type_}, got None"
        if reason:
            raise self.error(RelvmTypeError, f"{what}: {reason}", node)
        return value

    def result(self, statement: ast.Return) -> Expr:
        """Return the result of a return statement, checked against the result type of the function.

        The check must be made here, because the result of a tail call is returned unchanged.
        """
        node = statement.value or ast.copy_location(ast.Constant(None), statement)
        value, expected = self.typed("result", self.result_type, node), self.value_type
        if expected is None or is_proven(expected, value.type):
            return value
        return self.located(statement, lambda: self.builder.match_cast(value, expected, "result"))

    def local_function(self, function: ast.FunctionDef) -> Expr:
        """Translate a nested def to a closure over the current variables."""
        if function.decorator_list:
            raise self.unsupported("a decorator on a nested function", function)
        params, result = self.signature(function)
        recursive = function.name in loads(function.body)
        names = [*([function.name] if recursive else []), *(name for name, _ in params)]
        if recursive and result is None:
            raise self.error(
                RelvmTypeError, f"{function.name} is recursive and needs a result type; annotate it", function
            )

        body = self.body_of(function, names, result)
        return self.builder.local_function(params, body, result, name=function.name, recursive=recursive)

    def body_of(self, function: ast.FunctionDef, names: list[str], result: Type | None) -> Callable[..., Expr]:
        """Return a Python function that translates the body of `function`, given the values of `names`."""
        return lambda *variables: self.whole_body(function, zip(names, variables, strict=True), result)

    def local_functions(self, run: list[ast.FunctionDef]) -> None:
        """Translate the adjacent defs in `run`, which can call each other."""
        names = [function.name for function in run]
        described = []
        for function in run:
            if function.decorator_list:
                raise self.unsupported("a decorator on a nested function", function)
            params, result = self.signature(function)
            if result is None:
                reason = (
                    f"{function.name} and adjacent functions call each other, so it needs a result type; annotate it"
                )
                raise self.error(RelvmTypeError, reason, function)

            described.append((function.name, params, result, self.body_of(function, [*names, *dict(params)], result)))
        self.scope.update(zip(names, self.builder.local_functions(described), strict=True))

    def python_sequence(self, statement: ast.For) -> list[Value] | None:
        """Return the items of a for loop over a Python tuple or list, or None for another loop."""
        match statement.iter:
            case ast.Call(func=ast.Name("range")):
                return None
        value = self.expression(statement.iter)
        if not isinstance(value, tuple | list):
            return None
        if statement.orelse or any(map(ends_round, statement.body)):
            raise self.unsupported("a break, continue or else in a for loop over a Python tuple or list", statement)
        return list(value)

    def unrolled(self, statement: ast.For, values: list[Value]) -> list[ast.stmt]:
        """Unroll a for loop over items known at translation time."""
        self.repeated += len(values) * (1 + len(statement.body))
        if self.repeated > _MAX_REPEATED:
            reason = f"unrolling for loops over Python tuples and lists to more than {_MAX_REPEATED} statements"
            raise self.unsupported(f"{reason} (loop over range(...))", statement)
        rounds = ([ast.copy_location(_Assigned(statement.target, item), statement), *statement.body] for item in values)
        return [each for statements in rounds for each in statements]

    def signature(self, function: ast.FunctionDef) -> tuple[list[tuple[str, Type]], Type | None]:
        """Return the parameters with their types, and the result type if it is annotated."""
        params = []
        for param in plain_parameters(self, function):
            if param.annotation is None:
                reason = f'parameter {param.arg} needs a type, such as {param.arg}: "f32[n]"'
                raise self.error(RelvmSyntaxError, reason, param)
            params.append((param.arg, self.type(param.annotation)))
        return params, self.type(function.returns) if function.returns is not None else None

    def if_statement(self, cond: Expr, statement: ast.If, rest: list[ast.stmt], live: frozenset[str]) -> Expr | None:
        """Translate an if statement.  rest: the statements after it.  live: the names used after it.

        Returns
        -------
        Expr | None
            The result of the if statement followed by `rest`, if it contains a return, break or continue.  Otherwise
            None.
        """
        if jumps(statement):
            return self.located(statement, lambda: self.jumping_if(cond, statement, rest, live))
        self.located(statement, lambda: self.merging_if(cond, statement, live))
        return None

    def jumping_if(self, cond: Expr, statement: ast.If, rest: list[ast.stmt], live: frozenset[str]) -> Expr:
        """Translate an if that contains a return, break or continue, together with the statements `rest` after it."""
        branches = (statement.body, statement.orelse)
        if rest and all(map(falls_through, branches)):
            return self.meeting_if(cond, statement, rest, live)

        def whole(branch: list[ast.stmt]) -> Expr:
            return self.path(branch + rest if falls_through(branch) else branch, statement, self.end)

        return self.builder.if_(cond, lambda: whole(statement.body), lambda: whole(statement.orelse), "result")

    def meeting_if(self, cond: Expr, statement: ast.If, rest: list[ast.stmt], live: frozenset[str]) -> Expr:
        """Translate an if with a jump whose branches can both reach the statements `rest` after it.

        A jump is a return, break or continue.  The statements `rest` become a local function.  Each path through the
        branches ends with a call of this function, or with a jump.
        """
        ways, then, orelse = self.branches(statement, live)
        if ways.taken:
            meeting = self.if_meeting(statement, ways)
            end = self.rest_function(statement, rest, meeting)
            then, orelse = (self.closed(branch, ways, meeting, end) for branch in (then, orelse))
        return self.builder.emit(If(cond, then, orelse), "result")

    def merging_if(self, cond: Expr, statement: ast.If, live: frozenset[str]) -> None:
        """Translate an if without a return, break or continue.

        Update the variables that it assigns and that are in `live`, the names used after the if.
        """
        ways, then, orelse = self.branches(statement, live)
        meeting = self.if_meeting(statement, ways)
        then, orelse = (self.closed(branch, ways, meeting, packed) for branch in (then, orelse))
        self.unpack(meeting, self.builder.emit(If(cond, then, orelse), meeting.value_name))

    def branches(self, statement: ast.If, live: frozenset[str]) -> tuple[OpenPaths, Block, Block]:
        """Translate the branches of an if.  Return the paths that reach its end, and the blocks of both branches.

        live: the names used after the if.
        """
        ways = OpenPaths([name for name in dict.fromkeys(stores([statement])) if name in live])
        end = Continuation(lambda: self.take(ways), live)
        then, orelse = (
            self.builder.block(partial(self.path, body, statement, end)) for body in (statement.body, statement.orelse)
        )
        return ways, then, orelse

    def if_meeting(self, statement: ast.If, ways: OpenPaths) -> JoinPoint:
        where = f"the if at line {statement.lineno}"
        return self.meeting(ways, stores([statement]), f"is assigned only on some paths of {where}", where)


_STATEMENTS = {
    ast.AnnAssign: "an annotation without a value",
    ast.Expr: "an expression whose value is not used",
}


def _function_run(body: list[ast.stmt]) -> list[ast.FunctionDef]:
    """Return the adjacent functions at the beginning of `body`."""
    run = []
    for statement in body:
        if not isinstance(statement, ast.FunctionDef):
            break
        run.append(statement)
    return run


def _calls_ahead(run: list[ast.FunctionDef]) -> bool:
    """Return whether one of the functions refers to a later one."""
    ahead: set[str] = set()
    for function in reversed(run):
        if ahead & loads(function.body):
            return True
        ahead.add(function.name)
    return False
