"""Where the time of a run goes, and how fast memory is read and written meanwhile, drawn and written.

Of what kernels compute nothing is counted, so there is no roofline: a bandwidth far below that of a copy may come from
arithmetic as well as from a poor kernel, and one above it from data that the caches have.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.explore.extras import new_figure
from relvm.vm.runtime.profile import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"kernel": "C0", "packed": "C1", "builtin": "C2", "others": "C7", "machine": "C7"}
_COPIED_BYTES = 64_000_000  # several times what most caches have
_COPIES = 5
_BAR = 30  # letters of a bar that is the whole run


class _Row(NamedTuple):
    """What is shown of a profile's row, or of several together.  gigabytes: read and written per second; None where it
    is not known."""

    name: str
    kind: str
    seconds: float
    share: float
    gigabytes: float | None


def copy_bandwidth() -> float:
    """The bytes per second that this machine reads and writes, together, while one thread copies memory.

    The fastest of several copies of 64 MB, which take about a tenth of a second.
    """
    source = np.ones(_COPIED_BYTES, np.uint8)
    target = np.empty_like(source)
    np.copyto(target, source)  # so that all pages are there
    best = float("inf")
    for _ in range(_COPIES):
        started = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - started)
    return 2 * _COPIED_BYTES / best


def draw_profile(profile: Profile, bandwidth: float | None = None, *, most: int = 20) -> Figure:
    """A picture of a profile: what took how long, and at how many bytes per second.

    On the left is the time of each kernel, packed function and builtin, with its share of the run; on the right what it
    read and wrote in that time, beside a line for what a copy does.  Bytes are those of the tensors among a call's
    arguments and results, each counted once, whatever the kernel does with them.

    Parameters
    ----------
    profile
        As `VirtualMachine.profile` gives it.
    bandwidth
        Of a copy, in bytes per second; by default that which `copy_bandwidth` measures, now, here, with one thread.
    most
        So many rows have bars of their own, the longest; the others have one together.

    Returns
    -------
    matplotlib.figure.Figure
        Which `savefig` writes, and Jupyter shows.

    Raises
    ------
    RelvmArgumentError
        `most` is less than 1, or `bandwidth` is not positive.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    rows = _rows(profile, most)
    copied = _gigabytes_of_a_copy(bandwidth)
    figure = new_figure(11, 1.2 + 0.25 * len(rows))
    times, rates = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    places = range(len(rows))
    colours = [_COLOURS[row.kind] for row in rows]
    bars = times.barh(places, [row.seconds * 1e3 for row in rows], color=colours)
    times.bar_label(bars, [f"{row.share:.1%}" for row in rows], padding=3, fontsize=8)
    times.set_yticks(places, [row.name for row in rows], fontsize=8)
    times.set(xlabel="ms", title=f"{profile.function}: {profile.seconds * 1e3:.3f} ms", ylim=(len(rows) - 0.4, -0.6))
    times.margins(x=0.12)
    bars = rates.barh(places, [row.gigabytes or 0.0 for row in rows], color=colours)
    rates.bar_label(bars, [_rate(row) for row in rows], padding=3, fontsize=8)
    rates.axvline(copied, color="black", linestyle="dashed", label=f"a copy: {copied:.1f}")
    rates.set(xlabel="GB/s, read and written", title="memory")
    rates.margins(x=0.15)
    rates.legend(loc="lower right", fontsize=8)
    return figure


def format_profile(profile: Profile, bandwidth: float | None = None, *, most: int = 20) -> str:
    """The same as text: a line for each bar, with the milliseconds, the share, GB/s, and those relative to a copy's.

    `str(profile)` has counts and bytes.

    Parameters
    ----------
    profile, bandwidth, most
        As `draw_profile` takes them.

    Raises
    ------
    RelvmArgumentError
        As `draw_profile` does.
    """
    rows = _rows(profile, most)
    copied = _gigabytes_of_a_copy(bandwidth)
    width = max(len(row.name) for row in rows)
    lines = [f"{profile.function}: {profile.seconds * 1e3:.3f} ms; a copy: {copied:.1f} GB/s\n"]
    for row in rows:
        bar = "#" * round(_BAR * row.share)
        relative = "" if row.gigabytes is None else f" {row.gigabytes / copied:7.1%}"
        cells = f"{row.seconds * 1e3:10.4f} ms {row.share:6.1%}  {bar:{_BAR}} {_rate(row):>8}{relative}"
        lines.append(f"  {row.name:{width}} {cells.rstrip()}\n")
    return "".join(lines)


def _rows(profile: Profile, most: int) -> list[_Row]:
    """The longest rows, the others as one, and the machine itself."""
    if most < 1:
        raise RelvmArgumentError(f"most={most}: expected at least 1")
    rows = []
    for row in profile.rows[:most]:
        known = row.bytes and row.seconds
        rows.append(_Row(row.name, row.kind, row.seconds, row.share, row.bytes / row.seconds / 1e9 if known else None))
    if others := profile.rows[most:]:
        seconds = sum(row.seconds for row in others)
        rows.append(_Row(f"({len(others)} more)", "others", seconds, seconds / profile.seconds, None))
    other = profile.other_seconds
    rows.append(_Row("(the machine)", "machine", other, other / profile.seconds, None))
    return rows


def _gigabytes_of_a_copy(bandwidth: float | None) -> float:
    if bandwidth is not None and not bandwidth > 0:
        raise RelvmArgumentError(f"bandwidth={bandwidth}: expected a positive number of bytes per second")
    return (copy_bandwidth() if bandwidth is None else bandwidth) / 1e9


def _rate(row: _Row) -> str:
    return "" if row.gigabytes is None else f"{row.gigabytes:.2f}"
