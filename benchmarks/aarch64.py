"""Compare the instructions of real models on AArch64 with those of ONNX Runtime, in QEMU:

python -m benchmarks.aarch64 FOLDER [--wheels FOLDER] [--processor cortex-a76] [MODEL...]

No AArch64 processor is needed.  FOLDER becomes a root with Debian's Python for AArch64, NumPy, onnxruntime, and relvm
from the wheels in --wheels (`python -m release.wheels --platform manylinux_2_17_aarch64 -o WHEELS`), unless it exists.
A plugin of QEMU counts the instructions of the third run of each engine, with one thread (count_instructions.c).

The table has the instructions in millions: of ONNX Runtime, of native code that aarch64-linux-gnu-gcc compiles on this
computer, and of kernel bytecode.  Then follow the ratios, which are below 1 if relvm executes fewer, and the largest
difference of the results, relative to the largest value.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.models.catalogue import MODELS
from relvm import vm
from relvm.frontend.onnx import from_onnx

BENCHMARKS = Path(__file__).resolve().parent
sys.path.append(str(BENCHMARKS.parent / "tests" / "wheels"))

# The folder has to be in sys.path first.
from arm64_root import PYTHON, install_in_arm64_root, make_arm64_root  # noqa: E402

COMPILER = "aarch64-linux-gnu-gcc"
PROCESSORS = {"cortex-a72": "c", "cortex-a76": "c -march=armv8.2-a+dotprod", "max": "c -march=armv8.2-a+dotprod+i8mm"}
DEFAULT = (
    *("magika", "silero_vad", "ppocr_cls", "oww_melspec", "oww_embedding", "minilm_l3", "t5_enc_int8", "chars2vec"),
    *("lac_gru", "plcmos", "pyfr_derive_int8", "tashkeel_cbhg", "swift_f0", "mtcnn_o"),
)
_HEADER = ("model", "onnxruntime", "native", "bytecode", "native / onnxruntime", "bytecode / onnxruntime", "error")


def make_root(folder: Path, wheels: Path) -> None:
    """Make the root folder, with the processor of a Raspberry Pi 5 in /proc/cpuinfo, which onnxruntime reads."""
    root = make_arm64_root(folder)
    install_in_arm64_root(root, "onnxruntime", *map(str, wheels.glob("*.whl")))
    processors = root / "sys" / "devices" / "system" / "cpu"
    (root / "proc").mkdir()
    features = "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
    lines = ["processor : 0", f"Features : {features}", "CPU implementer : 0x41", "CPU architecture: 8"]
    lines += ["CPU variant : 0x4", "CPU part : 0xd0b", "CPU revision : 1", ""]
    (root / "proc" / "cpuinfo").write_text("\n".join(lines))
    (processors / "cpu0" / "topology").mkdir(parents=True)
    for name in ("possible", "present", "cpu0/topology/cluster_cpus_list", "cpu0/topology/physical_package_id"):
        (processors / name).write_text("0\n")


def count(root: Path, plugin: Path, processor: str, *arguments: str | Path) -> int:
    """Return the count that aarch64_child.py prints with these arguments."""
    emulator = ["qemu-aarch64", "-cpu", processor, "-plugin", plugin, "-L", root]
    environment = {**os.environ, "PYTHONPATH": str(root / "packages"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*emulator, root / PYTHON, BENCHMARKS / "aarch64_child.py", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return int(done.stdout.split()[-1])


def measure(name: str, root: Path, plugin: Path, processor: str, folder: Path) -> tuple[list[float], float]:
    """Return the millions of instructions of onnxruntime, native code and bytecode, and the error of native code."""
    path, case = MODELS[name].path(), MODELS[name].cases()[0]
    module = from_onnx(path)
    inputs, files = folder / "inputs.npz", {kind: folder / f"{kind}.npz" for kind in ("onnxruntime", "native", "code")}
    np.savez(inputs, **{each: case[each] for each in module["main"].input_names})
    os.environ["RELVM_CC"] = COMPILER
    vm.build(module, "compiled", PROCESSORS[processor]).save(folder / "native.rvm")
    vm.build(module, "bytecode", "bytecode").save(folder / "code.rvm")
    counts = [count(root, plugin, processor, "onnxruntime", path, inputs, files["onnxruntime"])]
    for kind in ("native", "code"):
        counts.append(count(root, plugin, processor, "relvm", folder / f"{kind}.rvm", inputs, files[kind]))
    with np.load(files["onnxruntime"]) as expected, np.load(files["native"]) as found:
        pairs = [(expected[each].astype(float), found[each].astype(float)) for each in expected.files]
    error = max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)) for a, b in pairs)
    return [each / 1e6 for each in counts], error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the root")
    parser.add_argument("--wheels", type=Path, help="the folder with the wheels, if the root has to be made")
    parser.add_argument("--processor", choices=PROCESSORS, default="cortex-a76", help="the emulated processor")
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL", help=", ".join(MODELS))
    arguments = parser.parse_args()
    if not arguments.folder.exists():
        if arguments.wheels is None:
            parser.error(f"{arguments.folder} does not exist; make it with --wheels")
        make_root(arguments.folder, arguments.wheels)
    print(f"| {' | '.join(_HEADER)} |\n|{'---|' * len(_HEADER)}")
    ratios: list[tuple[float, float]] = []
    with TemporaryDirectory() as name:
        plugin = Path(name) / "count.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", BENCHMARKS / "count_instructions.c", "-o", plugin], check=True)
        for model in arguments.models:
            root = arguments.folder / "root"
            (peer, native, bytecode), error = measure(model, root, plugin, arguments.processor, Path(name))
            ratios.append((native / peer, bytecode / peer))
            shown = f"{ratios[-1][0]:.2f} | {ratios[-1][1]:.2f}"
            print(f"| {model} | {peer:.3g} | {native:.3g} | {bytecode:.3g} | {shown} | {error:.0e} |", flush=True)
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*ratios, strict=True)]
    print(f"\ngeometric means: {means[0]:.2f} and {means[1]:.2f}")


if __name__ == "__main__":
    main()
