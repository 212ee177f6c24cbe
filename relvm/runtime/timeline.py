"""Timelines: when a run called kernels, packed functions and builtins, as measured in C (csrc/vm/profile.c)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from relvm._native import ffi, lib
from relvm.data_classes import dataclass
from relvm.display import Displayed, html_box, text_table
from relvm.errors import counted
from relvm.quoting import html_text, terminal
from relvm.runtime.file_io import complete_file

MAX_CALLS = 1_000_000  # maximum number of calls in a timeline, which take 32 MB
_MAX_BARS = 2000  # maximum number of bars in a picture
_KINDS = ("kernel", "packed", "builtin")  # the rows of a picture
_COLORS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#d4a72c")
_LETTER = 7.2  # maximum width of a letter in pixels


@dataclass(frozen=True)
class TimelineCall:
    """One call in a timeline.

    Attributes
    ----------
    name
        The name of the function.
    kind
        "kernel", "packed" or "builtin".
    start
        The time from the start of the first call to the start of this call, in seconds.
    seconds
        The duration of the call, with the calls inside it.
    bytes
        The number of bytes of tensors that the call reads and writes, counted as in ProfileRow.  For a builtin that
        allocates a storage, it is the size of the storage.  For other builtins, it is 0.
    depth
        The number of calls in the timeline during which this call was made.  It is normally 0.  It is larger only if
        the machine called a packed function that called the machine again, and this call was made in that inner run.
    """

    name: str
    kind: str
    start: float
    seconds: float
    bytes: int
    depth: int


@dataclass(frozen=True, repr=False)
class Timeline(Displayed):
    """The calls of a run, with their times.  Jupyter shows it as a picture, and `save` writes a file for Perfetto.

    Attributes
    ----------
    function
        The function that was run.
    seconds
        The time of the whole run.
    calls
        The calls in the order in which they ended.
    dropped
        The number of calls that were not recorded, because the timeline was full.
    """

    function: str
    seconds: float
    calls: tuple[TimelineCall, ...]
    dropped: int = 0

    def __str__(self) -> str:
        rows = [("start ms", "ms", "bytes", "kind", "name")]
        for call in sorted(self.calls, key=lambda call: call.start):
            times = f"{1e3 * call.start:.4f}", f"{1e3 * call.seconds:.4f}"
            rows.append((*times, str(call.bytes), call.kind, terminal(call.name)))
        dropped = [f"and {self.dropped} calls more"] if self.dropped else []
        return "\n".join([*text_table(rows, left=(3, 4)), *dropped])

    def _repr_html_(self) -> str:
        """Return a picture with a row for each kind of call.

        A bar shows its name and duration when the mouse is over it.
        """
        width, left, row_height = 1000, 80, 24
        end = max((call.start + call.seconds for call in self.calls), default=0.0) or 1.0
        kinds = [kind for kind in _KINDS if any(call.kind == kind for call in self.calls)]
        totals: dict[str, float] = {}
        for call in self.calls:
            totals[call.name] = totals.get(call.name, 0.0) + call.seconds
        by_time = sorted(totals, key=lambda name: -totals[name])
        colors = {name: _COLORS[k % len(_COLORS)] for k, name in enumerate(by_time)}
        parts = [f'<text x="0" y="{row_height * i + 16}">{kind}</text>' for i, kind in enumerate(kinds)]
        for call in sorted(self.calls, key=lambda call: -call.seconds)[:_MAX_BARS]:
            x, y = left + width * call.start / end, row_height * kinds.index(call.kind)
            wide = max(width * call.seconds / end, 0.3)
            title = html_text(f"{call.name}: {1e3 * call.seconds:.4f} ms, {call.bytes:,} bytes")
            parts.append(
                f'<rect x="{x:.2f}" y="{y + 2}" width="{wide:.2f}" height="20" fill="{colors[call.name]}">'
                f"<title>{title}</title></rect>"
            )
            if (letters := int(wide / _LETTER)) >= 4:
                name = html_text(call.name if len(call.name) <= letters else f"{call.name[: letters - 1]}…")
                parts.append(f'<text x="{x + 3:.2f}" y="{y + 16}" fill="white" pointer-events="none">{name}</text>')
        height = row_height * len(kinds) + 20
        parts.append(f'<text x="{left}" y="{height - 4}">0</text>')
        parts.append(f'<text x="{left + width}" y="{height - 4}" text-anchor="end">{1e3 * end:.4f} ms</text>')
        style = "font: 12px sans-serif; fill: currentColor"
        picture = f'<svg width="{left + width + 10}" height="{height}" style="{style}">{"".join(parts)}</svg>'
        return html_box(picture, f"{self.function}: {counted(len(self.calls), 'call')}")

    def as_trace(self) -> dict[str, Any]:
        """Return the timeline as a value of the Trace Event Format, which Perfetto and Chrome read.

        Each call is a complete event ("ph": "X"), with times in microseconds and its kind as the category.
        """
        ids = {"pid": 1, "tid": 1}
        names = {"process_name": f"relvm: {self.function}", "thread_name": "machine"}
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": key, **ids, "args": {"name": value}} for key, value in names.items()
        ]
        for call in self.calls:
            times = {"ts": 1e6 * call.start, "dur": 1e6 * call.seconds}
            args = {"bytes": call.bytes}
            events.append({"ph": "X", "name": call.name, "cat": call.kind, **ids, **times, "args": args})
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"dropped calls": self.dropped}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline to a file, as JSON in the Trace Event Format.

        Parameters
        ----------
        path
            The file.  Open it in https://ui.perfetto.dev or chrome://tracing.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with complete_file(path) as partial:
            partial.write_text(json.dumps(self.as_trace()), encoding="utf-8")


def recorded_calls(profile: object, names: list[str], kinds: list[str]) -> Iterator[TimelineCall]:
    """Yield the calls that the C runtime recorded in an rvm_profile.

    names, kinds: the name and the kind of each function, by function index.
    """
    count = ffi.new("int64_t *")
    calls = lib.rvm_profile_calls(profile, count)
    first = min((calls[i].started for i in range(count[0])), default=0)
    for i in range(count[0]):
        call = calls[i]
        start, seconds = (call.started - first) / 1e9, call.nanoseconds / 1e9
        yield TimelineCall(names[call.function], kinds[call.function], start, seconds, call.bytes, call.depth)
