"""The table of instructions of the models, with a column for each release (benchmarks/models/instructions.csv).

A change of more than 3 % between two releases is explained in the changelog.
"""

from __future__ import annotations

import csv
import os
import statistics
from pathlib import Path

from benchmarks.counting import ENVIRONMENT, count_instructions
from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.frontend.onnx import from_onnx

TABLE = Path(__file__).with_name("instructions.csv")
_NOTABLE = 0.03

_Counts = dict[tuple[str, str], dict[str, str]]  # (model, case) -> column -> instructions


def _read() -> _Counts:
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as file:
        return {(row.pop("model"), row.pop("case")): row for row in csv.DictReader(file)}


def _write(counts: _Counts) -> None:
    columns = list(dict.fromkeys(column for row in counts.values() for column in row))
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["model", "case", *columns], restval="", lineterminator="\n")
        writer.writeheader()
        for (model, case), row in counts.items():
            writer.writerow({"model": model, "case": case, **row})


def record_instructions(column: str, names: list[str]) -> None:
    """Count the instructions of each case of some models, store them, and print the changes since the column before.

    Counts are of compiled mode, with kernels for x86-64-v3, in one thread.
    """
    os.environ |= ENVIRONMENT
    counts, ratios = _read(), []
    for name in names:
        model = MODELS[name]
        module = from_onnx(model.path())
        cases = [{key: case[key] for key in module["main"].input_names} for case in model.cases()]
        for case, count in enumerate(count_instructions(vm.build(module, "compiled"), cases)):
            row = counts.setdefault((name, str(case)), {})
            before = [int(number) for other, number in row.items() if other != column and number]
            row[column] = str(count)
            ratio = count / before[-1] if before else None
            note = "" if ratio is None else f"{ratio - 1:+.1%}" + " (notable)" * (abs(ratio - 1) > _NOTABLE)
            print(f"{name} {case}: {count:,} {note}".rstrip(), flush=True)
            ratios += [] if ratio is None else [ratio]
        _write(counts)
    if ratios:
        print(f"geometric mean of the changes: {statistics.geometric_mean(ratios) - 1:+.1%}")
