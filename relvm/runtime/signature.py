"""Signatures: the parameter and result types of functions, as in the text form."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterable, Mapping
from typing import Any

from relvm.bytecode.program import signature_entry
from relvm.display import Displayed, html_table
from relvm.quoting import terminal


class instance_property(property):
    """A property of instances that the class itself does not have.

    It is used for `__signature__`, because `inspect.signature` of a class fails if the class has a property of that
    name.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            raise AttributeError("only objects of the class have this attribute")
        return super().__get__(instance, owner)


class Signatures(Displayed, dict[str, Any]):
    """The signatures of the functions that are not private: a dict from name to the entry in the executable.

    The entry of a function is a dict of its parameters, its result and its attributes (see `signature_entry`).
    """

    def __str__(self) -> str:
        return "\n".join(f"{terminal(name)}{typed_text(entry)}" for name, entry in self.items())

    def _repr_html_(self) -> str:
        return signature_table(self)


def signature_table(signature: Mapping[str, Any], title: str = "") -> str:
    """Return an HTML table of functions.

    signature: for each function name, its entry in an executable's signature, or None if it has none.
    title: the text above the table.
    """
    rows = [("function", "parameters", "result")]
    for name, entry in signature.items():
        params, result = _params_and_result(entry)
        rows.append((terminal(name), "\n".join(terminal(f"{each}: {kind}") for each, kind in params), terminal(result)))
    return html_table(rows, title, left=(0, 1, 2))


def typed_text(entry: Any) -> str:
    """Return an entry of an executable's signature as text, such as "(x: f32[n, 4]) -> f32[n]"."""
    params, result = _params_and_result(entry)
    return terminal(f"({', '.join(f'{name}: {kind}' for name, kind in params)}) -> {result}")


def python_signature(names: Iterable[str], types: Iterable[str], result: str) -> inspect.Signature:
    """Return the signature of a callable for `inspect.signature`, which help and completion show.

    A name that Python does not allow for a parameter is replaced by a similar name that Python allows.  Callers cannot
    pass an argument by such a changed name.  The parameter is therefore positional-only, and so are all parameters
    before it.

    Parameters
    ----------
    names, types
        The name and the type of each parameter.  The type becomes the annotation, unless it is an empty string.
    result
        The type of the result, or an empty string.
    """
    named_types = list(zip(names, types, strict=True))
    changed = [k for k, (name, _) in enumerate(named_types) if not name.isidentifier() or keyword.iskeyword(name)]
    positional = max(changed, default=-1) + 1
    params: dict[str, inspect.Parameter] = {}
    for k, (name, kind) in enumerate(named_types):
        plain = "".join(ch if f"_{ch}".isidentifier() else "_" for ch in name)
        allowed = plain if plain.isidentifier() and not keyword.iskeyword(plain) else f"_{plain}"
        while allowed in params:
            allowed += "_"
        how = inspect.Parameter.POSITIONAL_ONLY if k < positional else inspect.Parameter.POSITIONAL_OR_KEYWORD
        params[allowed] = inspect.Parameter(allowed, how, annotation=kind or inspect.Parameter.empty)
    return inspect.Signature(list(params.values()), return_annotation=result or inspect.Signature.empty)


def signature_types(signature: Mapping[str, Any], function: str, count: int) -> tuple[list[str], str]:
    """Return the types of the `count` parameters of a function, and the type of its result, as text.

    signature: the signature of the executable.  If it does not contain the function, for example because the executable
    was built by hand, the types are empty strings.
    """
    entry = signature_entry(signature, function)
    if entry is None or len(entry["params"]) != count:
        return [""] * count, ""
    return [each["type"] for each in entry["params"]], entry["result"]


def tuple_fields(type_text: str) -> list[str] | None:
    """Return the types of the fields of a tuple type as text, such as ["f32[n, m]", "i64"] for "(f32[n, m], i64)".

    Return None if it is not a tuple type.
    """
    if not (type_text.startswith("(") and type_text.endswith(")")):
        return None
    fields, depth = [""], 0
    for sign in type_text[1:-1]:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return None  # the first parenthesis ends before the end, as in the type of a function
        if depth == 0 and sign == ",":
            fields.append("")
        else:
            fields[-1] += sign
    return [field.strip() for field in fields if field.strip()]


def _params_and_result(entry: Any) -> tuple[list[tuple[str, str]], str]:
    match entry:
        case {"params": list(params), "result": str(result)}:
            stated_params = [each for each in params if isinstance(each, dict)]
            return [(str(each.get("name")), str(each.get("type"))) for each in stated_params], result
    return [], "?"
