"""Executables and machines written as assembly, for the tests of the runtime."""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.asm_printer import HEADLINE
from relvm.bytecode.program import Program
from relvm.runtime.executable import Executable
from relvm.runtime.virtual_machine import VirtualMachine

BUILTINS = """
f0 = packed vm.builtin.copy
f1 = packed vm.builtin.make_tuple
f2 = packed vm.builtin.make_closure
f3 = packed vm.builtin.invoke_closure
f4 = packed vm.builtin.tuple_getitem
f5 = packed vm.builtin.print
f6 = packed vm.builtin.assert
f7 = packed vm.builtin.alloc_storage
"""

# Functions that many tests use.  The next function is f13.
COMMON = (
    BUILTINS
    + """
f8 = bytecode identity(x) registers 1
  0: ret r0
f9 = bytecode pair(x, y) registers 3
  0: call r2 = vm.builtin.make_tuple(r0, r1)
  1: ret r2
f10 = bytecode forever() registers 1
  0: call r0 = vm.builtin.copy(1)
  1: goto -> 0
f11 = bytecode closure_over(y) registers 2
  0: call r1 = vm.builtin.make_closure(f9, r0)
  1: ret r1
f12 = bytecode apply(f, x) registers 3
  0: call r2 = vm.builtin.invoke_closure(ctx, r0, r1)
  1: ret r2
"""
)


def program_of(text: str) -> Program:
    return parse_text(f"{HEADLINE}\n{text}")


def machine_of(text: str = "", **options: Any) -> VirtualMachine:
    """Return a machine with the common functions and the functions in `text`, which begin at f13."""
    return VirtualMachine(Executable.from_program(program_of(COMMON + text)), **options)


# An executable that contains everything except native code.
EVERYTHING = (
    """
c0 = tensor f32 (2, 3) [0.5, -0.0, inf, 3.4028234663852886e+38, 1.401298464324817e-45, 2.0]
c1 = tensor i64 (20,) base64
| AAAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAEAAAAAAAAAAUAAAAAAAAABgAAAAAAAAAHAAAAAAAAAAgAAAAAAAAA
| CQAAAAAAAAAKAAAAAAAAAAsAAAAAAAAADAAAAAAAAAANAAAAAAAAAA4AAAAAAAAADwAAAAAAAAAQAAAAAAAAABEAAAAAAAAA
| EgAAAAAAAAATAAAAAAAAAA==
c2 = tensor bool () [true]
c3 = tensor u64 (0, 4) []
c4 = shape (3, -1)
c5 = shape ()
c6 = string "a ; b \\"c\\" é"
c7 = dtype u16
c8 = int -9223372036854775808
c9 = float -0.0
c10 = float 0x7ff8000000000001
"""
    + COMMON
    + """
f13 = packed "no name; (of Python)"
f14 = packed test.two(a, b)
f15 = private bytecode _helper(x) registers 1
  0: ret r0
f16 = bytecode main(x, "y 1") registers 4
  0: if r0 -> 3
  1: call r2 = vm.builtin.make_tuple(r0, r1, 5, -268435456, true, false, nil, f8)
  2: goto -> 5
  3: call vm.builtin.print(ctx, c6)
  4: call r2 = vm.builtin.make_tuple(c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10)
  5: reset r1
  6: ret r2
source
| int main(void) {
|   return 0; // "quoted"
|
| }
signature
| {"main": {"params": ["x", "y"], "text": "\\u00e9"}}
debug
| {"main": {"instructions": ["", "t = (x, y, ...)"]}}
"""
)


def same_program(a: Program | None, b: Program | None) -> bool:
    """Return whether two programs are equal.  NaNs count as equal."""
    if a is None or b is None:
        return a is b
    rest = [(p.functions, p.native, p.source, p.signature, p.debug, p.kernels) for p in (a, b)]
    is_same = rest[0] == rest[1] and len(a.constants) == len(b.constants) and all(map(_same, a.constants, b.constants))
    return is_same and same_program(a.portable, b.portable)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return type(a) is type(b) and (a == b or (a != a and b != b))
