"""The report of a quantization: sizes, operators, and the errors of the outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relvm.data_classes import dataclass
from relvm.display import Displayed, text_table
from relvm.quoting import terminal


@dataclass(frozen=True)
class OperatorCount:
    """The number of operators of a type.

    Attributes
    ----------
    quantized
        The number of quantized operators.
    float
        The number of the other operators.
    """

    quantized: int
    float: int


@dataclass(frozen=True)
class OutputError:
    """The error of an output of the quantized model, compared with the output of the original model.

    Attributes
    ----------
    name
        The name of the output.
    max_error, mean_error
        The largest and the mean absolute error, or None if the elements are not numbers, or the shapes differ.
    sqnr_db
        The signal-to-quantization-noise ratio in decibels: 10 * log10(sum(x**2) / sum((x - y)**2)).  It is infinite if
        the outputs are equal, and None if the output is not a float tensor, or the shapes differ.
    changed
        The share of elements that differ, from 0 to 1, or None if the shapes differ.
    warning
        Why the error says little about the quantized model, or "".  For example, an output that is nearly constant on
        the inputs has a small error although the model can be wrong.
    """

    name: str
    max_error: float | None
    mean_error: float | None
    sqnr_db: float | None
    changed: float | None
    warning: str = ""


@dataclass(frozen=True, repr=False)
class QuantizationReport(Displayed):
    """The result of `quantize`.

    Attributes
    ----------
    mode
        The mode of quantization.
    path
        The path of the quantized model.
    bytes_before, bytes_after
        The sizes of the original and of the quantized model, with their external data.
    operators
        For each operator type, how many operators are quantized, and how many are not.  Types without weights that are
        never quantized are omitted.
    errors
        The error of each output, in the runs on `samples` inputs.  It is empty if there were no inputs.
    samples
        The number of inputs on which the errors were measured.
    """

    mode: str
    path: str
    bytes_before: int
    bytes_after: int
    operators: Mapping[str, OperatorCount]
    errors: tuple[OutputError, ...]
    samples: int

    def __str__(self) -> str:
        share = self.bytes_after / self.bytes_before
        sizes = f"{_size(self.bytes_before)} -> {_size(self.bytes_after)} ({share:.0%})"
        lines = [f"{terminal(self.path)}: {self.mode}, {sizes}", ""]
        counts = [(name, str(each.quantized), str(each.float)) for name, each in self.operators.items()]
        lines += text_table([("operator", "quantized", "float"), *counts])
        if not self.errors:
            return "\n".join(lines)
        lines.append("")
        rows = [("output", "max error", "mean error", "SQNR dB", "changed"), *map(_error_row, self.errors)]
        width = 5 if any(row[4] for row in rows[1:]) else 4
        lines += text_table(row[:width] for row in rows)
        lines.append(f"measured with relvm on {self.samples} input{'s' if self.samples > 1 else ''}")
        warnings = [f"warning: {_short_name(each.name)}: {each.warning}" for each in self.errors if each.warning]
        if warnings:
            lines += [*warnings, "The errors of these outputs say little.  Measure them on typical inputs."]
        if all(each.changed == 0 for each in self.errors) and any(each.quantized for each in self.operators.values()):
            lines.append("warning: no output changed, so the inputs may not reach the quantized operators.")
        return "\n".join(lines)


def _size(size_bytes: int) -> str:
    """Return a size with a unit, with three digits: 12.3 MB."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{size_bytes} bytes" if unit == "bytes" else f"{size:.{1 if size < 100 else 0}f} {unit}"


def _short_name(name: str) -> str:
    name = terminal(name)
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 3]}..."


