"""Directives that show what the project declares: the tables of csrc/tables/*.def, the operators, the commands.

    {relvm-table} opcodes      a table of csrc/, one row a row
    {relvm-operators}          a section for each operator, from its @op
    {relvm-commands}           a section for each command, from its parser

A page contains only the directive.  The content is generated when the site is built, and is not written to a file.
"""

from __future__ import annotations

import argparse
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from inspect import Parameter

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import relvm.ops  # noqa: F401  (declares the operators)
from relvm import tables
from relvm.cli.arguments import Parser
from relvm.cli.help import COMMANDS
from relvm.cli.main import make_parser
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import OpCall
from relvm.ir.node import walk
from relvm.ir.operator import Effect, Operator, operators
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType, format_type

# The fields that are shown as code.  TABLES has the rows of each table, and the field of each column by its heading.
CODE = {
    "name",
    "operands",
    "names",
    "arguments",
    "letter",
    "signature",
    "function",
    "form",
    "ctype",
    "numpy",
    "option",
    "macro",
    "python_class",
}
TABLES = {
    "opcodes": (
        tables.OPCODES,
        {
            "number": "index",
            "instruction": "name",
            "kinds": "operands",
            "operands": "names",
            "": "meaning",
        },
    ),
    "arguments": (
        tables.ARGUMENTS,
        {"number": "index", "kind": "name", "letter": "letter", "payload": "meaning"},
    ),
    "builtins": (
        tables.BUILTINS,
        {
            "builtin": "name",
            "takes and gives": "signature",
            "effect": "effect",
            "cost": "cost",
            "": "meaning",
        },
    ),
    "kernel_opcodes": (
        tables.KERNEL_OPCODES,
        {
            "number": "index",
            "instruction": "name",
            "kinds": "operands",
            "operands": "names",
            "": "meaning",
        },
    ),
    "micro_kernels": (
        tables.MICRO_KERNELS,
        {"number": "index", "function": "name", "arguments": "arguments"},
    ),
    "kernel_constants": (
        tables.KERNEL_CONSTANTS,
        {"name": "name", "value": "value", "": "meaning"},
    ),
    "prim_operators": (
        tables.PRIM_OPERATORS,
        {
            "row": "index",
            "name": "name",
            "operands": "operands",
            "result": "result",
            "written": "form",
            "value": "meaning",
            "fails": "fails",
        },
    ),
    "dim_operators": (
        tables.DIM_OPERATORS,
        {"number": "number", "operator": "name", "written": "form"},
    ),
    "shape_codes": (tables.SHAPE_CODES, {"number": "number", "code": "name", "": "meaning"}),
    "type_codes": (
        tables.TYPE_CODES,
        {"number": "number", "code": "name", "what follows it": "operands", "": "meaning"},
    ),
    "patterns": (
        tables.PATTERNS,
        {"number": "number", "instruction": "name", "operands": "operands", "": "meaning"},
    ),
    "dtypes": (
        tables.DTYPES,
        {
            "number": "index",
            "dtype": "name",
            "code": "code",
            "bits": "bits",
            "in C": "ctype",
            "in NumPy": "numpy",
        },
    ),
    "kinds": (tables.KINDS, {"number": "index", "kind": "name", "": "meaning"}),
    "sections": (tables.SECTIONS, {"id": "id", "section": "name", "": "meaning"}),
    "tags": (tables.TAGS, {"number": "index", "tag": "name", "": "meaning"}),
    "status": (
        tables.STATUS,
        {"code": "index", "name": "name", "Python class": "python_class", "": "meaning"},
    ),
    "cpu_features": (
        tables.CPU_FEATURES,
        {"feature": "option", "macro": "macro", "x86-64 level": "level"},
    ),
}

LONGEST_LINE = 60  # limit on the length of a parameter list in one line


def inline(text: str) -> list[nodes.Node]:
    """Parse text in which backticks enclose code."""
    parts = re.split(r"(`[^`]+`)", text)
    return [
        code(part[1:-1]) if part.startswith("`") else nodes.Text(part)
        for part in parts
        if part
    ]


def code(text: str) -> nodes.literal:
    """Return an inline code node."""
    return nodes.literal(text, text)


def paragraph(*parts: nodes.Node | str) -> nodes.paragraph:
    """Return a paragraph of nodes and texts.  Texts are parsed by `inline`."""
    found = nodes.paragraph()
    for part in parts:
        found += inline(part) if isinstance(part, str) else [part]
    return found


def table(headings: Sequence[str], rows: Iterable[Sequence[nodes.Node | str]]) -> nodes.table:
    """Return a table with headings and rows of the same length."""
    group = nodes.tgroup(cols=len(headings))
    group += [nodes.colspec(colwidth=1) for _ in headings]
    group += nodes.thead("", _row(headings))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group)


