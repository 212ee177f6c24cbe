"""The ways to run cases whose results must have the same bits (docs/determinism.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from determinism.cases import Calls
from determinism.emulated import Emulated

from relvm import vm
from relvm._native import lib
from relvm.compiler.build import assemble, lower
from relvm.compiler.target import LEVELS, Target, level_of
from relvm.errors import RelvmError
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.executable import Executable
from relvm.runtime.result_digest import result_digest
from relvm.tables import CPU_FEATURES

OWN_LEVEL = level_of({row.option for row in CPU_FEATURES if lib.rvm_cpu_features() >> row.index & 1})
OWN_LEVELS = LEVELS[: LEVELS.index(OWN_LEVEL) + 1]
BYTECODE = "bytecode exact-fma"

Digests = list[str]


def run(executable: Executable, calls: Calls, *, level: str = "", threads: int = 1) -> Digests:
    """Return the digests of the results of calls, or the messages of errors.

    level: the x86-64 level of kernel bytecode, or "" for all features of this processor.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELVM_CPU", level) if level else patch.delenv("RELVM_CPU", raising=False)
        machine = vm.VirtualMachine(executable, num_threads=threads)
    digests = []
    for name, arguments in calls.calls:
        machine.seed(0)
        try:
            digests.append(result_digest(machine[name](*arguments)))
        except RelvmError as error:
            digests.append(str(error).partition("\n")[0])
    return digests


def bytecode(calls: Calls) -> Executable:
    return vm.build(calls.module, "bytecode", BYTECODE)


def differences(calls: Calls, expected: Digests, got: Digests) -> list[str]:
    """Return the names of the calls whose digests differ."""
    assert len(expected) == len(got) == len(calls.calls)
    return [name for (name, _), a, b in zip(calls.calls, expected, got, strict=True) if a != b]


def bytecode_ways(calls: Calls, executable: Executable) -> Iterator[tuple[str, Callable[[], Digests]]]:
    """Yield the ways to run an executable with kernel bytecode on this computer: levels and threads."""
    for level in OWN_LEVELS:
        yield f"bytecode on {level}", lambda level=level: run(executable, calls, level=level)
    for threads in (2, 3, 4):
        yield f"bytecode on {threads} threads", lambda threads=threads: run(executable, calls, threads=threads)


def native_ways(calls: Calls, targets: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Digests]]]:
    """Yield runs of native code for targets on this computer, with one thread and with four."""
    for target in targets:
        built = vm.build(calls.module, "compiled", target)
        for threads in (1, 4):
            yield f"{target} on {threads} threads", lambda b=built, t=threads: run(b, calls, threads=t)


def native_targets() -> tuple[str, ...]:
    """Return the targets for which this computer can run native code: without FMA, with FMA, with AVX-512."""
    levels = [level for level in OWN_LEVELS if level not in ("x86-64", "x86-64-v2")]
    return ("x86-64-v2 exact-fma", *levels, "c")


def emulated_ways(
    system: Emulated, calls: Calls, executable: Executable, *, native: bool
) -> Iterator[tuple[str, Callable[[], Digests]]]:
    """Yield runs on another system: kernel bytecode on one and four threads, and native code if `native`."""
    for threads in (1, 4):
        name = f"bytecode on {system.name}, {threads} threads"
        yield name, lambda threads=threads: system.run(executable, calls.calls, threads)
    for target in system.targets if native else ():
        name = f"native code on {system.name}, target {target}"
        yield name, lambda target=target: system.run(system.native_build(calls, target), calls.calls)


def fusion_differences(calls: Calls) -> list[str]:
    """Return the names of the calls whose results depend on fusion, other than that of attention."""
    steps = build_pipeline("bytecode", without=("fuse_attention",))
    fused = assemble(lower(run_passes(calls.module, steps)), (), target=Target("bytecode", exact_fma=True))
    unfused = vm.build(calls.module, "bytecode", BYTECODE, fused=False)
    return differences(calls, run(Executable.from_program(fused), calls), run(unfused, calls))
