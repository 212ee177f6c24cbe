"""Analysis of a source text for the language server: errors, types, definitions and completions."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.data_classes import dataclass
from relvm.errors import RelvmError
from relvm.frontend.text import parse_module
from relvm.frontend.text.lexer import Source, Token, tokenize
from relvm.frontend.text.problem import Problem, locate_problem
from relvm.ir.expr import Binding, Function, MatchCast, Module, Var
from relvm.ir.node import walk
from relvm.ir.operator import operators
from relvm.ir.type_inference import infer_types
from relvm.ir.types import FuncType, format_type

_NAME = "<text>"
_PLACE = re.compile(rf"{re.escape(_NAME)}:(\d+):(\d+)")  # a source location in the text


@dataclass(frozen=True)
class Definition:
    """The definition of a function, a parameter or a variable.

    kind: "function" or "variable".
    start, name_end: the offsets at which its name begins and ends, with quotes if the name is a string.
    end: the offset at which the scope of its name ends.
    detail: its type as text.
    """

    name: str
    kind: str
    start: int
    name_end: int
    end: int
    detail: str


class Analysis:
    """The result of analyzing a source text.

    Attributes
    ----------
    text
        The source text.
    problem
        The error in the text, or None.  The parser stops at the first error.
    definitions
        The functions, parameters and variables that the text defines, in order.  Empty if the text has an error.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.source = Source(text, _NAME)
        self.problem: Problem | None = None
        self.definitions: tuple[Definition, ...] = ()
        try:
            self.tokens = tokenize(self.source)
            self.definitions = tuple(self._definitions(infer_types(parse_module(text, _NAME))))
        except RelvmError as error:
            self.problem = locate_problem(error, self.source)

    def hover(self, offset: int) -> str | None:
        """Return the type or documentation of the name at an offset as Markdown, or None if the name is unknown."""
        token = self._name_at(offset)
        if token is None:
            return None
        found = self.definition(offset)
        if found is not None:
            separator = "" if found.kind == "function" else ": "
            return f"```relvm\n{self.spelled(found)}{separator}{found.detail}\n```"
        operator = operators().get(token.text)  # a quoted name is not an operator
        if operator is None:
            return None
        return f"```relvm\n{operator.name}{_parameters(operator.signature)}\n```\n\n{operator.doc}"

    def definition(self, offset: int) -> Definition | None:
        """Return the definition of the name at an offset, or None if the text does not define it."""
        token = self._name_at(offset)
        if token is None:
            return None
        name = _name_of(token)
        is_reference = token.offset > 0 and self.text[token.offset - 1] == "@"
        kinds = ("function",) if is_reference else ("variable", "function")
        visible = [
            each
            for each in self.definitions
            if each.name == name and each.kind in kinds and _is_visible(each, token.offset)
        ]
        variables = [each for each in visible if each.kind == "variable"]
        return max(variables or visible, key=lambda each: each.start, default=None)

    def completions(self, offset: int) -> list[tuple[str, str]]:
        """Return the names that are valid at an offset, each with its kind: "function", "variable" or "operator"."""
        found = {self.spelled(each): each.kind for each in self.definitions if _is_visible(each, offset)}
        return sorted((dict.fromkeys(operators(), "operator") | found).items())

    def spelled(self, definition: Definition) -> str:
        """Return the name of a definition as the text spells it, with quotes if it is a string."""
        return self.text[definition.start : definition.name_end]

    def _name_at(self, offset: int) -> Token | None:
        for token in self._names:
            if token.offset <= offset <= token.offset + len(token.text):
                return token
        return None

    @cached_property
    def _names(self) -> list[Token]:
        try:
            return [token for token in tokenize(self.source) if token.kind in ("name", "string")]
        except RelvmError:
            return []

    def _definitions(self, module: Module) -> Iterator[Definition]:
        names = {token.offset: token for token in self._names}
        defined = [
            after
            for before, after in zip(self.tokens, self.tokens[1:], strict=False)
            if before.text == "def" and after.offset in names
        ]
        for function in module.functions:
            token = next((each for each in defined if _name_of(each) == function.name), None)
            if token is not None:
                detail, end = _function_detail(function), len(self.text)
                yield Definition(function.name, "function", token.offset, _end_of(token), end, detail)
            for item in walk(function):
                match item:
                    case Function(params=params):
                        found = [self._variable_definition(param, names, self._end_of_function) for param in params]
                    case Binding(var=var) | MatchCast(var=var):
                        found = [self._variable_definition(var, names, self._end_of_block)]
                    case _:
                        continue
                yield from filter(None, found)

    def _variable_definition(
        self, var: Var, names: dict[int, Token], scope_end: Callable[[int], int]
    ) -> Definition | None:
        """Return the definition of `var`, or None if the text does not name the variable.

        names: the tokens that are names, by offset.
        scope_end: a function from the offset of a name to the offset at which the scope of the name ends.
        """
        found = _PLACE.fullmatch(var.origin)
        if found is None:
            return None
        start = self.source.offset(int(found[1]), int(found[2]))
        if start not in names or _name_of(names[start]) != var.name:
            return None
        return Definition(var.name, "variable", start, _end_of(names[start]), scope_end(start), format_type(var.type))

    def _end_of_block(self, start: int) -> int:
        """Return the offset of the end of the block that contains the offset `start`."""
        return self._find_closing("{", "}", start)

    def _end_of_function(self, start: int) -> int:
        """Return the offset of the end of the function whose parameter list contains the offset `start`."""
        body = self._find_closing("(", ")", start)
        for token in self.tokens:
            if token.offset > body and token.text == "{":
                return self._find_closing("{", "}", token.offset + 1)
            if token.offset > body and (
                token.text == "=" or (token.is_first_in_line and token.text in ("def", "kernel"))
            ):
                break
        return next(
            (token.offset for token in self.tokens if token.offset > body and token.is_first_in_line), len(self.text)
        )

    def _find_closing(self, opening: str, closing: str, start: int) -> int:
        """Return the offset of the `closing` bracket of the innermost pair of brackets around the offset `start`.

        If there is no such bracket, return the length of the text.
        """
        depth = 0
        for token in self.tokens:
            if token.offset < start or token.kind != "mark":
                continue
            depth += (token.text == opening) - (token.text == closing)
            if depth < 0:
                return token.offset
        return len(self.text)


def _name_of(token: Token) -> str | None:
    """Return the name that a token spells, as an identifier or as a string, or None if the string is malformed."""
    try:
        return json.loads(token.text) if token.kind == "string" else token.text
    except ValueError:
        return None


def _end_of(token: Token) -> int:
    return token.offset + len(token.text)


def _is_visible(definition: Definition, offset: int) -> bool:
    return definition.kind == "function" or definition.start <= offset <= definition.end


def _function_detail(function: Function) -> str:
    params = ", ".join(f"{param.name}: {format_type(param.type)}" for param in function.params)
    assert isinstance(function.type, FuncType)
    return f"({params}) -> {format_type(function.type.result)}"


def _parameters(signature: inspect.Signature) -> str:
    names = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default}"
        for parameter in signature.parameters.values()
    ]
    return f"({', '.join(names)})"
