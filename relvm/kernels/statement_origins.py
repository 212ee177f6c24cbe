"""Source locations of the statements of a kernel, for listings that people read."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.ir.loop_ir import (
    Allocate,
    Assign,
    Buffer,
    Fail,
    IfThen,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Scalar,
    Statement,
    Store,
    scalars_in,
    statements_in,
)
from relvm.kernels.kernel import Kernel


def _names_of(value: Scalar) -> tuple[str, ...]:
    """Return a tuple with the name of the variable or array that `value` reads.

    If `value` is not a read of a variable or array, the tuple is empty.
    """
    match value:
        case Local(name) | Load(Buffer(name)):
            return (name,)
    return ()


def statement_origins(kernel: Kernel) -> dict[Statement, tuple[str, ...]]:
    """Return the source locations of each statement of a kernel: those of the operators that the statement computes.

    A loop or branch has the locations of the statements inside it.  A statement that computes a position or another
    intermediate result has the locations of the statements that use this result.  The result is empty if the kernel is
    not composed of operators.
    """
    if kernel.provenance is None:
        return {}
    provenance, outputs = kernel.provenance, set(kernel.outputs)
    found: dict[Statement, set[int]] = {}
    uses: dict[str, set[int]] = {}  # name of a variable or array -> the operators of the statements that use it

    def operators_of_names(names: Iterable[str]) -> set[int]:
        return {number for name in names for number in provenance.values.get(name, ())}

    def operators_of(statement: Statement) -> set[int]:
        """Return the operators that `statement` was generated from, as indices into `provenance.members`.

        `statement` must have no nested statements.
        """
        match statement:
            case Let(local) | Assign(local):
                target = local.name
            case Allocate(buffer):
                target = buffer.name
            case Store(buffer, _, value):
                computed = operators_of_names(_names_of(value))
                if buffer in outputs and (numbers := computed | operators_of_names([buffer.name])):
                    return numbers
                target = buffer.name
            case Fail(values=shown):
                if numbers := operators_of_names(name for value in shown for name in _names_of(value)):
                    return numbers
                target = ""
            case _:
                target = ""
        numbers = operators_of_names([target])
        if numbers or provenance.default is not None:
            return numbers or set(provenance.default or ())
        if isinstance(statement, Let):
            return set(uses.get(target, ()))
        return set(uses.get(target, ())) or set(range(len(provenance.members)))

    for statement in reversed(list(statements_in(kernel.body))):  # nested statements and uses come first
        match statement:
            case Loop(body=inside) | Parallel(body=inside):
                numbers = set[int]().union(*(found[each] for each in inside))
            case IfThen(_, then, orelse):
                numbers = set[int]().union(*(found[each] for each in (*then, *orelse)))
            case _:
                numbers = operators_of(statement)
        found[statement] = numbers
        reduced = {local for _, local in statement.reduce} if isinstance(statement, Loop) else set()
        for scalar in scalars_in(statement):
            if scalar in reduced:
                continue  # the assignments inside the loop count as its uses
            match scalar:
                case Local(name):
                    uses.setdefault(name, set()).update(numbers)
                case Load(buffer):
                    uses.setdefault(buffer.name, set()).update(numbers)
    members = provenance.members
    return {
        statement: tuple(dict.fromkeys(origin for number in sorted(numbers) for origin in members[number]))
        for statement, numbers in found.items()
    }
