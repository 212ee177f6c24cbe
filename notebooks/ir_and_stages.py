# %% [markdown]
# # The IR and its stages
#
# A module goes down through stages, each with rules of its own: PARSED, TYPED, ANF, LOWERED, PLANNED. Passes take it
# from one to the next, and `explore` keeps what each of them made.

# %%
from relvm.explore import explore
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module

module = parse_module(
    """
def main(x: f32[n, 4], b: f32[4]) -> f32[n, 4] {
  scores = softmax(x, axis=1)
  return relu(add(scores, b))
}""",
    "model.relvm",
)
stages = explore(module)
stages.names

# %% [markdown]
# TYPED: every expression has a type. ANF: every computation has a name, so that arguments are variables or
# constants.

# %%
print(stages["infer_types"])
print(stages["to_anf"])
assert "relu(add(" in stages["given"].text and "relu(add(" not in stages["to_anf"].text

# %% [markdown]
# The softmax is declared as a composition of smaller operators, and takes part in fusion as these. Operators in one
# `fused` block share a kernel.

# %%
print(stages.diff("decompose", "fuse_ops"))
assert "fused {" in stages["fuse_ops"].text and "fused {" not in stages["decompose"].text

# %% [markdown]
# LOWERED: there are no operators any more, but calls of kernels. PLANNED: each tensor has memory, and dead values are
# dropped.

# %%
print(stages["lower_to_kernels"])
print(stages["insert_kills"])
assert "kernel " in stages["lower_to_kernels"].text
assert "alloc_storage" in stages["insert_kills"].text and "kill " in stages["insert_kills"].text

# %% [markdown]
# A value knows where it is from, down to the instructions: here is what line 2, the softmax, became.

# %%
found = stages.trace("given", 2)
for number in found["bytecode"]:
    print(stages["bytecode"].lines[number - 1].text)
assert found["bytecode"]

# %% [markdown]
# What is printed reads back as the same module.

# %%
text = print_module(module)
assert print_module(parse_module(text)) == text
