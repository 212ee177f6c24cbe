"""Timelines: when a run called kernels, packed functions and builtins, as measured in C (csrc/vm/profile.c)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvm._native import ffi, lib

MAX_CALLS = 1_000_000  # that a timeline contains, in 40 MB of memory of the runtime


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
        The size of all distinct tensors among the arguments and results.  For a builtin that allocates a storage, the
        size of the storage, and 0 for other builtins.
    depth
        The number of calls of the timeline around this call.  It is 0 unless a packed function calls the machine.
    """

    name: str
    kind: str
    start: float
    seconds: float
    bytes: int
    depth: int


@dataclass(frozen=True)
class Timeline:
    """The calls of a run, with their times.  `save` writes them for Perfetto or chrome://tracing.

    Attributes
    ----------
    function
        The function that was run.
    seconds
        The time of the whole run.
    calls
        The calls in the order in which they ended.
    dropped
        The number of calls that the timeline does not contain, because there were more than it can hold.
    """

    function: str
    seconds: float
    calls: tuple[TimelineCall, ...]
    dropped: int = 0

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
        Path(path).write_text(json.dumps(self.as_trace()), encoding="utf-8")


def recorded_calls(profile: object, names: list[str], kinds: list[str]) -> Iterator[TimelineCall]:
    """Yield the calls that a profile of the runtime has recorded.

    names, kinds: the name and the kind of each function, by its index.
    """
    count = ffi.new("int64_t *")
    calls = lib.rvm_profile_calls(profile, count)
    first = min((calls[i].started for i in range(count[0])), default=0)
    for i in range(count[0]):
        call = calls[i]
        start, seconds = (call.started - first) / 1e9, call.nanoseconds / 1e9
        yield TimelineCall(names[call.function], kinds[call.function], start, seconds, call.bytes, call.depth)
