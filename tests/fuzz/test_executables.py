"""Fuzz tests of executables: the loader rejects a damaged executable, or it runs without a crash, hang or leak.

The fuzzer is in C (fuzz.h).  It is built with the runtime under the address and undefined behavior sanitizers.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import engines
import pytest
import seeds
from limits import FIRST, SECONDS
from support.c_compiler import run_compiler

from relvm.tables import STATUS, include_flags, runtime_sources

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMPILER = shutil.which("gcc")
LENGTH = f"-seconds={SECONDS:.0f}" if SECONDS else "-runs=2000"

FLAGS = [
    "-std=gnu11",
    "-g",
    "-O1" if SECONDS else "-O0",  # a short run takes less time than the optimization
    "-Wall",
    "-Wextra",
    "-Werror",
    *include_flags(),
    "-I",
    str(HERE),
    "-DRVM_WITHOUT_EXACT_FMA",
]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
LINK = ["-Wl,--wrap=malloc,--wrap=calloc,--wrap=free", "-lpthread", "-ldl", "-lm"]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no gcc")


def compile_c(*arguments: object) -> None:
    run_compiler(COMPILER, *FLAGS, *SANITIZERS, *arguments)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of driver.c.  Only the runtime is compiled with coverage instrumentation, not the fuzzer."""
    folder = tmp_path_factory.mktemp("fuzz")
    sources = [*runtime_sources(), *engines.FUZZER, HERE / "driver.c"]
    # The names include the folder, because two folders have an arguments.c.
    objects = [folder / f"{source.parent.name}_{source.stem}.o" for source in sources]

    def compile_one(source: Path, made: Path) -> None:
        places = ["-fsanitize-coverage=trace-pc"] if source.parent != HERE else []
        compile_c(*places, *engines.flags_of(source), "-c", source, "-o", made)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, sources, objects))
    compile_c(*objects, *LINK, "-o", folder / "driver")
    return folder / "driver"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write the seed executables, including those of regressions.py, and return their paths."""
    return seeds.write(tmp_path_factory.mktemp("seeds"))


def run(driver: Path, failure: Path, *arguments: object) -> dict[str, float]:
    """Run the driver and return the counts that it prints.  If it fails, show the failing input in base64."""
    result = subprocess.run([driver, f"-failure={failure}", *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        shown = base64.b64encode(failure.read_bytes()).decode() if failure.exists() else "none was written"
        pytest.fail(f"{result.stderr[-4000:]}\nthe input, in base64: {shown}")
    return {name: float(number) for name, number in (line.rsplit(" ", 1) for line in result.stdout.splitlines())}


def test_what_broke_once(driver: Path, files: list[Path], tmp_path: Path) -> None:
    counted = run(driver, tmp_path / "failure", *files)
    assert counted["inputs"] == len(files)
    # The driver simulates allocation failures while it loads some files.  One regression calls a forbidden function.
    short = counted.get("refused OUT_OF_MEMORY", 0)
    assert counted["loaded"] + short >= len(files) - 1 and short < len(files) / 4


def test_changed_executables(driver: Path, files: list[Path], tmp_path: Path) -> None:
    corpus = sorted((HERE / "corpus").iterdir())
    counted = run(driver, tmp_path / "failure", LENGTH, f"-seed={FIRST}", *files, *corpus)
    print(counted)
    assert counted["loaded"] > counted["inputs"] / 10
    assert counted["refused BAD_EXECUTABLE"] > counted["inputs"] / 10
    ended = {row.name for row in STATUS if f"ended {row.name}" in counted}
    assert {"OK", "TYPE_ERROR", "ARGUMENT_ERROR", "INDEX_ERROR", "TIMEOUT", "STACK_OVERFLOW"} <= ended


def test_generated_programs(driver: Path, files: list[Path], tmp_path: Path) -> None:
    (base,) = (path for path in files if path.stem == "generate")
    counted = run(driver, tmp_path / "failure", "-generate", LENGTH, f"-seed={FIRST}", base)
    print(counted)
    assert counted["loaded"] + counted.get("refused OUT_OF_MEMORY", 0) == counted["inputs"]  # simulated failures
    assert counted["ended OK"] > counted["calls"] / 10
    ended = {row.name for row in STATUS if f"ended {row.name}" in counted}
    assert {"OK", "TYPE_ERROR", "SHAPE_ERROR", "ARITHMETIC_ERROR", "TIMEOUT", "ASSERTION_ERROR"} <= ended
