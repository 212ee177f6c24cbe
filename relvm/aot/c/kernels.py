"""Printing of kernels as plain C functions.  Their parameters are pointers, sizes and scratch memory."""

from __future__ import annotations

import math
from dataclasses import replace

from relvm.aot.lower.kernel_scratch import KernelScratch
from relvm.codegen.c.kernel import KernelBody, pointer_declarations, size_names
from relvm.ir.loop_ir import (
    Assign,
    Buffer,
    Fail,
    IfThen,
    Let,
    Local,
    Loop,
    Parallel,
    Statement,
    scalars_in,
    statements_in,
)
from relvm.ir.symbolic import DimVar
from relvm.kernels.kernel import Kernel
from relvm.quoting import c_comment_lines


def print_plain_kernel(kernel: Kernel, symbol: str) -> str:
    """Return the C definition of a kernel as the function `symbol`.  `plain_signature` returns its declaration."""
    scratch = KernelScratch(kernel)
    pointers, sizes = pointer_declarations(kernel), size_names((*kernel.inputs, *kernel.outputs))
    body = _PlainBody(symbol, sizes, pointers, scratch)
    body.statements(kernel.body, "  ")
    named = [*(buffer.name for buffer in (*kernel.inputs, *kernel.outputs)), *sizes.values()]
    unused = [f"  (void){name};" for name in named if name not in body.used]
    end = ["  return RVM_OK;"] if can_fail(kernel) else []
    head = f"{plain_signature(kernel, symbol)} {{"
    return "\n".join([f"/* {c_comment_lines(kernel.comment)} */", head, *unused, *body.lines, *end, "}"])


def plain_signature(kernel: Kernel, symbol: str) -> str:
    """Return the C declaration of a kernel as the function `symbol`, which returns a status if the kernel can fail."""
    parts = [*pointer_declarations(kernel).values()]
    parts += [f"int64_t {name}" for name in size_names((*kernel.inputs, *kernel.outputs)).values()]
    if KernelScratch(kernel).size_bytes:
        parts.append("void *restrict scratch")
    return f"{'int32_t' if can_fail(kernel) else 'void'} {symbol}({', '.join(parts)})"


def can_fail(kernel: Kernel) -> bool:
    return any(isinstance(statement, Fail) for statement in statements_in(kernel.body))


def without_dead_assignments(kernel: Kernel) -> Kernel:
    """Return the kernel without assignments to variables that are never read.

    C compilers warn about such assignments.
    """
    body = kernel.body
    while True:
        read = {s.name for statement in statements_in(body) for s in scalars_in(statement) if isinstance(s, Local)}
        shorter = _drop_assignments(body, read)
        if shorter == body:
            return replace(kernel, body=body)
        body = shorter


def _drop_assignments(body: tuple[Statement, ...], read: set[str]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in body:
        match statement:
            case Let(local) | Assign(local) if local.name not in read:
                continue
            case Loop(body=inner) | Parallel(body=inner):
                shorter = _drop_assignments(inner, read)
                result.append(statement if shorter == inner else replace(statement, body=shorter))
            case IfThen(_, then, orelse):
                branches = _drop_assignments(then, read), _drop_assignments(orelse, read)
                result.append(statement if branches == (then, orelse) else IfThen(statement.cond, *branches))
            case _:
                result.append(statement)
    return tuple(result)


class _PlainBody(KernelBody):
    """Prints the statements of a kernel as C code that runs on one thread and does not need a VM.

    If the kernel fails, the C function returns a status, but no message.
    """

    def __init__(self, symbol: str, sizes: dict[DimVar, str], pointers: dict[str, str], scratch: KernelScratch) -> None:
        super().__init__(symbol, sizes, pointers)
        self.scratch = scratch

    def allocate(self, buffer: Buffer) -> str:
        ctype, name = buffer.dtype.ctype, buffer.name
        if buffer in self.scratch.offsets:
            return f"{ctype} *const {name} = ({ctype} *)(void *)((char *)scratch + {self.scratch.offsets[buffer]});"
        return f"RVM_ALIGNED(16) {ctype} {name}[{math.prod(buffer.shape)}];"

    def fail(self, fail: Fail) -> str:
        return f"return RVM_{fail.status};"

    def parallel(self, loop: Parallel, indent: str) -> None:
        """Print a parallel loop as code for one thread, which runs all iterations.

        The body requires at least one iteration.  It is therefore inside an `if` that skips it if there are none.
        """
        first, last = loop.first.name, loop.last.name
        self.declared |= {first, last}
        self.lines.append(f"{indent}if ({self.scalar(loop.count)} > 0) {{")
        self.lines.append(f"{indent}  const {loop.first.dtype.ctype} {first} = 0, {last} = {self.scalar(loop.count)};")
        self.statements(loop.body, indent + "  ")
        self.lines.append(f"{indent}}}")
