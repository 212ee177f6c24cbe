"""Soak test: build, run, save, load and discard programs for a long time, and detect leaked resources.

    PYTHONPATH=tests:tests/vm python -m soak --minutes 60

prints the resources of the process each minute.  It fails if resident memory grows by more than 1 % from the third to
the last quarter of the samples, or if the number of descriptors, threads, mapped libraries, machines or executables
grows at all.  tests/vm/test_soak.py does the same work for some seconds and checks the counts more strictly.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_programs.generator import Programs, programs
from random_programs.outcomes import check
from support.error_examples import examples, failure_of, prelude
from support.modes import ALL_MODES, MODES, assert_same_bits, plain, stepped
from support.simple_programs import Generator, arguments

from relvm import vm
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.text import parse_module

DIFFERENT = 40  # number of different modules of each kind, so that most builds find compiled code in the cache
GROWTH = 0.01  # allowed relative growth of resident memory from the third quarter of the samples to the last

Activity = Callable[[random.Random, Path], None]
ACTIVITIES: dict[str, Activity] = {}


def activity(work: Activity) -> Activity:
    """Register a function as an activity, which is repeated with random choices and a folder for its files."""
    ACTIVITIES[work.__name__] = work
    return work


def plain_module(choose: random.Random) -> Generator:
    """Choose one of DIFFERENT generators of modules."""
    return Generator(choose.randrange(DIFFERENT), functions=3, bindings=6)


def some_arguments(choose: random.Random) -> tuple:
    """Return arguments of random sizes for any function of a module from `plain_module`."""
    return arguments(choose.randrange(1 << 30), choose.randrange(40), choose.randrange(1, 60))


@activity
def programs_with_effects(choose: random.Random, folder: Path) -> None:
    """Run random programs (tests/vm/random_programs) with scalars, closures, recursion, side effects and failures."""

    @seed(choose.randrange(DIFFERENT))
    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def run(made: Programs) -> None:
        check(made.module, made.runs, [(mode, "numpy") for mode in ALL_MODES])

    run()


@activity
def tensors_of_random_shapes(choose: random.Random, folder: Path) -> None:
    """Run compiled kernels in both modes, and compare the results bit by bit."""
    module = plain_module(choose).module()
    machines = [vm.VirtualMachine(vm.build(module, mode), num_threads=choose.choice((1, 2))) for mode in MODES]
    for name in machines[0].functions:
        given = some_arguments(choose)
        one, other = (plain(machine[name](*given)) for machine in machines)
        assert_same_bits(one, other)


@activity
def files(choose: random.Random, folder: Path) -> None:
    """Save, load and overwrite an executable, then damage the file and check that it is rejected."""
    executable = vm.build(plain_module(choose).module(), choose.choice(MODES), choose.choice(("c", "numpy")))
    path = folder / "model.rvm"
    executable.save(path)
    for _ in range(3):
        loaded = vm.load(path, check_data=True)
        machine = vm.VirtualMachine(loaded)
        machine[machine.functions[0]](*some_arguments(choose))
        loaded.save(path)
    vm.Executable.check(path)
    content = bytearray(path.read_bytes())
    content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    path.write_bytes(content)
    with contextlib.suppress(RelvmFormatError, RelvmUnsupportedError):  # the version was changed
        vm.load(path, trust_native=True, check_data=True)
        raise AssertionError("a file with a bit changed was loaded")


@activity
def failures(choose: random.Random, folder: Path) -> None:
    """Run the example of every error class except Dask's, because a closed Dask client leaks about 50 kB."""
    namespace = prelude()
    for example in examples():
        if example.heading != "RelvmBatchError":
            failure_of(example, namespace)


