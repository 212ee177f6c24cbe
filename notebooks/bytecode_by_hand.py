# %% [markdown]
# # Bytecode by hand
#
# A bytecode function is a list of instructions that read and write numbered registers. `vm.ExecBuilder` builds such
# functions without the compiler.
#
# At the end of the notebook you can build and run functions from instructions, write a loop, and read the errors of
# the verifier.

# %%
from relvm import vm

builder = vm.ExecBuilder()
with builder.function("main", ["x", "double"]):
    otherwise = builder.label()
    builder.emit_if(builder.r(1), otherwise)
    builder.emit_call("helper", [builder.r(0)], dst=builder.r(2))
    builder.emit_ret(builder.r(2))
    builder.place(otherwise)
    builder.emit_ret(builder.r(0))
with builder.function("helper", ["x"]):
    builder.emit_call("vm.builtin.make_tuple", [builder.r(0), builder.r(0)], dst=builder.r(1))
    builder.emit_ret(builder.r(1))
executable = builder.get()
print(executable.as_text())

# %% [markdown]
# Registers 0 and 1 contain the arguments. The instruction `if` tests a register. If the register is true, the next
# instruction follows. Otherwise, the instruction jumps to the label.

# %%
machine = vm.VirtualMachine(executable)
assert machine["main"](7, True) == (7, 7)
assert machine["main"](7, False) == 7

# %% [markdown]
# The following cell prints the whole instruction set. The cell after it builds a function with a loop, which is a
# backward jump. The instruction `prim` performs scalar arithmetic. One of its operands is the name of a primitive
# operator, such as `add_i64`.

# %%
from relvm.tables import OPCODES

for row in OPCODES:
    print(f"{row.name:10} {row.operands:6} {row.meaning}")

# %%
builder = vm.ExecBuilder()
with builder.function("sum_to", ["n"]):
    n, total, more = builder.r(0), builder.r(1), builder.r(2)
    builder.emit("prim", total, "add_i64", [builder.imm(0), builder.imm(0)])
    start, end = builder.label(), builder.label()
    builder.place(start)
    builder.emit("prim", more, "gt_i64", [n, builder.imm(0)])
    builder.emit_if(more, end)
    builder.emit("prim", total, "add_i64", [total, n])
    builder.emit("prim", n, "sub_i64", [n, builder.imm(1)])
    builder.emit_goto(start)
    builder.place(end)
    builder.emit_ret(total)
loop = builder.get()
assert vm.VirtualMachine(loop)["sum_to"](1000) == 500500

# %% [markdown]
# relvm verifies bytecode before it runs. For example, if a register is read before it is written, an error is raised.

# %%
from relvm.errors import RelvmError

builder = vm.ExecBuilder()
with builder.function("main", ["x"]):
    builder.emit_ret(builder.r(5))
try:
    vm.VirtualMachine(builder.get())
    raise AssertionError("register 5 has no value")
except RelvmError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# `as_python` converts an executable to a Python program that builds the same executable with `vm.ExecBuilder`.

# %%
program = loop.as_python()
print(program)
namespace = {}
exec(program, namespace)
assert namespace["executable"].as_text() == loop.as_text()

# %% [markdown]
# **Exercise.** Build a function `factorial` that multiplies the numbers from 1 to n. The primitive operator is
# `mul_i64`.

# %% tags=["solution"]
builder = vm.ExecBuilder()
with builder.function("factorial", ["n"]):
    n, product, more = builder.r(0), builder.r(1), builder.r(2)
    builder.emit("prim", product, "add_i64", [builder.imm(1), builder.imm(0)])
    start, end = builder.label(), builder.label()
    builder.place(start)
    builder.emit("prim", more, "gt_i64", [n, builder.imm(1)])
    builder.emit_if(more, end)
    builder.emit("prim", product, "mul_i64", [product, n])
    builder.emit("prim", n, "sub_i64", [n, builder.imm(1)])
    builder.emit_goto(start)
    builder.place(end)
    builder.emit_ret(product)
factorial = vm.VirtualMachine(builder.get())["factorial"]
print([factorial(n) for n in range(6)])
assert factorial(10) == 3628800
