"""Native kernels check the sizes of their arguments, also if a faulty program passes wrong tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relvm import vm
from relvm.bytecode.program import call, register, ret
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmShapeError
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="native kernels need a C compiler")


def kernel_alone(text: str) -> vm.VirtualMachine:
    """Build the only kernel of a module, with a function main that passes its arguments to the kernel unchecked."""
    program = vm.build(parse_module(text), "bytecode", "c").program
    (kernel,) = [entry for entry in program.functions if entry.kind == "kernel"]
    (main,) = [entry for entry in program.functions if entry.name == "main"]
    count = len(kernel.parameters or ())
    names = tuple(f"x{i}" for i in range(count))
    code = (call(-1, 1, *map(register, range(count))), ret(0))
    changed = replace(main, parameters=names, registers=count, code=code)
    return vm.VirtualMachine(
        Executable.from_program(replace(program, functions=(changed, kernel), constants=(), signature={}, debug={}))
    )


@pytest.mark.parametrize(
    "text, sizes, expected",
    [
        ("def main(x: f32[n], y: f32[n]) -> f32[2 * n] = concat(x, y, axis=0)", (3, 3, 6), 6),
        ("def main(x: f32[n], y: f32[m]) -> f32[n + m] = concat(x, y, axis=0)", (3, 2, 5), 5),
        ("def main(x: f32[n]) -> f32[n + 3] = pad(x, pads=(1, 2))", (4, 7), 7),
    ],
)
def test_a_compound_size_is_checked(text: str, sizes: tuple[int, ...], expected: int) -> None:
    machine = kernel_alone(text)
    arrays = [np.ones(size, np.float32) for size in sizes]
    machine["main"](*arrays)
    for wrong in (expected - 1, expected + 1, 0):
        with pytest.raises(RelvmShapeError, match=f"kernel: expected a size of {expected}, got {wrong}"):
            machine["main"](*arrays[:-1], np.ones(wrong, np.float32))
