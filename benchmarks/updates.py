"""Time of an update of one row of a large tensor in a loop:   python -m benchmarks.updates

A loop writes one row of a tensor of 16 MB in each iteration.  The time of an update is the difference between a loop of
many iterations and one of a single iteration, divided by the number of iterations.  In the second program, each
iteration also uses the old tensor, which therefore has to be copied.

The last rows are the times of a call that updates one row of a donated argument.  If JAX is installed, the same update
by `jax.jit` and by `relvm.jax.jit` follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module

_SHAPE = 4096, 1024
_PROGRAM = """
def loop(n: i64, x: f32[4096, 1024], row: f32[1, 1024], first: f32[1, 1024]) -> f32[4096, 1024] {
  return if n < 1 then x else {
    y = scatter_nd(x, const(i64[1, 1], [[3]]), row, depth=1)
    next = FIRST
    return @loop(n - 1, y, row, next)
  }
}

def main(n: i64, x: f32[4096, 1024], row: f32[1, 1024]) -> f32[4096, 1024] = @loop(n, x, row, row)
"""
# The programs: the expression FIRST, and the number of updates.
_PROGRAMS = {
    "only updates": ("first", 100_000),
    "the old tensor is used": ("add(slice(x, begin=(0,), end=(1,)), slice(y, begin=(0,), end=(1,)))", 100),
}
_DONATED = """
def main(x: f32[4096, 1024], row: f32[1, 1024]) -> f32[4096, 1024] =
  scatter_nd(x, const(i64[1, 1], [[3]]), row, depth=1)
"""
_MODES = (("bytecode", "bytecode"), ("bytecode", "c"), ("compiled", "c"))


def main() -> None:
    x, row = np.zeros(_SHAPE, np.float32), np.ones((1, _SHAPE[1]), np.float32)
    print("| program | mode | kernels | microseconds an update |\n|---|---|---|---|")
    for name, (first, updates) in _PROGRAMS.items():
        module = parse_module(_PROGRAM.replace("FIRST", first))
        for mode, target in _MODES:
            run = vm.VirtualMachine(vm.build(module, mode, target))["main"]
            once, often = (_seconds(lambda count=count, run=run: run(count, x, row)) for count in (1, updates + 1))
            kernels = "bytecode" if target == "bytecode" else "C"
            print(f"| {name} | {mode} | {kernels} | {(often - once) * 1e6 / updates:.3g} |", flush=True)
    _donated_calls()


def _donated_calls() -> None:
    """Print the times of calls that update one row of a donated argument."""
    memory, row = np.zeros(_SHAPE[0] * _SHAPE[1] + 16, np.float32), np.ones((1, _SHAPE[1]), np.float32)
    start = -memory.ctypes.data % 64 // memory.itemsize  # other arrays are copied
    x = memory[start : start + _SHAPE[0] * _SHAPE[1]].reshape(_SHAPE)
    module = parse_module(_DONATED)
    for mode, target in _MODES:
        run = vm.VirtualMachine(vm.build(module, mode, target))["main"]
        kernels = "bytecode" if target == "bytecode" else "C"
        microseconds = _microseconds(lambda run=run: run(vm.Donated(x), row))
        print(f"| call with a donated argument | {mode} | {kernels} | {microseconds:.3g} |")
    try:
        import jax
    except ImportError:
        return
    import relvm.jax

    for name, jit in (("jax.jit", jax.jit), ("relvm.jax.jit", relvm.jax.jit)):
        update = jit(lambda x, row: x.at[3].set(row), donate_argnums=0)
        state = [jax.numpy.zeros(_SHAPE), jax.numpy.ones(_SHAPE[1])]

        def call(update=update, state=state) -> None:
            state[0] = update(*state)
            state[0].block_until_ready()

        print(f"| call with a donated argument | {name} | C | {_microseconds(call):.3g} |")


def _microseconds(call: Callable[[], object], count: int = 40) -> float:
    """Return the time of a call, from the fastest of many blocks of calls, because other programs can run."""
    call()
    return _seconds(lambda: [call() for _ in range(count)], 250) * 1e6 / count


def _seconds(call: Callable[[], object], repetitions: int = 5) -> float:
    """Return the least time of several calls."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
