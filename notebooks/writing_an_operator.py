# %% [markdown]
# # Writing an operator
#
# The declaration of an operator consists of its type rule, which computes the type of the result, its NumPy
# implementation, and its lowering to a kernel. The text form, scripts, the printer and the passes read this
# declaration, so they need no change. The docstring is the documentation of the operator.
#
# The operators of relvm are declared in `relvm/ops/`. `tests/ops/samples.py` contains sample calls of each operator,
# which the tests run in every mode. The tests fail for an operator without sample calls.
#
# At the end of the notebook you can declare an operator with its type rule, NumPy implementation and kernel, and
# compare the kernel with the NumPy implementation.

# %%
import numpy as np

from relvm import vm
from relvm.errors import RelvmTypeError
from relvm.explore import compare, explore
from relvm.frontend.text import parse_module
from relvm.ir.loop_ir import Scalar
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
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
    expect(
        x.dtype is not None and x.dtype.is_float,
        "shifted_square: x has dtype {}, expected a float",
        x.dtype,
    )
    return x


# %% [markdown]
# `square_element` does not compute with numbers. Its argument is an expression in a kernel, and it returns a new
# expression. After the declaration, the operator is immediately available in the text form.

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
# The operator is elementwise, so it can be fused with adjacent operators.

# %%
stages = explore(module)
print(stages["fuse_ops"])
fused = stages["fuse_ops"].text.split("fused {")[1]
assert all(name in fused for name in ("shifted_square", "negative", "relu"))

# %% [markdown]
# `compare` runs a program in bytecode mode and in compiled mode, and compares the values with those of the NumPy
# implementation. The following program contains only the new operator:

# %%
alone = parse_module(
    "def main(x: f32[n, 4]) -> f32[n, 4] { return shifted_square(x, offset=0.5) }"
)
compared = compare(alone, x)
assert compared.agrees
print(compared.format(all_rows=True))

# %% [markdown]
# The type rule rejects unsupported types.

# %%
try:
    vm.build(parse_module("def main(x: i64[n]) -> i64[n] { return shifted_square(x) }"))
    raise AssertionError("integers were taken")
except RelvmTypeError as error:
    print(error)

# %% [markdown]
# If the kernel does not match the NumPy implementation, `compare` names the value that differs.

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

# %% [markdown]
# **Exercise.** Declare the operator `cube`, which is x * x * x for float dtypes, and check it with `compare`.


# %% tags=["solution"]
@op("cube", numpy=lambda x: x * x * x, lower=elementwise(lambda x: x * x * x))
def cube(x: TensorType) -> TensorType:
    """x * x * x, elementwise.

    x: a float dtype.   Result: the type of x.   Raises RelvmTypeError: another dtype.
    """
    expect(
        x.dtype is not None and x.dtype.is_float,
        "cube: x has dtype {}, expected a float",
        x.dtype,
    )
    return x


compared = compare(
    parse_module("def main(x: f32[n]) -> f32[n] = cube(x)"), np.float32([1, 2, 3])
)
print(compared)
assert compared.agrees
