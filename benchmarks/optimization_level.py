"""Compare relvm's compiler options for kernels with -O3: the times of compiling and running the real models.

    python -m benchmarks.optimization_level [MODEL ...]

The two executables of a model take turns in one process.  The ratio is that of the median times.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from unittest import mock

from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.compiler import toolchain
from relvm.frontend.onnx import from_onnx

SECONDS, LEAST = 1.5, 5  # minimum time for both executables of a model, and minimum of calls of each
OPTIONS = {
    "-O3": ("-O3", *(flag for flag in toolchain._KERNELS if flag != "-O2" and flag not in toolchain._VECTORS)),
    "relvm": toolchain._KERNELS,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    chosen = parser.parse_args().models or list(MODELS)
    print("| model | ms per call at -O3 | ratio | compile time at -O3, s | compile time, s |\n|---|---|---|---|---|")
    ratios, builds = [], dict.fromkeys(OPTIONS, 0.0)
    for name in chosen:
        calls, seconds = _measure(name)
        ratios.append(calls["relvm"] / calls["-O3"])
        for option, taken in seconds.items():
            builds[option] += taken
        print(
            f"| {name} | {calls['-O3'] * 1e3:.3g} | {ratios[-1]:.2f} | {seconds['-O3']:.2f} | {seconds['relvm']:.2f} |",
            flush=True,
        )
    print(f"\ngeometric mean of the ratios: {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")
    print(f"the compiler in all: {builds['-O3']:.1f} s at -O3, {builds['relvm']:.1f} s")


def _measure(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median seconds of a call, and the CPU seconds of the C compiler, both by the name of the options."""
    model = MODELS[name]
    module = from_onnx(model.path())
    inputs = next(iter(model.cases()))
    arguments = [inputs[each] for each in module["main"].input_names]
    machines, builds = {}, {}
    for option, flags in OPTIONS.items():
        with (
            tempfile.TemporaryDirectory() as cache,
            mock.patch.dict("os.environ", RELVM_CACHE_DIR=cache),
            mock.patch.object(toolchain, "_KERNELS", flags),
        ):
            begun = os.times().children_user
            executable = vm.build(module, "compiled")
            builds[option] = os.times().children_user - begun
        machines[option] = vm.VirtualMachine(executable)
        machines[option]["main"](*arguments)
    times: dict[str, list[float]] = {option: [] for option in OPTIONS}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times["-O3"]) < LEAST:
        for option, machine in machines.items():
            begun = time.perf_counter()
            machine["main"](*arguments)
            times[option].append(time.perf_counter() - begun)
    return {option: statistics.median(each) for option, each in times.items()}, builds


if __name__ == "__main__":
    main()
