"""The same bits on emulated processors and systems: samples of tests/determinism/determinism_suite.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from determinism.emulated import AARCH64, WINDOWS
from determinism.samples import built, failures, sample
from determinism.ways import emulated_ways

from relvm.tables import include_flags


@pytest.mark.parametrize("name", ("functions, a fifteenth", "operators00000", "digits", "oww_alexa"))
def test_aarch64_has_the_same_bits(name: str) -> None:
    AARCH64.expect_tools()
    is_native = name in ("functions, a fifteenth", "digits")
    assert not failures(name, emulated_ways(AARCH64, sample(name), built(name), native=is_native))


@pytest.mark.parametrize("name", ("functions, a fifteenth", "digits"))
def test_windows_has_the_same_bits(name: str) -> None:
    WINDOWS.expect_tools()
    assert not failures(name, emulated_ways(WINDOWS, sample(name), built(name), native=name == "digits"))


@pytest.mark.parametrize(
    ("processor", "emulated", "options"),
    [
        ("armv8-a", "cortex-a72", ()),
        ("armv8.2-a+dotprod", "cortex-a76", ()),
        ("armv8.2-a+dotprod", "cortex-a76", ("-DRVM_COMPACT",)),
        ("armv8.2-a+dotprod+i8mm", "max", ()),
    ],
)
def test_products_on_aarch64_agree_with_plain_loops(
    processor: str, emulated: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    AARCH64.expect_tools()
    source = Path(__file__).with_name("products.c")
    flags = ("-O2", "-ffp-contract=off", "-fwrapv", "-Wall", "-Wextra", "-Werror", f"-march={processor}", *options)
    command = [
        *AARCH64.compiler,
        "-std=gnu11",
        *flags,
        *include_flags(),
        source,
        "-static",
        "-lm",
        "-o",
        tmp_path / "products",
    ]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [AARCH64.emulator[0], "-cpu", emulated, tmp_path / "products"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
