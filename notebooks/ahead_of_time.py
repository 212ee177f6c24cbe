# %% [markdown]
# # Ahead-of-time export
#
# Ahead-of-time export compiles a model to C sources that need only a C99 compiler. The exported code uses no virtual
# machine and allocates no memory. The memory that a run needs is known in advance.
#
# At the end of the notebook you can export a model as C sources, read its interface, test it, and state how much
# memory it needs.

# %%
import subprocess

import numpy as np

from relvm import aot, vm
from relvm.frontend.text import parse_module

module = parse_module("""
def main(x: f32[n, 4], w: f32[4, 3]) -> f32[n, 3] with (upper_bounds=(("n", 16),)) {
  return softmax(matmul(x, w), axis=1)
}""")
program = aot.build(module, aot.AotConfig(name="scores", alignment=16))
sorted(program.sources.files)

# %% [markdown]
# The header declares the public interface: a struct of inputs, a struct of outputs, and a function. The symbolic size
# `n` is a field of the inputs.

# %%
print(program.sources.files["include/scores.h"])

# %% [markdown]
# Intermediate tensors are stored in a memory pool, an array of fixed size. The size of the pool is known, because the
# upper bound of `n` is 16. If a model has a size without an upper bound, the export raises an error.

# %%
from relvm.errors import RelvmUnsupportedError

print(program.sources.pool_bytes, program.sources.constants_bytes)
unbounded = (
    "def main(x: f32[n, 4], w: f32[4, 4]) -> f32[n, 4] { return matmul(matmul(x, w), w) }"
)
try:
    aot.build(parse_module(unbounded))
    raise AssertionError("a pool of unknown size was made")
except RelvmUnsupportedError as error:
    print(error)

# %% [markdown]
# `write` writes the sources to a folder. If you also pass inputs and expected outputs, it writes a self test.

# %%
rng = np.random.default_rng(0)
x, w = (
    rng.standard_normal((5, 4)).astype(np.float32),
    rng.standard_normal((4, 3)).astype(np.float32),
)
expected = vm.VirtualMachine(vm.build(module))["main"](x, w).numpy()
program.write("scores", ((x, w), (expected,)))
done = subprocess.run(["make", "-s", "-C", "scores", "test"], capture_output=True, text=True)
print(done.stdout)
assert done.returncode == 0, done.stderr

# %% [markdown]
# With the option `runtime="hosted"`, the model becomes a shared library, which Python can run without a virtual
# machine.

# %%
config = aot.AotConfig("scores", runtime="hosted", interface="packed", unpacked=False)
factory = aot.compile_library(aot.build(module, config))
factory.export_library("scores.so")
executor = aot.AotExecutor(aot.load_module("scores.so"))
executor.set_input("x", x)
executor.set_input("w", w)
executor.run()
np.testing.assert_allclose(executor.get_output(0), expected, rtol=1e-6)

# %% [markdown]
# **Exercise.** How many bytes does the memory pool need if `n` is at most 32? Build the program again with this
# bound.

# %% tags=["solution"]
larger = parse_module("""
def main(x: f32[n, 4], w: f32[4, 3]) -> f32[n, 3] with (upper_bounds=(("n", 32),)) {
  return softmax(matmul(x, w), axis=1)
}""")
pool_bytes = aot.build(larger, aot.AotConfig(name="larger", alignment=16)).sources.pool_bytes
print(pool_bytes)
assert sum(program.sources.pool_bytes) < sum(pool_bytes) <= 2 * sum(program.sources.pool_bytes)
