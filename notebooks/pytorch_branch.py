# %% [markdown]
# # A PyTorch model with a branch
#
# `torch.export` writes a PyTorch model with its control flow to a file. relvm reads the file without PyTorch. A branch
# on the values of a tensor, `torch.cond`, becomes an `if`.
#
# At the end of the notebook you can find the branch of a model in every lowering stage, run both sides of it, and
# export the model as C sources with static memory.
#
# The file `branch.pt2` was written by these lines, with PyTorch:
#
# ```python
# class Branch(nn.Module):
#     """A quiet signal is amplified before it is filtered, and a loud one is clipped."""
#
#     def __init__(self):
#         super().__init__()
#         self.filter = nn.Conv1d(1, 4, 3, padding=1)
#         self.head = nn.Linear(4, 2)
#
#     def forward(self, signal):
#         peak = signal.abs().amax()
#         quiet, loud = lambda x, p: x / p.clamp(min=1e-6), lambda x, p: x.clamp(-1, 1)
#         level = torch.cond(peak < 0.5, quiet, loud, (signal, peak))
#         return self.head(torch.relu(self.filter(level)).mean(-1))
#
# shapes = ({0: Dim("batch", max=8)},)
# program = torch.export.export(module, (torch.randn(2, 1, 16),), dynamic_shapes=shapes)
# torch.export.save(program.run_decompositions(), "branch.pt2")
# ```

# %%
import subprocess

import numpy as np

import relvm
from relvm import aot
from relvm.explore import explore
from relvm.frontend.torch import from_pt2
from relvm.ir.printer import print_module

module = from_pt2("branch.pt2")
print(print_module(module))
assert " = if " in print_module(module)

# %% [markdown]
# The two functions that were passed to `torch.cond` are the branches of the `if`. Parameters of the PyTorch module are
# constants. The batch is a symbolic size with an upper bound, because `Dim` has a maximum.
#
# `explore` records the module after each pass. Operators are fused within a branch, but not across the `if`.

# %%
stages = explore(module)
print(stages["fuse_ops"])
assert "fused {" in stages["fuse_ops"].text

# %% [markdown]
# At stage LOWERED, kernels have replaced the operators. At stage PLANNED, each side of the branch allocates its own
# tensors, because only one of them runs.


# %%
def branch_of(stage):
    """Return the lines of the branch in `main`."""
    lines = stages[stage].text.partition("def main")[2].split("\n")
    first = next(number for number, line in enumerate(lines) if " = if " in line)
    return "\n".join(lines[first : lines.index("  }", first) + 1])


print(branch_of("lower_to_kernels"))
print(branch_of("insert_kills"))
assert "alloc_tensor" in branch_of("insert_kills")

# %% [markdown]
# In bytecode, the `if` is a conditional jump to the second side. A second jump leads from the end of the first side to
# the end of the second.

# %%
lines = [line.text for line in stages["bytecode"].lines]
jumps = [line for line in lines if "->" in line]
print("\n".join(jumps))
assert len(jumps) == 2

# %% [markdown]
# The values of the input decide which side runs. Quiet signals have equal results, because they are amplified to the
# same level.

# %%
model = relvm.load_model("branch.pt2", target="bytecode")
signal = np.linspace(-2, 2, 16, dtype=np.float32).reshape(1, 1, 16)
loud, quiet = model(signal), model(signal * 0.1)
print(loud, quiet)
amplified = model(signal * 0.2)
np.testing.assert_allclose(quiet.numpy(), amplified.numpy(), rtol=1e-5)

# %% [markdown]
# The export has no virtual machine. Its memory is an array of fixed size, and the branch is an `if` in C.

# %%
program = aot.build(module, aot.AotConfig(name="branch"))
program.write("branch", ((signal,), (loud.numpy(),)))
print(program.sources.pool_bytes, program.sources.constants_bytes)
done = subprocess.run(["make", "-s", "-C", "branch", "test"], capture_output=True, text=True)
print(done.stdout)
assert done.returncode == 0, done.stderr

# %% [markdown]
# **Exercise.** Find the first stage in which the two branches are functions or blocks without operators, only with
# calls of kernels.

# %% tags=["solution"]
first = next(name for name in stages.names if "divide(" not in stages[name].text)
print(first)
assert first == "lower_to_kernels"
