# %% [markdown]
# # First steps
#
# A program is written, built in two ways, and run. Both ways give the same bits.

# %%
import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module

module = parse_module("""
def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] {
  y = matmul(x, w)
  return relu(y)
}""")
print(print_module(module))

# %% [markdown]
# `n` is a symbolic size: the program runs for every number of rows. `vm.build` makes an executable, a
# `VirtualMachine` runs it.

# %%
executable = vm.build(module, exec_mode="bytecode")
machine = vm.VirtualMachine(executable)

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
w = np.linspace(0, 1, 32, dtype=np.float32).reshape(4, 8)
y = machine["main"](x, w)
np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0), rtol=1e-5)
y.shape

# %% [markdown]
# Compiled, the function itself is native code, too. The kernels, which do the arithmetic, are the same in both modes.

# %%
compiled = vm.VirtualMachine(vm.build(module, exec_mode="compiled"))
assert compiled["main"](x, w).numpy().tobytes() == y.numpy().tobytes()
machine.function_kinds, compiled.function_kinds

# %% [markdown]
# What is wrong with an argument is said by a typed error, which names the function, the argument, and what was
# expected.

# %%
from relvm.errors import RelvmTypeError

try:
    machine["main"](x.astype(np.float64), w)
    raise AssertionError("f64 was taken for f32")
except RelvmTypeError as error:
    print(error)

# %% [markdown]
# An executable is one file. What was saved here may be loaded here; native code from elsewhere needs
# `trust_native=True`.

# %%
executable.save("model.rvm")
loaded = vm.VirtualMachine(vm.load("model.rvm"))
assert loaded["main"](x, w).numpy().tobytes() == y.numpy().tobytes()
executable.stats()
