"""Fuzz tests of the reader of ONNX files: relvm reads what the onnx package reads, and nothing outside of the file.

The fuzzer is in C (onnx/onnx_harness.c).  It is built with the reader under the address and undefined behavior
sanitizers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import engines
import onnx
import onnx_seeds
import pytest
from frontend.onnx_comparison import differences
from google.protobuf.message import DecodeError
from test_executables import COMPILER, HERE, compile_c, run

from relvm.errors import RelvmFormatError
from relvm.frontend.onnx_messages import check_model

RUNS = 40_000  # mutated files for the driver: about 2 seconds
COMPARED = 1_500  # mutated files that the onnx package reads, too

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no gcc")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    tested, fuzzer = engines.SOURCES["onnx"]
    objects = []
    for source in [*tested, *fuzzer, HERE / "driver.c"]:
        objects.append(folder / f"{source.parent.name}_{source.stem}.o")
        places = ["-fsanitize-coverage=trace-pc"] if source in tested else []
        compile_c(*places, f"-I{engines.READERS}", "-c", source, "-o", objects[-1])
    compile_c(*objects, *engines.LINK[1:], "-o", folder / "driver")
    return folder / "driver"


def test_changed_files(driver: Path, tmp_path: Path) -> None:
    files = onnx_seeds.write(tmp_path / "seeds")
    counted = run(driver, tmp_path / "failure", f"-runs={RUNS}", "-seed=1", *files)
    print(counted)
    assert counted["inputs"] == RUNS + len(files)
    assert counted["loaded"] > RUNS / 10
    assert counted["refused BAD_EXECUTABLE"] > RUNS / 10 and counted["refused UNSUPPORTED"] > RUNS / 100


def mutated(content: bytes, random: Random) -> bytes:
    """Return a copy of a file with one to three changes: bytes that are replaced, removed, inserted or repeated."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 3)):
        at, size = random.randrange(len(changed)), random.randint(1, 4)
        match random.randrange(5):
            case 0:
                changed[at] = random.choice((0, 1, 2, 8, 10, 0x12, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 1:
                changed[at] ^= 1 << random.randrange(8)
            case 2 if len(changed) > 8:
                del changed[at : at + size]
            case 3:
                changed[at:at] = random.randbytes(size)
            case _:
                changed[at:at] = changed[at : at + 4 * size]
    return bytes(changed)


def test_the_onnx_package_reads_the_same() -> None:
    """A changed file is rejected by both readers, or both read the same fields."""
    models = [model.SerializeToString() for model in onnx_seeds.models()]
    outcomes: Counter[str] = Counter()
    for seed in range(COMPARED):
        random = Random(seed)
        content = mutated(random.choice(models), random)
        try:
            expected = onnx.ModelProto.FromString(content)
        except DecodeError:
            expected = None
        try:
            found = check_model(memoryview(content), "model").model
        except RelvmFormatError:
            found = None
        assert (found is None) == (expected is None), f"seed {seed}: {content.hex()}"
        outcomes["refused" if found is None else "read"] += 1
        if found is not None:
            assert not list(differences(found, expected, "model")), f"seed {seed}: {content.hex()}"
    assert min(outcomes["read"], outcomes["refused"]) > COMPARED / 10, outcomes
