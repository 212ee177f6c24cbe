"""Translation of the statements of a script.

Variables that an `if` assigns and later statements use become the value of an If: one value, or a tuple.  If an `if`
contains a jump, which is a return, break or continue, the If includes the statements after the `if`.  Each path then
ends with its own result.  The included statements become part of the branch that reaches them.  If several paths reach
them, they become a local function that each path calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from relvm.errors import RelvmAssertionError, RelvmError, RelvmNameError, RelvmSyntaxError, RelvmTypeError, counted
from relvm.frontend.script.control_flow import JoinPoint, OpenPaths, pack
from relvm.frontend.script.expressions import parameters, positional_parameters
from relvm.frontend.script.indexing import assignment_advice
from relvm.frontend.script.iteration import LoopItems
from relvm.frontend.script.loops import Continuation, LoopTranslator
from relvm.frontend.script.name_analysis import (
    can_fall_through,
    contains_jump,
    contains_loop_jump,
    loaded_names,
    stored_names,
)
from relvm.frontend.script.values import Located, Unbound, Value, is_single_number
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import Block, BuiltinCall, Expr, If, Null, String, TupleItem
from relvm.ir.types import (
    OBJECT,
    VOID,
    FuncType,
    TensorType,
    TupleType,
    Type,
    forget_vars,
    is_proven,
    mismatch_reason,
    type_vars,
)


class _ItemAssignment(ast.stmt):
    """An assignment of a Python value to the target of a `for`.  It is created when the loop is unrolled."""

    _fields = ("target",)
    target: ast.expr

    def __init__(self, target: ast.expr, item: Value) -> None:
        super().__init__()
        self.target = target
        self.item = item


class StatementTranslator(LoopTranslator):
    """Translates the body of a function, and of the functions nested in it."""

    def function_body(
        self, function: ast.FunctionDef, params: Iterable[tuple[str, Value]], result: Type | None
    ) -> Expr:
        """Translate the body of `function` in its own scope.  Return the result of the function.

        As in Python, a name that the body assigns is local throughout the body.

        params: the names and values of the parameters.   result: the declared result type, or None.
        """
        outer = self.scope, self.result_type, self.value_type, self.loop
        reason = "has no value here; it is assigned later or on other paths"
        unset = {name: Unbound(f"{name} {reason}") for name in stored_names(function.body)}
        self.scope, self.result_type, self.loop = {**self.scope, **unset, **dict(params)}, result, None
        self.value_type = result and forget_vars(result, self.builder.known_dims().__contains__)
        try:
            self.check_dims(function, result)
            return self.translate_path(function.body, function, None)
        finally:
            self.scope, self.result_type, self.value_type, self.loop = outer

    def check_dims(self, function: ast.FunctionDef, result: Type | None) -> None:
        """Raise RelvmNameError if a dimension variable in the function's types is not defined.

        An axis of a parameter or of the result defines n if its size is n itself.  An axis of size n + 1 does not
        define n.

        result: the declared result type, or None.
        """
        stated: list[tuple[Type, Located]] = [
            (self.scope[param.arg].type, param.annotation or param) for param in parameters(self, function)
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

    def translate_path(self, body: list[ast.stmt], node: ast.stmt, end: Continuation | None) -> Expr:
        outer, self.scope = self.scope, dict(self.scope)
        outer_end, self.end = self.end, end
        try:
            result = self.translate_statements(body, end.live if end else frozenset())
            if result is None and end is not None:
                result = end.value()
        finally:
            self.scope, self.end = outer, outer_end
        if result is None:
            raise self.error(RelvmSyntaxError, "a path through the function ends without a return", node)
        return result

    def translate_statements(self, body: list[ast.stmt], live: frozenset[str]) -> Expr | None:
        """Translate the statements `body`.  Return their result if they return, otherwise None.

        live: the names that code after these statements uses.
        """
        for position, statement in enumerate(body):
            following = body[position + 1 :]
            self.builder.place = self.position(statement)
            match statement:
                case ast.Return():
                    return self.return_value(statement)
                case ast.If(test=test):
                    cond = self.condition(test)
                    if isinstance(cond, bool):
                        return self.translate_statements(
                            (statement.body if cond else statement.orelse) + following, live
                        )
                    result = self.if_statement(cond, statement, following, frozenset(loaded_names(following)) | live)
                    if result is not None:
                        return result
                case ast.For() if not self.is_counted(statement):
                    items = self.items_of(statement.iter)
                    if not isinstance(items, LoopItems):
                        return self.translate_statements([*self.unroll(statement, items), *following], live)
                    result, has_return = self.loop_statement(statement, following, live, items)
                    if has_return:
                        return result
                case ast.While() | ast.For():
                    result, has_return = self.loop_statement(statement, following, live)
                    if has_return:
                        return result
                case ast.Continue() | ast.Break():
                    if self.loop is None:
                        raise self.unsupported("a break or continue outside a loop of the program", statement)
                    return self.loop.next() if isinstance(statement, ast.Continue) else self.loop.leave()
                case ast.FunctionDef():
                    functions = _leading_functions(body[position:])
                    if _has_forward_reference(functions):
                        self.at_node(statement, partial(self.local_functions, functions))
                    else:
                        for function in functions:
                            self.at_node(function, partial(self.translate_statement, function))
                    return self.translate_statements(body[position + len(functions) :], live)
                case _:
                    self.at_node(statement, partial(self.translate_statement, statement))
        return None

    def translate_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Subscript() as items], value=value):
                raise self.item_assignment(items, value, is_single_number(self.expression(value)))
            case ast.Assign(targets=targets, value=value):
                name = targets[0].id if isinstance(targets[0], ast.Name) else None
                result = self.expression(value, name)
                for target in targets:
                    self.assign(target, result)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                left = ast.copy_location(ast.Name(name, ast.Load()), target)
                self.scope[name] = self.operation(op, [left, value], statement, name)
            case ast.AugAssign(target=ast.Subscript() as items, op=op, value=value):
                is_number = is_single_number(self.expression(value))
                old = items.value if is_number else ast.Subscript(items.value, items.slice, ast.Load())
                raise self.item_assignment(items, ast.BinOp(old, op, value), is_number)
            case ast.Assert(test=test, msg=message):
                self.assertion(test, message, statement)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) if value is not None:
                self.scope[name] = self.annotated_assignment(name, self.type(annotation), value)
            case ast.FunctionDef(name=name):
                self.scope[name] = self.local_function(statement)
            case _ItemAssignment():
                self.assign(statement.target, statement.item)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.expression(call)
            case _:
                raise self.unsupported_syntax(statement)

    def assertion(self, test: ast.expr, message: ast.expr | None, statement: ast.stmt) -> None:
        """Translate an assertion.  If its condition is known at translation time, it is checked then."""
        cond = self.condition(test)
        shown = self.expression(message) if message else ast.unparse(test)
        if not isinstance(shown, str):
            raise self.error(RelvmTypeError, "assert: the message must be a string known at translation time", test)
        if isinstance(cond, Expr):
            where = f"{self.runtime_position(statement)}: {shown}"
            self.builder.emit(BuiltinCall("assert", (cond, String(where)), type=VOID), "_")
        elif not cond:
            raise self.error(RelvmAssertionError, shown, statement)

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets) if not any(
                isinstance(part, ast.Starred) for part in targets
            ):
                for part, item in zip(targets, self.items(value, targets, target), strict=True):
                    self.assign(part, item)
            case _:
                advice = "assign to one name for each value"
                raise self.unsupported("an assignment to anything but a name or a tuple of names", target, advice)

    def item_assignment(self, target: ast.Subscript, value: ast.expr, is_number: bool) -> RelvmError:
        """Return the error for an assignment to items, with the statement that computes the new tensor instead.

        is_number: whether `value` is a single number, or has one element for each element of the whole tensor.
        """
        base = self.expression(target.value)
        if not isinstance(base, Expr) or not isinstance(base.type, TensorType):
            advice = "make a new tuple"
        else:
            nodes = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            indices = [(self.index(node), ast.unparse(node)) for node in nodes]
            advice = assignment_advice(ast.unparse(target.value), base.type, indices, ast.unparse(value), is_number)
        return self.unsupported("an assignment to items", target, f"tensors do not change; {advice}")

    def items(self, value: Value, targets: list[ast.expr], target: ast.expr) -> list[Value]:
        """Return the items of the tuple `value`, one for each of `targets`.

        target: the left-hand side of the assignment, which consists of `targets`.  Errors have the position of
        `target`.
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
            raise self.error(
                RelvmTypeError, f"expected a tuple of {counted(len(targets), 'item')}, got one of {size}", target
            )
        if not isinstance(value, Expr):
            return list(value)
        names = [part.id if isinstance(part, ast.Name) else None for part in targets]
        return [self.builder.emit(TupleItem(value, i), name) for i, name in enumerate(names)]

    def annotated_assignment(self, name: str, type_: Type, node: ast.expr) -> Expr:
        """Translate the assignment `name: type = value`.  The type is checked at run time unless it is proven.

        node: the expression for the value.
        """
        value = self.typed_expression(name, type_, node, name)
        return value if is_proven(type_, value.type) else self.checked(value, type_, name, node)

    def checked(self, value: Expr, type_: Type, name: str, node: Located) -> Expr:
        """Check at run time that a value has a type.  The error contains the position of `node` in the source.

        name: the name of the value.
        """
        where = f"{self.runtime_position(node)}: {name}, declared as {type_}"
        return self.at_node(node, lambda: self.builder.match_cast(value, type_, name, where))

    def typed_expression(self, what: str, type_: Type | None, node: ast.expr, name: str | None = None) -> Expr:
        """Translate the expression `node`, and check that its value can have the type `type_`.

        what: a name for the value in error messages, such as "result".
        type_: the declared type, or None for any type.
        name: the name of the variable to which the value will be assigned.
        """
        value = self.expr(node, type_, name)
        reason = type_ and mismatch_reason(type_, value.type)
        if isinstance(value, Null) and type_ not in (None, OBJECT):
            reason = "it is not optional"
        if reason:
            shown = "None" if isinstance(value, Null) else value.type
            raise self.error(RelvmTypeError, f"{what}: expected {type_}, got {shown}: {reason}", node)
        return value

    def return_value(self, statement: ast.Return) -> Expr:
        """Translate the value of a return statement, and check that it has the result type of the function.

        The check must be made here, because the result of a tail call is returned unchanged.
        """
        node = statement.value or ast.copy_location(ast.Constant(None), statement)
        value, expected = self.typed_expression("result", self.result_type, node), self.value_type
        if expected is None or is_proven(expected, value.type):
            return value
        return self.checked(value, expected, "result", statement)

    def local_function(self, function: ast.FunctionDef) -> Expr:
        """Translate a nested def to a local function, which can use the current variables."""
        if function.decorator_list:
            raise self.unsupported("a decorator on a nested function", function, "define it outside")
        positional_parameters(self, function)
        params, result = self.signature(function)
        recursive = function.name in loaded_names(function.body)
        names = [*([function.name] if recursive else []), *(name for name, _ in params)]
        if recursive and result is None:
            raise self.error(
                RelvmTypeError, f"{function.name} is recursive and needs a result type annotation", function
            )

        body = self.body_translator(function, names, result)
        return self.builder.local_function(params, body, result, name=function.name, recursive=recursive)

    def body_translator(self, function: ast.FunctionDef, names: list[str], result: Type | None) -> Callable[..., Expr]:
        """Return a Python function that translates the body of `function`.

        The returned function takes the values of `names`, which include the parameters.

        result: the declared result type, or None.
        """
        return lambda *variables: self.function_body(function, zip(names, variables, strict=True), result)

    def local_functions(self, functions: list[ast.FunctionDef]) -> None:
        """Translate adjacent nested defs, which can call each other, to local functions."""
        names = [function.name for function in functions]
        described = []
        for function in functions:
            if function.decorator_list:
                raise self.unsupported("a decorator on a nested function", function, "define it outside")
            positional_parameters(self, function)
            params, result = self.signature(function)
            if result is None:
                reason = (
                    f"{function.name} needs a result type annotation, because it and adjacent functions call each other"
                )
                raise self.error(RelvmTypeError, reason, function)

            described.append(
                (function.name, params, result, self.body_translator(function, [*names, *dict(params)], result))
            )
        self.scope.update(zip(names, self.builder.local_functions(described), strict=True))

    def is_counted(self, statement: ast.For) -> bool:
        """Return whether a for loop iterates over `range(...)`."""
        match statement.iter:
            case ast.Call(func=ast.Name("range")):
                return "range" not in self.scope
        return False

    def unroll(self, statement: ast.For, items: Sequence[Value]) -> list[ast.stmt]:
        """Unroll a for loop over items known at translation time."""
        if statement.orelse or any(map(contains_loop_jump, statement.body)):
            reason = "a break, continue or else in a for loop over a Python tuple or list"
            raise self.unsupported(reason, statement, "loop over range(...) or a tensor")
        self.count_unrolled(len(items) * (1 + len(statement.body)), statement)
        rounds = (
            [ast.copy_location(_ItemAssignment(statement.target, item), statement), *statement.body] for item in items
        )
        return [each for statements in rounds for each in statements]

    def signature(self, function: ast.FunctionDef) -> tuple[list[tuple[str, Type]], Type | None]:
        """Return the parameters with their types, and the result type if it is annotated."""
        params = []
        for param in parameters(self, function):
            if param.annotation is None:
                reason = f'parameter {param.arg} needs a type, such as {param.arg}: "f32[n]"'
                raise self.error(RelvmSyntaxError, reason, param)
            params.append((param.arg, self.type(param.annotation)))
        return params, self.type(function.returns) if function.returns is not None else None

    def if_statement(
        self, cond: Expr, statement: ast.If, following: list[ast.stmt], live: frozenset[str]
    ) -> Expr | None:
        """Translate an if statement and, if it contains a return, break or continue, also the statements after it.

        cond: the condition.
        following: the statements after the if statement in the same block.
        live: the names that the code after the if statement uses.

        Returns
        -------
        Expr | None
            The result of the if statement and `following`, if the if statement contains a return, break or continue.
            Otherwise None, and the caller translates `following`.
        """
        if contains_jump(statement):
            return self.at_node(statement, lambda: self.if_with_jump(cond, statement, following, live))
        self.at_node(statement, lambda: self.if_without_jump(cond, statement, live))
        return None

    def if_with_jump(self, cond: Expr, statement: ast.If, following: list[ast.stmt], live: frozenset[str]) -> Expr:
        """Translate an if that contains a return, break or continue, together with the statements after it.

        cond: the condition.
        following: the statements after the if statement in the same block.
        live: the names that the code after the if statement uses.
        """
        branches = (statement.body, statement.orelse)
        if following and all(map(can_fall_through, branches)):
            return self.if_with_shared_code(cond, statement, following, live)

        def translate_branch(branch: list[ast.stmt]) -> Expr:
            return self.translate_path(branch + following if can_fall_through(branch) else branch, statement, self.end)

        return self.builder.if_(
            cond, lambda: translate_branch(statement.body), lambda: translate_branch(statement.orelse), "result"
        )

    def if_with_shared_code(
        self, cond: Expr, statement: ast.If, following: list[ast.stmt], live: frozenset[str]
    ) -> Expr:
        """Translate an if with a return, break or continue, whose branches can both reach the statements after it.

        These statements become a local function.  Each path through the branches that reaches them ends with a call of
        this function.

        cond: the condition.
        following: the statements after the if statement in the same block.
        live: the names that the code after the if statement uses.
        """
        paths, then, orelse = self.translate_branches(statement, live)
        if paths.ended_paths:
            join_point = self.if_join_point(statement, paths)
            end = self.continuation_function(statement, following, join_point)
            then, orelse = (self.close_paths(branch, paths, join_point, end) for branch in (then, orelse))
        return self.builder.emit(If(cond, then, orelse), "result")

    def if_without_jump(self, cond: Expr, statement: ast.If, live: frozenset[str]) -> None:
        """Translate an if without a return, break or continue, and update the variables that it assigns.

        cond: its condition.  live: the names that later code uses.
        """
        paths, then, orelse = self.translate_branches(statement, live)
        join_point = self.if_join_point(statement, paths)
        then, orelse = (self.close_paths(branch, paths, join_point, pack) for branch in (then, orelse))
        self.assign_join_values(join_point, self.builder.emit(If(cond, then, orelse), join_point.value_name))

    def translate_branches(self, statement: ast.If, live: frozenset[str]) -> tuple[OpenPaths, Block, Block]:
        """Translate the branches of an if.  Return the paths that reach the end of the if, and the blocks of both
        branches.

        live: the names that later code uses.
        """
        paths = OpenPaths([name for name in dict.fromkeys(stored_names([statement])) if name in live])
        end = Continuation(lambda: self.end_path(paths), live)
        then, orelse = (
            self.builder.block(partial(self.translate_path, body, statement, end))
            for body in (statement.body, statement.orelse)
        )
        return paths, then, orelse

    def if_join_point(self, statement: ast.If, paths: OpenPaths) -> JoinPoint:
        where = f"the if at line {statement.lineno}"
        return self.make_join_point(
            paths, stored_names([statement]), f"is assigned only on some paths of {where}", where
        )


def _leading_functions(body: list[ast.stmt]) -> list[ast.FunctionDef]:
    """Return the function definitions with which the statements `body` begin."""
    functions = []
    for statement in body:
        if not isinstance(statement, ast.FunctionDef):
            break
        functions.append(statement)
    return functions


def _has_forward_reference(functions: list[ast.FunctionDef]) -> bool:
    """Return whether one of `functions` uses the name of a later one."""
    ahead: set[str] = set()
    for function in reversed(functions):
        if ahead & loaded_names(function.body):
            return True
        ahead.add(function.name)
    return False
