"""Proofs that indices of kernel definitions are inside of their axes.

An index is a polynomial over sizes, loop counters and other values, which are atoms.  To prove that a polynomial is at
least 0, each counter is replaced by its first or its last value, whichever makes the polynomial smaller; then interval
arithmetic must give a lower bound of 0.  Conditions that hold at an access are facts: polynomials that are at least 0,
of which one or two may be subtracted first.

The proofs are about integers, but kernels compute modulo 2^64.  A polynomial between 0 and a size is the computed
number, too.  A condition is a fact only if neither of its sides can overflow: each is a single atom, or a sum of a few
sizes and counters with small factors.  Such a sum relies on sizes of at most LARGEST_SIZE (`relies_on_sizes`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement

from relvm.errors import RelvmUnsupportedError
from relvm.ir import kernel_def as kd
from relvm.ir.dtypes import I64
from relvm.ir.symbolic import AnyDim, Dim, DimOp, DimVar, dim_op, dim_var, dim_vars, evaluate_with, var_dim
from relvm.ir.value_ranges import Range, range_of

LARGEST_SIZE = 1 << 40
_LARGEST_FACTOR = 1 << 16
_MOST_TERMS = 16
_ON_DIMS = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "mod": "mod", "min": "min", "max": "max"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


class IndexBounds:
    """What is known at a point of a kernel.

    sizes: the known sizes.   counters: the open loops, outermost first: the counter, and its first and last value.
    facts: polynomials that are at least 0.   relies_on_sizes: whether a proof needs sizes of at most LARGEST_SIZE.
    """

    def __init__(self, sizes: dict[DimVar, int]) -> None:
        self.sizes = sizes
        self.counters: list[tuple[DimVar, AnyDim, AnyDim]] = []
        self.facts: list[AnyDim] = []
        self.relies_on_sizes = False
        self.assigned: set[kd.Variable] = set()
        self.values: dict[kd.Variable, AnyDim] = {}
        self.atoms: dict[Hashable, Dim] = {}
        self.small: set[DimVar] = set()  # counters that stay between sizes

    # ---- polynomials ----

    def dim(self, scalar: kd.Scalar) -> AnyDim:
        """Return an i64 as a polynomial.  What cannot be one is an atom, the same for equal expressions."""
        assert scalar.dtype == I64
        match scalar:
            case kd.Literal(value):
                return int(value)
            case kd.Size(dim):
                return evaluate_with(dim, self.sizes.get)
            case kd.Variable() if scalar in self.values:
                return self.values[scalar]
            case kd.Operation("neg", (operand,)):
                return dim_op("sub", 0, self.dim(operand))
            case kd.Operation(function, (left, right)) if function in _ON_DIMS:
                first, second = self.dim(left), self.dim(right)
                divides = function in ("floordiv", "mod")
                exact = function in ("add", "sub", "mul") or (self.is_exact(first) and self.is_exact(second))
                if exact and not (divides and not (isinstance(second, int) and second > 0)):
                    try:
                        return dim_op(_ON_DIMS[function], first, second)
                    except RelvmUnsupportedError:  # too large
                        pass
        key = self.key(scalar)
        if key is None:
            return dim_var("value", signed=True)
        if key not in self.atoms:
            self.atoms[key] = dim_var("value", signed=True)
        return self.atoms[key]

    def key(self, scalar: kd.Scalar) -> Hashable | None:
        """Return a key that is equal for expressions of the same value, or None if the value may change."""
        match scalar:
            case kd.Literal(value, dtype):
                return (type(value), value, dtype)
            case kd.Size(dim):
                return ("size", dim)
            case kd.Variable():
                return None if scalar in self.assigned else scalar
            case kd.Element(buffer, parts):
                inner = tuple(map(self.key, parts))
                return None if buffer.is_output or None in inner else (buffer, inner)
            case kd.Operation(function, parts, dtype):
                inner = tuple(map(self.key, parts))
                return None if None in inner else (function, inner, dtype)

    def is_small(self, dim: AnyDim) -> bool:
        """Return whether no computation of the polynomial overflows, given sizes of at most LARGEST_SIZE."""
        if isinstance(dim, int):
            return abs(dim) <= LARGEST_SIZE
        return len(dim.terms) <= _MOST_TERMS and all(
            abs(factor) <= (_LARGEST_FACTOR if monomial else LARGEST_SIZE)
            and len(monomial) <= 1
            and all(isinstance(atom, DimOp) or not atom.signed or atom in self.small for atom in monomial)
            for monomial, factor in dim.terms
        )

    # ---- what is known ----

    def define(self, variable: kd.Variable, value: kd.Scalar) -> None:
        """Record the value of a variable that is never assigned."""
        if variable.dtype == I64 and variable not in self.assigned:
            self.values[variable] = self.dim(value)

    @contextmanager
    def loop(self, loop: kd.For) -> Iterator[DimVar]:
        """Record that a loop runs, and give its counter."""
        counter = DimVar(loop.counter.name, signed=True)
        first, stop = self.dim(loop.start), self.dim(loop.stop)
        self.values[loop.counter] = var_dim(counter)
        if not (self.is_exact(first) and self.is_exact(stop)):
            yield counter
            return
        if self.is_small(first) and self.is_small(stop):
            self.small.add(counter)
        outer = len(self.facts)
        self.counters.append((counter, first, dim_op("sub", stop, 1)))
        self.facts.append(dim_op("sub", dim_op("sub", stop, first), 1))
        yield counter
        self.counters.pop()
        del self.facts[outer:]

    @contextmanager
    def condition(self, cond: kd.Scalar, *, holds: bool) -> Iterator[None]:
        """Record that a condition holds, or that it does not."""
        outer = len(self.facts)
        self.facts += self.facts_of(cond, holds=holds)
        yield
        del self.facts[outer:]

    def facts_of(self, cond: kd.Scalar, *, holds: bool) -> Iterator[AnyDim]:
        match cond:
            case kd.Operation("not", (operand,)):
                yield from self.facts_of(operand, holds=not holds)
            case kd.Operation("and" | "or" as function, parts) if holds == (function == "and"):
                for part in parts:
                    yield from self.facts_of(part, holds=holds)
            case kd.Operation(function, (left, right)) if function in _NEGATED and left.dtype == I64:
                first, second = self.dim(left), self.dim(right)
                if not (self.is_exact(first) and self.is_exact(second)):
                    return
                relation = function if holds else _NEGATED[function]
                if relation in ("gt", "ge"):
                    first, second = second, first
                if relation in ("lt", "gt"):
                    yield dim_op("sub", dim_op("sub", second, first), 1)
                if relation in ("le", "ge", "eq"):
                    yield dim_op("sub", second, first)
                if relation == "eq":
                    yield dim_op("sub", first, second)

    def is_exact(self, dim: AnyDim) -> bool:
        """Return whether the computed number is that of the polynomial."""
        if isinstance(dim, int) or (len(dim.terms) == 1 and dim.terms[0][1] == 1 and len(dim.terms[0][0]) == 1):
            return True
        if not self.is_small(dim):
            return False
        self.relies_on_sizes = True
        return True

    # ---- proofs ----

    def is_inside(self, index: AnyDim, size: AnyDim) -> bool:
        """Return whether 0 <= index < size always holds."""
        return self.is_natural(index) and self.is_natural(dim_op("sub", dim_op("sub", size, 1), index))

    def is_natural(self, dim: AnyDim) -> bool:
        """Return whether a polynomial is proven to be at least 0."""
        if self._lowest(dim) >= 0:
            return True
        if any(self._lowest(dim_op("sub", dim, fact)) >= 0 for fact in self.facts):
            return True
        pairs = combinations_with_replacement(self.facts[-8:], 2)
        return any(self._lowest(dim_op("sub", dim_op("sub", dim, a), b)) >= 0 for a, b in pairs)

    def _lowest(self, dim: AnyDim) -> float:
        ranges: dict[DimVar, Range] = {}
        for counter, first, last in self.counters:
            ranges[counter] = Range(range_of(first, ranges).low, range_of(last, ranges).high)
        for counter, first, last in reversed(self.counters):
            dim = _least(dim, counter, first, last, ranges)
        return range_of(dim, ranges).low


def _least(dim: AnyDim, counter: DimVar, first: AnyDim, last: AnyDim, ranges: dict[DimVar, Range]) -> AnyDim:
    """Return a polynomial without the counter that is at most `dim` for each value of the counter, as far as its
    terms allow this."""
    if isinstance(dim, int) or counter not in dim_vars(dim):
        return dim
    total: AnyDim = 0
    for monomial, factor in dim.terms:
        rest = dim_op("mul", factor, _product(atom for atom in monomial if atom != counter))
        match [atom for atom in monomial if atom == counter or _has(atom, counter)]:
            case [DimVar()]:
                sign = range_of(rest, ranges)
                bound = first if sign.low >= 0 else last if sign.high <= 0 else var_dim(counter)
                total = dim_op("add", total, dim_op("mul", rest, bound))
            case [DimOp("floordiv", left, int(divisor))] if divisor > 0 and len(monomial) == 1:
                if factor > 0:
                    left = _least(left, counter, first, last, ranges)
                else:
                    left = dim_op("sub", 0, _least(dim_op("sub", 0, left), counter, first, last, ranges))
                total = dim_op("add", total, dim_op("mul", factor, dim_op("floordiv", left, divisor)))
            case _:
                total = dim_op("add", total, Dim(((monomial, factor),)) if monomial else factor)
    return total


def _product(atoms) -> AnyDim:
    total: AnyDim = 1
    for atom in atoms:
        total = dim_op("mul", total, Dim((((atom,), 1),)))
    return total


def _has(atom: DimVar | DimOp, counter: DimVar) -> bool:
    return isinstance(atom, DimOp) and any(counter in dim_vars(side) for side in (atom.left, atom.right))
