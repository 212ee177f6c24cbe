"""Kernels on any number of threads have bit-identical results, also in forked processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmArgumentError
from relvm.frontend.text import parse_module

RANDOM = np.random.default_rng(5)

# One function for each kind of parallel loop, with sizes that are large enough to use several threads.
PROGRAMS = {
    "elementwise": ("def main(x: f32[n]) -> f32[n] { return tanh(multiply(x, x)) }", [(300_000,)]),
    "two loops": (
        "def main(x: f32[n, m], y: f32[m]) -> f32[m, n] { return transpose(add(x, y)) }",
        [(300, 700), (700,)],
    ),
    "rows": ("def main(x: f32[n, m]) -> f32[n, m] { return softmax(x) }", [(700, 300)]),
    "columns": ("def main(x: f32[n, m]) -> f32[m] { return sum(x, axes=(0,)) }", [(300, 2000)]),
    "product": (
        "def main(x: f32[n, k], y: f32[k, m]) -> f32[n, m] { return relu(matmul(x, y)) }",
        [(301, 700), (700, 131)],
    ),
    "products": (
        "def main(x: f32[b, n, k], y: f32[b, k, m]) -> f32[b, n, m] { return matmul(x, y) }",
        [(7, 31, 90), (7, 90, 70)],
    ),
    "rows of both": (
        "def main(x: f32[2, 512], y: f32[m, 512]) -> f32[2, m] { return matmul(x, y, transpose_b=true) }",
        [(2, 512), (3000, 512)],
    ),
    "convolution": (
        "def main(x: f32[n, 8, h, w], y: f32[32, 8, 3, 3]) => { return conv(x, y, pads=(1, 1, 1, 1)) }",
        [(2, 8, 41, 37), (32, 8, 3, 3)],
    ),
    "depthwise": (
        "def main(x: f32[n, 40, h, w], y: f32[40, 1, 3, 3]) -> f32[n, 40, h, w] "
        "{ return conv(x, y, pads=(1, 1, 1, 1), groups=40) }",
        [(2, 40, 41, 37), (40, 1, 3, 3)],
    ),
    "pooling": (
        "def main(x: f32[n, 40, 81, 77]) => { return max_pool(x, kernel=(3, 3), strides=(2, 2)) }",
        [(2, 40, 81, 77)],
    ),
    "concat": ("def main(x: f32[n, 300], y: f32[n, 200]) => { return concat(x, y, axis=1) }", [(500, 300), (500, 200)]),
    "sequences of both directions": (
        """def main(x: f32[s, n, 456], r: f32[2, 57, 228], p: f32[2, 0], h: f32[2, n, 57]) => {
            return lstm(x, r, p, h, h, const(i32[0], []), direction="bidirectional").0 }""",
        [(9, 11, 456), (2, 57, 228), (2, 0), (2, 11, 57)],
    ),
    "columns of steps": (
        """def main(x: f32[s, n, 1536], r: f32[1, 512, 1536], b: f32[1, 512], h: f32[1, n, 512]) => {
            return gru(x, r, b, h, const(i32[0], []), reset_after=true).0 }""",
        [(3, 1, 1536), (1, 512, 1536), (1, 512), (1, 1, 512)],
    ),
    "columns of steps of some sequences": (
        """def main(x: f32[s, n, 1536], r: f32[1, 512, 1536], b: f32[1, 512], h: f32[1, n, 512]) => {
            return gru(x, r, b, h, const(i32[0], [])).0 }""",
        [(3, 3, 1536), (1, 512, 1536), (1, 512), (1, 3, 512)],
    ),
    "pad": ("def main(x: f32[n, 300]) => { return pad(x, pads=(1, 2, 3, 4), value=7.0) }", [(500, 300)]),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def executables(request: pytest.FixtureRequest) -> Iterator[tuple]:
    text, shapes = PROGRAMS[request.param]
    inputs = [RANDOM.standard_normal(shape).astype(np.float32) for shape in shapes]
    yield {mode: vm.build(parse_module(text), mode) for mode in MODES}, inputs


def test_results_do_not_depend_on_the_number_of_threads(executables: tuple) -> None:
    built, inputs = executables
    results = {
        np.asarray(vm.VirtualMachine(executable, num_threads=threads)["main"](*inputs)).tobytes()
        for executable in built.values()
        for threads in (1, 2, 3, 8)
    }
    assert len(results) == 1


def test_machines_on_several_threads_share_the_workers() -> None:
    text, shapes = PROGRAMS["product"]
    executable = vm.build(parse_module(text))
    inputs = [RANDOM.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = np.asarray(vm.VirtualMachine(executable, num_threads=1)["main"](*inputs))
    differing = []

    def run() -> None:
        machine = vm.VirtualMachine(executable, num_threads=3)
        for _ in range(20):
            if not np.array_equal(np.asarray(machine["main"](*inputs)), expected):
                differing.append(threading.get_ident())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not differing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_of_fork_has_workers_of_its_own() -> None:
    text, shapes = PROGRAMS["elementwise"]
    machine = vm.VirtualMachine(vm.build(parse_module(text)), num_threads=3)
    x = RANDOM.standard_normal(shapes[0]).astype(np.float32)
    expected = np.asarray(machine["main"](x))
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if np.array_equal(np.asarray(machine["main"](x)), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(np.asarray(machine["main"](x)), expected)


@pytest.mark.parametrize("number", [0, -1, 257, 1.5, True, "2"])
def test_a_wrong_number_is_refused(number: object) -> None:
    executable = vm.build(parse_module("def main(x: i64) -> i64 { return x }"))
    with pytest.raises(RelvmArgumentError, match=r"num_threads is .*, expected an integer from 1 to 256"):
        vm.VirtualMachine(executable, num_threads=number)


def test_the_environment_names_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = vm.build(parse_module("def main(x: i64) -> i64 { return x }"))
    monkeypatch.setenv("RELVM_NUM_THREADS", "3")
    assert vm.VirtualMachine(executable)["main"](4) == 4
    monkeypatch.setenv("RELVM_NUM_THREADS", "all")
    with pytest.raises(RelvmArgumentError, match=r"RELVM_NUM_THREADS is 'all', expected an integer from 1 to 256"):
        vm.VirtualMachine(executable)
