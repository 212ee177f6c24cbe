# %% [markdown]
# # Debugging
#
# A debugger stops a program between its instructions, by the names that the program has for its values. Compiled
# functions, built for it, stop where bytecode does.

# %%
import numpy as np

from relvm.explore import Debugger
from relvm.frontend.text import parse_module

module = parse_module(
    """
def main(x: f32[n, 4], k: i64) -> f32[n] {
  scaled = multiply(x, x)
  shifted = subtract(scaled, const(f32[], 2.0))
  roots = sqrt(shifted)
  return @smooth(sum(roots, axes=(1,)), k)
}
def smooth(v: f32[n], k: i64) -> f32[n] {
  half = multiply(v, const(f32[], 0.5))
  return if k > 0 then @smooth(half, k - 1) else half
}""",
    "model.relvm",
)
debugger = Debugger(module, exec_mode="compiled", fused=False)
x = np.float32([[1, 2, 3, 4], [2, 2, 2, 2]])

# %% [markdown]
# Some result is NaN. Where does it come from?

# %%
debugger.watch_nan()
print(debugger.run("main", x, 2))
print(debugger["roots"])

# %% [markdown]
# What its argument was is gone: the roots were written over it. So the run is to stop before that. A breakpoint is a
# value, a function, a line of the source, or an instruction; with a condition it stops only where that holds.

# %%
debugger.close()
debugger.watch_nan(False)
debugger.break_at("roots", when=lambda at: (at["shifted"] < 0).any())
print(debugger.run("main", x, 2))
print(debugger["shifted"])

# %% [markdown]
# `resume` goes on to the next breakpoint, `step` to what computes the next value, be it in a function that is called;
# `step_over` runs through calls, `step_out` until the function has returned.

# %%
debugger.break_at("half", when=lambda at: at["k"] == 1)
print(debugger.resume())
print(*debugger.stack(), sep="\n")
print(*debugger.registers(), sep="\n")
debugger.step()

# %% [markdown]
# A run that fails stops where it failed.

# %%
debugger.close()
falls = parse_module("def main(n: i64) -> i64 = if n > 0 then 1 + @main(n - 1) else 10 // n", "falls.relvm")
failing = Debugger(falls)
print(failing.run("main", 3))
print(*failing.stack(), sep="\n")
assert failing["n"] == 0

# %% [markdown]
# In a terminal: `relvm debug model.relvm --input x=x.npy --input k=2`, then `help`.
