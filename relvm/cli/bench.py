"""`relvm bench`: time a model, and compare it with other runtimes."""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names
from relvm.cli.arguments import Parser, Words
from relvm.cli.colors import Style
from relvm.cli.common_arguments import add_function, add_inputs, add_json, add_model, add_number, add_trust_native
from relvm.cli.inputs import input_values, signature_of
from relvm.cli.models import load_or_build
from relvm.cli.output import flush, note, put, put_json
from relvm.cli.progress import Progress
from relvm.compiler.adapt import adapt
from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, RelvmError, RelvmUnsupportedError
from relvm.system import processor_seconds
from relvm.vm import VirtualMachine

_BLOCKS = 7
_MIN_RUNS = 1  # in each block
_CALL_SECONDS = 20e-6  # the call from Python is a large part of a shorter run
_BUSY_SHARE = 0.1  # share of the processors that other programs may take


@dataclass(frozen=True)
class _Row:
    """A row of the table.

    runtime: the name of the runtime.
    first_seconds: the time from reading the model file to the first result.
    seconds: the median time of a run.
    quartiles: the times that a quarter and three quarters of the runs do not exceed.
    ratio: the median time of relvm divided by `seconds`.
    runs: the number of measured runs.
    """

    runtime: str
    first_seconds: float
    seconds: float
    quartiles: tuple[float, float]
    ratio: float
    runs: int


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm bench model.onnx --against onnxruntime"
    add_model(parser)
    parser.add_argument(
        "--against", action=Words, words=RUNTIMES, metavar="RUNTIME,...", help="onnxruntime, openvino, or both"
    )
    add_function(parser)
    about = "time to spend on each runtime (default: 2)"
    add_number(parser, "--seconds", about, type=float, least=0.001, most=86_400, default=2.0, metavar="S")
    add_number(parser, "--threads", "threads (default: all processors)", most=256)
    add_inputs(parser)
    parser.add_argument(
        "--exec-mode", choices=("bytecode", "compiled", "auto"), help="default: auto, timed as native code"
    )
    add_json(parser)
    add_trust_native(parser)


def run(options: argparse.Namespace) -> int:
    """Time a model on random inputs, in turns with other runtimes, and print a table."""
    against = options.against or []
    if against and not options.model.endswith(".onnx"):
        raise RelvmArgumentError(f"--against {','.join(against)}: only for .onnx models, got {options.model}")
    if against and options.weights:
        raise RelvmArgumentError(f"--against {','.join(against)}: other runtimes do not take --weights")
    options.random = True
    started = time.perf_counter()
    executable = adapt(load_or_build(options, exec_mode="auto"))
    machine = VirtualMachine(executable, num_threads=options.threads)
    function, signature = machine[options.function], signature_of(executable, options.function)
    built = time.perf_counter() - started
    values = input_values(options, signature, lambda values: function(*values))
    started = time.perf_counter()
    function(*values)
    first = {"relvm": built + time.perf_counter() - started}
    with contextlib.suppress(RelvmError), Progress("building", "C compilation"):
        machine.wait_compiled()
    runs: dict[str, Callable[[], Any]] = {"relvm": lambda: function(*values)}
    feed = {name: np.asarray(value) for name, value in zip(input_names(signature), values, strict=True)}
    for name in against:
        started = time.perf_counter()
        with Progress("loading", name):
            runs[name] = RUNTIMES[name](options.model, feed, options.threads)
            runs[name]()
        first[name] = time.perf_counter() - started
    if not options.json:
        put(f"{'runtime':<12} {'first s':>8} {'median ms':>10} {'quartiles ms':>17} {'relvm is':>13} {'runs':>6}")
        flush()
    before = _processor_times()
    rows: list[_Row] = []
    for name, times in _measure_runs(runs, options.seconds):
        low, median, high = statistics.quantiles(times, n=4)
        base = rows[0].seconds if rows else median
        rows.append(_Row(name, first[name], median, (low, high), base / median, len(times)))
        if not options.json:
            _put_row(rows[-1])
    others = _share_of_others(before, _processor_times())
    if options.json:
        put_json([asdict(row) for row in rows])
        return 0
    kinds = set(machine.function_kinds.values())
    note(f"{options.function} runs as {'native code' if kinds == {'native'} else 'bytecode'}")
    if base < _CALL_SECONDS:
        note(f"a run takes {base * 1e6:.0f} us, mostly for the call from Python; larger inputs tell more (--dim)")
    if others > _BUSY_SHARE:
        note(
            f"other programs took {others:.0%} of the processors; the times are too long, so end them and measure again"
        )
    return 0