@activity
def models(choose: random.Random, folder: Path) -> None:
    """Import and build an ONNX model, and run it with random sizes."""
    from frontend.onnx_models import parse_model

    from relvm.frontend.onnx import from_onnx

    model = parse_model(
        """agraph (float[N, 3, H, W] x, float[8, 3, 3, 3] w) => (float[N, M] y) {
             a = Conv <pads = [1, 1, 1, 1]> (x, w)
             b = Relu (a)
             c = GlobalAveragePool (b)
             y = Flatten (c)
           }"""
    )
    sizes = [choose.randrange(1, 4), 3, choose.randrange(3, 20), choose.randrange(3, 20)]
    x, w = np.ones(sizes, np.float32), np.ones((8, 3, 3, 3), np.float32)
    for mode in MODES:
        assert vm.VirtualMachine(vm.build(from_onnx(model), mode))["main"](x, w).shape == (sizes[0], 8)


@activity
def onlookers(choose: random.Random, folder: Path) -> None:
    """Use a debugger that stops at every instruction, an instrument, profiles, timings and pre-bound inputs."""
    module = plain_module(choose).module()
    machine = vm.VirtualMachine(vm.build(module, choose.choice(MODES), debug=choose.random() < 0.5))
    name, given, seen = machine.functions[0], some_arguments(choose), []
    stepped(machine.executable)[name](*given)
    machine.set_instrument(lambda *what: seen.append(len(what)))
    machine[name](*given)
    machine.set_instrument(None)
    str(machine.profile(name, *given))
    portable = vm.VirtualMachine(vm.build(plain_module(choose).module(), target="bytecode", exec_mode="bytecode"))
    str(portable.profile(portable.functions[0], *some_arguments(choose), kernels=True))
    machine.time_evaluator(name, number=2)(*given)
    machine.set_input(name, *given)
    machine.invoke_stateful(name)
    machine.get_outputs(name)


@activity
def threads(choose: random.Random, folder: Path) -> None:
    """Run one executable on four threads, each with its own machine."""
    executable = vm.build(plain_module(choose).module(), choose.choice(MODES))
    name, given, results = vm.VirtualMachine(executable).functions[0], some_arguments(choose), []

    def work() -> None:
        machine = vm.VirtualMachine(executable, num_threads=2)
        results.extend(plain(machine[name](*given)) for _ in range(3))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 12
    for result in results:
        assert_same_bits(result, results[0])


@activity
def objects_in_circles(choose: random.Random, folder: Path) -> None:
    """Create a reference cycle: the host stores closures, which refer to a machine, which refers to host functions."""
    kept: list = []
    vm.register_func("soak.keep", lambda *given: kept.extend(given), override=True)
    text = """
    def main(items: list[i64], x: f32[n]) => object {
      f = fn (i: i64) -> i64 { return i + list_length(items) }
      return packed("soak.keep", f, x) : object
    }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), target="numpy"))
    machine["main"](list(range(choose.randrange(5))), np.ones(choose.randrange(1, 100_000), np.float32))
    assert kept[0](1) >= 1
    kept.append(machine)


# ---- resources of the process ----


@dataclass(frozen=True)
class Held:
    """The resources that a process holds.

    resident_bytes: resident memory.  allocated_bytes: memory allocated with malloc, or 0 if unknown.  descriptors: the
    number of open file descriptors.  libraries: the number of mapped file regions.  machines, executables: the numbers
    of Python objects.
    """

    resident_bytes: int
    allocated_bytes: int
    descriptors: int
    threads: int
    libraries: int
    machines: int
    executables: int


_MALLINFO2 = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _MALLINFO2)


def held() -> Held:
    """Return the resources held after Python collects its garbage and the C library returns free memory."""
    gc.collect()
    _of_c_library("malloc_trim", ctypes.c_int)(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    kinds = [type(each) for each in gc.get_objects()]
    return Held(
        resident_bytes=int(status["VmRSS"].split()[0]) * 1024,
        allocated_bytes=_allocated_bytes(),
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=threading.active_count(),
        libraries=len([row for row in maps if len(row) == 6 and row[5].startswith("/")]),
        machines=kinds.count(vm.VirtualMachine),
        executables=kinds.count(vm.Executable),
    )


def _of_c_library(name: str, result: type) -> Callable[..., Any]:
    """Return a function of glibc, or a function that returns zeros if the C library does not have it."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        return lambda *_: result()
    function.restype = result
    return function


