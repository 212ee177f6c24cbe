"""Peak performance of this machine: the rate of arithmetic in registers, and the memory bandwidth of a copy."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from relvm._native import lib
from relvm.compiler.build import assemble
from relvm.compiler.disk_cache import read, write
from relvm.compiler.find_compiler import find_compiler
from relvm.data_classes import dataclass
from relvm.errors import expect_type
from relvm.ir.dtypes import F32
from relvm.ir.loop_ir import Address, Buffer, Literal
from relvm.ir.symbolic import dim_var
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.lir.routine import COPY, CallStatement, FunctionKey, LirModule, Register, Routine
from relvm.runtime.machine_limits import thread_count
from relvm.tables import kernel_constant
from relvm.vm import Executable, VirtualMachine

_NUMBERS = kernel_constant("PEAK_NUMBERS")
_STEPS = 500_000  # takes a few milliseconds
_PARTS = 8  # rows for each thread, for an even distribution of the work
_COPIED_BYTES = 64_000_000  # several times the size of most caches
_TRIES = 5
_BUSY_SHARE = 0.8  # a measurement that gets a smaller share of the processor time was disturbed by other programs
_SIGNATURE = {"main": {"params": [{"name": "x", "type": f"f32[n, {_NUMBERS}]"}], "result": "object", "attributes": {}}}


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a machine, with which `draw_profile` and `format_profile` compare the rates of kernels.

    Attributes
    ----------
    operations
        Multiplications and additions of f32 numbers in registers, per second.  None if there is no C compiler to
        measure them.
    bytes
        Memory bandwidth: bytes read plus bytes written per second while 64 MB are copied.
    threads
        Number of threads used for the measurement.
    processor_share
        The share of the processor time that the measurement got.  It is about 1, unless other programs ran.
    """

    operations: float | None
    bytes: float
    threads: int = 1
    processor_share: float = 1.0

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs kept the processors busy during the measurement, so that the rates are estimates."""
        return self.processor_share < _BUSY_SHARE


def measured_peaks(threads: int = 1, *, again: bool = False) -> Peaks:
    """Return the peak rates of this machine, measured with `threads` threads.

    A measurement takes about a second.  The result is stored in the cache folder (`relvm cache`) and reused by later
    calls.  If other programs keep the processors busy during the measurement, the rates are estimated from the
    processor time of the measurement instead of the elapsed time, and the result is not stored.

    Parameters
    ----------
    threads
        Number of threads.
    again
        Whether to measure even if the cache folder has a result.

    Raises
    ------
    RelvmArgumentError
        `threads` is not an integer from 1 to 256.
    RelvmTypeError
        `again` is not a bool.
    RelvmToolchainError
        The C compiler failed.
    """
    threads = thread_count("threads", threads)
    expect_type("again", again, bool, "True or False")
    has_compiler = find_compiler() is not None
    machine = platform.node(), platform.machine(), os.cpu_count(), lib.rvm_cpu_features(), has_compiler, threads
    name = hashlib.sha256(repr(machine).encode()).hexdigest()
    if not again and (stored := _read_peaks(name, threads)):
        return stored
    operations, share = _arithmetic_rate(threads) if has_compiler else (None, 1.0)
    copied, copy_share = _copy_bandwidth(threads)
    peaks = Peaks(operations, copied, threads, min(share, copy_share, 1.0))
    if not peaks.is_disturbed:
        write("peaks", name, json.dumps({"operations": operations, "bytes": copied}).encode())
        peaks = replace(peaks, processor_share=1.0)
    return peaks


def _read_peaks(name: str, threads: int) -> Peaks | None:
    """Read the peaks that `measured_peaks` stored in the cache file `name`.  Return None if there is no valid file.

    threads: the number of threads used for the measurement.
    """
    try:
        match json.loads(read("peaks", name) or b""):
            case {"operations": float() | None as operations, "bytes": float(copied)}:
                return Peaks(operations, copied, threads)
    except ValueError:
        pass
    return None


def _best_time(run: Callable[[], float], threads: int) -> tuple[float, float]:
    """Measure the shortest time of several runs, and the CPU utilization of this process during the runs.

    The utilization is about 1 if all processors that the runs need were available.  If it is well below 1, other
    programs kept the processors busy, so that the elapsed times are too long.  The result is then the shortest
    processor time of a run, divided by the number of processors that work in it.

    run: a function that does one run and returns its time.   threads: the number of threads that work in a run.
    """
    processors = min(threads, os.cpu_count() or 1)
    elapsed, used = [], []
    started = time.perf_counter()
    for _ in range(_TRIES):
        before = time.process_time()
        elapsed.append(run())
        used.append((time.process_time() - before) / processors)
    share = sum(used) / (time.perf_counter() - started)
    return min(elapsed if share >= _BUSY_SHARE else map(min, elapsed, used)), share


def arithmetic_rate(threads: int = 1) -> float:
    """Measure how many f32 multiplications and additions this machine can do per second if all operands are in
    registers.

    The result is the rate of the fastest of several runs of a kernel.  This kernel is compiled like all other kernels.

    threads: the number of threads that compute.

    Raises
    ------
    RelvmArgumentError
        `threads` is not an integer from 1 to 256.
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    return _arithmetic_rate(threads)[0]