def _row(cells: Sequence[nodes.Node | str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", paragraph(cell)) for cell in cells))


def section(name: str, title: str, *content: nodes.Node) -> nodes.section:
    """Return a section of a page.  name: the anchor for links."""
    return nodes.section(
        "", nodes.title("", "", code(title)), *content, ids=[name], names=[name]
    )


class TableDirective(Directive):
    """Directive that shows a table of csrc/, given by its name in TABLES."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] not in TABLES:
            raise self.error(
                f"no table {self.arguments[0]}: expected one of {', '.join(TABLES)}"
            )
        rows, columns = TABLES[self.arguments[0]]
        return [
            table(
                tuple(columns),
                [[_cell(row, field) for field in columns.values()] for row in rows],
            )
        ]


def _cell(row: object, field: str) -> nodes.Node | str:
    value = cell_text(row, field)
    return code(value) if field in CODE and value else value


def cell_text(row: object, field: str) -> str:
    """Return a field of a row as text: names and arguments are separated by commas."""
    value = getattr(row, field)
    return ", ".join(map(_member, value)) if isinstance(value, tuple) else str(value)


def _member(member: str | tuple[str, ...]) -> str:
    """Print a name, or an argument (kind, name, type) of a micro-kernel: `READ a: float`."""
    if isinstance(member, str):
        return member
    kind, name, *types = member
    return f"{kind} {name}" + "".join(f": {each}" for each in types)


class OperatorsDirective(Directive):
    """Directive that shows the signature, description, side effects and examples of all operators."""

    def run(self) -> list[nodes.Node]:
        return [_operator(operator) for _, operator in sorted(operators().items())]


def _operator(operator: Operator) -> nodes.section:
    call = nodes.literal_block("", call_of(operator), language="python")
    text, _, examples = operator.doc.partition("\n\nExamples:\n\n")
    head, *rest = text.split("\n\n")
    items = [item for part in rest for item in statements(part)]
    items += (
        ["It has an effect: calls stay, in order."] if operator.effect is Effect.IMPURE else []
    )
    items += ["Elements are moved or converted; none is computed."] if operator.moves else []
    listed = nodes.bullet_list("", *(nodes.list_item("", paragraph(item)) for item in items))
    shown = nodes.literal_block("", textwrap.dedent(examples), language="pycon")
    types = (
        paragraph("Types in the example: ", code(types_in(operator.name, examples)))
        if examples
        else None
    )
    parts = [*([listed] if items else []), *([shown, types] if types else [])]
    return section(f"op-{operator.name}", operator.name, call, paragraph(head), *parts)


def types_in(name: str, examples: str) -> str:
    """Return the types in the first example of an operator, such as `abs(f32[2]) -> f32[2]`."""
    first = doctest.DocTestParser().get_examples(textwrap.dedent(examples))[0].source
    read = {"np": np, "run": lambda expression, **arguments: (expression, arguments)}
    expression, arguments = eval(first, read)
    arrays = {key: np.array(value) for key, value in arguments.items()}
    arrays = {
        key: x.astype(np.float32) if x.dtype == float else x for key, x in arrays.items()
    }
    params = ", ".join(
        f"{key}: {TensorType(dtype_of(x.dtype), x.shape)}" for key, x in arrays.items()
    )
    module = infer_types(parse_module(f"def main({params}) = {expression}"))
    calls = (
        node for node in walk(module) if isinstance(node, OpCall) and node.op.name == name
    )
    found = next(calls)
    return f"{name}({', '.join(format_type(arg.type) for arg in found.args)}) -> {format_type(found.type)}"


def call_of(operator: Operator) -> str:
    """Return the signature of the type rule: `softmax(x: TensorType, *, axis: int = -1) -> TensorType`."""
    signature = inspect.signature(operator.type_rule)
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    words = [_declared(parameter) for parameter in signature.parameters.values()]
    if Parameter.KEYWORD_ONLY in kinds and Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(Parameter.KEYWORD_ONLY), "*")
    line, result = ", ".join(words), signature.return_annotation
    if len(line) > LONGEST_LINE:
        line = "".join(f"\n    {word}," for word in words) + "\n"
    return f"{operator.name}({line}) -> {result}"


def _declared(parameter: Parameter) -> str:
    name = (
        f"*{parameter.name}" if parameter.kind is Parameter.VAR_POSITIONAL else parameter.name
    )
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{name}: {parameter.annotation}{default}"


def statements(text: str) -> list[str]:
    """Split an operator's docstring into statements about parameters, results, errors and sources."""
    starts = r" {3,}|(?<!,)\n(?=(?:\w+(?:, \w+)*: )|Raises )"
    return [" ".join(part.split()) for part in re.split(starts, text) if part.strip()]


class CommandsDirective(Directive):
    """Directive that shows the description and the options of all commands."""

    def run(self) -> list[nodes.Node]:
        parsers = make_parser(COMMANDS).get_default("parsers")
        return [_command(name, COMMANDS[name], parser) for name, parser in parsers.items()]


def _command(name: str, help_text: str, parser: Parser) -> nodes.section:
    actions = [
        action for action in parser._actions if not isinstance(action, argparse._HelpAction)
    ]
    rows = [(code(_spelling(action)), _help(action)) for action in actions]
    content = [paragraph(f"{help_text[0].upper()}{help_text[1:]}.")]
    return section(
        f"relvm-{name}",
        f"relvm {name}",
        *content,
        *([table(("argument", ""), rows)] if rows else []),
        paragraph("Example:"),
        nodes.literal_block("", parser.example, language="sh"),
    )


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar)
    value = (
        ""
        if action.nargs == 0
        else f" {action.metavar or _choices(action) or action.dest.upper()}"
    )
    return ", ".join(action.option_strings) + value


def _choices(action: argparse.Action) -> str:
    return "|".join(action.choices) if action.choices else ""


def _help(action: argparse.Action) -> str:
    parts = [action.help] if action.help else []
    says = action.nargs == 0 or (action.help and "default" in action.help)
    if not says and action.default not in (None, [], argparse.SUPPRESS):
        parts.append(f"default: {action.default}")
    if action.required and action.option_strings:
        parts.append("required")
    return "; ".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives.  Sphinx calls this function."""
    app.add_directive("relvm-table", TableDirective)
    app.add_directive("relvm-operators", OperatorsDirective)
    app.add_directive("relvm-commands", CommandsDirective)
    app.connect("env-get-outdated", _made_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _made_again(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the pages with these directives, because Sphinx does not notice changes of their content."""
    return [name for name in env.found_docs if "relvm-" in env.doc2path(name).read_text()]
