"""Translates the statements of a script.

What an `if` assigns and later statements use becomes the value of an If: one value, or a tuple.  An `if` with a
`return` in it takes the statements after it into both branches, so that each path ends in its own result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from relvm.errors import RelvmSyntaxError, RelvmTypeError
from relvm.frontend.script_expressions import ExpressionTranslator, plain_parameters
from relvm.frontend.script_values import Unset, Value
from relvm.ir.expr import Expr, Null, TupleItem
from relvm.ir.types import TupleType, Type, is_proven, mismatch


class StatementTranslator(ExpressionTranslator):
    """Translates the body of a function and of those inside it."""

    result_type: Type | None = None

    def whole_body(self, function: ast.FunctionDef, params: Iterable[tuple[str, Value]], result: Type | None) -> Expr:
        """Translates the body of `function` in a scope of its own; gives the result."""
        outer, outer_type = self.scope, self.result_type
        self.scope, self.result_type = {**self.scope, **dict(params)}, result
        try:
            return self.path(function.body, function)
        finally:
            self.scope, self.result_type = outer, outer_type

    def path(self, body: list[ast.stmt], node: ast.AST) -> Expr:
        """Translates statements that end in a return, in a copy of the scope; gives the result."""
        outer, self.scope = self.scope, dict(self.scope)
        try:
            result = self.statements(body, frozenset())
        finally:
            self.scope = outer
        if result is None:
            raise self.error(RelvmSyntaxError, "a path through the function ends without a return", node)
        return result

    def statements(self, body: list[ast.stmt], live: frozenset[str]) -> Expr | None:
        """Translates statements in order; gives the result where they return.  live: the names used after them."""
        for position, statement in enumerate(body):
            rest = body[position + 1 :]
            match statement:
                case ast.Return(value=value):
                    return Null() if value is None else self.typed("the result", self.result_type, value)
                case ast.If(test=test):
                    cond = self.condition(test)
                    if isinstance(cond, bool):
                        return self.statements((statement.body if cond else statement.orelse) + rest, live)
                    if _returns(statement):
                        return self.returning_if(cond, statement, rest)
                    self.merging_if(cond, statement, frozenset(_loads(rest)) | live)
                case _:
                    self.located(statement, lambda statement=statement: self.statement(statement))
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
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.expression(call)
            case _:
                raise self.unsupported(_STATEMENTS.get(type(statement), f"a {type(statement).__name__}"), statement)

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for part, item in zip(targets, self.items(value, targets, target), strict=True):
                    self.assign(part, item)
            case _:
                raise self.unsupported("an assignment to anything but names", target)

    def items(self, value: Value, targets: list[ast.expr], target: ast.expr) -> list[Value]:
        """The items of a tuple that is unpacked into `targets`."""
        if isinstance(value, Expr) and not isinstance(value.type, TupleType):
            raise self.error(RelvmTypeError, f"a value of type {value.type} cannot be unpacked", target)
        if not isinstance(value, Expr | tuple | list):
            raise self.error(RelvmTypeError, f"{value!r} cannot be unpacked", target)
        size = len(value.type.fields) if isinstance(value, Expr) else len(value)
        if size != len(targets):
            raise self.error(RelvmTypeError, f"expected a tuple of {len(targets)}, got one of {size}", target)
        if not isinstance(value, Expr):
            return list(value)
        names = [part.id if isinstance(part, ast.Name) else None for part in targets]
        return [self.builder.emit(TupleItem(value, i), name) for i, name in enumerate(names)]

    def annotated(self, name: str, type_: Type, node: ast.expr) -> Expr:
        """`name: type = value`, checked at run time where it cannot be proven."""
        value = self.typed(name, type_, node, name)
        return value if is_proven(type_, value.type) else self.builder.match_cast(value, type_, name)

    def typed(self, what: str, type_: Type | None, node: ast.expr, name: str | None = None) -> Expr:
        """The value of `node`, which may be of the type that is stated for `what`."""
        value = self.expr(node, type_, name)
        reason = type_ and mismatch(type_, value.type)
        if reason:
            raise self.error(RelvmTypeError, f"{what}: {reason}", node)
        return value

    def local_function(self, function: ast.FunctionDef) -> Expr:
        """A def inside a def: a closure over the variables as they are here."""
        if function.decorator_list:
            raise self.unsupported("a decorated function inside a function", function)
        params, result = self.signature(function)
        recursive = function.name in _loads(function.body)
        names = [*([function.name] if recursive else []), *(name for name, _ in params)]
        if recursive and result is None:
            raise self.error(RelvmTypeError, f"{function.name} calls itself: it needs a result type", function)

        def body(*variables: Expr) -> Expr:
            return self.whole_body(function, zip(names, variables, strict=True), result)

        return self.builder.local_function(params, body, result, name=function.name, recursive=recursive)

    def signature(self, function: ast.FunctionDef) -> tuple[list[tuple[str, Type]], Type | None]:
        """The parameters with their types, and the result's type where it is annotated."""
        params = []
        for param in plain_parameters(self, function):
            if param.annotation is None:
                reason = f'parameter {param.arg} needs a type, such as {param.arg}: "f32[n]"'
                raise self.error(RelvmSyntaxError, reason, param)
            params.append((param.arg, self.type(param.annotation)))
        return params, self.type(function.returns) if function.returns is not None else None

    def returning_if(self, cond: Expr, statement: ast.If, rest: list[ast.stmt]) -> Expr:
        def then() -> Expr:
            return self.path(statement.body + rest, statement)

        def orelse() -> Expr:
            return self.path(statement.orelse + rest, statement)

        return self.located(statement, lambda: self.builder.if_(cond, then, orelse, "result"))

    def merging_if(self, cond: Expr, statement: ast.If, live: frozenset[str]) -> None:
        """An if without a return: the variables it assigns that are used later get their new values."""
        branches = (statement.body, statement.orelse)
        assigned = dict.fromkeys(name for branch in branches for name in _stores(branch))
        given = [{*self.scope, *_always_assigned(branch)} for branch in branches]
        merged = [name for name in assigned if name in live and all(name in names for names in given)]

        def branch(body: list[ast.stmt]) -> Expr:
            outer, self.scope = self.scope, dict(self.scope)
            try:
                self.statements(body, frozenset(merged) | live)
                values = [self.as_expr(self.lookup(name, statement)) for name in merged]
            finally:
                self.scope = outer
            if not values:
                return Null()
            return values[0] if len(values) == 1 else self.builder.tuple_(*values)

        def merge() -> None:
            name = merged[0] if len(merged) == 1 else None if merged else "_"
            value = self.builder.if_(cond, lambda: branch(statement.body), lambda: branch(statement.orelse), name)
            for name in assigned:
                self.scope[name] = Unset(f"{name} is assigned on some paths only, in the if of line {statement.lineno}")
            for i, name in enumerate(merged):
                self.scope[name] = self.builder.emit(TupleItem(value, i), name) if len(merged) > 1 else value

        self.located(statement, merge)