def _arithmetic_rate(threads: int) -> tuple[float, float]:
    """Measure how many f32 multiplications and additions `threads` threads can do per second with operands in
    registers.

    Return this rate, and the CPU utilization of this process during the measurement (about 1 if no other program ran).
    """
    machine = VirtualMachine(_multiply_adds(), num_threads=threads)
    numbers = np.ones((_PARTS * threads, _NUMBERS), np.float32)

    def run() -> float:
        return sum(row.seconds for row in machine.profile("main", numbers).rows if row.kind == "kernel")

    seconds, share = _best_time(run, threads)
    return 2 * _STEPS * numbers.size / seconds, share


def copy_bandwidth(threads: int = 1) -> float:
    """Measure the bytes read plus bytes written per second while `threads` threads copy memory.

    Memory of 64 MB is copied several times, and the result is the rate of the fastest copy.  The measurement takes
    about a tenth of a second.

    Parameters
    ----------
    threads
        Number of threads.
    """
    return _copy_bandwidth(thread_count("threads", threads))[0]


def _copy_bandwidth(threads: int) -> tuple[float, float]:
    """Measure the bytes read plus bytes written per second while `threads` threads copy memory.

    Return this rate, and the CPU utilization of this process during the measurement (about 1 if no other program ran).
    """
    source = np.ones(_COPIED_BYTES, np.uint8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:

        def run() -> float:
            started = time.perf_counter()
            list(pool.map(lambda part: np.copyto(*part), parts))
            return time.perf_counter() - started

        run()  # warm-up: the first copy maps all pages
        seconds, share = _best_time(run, threads)
    return 2 * _COPIED_BYTES / seconds, share


def _multiply_adds() -> Executable:
    """Return an executable for measuring the arithmetic rate.

    The executable applies many multiply-adds in place to an array of shape (rows, _NUMBERS).  The rows are distributed
    over the threads.
    """
    rows = Buffer("rows_", F32, (dim_var("count"), _NUMBERS))
    k = KernelBuilder()
    factor, addend = Literal(0.5, F32), Literal(1.0, F32)
    with k.parallel(rows.shape[0], 8 * _STEPS * _NUMBERS) as (first, last), k.loop(last, start=first) as row:
        k.invoke("rvm_multiply_adds", x=Address(rows, row * _NUMBERS), steps=_STEPS, factor=factor, addend=addend)
    kernel = Kernel("multiply_adds", (), (rows,), k.finish(), "the peak of arithmetic")
    callee = FunctionKey("kernel", kernel.name)
    body = (CallStatement(callee, (Register(0),), None, kernel=True), CallStatement(COPY, (Register(0),), 1))
    main = Routine("main", ("x",), 2, body)
    lir = LirModule((main,), (kernel,), (main.key, callee, COPY), (), _SIGNATURE)
    return Executable.from_program(assemble(lir, ()))
