"""Hashes that are kept, copies of dtypes, and records."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import re
import subprocess
import sys

import pytest
from support.documents import ROOT

from relvm.data_classes import record, value_record
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
    defaults = inspect.signature(dataclasses.dataclass).parameters
    count = 0
    for path in sorted((ROOT / "relvm").rglob("*.py")):
        for options in re.findall(r"@dataclass\((.*?)\)", path.read_text(), re.DOTALL):
            for name, value in re.findall(r"(\w+)=(\w+)", options):
                count += 1
                assert value != repr(defaults[name].default), f"{path}: {name}={value}"
    assert count > 100
