"""The table of supported ONNX operators, from the registered converters and the onnx package's schemas."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import relvm.frontend.onnx.importer  # noqa: F401  declares all converters
from relvm.data_classes import dataclass
from relvm.errors import RelvmError
from relvm.frontend.onnx.registry import converter_for, supported_operators
from relvm.frontend.onnx_element_types import ELEMENT_TYPES, element_dtype
from relvm.ir.dtypes import dtype_of

_OLDEST = 7


@dataclass(frozen=True)
class SupportRow:
    """A row of the table: one operator.

    versions: the opsets that change the definition of the operator.  Versions that only models below opset 7 use are
    omitted.
    types: the supported element types of its first input.
    notes: the docstring of its converter, or a remark that ONNX's function body is imported.
    """

    domain: str
    name: str
    versions: tuple[int, ...]
    types: tuple[str, ...]
    notes: str


def rows() -> Iterator[SupportRow]:
    """Yield a row for every operator that has a converter or that the onnx package defines as a function."""
    from onnx import defs

    schemas: dict[tuple[str, str], list] = {}
    for schema in defs.get_all_schemas_with_history():
        schemas.setdefault((schema.domain, schema.name), []).append(schema)
    converted = {tuple(name.rpartition(".")[::2]) for name in supported_operators()}
    functions = {
        key for key, found in schemas.items() if any(s.has_function or s.has_context_dependent_function for s in found)
    }
    for domain, name in sorted(converted | functions):
        found = sorted(schemas.get((domain, name), []), key=lambda schema: schema.since_version)
        yield SupportRow(domain, name, _versions(found), _types(found), _notes(domain, name))


def _versions(schemas: list) -> tuple[int, ...]:
    """Return the versions of an operator that models of opset 7 or newer use.

    schemas: the schemas of all versions of the operator, oldest first.
    """
    versions = [schema.since_version for schema in schemas]
    if not versions or schemas[0].domain:
        return tuple(versions)
    first = max((version for version in versions if version <= _OLDEST), default=versions[0])
    return tuple(version for version in versions if version >= first)


def _types(schemas: list) -> tuple[str, ...]:
    """Return the element types that both ONNX and relvm support for an operator's first input.

    For operators without inputs, return those of the first output.

    schemas: the schemas of all versions of the operator.  Only the newest one counts.
    """
    if not schemas:
        return ()
    values = schemas[-1].inputs or schemas[-1].outputs
    allowed = values[0].types if values else ()
    found = {_dtype(text) for text in allowed}
    return tuple(sorted(found - {""}, key=lambda name: dtype_of(name).index))


def _dtype(text: str) -> str:
    """Return relvm's name of the element type in an ONNX type such as `seq(tensor(float))`.

    Return "" if relvm does not support the element type.
    """
    inner = text.split("(")[-1].rstrip(")")
    dtype = next((element_dtype(each.number) for each in ELEMENT_TYPES if each.text == inner), None)
    try:
        return "" if dtype is None else dtype_of(dtype).name
    except RelvmError:
        return ""


def _notes(domain: str, name: str) -> str:
    converter = converter_for(domain, name)
    if converter is None:
        return "Imported as the function by which ONNX defines the operator."
    return " ".join((inspect.getdoc(converter) or "").split())


def as_markdown() -> str:
    """Return the rows as Markdown tables, one for each domain."""
    parts, domain = [], None
    for row in rows():
        if row.domain != domain:
            domain = row.domain
            parts.append(f"\n### {domain or 'ai.onnx'}\n\n| operator | opsets | types | notes |\n|---|---|---|---|\n")
        versions, types = ", ".join(map(str, row.versions)), _shortened(row.types)
        parts.append(f"| {row.name} | {versions} | {types} | {row.notes.replace('|', '&#124;')} |\n")
    return "".join(parts).lstrip()


_GROUPS = {
    "i*": ("i8", "i16", "i32", "i64"),
    "u*": ("u8", "u16", "u32", "u64"),
    "f8*": ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"),
}


def _shortened(types: tuple[str, ...]) -> str:
    """Return the names of element types as text.  A short name such as `i*` replaces a complete group of types."""
    for short, group in _GROUPS.items():
        if set(group) <= set(types):
            at = types.index(group[0])
            types = tuple(name for name in (*types[:at], short, *types[at:]) if name not in group)
    return " ".join(types)
