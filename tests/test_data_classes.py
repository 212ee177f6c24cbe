"""Data classes, hashes that are kept, and copies of dtypes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.documents import ROOT

from relvm.data_classes import dataclass, record, value_record
from relvm.ir.dtypes import ALL_DTYPES, DType
from relvm.ir.symbolic import Dim, dim_var


def test_a_kept_hash_is_not_pickled() -> None:
    """Another process has other hashes of strings."""
    code = (
        "import pickle, sys; from relvm.ir.symbolic import dim_op, dim_var; n = dim_var('n');"
        "dim = dim_op('floordiv', n + 1, 2); {dim}; sys.stdout.buffer.write(pickle.dumps((n, dim)))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        written = subprocess.run([sys.executable, "-Pc", code], env=environment, capture_output=True, check=True)
        n, dim = pickle.loads(written.stdout)
        assert {(n + 1) // 2: "found"}[dim] == "found"


def test_copies_of_a_dimension_are_equal() -> None:
    dim = dim_var("n") + 1
    assert isinstance(dim, Dim)
    assert copy.copy(dim) == dim and hash(copy.copy(dim)) == hash(dim)


@pytest.mark.parametrize("dtype", ALL_DTYPES.values(), ids=str)
def test_a_copy_of_a_dtype_is_the_same_object(dtype: DType) -> None:
    assert copy.deepcopy(dtype) is copy.copy(dtype) is pickle.loads(pickle.dumps(dtype)) is dtype


def test_records_are_compared_by_identity_and_value_records_by_their_fields() -> None:
    @record
    class Point:
        x: int

    @value_record
    class Value:
        x: int

    assert Point(1) != Point(1) and len({Point(1), Point(1)}) == 2
    assert Value(1) == Value(1) != Value(2) and len({Value(1), Value(1)}) == 1


def test_no_option_of_a_dataclass_is_the_default() -> None:
    """`frozen=False` is not written, for example."""
    defaults = inspect.signature(dataclass).parameters
    count = 0
    for path in sorted((ROOT / "relvm").rglob("*.py")):
        for options in re.findall(r"@dataclass\((.*?)\)", path.read_text(), re.DOTALL):
            for name, value in re.findall(r"(\w+)=(\w+)", options):
                count += 1
                assert value != repr(defaults[name].default), f"{path}: {name}={value}"
    assert count > 100


def _declare(decorator: Any) -> Any:
    @decorator
    class Point:
        """A point."""

        x: int
        y: float = 2.0
        names: list[str] = dataclasses.field(default_factory=list, kw_only=True, compare=False)
        label: str = dataclasses.field(default="", repr=False)

        def __post_init__(self) -> None:
            self.names.append("made")

    return Point


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}, {"unsafe_hash": True}, {"repr": False}])
def test_a_data_class_is_that_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = (_declare(decorator(**options)) for decorator in (dataclass, dataclasses.dataclass))
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__ and ours.__doc__ == theirs.__doc__

    def behavior(kind: Any) -> list[Any]:
        first, same, other = kind(1), kind(1, names=["a"]), dataclasses.replace(kind(1), x=3)
        return [
            [each.names for each in (first, same, other)],
            [first == same, first == other, first == 1, hasattr(kind, "__lt__")],
            [raised(lambda: hash(first)), options.get("eq") is False or raised(lambda: hash(first) == hash(same))],
            options.get("repr") is False or repr(first),
            [raised(lambda: setattr(first, "x", 5)), first.x, raised(lambda: delattr(first, "y")), first.y],
            [raised(kind), raised(lambda: kind(1, 2, "", [])), dataclasses.asdict(other)],
            [method.__qualname__ for method in (kind.__init__, kind.__eq__)],
        ]

    def raised(call: Callable[[], Any]) -> str:
        try:
            result = call()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return str(result) if isinstance(result, bool) else type(result).__name__

    assert behavior(ours) == behavior(theirs)


def test_methods_are_generated_at_first_use() -> None:
    point = _declare(dataclass(frozen=True))
    generated = ("__init__", "__eq__", "__hash__")
    assert not any(inspect.isfunction(vars(point)[name]) for name in generated)
    assert len({point(1), point(1)}) == 1
    assert all(inspect.isfunction(vars(point)[name]) for name in generated)


def test_a_method_of_the_class_is_kept() -> None:
    @dataclass
    class Value:
        x: int

        def __init__(self) -> None:
            self.x = 7

        def __repr__(self) -> str:
            return "seven"

        def __eq__(self, other: object) -> bool:
            return other == 7

        __hash__ = object.__hash__

    assert repr(Value()) == "seven" and Value() == 7 and Value.__hash__ is object.__hash__


def test_all_data_classes_of_the_package_generate_their_methods_at_first_use() -> None:
    for path in sorted((ROOT / "relvm").rglob("*.py")):
        imported = re.findall(r"from dataclasses import (.*)|^import dataclasses", path.read_text(), re.MULTILINE)
        if path.name != "data_classes.py":
            assert not any("dataclass" in names.split(", ") for names in imported), path