def _put_row(row: _Row) -> None:
    compared = "" if row.runtime == "relvm" else f"{max(row.ratio, 1 / row.ratio):.2f}x "
    compared += "" if row.runtime == "relvm" else ("slower" if row.ratio > 1 else "faster")
    style: Style = "bad" if row.ratio > 1 else "good"
    spread = " - ".join(f"{each * 1e3:.3f}" for each in row.quartiles)
    times_shown = f"{row.first_seconds:8.3f} {row.seconds * 1e3:10.3f} {spread:>17}"
    line = f"{row.runtime:<12} {times_shown} {compared:>13} {row.runs:6}"
    put(line, styles={0: style} if compared else {})
    flush()


def _processor_times() -> tuple[float, float, float]:
    """Return the current time, the processor time of this process, and that of all processes, in seconds.

    The processor time of all processes is 0 if the system is not Linux, because only Linux states it.
    """
    return time.perf_counter(), time.process_time(), processor_seconds()


def _share_of_others(before: tuple[float, float, float], after: tuple[float, float, float]) -> float:
    """Return the share of the processors that other processes used between two calls of `_processor_times`.

    before, after: the results of the two calls.
    """
    elapsed, own, whole = (end - start for start, end in zip(before, after, strict=True))
    return max(0.0, whole - own) / (elapsed * (os.cpu_count() or 1))


def _measure_runs(runs: dict[str, Callable[[], Any]], seconds: float) -> Iterator[tuple[str, list[float]]]:
    """Run each function repeatedly, for about `seconds` seconds.  Yield its name and the times of its runs in seconds.

    The functions take turns several times, so that a slow phase of the machine affects all of them.  A function is
    yielded at the end of its last turn.  The progress line shows the median times of the turns before.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}

    def take_turn(name: str) -> None:
        end, count = time.perf_counter() + seconds / _BLOCKS, 0
        while count < _MIN_RUNS or time.perf_counter() < end:
            begun = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - begun)
            count += 1

    def step(name: str, block: int) -> str:
        known = (f"{each}: {statistics.median(found) * 1e3:.3f} ms" for each, found in times.items() if found)
        return ", ".join([f"{name}, turn {block + 1} of {_BLOCKS}", *known])

    with Progress("measuring") as progress:
        for block in range(_BLOCKS - 1):
            for name in runs:
                progress.step(step(name, block))
                take_turn(name)
    for name in runs:
        with Progress("measuring", step(name, _BLOCKS - 1)):
            take_turn(name)
        yield name, times[name]


def _onnxruntime(path: str, feed: dict[str, np.ndarray], threads: int | None) -> Callable[[], Any]:
    try:
        import onnxruntime
    except ImportError:
        raise RelvmUnsupportedError("--against onnxruntime: not installed: pip install onnxruntime") from None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads or 0
    settings.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def _openvino(path: str, feed: dict[str, np.ndarray], threads: int | None) -> Callable[[], Any]:
    try:
        import openvino
    except ImportError:
        raise RelvmUnsupportedError("--against openvino: not installed: pip install openvino") from None
    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads} if threads else {}
    request = openvino.compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(feed)


RUNTIMES = {"onnxruntime": _onnxruntime, "openvino": _openvino}
