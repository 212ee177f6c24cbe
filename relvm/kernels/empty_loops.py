"""Guards for loops that have no effect because a dimension is 0.

The loop over the rows of a tensor of shape [2^45, 0] would run 2^45 times without doing anything.  Such a loop gets a
guard: a condition on dimensions, which is true if a statement in the loop can have an effect.  Otherwise the loop is
skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import (
    Address,
    Allocate,
    Assign,
    Buffer,
    Fail,
    IfThen,
    Invoke,
    Let,
    Literal,
    Load,
    Loop,
    Operation,
    Parallel,
    Scalar,
    Size,
    Statement,
    Store,
    as_scalar,
    operands_of,
    statements_in,
)
from relvm.ir.symbolic import AnyDim, Dim, sort_key

_Dims = frozenset[AnyDim]  # dimensions that must be positive
_NONE: _Dims = frozenset()


def skip_empty_loops(body: tuple[Statement, ...], inputs: Iterable[Buffer]) -> tuple[Statement, ...]:
    """Guard loops that contain loops or calls of C functions, so that they run only if they can have an effect.

    A store, a call of a C function, an assignment to an outer variable, or a failure has an effect if all loops between
    the guarded loop and this statement have iterations, and the arrays that the statement reads and writes have
    elements.  A guard is omitted if it would only repeat that the loop itself has iterations.

    inputs: the buffers that the kernel does not write.
    """
    return _Guards(body, frozenset(buffer.name for buffer in inputs)).guarded(body, _NONE)


class _Guards:
    """The guards of a kernel.

    inputs: the names of the buffers that the kernel does not write.
    local: the names of the variables and arrays that exist only inside the kernel.
    needed: for each effect of the whole kernel on an output, and each failure, the dimensions that must be positive.
    known_changes: the results of `changes_of_loop`, by the id of the loop.
    """

    def __init__(self, body: tuple[Statement, ...], inputs: frozenset[str]) -> None:
        self.inputs = inputs
        self.local = _declared(body)
        self.needed: list[_Dims] = []
        self.known_changes: dict[int, list[tuple[str, _Dims]]] = {}
        self.needed = _shortest(self.effects(self.changes(body), inputs | self.local))

    def guarded(self, body: tuple[Statement, ...], known: _Dims) -> tuple[Statement, ...]:
        """Return statements with guards.   known: dimensions that are positive where the statements run."""
        return tuple(each for statement in body for each in self.guard(statement, known))

    def guard(self, statement: Statement, known: _Dims) -> tuple[Statement, ...]:
        match statement:
            case IfThen(cond, then, orelse):
                return (IfThen(cond, self.guarded(then, known), self.guarded(orelse, known)),)
            case Loop(kind="range") | Parallel() if any(
                isinstance(each, Loop | Parallel | Invoke) for each in statements_in(statement.body)
            ):
                inside = known | _trip_dims(statement)
                own = self.inputs | _declared((statement,))
                required = _shortest(dims - inside for dims in self.effects(self.changes_of_loop(statement), own))
                inside |= required[0] if len(required) == 1 else _NONE
                loop = replace(statement, body=self.guarded(statement.body, inside))
                if _NONE in required:
                    return (loop,)
                return (IfThen(_any(_all(dims) for dims in required), (loop,)),) if required else ()
        return (statement,)

    def effects(self, changes: list[tuple[str, _Dims]], own: frozenset[str]) -> Iterator[_Dims]:
        """Yield, for each change that has an effect, the dimensions that must be positive.

        own: inputs, and the variables and arrays that are not used after the guarded loop.
        """
        for name, dims in changes:
            yield from self.effect(name, dims, own)

    def changes(self, body: tuple[Statement, ...]) -> list[tuple[str, _Dims]]:
        """Return the names of the variables and arrays that statements change, and "" for a failure.

        Each name is paired with the dimensions that must be positive for the change to happen.
        """
        found: dict[tuple[str, _Dims], None] = {}
        before = _NONE  # the dimensions that the statements before this one require
        for statement in body:
            match statement:
                case Loop() | Parallel():
                    inner, needed = self.changes_of_loop(statement), _trip_dims(statement)
                case IfThen(cond, then, orelse):
                    inner, needed = [*self.changes(then), *self.changes(orelse)], _loaded_dims(cond)
                case Let(_, value):
                    before |= _loaded_dims(value)
                    continue
                case Store(buffer, _, value):
                    inner, needed = [(buffer.name, _loaded_dims(value))], _factors(buffer.shape)
                case Assign(local, value):
                    inner, needed = [(local.name, _loaded_dims(value))], _NONE
                case Invoke(_, args):
                    buffers = [arg.buffer for arg in args if isinstance(arg, Address)]
                    inner, needed = [(buffer.name, _factors(buffer.shape)) for buffer in buffers], _NONE
                case Fail():
                    inner, needed = [("", _NONE)], _NONE
                case _:
                    continue
            needed |= before
            found |= dict.fromkeys((name, dims | needed) for name, dims in inner)
        return list(found)

    def changes_of_loop(self, loop: Loop | Parallel) -> list[tuple[str, _Dims]]:
        """Return the changes (see `changes`) by an iteration of a loop.

        The result is computed once, and reused for the guard of each enclosing loop.
        """
        if id(loop) not in self.known_changes:
            self.known_changes[id(loop)] = self.changes(loop.body)
        return self.known_changes[id(loop)]

    def effect(self, name: str, dims: _Dims, own: frozenset[str]) -> Iterator[_Dims]:
        """Yield the sets of dimensions that must be positive so that a change of `name` has an effect.

        A change of a local variable or array has an effect only if the kernel then writes an output or fails.

        name: the variable or array that changes, or "" for a failure, which always has an effect.
        dims: the dimensions that must be positive so that the change happens.
        own: inputs, and the variables and arrays that are not used after the guarded loop.  A change of one of them has
        no effect.
        """
        if not name:
            yield dims
        elif name in self.local and name not in own:
            yield from (dims | needed for needed in self.needed)
        elif name not in own:
            yield dims


def _shortest(required: Iterable[_Dims]) -> list[_Dims]:
    """Return the sets that do not contain another one of the sets.  Sets with the dimension 0 are omitted."""
    possible: dict[_Dims, None] = {}
    for dims in required:
        if not dims:
            return [_NONE]  # all others contain it, and most kernels need not look for them
        if 0 not in dims:
            possible[dims] = None
    return [dims for dims in possible if not any(other < dims for other in possible)]


def _declared(body: tuple[Statement, ...]) -> frozenset[str]:
    """Return the names of the variables and arrays that `body` declares, including nested statements."""
    names: set[str] = set()
    for statement in statements_in(body):
        match statement:
            case Let(local) | Loop(local):
                names.add(local.name)
            case Parallel(first, last):
                names |= {first.name, last.name}
            case Allocate(buffer):
                names.add(buffer.name)
    return frozenset(names)


def _loaded_dims(scalar: Scalar) -> _Dims:
    """Return dimensions that are positive if the scalar is computed: those of the buffers that it always loads."""
    match scalar:
        case Load(buffer, indices):
            return _factors(buffer.shape).union(*map(_loaded_dims, indices))
        case Operation("select", (cond, *_)):
            return _loaded_dims(cond)
        case Operation("and" | "or", (left, _)) if left.dtype.is_bool:
            return _loaded_dims(left)
    return _NONE.union(*map(_loaded_dims, operands_of(scalar)))


def _trip_dims(loop: Loop | Parallel) -> _Dims:
    """Return dimensions that are positive if the loop has an iteration."""
    stop = loop.count if isinstance(loop, Parallel) else loop.stop
    is_from_zero = isinstance(loop, Parallel) or (isinstance(loop.start, Literal) and loop.start.value == 0)
    match stop:
        case Size(dim) if is_from_zero:
            return _factors((dim,))
        case Literal(int() as value) if is_from_zero:
            return _factors((value,))
    return _NONE


def _factors(dims: Iterable[AnyDim]) -> _Dims:
    """Return the dimensions that must be positive so that all of `dims` are: positive numbers are omitted, and products
    are split into their factors."""
    found: set[AnyDim] = set()
    for dim in dims:
        match dim:
            case Dim(((monomial, coefficient),)) if monomial and coefficient > 0:
                found |= {Dim((((atom,), 1),)) for atom in monomial}
            case int() if dim > 0:
                continue
            case _:
                found.add(dim)
    return frozenset(found)


def _all(dims: _Dims) -> Scalar:
    """Return whether all dimensions are positive."""
    positive = (as_scalar(dim, I64) > 0 for dim in sorted(dims, key=sort_key))
    return reduce(lambda left, right: left.logical_and(right), positive)


def _any(conditions: Iterable[Scalar]) -> Scalar:
    return reduce(lambda left, right: left.logical_or(right), conditions)
