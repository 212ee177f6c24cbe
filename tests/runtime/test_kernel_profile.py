"""Tests of instruction profiles of bytecode kernels: exact counts, shares that sum to 1, and unchanged results."""

from __future__ import annotations

import numpy as np
import pytest
from support.own_kernels import KERNELS

from relvm import vm
from relvm.bytecode.kernel_printer import instruction_texts
from relvm.errors import RelvmArgumentError, RelvmBusyError, RelvmIndexError
from relvm.frontend.text import parse_module

TEXT = KERNELS + "def main(x: f32[n]) -> f32[n] = kernel doubled(kernel doubled(x))"


@pytest.fixture(scope="module")
def executable() -> vm.Executable:
    return vm.build(parse_module(TEXT), target="bytecode", exec_mode="bytecode")


@pytest.fixture
def machine(executable: vm.Executable) -> vm.VirtualMachine:
    return vm.VirtualMachine(executable, num_threads=2)


def counts(profile: vm.Profile, kernel: str) -> dict[str, int]:
    """Return how often each opcode of a kernel was executed."""
    found: dict[str, int] = {}
    for row in profile.kernels[kernel].rows:
        opcode = row.text.split()[0]
        found[opcode] = found.get(opcode, 0) + row.count
    return found


@pytest.mark.parametrize(("n", "strips"), [(1, 1), (512, 1), (513, 2), (5000, 10)])
def test_the_counts_of_a_loop_are_exact(machine: vm.VirtualMachine, n: int, strips: int) -> None:
    profile = machine.profile("main", np.ones(n, np.float32), kernels=True)
    per_strip = {"view": 2 * strips, "view_written": 2 * strips, "apply": 2 * strips, "next_strip": 2 * strips}
    assert counts(profile, "doubled") == {"strips": 2, "end": 2, **per_strip}


def test_instructions_of_a_parallel_loop_are_counted_on_one_thread(machine: vm.VirtualMachine) -> None:
    profile = machine.profile("sums", np.ones((40, 600), np.float32), kernels=True)
    found = counts(profile, "spread")
    assert (found["parallel"], found["accumulate"], found["store"], found["next"]) == (1, 80, 40, 40)
    assert profile.threads == 1


def test_only_what_ran_has_a_row(machine: vm.VirtualMachine, executable: vm.Executable) -> None:
    profile = machine.profile("main", np.ones(0, np.float32), kernels=True)
    assert set(profile.kernels) == {"doubled"}
    assert counts(profile, "doubled") == {"strips": 2, "end": 2}
    texts = instruction_texts(executable.program.kernels["doubled"])
    assert [texts[row.index] for row in profile.kernels["doubled"].rows] == [
        row.text for row in profile.kernels["doubled"].rows
    ]


def test_times_and_shares_add_up(machine: vm.VirtualMachine) -> None:
    profile = machine.profile("sums", np.ones((200, 600), np.float32), kernels=True)
    kernel = profile.kernels["spread"]
    assert sum(row.share for row in kernel.rows) == pytest.approx(1)
    assert all(0 <= row.share <= 1 and row.seconds >= 0 for row in kernel.rows)
    (row,) = [row for row in profile.rows if row.name == "spread"]
    assert 0 < kernel.seconds <= row.seconds
    assert kernel.hottest[0].seconds == max(row.seconds for row in kernel.rows)


def test_rows_know_their_loops(machine: vm.VirtualMachine) -> None:
    rows = machine.profile("sums", np.ones((2, 9), np.float32), kernels=True).kernels["spread"].rows
    depths = {row.text.split()[0]: len(row.loops) for row in rows}
    assert (depths["parallel"], depths["loop"], depths["strips"], depths["accumulate"]) == (0, 1, 2, 3)


def test_the_table_is_short_and_marks_the_hottest(machine: vm.VirtualMachine) -> None:
    kernel = machine.profile("sums", np.ones((20, 600), np.float32), kernels=True).kernels["spread"]
    assert "more instructions" not in str(kernel) and "*" in str(kernel)
    lines = kernel.table(3).splitlines()
    assert len(lines) == 5 and f"({len(kernel.rows) - 3} more instructions)" in lines[-1]
    hottest = next(line for line in lines if f" {kernel.hottest[0].index}: " in line)
    assert hottest.startswith("*")
    assert len(kernel.table(None).splitlines()) == len(kernel.rows) + 1


def test_the_profile_shows_its_kernels(machine: vm.VirtualMachine) -> None:
    x = np.ones(3, np.float32)
    assert "apply" in str(machine.profile("main", x, kernels=True))
    without = machine.profile("main", x)
    assert without.kernels == {} and "apply" not in str(without)


def test_results_are_the_same_with_and_without(machine: vm.VirtualMachine) -> None:
    x = np.random.default_rng(1).random((30, 700), np.float32)
    before = machine["sums"](x).numpy()
    machine.profile("sums", x, kernels=True)
    assert np.array_equal(machine["sums"](x).numpy(), before)


def test_a_kernel_that_fails_raises_its_error(machine: vm.VirtualMachine) -> None:
    with pytest.raises(RelvmIndexError, match="index 9 is outside"):
        machine.profile("pick", np.ones(3, np.float32), 9, kernels=True)
    assert machine["pick"](np.ones(3, np.float32), 1).numpy() == 1


def test_limits_end_a_measured_kernel(executable: vm.Executable) -> None:
    from relvm.errors import RelvmTimeoutError

    machine = vm.VirtualMachine(executable, max_steps=20_000)
    with pytest.raises(RelvmTimeoutError):
        machine.profile("sums", np.ones((3000, 600), np.float32), kernels=True)


def test_native_kernels_have_no_rows() -> None:
    x = np.ones(3, np.float32)
    machine = vm.VirtualMachine(vm.build(parse_module(TEXT), target="c", exec_mode="bytecode"))
    profile = machine.profile("main", x, kernels=True)
    assert profile.kernels == {} and any(row.name == "doubled" for row in profile.rows)


def test_pre_bound_inputs_and_saved_functions(machine: vm.VirtualMachine) -> None:
    machine.save_function("main", "saved", np.ones(3, np.float32))
    assert counts(machine.profile("saved", kernels=True), "doubled")["apply"] == 2
    with pytest.raises(RelvmArgumentError):
        machine.profile("saved", np.ones(3, np.float32), kernels=True)


def test_a_running_machine_is_busy() -> None:
    text = "def main(f: (i64) => i64) => i64 = f(1)"
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode", exec_mode="bytecode"))

    def inside(i: int) -> int:
        with pytest.raises(RelvmBusyError):
            machine.profile("main", inside, kernels=True)
        return i

    assert machine["main"](inside) == 1
