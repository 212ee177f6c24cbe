# %% [markdown]
# # Memory planning
#
# Before a program runs it is known which tensors are alive together. `plan_memory` gives each a place: over an input
# that dies, in an arena, or in the storage of a dead one.

# %%
import numpy as np

from relvm import vm
from relvm.explore import explore
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
# Four tensors are made, each of 16 kB, and no more than two are alive at once. The result leaves the function, so it
# has a storage of its own.

# %%
print(stages.diff("lower_to_kernels", "plan_memory"))
assert stages["insert_kills"].text.count("alloc_storage") == 3

# %% [markdown]
# The plan itself, as `relvm show MODEL --memory` prints it: offsets, and from which binding to which a place is
# needed.

# %%
from relvm.ir.verifier import Stage
from relvm.passes.memory.plan_memory import memory_plans
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline


def print_plan(module) -> None:
    legal = run_passes(module, [step for step in build_pipeline("c") if step.to <= Stage.LOWERED])
    for place, plan in memory_plans(legal):
        for storage in plan.storages:
            print(f"{place}: {storage.size_bytes} bytes")
            for slot, offset in zip(storage.slots, storage.offsets, strict=True):
                print(
                    f"    at {offset}, bindings {slot.first} to {slot.last}: {', '.join(v.name for v in slot.values)}"
                )


print_plan(module)

# %% [markdown]
# Sizes may be symbolic: tensors of equal size share, whatever it is. Where a bound is stated, storage has the largest
# size that can be needed, and is known before the program runs.

# %%
symbolic = TEXT.replace("x: f32[64, 64]", "x: f32[n, 64]").replace("-> f32[64, 64]", "-> f32[n, 64]")
bounded = symbolic.replace(" {\n", ' with (upper_bounds=(("n", 32),)) {\n')
print_plan(parse_module(symbolic))
print_plan(parse_module(bounded))

# %% [markdown]
# A kernel that works element by element may write over its input, if that dies there. Here `negative` does, with
# fusion left out.

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
# The plan is only about memory: the results are what they are without it.

# %%
rng = np.random.default_rng(0)
x, w = (rng.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(2))
result = vm.VirtualMachine(vm.build(module))["main"](x, w).numpy()
np.testing.assert_allclose(result, x @ w @ w @ w @ w, rtol=1e-3, atol=1e-4)
