"""`relvm ops`, `relvm builtins`, `relvm opcodes`: print the declared operators, builtins and instructions."""

from __future__ import annotations

import argparse

from relvm.cli.output import put, put_json
from relvm.tables import BUILTINS, OPCODES


def print_table(options: argparse.Namespace) -> int:
    """Print the table that the command names."""
    columns, make = _TABLES[options.table]
    rows = make()
    if options.json:
        put_json([dict(zip(columns, row, strict=True)) for row in rows])
        return 0
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        put("  ".join((*cells, row[-1])).rstrip())
    return 0


def _ops() -> list[tuple[str, ...]]:
    import relvm.ops  # noqa: F401  (declares the operators)
    from relvm.ir.operator import operators

    rows: list[tuple[str, ...]] = []
    for name, op in sorted(operators().items()):
        params = ", ".join([str(p).partition(":")[0] for p in op.parameters] + [_attribute(p) for p in op.attributes])
        rows.append((name, f"({params})", op.effect.value, op.doc.partition("\n")[0]))
    return rows


def _attribute(parameter) -> str:
    required = parameter.default is parameter.empty
    return parameter.name if required else f"{parameter.name}={parameter.default}"


def _builtins() -> list[tuple[str, ...]]:
    return [(f"vm.builtin.{row.name}", row.signature, row.effect.lower(), row.meaning) for row in BUILTINS]


def _opcodes() -> list[tuple[str, ...]]:
    return [(str(row.index), row.name, row.operands, row.meaning) for row in OPCODES]


_TABLES = {
    "ops": (("name", "parameters", "effect", "meaning"), _ops),
    "builtins": (("name", "signature", "effect", "meaning"), _builtins),
    "opcodes": (("index", "name", "operands", "meaning"), _opcodes),
}
