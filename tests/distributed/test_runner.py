"""Tests of Runner without a cluster: pickling, and loading an executable only once in a process."""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from relvm import vm
from relvm.compiler.find_compiler import find_compiler
from relvm.distributed import Runner
from relvm.distributed import runner as runner_module
from relvm.errors import RelvmNameError, RelvmTimeoutError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module

DOUBLE = "def main(x: f32[n]) -> f32[n] = add(x, x)"


def build(text: str) -> vm.Executable:
    return vm.build(parse_module(text), target="numpy")


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "_loaded", type(runner_module._loaded)())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list]:
    """Return a list to which each call of `load_runnable` appends its arguments."""
    found, runnable = [], runner_module.load_runnable
    monkeypatch.setattr(runner_module, "load_runnable", lambda *a, **k: found.append(a) or runnable(*a, **k))
    return found


def test_runners_of_the_same_bytes_share_an_executable_and_its_machine(made: list) -> None:
    runner = Runner(build(DOUBLE))
    for each in (runner, pickle.loads(pickle.dumps(runner)), Runner(build(DOUBLE))):
        assert each(np.float32([3])).tolist() == [6]
        assert each(x=np.float32([3])).tolist() == [6]
    assert len(made) == 1
    (kept,) = runner_module._loaded.values()
    assert len(kept.idle) == 1


def test_runners_that_say_something_else_share_nothing(made: list) -> None:
    loop = build("def main(i: i64) -> i64 = if i > 0 then @main(i - 1) else i")
    for options in ({}, {"max_steps": 10**9}, {"num_threads": 2}, {"trust_native": True}, {"functions": ()}):
        assert Runner(loop, **options)(5) == 0
    assert len(made) == 4 + 1
    with pytest.raises(RelvmTimeoutError):
        Runner(loop, max_steps=100_000)(10**9)


def test_the_executables_used_last_are_kept(made: list) -> None:
    runners = [Runner(build(f"def main(x: i64) -> i64 = x + {k}")) for k in range(runner_module.EXECUTABLES_KEPT + 1)]
    for each in runners[:-1]:
        each(1)
    assert runners[0](1) == 1  # the second runner is then the least recently used one
    runners[-1](1)
    assert len(runner_module._loaded) == runner_module.EXECUTABLES_KEPT
    count = len(made)
    runners[0](1)
    assert len(made) == count
    runners[1](1)
    assert len(made) == count + 1


def test_threads_have_machines_of_their_own() -> None:
    """All threads run at the same time, which a single machine would reject."""
    inside = threading.Barrier(3, timeout=600)
    vm.register_func("test.runner.wait", lambda x: (inside.wait(), x.numpy() * 2)[1], override=True)
    program = build('def main(x: f32[n]) => f32[n] = packed("test.runner.wait", x) : f32[n]')
    runner, found = Runner(program, functions=["test.runner.wait"]), []
    for _ in range(2):
        threads = [
            threading.Thread(target=lambda k: found.append(runner(np.float32([k])).item()), args=(k,)) for k in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == [0, 0, 2, 2, 4, 4]
    (kept,) = runner_module._loaded.values()
    assert len(kept.idle) == 3


@pytest.mark.parametrize("method", [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()])
def test_it_runs_in_a_pool_of_processes(method: str) -> None:
    runner = Runner(build(DOUBLE))
    assert runner(np.float32([1])).tolist() == [2]
    with (
        runner_module._lock,
        multiprocessing.get_context(method).Pool(2) as pool,
    ):  # a forked child has its own lock
        found = pool.map_async(runner, [np.float32([k]) for k in range(6)]).get(60)
    assert [each.item() for each in found] == [0, 2, 4, 6, 8, 10]


def test_what_belongs_to_a_machine_is_no_result() -> None:
    program = build("def main(i: i64) => object { add = fn (x: i64) -> i64 { return x + i }\nreturn add }")
    with pytest.raises(RelvmTypeError, match="main returned a Closure, which belongs to its machine"):
        Runner(program)(1)


def test_a_program_calls_what_it_is_allowed_to() -> None:
    vm.register_func("test.runner.other", lambda x: x, override=True)
    runner = Runner(build('def main(x: i64) => i64 = packed("test.runner.other", x) : i64'))
    with pytest.raises(RelvmUnsupportedError, match=r"test\.runner\.other"):
        runner(1)


def test_a_function_that_hosts_do_not_see_is_none_to_run() -> None:
    program = build("private def helper(x: f32[n]) -> f32[n] = add(x, x)\ndef main(x: f32[n]) -> f32[n] = @helper(x)")
    with pytest.raises(RelvmNameError, match=r"no function helper; its functions are main$"):
        Runner(program, "helper")


def test_a_worker_imports_neither_the_compiler_nor_dask() -> None:
    check = """
import sys
import relvm.distributed
found = [m for m in sys.modules if m.split('.')[0] in ('dask', 'distributed', 'rich', 'onnx')]
found += [m for m in sys.modules if m.startswith(('relvm.ir', 'relvm.ops', 'relvm.codegen', 'relvm.frontend'))]
sys.exit(str(found) if found else 0)
"""
    done = subprocess.run([sys.executable, "-P", "-c", check], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- executables for other processors ----


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return the captured log, with its level reset to WARNING, because silencing a cluster changes all handlers."""
    caplog.set_level(logging.WARNING, "relvm")
    return caplog


def foreign(**options: object) -> bytes:
    """Return DOUBLE, compiled for a processor with an unknown feature."""
    program = vm.build(parse_module(DOUBLE), "compiled", **options).program
    changed = replace(program, native=replace(program.native, cpu="neon9"))
    return vm.Executable.from_program(changed, elsewhere=True).to_bytes()


def runner_of(content: bytes, *, trust_native: bool) -> Runner:
    executable = vm.Executable.from_bytes(content, trust_native=trust_native, elsewhere=True)
    return pickle.loads(pickle.dumps(Runner(executable, trust_native=trust_native)))


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_a_process_compiles_for_itself_what_its_processor_cannot_run(said: pytest.LogCaptureFixture) -> None:
    runner = runner_of(foreign(), trust_native=True)
    for _ in range(2):
        assert runner(np.float32([3])).tolist() == [6]
    (record,) = said.records  # logged once, because it is compiled once
    assert (
        record.name == "relvm"
        and "neon9" in record.message
        and "compiling the C source in the executable for this processor" in record.message
    )


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_or_takes_the_portable_program_without_a_compiler_or_trust(said: list, monkeypatch: pytest.MonkeyPatch) -> None:
    content, plain = foreign(portable=True), foreign()
    assert runner_of(content, trust_native=False)(np.float32([3])).tolist() == [6]
    monkeypatch.setenv("RELVM_CC", "/nonexistent/cc")
    assert runner_of(content, trust_native=True)(np.float32([3])).tolist() == [6]
    assert len(said.records) == 2
    assert all("running the portable program" in record.message for record in said.records)
    with pytest.raises(RelvmUnsupportedError, match="the executable contains no portable program"):
        runner_of(plain, trust_native=True)(np.float32([3]))
