"""`relvm ops`, `relvm builtins`, `relvm opcodes`, `relvm boards`: print operators, builtins, instructions or boards."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from relvm.cli.arguments import Parser
from relvm.cli.common_arguments import add_json
from relvm.cli.output import put, put_json
from relvm.errors import RelvmNameError
from relvm.ir.operator import similar_names
from relvm.tables import BUILTIN_PREFIX, BUILTINS, OPCODES


def add_arguments(parser: Parser) -> None:
    parser.example = _EXAMPLES[parser.get_default("command")]
    parser.add_argument("names", nargs="*", metavar="NAME", help="describe only these")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table that the command names, or the rows with the given names.

    A terminal gets lines that fit it.  Other readers get one line for each row.
    """
    columns, make = _TABLES[options.command]
    rows = make()
    if options.names:
        by_name = {row[columns.index("name")].removeprefix(BUILTIN_PREFIX): row for row in rows}
        rows = [_row_of(name, by_name, options.command) for name in options.names]
    if options.json:
        put_json([dict(zip(columns, row, strict=True)) for row in rows])
        return 0
    rows = [tuple(map(str, row)) for row in rows]
    short = [(*row[:-1], row[-1].partition("\n")[0]) for row in rows]
    if options.names or sys.stdout.isatty():
        for k, row in enumerate(rows if options.names else short):
            if options.names and k > 0:
                put()
            _put_described(row)
    else:
        widths = [max(len(row[i]) for row in short) for i in range(len(columns) - 1)]
        for row in short:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            put("  ".join((*cells, row[-1])).rstrip())
    return 0


def _row_of(name: str, rows: Mapping[str, tuple[str, ...]], table: str) -> tuple[str, ...]:
    row = rows.get(name.removeprefix(BUILTIN_PREFIX))
    if row is None:
        raise RelvmNameError(f"relvm {table}: no entry {name}{similar_names(name, rows)}")
    return row


def _put_described(row: tuple[str, ...]) -> None:
    """Print a row: a line of its names, and below it its meaning."""
    width = shutil.get_terminal_size().columns
    put(textwrap.fill(" ".join(row[:-1]), width, subsequent_indent="        ", break_on_hyphens=False))
    for line in row[-1].split("\n"):
        indent = " " * (4 + len(line) - len(line.lstrip()))
        put(textwrap.fill(line.strip(), width, initial_indent=indent, subsequent_indent=indent))


def _ops() -> list[tuple[str, ...]]:
    import relvm.ops  # noqa: F401  (declares the operators)
    from relvm.ir.operator import operators

    rows: list[tuple[str, ...]] = []
    for name, op in sorted(operators().items()):
        params = ", ".join([str(p).partition(":")[0] for p in op.parameters] + [_attribute(p) for p in op.attributes])
        rows.append((name, f"({params})", op.effect.value, op.doc))
    return rows


def _attribute(parameter) -> str:
    required = parameter.default is parameter.empty
    return parameter.name if required else f"{parameter.name}={parameter.default}"


def _builtins() -> list[tuple[str, ...]]:
    return [(BUILTIN_PREFIX + row.name, row.signature, row.effect.lower(), row.meaning) for row in BUILTINS]


def _opcodes() -> list[tuple[Any, ...]]:
    return [(row.index, row.name, row.operands, row.meaning) for row in OPCODES]


def _boards() -> list[tuple[Any, ...]]:
    from relvm.aot.boards import BOARDS

    return [
        (
            board.name,
            board.flash_bytes,
            board.ram_bytes,
            f"{board.title}: {board.processor}" + (f"; not supported: {board.refusal}" if board.refusal else ""),
        )
        for board in BOARDS
    ]


_TABLES = {
    "ops": (("name", "parameters", "effect", "meaning"), _ops),
    "builtins": (("name", "signature", "effect", "meaning"), _builtins),
    "opcodes": (("index", "name", "operands", "meaning"), _opcodes),
    "boards": (("name", "flash_bytes", "ram_bytes", "meaning"), _boards),
}
_EXAMPLES = {
    "ops": "relvm ops matmul conv",
    "builtins": "relvm builtins alloc_storage",
    "opcodes": "relvm opcodes call",
    "boards": "relvm boards pico",
}
