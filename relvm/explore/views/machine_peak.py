"""Peak performance of this machine: the rate of arithmetic in registers, and the memory bandwidth of a copy."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from relvm.codegen.lower_to_lir import BUILTIN_PREFIX
from relvm.compiler.build import assemble
from relvm.compiler.find_compiler import find_compiler
from relvm.ir.dtypes import F32, I64
from relvm.ir.symbolic import dim_var
from relvm.kernels.loop_ir import Address, Buffer, Kernel, KernelBuilder, Literal
from relvm.lir.routine import CallStatement, LirModule, Register, Routine
from relvm.runtime.machine_limits import thread_count
from relvm.vm import Executable, VirtualMachine

_NUMBERS = 192  # RVM_PEAK_NUMBERS of csrc/codegen/peak_flops.h
_STEPS = 500_000  # takes a few milliseconds
_PARTS = 8  # rows for each thread, so that no thread waits long for another
_COPIED_BYTES = 64_000_000  # several times the size of most caches
_TRIES = 5
_SIGNATURE = {"main": {"params": [{"name": "x", "type": f"f32[n, {_NUMBERS}]"}], "result": "object", "attributes": {}}}


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a machine.  The rates of kernels are compared with them.

    Attributes
    ----------
    operations
        Multiplications and additions of f32 numbers in registers, per second.  None if there is no C compiler to
        measure them.
    bytes
        Bytes read plus bytes written per second by a copy of 64 MB.
    threads
        Number of threads used for the measurement.
    """

    operations: float | None
    bytes: float
    threads: int = 1


def measured_peaks(threads: int = 1) -> Peaks:
    """Return the peak rates of this machine, measured with `threads` threads.

    A measurement takes about a second.  Its result is cached for each number of threads.

    Raises
    ------
    RelvmArgumentError
        `threads` is not an integer of 1 to 256.
    RelvmToolchainError
        The C compiler failed.
    """
    return _measured(thread_count("threads", threads))


@functools.cache
def _measured(threads: int) -> Peaks:
    return Peaks(arithmetic_rate(threads) if find_compiler() else None, copy_bandwidth(threads), threads)


def arithmetic_rate(threads: int = 1) -> float:
    """Measure the multiplications and additions of f32 numbers in registers, per second.

    The result is the rate of the fastest of several runs.  The measured kernel is compiled like all other kernels.

    Raises
    ------
    RelvmArgumentError
        `threads` is not an integer of 1 to 256.
    RelvmToolchainError
        There is no C compiler, or it failed.
    """
    machine = VirtualMachine(_multiply_adds(), num_threads=threads)
    numbers = np.ones((_PARTS * threads, _NUMBERS), np.float32)
    runs = [machine.profile("main", numbers).rows for _ in range(_TRIES)]
    seconds = min(row.seconds for rows in runs for row in rows if row.kind == "kernel")
    return 2 * _STEPS * numbers.size / seconds


def copy_bandwidth(threads: int = 1) -> float:
    """Measure the bytes read plus bytes written per second while `threads` threads copy memory.

    The result is the rate of the fastest of several copies of 64 MB.  All copies take about a tenth of a second.
    """
    threads = thread_count("threads", threads)
    source = np.ones(_COPIED_BYTES, np.uint8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_TRIES + 1):  # the first copy maps all pages
            started = time.perf_counter()
            list(pool.map(lambda part: np.copyto(*part), parts))
            best = min(best, time.perf_counter() - started)
    return 2 * _COPIED_BYTES / best


def _multiply_adds() -> Executable:
    """Return an executable that applies many multiply-adds in place to an array of shape (rows, _NUMBERS).

    The rows are distributed over the threads.
    """
    rows = Buffer("rows_", F32, (dim_var("count"), _NUMBERS))
    k = KernelBuilder()
    factor, added = Literal(0.5, F32), Literal(1.0, F32)
    with k.parallel(rows.shape[0], 8 * _STEPS * _NUMBERS) as (first, last), k.loop(last, start=first) as row:
        k.invoke("rvm_multiply_adds", Address(rows, row * _NUMBERS), Literal(_STEPS, I64), factor, added)
    kernel = Kernel("multiply_adds", (), (rows,), k.finish(), "the peak of arithmetic")
    end = BUILTIN_PREFIX + "copy"
    body = (CallStatement(kernel.name, (Register(0),), None, kernel=True), CallStatement(end, (Register(0),), 1))
    lir = LirModule((Routine("main", ("x",), 2, body),), (kernel,), ("main", kernel.name, end), (), _SIGNATURE)
    return Executable.from_program(assemble(lir, ()))
