# %% [markdown]
# # Closures, recursion, tail calls
#
# Functions are values. A local function can use the variables of the enclosing function, and may call itself. A tail
# call, which is the last action of a function, needs no stack space.
#
# At the end of the notebook you can pass functions as values, write loops as tail calls, and see how the compiler
# lifts local functions.

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
machines = {
    mode: vm.VirtualMachine(vm.build(module, exec_mode=mode))
    for mode in ("bytecode", "compiled")
}

# %% [markdown]
# A closure that the machine returns is a Python callable. It can also be passed to the machine as an argument.

# %%
for machine in machines.values():
    add_five = machine["adder"](5)
    assert add_five(1) == 6
    assert machine["twice"](add_five, 1) == 11

# %% [markdown]
# `depth` adds 1 after its recursive call has returned, so the calls nest. If they nest too deeply, the result is an
# error, not a crash.

# %%
for mode, machine in machines.items():
    assert machine["depth"](100) == 100
    try:
        machine["depth"](100_000_000)
        raise AssertionError("there is no room for so many calls")
    except RelvmRecursionError as error:
        print(f"{mode}: {str(error).splitlines()[0]}")

# %% [markdown]
# `is_even` and `is_odd` tail-call each other. A tail call reuses the registers of its caller, so any number of them
# runs in constant space.

# %%
for machine in machines.values():
    assert machine["is_even"](3_000_001) is False


# %% [markdown]
# The IR has no loop node. A `while` statement of a script becomes a tail-recursive local function.


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
# The pass `lambda_lifting` turns local functions into functions of the module. Captured variables become additional
# parameters at the end. The function is called by name, so the loop creates no closure.

# %%
from relvm.explore import explore

print(explore(collatz.module)["lambda_lifting"])
assert "make_closure" not in explore(collatz.module)["lambda_lifting"].text
assert "make_closure" in explore(module)["lambda_lifting"].text

# %% [markdown]
# **Exercise.** Write `gcd(a, b)`, the greatest common divisor, as a function that calls itself in a tail call: it is
# a if b is 0, and otherwise `gcd(b, a % b)`. Run it in both modes.

# %% tags=["solution"]
euclid = parse_module("""
def gcd(a: i64, b: i64) -> i64 { return if b == 0 then a else @gcd(b, a % b) }
""")
for mode in ("bytecode", "compiled"):
    gcd = vm.VirtualMachine(vm.build(euclid, exec_mode=mode))["gcd"]
    print(f"{mode}: {gcd(1071, 462)}")
    assert gcd(1071, 462) == 21
