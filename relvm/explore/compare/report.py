"""The report of a comparison: a row for each value, as a table in text and in HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from ml_dtypes import finfo

from relvm.data_classes import dataclass
from relvm.display import Displayed, html_table, text_table
from relvm.errors import RelvmNameError, counted, known_names
from relvm.ir.dtypes import dtype_of
from relvm.quoting import terminal

_WORST = 10  # rows of a table in text
_COLUMNS = 100
_LEAST = 12  # columns of a shortened cell


@dataclass(frozen=True, eq=False)
class ComparisonRow:
    """One value, as computed in each execution mode.

    Attributes
    ----------
    name
        The value's name in the ONNX model, or its name in the program if it has no name in the model.
    shape, dtype
        Shape and dtype in the first mode.
    origin
        The location in the source, or empty if it is unknown.
    values
        The value by mode, for the modes that compute it.
    differences
        For each mode, the largest absolute difference between an element and the same element in the first mode.  The
        difference is infinite if the two modes differ in shape or dtype, in a string, or in an element that is NaN or
        infinite in only one of them.
    largest
        The magnitude of the largest finite element in the first mode, or 0 if there is none.
    differs
        Whether a difference exceeds the tolerance.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    origin: str
    values: Mapping[str, np.ndarray] = field(repr=False)
    differences: Mapping[str, float]
    largest: float
    differs: bool

    @property
    def relative(self) -> float:
        """The largest difference of all modes, divided by `largest` if that exceeds 1."""
        return max(self.differences.values(), default=0.0) / max(1.0, self.largest)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """The result of `compare`, which is shown as a table in Jupyter and when printed.

    Attributes
    ----------
    title
        Title of the table.
    modes
        The execution modes.  The first is the baseline with which the others are compared.
    rows
        One row for each compared value, in the order of the program.  The last rows, named "returned", are the results
        of the original program.  The other rows come from a copy of the program that returns its intermediate values.
    """

    title: str
    modes: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]

    @property
    def first(self) -> ComparisonRow | None:
        """The first value with a difference above the tolerance, or None if all values agree."""
        return next((row for row in self.rows if row.differs), None)

    @property
    def agrees(self) -> bool:
        """Whether all values agree within the tolerance."""
        return self.first is None

    def __getitem__(self, name: str) -> ComparisonRow:
        """Return the first row of a value with the given name.  Raise RelvmNameError if there is none."""
        found = next((row for row in self.rows if row.name == name), None)
        if found is None:
            raise RelvmNameError(f"no value {name} in the comparison{known_names(str(name), self._names())}")
        return found

    def _names(self) -> list[str]:
        return list(dict.fromkeys(row.name for row in self.rows))

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def worst(self, count: int = _WORST) -> tuple[ComparisonRow, ...]:
        """Return the rows with the largest differences, relative to the magnitude of the value.

        Rows whose difference exceeds the tolerance come first, then the others.  Both parts are sorted by difference,
        the largest first.  Rows without a difference are omitted.

        Parameters
        ----------
        count
            The maximum number of rows.
        """
        rows = sorted((row for row in self.rows if row.relative > 0), key=lambda row: (not row.differs, -row.relative))
        return tuple(rows[:count])

    def format(self, *, all_rows: bool = False, columns: int = _COLUMNS) -> str:
        """Return a summary, and a table of the ten values with the largest differences.

        Parameters
        ----------
        all_rows
            Whether the table contains all values, in the order of the program.
        columns
            The width of the text.  Long names and locations are shortened.
        """
        rows = self.rows if all_rows else self.worst()
        heads = self._heads()
        lines = [self._summary()]
        if not all_rows and rows:
            lines.append(f"the largest differences, ordered by their size relative to the value in {self.modes[0]}:")
        return "\n".join((*lines, *_fitting([heads, *map(self._cells, rows)], columns))) if rows else lines[0]

    def __str__(self) -> str:
        return self.format()

    def _repr_html_(self) -> str:
        rows = [self._heads(), *map(self._cells, self.rows)]
        marked = [number for number, row in enumerate(self.rows) if row.differs]
        return html_table(rows, f"{self.title}: {self._summary()}", left=(0, 1, 2, len(rows[0]) - 1), marked=marked)

    def _heads(self) -> tuple[str, ...]:
        return ("", "value", "type", "largest", *self.modes[1:], "from")

    def _cells(self, row: ComparisonRow) -> tuple[str, ...]:
        mark = "!" if row.differs else ""
        type_ = f"{row.dtype}[{', '.join(map(str, row.shape))}]"
        found = (f"{row.differences[mode]:.1e}" if mode in row.differences else "-" for mode in self.modes[1:])
        return (mark, terminal(row.name), type_, f"{row.largest:.1e}", *found, terminal(row.origin))

    def _summary(self) -> str:
        ways = f"{', '.join(self.modes[1:])} against {self.modes[0]}"
        if self.first is None:
            return f"{counted(len(self.rows), 'value')} agree{'s' * (len(self.rows) == 1)}: {ways}"
        count = sum(row.differs for row in self.rows)
        return f"{count} of {len(self.rows)} values differ: {ways}; the first is {terminal(self.first.name)}"


