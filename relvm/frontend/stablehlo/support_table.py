"""The table of StableHLO operations, from the registered converters."""

from __future__ import annotations

import inspect
import textwrap

import relvm.frontend.stablehlo.importer  # noqa: F401  declares all converters
from relvm.frontend.stablehlo.registry import converter_for, refused_operations, supported_operations


def as_markdown() -> str:
    """Return the supported and the refused operations as Markdown."""
    notes = {name: " ".join((inspect.getdoc(converter_for(name)) or "").split()) for name in supported_operations()}
    plain = textwrap.fill(", ".join(_shown(name) for name, note in notes.items() if not note) + ".", 150)
    rows = [plain, "", "The following operations have notes:", "", "| operation | notes |", "|---|---|"]
    rows += [f"| {_shown(name)} | {note} |" for name, note in notes.items() if note]
    refused = ["", "These operations are refused:", "", "| operation | reason |", "|---|---|"]
    refused += [f"| {_shown(name)} | {reason} |" for name, reason in refused_operations().items()]
    return "\n".join([*rows, *refused]) + "\n"


def _shown(name: str) -> str:
    return f"`{name.removeprefix('stablehlo.')}`"
