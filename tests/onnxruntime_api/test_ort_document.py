"""docs/onnxruntime.md lists every name of the installed onnxruntime, and correctly states how relvm handles it."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from support.documents import ROOT

from relvm import onnxruntime as ours
from relvm.onnxruntime.options import _Option

theirs: Any = pytest.importorskip("onnxruntime")
NotImplemented = ours.capi.onnxruntime_pybind11_state.NotImplemented

PARTS = ("onnxruntime", "InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding")
_INTERNAL = {"import_capi_exception"}


def listed(part: str) -> dict[str, set[str]]:
    """Return the names in a part of the API by their status: "supported", "no effect" or "rejected"."""
    text = (ROOT / "docs/onnxruntime.md").read_text()
    section = text.split(f"### {part}\n", 1)[1].split("###", 1)[0]
    rows = re.findall(r"^\| (supported|no effect|rejected) \| (.*) \|$", section, re.MULTILINE)
    return {kind: set(re.findall(r"`(\w+)`", names)) for kind, names in rows}


def public(owner: Any) -> set[str]:
    names = {name for name in dir(owner) if not name.startswith("_")}
    return {name for name in names if not isinstance(getattr(owner, name), ModuleType)} - _INTERNAL


@pytest.mark.parametrize("part", PARTS)
def test_every_name_is_listed_once(part: str) -> None:
    rows = listed(part)
    names = [name for row in rows.values() for name in row]
    assert len(names) == len(set(names))
    assert set(names) == public(theirs if part == "onnxruntime" else getattr(theirs, part))


@pytest.mark.parametrize("part", PARTS)
def test_a_rejected_name_raises_and_others_exist(part: str) -> None:
    rows, owner = listed(part), ours if part == "onnxruntime" else getattr(ours, part)
    for name in rows["supported"] | rows.get("no effect", set()):
        assert hasattr(owner, name), name
    for name in rows.get("rejected", ()):
        use = {"InferenceSession": ours.InferenceSession.__new__, "OrtValue": lambda _: ours.OrtValue(None)}
        instance = owner if part == "onnxruntime" else use.get(part, lambda owner: owner())(owner)
        with pytest.raises(NotImplemented, match=f"{name} is not supported by relvm"):
            getattr(instance, name)(*[None] * (name in ("add_active_adapter", "ort_value_from_sparse_tensor")))


@pytest.mark.parametrize("part", ["SessionOptions", "RunOptions"])
def test_an_option_has_an_effect_where_the_document_says_so(part: str) -> None:
    options = {name: value for name, value in vars(getattr(ours, part)).items() if isinstance(value, _Option)}
    rows = listed(part)
    assert {name for name, option in options.items() if option.has_effect} == rows["supported"] & options.keys()
    assert {name for name, option in options.items() if not option.has_effect} == rows["no effect"] & options.keys()
