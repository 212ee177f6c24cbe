"""Check an installed wheel: run a program with kernels as bytecode.  The release workflow runs this file."""

import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module

module = parse_module("def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] { return relu(matmul(x, w)) }")
machine = vm.VirtualMachine(vm.build(module, target="bytecode"))
x, w = np.ones((3, 4), np.float32), np.full((4, 8), 0.5, np.float32)
np.testing.assert_array_equal(machine["main"](x, w).numpy(), np.full((3, 8), 2, np.float32))
