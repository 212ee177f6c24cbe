# %% [markdown]
# # Compiled mode, and its C
#
# In both modes kernels are C. In compiled mode the functions that call them are C, too: over the same registers, by
# the same builtins.

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
# What both modes are printed from is the routine: statements over registers `r`, constants `c`, functions `f`.

# %%
print(stages["routine"])

# %% [markdown]
# A kernel is a C function of tensors, a loop nest.

# %%
lines = stages["c"].text.split("\n")
start = next(number for number, line in enumerate(lines) if "kernel_relu_f32" in line)
print("\n".join(lines[start : start + 25]))

# %% [markdown]
# A routine is a C function of the machine and its registers. `triangle` ends with a call of itself, which is a jump
# to its start, so it needs no stack.

# %%
source = vm.build(module, exec_mode="compiled").source
start = source.index("/* triangle(n, sum) */")
print(source[start:])
assert "goto" in source[start:]

# %%
machines = {mode: vm.VirtualMachine(vm.build(module, exec_mode=mode)) for mode in ("bytecode", "compiled")}
for mode, machine in machines.items():
    assert machine["triangle"](1_000_000, 0) == 500000500000
    seconds = machine.time_evaluator("triangle", number=1, repeat=3)(1_000_000, 0).median
    print(f"{mode}: {seconds * 1e3:.2f} ms for a million rounds")

# %% [markdown]
# The modes may be mixed: a mapping says it for each function. The results are the same.

# %%
mixed = vm.VirtualMachine(vm.build(module, exec_mode={"triangle": "compiled"}))
assert mixed.function_kinds["triangle"] == "native" and mixed.function_kinds["main"] == "bytecode"
x = np.float32([[-1, 0, 1, np.nan]])
results = [np.array(machine["main"](x, True)).tobytes() for machine in (*machines.values(), mixed)]
assert len(set(results)) == 1
