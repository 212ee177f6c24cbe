"""Profiles: the time of each kernel and its distance from the peak of the machine, as charts and text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, expect_type
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.views.machine_peak import Peaks, measured_peaks
from relvm.quoting import svg_text, terminal
from relvm.vm import Profile, ProfileRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {"kernel": "C0", "packed": "C1", "builtin": "C2", "others": "C7", "machine": "C7"}
_BAR = 20  # characters of a bar for the whole run


@dataclass(frozen=True)
class Rates:
    """The rates of one row of a profile, or of several rows together.

    `operations` and `bytes` are per second.  `intensity` is operations per byte.  `of_roof` is the shortest time that
    the peaks of the machine allow, divided by the measured time.  It exceeds 1 if the data is in caches.  Each of these
    is None if it is unknown or meaningless, as for builtins.
    """

    name: str
    kind: str
    seconds: float
    share: float
    count: int | None = None
    operations: float | None = None
    bytes: float | None = None
    intensity: float | None = None
    of_roof: float | None = None


def draw_profile(profile: Profile, peaks: Peaks | None = None, *, most: int = 20) -> Figure:
    """Draw a profile: the time of each function, and its operations and bytes per second.

    The left chart shows the time of each kernel, packed function and builtin, with its share of the run.  The middle
    chart shows operations per second.  The right chart shows bytes read and written per second.  The middle and right
    charts have a line for the peak of the machine.  docs/explore.md defines what is counted.

    Parameters
    ----------
    profile
        The result of `VirtualMachine.profile`.
    peaks
        Peak rates of the machine.  By default `measured_peaks` measures this machine with the run's number of threads.
    most
        Number of rows with their own bars.  These are the rows that took longest.  The others share one bar.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmArgumentError
        `most` is less than 1, or a peak is not positive.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    peaks = expect_peaks(profile, peaks)
    rows = profile_rates(profile, peaks, most)
    figure = new_figure(13, 1.2 + 0.25 * len(rows))
    times, arithmetic, memory = figure.subplots(1, 3, sharey=True, width_ratios=(2, 1, 1))
    places = range(len(rows))
    bars = times.barh(places, [row.seconds * 1e3 for row in rows], color=_colors(rows))
    times.bar_label(bars, [f"{row.share:.1%}" for row in rows], padding=3, fontsize=8)
    times.set_yticks(places, [svg_text(row.name) for row in rows], fontsize=8)
    times.set(
        xlabel="ms", title=svg_text(f"{profile.function}: {profile.seconds * 1e3:.3f} ms"), ylim=(len(rows) - 0.4, -0.6)
    )
    times.margins(x=0.12)
    _draw_rates(arithmetic, rows, [row.operations for row in rows], peaks.operations, "peak")
    arithmetic.set(xlabel="GFLOP/s", title="arithmetic")
    _draw_rates(memory, rows, [row.bytes for row in rows], peaks.bytes, "a copy")
    memory.set(xlabel="GB/s, read and written", title="memory")
    return figure


