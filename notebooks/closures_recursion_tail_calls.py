# %% [markdown]
# # Closures, recursion, tail calls
#
# In relvm, functions are values. A local function can use the variables of the enclosing function, and can call
# itself. A tail call, that is, a call whose result the function returns, needs no stack space.
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
# A closure is a function together with the variables that it uses. If a program returns a closure, the result is a
# Python callable. You can also pass it to a function of the same machine.

# %%
for machine in machines.values():
    add_five = machine["adder"](5)
    assert add_five(1) == 6
    assert machine["twice"](add_five, 1) == 11

# %% [markdown]
# `depth` adds 1 after its recursive call has returned, so it is not a tail call, and the calls are nested. If calls
# are nested too deeply, an error is raised.

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
# The pass `lambda_lifting` turns local functions into functions of the module. The variables of the enclosing
# function that a local function uses become additional parameters at the end. The function of the loop is called by
# its name and never used as a value, so the loop creates no closure.

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
