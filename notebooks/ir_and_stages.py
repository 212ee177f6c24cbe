# %% [markdown]
# # The IR and its stages
#
# A module goes down through stages, each with rules of its own: PARSED, TYPED, NORMAL, LEGAL, PLANNED. Passes take it
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
# TYPED: every expression has a type. NORMAL: every computation has a name, so that arguments are variables or
# constants.

# %%
print(stages["infer_types"])
print(stages["normalize"])
assert "relu(add(" in stages["given"].text and "relu(add(" not in stages["normalize"].text

# %% [markdown]
# The softmax is declared as a composition of smaller operators, and takes part in fusion as these. Operators in one
# `fused` block share a kernel.

# %%
print(stages.diff("decompose", "fuse"))
assert "fused {" in stages["fuse"].text and "fused {" not in stages["decompose"].text

# %% [markdown]
# LEGAL: there are no operators any more, but calls of kernels. PLANNED: each tensor has memory, and dead values are
# dropped.

# %%
print(stages["legalize"])
print(stages["kill_dead"])
assert "kernel " in stages["legalize"].text
assert "alloc_storage" in stages["kill_dead"].text and "kill " in stages["kill_dead"].text

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
