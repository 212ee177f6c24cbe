# %% [markdown]
# # Writing a kernel
#
# A kernel is a loop nest over the elements of tensors. Write a kernel if no operator computes what you need, or if
# you would need too many operators. The decorator `@kernel` turns a Python function into a kernel. The parameters
# whose elements it assigns are the outputs. They come after all other parameters.
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
# relvm has proven at compile time that every index in this kernel is in range. For `x[i, j - 1]`, the proof uses the
# condition `j > 0`. Without this condition, relvm rejects the kernel, because a `simd` loop cannot contain checks at
# run time. In a `range` loop, it would check the index at run time.


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
# The kernel can run as kernel bytecode, which needs no C compiler, and as native code. The results are bit-identical.

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
# The following cell measures the time of one call, as kernel bytecode and as native code:

# %% tags=["remove-output"]
for target, machine in machines.items():
    print(target, machine.time_evaluator("main", number=20)(x))

# %% [markdown]
# `explore` shows each stage of the compilation: the program text, the kernel as bytecode or C, and the function that
# calls the kernel, lowered to a routine.

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
