"""Tests of the limits of a run, and of the functions that an untrusted executable may call."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmMemoryError,
    RelvmTimeoutError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable

MODULE = parse_module("""
def loop(n: i64) -> i64 = if n > 0 then @loop(n - 1) else 7
def deep(n: i64) -> i64 = if n > 0 then 1 + @deep(n - 1) else 7
def large(x: f32[n]) -> f32[1000, n] = broadcast_to(x, shape(1000, n))
def doubled(x: f32[n], k: i64) -> f32[n] = if k > 0 then @doubled(add(x, x), k - 1) else x
def strings(x: str[n], k: i64) -> str[n] = if k > 0 then @strings(string_case(x, upper=1), k - 1) else x
""")
X = np.ones(1000, np.float32)


@pytest.fixture(scope="module")
def executables() -> dict[str, vm.Executable]:
    return {mode: vm.build(MODULE, mode) for mode in MODES}


@pytest.fixture(params=MODES)
def executable(request: pytest.FixtureRequest, executables: dict[str, vm.Executable]) -> vm.Executable:
    return executables[request.param]


def test_steps(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable, max_steps=200_000)
    for _ in range(3):
        assert machine["loop"](90_000) == 7
        with pytest.raises(RelvmTimeoutError, match="the run exceeded its limit of 200000 steps"):
            machine["loop"](1 << 60)
        assert machine["doubled"](X, 5).shape == (1000,)
        with pytest.raises(RelvmTimeoutError):
            machine["doubled"](X, 30)  # calls of kernels count as steps, too


def test_time(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable, max_seconds=0.05)
    for arguments in [("loop", 1 << 60), ("doubled", np.ones(100_000, np.float32), 1 << 60)]:
        started = time.perf_counter()
        with pytest.raises(RelvmTimeoutError, match=r"exceeded its limit of 0\.050 seconds"):
            machine[arguments[0]](*arguments[1:])
        assert time.perf_counter() - started >= 0.05
    assert isinstance(RelvmTimeoutError(), TimeoutError)
    assert machine["loop"](10) == 7


def test_a_string_operator_counts_its_work(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable, max_steps=200_000)
    words = np.array(["a", "b"], object)
    assert machine["strings"](words, 100).numpy().tolist() == ["A", "B"]
    with pytest.raises(RelvmTimeoutError):
        machine["strings"](words, 1 << 60)
    with pytest.raises(RelvmTimeoutError):
        machine["strings"](np.array(["a" * 10_000, "b"], object), 100)


def test_memory(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable, max_bytes=1_000_000)
    for _ in range(3):
        assert machine["large"](X[:200]).shape == (1000, 200)
        with pytest.raises(RelvmMemoryError, match=r"of 1000000 bytes \(max_bytes\) are in use"):
            machine["large"](X)
        assert machine["doubled"](X, 10_000).shape == (1000,)  # freed memory does not count
    held = [machine["large"](X[:200]) for _ in range(5)]  # nor do results of earlier runs
    assert len(held) == 5


def test_how_much_memory_was_asked_for_is_said(executables: dict[str, vm.Executable]) -> None:
    said = set()
    for executable in executables.values():
        with pytest.raises(RelvmMemoryError) as caught:
            vm.VirtualMachine(executable, max_bytes=1_000_000)["large"](X)
        said.add(str(caught.value))
        assert "in large" in caught.value.__notes__[0]
    numbers = re.fullmatch(
        r"out of memory: cannot allocate (\d+) bytes; (\d+) of 1000000 bytes \(max_bytes\) are in use", said.pop()
    )
    asked, used = map(int, numbers.groups())
    assert not said  # all modes raise the same message
    assert 4_000_000 <= asked < 4_600_000 and used < 1000


def test_limits_do_not_change_results(executable: vm.Executable) -> None:
    machine = vm.VirtualMachine(executable, max_bytes=1 << 30, max_steps=1 << 40, max_seconds=1000)
    np.testing.assert_array_equal(machine["doubled"](X, 3), X * 8)
    assert machine["deep"](1000) == 1007


@pytest.mark.parametrize("limit", ["max_bytes", "max_steps", "max_seconds"])
def test_a_limit_below_zero(executables: dict[str, vm.Executable], limit: str) -> None:
    with pytest.raises(RelvmArgumentError, match=r"expected a .* of at least 0"):
        vm.VirtualMachine(executables["bytecode"], **{limit: -1})


@pytest.mark.parametrize(
    "limit",
    [
        *({"max_bytes": value} for value in (1.5, 1 << 63)),
        *({"max_steps": value} for value in (None, "1", True)),
        *({"max_seconds": value} for value in (float("nan"), "1")),
    ],
)
def test_a_limit_that_is_none(executables: dict[str, vm.Executable], limit: dict) -> None:
    with pytest.raises(RelvmArgumentError, match=f"{next(iter(limit))} is .*, expected"):
        vm.VirtualMachine(executables["bytecode"], **limit)


def test_more_seconds_than_there_are(executables: dict[str, vm.Executable]) -> None:
    for seconds in (float("inf"), 1e300, 1 << 80):
        assert vm.VirtualMachine(executables["bytecode"], max_seconds=seconds)["loop"](10) == 7


# ---- permitted functions ----


@pytest.fixture
def calling(tmp_path: Path) -> Path:
    vm.register_func("limited.seven", lambda: 7, override=True)
    text = 'def main() => i64 { return packed("limited.seven") : i64 }'
    path = tmp_path / "calling.rvm"
    vm.build(parse_module(text), target="numpy").save(path)
    return path


def test_functions_of_the_host_are_allowed_by_name(calling: Path) -> None:
    for refused in (None, (), ("limited",), ("limited.sevens",), ("reference.*",)):
        with pytest.raises(RelvmUnsupportedError, match=r'the registered function "limited.seven", which the load'):
            vm.load(calling, functions=refused)
        with pytest.raises(RelvmUnsupportedError):
            Executable.from_bytes(calling.read_bytes(), functions=refused)
    for allowed in (("limited.seven",), ("limited.*",), ("x", "*")):
        assert vm.VirtualMachine(vm.load(calling, functions=allowed))["main"]() == 7


@pytest.mark.parametrize("functions", ["reference.*", b"x", 5, [1], ["limited.seven\0x"], ["\ud800"], [None]])
def test_what_is_no_list_of_names(calling: Path, functions: object) -> None:
    with pytest.raises(RelvmTypeError, match="functions: expected"):
        vm.load(calling, functions=functions)


def test_kernels_of_numpy_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "kernels.rvm"
    vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="numpy").save(path)
    assert vm.VirtualMachine(vm.load(path))["main"](np.float32([-1, 2])).numpy().tolist() == [0, 2]


def test_a_file_that_is_too_large(calling: Path) -> None:
    size = calling.stat().st_size
    with pytest.raises(RelvmUnsupportedError, match=f"{size} bytes, but the load options allow at most {size - 1}"):
        vm.load(calling, max_bytes=size - 1)
    assert vm.load(calling, max_bytes=size, functions=("*",))


# ---- relvm verify ----


def verify(path: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "relvm", "verify", str(path)]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True)


def test_verify_says_what_a_file_has(calling: Path, tmp_path: Path) -> None:
    done = verify(calling)
    assert (done.returncode, done.stderr) == (0, "")
    assert "calls functions of the host: limited.seven" in done.stdout
    assert "native code: none" in done.stdout
    native = tmp_path / "native.rvm"
    vm.build(MODULE).save(native)
    done = verify(native)
    assert done.returncode == 0
    assert "which nothing can verify" in done.stdout


def test_verify_runs_nothing(tmp_path: Path) -> None:
    native = tmp_path / "native.rvm"
    vm.build(MODULE).save(native)
    checked = Executable.check(native)
    with pytest.raises(RelvmUnsupportedError, match="the executable was loaded for checking only"):
        vm.VirtualMachine(checked)


def test_verify_refuses_what_loading_refuses(calling: Path) -> None:
    content = bytearray(calling.read_bytes())
    content[-70] ^= 1
    calling.write_bytes(content)
    with pytest.raises(RelvmError):
        vm.load(calling, functions=("*",))
    done = verify(calling)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
