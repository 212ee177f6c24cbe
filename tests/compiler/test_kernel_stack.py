"""The C stack that kernels need: what they state is enough, and calls on small stacks raise an error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ops.test_operators import kernels

from relvm.codegen.c.kernel import stack_bytes
from relvm.codegen.c.mangling import kernel_symbol
from relvm.codegen.c.module import print_c
from relvm.compiler import toolchain
from relvm.ir.expr import Block, KernelCall
from relvm.kernels.kernel import Kernel
from relvm.lir.routine import LirModule
from relvm.tables import csrc_directory, include_flags

_SMALL_FRAME = 4096  # bytes; of kernels that do not compare the stack
_USAGE = re.compile(r"([A-Za-z0-9_]+)\t([0-9]+)\t")


def frames(source: Path, *flags: str) -> dict[str, int]:
    """Compile a C file, and return the size of the stack frame of each function that is not inlined."""
    command = ["gcc", *toolchain._COMMON, *toolchain._KERNELS, *flags, *include_flags(), "-fstack-usage"]
    subprocess.run([*command, "-c", str(source), "-o", "unit.o"], check=True, cwd=source.parent)
    return {name: int(size) for name, size in _USAGE.findall((source.parent / "unit.su").read_text())}


def largest_kernels() -> list[Kernel]:
    """Return, for each operator, the kernel of its samples that states the largest number of bytes."""
    compiled, numbers = kernels()
    printed, largest = dict(compiled.module.kernels), {}
    for (sample, _), number in numbers.items():
        body = compiled.module[f"case{number}"].body
        for binding in body.bindings if isinstance(body, Block) else ():
            if isinstance(binding.value, KernelCall):
                kernel = printed[binding.value.kernel]
                if sample.op not in largest or stack_bytes(kernel) > stack_bytes(largest[sample.op]):
                    largest[sample.op] = kernel
    return list({kernel.name: kernel for kernel in largest.values()}.values())


def test_kernels_need_at_most_the_stack_that_they_state(tmp_path: Path) -> None:
    tested = largest_kernels()
    found: dict[str, int] = {}
    for number, text in enumerate(print_c(LirModule((), tuple(tested), (), (), {}), routines=()).kernels):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "unit.c").write_text(text)
        found |= frames(folder / "unit.c", "-march=x86-64-v3" if _is_x86() else "-O2")
    helpers = sum(
        sorted(size for name, size in found.items() if not re.match(r"(body_|part\d+_of_)?kernel_", name))[-2:]
    )
    assert 0 < sum(stack_bytes(kernel) > 0 for kernel in tested) < len(tested)
    for kernel in tested:
        symbol = kernel_symbol(kernel.name)
        own = [found.get(name, 0) for name in (symbol, f"body_{symbol}")]
        part = max((size for name, size in found.items() if re.fullmatch(rf"part\d+_of_{symbol}", name)), default=0)
        stated = stack_bytes(kernel) or _SMALL_FRAME
        assert sum(own) + part + (helpers if stack_bytes(kernel) else 0) <= stated, kernel.comment


def test_kernel_bytecode_needs_at_most_the_stack_that_it_states(tmp_path: Path) -> None:
    found: dict[str, int] = {}
    for name in ("kernel_interpreter", "kernel_run", "micro_kernels"):
        source = tmp_path / "unit.c"
        source.write_text((csrc_directory() / "kernels" / f"{name}.c").read_text())
        found |= frames(source, "-march=x86-64-v4" if _is_x86() else "-O2", "-fstack-protector-strong")
    header = (csrc_directory() / "kernels" / "kernel_run.h").read_text()
    stated = int(re.findall(r"RVM_KERNEL_STACK_BYTES = (\d+) << 10", header)[0]) << 10
    largest = max(size for name, size in found.items() if name != "interpret")
    assert 2 * found["interpret"] + largest + _SMALL_FRAME <= stated


def _is_x86() -> bool:
    return "x86_64" in subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True, check=True).stdout


_PROGRAM = """
import sys, threading
import numpy as np
from relvm import vm
from relvm.errors import RelvmRecursionError
from relvm.frontend.text import parse_module

text = '''
def matmul(x: f32[n, k], y: f32[k, m]) = matmul(x, y)
def conv2d(x: f32[1, 64, h, w], y: f32[64, 64, 3, 3]) = conv(x, y)
def attention(q: f32[2, n, 64], k: f32[2, 64, m], v: f32[2, m, 64]) = matmul(softmax(matmul(q, k), axis=-1), v)
def argtopk(x: f32[n]) = argtopk(x, shape(10), axis=0)
def add(x: f32[n]) = add(x, x)
'''
shapes = {
    "matmul": [(300, 700), (700, 900)],
    "conv2d": [(1, 64, 40, 40), (64, 64, 3, 3)],
    "attention": [(2, 128, 64), (2, 64, 512), (2, 512, 64)],
    "argtopk": [(2000,)],
    "add": [(2000,)],
}
machine = vm.VirtualMachine(vm.build(parse_module(text), exec_mode=sys.argv[1], target=sys.argv[2]), num_threads=1)

def run():
    for name, of in shapes.items():
        try:
            machine[name](*(np.ones(shape, np.float32) for shape in of))
            results.append((name, "ran"))
        except RelvmRecursionError as error:
            assert "bytes of the C stack, but this thread has" in str(error), error
            results.append((name, "refused"))

for kilobytes in (64, 128, 256, 4096):
    results = []
    threading.stack_size(kilobytes << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    print(kilobytes, *(f"{name}:{what}" for name, what in results))
"""


@pytest.mark.parametrize(("mode", "target"), [("bytecode", "c"), ("compiled", "c"), ("bytecode", "bytecode")])
def test_a_small_stack_is_an_error(mode: str, target: str) -> None:
    found = subprocess.run([sys.executable, "-P", "-c", _PROGRAM, mode, target], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    lines = [dict(item.split(":") for item in line.split()[1:]) for line in found.stdout.splitlines()]
    assert len(lines) == 4 and all(len(line) == 5 for line in lines)
    assert all(line["argtopk"] == line["add"] == "ran" for line in lines[1:])
    assert set(lines[-1].values()) == {"ran"}
    if target == "c":
        assert lines[0]["conv2d"] == lines[0]["attention"] == "refused"
