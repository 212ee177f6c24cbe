# %% [markdown]
# # The IR and its stages
#
# During compilation, a module passes through five stages: PARSED, TYPED, ANF, LOWERED and PLANNED. Each stage has its
# own rules for what a module can contain. Passes are the functions that transform a module. `explore` records the
# module after each pass.
#
# At the end of the notebook you can name the stages of a module, print the module after each pass, and follow a line
# through all stages.

# %%
from relvm.explore import draw_dataflow, explore
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
# At stage TYPED, every expression has a type. Stage ANF is A-normal form: every computation has a name, so all
# arguments are variables or constants.

# %%
print(stages["infer_types"])
print(stages["to_anf"])
assert "relu(add(" in stages["given"].text and "relu(add(" not in stages["to_anf"].text

# %% [markdown]
# Softmax is declared as a composition of simpler operators. A pass replaces it by these operators, so that they can
# be fused with others. The operators in one `fused` block share a kernel. The figure shows such a block as a green
# box.

# %%
print(stages.diff("decompose", "fuse_ops"))
assert "fused {" in stages["fuse_ops"].text and "fused {" not in stages["decompose"].text
draw_dataflow(module)

# %% [markdown]
# At stage LOWERED, calls of kernels have replaced all operators. At stage PLANNED, memory is allocated for each
# tensor, and dead values are released.

# %%
print(stages["lower_to_kernels"])
print(stages["insert_kills"])
assert "kernel " in stages["lower_to_kernels"].text
assert (
    "alloc_storage" in stages["insert_kills"].text and "kill " in stages["insert_kills"].text
)

# %% [markdown]
# The compiler stores for every value and every instruction the source lines from which it is derived. The following
# cell prints the instructions that are derived from line 2, the softmax.

# %%
found = stages.trace("given", 2)
for number in found["bytecode"]:
    print(stages["bytecode"].lines[number - 1].text)
assert found["bytecode"]

# %% [markdown]
# If the printed form of a module is parsed, the result is the same module.

# %%
text = print_module(module)
assert print_module(parse_module(text)) == text

# %% [markdown]
# **Exercise.** The program `add(relu(x), relu(x))` computes the same value twice. Find the pass that removes one of
# the two computations.

# %% tags=["solution"]
twice = explore(parse_module("def main(x: f32[n]) -> f32[n] = add(relu(x), relu(x))"))
after = twice.names[2 : twice.names.index("fuse_ops")]
found = next(name for name in after if twice[name].text.count("relu(") == 1)
print(found)
assert found == "cse"
