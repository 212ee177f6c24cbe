"""Exports run on other processors, under emulation, with the same results as the virtual machine on this machine.

Floating point results may differ in their last bits, as some of these processors round a product and a sum once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from programs_ahead import PROGRAMS, numbers
from real_models import SMALL, real_model, write_with_trial

from relvm import aot, vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.stablehlo import from_stablehlo
from relvm.frontend.text import parse_module
from relvm.frontend.torch import from_pt2
from relvm.ir.expr import Module

pytestmark = pytest.mark.skipif(
    find_compiler() is None,
    reason="what is right is computed by a machine, whose kernels need a C compiler, and there is none",
)

ROOT = Path(__file__).resolve().parents[2]
PT2 = ROOT / "tests/frontend/pt2"
BOARD = ROOT / "examples/cortex_m"
NAMES = ("network", "jax_scan", "loop", "functions_in_turn", "scalars")

NETWORK = """
def main(x: f32[1, 2, 12, 12]) -> (f32[1, 5], i64[1]) {
  a = relu(conv(x, const(f32[4, 2, 3, 3], FILTERS), pads=(1, 1, 1, 1)))
  b = max_pool(a, kernel=(2, 2), strides=(2, 2))
  c = reshape(b, shape(1, 144))
  d = softmax(matmul(c, const(f32[144, 5], WEIGHTS)), axis=1)
  return (d, argmax(d, axis=1))
}"""
for word, value in (("FILTERS", numbers(4, 2, 3, 3)), ("WEIGHTS", numbers(144, 5, seed=2))):
    NETWORK = NETWORK.replace(word, str(value.round(1).tolist()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the network, a JAX program, and some programs of programs_ahead.py, each with a self-test."""
    root = tmp_path_factory.mktemp("boards")
    chosen = [(p.name, parse_module(p.text), p.calls[-1]) for p in PROGRAMS if p.name in NAMES]
    network = ("network", parse_module(NETWORK), (numbers(1, 2, 12, 12),))
    for name, module, args in [network, ("jax_scan", jax_scan(), (numbers(5, 3),)), *chosen]:
        expected = vm.VirtualMachine(vm.build(module, "compiled"))["main"](*args)
        aot.build(module, aot.AotConfig(name)).write(root / name, (args, [expected]))
    return root


def jax_scan() -> Module:
    """Return the program of the notebook notebooks/jax_scan.py, a scan that JAX exports."""
    found = re.search(r'TEXT = b"""(.*?)"""', (ROOT / "notebooks/jax_scan.py").read_text(), re.DOTALL)
    assert found, "the notebook contains the text of the program"
    return from_stablehlo(found[1].encode(), name="jax_scan.mlir")


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expect_tools(*names: str) -> None:
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (.ci/run has the packages)")


def trial_program(tools: str, options: list[str], place: Path, folder: Path, *linked: str) -> str:
    """Build the self-test of an export with the export's Makefile, in a copy of the export.  Return its path.

    Parameters
    ----------
    tools
        The prefix of the names of the compiler and the archiver.
    options
        Options of the compiler.
    place
        The folder of the export.
    folder
        The folder for the copy and the program.
    linked
        Further arguments of the linker.
    """
    made, program = folder / "made", folder / "program"
    shutil.copytree(place, made)
    run("make", "-s", "-C", str(made), f"CC={tools}gcc", f"AR={tools}ar", f"CFLAGS=-O2 {' '.join(options)}")
    included = [f"-I{made}/include", f"-I{made}/src", "-DRELVM_TOLERANCE=1e-5"]
    files = [f"{made}/test/main.c", *map(str, made.glob("*.a"))]
    run(f"{tools}gcc", *options, *included, *files, *linked, "-lm", "-o", str(program))
    return str(program)


def run_on_a_cortex_m(place: Path, folder: Path) -> str:
    """Run the self-test of an export without an operating system, and return its output."""
    expect_tools("arm-none-eabi-gcc", "qemu-system-arm")
    board = [str(BOARD / "vectors.c"), "--specs=rdimon.specs", "-T", str(BOARD / "mps2.ld")]
    program = trial_program("arm-none-eabi-", ["-mcpu=cortex-m3", "-mthumb"], place, folder, *board)
    emulated = ["-machine", "mps2-an385", "-nographic", "-semihosting-config", "enable=on,target=native"]
    return run("qemu-system-arm", *emulated, "-kernel", program)


def run_on_linux(processor: str, place: Path, folder: Path) -> str:
    """Run the self-test of an export under Linux, and return its output."""
    tools, emulator = f"{processor}-linux-gnu-", f"qemu-{processor}"
    expect_tools(f"{tools}gcc", emulator)
    return run(emulator, trial_program(tools, ["-static"], place, folder))


@pytest.mark.parametrize("name", NAMES)
def test_on_a_cortex_m_without_an_operating_system(name: str, folder: Path, tmp_path: Path) -> None:
    assert "values" in run_on_a_cortex_m(folder / name, tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("processor", ["aarch64", "riscv64"])
def test_on_linux_of_other_processors(processor: str, name: str, folder: Path, tmp_path: Path) -> None:
    assert "values" in run_on_linux(processor, folder / name, tmp_path)


@pytest.mark.parametrize("name", SMALL)
def test_a_real_model_on_a_cortex_m(name: str, tmp_path: Path) -> None:
    write_with_trial(real_model(name), tmp_path / "export")
    assert "values" in run_on_a_cortex_m(tmp_path / "export", tmp_path)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("processor", ["aarch64", "riscv64"])
def test_a_real_model_on_linux_of_other_processors(processor: str, name: str, tmp_path: Path) -> None:
    write_with_trial(real_model(name), tmp_path / "export")
    assert "values" in run_on_linux(processor, tmp_path / "export", tmp_path)


@pytest.mark.parametrize(("processor", "call"), [("cortex-m3", 1), ("aarch64", 0), ("riscv64", 1)])
def test_a_pytorch_model_with_a_condition(processor: str, call: int, tmp_path: Path) -> None:
    """An exported program has the results of PyTorch.   call: 0 for a loud signal, 1 for a quiet one."""
    data = np.load(PT2 / "branch.npz")
    program = aot.build(from_pt2(PT2 / "branch.core.pt2"), aot.AotConfig("branch"))
    program.write(tmp_path / "export", ((data[f"{call}_x0"],), [data[f"{call}_y0"]]))
    place, folder = tmp_path / "export", tmp_path
    is_board = processor == "cortex-m3"
    assert "values" in (run_on_a_cortex_m(place, folder) if is_board else run_on_linux(processor, place, folder))
