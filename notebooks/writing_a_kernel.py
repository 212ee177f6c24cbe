# %% [markdown]
# # Writing a kernel
#
# A kernel is a loop nest over the elements of tensors. Write one for what no operator computes, or what operators
# compute in too many steps. A function decorated with `@kernel` is such a kernel. Its last parameters, which it
# writes, are its outputs.
#
# At the end of the notebook you can write a loop nest as a kernel, understand why relvm accepts its indices, and run
# it with and without a C compiler.

# %%
import numpy as np

from relvm import kernel, parallel, script, simd, vm
from relvm.errors import RelvmTypeError
from relvm.explore import explore
from relvm.ir.printer import print_module


@script
class Smoothing:
    @kernel
    def smooth(x: "f32[n, m]", weight: "f32", out: "f32[n, m]"):
        for i in parallel(n):
            for j in simd(m):
                left = x[i, j - 1] if j > 0 else x[i, j]
                right = x[i, min(j + 1, m - 1)]
                out[i, j] = x[i, j] * (1.0 - weight) + (left + right) * (weight * 0.5)

    def main(x: "f32[n, m]") -> "f32[n, m]":
        return relu(smooth(x, 0.25))


# %% [markdown]
# The module contains the kernel, and `main` calls it.

# %%
print(print_module(Smoothing))

# %% [markdown]
# Every index is inside of its axis: relvm has proven it. `x[i, j - 1]` is read only where `j > 0`. Without that
# condition, relvm rejects the loop. In a `range` loop, it would check the index at run time.


# %%
@kernel
def wrong(x: "f32[n]", out: "f32[n]"):
    for i in simd(n):
        out[i] = x[i - 1]


try:
    print(wrong.definition)
    raise AssertionError("an index of -1 was accepted")
except RelvmTypeError as error:
    print(error)

# %% [markdown]
# The kernel runs without a C compiler, as kernel bytecode, and as native code. Both give the same bits.

# %%
x = np.random.default_rng(0).standard_normal((200, 1000)).astype(np.float32)
machines = {
    target: vm.VirtualMachine(vm.build(Smoothing, target=target))
    for target in ("bytecode", "c")
}
results = {target: machine["main"](x).numpy() for target, machine in machines.items()}
assert results["bytecode"].tobytes() == results["c"].tobytes()

left = np.concatenate([x[:, :1], x[:, :-1]], axis=1)
right = np.concatenate([x[:, 1:], x[:, -1:]], axis=1)
expected = np.maximum(x * np.float32(0.75) + (left + right) * np.float32(0.125), 0)
np.testing.assert_allclose(results["c"], expected, rtol=1e-5, atol=1e-6)

# %% [markdown]
# The time of one call, in both forms:

# %% tags=["remove-output"]
for target, machine in machines.items():
    print(target, machine.time_evaluator("main", number=20)(x))

# %% [markdown]
# An exploration shows each stage: the text, the loops as kernel bytecode or C, and the routine that calls them.

# %%
exploration = explore(Smoothing, target="c")
print(exploration.names)
print(exploration["c"])

# %% [markdown]
# **Exercise.** Write a kernel that reverses a vector, and a `main` that calls it.


# %% tags=["solution"]
@script
class Reversal:
    @kernel
    def reverse(x: "f32[n]", out: "f32[n]"):
        for i in simd(n):
            out[i] = x[n - 1 - i]

    def main(x: "f32[n]") -> "f32[n]":
        return reverse(x)


reversal = vm.VirtualMachine(vm.build(Reversal))
print(reversal["main"](np.float32([1, 2, 3])).numpy())
assert reversal["main"](np.float32([1, 2, 3])).numpy().tolist() == [3, 2, 1]
