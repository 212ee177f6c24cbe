"""Parser of the text form of modules, functions and expressions (docs/language.md).

The printer of this form is relvm/ir/printer.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.errors import RelvmError, RelvmNameError, RelvmSyntaxError, expect_type, near_matches, resources
from relvm.frontend.text.kernel_parser import KernelReader
from relvm.frontend.text.lexer import Source, Token
from relvm.frontend.text.types import parse_type
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.expr import (
    Attributes,
    Binding,
    Block,
    BuiltinCall,
    Call,
    DimValue,
    DTypeValue,
    Expr,
    Function,
    FunctionRef,
    Fused,
    If,
    KernelCall,
    KernelRun,
    Kill,
    MatchCast,
    Module,
    Null,
    OpCall,
    PackedCall,
    PackedRef,
    Prim,
    PrimCall,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
    prim,
)
from relvm.ir.kernel_def import KernelDef
from relvm.ir.operator import find_operator, operators, similar_names
from relvm.ir.printer import KEYWORDS, is_void_call
from relvm.ir.scalar_ops import FORMS, FUNCTIONS
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import VOID, Type
from relvm.ir.visitor import substitute
from relvm.tables import BUILTINS

__all__ = ["parse_expr", "parse_module", "parse_type"]

# Infix operators from the lowest to the highest precedence, as in Python.
_LEVELS = (("==", "!=", "<", "<=", ">", ">="), ("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "//", "%"))
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_NUMBERS = ("inf", "nan")
_LONGEST_CHAIN = 50  # maximum number of infix operators that are nested in one expression
_BUILTIN_NAMES = frozenset(row.name for row in BUILTINS)


def parse_module(text: str, name: str = "<text>") -> Module:
    """Parse the text of a module, and return the module at stage PARSED.

    Parameters
    ----------
    text
        A module in the language of docs/language.md.
    name
        The name of the source in messages, such as the path of a file.

    Raises
    ------
    RelvmTypeError
        `text` is not a string.
    RelvmSyntaxError
        The text is not valid in the language.  The message states the line, the column, the expected token and the
        token found.
    RelvmNameError
        A variable, function, operator, builtin or type does not exist.
    RelvmArgumentError
        An operator does not accept its arguments.
    RelvmUnsupportedError
        A tensor is larger than the address space, or a dimension or type exceeds the limits.
    """
    expect_type("parse_module", text, str, "a string")
    with resources(name):
        return _Parser(Source(text, name), {}).module()


def parse_expr(text: str, variables: Mapping[str, Var] | None = None, dims: dict[str, AnyDim] | None = None) -> Expr:
    """Parse an expression.  A reference such as `@f` may name any function.

    Raise RelvmError, for example RelvmSyntaxError or RelvmNameError, if the expression is not valid.

    variables: the variables that `text` may use, by name.
    dims: the dimension variables that `text` may use, by name.  New dimension variables are added.
    """
    parser = _Parser(Source(text, "<expression>"), {} if dims is None else dims)
    parser.scopes.append(dict(variables or {}))
    expr = parser.expression()
    parser.end()
    return expr


class _FunctionGroup(NamedTuple):
    """Adjacent local functions, which may call each other.

    undefined: the names that have been used, but not yet defined.  Each has a placeholder variable, and the error to
    raise if no function of that name follows.
    definitions: for each placeholder, the variable of the function that was defined later.
    """

    undefined: dict[str, tuple[Var, RelvmError]]
    definitions: dict[Var, Expr]


class _Parser(KernelReader):
    """The parser of a module.

    scopes: the variables of each scope by name, innermost scope last.  The outermost scope has the module's constants.
    enclosing_functions: the variables of the local functions being parsed, by the names after their keyword `fn`.
    groups: the groups of adjacent local functions being parsed, innermost last.
    references: the names of functions of the module that the text refers to, each with its token.
    untyped_call: the last call without a result type.  If it is the value of a binding that declares a type, the call
    gets the declared type.
    """

    def __init__(self, source: Source, dims: dict[str, AnyDim]) -> None:
        super().__init__(source, dims)
        self.scopes: list[dict[str, Expr]] = []
        self.enclosing_functions: dict[str, Var] = {}
        self.groups: list[_FunctionGroup] = []
        self.references: list[tuple[str, Token]] = []
        self.untyped_call: PackedCall | BuiltinCall | KernelCall | KernelRun | None = None

    def module(self) -> Module:
        attributes: Attributes = ()
        if self.accept("module"):
            self.expect("with")
            attributes = self.attributes()
        functions: dict[str, Function] = {}
        kernels: dict[str, KernelDef] = {}
        self.scopes.append({})
        while self.token.kind != "end":
            if self.accept("const"):
                self.module_constant()
                continue
            if self.accept("kernel"):
                token = self.token
                name = self.symbol("the name of a kernel")
                if name in functions or name in kernels:
                    raise self.error(RelvmSyntaxError, f"{name} is defined twice", token)
                self.dims = {}
                kernels[name] = self.kernel_definition(name)
                continue
            private = self.accept("private")
            self.expect("def")
            start = self.token
            name = self.symbol("the name of a function")
            if name in functions or name in kernels:
                raise self.error(RelvmSyntaxError, f"function {name} is defined twice", start)
            self.dims, self.enclosing_functions = {}, {}
            functions[name] = replace(self.function(name), private=private)
        for name, token in self.references:
            if name not in functions:
                raise self.error(RelvmNameError, f"no function {name}{near_matches(name, functions)}", token)
        return Module(tuple(functions.values()), tuple(kernels.items()), attributes)

    def module_constant(self) -> None:
        """Parse a module constant `const name = const(type, elements)`, after its first keyword.

        Later functions can use the constant.
        """
        token = self.identifier("the name of a constant")
        if token.text in self.scopes[0]:
            raise self.error(RelvmSyntaxError, f"constant {token} is defined twice", token)
        self.expect("=")
        self.expect("const")
        self.scopes[0][token.text] = self.constant()

    def symbol(self, expected: str) -> str:
        """Parse the name of a function or kernel: an identifier, or a string literal with any text.

        expected: what was expected, for the error message.
        """
        return self.string() if self.token.kind == "string" else self.identifier(expected).text

    def identifier(self, expected: str) -> Token:
        if self.token.kind == "name" and self.token.text in KEYWORDS:
            raise self.error(RelvmSyntaxError, f"expected {expected}, got the keyword {self.token}", self.token)
        return self.expect_kind("name", expected)

    def function(self, name: str) -> Function:
        """Parse the parameters, the result type and the body of a function.

        name: the name of the function.
        """
        origin = self.source.origin(self.token.offset)
        self.scopes.append({})
        params = self.parameters()
        result_type, pure, claims_pure = None, True, False
        if self.at("->") or self.at("=>"):
            pure = claims_pure = self.take().text == "->"
            if pure or not (self.at("{") or self.at("=") or self.at("with")):
                result_type = self.type()
        attributes = self.attributes() if self.accept("with") else ()
        if self.accept("="):
            body = self.expression()
        elif self.at("{"):
            body = self.block()
        else:
            raise self.unexpected("the function body, which begins with { or =")
        self.scopes.pop()
        return Function(name, params, body, result_type, pure, attributes, claims_pure=claims_pure, origin=origin)

    def parameters(self) -> tuple[Var, ...]:
        self.expect("(")
        params, _ = self.comma_separated(")", self.parameter)
        return tuple(params)

    def parameter(self) -> Var:
        token = self.identifier("a parameter")
        self.expect(":", ": and the parameter's type")
        if token.text in self.scopes[-1]:
            raise self.error(RelvmSyntaxError, f"two parameters are named {token.text}", token)
        var = Var(token.text, type=self.type(), origins=(self.source.origin(token.offset),))
        self.bind(var)
        return var

    def bind(self, var: Var) -> None:
        if var.name != "_":
            self.scopes[-1][var.name] = var

    def block(self) -> Block:
        self.enter_level()
        self.expect("{")
        self.scopes.append({})
        bindings: list[Binding | MatchCast] = []
        group_start = None
        while True:
            is_function = self.at_local_function()
            if group_start is not None and not is_function:
                self.end_group(bindings, group_start)
                group_start = None
            if self.accept("return"):
                break
            if is_function and group_start is None:
                self.groups.append(_FunctionGroup({}, {}))
                group_start = len(bindings)
            bindings.append(self.local_function() if is_function else self.binding())
            if not (self.accept(";") or self.token.is_first_in_line or self.at("}")):
                raise self.unexpected("a new line or ; after the binding")
        origin = self.source.origin(self.token.offset)
        result = self.expression()
        self.accept(";")
        self.expect("}")
        self.scopes.pop()
        self.depth -= 1
        return Block(tuple(bindings), result, origin=origin)

    def binding(self) -> Binding | MatchCast:
        token = self.identifier("a binding or return")
        declared = self.type() if self.accept(":") else None
        self.expect("=")
        if self.at("match_cast"):
            return self.match_cast(token, declared)
        value = self.expression()
        if declared is None and token.text == "_" and is_void_call(value):
            declared = VOID
        if declared is not None and self.untyped_call is not None and value is self.untyped_call:
            value = replace(self.untyped_call, type=declared)
        var = self.variable(token, declared)
        self.bind(var)
        return Binding(var, value)

    def variable(self, name: Token, declared: Type | None) -> Var:
        """Return a new variable.  Its type is inferred later if `declared` is None.

        name: the token of its name.
        declared: its declared type, or None.
        """
        origins = (self.source.origin(name.offset),)
        return Var(name.text, origins=origins) if declared is None else Var(name.text, type=declared, origins=origins)

    def at_local_function(self) -> bool:
        """Return whether a binding of a local function, `name = fn ...`, begins at the current token."""
        at = self.position + 1
        if self.following.text == ":":
            while self.tokens[at].text not in ("=", ""):
                at += 1
        return self.tokens[min(at, len(self.tokens) - 1)].text == "=" and self.tokens[at + 1].text == "fn"

    def local_function(self) -> Binding:
        """Parse a local function `name = fn ...`.  It may call itself and adjacent local functions."""
        token = self.identifier("a binding or return")
        declared = self.type() if self.accept(":") else None
        self.expect("=")
        var = self.variable(token, declared)
        outer = self.enclosing_functions
        group = self.groups[-1]
        if token.text in group.undefined:
            group.definitions[group.undefined.pop(token.text)[0]] = var
        self.bind(var)
        self.enclosing_functions = {**outer, self.following.text: var}
        function = self.expression()
        self.enclosing_functions = outer
        return Binding(var, function)

    def end_group(self, bindings: list[Binding | MatchCast], start: int) -> None:
        """End a group of adjacent local functions.  Where these functions refer to each other, replace the placeholders
        by the variables of the functions.

        If a name is still undefined, an enclosing group may define it later.  Without an enclosing group, raise the
        error for this name.

        bindings: the bindings of the block so far, which are changed in place.
        start: the index of the first function of the group.
        """
        group = self.groups.pop()
        if group.definitions:
            bindings[start:] = [substitute(binding, group.definitions) for binding in bindings[start:]]
        for name, (var, error) in group.undefined.items():
            if not self.groups:
                raise error
            self.groups[-1].undefined.setdefault(name, (var, error))

    def match_cast(self, token: Token, declared: Type | None) -> MatchCast:
        start = self.take()
        if declared is not None:
            raise self.error(RelvmSyntaxError, "match_cast already states the type", start)
        self.expect("(")
        value = self.expression()
        self.expect(",")
        var = Var(token.text, type=self.type(), origins=(self.source.origin(token.offset),))
        where = self.string() if self.accept(",") else ""
        self.expect(")")
        self.bind(var)
        return MatchCast(var, value, where)

    def expression(self) -> Expr:
        self.enter_level()
        expr: Expr
        if self.accept("if"):
            cond = self.expression()
            self.expect("then")
            then = self.expression()
            self.expect("else")
            expr = If(cond, then, self.expression())
        elif self.at("fused") and self.following.text == "{":
            self.take()
            expr = Fused(self.block())
        elif self.accept("fn"):
            expr = self.function("" if self.at("(") else self.symbol("( or the function's name"))
        else:
            expr = self.infix(self.prefix(), 0)
        self.depth -= 1
        return expr

    def infix(self, left: Expr, lowest: int) -> Expr:
        """Parse the rest of an expression with infix operators, of which `left` is the first operand.

        Stop at an operator whose precedence is below `lowest`.  In a chain of operators, the left operand is bound to a
        variable after every _LONGEST_CHAIN operators, which limits the nesting of the expression.
        """
        outer = self.depth
        bindings: list[Binding | MatchCast] = []
        while self.token.kind == "mark" and _LEVEL.get(self.token.text, -1) >= lowest:
            if self.depth - outer == _LONGEST_CHAIN:
                part = Var("part", origins=(self.source.origin(self.token.offset),))
                bindings.append(Binding(part, left))
                left, self.depth = part, outer
            self.enter_level()  # the left operand becomes nested in the operator
            sign = self.take().text
            left = PrimCall(FORMS[sign, 2], (left, self.infix(self.prefix(), _LEVEL[sign] + 1)))
        self.depth = outer
        return Block(tuple(bindings), left) if bindings else left

    def prefix(self) -> Expr:
        """Parse an operand of an infix operator, including its prefix operators such as `-`."""
        negated = self.at("-") and self.following.kind not in ("int", "float") and self.following.text not in _NUMBERS
        if negated or self.at("~"):
            self.enter_level()
            call = PrimCall(FORMS[self.take().text, 1], (self.prefix(),))
            self.depth -= 1
            return call
        expr = self.primary()
        while not self.token.is_first_in_line and (self.at("(") or self.token.kind == "item"):
            if self.at("("):
                expr = Call(expr, self.arguments())
            else:
                expr = TupleItem(expr, int(self.take().text[1:]))
        return expr

    def arguments(self) -> tuple[Expr, ...]:
        """Parse the arguments of a call, such as `(a, b)`."""
        self.expect("(")
        return self.remaining_arguments()

    def remaining_arguments(self) -> tuple[Expr, ...]:
        """Parse the remaining arguments of a call and the closing parenthesis, such as `a, b)`."""
        args, _ = self.comma_separated(")", self.expression)
        return tuple(args)

    def primary(self) -> Expr:
        token = self.token
        match token.kind:
            case "int" | "float":
                return self.scalar()
            case "string":
                return String(self.string())
            case "name" if token.text in KEYWORDS:
                self.enter_level()
                expr = self.keyword()
                self.depth -= 1
                return expr
            case "name":
                return self.variable_or_call()
        match token.text:
            case "-":
                return self.scalar()
            case "(":
                self.take()
                return self.parenthesized()
            case "{":
                return self.block()
            case "@":
                return self.reference()
        raise self.unexpected("an expression")

    def scalar(self) -> Prim:
        token, value = self.token, self.number()
        return prim(self.in_range(token, value) if isinstance(value, int) else value)

    def parenthesized(self) -> Expr:
        parts, is_tuple = self.comma_separated(")", self.expression)
        return Tuple(tuple(parts)) if is_tuple else parts[0]

    def reference(self) -> Expr:
        self.expect("@")
        if self.accept("packed"):
            self.expect("(")
            name = self.string()
            self.expect(")")
            return PackedRef(name)
        token = self.token
        name = self.symbol("the name of a function")
        self.references.append((name, token))
        return FunctionRef(name)

    def variable_or_call(self) -> Expr:
        """Parse an expression that begins with a name: a variable, or a call of an operator."""
        token = self.take()
        name = token.text
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in operators():
            if not self.at("("):
                raise self.unexpected(f"the arguments of operator {name}")
            return self.operator_call(token)
        if name in self.enclosing_functions:
            return self.enclosing_functions[name]
        visible = {name for scope in self.scopes for name in scope}
        kind, known = ("operator or variable", visible | operators().keys()) if self.at("(") else ("variable", visible)
        error = self.error(RelvmNameError, f"no {kind} {name}{similar_names(name, known)}", token)
        if not self.groups:
            raise error
        return self.groups[-1].undefined.setdefault(name, (Var(name), error))[0]

    def operator_call(self, token: Token) -> OpCall:
        operator = find_operator(token.text)
        self.expect("(")
        args: list[Expr] = []
        attributes: dict[str, Any] = {}
        while not self.at(")"):
            if self.following.text == "=" and self.token.kind in ("name", "string"):
                self.attribute(attributes)
            elif attributes:
                raise self.unexpected("an attribute (arguments must precede attributes)")
            else:
                args.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")", ", or )")
        try:
            bound = operator.bind(tuple(args), attributes)
            return OpCall(operator, tuple(args), bound, origins=(self.source.origin(token.offset),))
        except RelvmError as error:
            raise self.error(type(error), str(error), token) from None

    def keyword(self) -> Expr:
        """Parse an expression that begins with a keyword, such as `const` or `packed`."""
        token = self.take()
        match token.text:
            case "true" | "false":
                return prim(token.text == "true")
            case "inf" | "nan":
                return prim(float(token.text))
            case "null":
                return Null()
            case "const":
                return self.constant()
            case "shape":
                return self.shape()
            case "dim":
                self.expect("(")
                value = DimValue(self.dim())
                self.expect(")")
                return value
            case "prim":
                self.expect(".")
                return PrimCall(self.known_name("scalar function", FUNCTIONS), self.arguments())
            case "dtype":
                self.expect("(")
                name = self.known_name("dtype", ALL_DTYPES)
                self.expect(")")
                return DTypeValue(ALL_DTYPES[name])
            case "packed" | "packed_pure":
                return self.packed_call(pure=token.text == "packed_pure")
            case "builtin":
                self.expect(".")
                return self.with_result_type(BuiltinCall(self.known_name("builtin", _BUILTIN_NAMES), self.arguments()))
            case "kernel":
                origins = (self.source.origin(token.offset),)
                return self.with_result_type(
                    KernelCall(self.symbol("the name of a kernel"), self.arguments(), origins=origins)
                )
            case "run":
                run = KernelRun(self.symbol("the name of a kernel"), self.arguments())
                return self.with_result_type(run)
            case "kill":
                return Kill(self.primary())
            case "match_cast":
                raise self.error(RelvmSyntaxError, "match_cast is only allowed right after the = of a binding", token)
        raise self.error(RelvmSyntaxError, f"expected an expression, got the keyword {token}", token)

    def known_name(self, what: str, known: Collection[str]) -> str:
        token = self.take()
        if token.text not in known:
            raise self.error(RelvmNameError, f"no {what} {token}{near_matches(token.text, known)}", token)
        return token.text

    def shape(self) -> Shape:
        self.expect("(")
        dims, _ = self.comma_separated(")", self.dim)
        return Shape(tuple(dims))

    def packed_call(self, pure: bool) -> Expr:
        self.expect("(")
        name = self.string()
        if not self.at(")"):
            self.expect(",", ", or )")
        return self.with_result_type(PackedCall(name, self.remaining_arguments(), pure))

    def with_result_type(self, call: PackedCall | BuiltinCall | KernelCall | KernelRun) -> Expr:
        """Parse the result type after a call, such as `: f32[n]`, if there is one.  Return the call with this type."""
        if self.accept(":"):
            return replace(call, type=self.type())
        self.untyped_call = call
        return call
