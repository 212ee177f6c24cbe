"""Profiles: the time of the calls in a run, by function, measured in C (csrc/vm/profile.c)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from relvm._native import ffi, lib
from relvm.data_classes import dataclass
from relvm.display import Displayed, html_lines, html_table, text_table
from relvm.errors import RelvmNameError, known_names
from relvm.quoting import terminal
from relvm.runtime.executable import Executable
from relvm.runtime.instrument import python_instrument
from relvm.runtime.invoke import Invoker, PreparedCall
from relvm.runtime.status import failure
from relvm.tables import BUILTIN_PREFIX

if TYPE_CHECKING:
    from relvm.runtime.kernel_profile import KernelProfile
    from relvm.runtime.timeline import Timeline


@dataclass(frozen=True)
class ProfileRow:
    """The measurements of all calls of one function in a run.

    Attributes
    ----------
    name
        The name of the function.
    kind
        "kernel", "packed" or "builtin".
    count
        The number of calls.
    seconds
        The time spent in these calls, without the time of nested calls that are measured themselves.
    share
        The fraction of the time of the run, 0 to 1.
    bytes
        The total size in bytes of the tensors that the calls read and write: the arguments and results of all calls.
        If a kernel reads only some elements of an argument, as a gather does, the argument counts only with the maximum
        number of elements that the kernel reads.  For builtins, the number is 0.
    operations
        The number of arithmetic operations on elements, as defined in docs/explore.md.  It is 0 for builtins.  It is
        None if the number is unknown, as for packed functions and for kernels that sort.
    """

    name: str
    kind: str
    count: int
    seconds: float
    share: float
    bytes: int
    operations: int | None = None


@dataclass(frozen=True, repr=False)
class Profile(Displayed):
    """The profile of a run.  `str(profile)` is a table.

    Attributes
    ----------
    function
        The function that was run.
    seconds
        The time of the whole run.
    rows
        A row for each function that was called, the largest time first.
    threads
        The maximum number of threads that worked on a kernel at once.
    kernels
        The profiles of the instructions of kernels in bytecode, by the name of the kernel, the largest time first.  It
        is empty if the profile was taken without kernels=True.
    timeline
        The calls with the times at which they started and ended.  It is None if the profile was taken without
        timeline=True.
    """

    function: str
    seconds: float
    rows: tuple[ProfileRow, ...]
    threads: int = 1
    kernels: Mapping[str, KernelProfile] = field(default_factory=dict, hash=False)
    timeline: Timeline | None = None

    @property
    def other_seconds(self) -> float:
        """The time of the run that is not in `rows`.

        This is the time of the machine itself, of Python functions passed as arguments, and of the measurement.
        """
        return self.seconds - sum(row.seconds for row in self.rows)

    def __getitem__(self, name: str) -> ProfileRow:
        """Return the row of a function.  Raise RelvmNameError if the run did not call a function of that name."""
        found = next((row for row in self.rows if row.name == name), None)
        if found is None:
            raise RelvmNameError(f"no function {name} in the profile{known_names(str(name), self._names())}")
        return found

    def _names(self) -> list[str]:
        return [row.name for row in self.rows]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def __str__(self) -> str:
        table = "\n".join(text_table(self._cells(), left=(0, 1)))
        return f"{table}\n\n{self._kernels_text()}" if self.kernels else table

    def _repr_html_(self) -> str:
        title = f"{self.function}: {self.seconds * 1e3:.4f} ms"
        table = html_table(self._cells(), title, left=(0, 1))
        return table + html_lines(self._kernels_text(), "Instructions of kernels") if self.kernels else table

    def _kernels_text(self) -> str:
        return "\n\n".join(map(str, self.kernels.values()))

    def _cells(self) -> Iterator[tuple[str, ...]]:
        yield "name", "kind", "count", "ms", "share", "bytes", "operations"
        for row in self.rows:
            operations_text = "-" if row.operations is None else str(row.operations)
            yield _cells(
                terminal(row.name), row.kind, str(row.count), row.seconds, row.share, str(row.bytes), operations_text
            )
        other = self.other_seconds
        yield _cells("(the machine)", "", "", other, other / self.seconds)
        yield _cells(terminal(self.function), "total", "", self.seconds, 1)


def measure(prepared: PreparedCall, *, kernels: bool = False, timeline: bool = False) -> Profile:
    """Run a prepared call once and return its profile.

    A Python instrument of the machine is not called during this run.

    kernels: whether to measure the instructions of kernels in bytecode, too.
    timeline: whether to record the times of the calls.
    """
    runner = prepared.runner
    profile = ffi.new("rvm_profile **")
    error = ffi.new("rvm_value *")

    def expect_ok(status: int) -> None:
        if status:
            raise failure(status, error)

    expect_ok(lib.rvm_profile_new(runner.executable.pointer, profile, error))
    try:
        for index, code in _cost_formulas(runner.executable):
            expect_ok(lib.rvm_profile_count(profile[0], index, code, len(code), error))
        if kernels:
            expect_ok(lib.rvm_profile_kernels(profile[0], error))
        if timeline:
            from relvm.runtime.timeline import MAX_CALLS  # few programs need it

            expect_ok(lib.rvm_profile_record(profile[0], MAX_CALLS, error))
        runner.install("profile", ffi.new("rvm_instrument *", lib.rvm_profile_instrument(profile[0])))
        try:
            seconds = prepared.repeat(1)
        finally:
            runner.install("profile", ffi.NULL if runner.callback is None else python_instrument())
        rows = _rows(runner, profile[0], seconds)
        return Profile(
            prepared.name,
            seconds,
            rows,
            1 if kernels else runner.threads,
            _kernels(runner.executable, profile[0]) if kernels else {},
            _timeline(prepared, profile[0], seconds, rows) if timeline else None,
        )
    finally:
        lib.rvm_profile_release(profile[0])


def _timeline(prepared: PreparedCall, profile: object, seconds: float, rows: tuple[ProfileRow, ...]) -> Timeline:
    from relvm.runtime.timeline import Timeline, recorded_calls  # few programs need it

    executable = prepared.runner.executable
    names = [executable.function_name(i) for i in range(executable.function_count)]
    kinds = [_kind(executable, i) for i in range(executable.function_count)]
    calls = tuple(recorded_calls(profile, names, kinds))
    return Timeline(prepared.name, seconds, calls, dropped=sum(row.count for row in rows) - len(calls))


def _kind(executable: Executable, index: int) -> str:
    """Return the kind of function `index` in a profile: "kernel", "packed" or "builtin"."""
    is_builtin = executable.function_name(index).startswith(BUILTIN_PREFIX)
    return "builtin" if is_builtin else executable.function_kind(index)


def _rows(runner: Invoker, profile: object, seconds: float) -> tuple[ProfileRow, ...]:
    rows = []
    for index in range(runner.executable.function_count):
        row = lib.rvm_profile_read(profile, index)
        if row.count:
            name, kind = runner.executable.function_name(index), _kind(runner.executable, index)
            spent = row.nanoseconds / 1e9
            operations = None if math.isnan(row.operations) else int(row.operations)
            rows.append(ProfileRow(name, kind, row.count, spent, spent / seconds, row.bytes, operations))
    return tuple(sorted(rows, key=lambda row: (-row.seconds, row.name)))


def _kernels(executable: Executable, profile: object) -> dict[str, KernelProfile]:
    from relvm.runtime.kernel_profile import read_kernel  # few programs need it

    programs, names = executable.program.kernels, map(executable.function_name, range(executable.function_count))
    read = [read_kernel(n, i, programs[n], profile) for i, n in enumerate(names) if n in programs]
    found = sorted(filter(None, read), key=lambda kernel: (-kernel.seconds, kernel.name))
    return {kernel.name: kernel for kernel in found}


def _cost_formulas(executable: Executable) -> Iterator[tuple[int, list[int]]]:
    """Yield the arguments `function` and `code` of rvm_profile_count for each kernel in the debug section.

    `function` is the function index of the kernel.  `code` contains the formulas for the number of operations and for
    the elements that the kernel reads.
    """
    debug = executable.program.debug
    for index in range(executable.function_count):
        match debug.get(executable.function_name(index)):
            case {"operations": operations, "reads": list(reads)}:
                sums = [_encode_sum(each) for each in (operations, *reads)]
                yield index, [number for each in sums for number in each]


def _encode_sum(terms: Any) -> list[int]:
    """Encode a formula, a sum of terms, as a list of integers for rvm_profile_count.

    An invalid formula, which a file from another source can contain, is encoded as unknown.
    """
    match terms:
        case list() if all(map(_is_term, terms)):
            parts = ([term[0], len(term) - 1, *(n for factor in term[1:] for n in factor)] for term in terms)
            return [len(terms), *(number for part in parts for number in part)]
    return [-1]


def _is_term(term: Any) -> bool:
    match term:
        case [coefficient, *factors]:
            pairs = all(isinstance(factor, list) and len(factor) == 2 for factor in factors)
            return pairs and all(_is_number(n) for n in (coefficient, *(n for factor in factors for n in factor)))
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _cells(
    name: str, kind: str, count: str, seconds: float, share: float, size: str = "", operations: str = ""
) -> tuple[str, ...]:
    return name, kind, count, f"{seconds * 1e3:.4f}", f"{share:.1%}", size, operations
