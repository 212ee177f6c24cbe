# %% [markdown]
# # A JAX program with scan in every stage
#
# JAX exports this function as a StableHLO program. The program contains a loop, whose counter and condition are
# tensors of rank 0:
#
# ```python
# def smooth(xs):
#     def step(mean, x):
#         mean = 0.5 * mean + 0.5 * x
#         return mean, mean
#
#     return jax.lax.scan(step, jnp.zeros(3), xs)[1]
#
#
# print(jax.jit(smooth).lower(jax.ShapeDtypeStruct((5, 3), jnp.float32)).as_text())
# ```
#
# The notebook contains the text that JAX 0.10.2 prints, so it needs no JAX. At the end of the notebook you can follow
# a loop of JAX from StableHLO to bytecode, and explain why it allocates no memory for its counter.

# %%
import numpy as np

from relvm import vm
from relvm.explore import explore
from relvm.frontend.stablehlo import from_stablehlo

TEXT = b"""
module @jit_smooth attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x3xf32>) -> (tensor<5x3xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %2:4 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %c, %iterArg_2 = %0, %iterArg_3 = %1)
        : tensor<5x3xf32>, tensor<i32>, tensor<3xf32>, tensor<5x3xf32>
    cond {
      %c_4 = stablehlo.constant dense<5> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_1, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_1)
        : (tensor<5x3xf32>, tensor<i32>) -> tensor<3xf32>
      %4:2 = func.call @closed_call(%iterArg_2, %3)
        : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
      %5 = func.call @dynamic_update_index_in_dim(%iterArg_3, %4#1, %iterArg_1)
        : (tensor<5x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<5x3xf32>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg_1, %c_4 : tensor<i32>
      stablehlo.return %iterArg, %6, %4#0, %5 : tensor<5x3xf32>, tensor<i32>, tensor<3xf32>, tensor<5x3xf32>
    }
    return %2#3 : tensor<5x3xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<5x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3]
      : (tensor<5x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>)
      -> (tensor<3xf32>, tensor<3xf32>) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<3xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %3 = stablehlo.multiply %2, %arg1 : tensor<3xf32>
    %4 = stablehlo.add %1, %3 : tensor<3xf32>
    return %4, %4 : tensor<3xf32>, tensor<3xf32>
  }
  func.func private @dynamic_update_index_in_dim(
      %arg0: tensor<5x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) -> tensor<5x3xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c
      : (tensor<5x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x3xf32>
    return %1 : tensor<5x3xf32>
  }
}
"""
module = from_stablehlo(TEXT, name="smooth.mlir")
stages = explore(module)
print(module)

# %% [markdown]
# The `while` has become a local function that tail-calls itself. The values that the loop carries are its parameters.
# Private functions of the program are functions of the module. The pass `inline` replaces their calls, and
# `lambda_lifting` makes a function of the module out of the local function.

# %%
print(stages["lambda_lifting"])

# %% [markdown]
# The counter of the loop is an `i32[]`, a tensor of rank 0, and so is its condition, a `bool[]`. The pass
# `unbox_scalars` computes with scalars instead. The index of a row is a tensor only where a kernel reads it.

# %%
print(stages.diff("lambda_lifting", "unbox_scalars"))
assert "less(" in stages["lambda_lifting"].text and "less(" not in stages["unbox_scalars"].text

# %% [markdown]
# The operators of an iteration are fused to one kernel. The rows of the result are written by another kernel, which
# updates the result in place: `unshare_tensor` copies the tensor only if something else refers to it.

# %%
print(stages["lower_to_kernels"])
print(stages["insert_kills"])

# %% [markdown]
# In bytecode, the scalar operators are single instructions, and the tail call is a jump to the beginning.

# %%
print(stages["bytecode"])

# %%
machine = vm.VirtualMachine(vm.build(module))
xs = np.arange(15, dtype=np.float32).reshape(5, 3)
print(machine["main"](xs).numpy())

# %% [markdown]
# **Exercise.** Without the pass `unbox_scalars`, more kernels are needed. Find out which ones.

# %% tags=["solution"]
boxed = explore(module, without=["unbox_scalars"])["lower_to_kernels"].text
unboxed = stages["lower_to_kernels"].text
kernels = [
    {line.split("kernel ")[1].split("(")[0] for line in text.split("\n") if "kernel " in line}
    for text in (boxed, unboxed)
]
print(sorted(kernels[0] - kernels[1]))
assert kernels[0] - kernels[1] == {"less_bool", "add_i32"}
