"""Proofs that the stores of a loop nest can run in any order, because no two of them write the same element.

The position of each store is a polynomial over the counters of the loops around it, sizes and other variables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from relvm.codegen.kernel_registers import buffer_position
from relvm.errors import RelvmUnsupportedError
from relvm.ir.loop_ir import Assign, Let, Literal, Local, Loop, Operation, Scalar, Size, Statement, Store, statements_in
from relvm.ir.symbolic import AnyDim, DimVar, difference, dim_op, dim_vars, evaluate_with, is_never_negative, var_dim


def write_different_elements(loop: Loop) -> bool:
    """Return whether any two stores of the loop nest `loop` are proven to write different elements.

    A store that runs in several iterations counts as several stores.  Only nests of loops, definitions, assignments and
    stores are understood.
    """
    if not all(isinstance(item, Loop | Let | Assign | Store) for item in statements_in(loop.body)):
        return False
    prover = _Prover()
    stores: dict[str, list[tuple[Store, tuple[Loop, ...]]]] = defaultdict(list)
    for store, loops in prover.stores((loop,), ()):
        stores[store.buffer.name].append((store, loops))
    try:
        return all(map(prover.are_different, stores.values()))
    except RelvmUnsupportedError:  # a polynomial is too large
        return False


class _Prover:
    """The definitions of a loop nest.

    values: the variables that the nest defines, with their values.   counters: the counters of its loops.
    assigned: the variables that the nest assigns.
    others: variables that are defined outside the nest, in polynomials.
    """

    def __init__(self) -> None:
        self.values: dict[str, Scalar] = {}
        self.counters: dict[str, DimVar] = {}
        self.assigned: set[str] = set()
        self.others: dict[str, DimVar] = {}

    def stores(self, body: tuple[Statement, ...], loops: tuple[Loop, ...]) -> Iterator[tuple[Store, tuple[Loop, ...]]]:
        """Yield the stores in `body`, each with the loops around it, innermost first.

        loops: the loops around `body`.
        """
        for statement in body:
            match statement:
                case Let(local, value):
                    self.values[local.name] = value
                case Assign(local):
                    self.assigned.add(local.name)
                case Loop(counter):
                    self.counters[counter.name] = DimVar(counter.name, signed=True)
                    yield from self.stores(statement.body, (statement, *loops))
                case Store():
                    yield statement, loops

    def dim(self, scalar: Scalar) -> AnyDim | None:
        """Return the i64 expression `scalar` as a polynomial, or None if it is not one."""
        match scalar:
            case Literal(value):
                return int(value)
            case Size(dim):
                return dim
            case Local(name) if name in self.assigned:
                return None
            case Local(name) if name in self.counters:
                return var_dim(self.counters[name])
            case Local(name) if name in self.values:
                return self.dim(self.values[name])
            case Local(name):
                return var_dim(self.others.setdefault(name, DimVar(name, signed=True)))
            case Operation("add" | "sub" | "mul" as function, (left, right)):
                first, second = self.dim(left), self.dim(right)
                return None if first is None or second is None else dim_op(function, first, second)
        return None

    def are_different(self, accesses: list[tuple[Store, tuple[Loop, ...]]]) -> bool:
        """Return whether any two stores to one buffer are proven to write different elements."""
        if len(accesses) == 1 and self.has_own_axes(*accesses[0]):
            return True
        positions = []
        for store, loops in accesses:
            position = self.dim(buffer_position(store.buffer, store.indices))
            if position is None or not self.is_injective(position, loops):
                return False
            positions.append((position, loops))
        return all(self.never_meet(*first, *second) for i, first in enumerate(positions) for second in positions[:i])

    def has_own_axes(self, store: Store, loops: tuple[Loop, ...]) -> bool:
        """Return whether each loop changes one index of `store`, which no other loop changes, by a constant step."""
        if len(store.indices) != len(store.buffer.shape):
            return False
        indices = [self.dim(index) for index in store.indices]
        for counter in (self.counters[loop.counter.name] for loop in loops):
            users = [index for index in indices if index is None or counter in dim_vars(index)]
            if len(users) != 1 or users[0] is None:
                return False
            factor = _factor(users[0], counter)
            if not isinstance(factor, int) or factor == 0:
                return False
            if any(other in dim_vars(users[0]) for other in self.counters.values() if other is not counter):
                return False
        return True

    def extent(self, loop: Loop) -> AnyDim | None:
        """Return the number of iterations of a loop whose bounds are the same in all iterations of the loops around it.

        Return None for other loops.
        """
        start, stop = self.dim(loop.start), self.dim(loop.stop)
        if start is None or stop is None:
            return None
        changing = {*self.counters.values()}
        return None if changing & {*dim_vars(start), *dim_vars(stop)} else dim_op("sub", stop, start)

    def is_injective(self, position: AnyDim, loops: tuple[Loop, ...]) -> bool:
        """Return whether `position` is different in all iterations of `loops`, innermost first.

        This is so if the steps of all loops are positive, and the iterations of a loop cover less than a step of the
        next loop.
        """
        reach: AnyDim = 1  # an upper bound on the distance that the inner loops cover
        for i, loop in enumerate(loops):
            step = _factor(position, self.counters[loop.counter.name])
            if step is None or not is_never_negative(dim_op("sub", step, reach)):
                return False
            if i < len(loops) - 1:
                count = self.extent(loop)
                if count is None:
                    return False
                reach = dim_op("mul", step, count)
        return True

    def never_meet(
        self, first: AnyDim, first_loops: tuple[Loop, ...], second: AnyDim, second_loops: tuple[Loop, ...]
    ) -> bool:
        """Return whether two injective stores are proven to write different elements.

        Both are in the same outermost loop.  Within one of its steps, each store must write another constant range.
        """
        spans = []
        for position, loops in ((first, first_loops), (second, second_loops)):
            least, most = position, position
            for loop in loops[:-1]:
                start, count = self.dim(loop.start), self.extent(loop)
                step = _factor(position, self.counters[loop.counter.name])
                if start is None or count is None or step is None:
                    return False
                at = {self.counters[loop.counter.name]: start}
                least = _substituted(least, at)
                at = {self.counters[loop.counter.name]: dim_op("add", start, dim_op("sub", count, 1))}
                most = _substituted(most, at)
            spans.append((least, most))
        outermost = self.counters[first_loops[-1].counter.name]
        step, other = _factor(first, outermost), _factor(second, outermost)
        if not isinstance(step, int) or step != other:
            return False
        sizes = [difference(most, least) for least, most in spans]
        apart = difference(spans[1][0], spans[0][0])
        if apart is None or sizes[0] is None or sizes[1] is None:
            return False
        return apart % step > sizes[0] and -apart % step > sizes[1]


def _substituted(dim: AnyDim, values: dict[DimVar, AnyDim]) -> AnyDim:
    return evaluate_with(dim, values.get)


def _factor(position: AnyDim, counter: DimVar) -> AnyDim | None:
    """Return the step of a polynomial when `counter` is increased by 1, or None if the step depends on `counter`."""
    first, second, third = (_substituted(position, {counter: value}) for value in (0, 1, 2))
    step = dim_op("sub", second, first)
    return step if dim_op("sub", third, second) == step else None
