"""Where the time of a run goes, call by call; measured in C (csrc/profile.c)."""

from __future__ import annotations

from dataclasses import dataclass

from relvm.vm.runtime._native import ffi, lib
from relvm.vm.runtime.failure import failure
from relvm.vm.runtime.instrument import python_instrument
from relvm.vm.runtime.runner import Prepared, Runner

_BUILTIN = "vm.builtin."


@dataclass(frozen=True)
class ProfileRow:
    """All calls of one function in a run.

    Attributes
    ----------
    name
        Of the function.
    kind
        "kernel", "packed" or "builtin".
    count
        How many calls.
    seconds
        In them, without measured calls inside them.
    share
        Of the run's seconds, 0 to 1.
    bytes
        Of all tensors among arguments and results: what a kernel reads and writes.  0 for builtins, which do not
        compute on elements.
    """

    name: str
    kind: str
    count: int
    seconds: float
    share: float
    bytes: int


@dataclass(frozen=True)
class Profile:
    """A run, measured.  str() of it is a table.

    Attributes
    ----------
    function
        What was run.
    seconds
        The whole run.
    rows
        What it called, the longest first.
    """

    function: str
    seconds: float
    rows: tuple[ProfileRow, ...]

    @property
    def other_seconds(self) -> float:
        """What the machine itself took: instructions, calls of the module's functions, and the measuring."""
        return self.seconds - sum(row.seconds for row in self.rows)

    def __str__(self) -> str:
        cells = [("name", "kind", "count", "ms", "share", "bytes")]
        cells += [_cells(r.name, r.kind, str(r.count), r.seconds, r.share, str(r.bytes)) for r in self.rows]
        other = self.other_seconds
        cells.append(_cells("(the machine)", "", "", other, other / self.seconds, ""))
        cells.append(_cells(self.function, "total", "", self.seconds, 1, ""))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for row in cells:
            texts = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
            texts += [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
            lines.append("  ".join(texts).rstrip())
        return "\n".join(lines)


def measure(prepared: Prepared) -> Profile:
    """Run it once and say where the time went.  An instrument that Python has set is not told of this run."""
    runner = prepared.runner
    profile = ffi.new("rvm_profile **")
    error = ffi.new("rvm_value *")
    status = lib.rvm_profile_new(runner.executable.pointer, profile, error)
    if status:
        raise failure(status, error)
    try:
        runner.install("profile", ffi.new("rvm_instrument *", lib.rvm_profile_instrument(profile[0])))
        try:
            seconds = prepared.repeat(1)
        finally:
            runner.install("profile", python_instrument() if runner.callback else ffi.NULL)
        return Profile(prepared.name, seconds, _rows(runner, profile[0], seconds))
    finally:
        lib.rvm_profile_release(profile[0])


def _rows(runner: Runner, profile: object, seconds: float) -> tuple[ProfileRow, ...]:
    rows = []
    for index in range(runner.executable.function_count):
        row = lib.rvm_profile_read(profile, index)
        if row.count:
            name, kind = runner.executable.function_name(index), runner.executable.function_kind(index)
            kind = "builtin" if name.startswith(_BUILTIN) else kind
            spent = row.nanoseconds / 1e9
            rows.append(ProfileRow(name, kind, row.count, spent, spent / seconds, row.bytes))
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.name)))


def _cells(name: str, kind: str, count: str, seconds: float, share: float, size: str) -> tuple[str, ...]:
    return name, kind, count, f"{seconds * 1e3:.4f}", f"{share:.1%}", size
