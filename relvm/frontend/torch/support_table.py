"""The table of ATen operators, from the registered converters."""

from __future__ import annotations

import inspect
import textwrap

import relvm.frontend.torch.importer  # noqa: F401  declares all converters
from relvm.frontend.torch.registry import complex_converter_for, converter_for, refused_operators, supported_operators


def as_markdown() -> str:
    """Return the supported and the refused operators as Markdown."""
    overloads: dict[str, list[str]] = {}
    for name in supported_operators():
        operator, _, overload = _shown(name).rpartition(".")
        overloads.setdefault(operator, []).append(overload)
    notes: dict[str, list[str]] = {}
    for name in supported_operators():
        note = " ".join((inspect.getdoc(converter_for(name) or complex_converter_for(name)[0]) or "").split())
        if note:
            notes.setdefault(note, []).append(f"`{_shown(name).removesuffix('.default')}`")
    plain = ", ".join(f"`{name}`" for name in sorted(overloads))
    rows = [textwrap.fill(f"{plain}.", 150, break_long_words=False, break_on_hyphens=False), ""]
    rows += ["The following operators have notes:", "", "| operator | notes |", "|---|---|"]
    rows += [f"| {', '.join(names)} | {note} |" for note, names in sorted(notes.items(), key=lambda item: item[1])]
    by_reason: dict[str, list[str]] = {}
    for name, reason in refused_operators().items():
        by_reason.setdefault(reason, []).append(f"`{_shown(name).removesuffix('.default')}`")
    refused = ["", "These operators are refused:", "", "| reason | operators |", "|---|---|"]
    refused += [f"| {reason} | {', '.join(names)} |" for reason, names in sorted(by_reason.items())]
    return "\n".join([*rows, *refused]) + "\n"


def _shown(name: str) -> str:
    shown = name.removeprefix("aten.")
    return f"{shown}.default" if shown.startswith("higher_order.") else shown