def format_profile(profile: Profile, peaks: Peaks | None = None, *, most: int = 20) -> str:
    """Return a profile as text: times, rates, operations per byte, and a comparison with the peaks of the machine.

    The column "of roof" compares a kernel with the roofline model.  It is the shortest time that the operations and the
    bytes of the kernel would take at the peak rates, divided by the measured time.  It can exceed 100% if the data is
    in caches.

    Parameters
    ----------
    profile
        The result of `VirtualMachine.profile`.
    peaks
        Peak rates of the machine.  By default `measured_peaks` measures this machine with the run's number of threads.
    most
        Number of rows with their own lines.  These are the rows that took longest.  The others share one line.

    Raises
    ------
    RelvmArgumentError
        `most` is less than 1, or a peak is not positive.
    """
    peaks = expect_peaks(profile, peaks)
    rows = profile_rates(profile, peaks, most)
    cells = [("", "ms", "share", "", "calls", "GFLOP/s", "GB/s", "FLOP/byte", "of roof")]
    for row in rows:
        numbers = [f"{row.seconds * 1e3:.4f}", f"{row.share:.1%}", "#" * round(_BAR * row.share)]
        numbers.append("" if row.count is None else str(row.count))
        computes = row.kind in ("kernel", "packed")
        cells.append((terminal(row.name), *numbers, *(_rate_cells(row) if computes else [""] * 4)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"{terminal(profile.function)}: {profile.seconds * 1e3:.3f} ms; {_peaks_text(peaks)}\n"]
    for line in cells:
        padded = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        padded[0], padded[3] = line[0].ljust(widths[0]), line[3].ljust(widths[3])
        lines.append(f"  {'  '.join(padded).rstrip()}\n")
    return "".join(lines)


def profile_rates(profile: Profile, peaks: Peaks, most: int) -> list[Rates]:
    """Return the rates of the `most` rows of a profile that took longest, followed by one or two summary rows.

    A summary row has a time and a share of the run, but no rates.  If the profile has more than `most` rows, the first
    summary row is the total of the other rows.  The last summary row is the time of the virtual machine itself.

    Raises
    ------
    RelvmArgumentError
        `most` is less than 1.
    """
    if most < 1:
        raise RelvmArgumentError(f"most={most}: expected at least 1")
    rows = [_rates(row, peaks) for row in profile.rows[:most]]
    if others := profile.rows[most:]:
        seconds = sum(row.seconds for row in others)
        rows.append(Rates(f"({len(others)} more)", "others", seconds, seconds / profile.seconds))
    other = profile.other_seconds
    rows.append(Rates("(the machine)", "machine", other, other / profile.seconds))
    return rows


def expect_peaks(profile: Profile, peaks: Peaks | None) -> Peaks:
    """Return the peak rates with which a chart compares a profile: `peaks` or, if `peaks` is None, measured peaks.

    The peaks of this machine are measured with as many threads as the profiled run used (see `measured_peaks`).

    Raises
    ------
    RelvmTypeError
        `profile` is not a Profile, or `peaks` is neither a Peaks nor None.
    RelvmArgumentError
        A peak in `peaks` is not positive.
    """
    expect_type("profile", profile, Profile, "a Profile")
    if peaks is None:
        return measured_peaks(profile.threads)
    expect_type("peaks", peaks, Peaks, "Peaks")
    for name, value in (("operations", peaks.operations), ("bytes", peaks.bytes)):
        if value is not None and not value > 0:
            raise RelvmArgumentError(f"peaks.{name} is {value}, expected a positive number per second")
    return peaks


def _rates(row: ProfileRow, peaks: Peaks) -> Rates:
    plain = Rates(row.name, row.kind, row.seconds, row.share, row.count)
    if row.kind == "builtin" or not row.seconds:
        return plain
    of_bytes = row.bytes / row.seconds if row.bytes else None
    if row.operations is None:
        return replace(plain, bytes=of_bytes)
    intensity = row.operations / row.bytes if row.bytes else None
    of_memory = row.bytes / peaks.bytes
    least: float | None = of_memory
    if row.operations:
        least = None if peaks.operations is None else max(of_memory, row.operations / peaks.operations)
    of_roof = None if least is None else least / row.seconds
    operations = row.operations / row.seconds
    return replace(plain, operations=operations, bytes=of_bytes, intensity=intensity, of_roof=of_roof)


def _draw_rates(axes: Axes, rows: list[Rates], values: list[float | None], peak: float | None, name: str) -> None:
    """Draw a bar for each rate in `values`, in billions per second, and a line for the peak.

    rows: the row to which each rate belongs.   name: the label of the line.
    """
    bars = axes.barh(range(len(rows)), [(value or 0.0) / 1e9 for value in values], color=_colors(rows))
    axes.bar_label(bars, ["" if value is None else _billions(value) for value in values], padding=3, fontsize=8)
    axes.margins(x=0.2)
    if peak is not None:
        axes.axvline(peak / 1e9, color="black", linestyle="dashed", label=f"{name}: {peak / 1e9:.1f}")
        axes.legend(loc="lower right", fontsize=8)


def _colors(rows: list[Rates]) -> list[str]:
    return [_COLORS[row.kind] for row in rows]


def _peaks_text(peaks: Peaks) -> str:
    arithmetic = "not measured" if peaks.operations is None else f"{peaks.operations / 1e9:.1f} GFLOP/s"
    threads = "1 thread" if peaks.threads == 1 else f"{peaks.threads} threads"
    return f"peaks of {threads}: {arithmetic}, {peaks.bytes / 1e9:.1f} GB/s{disturbance_text(peaks)}"


def disturbance_text(peaks: Peaks) -> str:
    """Return a text that follows the peaks if other programs disturbed their measurement, or ""."""
    if not peaks.is_disturbed:
        return ""
    return f" (estimated: other programs took {1 - peaks.processor_share:.0%} of the processors)"


def _rate_cells(row: Rates) -> tuple[str, ...]:
    intensity = "-" if row.intensity is None else f"{row.intensity:.2f}"
    of_roof = "-" if row.of_roof is None else f"{row.of_roof:.1%}"
    return _billions(row.operations), _billions(row.bytes), intensity, of_roof


def _billions(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e9:.2f}"
