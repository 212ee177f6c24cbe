# %% [markdown]
# # Memory planning
#
# A tensor is alive from its computation to its last use. The compiler knows which tensors are alive at the same time,
# and the pass `plan_memory` assigns memory to each tensor. A storage is a block of memory. A tensor can overwrite an
# input that is no longer used, share an arena (a storage for several tensors) with others, or reuse the storage of a
# dead tensor.
#
# At the end of the notebook you can read a memory plan, explain when tensors share memory, and declare bounds so that
# the size of the memory is known at compile time.

# %%
import numpy as np

from relvm import vm
from relvm.explore import draw_memory, explore
from relvm.frontend.text import parse_module

TEXT = """
def main(x: f32[64, 64], w: f32[64, 64]) -> f32[64, 64] {
  a = matmul(x, w)
  b = matmul(a, w)
  c = matmul(b, w)
  d = matmul(c, w)
  return d
}"""
module = parse_module(TEXT, "chain.relvm")
stages = explore(module)
print(stages["insert_kills"])

# %% [markdown]
# The program computes four tensors of 16 kB. At most two of them are alive at the same time. The function returns one
# of them, which therefore has a storage of its own.

# %%
print(stages.diff("lower_to_kernels", "plan_memory"))
assert stages["insert_kills"].text.count("alloc_storage") == 3

# %% [markdown]
# The following cell prints the plan, similar to `relvm show MODEL --memory`. It shows the offset of each tensor, and
# its lifetime as a range of bindings. The figure shows the same plan.

# %%
from relvm.ir.verifier import Stage
from relvm.passes.memory.plan_memory import memory_plans
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def print_plan(module) -> None:
    legal = run_passes(
        module, [step for step in build_pipeline("c") if step.to <= Stage.LOWERED]
    )
    for place, plan in memory_plans(legal):
        for storage in plan.storages:
            print(f"{place}: {storage.size_bytes} bytes")
            for slot, offset in zip(storage.slots, storage.offsets, strict=True):
                names = ", ".join(value.name for value in slot.values)
                print(f"    at {offset}, bindings {slot.first} to {slot.last}: {names}")


print_plan(module)
draw_memory(module)

# %% [markdown]
# Sizes can be symbolic. Tensors of equal size can share a storage, even if the compiler does not know the size. If
# the function declares an upper bound, the storages are planned for the largest size, so their sizes are known at
# compile time.

# %%
symbolic = TEXT.replace("x: f32[64, 64]", "x: f32[n, 64]").replace(
    "-> f32[64, 64]", "-> f32[n, 64]"
)
bounded = symbolic.replace(" {\n", ' with (upper_bounds=(("n", 32),)) {\n')
print_plan(parse_module(symbolic))
print_plan(parse_module(bounded))

# %% [markdown]
# An elementwise kernel can write its result into the memory of its input, if the input is not used afterwards. In
# this example, the kernel of `negative` does this. Fusion is disabled in this example, because it would create a
# single kernel.

# %%
in_place = parse_module("""
def main(x: f32[n, 64], w: f32[64, 64]) -> f32[n] {
  a = matmul(x, w)
  b = negative(a)
  return sum(b, axes=(1,))
}""")
planned = explore(in_place, fused=False)["insert_kills"].text
print(planned)
assert planned.count("alloc_storage") == 2

# %% [markdown]
# The memory plan does not affect the results.

# %%
rng = np.random.default_rng(0)
x, w = (rng.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(2))
result = vm.VirtualMachine(vm.build(module))["main"](x, w).numpy()
np.testing.assert_allclose(result, x @ w @ w @ w @ w, rtol=1e-3, atol=1e-4)

# %% [markdown]
# **Exercise.** Return `add(a, d)` instead of `d`, so that `a` is alive until the end. How many bytes do all storages of
# the plan have, before and after the change?


# %% tags=["solution"]
def total_bytes(module) -> int:
    legal = run_passes(
        module, [step for step in build_pipeline("c") if step.to <= Stage.LOWERED]
    )
    return sum(
        storage.size_bytes for _, plan in memory_plans(legal) for storage in plan.storages
    )


longer_alive = parse_module(TEXT.replace("return d", "return add(a, d)"))
print(total_bytes(module), total_bytes(longer_alive))
assert total_bytes(longer_alive) == total_bytes(module) + 64 * 64 * 4
