"""Tests of map_batches on two processes: same results as in one process, in order, despite failures."""

from __future__ import annotations

import itertools
import os
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, Future, KilledWorker
from functions import NAMES, tries, workers_of

from relvm import vm
from relvm.compiler.find_compiler import find_compiler
from relvm.distributed import Batch, Runner, map_batches
from relvm.distributed.scheduler import Stream
from relvm.errors import (
    RelvmArgumentError,
    RelvmArithmeticError,
    RelvmAssertionError,
    RelvmBatchError,
    RelvmFormatError,
    RelvmInterrupted,
    RelvmNameError,
    RelvmShapeError,
    RelvmTimeoutError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module

NETWORK = """
def main(x: f32[n, 8], w: f32[8, 5]) -> (f32[n, 5], f32[n]) {
  y = softmax(tanh(matmul(x, w)), axis=1)
  return (y, sum(x, axes=(1,)))
}"""
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")


def build(text: str, target: str = "numpy") -> vm.Executable:
    return vm.build(parse_module(text), target=target)


def packed(name: str, *more: str) -> vm.Executable:
    """Return a program that calls a function in functions.py.  more: the texts of further arguments."""
    arguments = ", ".join([f'"test.distributed.{name}"', "x", *more])
    return build(f"def main(x: f32[n]) => f32[n] = packed({arguments}) : f32[n]")


def numbered(count: int) -> list[np.ndarray]:
    return [np.full(3, number, np.float32) for number in range(count)]


def same(found: object, expected: object) -> bool:
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and all(map(same, found, expected))
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("target", [pytest.param("c", marks=needs_compiler), "numpy"])
def test_results_are_those_of_one_process_bit_for_bit_and_in_order(client: Client, target: str) -> None:
    executable, generator = build(NETWORK, target), np.random.default_rng(0)
    inputs = [generator.standard_normal((rows, 8)).astype(np.float32) for rows in range(40)]
    w = generator.standard_normal((8, 5)).astype(np.float32)
    machine = vm.VirtualMachine(executable)
    expected = [tuple(each.numpy() for each in machine["main"](x, w)) for x in inputs]
    for batches in ([(x, w) for x in inputs], ({"w": w, "x": x} for x in inputs)):
        found = list(map_batches(executable, batches, client=client))
        assert len(found) == 40 and all(map(same, found, expected))


def test_both_processes_work_and_each_batch_runs_once(client: Client, marks: Path) -> None:
    found = list(map_batches(packed("tried"), numbered(60), functions=[NAMES]))  # uses the most recently created client
    assert [int(each[0]) for each in found] == list(range(60))
    assert [tries(marks, number) for number in range(60)] == [1] * 60
    assert len(workers_of(marks)) == 2


def test_both_processes_begin_at_once(client: Client, marks: Path) -> None:
    """Each of the two batches waits for the other one, so that a single process would never finish."""
    found = list(map_batches(packed("met"), numbered(2), client=client, functions=[NAMES]))
    assert [int(each[0]) for each in found] == [0, 1]


def test_values_of_every_kind_come_back(client: Client) -> None:
    executable = build("""
    def main(x: bf16[n], s: str[2], i: i64) -> (bf16[n], (str[2], i64), f64, bool) = (x, (s, i * 2), 0.5, i < 3)
    def list(x: f32[n]) -> list[f32[n]] = list_append(list_append(make_list(), x), relu(x))
    """)
    x, s = np.arange(3).astype("bfloat16"), np.array(["a", ""])
    ((y, (strings, i), f, b),) = map_batches(executable, [(x, s, 1)], client=client)
    assert y.dtype == x.dtype and y.tobytes() == x.tobytes()
    assert (strings.tolist(), i, f, b) == (["a", ""], 2, 0.5, True)
    ((first, second),) = map_batches(executable, [np.float32([-1])], client=client, function="list")
    assert (first.tolist(), second.tolist()) == ([-1], [0])


# ---- arrays of Dask ----


def test_blocks_of_dask_arrays_are_computed_by_the_workers(client: Client) -> None:
    def made(block: np.ndarray) -> np.ndarray:
        import os

        assert os.getpid() != here
        return block * 2

    here = os.getpid()
    x = da.arange(10, chunks=4, dtype=np.float32).map_blocks(made, dtype=np.float32, meta=np.ones(1, np.float32))
    executable = build("def main(x: f32[n], y: f32[n]) -> f32[n] = add(x, y)")
    found = list(map_batches(executable, {"y": x, "x": da.ones(10, chunks=4, dtype=np.float32)}, client=client))
    assert [each.tolist() for each in found] == [[1, 3, 5, 7], [9, 11, 13, 15], [17, 19]]
    double = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    assert [each.tolist() for each in map_batches(double, x, client=client)] == [
        [0, 4, 8, 12],
        [16, 20, 24, 28],
        [32, 36],
    ]
    delayed = [dask.delayed(np.float32)([number]) for number in range(5)]
    assert [each.tolist() for each in map_batches(double, delayed, client=client)] == [[0], [2], [4], [6], [8]]


def test_a_block_that_fails_is_a_batch_that_fails(client: Client) -> None:
    def failing(block: np.ndarray) -> np.ndarray:
        if len(block) and block[0] == 4:
            raise ValueError("no such block")
        return block

    x = da.arange(8, chunks=4, dtype=np.float32).map_blocks(failing, dtype=np.float32, meta=np.ones(1, np.float32))
    double = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    good, bad = map_batches(double, x, client=client, on_error="return", retries=0)
    assert good.tolist() == [0, 2, 4, 6]
    assert bad.batch == "1" and isinstance(bad.__cause__, ValueError)


# ---- files ----


def test_files_are_read_by_the_workers(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    executable = build("def main(x: f32[n], i: i64) -> (f32[n], i64) = (add(x, x), i + 1)")
    Path("in").mkdir()
    for number in (2, 0, 1):
        np.savez(f"in/{number}.npz", i=np.int64(number), x=np.float32([number]))
    for batches in ("in", Path("in"), "in/*.npz", [Path(f"in/{number}.npz") for number in range(3)]):
        found = [(x.tolist(), i) for x, i in map_batches(executable, batches, client=client)]
        assert found == [([0], 1), ([2], 2), ([4], 3)]
    np.save("one.npy", np.float32([1, 2]))
    double = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    assert [each.tolist() for each in map_batches(double, "one.npy", client=client)] == [[2, 4]]


def test_files_that_do_not_fit_are_named(client: Client, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones(2, np.float32), i=np.int64([1, 2]))
    np.savez(tmp_path / "b.npz", x=np.ones(2, np.float32), other=np.ones(1))
    np.save(tmp_path / "c.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "d.npz", x=np.ones(2, np.float32), i=1)
    (tmp_path / "e.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:-30])
    executable = build("def main(x: f32[n], i: i64) -> i64 = i")
    (tmp_path / "f.npy").write_bytes(b"\x93NUMPY\x01\x00\x05\x00(((((")  # NumPy raises a TokenError for this header
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("i", "1")
    a, b, c, d, e, f, g = map_batches(executable, tmp_path, client=client, on_error="return")
    assert "a.npz: RelvmArgumentError: input i has type i64: expected an array of 1 element, got 2" in str(a)
    assert "b.npz: RelvmArgumentError: unknown input other; the inputs are x, i" in str(b)
    assert str(c).endswith("c.npy is not a .npy file: Object arrays cannot be loaded when allow_pickle=False")
    assert isinstance(c.__cause__, RelvmFormatError)
    assert d == 1
    assert "e.npz is not a .npz file" in str(e)
    assert "f.npy is not a .npy file" in str(f) and isinstance(f.__cause__, RelvmFormatError)
    assert str(g).endswith("g.npz is not a .npz file: i is not an array")


# ---- failures ----


@pytest.mark.parametrize(("how", "cause"), [("relvm", RelvmAssertionError), ("python", OSError)])
def test_a_batch_that_fails_is_named_and_the_others_finish(client: Client, how: str, cause: type[Exception]) -> None:
    executable, options = packed("failed", f'"{how}"'), {"client": client, "functions": [NAMES]}
    found = list(map_batches(executable, numbered(8), on_error="return", **options))
    assert [int(each[0]) for number, each in enumerate(found) if number != 3] == [0, 1, 2, 4, 5, 6, 7]
    assert isinstance(found[3], RelvmBatchError) and isinstance(found[3].__cause__, cause)
    assert found[3].batch == "3" and f"batch 3: {cause.__name__}: " in str(found[3]) and "the third" in str(found[3])
    batches = [Batch(f"the batch {number}", (x,)) for number, x in enumerate(numbered(8))]
    results = map_batches(executable, batches, **options)
    assert [int(next(results)[0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RelvmBatchError, match="batch the batch 3: ") as raised:
        next(results)
    assert isinstance(raised.value.__cause__, cause)
    assert list(results) == []


def test_errors_of_relvm_keep_their_trace_and_are_not_tried_again(client: Client, marks: Path) -> None:
    text = """
    def main(x: f32[n]) => f32[n] {
      y = packed("test.distributed.tried", x) : f32[n]
      return packed("test.distributed.failed", y, "HOW") : f32[n]
    }"""
    for how, count in (("relvm", 1), ("python", 4)):
        for mark in marks.iterdir():
            mark.unlink()
        executable = build(text.replace("HOW", how))
        options = {"on_error": "return", "retries": 3, "functions": [NAMES]}
        (error,) = map_batches(executable, numbered(4)[3:], client=client, **options)
        assert tries(marks, 3) == count, how
    divided = build("def main(x: i64) -> i64 = 7 // x")
    (error,) = map_batches(divided, [(0,)], client=client, on_error="return")
    assert isinstance(error.__cause__, RelvmArithmeticError)
    assert "in main at instruction" in "".join(error.__cause__.__notes__)


def test_a_worker_that_is_killed_costs_a_retry_and_nothing_is_lost_or_doubled(client: Client, marks: Path) -> None:
    found = list(map_batches(packed("killed_once"), numbered(12), client=client, functions=[NAMES]))
    assert (marks / "killed").exists()
    assert [int(each[0]) for each in found] == list(range(12))


def test_all_workers_that_have_the_executable_may_be_killed(client: Client) -> None:
    found = list(map_batches(packed("killed_together"), numbered(8), client=client, functions=[NAMES]))
    assert [int(each[0]) for each in found] == list(range(8))


def test_a_batch_that_kills_its_worker_fails_and_its_neighbours_do_not(client: Client) -> None:
    options = {"client": client, "functions": [NAMES], "on_error": "return"}
    found = list(map_batches(packed("killed"), numbered(7), **options))
    assert [int(each[0]) for number, each in enumerate(found) if number != 3] == [0, 1, 2, 4, 5, 6]
    assert found[3].batch == "3" and isinstance(found[3].__cause__, KilledWorker)


def test_a_batch_that_kills_its_worker_and_cannot_be_sent_again_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, tried = Stream._submit_batch, []

    def start_once(*given: Any) -> Any:
        tried.append(given)
        return start(*given) if len(tried) == 1 else RelvmBatchError("batch 0: TypeError: it cannot be sent")

    monkeypatch.setattr(Stream, "_submit_batch", start_once)
    options = {"client": client, "functions": [NAMES], "on_error": "return"}
    (error,) = map_batches(packed("killed"), numbered(4)[3:], **options)
    assert len(tried) == 2 and str(error) == "batch 0: TypeError: it cannot be sent"


def test_a_batch_that_cannot_be_sent_is_named(client: Client) -> None:
    double = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    of_a_machine = vm.VirtualMachine(double)["main"](numbered(1)[0])
    first, second, third = map_batches(double, [of_a_machine, *numbered(2)], client=client, on_error="return")
    assert isinstance(first, RelvmBatchError) and "batch 0: RelvmTypeError: a Tensor cannot be copied" in str(first)
    assert (second.tolist(), third.tolist()) == ([0, 0, 0], [2, 2, 2])


def test_limits_and_threads_are_those_of_the_machines(client: Client) -> None:
    loop = build("def main(i: i64) -> i64 = if i > 0 then @main(i - 1) else i")
    small, large = map_batches(loop, [(1,), (10**9,)], client=client, on_error="return", max_steps=10**6)
    assert small == 0 and isinstance(large.__cause__, RelvmTimeoutError)


def test_an_executable_that_workers_may_not_run_ends_the_run(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_compiler() is None:
        pytest.skip("no C compiler")

    def move(folder: str | None) -> None:
        import os

        os.environ.pop("RELVM_CACHE_DIR", None)
        if folder:
            os.environ["RELVM_CACHE_DIR"] = folder

    executable = build("def main(x: f32[n]) -> f32[n] = add(x, add(x, x))", "c")
    client.run(move, str(tmp_path))
    try:
        with pytest.raises(RelvmUnsupportedError, match="native code that was not built on this machine"):
            list(map_batches(executable, numbered(2), client=client, on_error="return"))
        found = list(map_batches(executable, numbered(2), client=client, trust_native=True))
    finally:
        client.run(move, os.environ.get("RELVM_CACHE_DIR"))
    assert [each.tolist() for each in found] == [[0, 0, 0], [3, 3, 3]]


# ---- memory ----


def test_no_more_batches_are_on_their_way_than_may_be(client: Client) -> None:
    taken = 0

    def batches() -> Iterator[np.ndarray]:
        nonlocal taken
        for each in numbered(50):
            taken += 1
            yield each

    executable = build("def main(x: f32[n]) -> f32[n] = relu(x)")
    for ahead, most in ((1, 1), (5, 5), (None, 4)):  # default: two batches for each of two threads
        taken, seen = 0, []
        for given, _ in enumerate(map_batches(executable, batches(), client=client, ahead=ahead)):
            seen.append(taken - given)
        assert max(seen) == most and len(seen) == 50


def test_data_larger_than_the_memory_stream_through(client: Client) -> None:
    """The batches have 160 MB, and so do the results.  The scheduler also runs in this process."""
    executable = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    size, count = 4_000_000, 40
    before, most = resident_bytes(), 0
    for number, found in enumerate(
        map_batches(executable, (np.full(size // 4, k, np.float32) for k in range(count)), client=client, ahead=3)
    ):
        assert found[0] == 2 * number and found.nbytes == size
        most = max(most, resident_bytes() - before)
    assert most < 80e6, most


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_run_that_is_left_takes_its_tasks_away(client: Client) -> None:
    results = map_batches(packed("tried"), numbered(100), client=client, functions=[NAMES], ahead=20)
    next(results)
    results.close()
    deadline = time.monotonic() + 600
    while [key for key in tasks(client) if "relvm" in str(key)]:
        assert time.monotonic() < deadline, tasks(client)
        time.sleep(0.05)


def test_a_run_that_somebody_else_cancels_says_so(client: Client) -> None:
    loop = build("def main(i: i64) -> i64 = if i > 0 then @main(i - 1) else i")
    results = map_batches(loop, [(0,), (50_000_000,), (0,)], client=client)
    assert next(results) == 0
    client.cancel([Future(key, client) for key in tasks(client) if "relvm-batch" in str(key)], force=True)
    with pytest.raises(RelvmInterrupted, match="batch 1: the cluster lost the batch"):
        next(results)


def test_what_the_batches_raise_comes_behind_the_results_before_it(client: Client) -> None:
    def batches() -> Iterator[np.ndarray]:
        yield from numbered(3)
        raise OSError("the disk")

    results = map_batches(build("def main(x: f32[n]) -> f32[n] = x"), batches(), client=client, ahead=10)
    assert [int(next(results)[0]) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="the disk"):
        next(results)
    assert not list(results)


def test_a_client_that_is_closed_ends_the_run(client: Client) -> None:
    double = build("def main(x: f32[n]) -> f32[n] = add(x, x)")
    with Client(client.scheduler.address, set_as_default=False) as other:
        results = map_batches(double, itertools.cycle(numbered(1)), client=other)
        next(results)
    for run in (results, map_batches(double, numbered(1), client=other)):
        with pytest.raises(
            RelvmInterrupted, match=r"the client lost its connection to the cluster|the cluster lost the batch"
        ):
            list(run)


def test_a_batch_is_of_a_tuple_and_a_dict() -> None:
    with pytest.raises(RelvmTypeError, match="batch a: arguments: expected a tuple, got ndarray"):
        Batch("a", numbered(1)[0])
    with pytest.raises(RelvmTypeError, match="batch a: named: expected a dict, got int"):
        Batch("a", (), 5)
    with pytest.raises(RelvmTypeError, match="batch a: the keys of `named` must be parameter names, got 1"):
        Batch("a", (), {1: 3})


def tasks(client: Client) -> list:
    return client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))


def test_a_worker_has_an_executable_once(client: Client) -> None:
    def count() -> int:
        from relvm.distributed import runner

        return sum(digest == wanted for digest, *_ in runner._loaded)

    executable = build("def main(x: f32[n]) -> f32[n] = add(x, relu(x))")
    wanted = Runner(executable).digest
    for _ in range(2):
        list(map_batches(executable, numbered(20), client=client))
    assert set(client.run(count).values()) == {1}


# ---- the progress bar ----


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_shown_on_a_terminal_alone(
    client: Client, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")  # makes rich treat any stream as a terminal
    executable = build("def main(x: f32[n]) -> f32[n] = relu(x)")
    assert len(list(map_batches(executable, numbered(7), client=client, progress=True))) == 7
    assert len(list(map_batches(executable, iter(numbered(7)), client=client, progress=True))) == 7
    shown = capsys.readouterr()
    assert shown.out == ""
    if terminal:
        assert "7/7" in shown.err and "7/?" in shown.err
    else:
        assert shown.err == ""


# ---- invalid arguments ----


def test_what_does_not_fit_is_refused_by_the_call(client: Client, tmp_path: Path) -> None:
    double, x = build("def main(x: f32[n]) -> f32[n] = add(x, x)"), numbered(1)
    rows = da.ones((4, 4), chunks=(2, 2), dtype=np.float32)
    for error, message, arguments, options in [
        (RelvmTypeError, "expected an Executable, got str", ("m.rvm", x), {}),
        (RelvmNameError, "no function man; its functions are main; did you mean", (double, x), {"function": "man"}),
        (RelvmArgumentError, "on_error='skip': expected one of raise, return", (double, x), {"on_error": "skip"}),
        (RelvmArgumentError, "ahead is 0, expected an integer of at least 1", (double, x), {"ahead": 0}),
        (RelvmArgumentError, "retries is -1, expected an integer of at least 0", (double, x), {"retries": -1}),
        (RelvmArgumentError, "retries is 18446744073709551616, expected an", (double, x), {"retries": 1 << 64}),
        (RelvmTypeError, "client: expected a distributed.Client, got str", (double, x), {"client": "tcp://there"}),
        (RelvmTypeError, "functions: expected a list of names, got 'f'", (double, x), {"functions": "f"}),
        (RelvmTypeError, "functions: expected a list of names, got 5", (double, x), {"functions": 5}),
        (RelvmArgumentError, "num_threads is 0, expected an integer from 1 to 256", (double, x), {"num_threads": 0}),
        (
            RelvmArgumentError,
            "max_bytes is '1 GB', expected a 64-bit integer of at least 0",
            (double, x),
            {"max_bytes": "1 GB"},
        ),
        (RelvmArgumentError, "max_seconds is nan, expected a number", (double, x), {"max_seconds": float("nan")}),
        (RelvmTypeError, "a Dask array or files, got Delayed", (double, dask.delayed(abs)(1)), {}),
        (RelvmTypeError, "expected several arrays, got one", (double, x[0]), {}),
        (RelvmTypeError, "expected several arrays, got one", (double, vm.VirtualMachine(double)["main"](x[0])), {}),
        (RelvmTypeError, "expected arrays, a Dask array or files, got int", (double, 3), {}),
        (RelvmTypeError, "x: expected a Dask array, got ndarray", (double, {"x": x[0]}), {}),
        (RelvmTypeError, "expected at least one Dask array, got an empty dict", (double, {}), {}),
        (RelvmShapeError, "expected at least one axis, and blocks along the first axis only", (double, rows), {}),
        (RelvmShapeError, r"array b has blocks of sizes \(4,\); expected \(2, 2\)", (double, {
            "a": da.ones(4, chunks=2), "b": da.ones(4, chunks=4)}), {}),
        (RelvmArgumentError, "found no .npy or .npz files", (double, tmp_path), {}),
        (RelvmArgumentError, "test_map_batches.py: expected a .npy or .npz file", (double, __file__), {}),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            map_batches(*arguments, **{"client": client, **options})


def test_without_dask_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.split(".")[0] in ("dask", "distributed", "rich")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "distributed", None)
    executable = build("def main(x: f32[n]) -> f32[n] = relu(x)")
    with pytest.raises(RelvmUnsupportedError, match=r"running on a cluster requires Dask: pip install 'relvm\[dask\]'"):
        map_batches(executable, [])
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(RelvmUnsupportedError, match=r"the progress bar requires rich: pip install 'relvm\[dask\]'"):
        map_batches(executable, [], client=None, progress=True)
