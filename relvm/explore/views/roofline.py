"""Roofline charts: the performance of kernels relative to the peaks of arithmetic and memory bandwidth.

Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52, 2009.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from relvm.errors import RelvmToolchainError
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.views.machine_peak import Peaks
from relvm.explore.views.profile import Rates, disturbance_text, expect_peaks, profile_rates
from relvm.quoting import svg_id, svg_text
from relvm.vm import Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBER_POINTS = 9  # minimum distance between two numbers, in typographic points
_SMALLEST, _LARGEST = 60, 900  # area of a point in square points, for no time and for the whole run


def draw_roofline(profile: Profile, peaks: Peaks | None = None, *, most: int = 20) -> Figure:
    """Draw a roofline chart of a profile: the operations per second of each kernel against its operations per byte.

    The slanted line is the limit of memory bandwidth.  The horizontal line is the limit of arithmetic.  The area of a
    point grows with the time of its kernel.  The list on the right has the names of the kernels.  At its end are the
    kernels without a point, because their operations are zero or not counted.  `format_profile` returns the same data
    as text.

    Parameters
    ----------
    profile
        The result of `VirtualMachine.profile`.
    peaks
        Peak rates of the machine.  By default `measured_peaks` measures this machine with the run's number of threads.
    most
        Number of rows to consider.  These are the rows that took longest.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.  The gid of a point is the name of its kernel.

    Raises
    ------
    RelvmArgumentError
        `most` is less than 1, or a peak is not positive.
    RelvmToolchainError
        The peak of arithmetic is unknown because there is no C compiler.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    peaks = expect_peaks(profile, peaks)
    if peaks.operations is None:
        raise RelvmToolchainError(
            "a roofline requires the peak of arithmetic operations; install a C compiler to measure it"
        )
    kernels = [row for row in profile_rates(profile, peaks, most) if row.kind in ("kernel", "packed")]
    with_point = [row for row in kernels if row.intensity]
    figure = new_figure(11, 6)
    axes, names = figure.subplots(1, 2, width_ratios=(3, 1.4))
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="operations per byte read or written (FLOP/B)",
        ylabel="operations per second (GFLOP/s)",
        title=svg_text(
            f"{profile.function}: roofline of {peaks.threads} {'thread' if peaks.threads == 1 else 'threads'}"
            f"{disturbance_text(peaks).replace(' (', chr(10) + '(')}"
        ),
    )
    _draw_roofs(axes, [row.intensity for row in with_point if row.intensity], peaks.operations / 1e9, peaks.bytes / 1e9)
    for number, row in enumerate(with_point, 1):
        _draw_point(axes, number, row)
    _label_points(figure, axes, with_point)
    lines = [
        f"{number:2} {row.name}: {row.share:.1%}, {row.of_roof:.0%} of roof" for number, row in enumerate(with_point, 1)
    ]
    lines += [f" - {row.name}: {row.share:.1%}" for row in kernels if row not in with_point]
    names.set_axis_off()
    names.text(
        0,
        1,
        "\n".join(svg_text(line) for line in lines),
        va="top",
        fontsize=8,
        family="DejaVu Sans Mono",
        linespacing=1.5,
    )
    return figure


def _draw_roofs(axes: Axes, intensities: list[float], operations: float, bandwidth: float) -> None:
    """Draw the two limits of a roofline chart: memory bandwidth and arithmetic.

    The lines of the limits extend from a quarter of the smallest intensity to four times the largest.  The ridge point,
    at which the slanted line meets the horizontal one, is always visible.

    intensities: the operations per byte of the kernels.
    operations, bandwidth: the peaks in 10^9 operations and bytes per second.
    """
    ridge = operations / bandwidth
    left, right = min([ridge, *intensities]) / 4, max([ridge, *intensities]) * 4
    points = [left, ridge, right]
    axes.plot(points, [bandwidth * left, operations, operations], color="black")
    axes.set_xlim(left, right)
    for x, y, label in (
        ((left * ridge) ** 0.5, bandwidth * (left * ridge) ** 0.5, f"{bandwidth:.1f} GB/s"),
        ((ridge * right) ** 0.5, operations, f"{operations:.1f} GFLOP/s"),
    ):
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(x, y, label, ha="center", va="center", fontsize=8, bbox=behind)
    axes.grid(which="major", color="#eeeeee")
    axes.set_axisbelow(True)


def _draw_point(axes: Axes, number: int, row: Rates) -> None:
    size = _SMALLEST + (_LARGEST - _SMALLEST) * row.share
    drawn = axes.scatter(*_place(row), s=size, color=f"C{(number - 1) % 10}", alpha=0.7, edgecolor="white", zorder=3)
    drawn.set_gid(svg_id(row.name))


def _label_points(figure: Figure, axes: Axes, rows: list[Rates]) -> None:
    """Label the point of each row with the number of the row in `rows`, counted from 1.

    A label is on its point, or above it if it would cover another label.
    """
    figure.draw_without_rendering()  # computes the positions of the axes
    label_positions: list[tuple[float, float]] = []  # positions of the numbers so far, in pixels
    for number, row in enumerate(rows, 1):
        x, y = axes.transData.transform(_place(row))
        step = _NUMBER_POINTS * figure.dpi / 72
        moved = next(
            k for k in count() if all(abs(x - a) >= step or abs(y + k * step - b) >= step for a, b in label_positions)
        )
        label_positions.append((x, y + moved * step))
        axes.annotate(
            str(number),
            _place(row),
            (0, moved * _NUMBER_POINTS),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            zorder=4,
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "gray"} if moved else None,
        )


def _place(row: Rates) -> tuple[float, float]:
    return row.intensity or 0.0, (row.operations or 0.0) / 1e9
