"""Schemas of ONNX operators: the numbers of inputs and outputs, the input types and the attributes of a node.

The schemas are in node_schemas.tsv, which was made from the onnx package (`table_text`), so that the package is not
needed.  It is needed only for an operator without a converter that ONNX defines as a function of other operators.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError

_FILE = Path(__file__).with_name("node_schemas.tsv")
_UNBOUNDED = 2**31 - 1  # the onnx package's number for any number of inputs or outputs


@record
class FormalInput:
    """An input in a schema.

    name: the name of the input.
    type_variable: the type or type variable.
    types: the allowed types, in the notation of ONNX, such as `tensor(float)`.
    kind: "single", "optional", "variadic" (any number of inputs of one type) or "mixed" (any number of inputs of any of
    the types).
    """

    name: str
    type_variable: str
    types: frozenset[str]
    kind: str


@record
class NodeSchema:
    """The schema of an operator, which states its inputs, outputs and attributes.

    inputs, outputs: the minimum and maximum number of inputs and of outputs.  A maximum of None means any number.
    formal_inputs: the inputs.  A variadic input is the last one.
    attributes: a dict from the name of each attribute to the name of its type, such as "INTS".
    required: the names of the required attributes.
    """

    inputs: tuple[int, int | None]
    outputs: tuple[int, int | None]
    formal_inputs: tuple[FormalInput, ...]
    attributes: Mapping[str, str]
    required: frozenset[str]

    @cached_property
    def required_inputs(self) -> int:
        """The number of inputs that cannot be omitted.  They come first."""
        return sum(each.kind == "single" for each in self.formal_inputs[: self.inputs[0]])


@cache
def schema_of(domain: str, name: str, opset: int) -> NodeSchema | None:
    """Return the schema of an operator in an opset, or None if ONNX has no such operator.

    domain: "" for ONNX's own domain.
    """
    if domain and not domain.startswith("ai.onnx"):
        return None
    versions = json.loads(_lines().get(f"{domain} {name}", "{}"))
    version = max((version for version in map(int, versions) if version <= opset), default=None)
    return None if version is None else _from_row(versions[str(version)])


@cache
def newest_opsets() -> dict[str, int]:
    """Return the newest opset of each domain in node_schemas.tsv."""
    return json.loads(_lines()["opsets"])


def is_operator(domain: str, name: str) -> bool:
    """Return whether ONNX has an operator, in any opset.   domain: "" for ONNX's own domain."""
    return f"{domain} {name}" in _lines()


def is_function(domain: str, name: str) -> bool:
    """Return whether ONNX defines an operator by a function of other operators, in any opset."""
    return f"{domain} {name}" in json.loads(_lines()["functions"])


def definition_of(domain: str, name: str, opset: int) -> Any:
    """Return the onnx package's OpSchema of an operator in an opset, or None if the package has no such operator.

    Raise RelvmUnsupportedError if the package is not installed.
    """
    try:
        from onnx import defs
    except ImportError:
        raise RelvmUnsupportedError(
            f"{name} is imported as the function by which the onnx package defines it: pip install onnx"
        ) from None
    return defs.get_schema(name, opset, domain) if defs.has(name, opset, domain) else None


@cache
def _lines() -> dict[str, str]:
    """Return a dict from the key of each line of node_schemas.tsv to the JSON text behind it (see `table_text`)."""
    return dict(line.split("\t", 1) for line in _FILE.read_text(encoding="utf-8").splitlines())


@cache
def _types(number: int) -> frozenset[str]:
    return frozenset(json.loads(_lines()[f"types{number}"]))


def table_text(definitions: Iterable[Any], newest: Mapping[str, int]) -> str:
    """Return the contents of node_schemas.tsv for the OpSchemas `definitions`.

    newest: a dict from each domain to its newest opset.

    Each line consists of a key, a tab and JSON text, so that a reader parses only the lines that it needs.  The keys
    are "opsets", for `newest`, "functions", for the list of "domain name" of the operators that ONNX defines by a
    function, "types0", "types1" and so on, for the sets of allowed types, and "domain name" for an
    operator.  The text for an operator is an object from each version to a row (see `_from_row`).
    """
    types: dict[tuple[str, ...], int] = {}
    operators: dict[str, dict[int, list[Any]]] = {}
    functions = set()
    for definition in definitions:
        schema = _from_definition(definition)
        inputs = [
            [each.name, each.type_variable, types.setdefault(tuple(sorted(each.types)), len(types)), each.kind]
            for each in schema.formal_inputs
        ]
        attributes = {name: [kind, name in schema.required] for name, kind in schema.attributes.items()}
        row = [*schema.inputs, *schema.outputs, inputs, attributes]
        key = f"{definition.domain} {definition.name}"
        operators.setdefault(key, {})[definition.since_version] = row
        if definition.has_function or definition.has_context_dependent_function:
            functions.add(key)
    rows: dict[str, Any] = {"opsets": dict(newest), "functions": sorted(functions)}
    rows |= {f"types{number}": list(each) for each, number in types.items()}
    rows |= {key: dict(sorted(versions.items())) for key, versions in sorted(operators.items())}
    return "".join(f"{key}\t{json.dumps(row)}\n" for key, row in rows.items())


def _from_row(row: list[Any]) -> NodeSchema:
    """Return the schema that a row of node_schemas.tsv describes.

    A row is the list [minimum inputs, maximum inputs, minimum outputs, maximum outputs, formal inputs, attributes].  A
    formal input is the list [name, type variable, number of the set of types, kind].  The attributes are an object from
    each name to the list [type, whether it is required].
    """
    *counts, inputs, attributes = row
    formal = tuple(FormalInput(name, variable, _types(number), kind) for name, variable, number, kind in inputs)
    kinds = {name: kind for name, (kind, _) in attributes.items()}
    required = frozenset(name for name, (_, is_required) in attributes.items() if is_required)
    return NodeSchema((counts[0], counts[1]), (counts[2], counts[3]), formal, kinds, required)


def _from_definition(definition: Any) -> NodeSchema:
    """Convert an OpSchema of the onnx package to a NodeSchema."""

    def kind_of(formal: Any) -> str:
        kind = formal.option.name.lower()
        return "mixed" if kind == "variadic" and not formal.is_homogeneous else kind

    def counts(least: int, most: int) -> tuple[int, int | None]:
        return least, None if most == _UNBOUNDED else most

    return NodeSchema(
        counts(definition.min_input, definition.max_input),
        counts(definition.min_output, definition.max_output),
        tuple(FormalInput(i.name, i.type_str, frozenset(i.types), kind_of(i)) for i in definition.inputs),
        {name: attribute.type.name for name, attribute in sorted(definition.attributes.items())},
        frozenset(name for name, attribute in definition.attributes.items() if attribute.required),
    )
