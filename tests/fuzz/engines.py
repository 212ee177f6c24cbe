"""Fuzz executables or ONNX files with libFuzzer or AFL++ instead of driver.c: the same harness and the same mutator.

    PYTHONPATH=tests:tests/vm:tests/ops:tests/fuzz python -m engines libfuzzer --minutes 60 --corpus FOLDER
    PYTHONPATH=tests:tests/vm:tests/ops:tests/fuzz python -m engines afl --minutes 60 --corpus FOLDER
    PYTHONPATH=tests:tests/vm:tests/ops:tests/fuzz python -m engines libfuzzer --input onnx --corpus FOLDER

Needs Debian's packages clang (libfuzzer) or afl++.  The corpus begins with the inputs of seeds.py and of
tests/fuzz/corpus, or of onnx_seeds.py; what the engine finds is added to FOLDER.  An input that fails is left in
FOLDER/failures, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx_seeds
import seeds

from relvm.tables import csrc_directory, include_flags, runtime_sources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READERS = csrc_directory() / "readers"
INCLUDES = [*include_flags(), f"-I{READERS}", f"-I{HERE}", "-DRVM_WITHOUT_EXACT_FMA"]
FLAGS = ["-std=gnu11", "-g", "-O1", *INCLUDES, "-fsanitize=address,undefined"]
FLAGS += ["-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
LINK = ["-Wl,--wrap=malloc,--wrap=calloc,--wrap=free", "-lpthread", "-ldl", "-lm"]
RUNTIME = runtime_sources()
FUZZER = [source for source in sorted(HERE.glob("*.c")) if source.name not in ("driver.c", "afl_mutator.c")]
ASAN = (
    "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=4:malloc_context_size=8:abort_on_error=1:symbolize=0"
)
LARGEST = 1 << 14  # limit on the bytes of an input
ONNX_FUZZER = [HERE / "onnx" / "onnx_harness.c"]
ONNX_TESTED = [source for source in RUNTIME if source.parent.name in ("core", "system") or source.stem == "crc32c"]
# The tested sources and those of the fuzzer, without the driver, for each kind of input.
SOURCES = {"executable": (RUNTIME, FUZZER), "onnx": ([*ONNX_TESTED, *sorted(READERS.glob("*.c"))], ONNX_FUZZER)}
MUTATORS = {
    "executable": [HERE / "mutator.c", HERE / "generator.c", HERE / "arguments.c"],
    "onnx": ONNX_FUZZER,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=("libfuzzer", "afl"))
    parser.add_argument("--input", choices=tuple(SOURCES), default="executable")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--corpus", type=Path, required=True)
    options = parser.parse_args()
    folder = options.corpus.resolve()
    write = seeds.write if options.input == "executable" else onnx_seeds.write
    for path in write(folder / "queue"):
        if path.stat().st_size > LARGEST:
            path.unlink()
    for path in (HERE / "corpus").iterdir() if options.input == "executable" else ():
        shutil.copy(path, folder / "queue")
    (folder / "failures").mkdir(exist_ok=True)
    run = _libfuzzer if options.engine == "libfuzzer" else _afl
    run(folder, options.input, round(options.minutes * 60))
    failures = [path for path in (folder / "failures").rglob("*") if path.is_file() and path.name != "README.txt"]
    for path in failures:
        print(f"failed: {path}")
    return 1 if failures else 0


def _libfuzzer(folder: Path, kind: str, seconds: int) -> None:
    program = folder / "libfuzzer"
    _compile("clang", "-fsanitize=fuzzer", kind, program)
    command = [program, "-detect_leaks=0", f"-max_total_time={seconds}", f"-max_len={LARGEST}", "-timeout=30"]
    command += [f"-artifact_prefix={folder}/failures/", "-print_final_stats=1", folder / "queue"]
    subprocess.run(command, check=False)


def _afl(folder: Path, kind: str, seconds: int) -> None:
    program, mutator = folder / "afl", folder / "afl_mutator.so"
    _compile("afl-clang-fast", "-fsanitize=fuzzer", kind, program)
    sources = [HERE / "afl_mutator.c", *MUTATORS[kind], *SOURCES[kind][0]]
    subprocess.run(
        ["clang", "-std=gnu11", "-O2", "-shared", "-fPIC", *INCLUDES, *sources, "-o", mutator, "-ldl", "-lm"],
        check=True,
    )
    environment = os.environ | {
        "AFL_CUSTOM_MUTATOR_LIBRARY": str(mutator), "AFL_CUSTOM_MUTATOR_ONLY": "1", "AFL_NO_UI": "1",
        "AFL_SKIP_CPUFREQ": "1", "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1", "AFL_NO_AFFINITY": "1",
        "ASAN_OPTIONS": ASAN,
    }  # fmt: skip
    command = [
        "afl-fuzz",
        "-i",
        folder / "queue",
        "-o",
        folder / "afl_out",
        "-V",
        str(seconds),
        "-m",
        "none",
        "-t",
        "5000+",
        "--",
        program,
    ]
    subprocess.run(command, env=environment, check=False)
    for path in (folder / "afl_out" / "default").glob("crashes/id*"):
        path.rename(folder / "failures" / path.name.replace(":", "_"))
    for path in (folder / "afl_out" / "default").glob("hangs/id*"):
        path.rename(folder / "failures" / f"hang_{path.name.replace(':', '_')}")


def flags_of(source: Path) -> list[str]:
    """Return the compiler options that CMakeLists.txt uses for a source.  -fwrapv makes integers wrap around."""
    return ["-fwrapv"] if source.stem in ("element_functions", "strip_moves", "micro_kernels") else []


def _compile(compiler: str, option: str, kind: str, program: Path) -> None:
    objects = []
    tested, fuzzer = SOURCES[kind]
    for source in [*tested, *fuzzer]:
        objects.append(program.with_name(f"{program.name}_{source.parent.name}_{source.stem}.o"))
        subprocess.run([compiler, *FLAGS, option, *flags_of(source), "-c", source, "-o", objects[-1]], check=True)
    link = LINK if kind == "executable" else LINK[1:]  # memory.c wraps the allocator
    subprocess.run([compiler, *FLAGS, option, *objects, *link, "-o", program], check=True)


if __name__ == "__main__":
    sys.exit(main())
