# %% [markdown]
# # Debugging
#
# A debugger stops a program between two instructions. You set breakpoints and inspect values by the names in the
# program. The debugger also stops inside compiled functions, at the same positions as in bytecode.
#
# At the end of the notebook you can find the instruction that produces a NaN, stop at breakpoints with conditions,
# and inspect registers.

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
# The result of this program contains NaN. After `watch_nan()`, the debugger stops after the instruction that produces
# the first NaN.

# %%
debugger.watch_nan()
print(debugger.run("main", x, 2))
print(debugger["roots"])

# %% [markdown]
# The argument of `sqrt` is no longer available, because the kernel has written the roots to the same memory. To
# inspect the argument, the run must stop before this instruction. A breakpoint can be set at a value, a function, a
# source line or an instruction. If it has a condition, the run stops only if the condition is true.

# %%
debugger.close()
debugger.watch_nan(False)
debugger.break_at("roots", when=lambda at: (at["shifted"] < 0).any())
print(debugger.run("main", x, 2))
print(debugger["shifted"])

# %% [markdown]
# `resume` continues to the next breakpoint. `step` continues to the next computation of a value, and enters called
# functions. `step_over` does not enter calls. `step_out` continues until the function has returned.

# %%
debugger.break_at("half", when=lambda at: at["k"] == 1)
print(debugger.resume())
print(*debugger.stack(), sep="\n")
print(*debugger.registers(), sep="\n")
debugger.step()

# %% [markdown]
# If a run fails, the debugger stops at the failed instruction.

# %%
debugger.close()
falls = parse_module(
    "def main(n: i64) -> i64 = if n > 0 then 1 + @main(n - 1) else 10 // n", "falls.relvm"
)
failing = Debugger(falls)
print(failing.run("main", 3))
print(*failing.stack(), sep="\n")
assert failing["n"] == 0

# %% [markdown]
# The debugger is also available in a terminal. Run `relvm debug model.relvm --input x=x.npy --input k=2` and enter
# `help`.

# %% [markdown]
# **Exercise.** Stop `smooth` before it computes `half` for the last time, which is when `k` is 0. Print `v` at that
# point.

# %% tags=["solution"]
last = Debugger(module, fused=False)
last.break_at("half", when=lambda at: at["k"] == 0)
last.run("main", np.abs(x) + 2, 2)
print(last["v"])
assert last["k"] == 0
last.close()
