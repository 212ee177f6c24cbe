# %% [markdown]
# # Closures, recursion, tail calls
#
# Functions are values. A local function sees the variables around it; it may call itself; and a call that a function
# ends with needs no room.

# %%
from relvm import script, vm
from relvm.errors import RelvmRecursionError
from relvm.frontend.text import parse_module
from relvm.ir.printer import print_module

module = parse_module("""
def adder(y: i64) => object {
  add_to = fn (x: i64) -> i64 { return x + y }
  return add_to
}
def twice(f: (i64) -> i64, x: i64) -> i64 { return f(f(x)) }
def depth(n: i64) -> i64 { return if n == 0 then 0 else 1 + @depth(n - 1) }
def is_even(n: i64) -> bool { return if n == 0 then true else @is_odd(n - 1) }
def is_odd(n: i64) -> bool { return if n == 0 then false else @is_even(n - 1) }
""")
machines = {mode: vm.VirtualMachine(vm.build(module, exec_mode=mode)) for mode in ("bytecode", "compiled")}

# %% [markdown]
# A closure comes out of the machine as something to call, and goes in as an argument.

# %%
for machine in machines.values():
    add_five = machine["adder"](5)
    assert add_five(1) == 6
    assert machine["twice"](add_five, 1) == 11

# %% [markdown]
# `depth` adds 1 after its call has returned, so every call waits for the next: too many are an error, not a crash.

# %%
for mode, machine in machines.items():
    assert machine["depth"](100) == 100
    try:
        machine["depth"](100_000_000)
        raise AssertionError("there is no room for so many calls")
    except RelvmRecursionError as error:
        print(f"{mode}: {str(error).splitlines()[0]}")

# %% [markdown]
# `is_even` and `is_odd` end with calls of each other. Such a call takes the function's place: any number of them will
# do.

# %%
for machine in machines.values():
    assert machine["is_even"](3_000_001) is False


# %% [markdown]
# The IR has no loops: `while` of a script is a local function that ends with a call of itself.


# %%
@script
def collatz(n: "i64") -> "i64":
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


print(print_module(collatz.module))
assert vm.VirtualMachine(vm.build(collatz.module))["collatz"](27) == 111

# %% [markdown]
# Captured variables become the last parameters of a lifted function. It is called by name, so the loop makes no
# closure.

# %%
from relvm.explore import explore

print(explore(collatz.module)["lambda_lifting"])
assert "make_closure" not in explore(collatz.module)["lambda_lifting"].text
assert "make_closure" in explore(module)["lambda_lifting"].text
