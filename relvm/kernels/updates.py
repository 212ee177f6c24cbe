"""Kernels that update a tensor: their output is a copy of an input, of which some elements are then changed.

The copy is a call of the micro-kernel rvm_copy_bytes, which does nothing if both addresses are equal.  So a caller that
does not need the input any more can pass the same tensor as input and as output (`Kernel.updated`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import starmap

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import (
    Address,
    Buffer,
    Fail,
    IfThen,
    Invoke,
    Literal,
    Load,
    Loop,
    Size,
    Statement,
    Store,
    constant_value,
    scalars_in,
    statements_in,
)
from relvm.ir.symbolic import AnyDim
from relvm.kernels.kernel_builder import KernelBuilder

_COPY = "rvm_copy_bytes"


def copy_input(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
    """Generate the copy of all elements of x to `out`, of the same shape and dtype, with which an update begins."""
    zero = Literal(0, I64)
    k.invoke(_COPY, dst=Address(out, zero), src=Address(x, zero), bytes=k.size(out.shape) * out.dtype.size_bytes)


def updated_input(body: Iterable[Statement], inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> int | None:
    """Return the index of the input that a kernel updates, or None if it does not update an input.

    A kernel updates an input if it has one output, and if its body, apart from checks, begins with the copy that
    `copy_input` generates and does not read the input otherwise.
    """
    statements = list(body)
    while statements and _is_check(statements[0]):
        statements.pop(0)
    match statements, tuple(outputs):
        case [Invoke(function, (Address(target, to), Address(source, at), _)), *rest], (out,):
            starts = constant_value(to) == constant_value(at) == 0
            positions = [i for i, buffer in enumerate(inputs) if buffer.name == source.name]
            if function == _COPY and starts and target.name == out.name and positions:
                (position,) = positions
                return position if inputs[position].shape == out.shape and not is_read(source, rest) else None
    return None


def _is_check(statement: Statement) -> bool:
    return all(isinstance(each, IfThen | Fail) for each in statements_in((statement,)))


def is_read(buffer: Buffer, body: Iterable[Statement]) -> bool:
    """Return whether statements load an element of a buffer, or pass its address to a micro-kernel."""
    for statement in statements_in(tuple(body)):
        if any(isinstance(scalar, Load) and scalar.buffer == buffer for scalar in scalars_in(statement)):
            return True
        if isinstance(statement, Invoke):
            addresses = (argument for argument in statement.args if isinstance(argument, Address))
            if any(address.buffer == buffer for address in addresses):
                return True
    return False


def match_whole_copy(statement: Statement) -> tuple[Buffer, Buffer] | None:
    """Match loops of a kernel definition that copy all elements of a buffer to another one of the same shape.

    Return the source and the target, or None if the statement does not match.
    """
    loops: list[Loop] = []
    while isinstance(statement, Loop) and len(statement.body) == 1:
        loops.append(statement)
        (statement,) = statement.body
    counters = tuple(loop.counter for loop in loops)
    match statement:
        case Store(target, indices, Load(source, places)) if indices == places == counters:
            is_whole = all(starmap(_runs_over, zip(loops, target.shape, strict=True)))
            return (source, target) if is_whole and source.type == target.type else None
    return None


def _runs_over(loop: Loop, dim: AnyDim) -> bool:
    """Return whether the iterations of a loop are the indices of an axis of size `dim`."""
    is_end = loop.stop.dim == dim if isinstance(loop.stop, Size) else constant_value(loop.stop) == dim
    return constant_value(loop.start) == 0 and is_end
