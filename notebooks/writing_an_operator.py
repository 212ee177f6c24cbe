# %% [markdown]
# # Writing an operator
#
# An operator is one declaration: its type rule, its meaning in NumPy, and how it becomes a kernel. Text, scripts, the
# printer and the passes know it by that. The docstring is its documentation.
#
# In relvm itself the declaration is in a file of `relvm/ops/`, and a row of sample calls in `tests/ops/samples.py`
# tests it in every way; an operator without one fails the tests.

# %%
import numpy as np

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.explore import compare, explore
from relvm.frontend.text import parse_module
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.kernels.loop_ir import Scalar
from relvm.kernels.lowering_rules import elementwise


def square_meaning(x: np.ndarray, *, offset: float) -> np.ndarray:
    return x * x + x.dtype.type(offset)


def square_element(x: Scalar, *, offset: float) -> Scalar:
    return x * x + offset


@op("shifted_square", numpy=square_meaning, lower=elementwise(square_element))
def shifted_square(x: TensorType, *, offset: float = 0.0) -> TensorType:
    """x * x + offset, elementwise.

    x: a float dtype.   Result: the type of x.   Raises RelvmTypeError: another dtype.
    """
    expect(x.dtype is not None and x.dtype.is_float, "shifted_square: x has dtype {}, expected a float", x.dtype)
    return x


# %% [markdown]
# `square_element` computes no numbers: it is given expressions of a kernel, and makes one of them. The text form
# knows the operator at once.

# %%
module = parse_module("""
def main(x: f32[n, 4]) -> f32[n, 4] {
  y = shifted_square(x, offset=0.5)
  return relu(negative(y))
}""")
machine = vm.VirtualMachine(vm.build(module))
x = np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4)
np.testing.assert_array_equal(machine["main"](x).numpy(), np.zeros((2, 4)))

# %% [markdown]
# An element of its result says nothing of other elements, so it shares a kernel with its neighbours.

# %%
stages = explore(module)
print(stages["fuse_ops"])
fused = stages["fuse_ops"].text.split("fused {")[1]
assert all(name in fused for name in ("shifted_square", "negative", "relu"))

# %% [markdown]
# The meaning in NumPy is what the kernel is held against, in both modes. One operator alone:

# %%
alone = parse_module("def main(x: f32[n, 4]) -> f32[n, 4] { return shifted_square(x, offset=0.5) }")
compared = compare(alone, x)
assert compared.agrees
compared

# %% [markdown]
# The type rule refuses what the operator is not for.

# %%
try:
    vm.build(parse_module("def main(x: i64[n]) -> i64[n] { return shifted_square(x) }"))
    raise AssertionError("integers were taken")
except RelvmTypeError as error:
    print(error)

# %% [markdown]
# A meaning that is not the kernel's is found: `compare` names the value.

# %%


@op("wrong_square", numpy=lambda x: x * x, lower=elementwise(lambda x: x * x * x))
def wrong_square(x: TensorType) -> TensorType:
    """x * x, elementwise, but its kernel is another's.

    x: a float dtype.   Result: the type of x.
    """
    return x


wrong = compare(
    parse_module("""
def main(x: f32[n]) -> f32[n] {
  a = exp(x)
  b = wrong_square(a)
  return negative(b)
}"""),
    np.float32([0, 1]),
)
assert wrong.first.name == "b"
wrong