def _error_row(error: OutputError) -> tuple[str, ...]:
    def text(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    name = _short_name(error.name)
    if error.changed is None:
        return name, "other shape", "", "", ""
    numbers = text(error.max_error, ".3g"), text(error.mean_error, ".3g"), text(error.sqnr_db, ".1f")
    return name, *numbers, f"{error.changed:.1%}" if error.sqnr_db is None else ""


_MAX_NAME = 32  # characters of an output's name in the table
_SMALL_RANGE = 0.01  # range of a nearly constant output, as a share of its largest absolute value
_SATURATED = 1e-3  # largest distance from 0 or 1 of the elements of a saturated output


class ErrorMeter:
    """Errors of outputs, summed over several runs.

    names: the names of the outputs.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.outputs = {name: _OutputMeter() for name in names}

    def add(self, expected: Sequence[Any], found: Sequence[Any]) -> None:
        """Add the outputs of a run of the original model, and those of a run of the quantized model."""
        for meter, *values in zip(self.outputs.values(), expected, found, strict=True):
            before, after = map(list, map(_arrays, values))
            if [each.shape for each in before] != [each.shape for each in after]:
                meter.has_other_shape = True
                continue
            for pair in zip(before, after, strict=True):
                meter.add(*pair)

    def errors(self) -> tuple[OutputError, ...]:
        """Return the error of each output."""
        return tuple(meter.error(name) for name, meter in self.outputs.items())


class _OutputMeter:
    """The sums from which the error of an output is computed."""

    def __init__(self) -> None:
        self.count = self.changed = 0
        self.largest = self.total = self.signal = self.noise = 0.0
        self.has_numbers = self.has_floats = self.is_finite = self.is_saturated = True
        self.has_other_shape = False
        self.least, self.most = math.inf, -math.inf  # of the original output
        self.texts: set[Any] = set()  # the elements that are not numbers

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        self.count += expected.size
        is_equal = expected == found
        if expected.dtype.kind in "OUST":
            self.has_numbers = self.has_floats = False
            self.texts.update(expected.ravel().tolist())
            self.changed += int(np.count_nonzero(~is_equal))
            return
        self.has_floats &= expected.dtype.kind not in "biu"
        before, after = (np.atleast_1d(each).astype(np.float64) for each in (expected, found))
        is_equal = (before == after) | (np.isnan(before) & np.isnan(after))
        self.changed += int(np.count_nonzero(~is_equal))
        with np.errstate(invalid="ignore"):
            error = np.where(is_equal, 0, np.abs(before - after))
        error[np.isnan(error)] = np.inf
        self.largest = max(self.largest, float(error.max(initial=0)))
        self.total += float(error.sum())
        self.signal += float(np.square(before[np.isfinite(before)]).sum())
        self.noise += float(np.square(error).sum())
        self.is_finite &= bool(np.isfinite(before).all())
        self.is_saturated &= bool((np.minimum(np.abs(before), np.abs(before - 1)) <= _SATURATED).all())
        self.least = min(self.least, float(before.min(initial=math.inf)))
        self.most = max(self.most, float(before.max(initial=-math.inf)))

    def warning(self) -> str:
        """Return why the error of the output says little about the quantized model, or ""."""
        if self.count == 0:
            return "it has no elements"
        if not self.has_numbers:
            return "all elements are equal" if len(self.texts) < 2 else ""
        if not self.is_finite:
            return "it contains NaN or infinite elements"
        if self.least == self.most:
            return f"{'it has one element' if self.count == 1 else 'all elements are equal'} ({self.least:.5g})"
        if self.has_floats and self.most - self.least <= _SMALL_RANGE * max(abs(self.least), abs(self.most)):
            return f"it is nearly constant ({self.least:.5g} to {self.most:.5g})"
        if self.has_floats and self.is_saturated:
            return f"it is saturated: all elements are within {_SATURATED:g} of 0 or 1"
        return ""

    def error(self, name: str) -> OutputError:
        if self.has_other_shape:
            return OutputError(name, None, None, None, None)
        count = max(self.count, 1)
        if not self.has_numbers:
            return OutputError(name, None, None, None, self.changed / count, self.warning())
        with np.errstate(divide="ignore", invalid="ignore"):
            sqnr = float(10 * np.log10(np.float64(self.signal) / self.noise)) if self.noise else math.inf
        sqnr_db = sqnr if self.has_floats else None
        return OutputError(name, self.largest, self.total / count, sqnr_db, self.changed / count, self.warning())


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """Yield the arrays of an output, which is an array, a list, a dict or None."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _arrays(each)
    elif value is not None:
        yield np.asarray(value)