def _fitting(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """Return the lines of a table that is at most `width` characters wide, if possible.

    If the table is too wide, the last column is omitted.  If it is still too wide, the second column is shortened, to
    `_LEAST` characters at least.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > width:
        rows = [row[:-1] for row in rows]
        longest = max(width - sum(widths) + widths[-1] + widths[1] - 2 * (len(widths) - 2), _LEAST)
        rows = [(row[0], _shortened(row[1], longest), *row[2:]) for row in rows]
    return text_table(rows, left=range(len(rows[0])))


def _shortened(text: str, width: int) -> str:
    """Return the beginning and the end of a text that is longer than `width`."""
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def make_row(name: str, origin: str, values: Mapping[str, np.ndarray], tolerance: float) -> ComparisonRow:
    """Compare a value between execution modes, and return the row for it.

    name: the name of the value in the report.
    origin: the location in the source, or empty if it is unknown.
    values: the value by mode.  All modes are compared with the first.
    tolerance: the largest difference to ignore.  For floats, it is relative to the largest element if that is above 1.
    """
    (_, expected), *others = values.items()
    differences = {mode: largest_difference(value, expected) for mode, value in others}
    largest = _largest(expected)
    allowed = _allowed_difference(expected.dtype, largest, tolerance)
    differs = any(difference > allowed for difference in differences.values())
    return ComparisonRow(
        name, expected.shape, dtype_of(expected.dtype).name, origin, values, differences, largest, differs
    )


def largest_difference(got: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest absolute difference between an element of `got` and the same element of `expected`.

    It is infinite if the arrays differ in shape or dtype, in a string, or in an element that is NaN or infinite in only
    one of them.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf
    if got.dtype == object:
        return 0.0 if np.array_equal(got, expected) else np.inf
    unequal = got != expected
    left, right = got[unequal].astype(np.float64), expected[unequal].astype(np.float64)
    if not dtype_of(got.dtype).is_float:
        return float(np.maximum(np.abs(left - right), 1.0).max(initial=0.0))  # unequal i64 numbers may be equal as f64
    distances = np.abs(left - right)[~(np.isnan(left) & np.isnan(right))]
    return float(np.where(np.isnan(distances), np.inf, distances).max(initial=0.0))


def _largest(array: np.ndarray) -> float:
    if array.dtype == object:
        return 0.0
    magnitudes = np.abs(array.astype(np.float64))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0))


def _allowed_difference(dtype: np.dtype, largest: float, tolerance: float) -> float:
    """Return the largest difference to ignore for a tensor of dtype `dtype` whose largest element is `largest`.

    For floats, `tolerance` is relative to `largest` if `largest` exceeds 1, and the result is at least two units in the
    last place.
    """
    if not dtype_of(dtype).is_float:
        return tolerance
    return max(tolerance, 2 * float(finfo(dtype).eps)) * max(1.0, largest)
