"""The command relvm_npy under wasmtime: a WASI program that runs an executable on arrays in .npy files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from webassembly.conftest import load_build_script

from relvm import vm
from relvm.compiler.webassembly import runtime_program

wasmtime = pytest.importorskip("wasmtime")


@pytest.fixture(scope="module")
def program(package: Path) -> tuple:
    """Compile the command, and return wasmtime's engine and module.   package: skips the test without zig cc."""
    engine = wasmtime.Engine()
    return engine, wasmtime.Module(engine, runtime_program(load_build_script().PROGRAM))


def run(program: tuple, folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command in a folder, and return its exit code and output."""
    engine, module = program
    store, linker = wasmtime.Store(engine), wasmtime.Linker(engine)
    linker.define_wasi()
    config = wasmtime.WasiConfig()
    config.argv = ["relvm_npy", *arguments]
    config.preopen_dir(str(folder), ".")
    config.stdout_file = config.stderr_file = str(folder / "output.txt")
    store.set_wasi(config)
    try:
        linker.instantiate(store, module).exports(store)["_start"](store)
        code = 0
    except wasmtime.ExitTrap as trap:
        code = trap.code
    return code, (folder / "output.txt").read_text()


def test_a_model_on_files(program: tuple, models: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 16, 16), (8, 3, 3, 3), (2048, 10))
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for i, array in enumerate(inputs):
        np.save(models / f"in{i}.npy", array)
    code, output = run(program, models, "native.rvm", "main", "out", *(f"in{i}.npy" for i in range(3)))
    assert code == 0, output
    expected = vm.VirtualMachine(vm.load(models / "native.rvm"))["main"](*inputs).numpy()
    np.testing.assert_allclose(np.load(models / "out0.npy"), expected, rtol=1e-4, atol=1e-6)
    assert output.startswith("0: f32[2,10] crc32c ")


def test_numbers_and_several_results(program: tuple, models: Path) -> None:
    np.save(models / "x.npy", np.zeros((1, 4), np.float32))
    code, output = run(program, models, "program.rvm", "scale", "-", "x.npy", "7", "3.0")
    assert (code, output.splitlines()[1:]) == (0, ["1: i64 8", "2: f64 1.5", "3: bool 1"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.rvm", "main", "-"), "error: none.rvm: cannot open the file"),
        (("program.rvm", "none", "-"), "error: no function none"),
        (("program.rvm", "spin", "-"), "error: spin: expected 1 argument"),
        (("x.txt", "main", "-"), "not a relvm executable"),
        (("program.rvm", "spin", "-", "x.txt"), "x.txt: not a .npy file"),
        (("program.rvm",), "usage: "),
    ],
)
def test_mistakes(program: tuple, models: Path, arguments: tuple[str, ...], message: str) -> None:
    (models / "x.txt").write_text("text" * 40)
    code, output = run(program, models, *arguments)
    assert code in (1, 2)
    assert message in output
