"""Bounding inputs: the inputs of a kernel whose elements decide which memory the kernel accesses.

A kernel checks an index, a length or a count, and loads it again where it uses it.  C kernels are therefore safe only
if such an input does not change during the call.  `bounding_inputs` finds these inputs by data flow, so that the C
printer can protect them (csrc/codegen/native.h: call_with_private).
"""

from __future__ import annotations

from collections.abc import Iterable

from relvm.ir.loop_ir import (
    Address,
    Assign,
    IfThen,
    Invoke,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Scalar,
    Statement,
    Store,
    parts_of,
    scalars_in,
)
from relvm.kernels.kernel import Kernel

_Names = frozenset[str]


def bounding_inputs(kernel: Kernel) -> tuple[int, ...]:
    """Return the numbers of the inputs whose elements can affect which memory the kernel accesses.

    Memory accesses depend on indices, bounds of loops, and scalar arguments of C functions.  An element affects an
    access if an index, a bound or an argument contains the element, or a variable or an array that depends on it.  A
    variable that is assigned in a branch or a loop also depends on the condition or the bounds.
    """
    flow = _DataFlow()
    flow.visit(kernel.body, frozenset())
    affecting: set[str] = set()
    waiting = list(flow.positions)
    while waiting:
        name = waiting.pop()
        if name not in affecting:
            affecting.add(name)
            waiting += flow.sources.get(name, ())
    return tuple(i for i, buffer in enumerate(kernel.inputs) if buffer.name in affecting)


class _DataFlow:
    """The data flow between the variables and arrays of a kernel, by name.

    sources: for each variable and array, the variables and arrays from which its values are computed.
    positions: the variables and arrays from which positions are computed.
    """

    def __init__(self) -> None:
        self.sources: dict[str, set[str]] = {}
        self.positions: set[str] = set()

    def visit(self, body: Iterable[Statement], control: _Names) -> None:
        """Add the data flow of statements.   control: the names that decide whether the statements run."""
        for statement in body:
            for scalar in scalars_in(statement):
                if isinstance(scalar, Load):
                    self.positions |= _names_in(scalar.indices)
            match statement:
                case Let(local, value) | Assign(local, value):
                    self.add(local.name, control | _names_in((value,)))
                case Store(buffer, indices, value):
                    self.positions |= _names_in(indices)
                    self.add(buffer.name, control | _names_in((*indices, value)))
                case Loop(counter, start, stop, inner):
                    self.visit_loop((counter,), (start, stop), inner, control)
                case Parallel(first, last, count, grain, inner):
                    self.visit_loop((first, last), (count, grain), inner, control)
                case IfThen(cond, then, orelse):
                    self.visit((*then, *orelse), control | _names_in((cond,)))
                case Invoke(_, args):
                    self.invoke(args, control)

    def visit_loop(
        self, counters: tuple[Local, ...], bounds: tuple[Scalar, ...], body: tuple[Statement, ...], control: _Names
    ) -> None:
        names = _names_in(bounds)
        self.positions |= names
        for counter in counters:
            self.add(counter.name, names)
        self.visit(body, control | names)

    def invoke(self, args: tuple[Scalar | Address, ...], control: _Names) -> None:
        """Add the data flow of a C function.  It can compute the elements of each array from those of all arrays."""
        arrays = [arg.buffer.name for arg in args if isinstance(arg, Address)]
        scalars = _names_in(arg.position if isinstance(arg, Address) else arg for arg in args)
        self.positions |= scalars
        for array in arrays:
            self.add(array, control | scalars | frozenset(arrays))

    def add(self, name: str, sources: _Names) -> None:
        self.sources.setdefault(name, set()).update(sources)


def _names_in(scalars: Iterable[Scalar]) -> _Names:
    """Return the variables and arrays that scalars read."""
    parts = (part for scalar in scalars for part in parts_of(scalar) if isinstance(part, Load | Local))
    return frozenset(part.buffer.name if isinstance(part, Load) else part.name for part in parts)
