"""Tests of the rule that decides when exec_mode="auto" compiles."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from relvm import vm
from relvm.compiler import toolchain
from relvm.frontend.text import parse_module
from relvm.ir.cache_key import set_cache_key
from relvm.ir.expr import Module
from relvm.runtime import background_compile
from relvm.runtime.background_compile import Publisher, Upgrade

HOUR = 3600 * 10**9
WAIT = 60  # seconds until a test fails that waits for a thread


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a budget that no run of a test exceeds."""
    monkeypatch.setattr(background_compile, "BUDGET_NANOSECONDS_PER_FUNCTION", HOUR)


def held() -> tuple[Callable[[Publisher], str], threading.Event, threading.Event]:
    """Return a function that compiles, an event that tells that it runs, and an event for which it waits."""
    runs, released = threading.Event(), threading.Event()

    def compile(publisher: Publisher) -> str:
        runs.set()
        assert released.wait(WAIT)
        return "compiled"

    return compile, runs, released


def wait_until_idle() -> None:
    """Wait for the end of the compiling thread."""
    if thread := background_compile._thread:
        thread.join(WAIT)
        assert not thread.is_alive()


def countdown(start: int) -> Module:
    text = f"def main(n: i64) -> i64 = if n == 0 then {start} else @main(n - 1)"
    return set_cache_key(parse_module(text), f"countdown {start}")


# ---- the budget ----


def test_the_compilation_begins_when_the_run_time_exceeds_the_budget() -> None:
    upgrade = Upgrade(lambda publisher: "compiled", 100)
    upgrade.add_run_time(60)
    upgrade.add_run_time(40)
    assert not upgrade.has_begun and upgrade.executable is None
    upgrade.add_run_time(1)
    assert upgrade.has_begun and upgrade.wait(WAIT) and upgrade.executable == "compiled"


def test_a_program_that_runs_for_less_is_not_compiled(never: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "run_compiler", lambda *arguments: pytest.fail("the C compiler was called"))
    machine = vm.VirtualMachine(vm.build(countdown(3), "auto"))
    assert [machine["main"](1000) for _ in range(20)] == [3] * 20
    assert not machine.executable.upgrade.has_begun
    assert machine.executable.upgrade.run_time > 0


def test_run_time_counts_for_all_machines_of_an_executable(never: None) -> None:
    executable = vm.build(countdown(4), "auto")
    times = []
    for _ in range(3):
        assert vm.VirtualMachine(executable)["main"](1000) == 4
        times.append(executable.upgrade.run_time)
    assert 0 < times[0] < times[1] < times[2]


def test_run_time_covers_a_call_that_has_not_ended(never: None) -> None:
    executable = vm.build(countdown(5), "auto")
    machine = vm.VirtualMachine(executable)
    machine["main"](10**6)
    assert executable.upgrade.run_time > 0  # counted by the polls during the run


def test_waiting_begins_the_compilation(never: None) -> None:
    machine = vm.VirtualMachine(vm.build(countdown(6), "auto"))
    assert machine.wait_compiled() and machine.function_kinds == {"main": "native"}


# ---- one at a time ----


def test_executables_are_compiled_one_after_another_and_the_one_that_is_waited_for_first() -> None:
    compile, runs, released = held()
    order: list[str] = []
    busy = Upgrade(compile)
    others = [Upgrade(lambda publisher, name=name: order.append(name)) for name in "abc"]
    for upgrade in (busy, *others):
        upgrade.begin()
        upgrade.begin()
    assert runs.wait(WAIT) and not others[2].wait(0)
    assert sum(thread.name == "relvm upgrade" for thread in threading.enumerate()) == 1
    released.set()
    assert all(upgrade.wait(WAIT) for upgrade in (busy, *others)) and order == ["c", "a", "b"]
    wait_until_idle()
    assert not any(thread.name == "relvm upgrade" for thread in threading.enumerate())


def test_executables_of_one_cache_entry_share_a_compilation(
    tmp_path: Path, never: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    first, second, other = (vm.build(countdown(start), "auto") for start in (7, 7, 8))
    assert first is not second and first.upgrade is second.upgrade is not other.upgrade
    machines = [vm.VirtualMachine(each) for each in (first, second)]
    assert machines[0].wait_compiled()
    assert [machine["main"](3) for machine in machines] == [7, 7]
    assert all(machine.function_kinds == {"main": "native"} for machine in machines)
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "other"))
    assert vm.build(countdown(7), "auto").upgrade is not first.upgrade


def test_a_compilation_that_failed_is_not_shared() -> None:
    failed = Upgrade(lambda publisher: 1 // 0)
    assert failed.can_succeed
    with pytest.raises(ZeroDivisionError):
        failed.wait(WAIT)
    assert not failed.can_succeed


def test_a_thread_that_cannot_start_leaves_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_until_idle()

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", start)
        refused = Upgrade(lambda publisher: "compiled")
        refused.add_run_time(1)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        refused.wait(WAIT)
    later = Upgrade(lambda publisher: "compiled")
    assert later.wait(WAIT)


# ---- dropped compilations ----


def test_a_compilation_that_waits_is_dropped_with_its_executable() -> None:
    compile, runs, released = held()
    busy, called = Upgrade(compile), []
    busy.begin()
    assert runs.wait(WAIT)
    dropped = Upgrade(lambda publisher: called.append("dropped"))
    dropped.begin()
    reference = weakref.ref(dropped)
    del dropped
    assert reference() is None
    released.set()
    assert busy.wait(WAIT)
    wait_until_idle()
    assert not called


def test_a_compilation_under_way_ends_when_it_publishes_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    runs, released, reached = threading.Event(), threading.Event(), []

    def compile(publisher: Publisher) -> str:
        publisher.expect_wanted()
        publisher("first part")
        runs.set()
        assert released.wait(WAIT)
        for step in (publisher.expect_wanted, lambda: publisher("second part")):
            with pytest.raises(background_compile._DroppedError):
                step()
        reached.append("end")
        publisher.expect_wanted()
        return "compiled"

    upgrade = Upgrade(compile)
    upgrade.begin()
    assert runs.wait(WAIT) and upgrade.parts == ["first part"]
    del upgrade
    gc.collect()
    released.set()
    wait_until_idle()
    assert reached == ["end"] and not [record for record in caplog.records if record.name.startswith("relvm")]


def test_executables_and_their_machines_are_freed_without_compiling(
    tmp_path: Path, never: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    upgrades = []
    for start in range(20, 40):
        machine = vm.VirtualMachine(vm.build(countdown(start), "auto"))
        assert machine["main"](3) == start
        upgrades.append(weakref.ref(machine.executable.upgrade))
    del machine
    for thread in threading.enumerate():
        if thread.name == "relvm cache":
            thread.join(WAIT)
    gc.collect()
    assert not any(reference() for reference in upgrades)
    assert not any(thread.name == "relvm upgrade" for thread in threading.enumerate())
