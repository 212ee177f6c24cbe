"""Programs that once broke something: each is run again in every way."""

from __future__ import annotations

# What it was, and the listing.
REGRESSIONS = {
    "a check whose last argument is no string passed as a step of its own": """
c0 = dtype i64
f0 = packed vm.builtin.check_prim_value_info
f1 = bytecode main(x) registers 1
  0: call vm.builtin.check_prim_value_info(r0, c0, c0)
  1: ret r0
""",
    "a check with a destination left it as it was": """
c0 = dtype i64
c1 = string "x"
f0 = packed vm.builtin.check_prim_value_info
f1 = packed vm.builtin.copy
f2 = bytecode main(x) registers 2
  0: call r1 = vm.builtin.copy(5)
  1: call r1 = vm.builtin.check_prim_value_info(r0, c0, c1)
  2: ret r1
""",
    "copy(ctx) put the context into a register": """
f0 = packed vm.builtin.copy
f1 = bytecode main() registers 1
  0: call r0 = vm.builtin.copy(ctx)
  1: ret r0
""",
    "an instrument skipped a check, and the object in a register of ints leaked": """
c0 = dtype i64
c1 = string "x"
f0 = packed vm.builtin.check_prim_value_info
f1 = bytecode main(x, y) registers 3
  0: call vm.builtin.check_prim_value_info(r1, c0, c1)
  1: prim r1 = sub_i64(r1, 1)
  2: prim r2 = le_i64(r1, 0)
  3: if r2 -> 5
  4: ret r0
  5: tail_call main(r0, r1)
""",
    "a debugger was told of a tail call's failure when no function was left": """
f0 = packed vm.builtin.assert
f1 = bytecode main(x) registers 1
  0: tail_call vm.builtin.assert(r0, nil)
""",
}