_STATEMENTS = {
    ast.For: "a for loop; write a function that calls itself",
    ast.While: "a while loop; write a function that calls itself",
    ast.AnnAssign: "an annotation without a value",
    ast.Expr: "an expression whose value is not used",
}


def _returns(statement: ast.stmt) -> bool:
    """Whether there is a return in a statement, those of functions inside it aside."""
    if isinstance(statement, ast.FunctionDef):
        return False
    children = (child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))
    return isinstance(statement, ast.Return) or any(map(_returns, children))


def _loads(body: list[ast.stmt]) -> set[str]:
    """The names that statements use, those in functions inside them included."""
    used = (item for statement in body for item in ast.walk(statement))
    names = {item.id for item in used if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    return names | {target for statement in body for target in _augmented(statement)}


def _augmented(statement: ast.stmt) -> Iterator[str]:
    for item in ast.walk(statement):
        if isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
            yield item.target.id


def _stores(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements assign, in order, those in functions inside them aside."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name
            case ast.If(body=then, orelse=orelse):
                yield from _stores(then)
                yield from _stores(orelse)
            case _:
                for item in ast.walk(statement):
                    if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
                        yield item.id


def _always_assigned(body: list[ast.stmt]) -> set[str]:
    """The names that every path through statements assigns."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If):
            names |= _always_assigned(statement.body) & _always_assigned(statement.orelse)
        else:
            names.update(_stores([statement]))
    return names
