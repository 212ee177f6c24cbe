# %% [markdown]
# # Compiled mode and its C code
#
# The kernels are C code in both modes. In compiled mode, the functions that call the kernels are C code, too. They
# use the same registers and builtins as bytecode.
#
# At the end of the notebook you can build a program in compiled mode, read the C code of its kernels and functions,
# and mix both modes.

# %%
import numpy as np

from relvm import vm
from relvm.explore import explore
from relvm.frontend.text import parse_module

module = parse_module(
    """
def main(x: f32[n, 4], c: bool) -> f32[n, 4] {
  y = if c then { return relu(x) } else { return negative(x) }
  return y
}
def triangle(n: i64, sum: i64) -> i64 {
  return if n == 0 then sum else @triangle(n - 1, sum + n)
}""",
    "model.relvm",
)
stages = explore(module, exec_mode="compiled")

# %% [markdown]
# The compiler turns each function into a routine, and prints the routine either as bytecode or as C. The statements
# of a routine use registers `r`, constants `c` and functions `f`.

# %%
print(stages["routine"])

# %% [markdown]
# A kernel is a C function whose parameters are tensors. It contains a loop nest over their elements.

# %%
lines = stages["c"].text.split("\n")
start = next(number for number, line in enumerate(lines) if "kernel_relu_f32" in line)
print("\n".join(lines[start : start + 25]))

# %% [markdown]
# A routine becomes a C function whose parameters include the machine and the registers. All parameters and results of
# `triangle` are scalars, so this function only checks the arguments and calls a second C function, which computes
# with C integers instead of registers. `triangle` tail-calls itself. This call becomes a jump to the start of the
# function, so it needs no stack space.

# %%
source = vm.build(module, exec_mode="compiled").source
start = source.index("/* triangle(n, sum) */")
print(source[start:])
assert "goto" in source[start:]

# %% tags=["remove-output"]
machines = {
    mode: vm.VirtualMachine(vm.build(module, exec_mode=mode))
    for mode in ("bytecode", "compiled")
}
for mode, machine in machines.items():
    assert machine["triangle"](1_000_000, 0) == 500000500000
    seconds = machine.time_evaluator("triangle", number=1, repeat=3)(1_000_000, 0).median
    print(f"{mode}: {seconds * 1e3:.2f} ms for a million rounds")

# %% [markdown]
# The two modes can be mixed in an executable. Pass a mapping that contains the mode of each function. The results are
# the same.

# %%
mixed = vm.VirtualMachine(vm.build(module, exec_mode={"triangle": "compiled"}))
assert (
    mixed.function_kinds["triangle"] == "native" and mixed.function_kinds["main"] == "bytecode"
)
x = np.float32([[-1, 0, 1, np.nan]])
results = [
    np.array(machine["main"](x, True)).tobytes() for machine in (*machines.values(), mixed)
]
assert len(set(results)) == 1

# %% [markdown]
# **Exercise.** Build the program so that `main` is native code and `triangle` is bytecode. Check the result with
# `function_kinds`.

# %% tags=["solution"]
other = vm.VirtualMachine(vm.build(module, exec_mode={"main": "compiled"}))
print(other.function_kinds)
assert other.function_kinds == {"main": "native", "triangle": "bytecode"}
assert other["triangle"](1000, 0) == 500500
