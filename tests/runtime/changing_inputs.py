"""Calls of operators while another thread rewrites their inputs.  test_changing_inputs.py runs it.

Usage: python -m changing_inputs EXEC_MODE TARGET
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from relvm import vm
from relvm.errors import RelvmError
from relvm.frontend.text import parse_module

CALLS = 60
TEXT = """
def gather(x: f32[n], i: i64[k]) = gather(x, i)
def fused(x: f32[n], i: i64[k]) = add(gather(x, i), gather(x, i))
def elements(x: f32[n], i: i64[k]) = gather_elements(x, i, axis=0)
def rows(x: f32[n], i: i64[k, 1]) = gather_nd(x, i, depth=1)
def scatter(x: f32[n], i: i64[k], u: f32[k]) = scatter_elements(x, i, u, axis=0)
def reverse(x: f32[t, b], i: i64[b]) = reverse_sequence(x, i)
def doubled(i: i64[k]) = add(i, i)
def expand(x: f32[1], i: i64[2]) = broadcast_to(x, tensor_to_shape(i))
"""


@contextmanager
def rewriting(array: np.ndarray, values: tuple[int, int]) -> Iterator[None]:
    """Run a thread that writes each of two values to one element of an array, over and over."""
    is_done = threading.Event()

    def rewrite() -> None:
        flat = array.reshape(-1)
        while not is_done.is_set():
            for value in values:
                flat[-1] = value

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def main(mode: str, target: str) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(TEXT), exec_mode=mode, target=target))
    x, many = np.arange(16, dtype=np.float32), 20_000
    far = 1 << 40
    for name in ("gather", "fused", "elements", "rows", "scatter", "reverse"):
        indices = np.full(many, 3, np.int64)
        args = {
            "rows": (x, indices.reshape(-1, 1)),
            "scatter": (x, indices, np.ones(many, np.float32)),
            "reverse": (np.ones((4, many), np.float32), indices),
        }.get(name, (x, indices))
        expected = machine[name](*args).numpy()
        with rewriting(indices, (far, 3)):
            for _ in range(CALLS):
                try:
                    result = machine[name](*args).numpy()
                except RelvmError:
                    continue
                assert np.array_equal(result, expected), name
    indices = np.full(10 * many, 1, np.int64)
    for _ in range(CALLS):  # a result of the machine, of which Python gets a view during the next call
        result = machine["doubled"](indices)
        thread = threading.Thread(target=lambda result=result: result.__setitem__(-1, far))
        thread.start()
        with contextlib.suppress(RelvmError):
            assert (machine["gather"](x, result).numpy() == 2).all()
        thread.join()
    sizes = np.array([2, 3], np.int64)
    with rewriting(sizes, (-1, 3)):
        for _ in range(CALLS):
            try:
                assert machine["expand"](x[:1], sizes).shape == (2, 3)
            except RelvmError:
                continue
    print("no access outside of a tensor")


if __name__ == "__main__":
    main(*sys.argv[1:])