def _allocated_bytes() -> int:
    """Return the bytes allocated with malloc in all arenas, including mapped blocks."""
    found = _of_c_library("mallinfo2", _Mallinfo2)()
    return found.uordblks + found.hblkhd


# ---- the work ----


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """Create a temporary folder as a context manager.

    Within the context, the folder is also relvm's cache, and standard output is discarded.
    """
    before = os.environ.get("RELVM_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="relvm-soak-") as folder, contextlib.redirect_stdout(io.StringIO()):
        os.environ["RELVM_CACHE_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            os.environ.pop("RELVM_CACHE_DIR")
            if before is not None:
                os.environ["RELVM_CACHE_DIR"] = before


def do(number: int, name: str, folder: Path) -> None:
    """Run the activity `name` once.  `number` is the seed of its random choices."""
    choose = random.Random(f"{name} {number}")
    try:
        ACTIVITIES[name](choose, folder)
    except BaseException as error:
        error.add_note(f"soak: {name}, number {number}")
        raise
    for thread in threading.enumerate():
        if thread.name == "relvm upgrade":
            thread.join()


def repeat(name: str, number: int, seconds: float) -> tuple[Held, Held, int]:
    """Repeat activity `name` with the same choices.

    Return the resources held before and after, and the number of repetitions.
    """
    with workshop() as folder:
        for _ in range(2):  # fill all caches
            do(number, name, folder)
        before, end, rounds = held(), time.monotonic() + seconds, 0
        while rounds < 3 or time.monotonic() < end:
            do(number, name, folder)
            rounds += 1
        return before, held(), rounds


def leave_behind() -> tuple[Held, Held, int]:
    """Hold three machines, a file descriptor and a large result.

    Return the resources held before and meanwhile, and the size of the result in bytes.
    """
    executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="numpy")
    before = held()
    machines, descriptor = [vm.VirtualMachine(executable) for _ in range(3)], os.dup(0)
    tensor = machines[0]["main"](np.ones(1_000_000, np.float32))
    after = held()
    os.close(descriptor)
    return before, after, tensor.numpy().nbytes


def complaints(samples: Sequence[Held]) -> list[str]:
    """Return a description of each quantity that grew between the third and the last quarter of the samples."""
    quarter = max(1, len(samples) // 4)
    earlier, later = samples[-2 * quarter : -quarter], samples[-quarter:]
    before, after = (statistics.median(each.resident_bytes for each in some) for some in (earlier, later))
    found = []
    if after > before * (1 + GROWTH):
        found.append(f"resident memory: {before / 1e6:.1f} MB, then {after / 1e6:.1f} MB")
    for what in ("descriptors", "threads", "libraries", "machines", "executables"):
        counts = [max(getattr(each, what) for each in some) for some in (earlier, later)]
        if counts[1] > counts[0]:
            found.append(f"{what}: {counts[0]}, then {counts[1]}")
    return found


def soak(minutes: float, show: Callable[[str], None]) -> list[str]:
    """Run all activities for `minutes` minutes.  Return a description of each quantity that grew."""
    began, number, samples = time.monotonic(), 0, []
    show("minute  rounds  resident MB  allocated MB  descriptors  threads  libraries  machines  executables")
    with workshop() as folder:
        while (minute := (time.monotonic() - began) / 60) < minutes:
            for name in ACTIVITIES:
                do(number, name, folder)
            number += 1
            if minute >= len(samples) * min(1, minutes / 20):
                now = held()
                samples.append(now)
                counts = (now.descriptors, now.threads, now.libraries, now.machines, now.executables)
                sizes = f"{now.resident_bytes / 1e6:11.1f}  {now.allocated_bytes / 1e6:12.1f}"
                show(f"{minute:6.1f}  {number:6}  {sizes}  " + "  ".join(f"{count:9}" for count in counts))
    return complaints(samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    output = sys.stdout
    found = soak(parser.parse_args().minutes, lambda line: print(line, file=output, flush=True))
    print("\n".join(found) or "nothing is left behind")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
