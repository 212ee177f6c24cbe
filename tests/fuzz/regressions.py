"""Programs that once caused a failure.  The tests run them in every mode."""

from __future__ import annotations

# For each program, a description of the failure and the listing.
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
f1 = bytecode inner(x) registers 2
  0: call vm.builtin.check_prim_value_info(r0, c0, c1)
  1: prim r1 = sub_i64(r0, 1)
  2: ret r1
"""
    + "".join(
        f"f{i} = bytecode outer{i}(x) registers 2\n  0: call r1 = inner(r0)\n  1: ret r1\n" for i in range(2, 22)
    ),
    "a debugger was told of a tail call's failure when no function was left": """
f0 = packed vm.builtin.assert
f1 = bytecode main(x) registers 1
  0: tail_call vm.builtin.assert(r0, nil)
""",
    "the limit of steps was met when positions were made, and they leaked": """
c0 = dtype bool
c1 = shape (8000,)
f0 = packed vm.builtin.alloc_storage
f1 = packed vm.builtin.alloc_tensor
f2 = packed vm.builtin.string_positions
f3 = bytecode main() registers 3
  0: call r0 = vm.builtin.alloc_storage(ctx, 8000, 0, c0)
  1: call r1 = vm.builtin.alloc_tensor(r0, 0, c1, c0)
  2: call r2 = vm.builtin.string_positions(r1)
  3: goto -> 2
""",
}
