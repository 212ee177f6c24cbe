"""Tests of the signatures that an executable states, as read by code that takes inputs from files.

In an untrusted file, a signature may be anything.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.bytecode.program import signature_entry
from relvm.cli.main import main
from relvm.distributed import Runner
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.frontend.text import parse_module
from relvm.runtime.array_files import named_outputs

EXECUTABLE = vm.build(parse_module("def main(x: f32[n], k: i64) -> (f32[n], i64) = (x, k + 1)"), target="numpy")
RIGHT = EXECUTABLE.signature["main"]
PARAMS = RIGHT["params"]

WRONG: list[Any] = [
    5,
    [],
    {},
    {**RIGHT, "params": 5},
    {**RIGHT, "params": [5, 5]},
    {**RIGHT, "params": [{"name": "x"}, PARAMS[1]]},
    {**RIGHT, "params": [{"name": 5, "type": "i64"}, PARAMS[1]]},
    {**RIGHT, "params": [{"name": "x", "type": None}, PARAMS[1]]},
    {**RIGHT, "result": 5},
    {"params": PARAMS, "result": "f32[n]"},
    {**RIGHT, "attributes": []},
    {**RIGHT, "attributes": {"input_names": 5}},
    {**RIGHT, "attributes": {"input_names": ["x"]}},
    {**RIGHT, "attributes": {"input_names": [5, 5]}},
    {**RIGHT, "attributes": {"output_names": "y"}},
    {**RIGHT, "attributes": {"output_names": [None]}},
]


def stating(stated: Any) -> vm.Executable:
    return vm.Executable.from_program(replace(EXECUTABLE.program, signature={"main": stated}))


def test_what_builds_write_is_right() -> None:
    assert signature_entry(EXECUTABLE.signature, "main") is RIGHT
    named = {**RIGHT, "attributes": {"input_names": ("a", "b"), "output_names": ["y"], "other": 5}}
    assert signature_entry({"main": named}, "main") is named
    assert signature_entry(EXECUTABLE.signature, "man") is None


@pytest.mark.parametrize("stated", WRONG, ids=str)
@pytest.mark.parametrize("read", ["run", "Runner"])
def test_what_is_malformed_is_refused(
    stated: Any, read: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if read == "Runner":
        with pytest.raises(RelvmFormatError, match="main: the executable has a malformed signature for this function"):
            Runner(stating(stated))
        return
    stating(stated).save(tmp_path / "m.rvm")
    np.save(tmp_path / "x.npy", np.float32([1]))
    assert main(["run", str(tmp_path / "m.rvm"), "--input", f"x={tmp_path / 'x.npy'}", "--input", "k=1"]) == 1
    assert "RelvmFormatError: main: the executable has a malformed signature" in capsys.readouterr().err


def test_parameters_of_one_name_and_names_of_other_outputs() -> None:
    twice = stating({**RIGHT, "params": [PARAMS[0], PARAMS[0]]})
    assert Runner(twice)(np.float32([1]), 2)[1] == 3
    with pytest.raises(RelvmArgumentError, match="expected 1 name, one for each output, got 2 names: a, b"):
        named_outputs(5, ["a", "b"])


def test_an_output_that_is_a_tuple_has_names_for_its_items() -> None:
    assert list(named_outputs((1, (2, (3, 4))), ["a", "b"])) == ["a", "b.0", "b.1.0", "b.1.1"]
    with pytest.raises(RelvmArgumentError, match=r"output names must be unique, got a, a\.0"):
        named_outputs(((1, 2), 3), ["a", "a.0"])
