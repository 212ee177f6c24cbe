# %% [markdown]
# # First steps
#
# This notebook defines a program, builds it in bytecode mode and in compiled mode, and runs it. Both modes give
# bit-identical results. At the end of the notebook you can write a program in text form, run it in both modes, read
# its errors, and save it. If a cell ends with a module, a machine or a result, Jupyter displays the contents of the
# object.

# %%
import numpy as np

from relvm import vm
from relvm.frontend.text import parse_module

module = parse_module("""
def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] {
  y = matmul(x, w)
  return relu(y)
}""")
module

# %% [markdown]
# `n` is a symbolic size, so the program runs for any number of rows. `vm.build` creates an executable, and a
# `VirtualMachine` runs it.

# %%
executable = vm.build(module, exec_mode="bytecode")
machine = vm.VirtualMachine(executable)

x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
w = np.linspace(0, 1, 32, dtype=np.float32).reshape(4, 8)
y = machine["main"](x, w)
np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0), rtol=1e-5)
y

# %% [markdown]
# In compiled mode, the function `main` is native code, too. The kernels, which perform the arithmetic on tensors, are
# the same in both modes.

# %%
compiled = vm.VirtualMachine(vm.build(module, exec_mode="compiled"))
assert compiled["main"](x, w).numpy().tobytes() == y.numpy().tobytes()
machine.function_kinds, compiled.function_kinds

# %% [markdown]
# An invalid argument raises a typed error. The message names the function, the argument, and the expected type.

# %%
from relvm.errors import RelvmTypeError

try:
    machine["main"](x.astype(np.float64), w)
    raise AssertionError("f64 was taken for f32")
except RelvmTypeError as error:
    print(error)

# %% [markdown]
# You can save an executable to a file and load it again. An executable with native code can be loaded only on the
# computer that built it. To load one from another computer, pass `trust_native=True`.

# %%
executable.save("model.rvm")
loaded = vm.VirtualMachine(vm.load("model.rvm"))
assert loaded["main"](x, w).numpy().tobytes() == y.numpy().tobytes()
size, contents = str(executable.stats()).split("\n", 1)  # the size depends on the processor
print(contents)

# %% [markdown]
# `%load_ext relvm` adds two magic commands to Jupyter. `%relvm_profile` runs a call and shows the time of each
# kernel. A cell that begins with `%%relvm` contains a program in text form, and compiles it.

# %% tags=["remove-output"]
# %load_ext relvm
# %relvm_profile machine["main"](x, w)

# %% [markdown]
# **Exercise.** How many kernels does the program above have? Add `softmax(y, axis=1)`, and compare. The stage
# `fuse_ops` of `relvm.explore.explore` shows a block `fused` for each kernel of several operators. You can also write
# the program in a cell that begins with `%%relvm --stage fuse_ops`.

# %% tags=["solution"]
from relvm.explore import explore

longer = parse_module("""
def main(x: f32[n, 4], w: f32[4, 8]) -> f32[n, 8] {
  y = relu(matmul(x, w))
  return softmax(y, axis=1)
}""")
print(explore(longer)["fuse_ops"])
kernels = explore(longer)["lower_to_kernels"].text.count("kernel ")
assert (explore(module)["lower_to_kernels"].text.count("kernel "), kernels) == (1, 2)
