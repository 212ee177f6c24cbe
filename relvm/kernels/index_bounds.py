"""Proofs that indices of kernel definitions are inside their axes.

An index is a polynomial over atoms, which are sizes, loop counters and other values.  To prove that a polynomial is at
least 0, the prover replaces each counter by its first or last value, whichever makes the polynomial smaller.  Then it
computes a lower bound of the result by interval arithmetic.

Conditions that hold at the access can help.  Each is stored as a fact: a polynomial that is at least 0.  The prover can
first subtract one or two facts from the polynomial of the index.

The proofs are about integers, but kernels compute modulo 2^64.  This does not matter for an index that is proven to be
between 0 and a size: the kernel computes the same number.  A condition becomes a fact only if neither of its sides can
overflow.  A side must be a single atom, or a polynomial over sizes and counters that stays below 2^62 if no size
exceeds LARGEST_SIZE (`relies_on_sizes`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement

from relvm.errors import RelvmUnsupportedError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Load, Local, Loop, Operation, Scalar, Size
from relvm.ir.symbolic import AnyDim, Dim, DimOp, DimVar, dim_op, dim_var, dim_vars, evaluate_with, node_count, var_dim
from relvm.ir.value_ranges import Range, range_of

LARGEST_SIZE = 1 << 40
_LARGEST_MAGNITUDE = 2.0**62
_LARGEST_BOUND = 100  # limit on the variables and operators in the bounds of a loop
_FREE_STEPS = 20  # steps of each proof that do not count toward _MAX_STEPS
_MAX_STEPS = 2_000  # limit on the other steps of all proofs of a kernel (less than a second); after it, proofs fail
_MAX_SPLITS = 3  # maximum number of times that a proof replaces a min or max by an operand, or removes divisions
_ON_DIMS = ("add", "sub", "mul", "floordiv", "mod", "min", "max")
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


class IndexBounds:
    """Prover of index bounds.  It stores the facts that are known at the current point of a kernel.

    sizes: the values of the known dimension variables.
    assigned: the variables that the kernel assigns after their definition.
    counters: the counters of the open loops, outermost first, each with its first and last value.
    ranges: the value ranges of these counters.
    facts: polynomials that are known to be at least 0.
    steps: the number of proof steps that are left.
    relies_on_sizes: whether a proof is valid only if no size exceeds LARGEST_SIZE.
    """

    def __init__(self, sizes: dict[DimVar, int], assigned: set[Local]) -> None:
        self.sizes = sizes
        self.assigned = assigned
        self.ranges: dict[DimVar, Range] = {}
        self.counters: list[tuple[DimVar, AnyDim, AnyDim]] = []
        self.facts: list[AnyDim] = []
        self.relies_on_sizes = False
        self.steps = _MAX_STEPS
        self.free = 0  # steps of the current proof that are left before steps begin to count
        self.values: dict[Local, AnyDim] = {}
        self.atoms: dict[Hashable, Dim] = {}
        self.small: dict[DimVar, float] = {}  # counters whose bounds cannot overflow -> greatest absolute value

    # ---- polynomials ----

    def dim(self, scalar: Scalar) -> AnyDim:
        """Return the i64 expression `scalar` as a polynomial.

        An expression that is not a polynomial becomes an atom, which the polynomial treats like a variable.  Equal
        expressions become the same atom, unless their value can change.
        """
        assert scalar.dtype == I64
        try:
            found = self._polynomial(scalar)
        except RelvmUnsupportedError:  # too large
            found = None
        if found is not None:
            return found
        key = self.key(scalar)
        if key is None:
            return dim_var("value", signed=True)
        if key not in self.atoms:
            self.atoms[key] = dim_var("value", signed=True)
        return self.atoms[key]

    def _polynomial(self, scalar: Scalar) -> AnyDim | None:
        match scalar:
            case Literal(value):
                return int(value)
            case Size(dim):
                return evaluate_with(dim, self.sizes.get)
            case Local() if scalar in self.values:
                return self.values[scalar]
            case Operation("neg", (operand,)):
                return dim_op("sub", 0, self.dim(operand))
            case Operation(function, (left, right)) if function in _ON_DIMS:
                first, second = self.dim(left), self.dim(right)
                divides = function in ("floordiv", "mod")
                exact = function in ("add", "sub", "mul") or (self.is_exact(first) and self.is_exact(second))
                if exact and not (divides and not (isinstance(second, int) and second > 0)):
                    return dim_op(function, first, second)
        return None

    def key(self, scalar: Scalar) -> Hashable | None:
        """Return a key of the expression `scalar`, or None if its value can change.

        Expressions with equal keys have equal values.
        """
        match scalar:
            case Literal(value, dtype):
                return (repr(value), dtype)  # -0.0 is not 0.0
            case Size(dim):
                return ("size", dim)
            case Local():
                return None if scalar in self.assigned else scalar
            case Load(buffer, parts):
                inner = tuple(map(self.key, parts))
                return None if buffer.is_output or None in inner else (buffer, inner)
            case Operation(function, parts, dtype):
                inner = tuple(map(self.key, parts))
                return None if None in inner else (function, inner, dtype)
        raise AssertionError(f"unexpected {type(scalar).__name__}")

    def cannot_overflow(self, dim: AnyDim) -> bool:
        """Return whether the computation of the polynomial `dim` cannot overflow if no size exceeds LARGEST_SIZE."""
        return self.magnitude(dim) < _LARGEST_MAGNITUDE

    def magnitude(self, dim: AnyDim) -> float:
        """Return an upper bound on the sum of the absolute values of the terms of `dim`.

        The bound is valid if no size exceeds LARGEST_SIZE.
        """
        if isinstance(dim, int):
            return abs(dim)
        total = 0.0
        for monomial, factor in dim.terms:
            term = float(abs(factor))
            for atom in monomial:
                if isinstance(atom, DimOp):
                    term *= max(self.magnitude(atom.left), self.magnitude(atom.right)) + 1
                else:
                    term *= self.small.get(atom, math.inf) if atom.signed else LARGEST_SIZE
            total += term
        return total

    # ---- what is known ----

    def define(self, variable: Local, value: Scalar) -> None:
        """Record that `variable` is defined with `value`, if it is an i64 that the kernel does not assign later."""
        if variable.dtype == I64 and variable not in self.assigned:
            self.values[variable] = self.dim(value)

    @contextmanager
    def loop(self, loop: Loop) -> Iterator[DimVar]:
        """A context manager.  In its block, the bounds of the counter of `loop` are known facts.

        They remain unknown if their computation could overflow, or if they are too long.  The context manager yields
        the variable that represents the counter in polynomials.
        """
        counter = DimVar(loop.counter.name, signed=True)
        first, stop = self.dim(loop.start), self.dim(loop.stop)
        self.values[loop.counter] = var_dim(counter)
        if not (self.is_exact(first) and self.is_exact(stop)) or node_count(first) + node_count(stop) > _LARGEST_BOUND:
            yield counter
            return
        if self.cannot_overflow(first) and self.cannot_overflow(stop):
            self.small[counter] = max(self.magnitude(first), self.magnitude(stop))
        outer = len(self.facts)
        last = dim_op("sub", stop, 1)
        self.counters.append((counter, first, last))
        self.ranges[counter] = Range(range_of(first, self.ranges).low, range_of(last, self.ranges).high)
        self.facts.append(dim_op("sub", dim_op("sub", stop, first), 1))
        try:
            yield counter
        finally:
            self.counters.pop()
            del self.ranges[counter]
            del self.facts[outer:]

    @contextmanager
    def condition(self, cond: Scalar, *, holds: bool) -> Iterator[None]:
        """A context manager.  In its block, it is a known fact that the condition `cond` holds.

        holds: if False, the known fact is that the condition does not hold.
        """
        outer = len(self.facts)
        with contextlib.suppress(RelvmUnsupportedError):  # a polynomial is too large
            self.facts += list(self.facts_of(cond, holds=holds))
        try:
            yield
        finally:
            del self.facts[outer:]

    def facts_of(self, cond: Scalar, *, holds: bool) -> Iterator[AnyDim]:
        match cond:
            case Operation("not", (operand,)):
                yield from self.facts_of(operand, holds=not holds)
            case Operation("and" | "or" as function, parts) if holds == (function == "and"):
                for part in parts:
                    yield from self.facts_of(part, holds=holds)
            case Operation(function, (left, right)) if function in _NEGATED and left.dtype == I64:
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
        """Return whether the kernel computes the exact value of the polynomial `dim`, without overflow.

        If this is so only because sizes are limited, set `relies_on_sizes`.
        """
        if isinstance(dim, int):
            return -(1 << 63) <= dim < 1 << 63
        if len(dim.terms) == 1 and dim.terms[0][1] == 1 and len(dim.terms[0][0]) == 1:
            return True
        if not self.cannot_overflow(dim):
            return False
        self.relies_on_sizes = True
        return True

    # ---- proofs ----

    def is_inside(self, index: AnyDim, size: AnyDim) -> bool:
        """Return whether it is proven that 0 <= index < size always holds."""
        try:
            return self.is_nonnegative(index) and self.is_nonnegative(dim_op("sub", dim_op("sub", size, 1), index))
        except RelvmUnsupportedError:  # a polynomial is too large
            return False

    def extremes(self, dim: AnyDim, outer: int) -> tuple[AnyDim, AnyDim]:
        """Return two polynomials, between which the polynomial `dim` is for all values of the inner counters.

        Where possible, they do not contain these counters, which are those after the first `outer` counters.
        """
        least, negated = dim, dim_op("sub", 0, dim)
        try:
            for counter, first, last in reversed(self.counters[outer:]):
                least = _lower_bound(least, counter, first, last, self.ranges)
                negated = _lower_bound(negated, counter, first, last, self.ranges)
        except RelvmUnsupportedError:  # a polynomial is too large
            return dim, dim
        return least, dim_op("sub", 0, negated)

    def is_nonnegative(self, dim: AnyDim) -> bool:
        """Return whether the polynomial `dim` is proven to be at least 0."""
        self.free = _FREE_STEPS
        if self._is_proven(dim, _MAX_SPLITS):
            return True
        pairs = combinations_with_replacement(self.facts[-8:], 2)
        return any(self._is_proven_directly(dim_op("sub", dim_op("sub", dim, a), b), _MAX_SPLITS) for a, b in pairs)

    def _is_proven(self, dim: AnyDim, splits: int) -> bool:
        """Return whether the polynomial `dim` is proven to be at least 0, by subtracting at most one fact from it.

        splits: how many more times the proof can replace an operator or remove divisions.
        """
        if self._is_proven_directly(dim, splits):
            return True
        return any(self._is_proven_directly(dim_op("sub", dim, fact), splits) for fact in self.facts[-8:])

    def _is_proven_directly(self, dim: AnyDim, splits: int) -> bool:
        """Return whether the polynomial `dim` is proven to be at least 0 without subtracting a fact first.

        A min or max in the polynomial is replaced by each of its operands, and a proof is tried for each result.  For a
        max with a positive factor, or a min with a negative factor, one of these proofs must succeed.  Otherwise, all
        must succeed.

        splits: how many more times the proof can replace an operator or remove divisions.
        """
        if self.free > 0:
            self.free -= 1
        elif self.steps > 0:
            self.steps -= 1
        else:
            return False
        for counter, first, last in reversed(self.counters):
            dim = _lower_bound(dim, counter, first, last, self.ranges)
        if range_of(dim, self.ranges).low >= 0:
            return True
        simpler = _without_quotients(dim)
        if simpler != dim and splits and self._is_proven(simpler, splits - 1):
            return True
        found = _find_min_or_max(dim) if splits else None
        if found is None:
            return False
        atom, factor = found
        rest = dim_op("sub", dim, dim_op("mul", factor, atom_dim(atom)))
        cases = (
            self._is_proven(dim_op("add", rest, dim_op("mul", factor, side)), splits - 1)
            for side in (atom.left, atom.right)
        )
        return any(cases) if (atom.function == "max") == (factor > 0) else all(cases)


def atom_dim(atom: DimVar | DimOp) -> Dim:
    """Return the polynomial that consists only of `atom`, a variable or an operation such as floordiv."""
    return Dim((((atom,), 1),))


def _find_min_or_max(dim: AnyDim) -> tuple[DimOp, int] | None:
    """Find a term `c * min(...)` or `c * max(...)` of the polynomial `dim`, with an integer c.

    Return the pair (min or max operation, c), or None if there is no such term.
    """
    if not isinstance(dim, int):
        for monomial, factor in dim.terms:
            match monomial:
                case (DimOp("min" | "max") as atom,):
                    return atom, factor
    return None


def _lower_bound(dim: AnyDim, counter: DimVar, first: AnyDim, last: AnyDim, ranges: dict[DimVar, Range]) -> AnyDim:
    """Return a polynomial that is at most `dim` for each value of `counter` in [first, last].

    Where possible, its terms do not contain `counter`.

    ranges: the value ranges of counters.
    """
    if isinstance(dim, int) or counter not in dim_vars(dim):
        return dim
    total: AnyDim = 0
    for monomial, factor in dim.terms:
        rest = dim_op("mul", factor, _product(atom for atom in monomial if atom != counter))
        match [atom for atom in monomial if atom == counter or _contains(atom, counter)]:
            case [DimVar()]:
                sign = range_of(rest, ranges)
                bound = first if sign.low >= 0 else last if sign.high <= 0 else var_dim(counter)
                total = dim_op("add", total, dim_op("mul", rest, bound))
            case [DimOp("floordiv", left, int(divisor))] if divisor > 0 and len(monomial) == 1:
                if factor > 0:
                    left = _lower_bound(left, counter, first, last, ranges)
                else:
                    left = dim_op("sub", 0, _lower_bound(dim_op("sub", 0, left), counter, first, last, ranges))
                total = dim_op("add", total, dim_op("mul", factor, dim_op("floordiv", left, divisor)))
            case _:
                total = dim_op("add", total, Dim(((monomial, factor),)) if monomial else factor)
    return total


def _without_quotients(dim: AnyDim) -> AnyDim:
    """Replace quotients `a // d` by a constant in the polynomial `dim`, to simplify a proof that `dim` is at least 0.

    If the result is at least 0, then so is `dim`.  The result is a lower bound of `dim`, multiplied by a positive
    number to remove fractions.  Each quotient is replaced by its lower bound (a - d + 1) / d, or by its upper bound
    a / d if its factor is negative.
    """
    if isinstance(dim, int):
        return dim
    quotients = {
        atom: divisor
        for monomial, _ in dim.terms
        for atom in monomial
        if len(monomial) == 1 and isinstance(atom, DimOp) and atom.function == "floordiv"
        if isinstance(divisor := atom.right, int) and divisor > 0
    }
    scale = math.lcm(*quotients.values())
    total: AnyDim = 0
    for monomial, factor in dim.terms:
        term: AnyDim = Dim(((monomial, factor * scale),)) if monomial else factor * scale
        match monomial:
            case (DimOp(left=left) as atom,) if atom in quotients:
                divisor = quotients[atom]
                least = dim_op("sub", left, divisor - 1) if factor > 0 else left
                term = dim_op("mul", factor * scale // divisor, least)
        total = dim_op("add", total, term)
    return total


def _product(atoms) -> AnyDim:
    total: AnyDim = 1
    for atom in atoms:
        total = dim_op("mul", total, atom_dim(atom))
    return total


def _contains(atom: DimVar | DimOp, counter: DimVar) -> bool:
    return isinstance(atom, DimOp) and any(counter in dim_vars(side) for side in (atom.left, atom.right))
