# %% [markdown]
# # Dynamic shapes
#
# A size in a type can be a variable, and the same program then runs for all values of the variable. The compiler
# checks sizes at compile time as far as possible, and the program checks the others at run time.
#
# At the end of the notebook you can write types with symbolic sizes, tell which checks happen at compile time and
# which at run time, and declare bounds.

# %%
import numpy as np

from relvm import vm
from relvm.errors import RelvmShapeError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types


def machine_of(text: str) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.build(parse_module(text)))


machine = machine_of("""
def main(x: f32[n, m], y: f32[k, m]) -> f32[n + k, m] {
  return concat(x, y, axis=0)
}""")
joined = machine["main"](np.ones((2, 3), np.float32), np.ones((5, 3), np.float32))
assert joined.shape == (7, 3)

# %% [markdown]
# The types of both parameters contain the size `m`. If the arguments have different sizes there, the call raises an
# error.

# %%
try:
    machine["main"](np.ones((2, 3), np.float32), np.ones((5, 4), np.float32))
    raise AssertionError("3 columns and 4 were taken for equal")
except RelvmShapeError as error:
    print(error)

# %% [markdown]
# The compiler stores sizes as polynomials in a canonical form. Two equal sizes therefore compare equal, even if they
# are written differently.

# %%
typed = infer_types(
    parse_module("""
def main(x: f32[n, 4]) -> f32[2 * n * 2] {
  return reshape(x, shape(n * 4))
}""")
)
print(print_module(typed))
assert "shape(n * 4)" in print_module(typed)

# %% [markdown]
# If two sizes must be equal but cannot be, the program is rejected at compile time.

# %%
try:
    infer_types(parse_module("def main(x: f32[n], y: f32[n + 1]) { return add(x, y) }"))
    raise AssertionError("n and n + 1 were taken for equal")
except RelvmShapeError as error:
    print(error)

# %% [markdown]
# Some sizes are known only at run time. `match_cast` gives such a size a name, and checks the other sizes of the
# tensor.

# %%
machine = machine_of("""
def main(x: f32[...]) -> (i64, f32[_, _]) {
  y = match_cast(x, f32[rows, 4])
  return (dim(rows), relu(y))
}""")
assert machine["main"](np.ones((6, 4), np.float32))[0] == 6
try:
    machine["main"](np.ones((6, 5), np.float32))
    raise AssertionError("5 columns were taken for 4")
except RelvmShapeError as error:
    print(error)

# %% [markdown]
# A function can declare bounds of its sizes, which are checked at every call. With bounds, the compiler can plan
# memory for the largest size.

# %%
bounded = parse_module("""
def main(x: f32[n, 4]) -> f32[n, 4] with (upper_bounds=(("n", 32),)) {
  return softmax(relu(x), axis=1)
}""")
machine = vm.VirtualMachine(vm.build(bounded))
assert machine["main"](np.ones((32, 4), np.float32)).shape == (32, 4)
try:
    machine["main"](np.ones((33, 4), np.float32))
    raise AssertionError("33 rows were taken where at most 32 may be")
except RelvmShapeError as error:
    print(error)

# %% [markdown]
# **Exercise.** Write a program that puts the columns of two matrices next to each other. State all sizes in its type.
# What happens if the matrices have different numbers of rows?

# %% tags=["solution"]
machine = machine_of("""
def main(x: f32[n, m], y: f32[n, k]) -> f32[n, m + k] {
  return concat(x, y, axis=1)
}""")
assert machine["main"](np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)).shape == (
    2,
    7,
)
try:
    machine["main"](np.ones((2, 3), np.float32), np.ones((5, 4), np.float32))
    raise AssertionError("2 rows and 5 were taken for equal")
except RelvmShapeError as error:
    print(error)
