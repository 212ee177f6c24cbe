"""Scopes: the open loops of a kernel, and the values known inside them.  Scopes generate the code of expression
trees."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager

from relvm.data_classes import value_record
from relvm.ir.dtypes import I64
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.fused_expr import ApplyExpr, BufferLoad, ConstantExpr, FusedExpr, GatherLoad, parts, post_order
from relvm.kernels.loop_ir import KernelBuilder, Literal, Load, Local, Scalar, Size, as_scalar
from relvm.kernels.lowering_rules import LoopAxis, from_the_front, loop_nest, part_loops
from relvm.quoting import c_identifier


@value_record
class CollapsedLoop:
    """Loop axes that are iterated as one loop."""

    axes: tuple[LoopAxis, ...]
    extent: AnyDim


def join(axes: Iterable[LoopAxis], leaves: Iterable[BufferLoad]) -> list[CollapsedLoop]:
    """Collapse loops over `axes` into fewer loops with the same iterations.  Axes of extent 1 are dropped.  Adjacent
    axes become one loop if each leaf accesses memory along them with a single stride."""
    leaves = list(leaves)
    joined: list[CollapsedLoop] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        last = joined[-1].axes[-1] if joined else None
        if last and all(leaf.strides.get(last, 0) == leaf.strides.get(axis, 0) * axis.extent for leaf in leaves):
            joined[-1] = CollapsedLoop((*joined[-1].axes, axis), product((joined[-1].extent, axis.extent)))
        else:
            joined.append(CollapsedLoop((axis,), axis.extent))
    return joined


def leaves_of(trees: Iterable[FusedExpr], *, into_totals: bool = True) -> list[BufferLoad]:
    return [tree for tree in post_order(tuple(trees), into_totals=into_totals) if isinstance(tree, BufferLoad)]


class Scope:
    """Some open loops and the values known inside them.  A scope is nested in an outer scope.

    counters: the loops that this scope opened, with their counters.   values: the values of trees that are already
    computed.   bases: a dict from an element of a buffer (a leaf of a tree) to the variable that contains the part of
    its position that depends on this scope and outer scopes.
    """

    def __init__(self, k: KernelBuilder, outer: Scope | None = None) -> None:
        self.k = k
        self.outer = outer
        self.counters: list[tuple[CollapsedLoop, Scalar]] = []
        self.values: dict[FusedExpr, Scalar] = {}
        self.bases: dict[BufferLoad, Scalar] = {}

    def position(self, leaf: BufferLoad) -> Scalar | None:
        """Return the part of the position of `leaf` in its buffer that depends on the loops of this scope.  Return None
        if this part is 0."""
        total: Scalar | None = None
        for joined, counter in self.counters:
            stride = leaf.strides.get(joined.axes[-1], 0)
            if stride == 0:
                continue
            term = counter if stride == 1 else counter * as_scalar(stride, I64)
            total = term if total is None else total + term
        return total

    def base(self, leaf: BufferLoad) -> Scalar | None:
        """Return the part of the position of `leaf` in its buffer that does not depend on the loops of this scope.
        Return None if this part is 0."""
        if self.outer is None:
            return None if isinstance(leaf.start, int) and leaf.start == 0 else as_scalar(leaf.start, I64)
        if leaf in self.outer.bases:
            return self.outer.bases[leaf]
        return _sum(self.outer.base(leaf), self.outer.position(leaf))

    def prepare(self, leaf: BufferLoad) -> None:
        """Generate a variable for the part of the position of `leaf` that this scope and outer scopes determine.  Inner
        scopes then use this variable."""
        position = _sum(self.base(leaf), self.position(leaf))
        if position is not None and not isinstance(position, Local | Literal | Size):
            self.bases[leaf] = self.k.let(f"{leaf.buffer.name}at", position)

    def flat(self, leaf: BufferLoad) -> Scalar:
        position = _sum(self.base(leaf), self.position(leaf))
        return as_scalar(0, I64) if position is None else position

    def known(self, tree: FusedExpr) -> Scalar | None:
        if tree in self.values:
            return self.values[tree]
        return self.outer.known(tree) if self.outer else None

    def value(self, tree: FusedExpr) -> Scalar:
        """Generate the code of a tree in this scope, and return its value.  The result of each operator is assigned to
        a variable that has the name of the value in the IR."""
        known = self.known(tree)
        if known is not None:
            return known
        match tree:
            case ConstantExpr(literal):
                return literal
            case GatherLoad(buffer, index=index, size=size, step=step):
                at = from_the_front(self.k.let("index", self.value(index).to(I64)), as_scalar(size, I64))
                value: Scalar = Load(buffer, (self.flat(tree) + at * as_scalar(step, I64),))
            case BufferLoad(buffer):
                value = Load(buffer, (self.flat(tree),))
            case ApplyExpr(of, function, args):
                value = self.k.let(c_name(of[0].name), function(*map(self.value, args)), of)
            case _:
                raise AssertionError(f"cannot compute {type(tree).__name__}; it must be bound first")
        self.values[tree] = value
        return value

    def store(self, leaf: BufferLoad, value: Scalar) -> None:
        self.k.store(leaf.buffer, (self.flat(leaf),), value)


def _sum(a: Scalar | None, b: Scalar | None) -> Scalar | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def c_name(name: str) -> str:
    """Convert a name to a valid C identifier.  The builder makes the identifier unique."""
    return f"v_{c_identifier(name)}"


@contextmanager
def loops(scope: Scope, joined: list[CollapsedLoop], *, simd: bool = False, reduce=()):
    """A context manager that opens loops over `joined` inside `scope`, and yields the scope of these loops."""
    inner = Scope(scope.k, scope)
    with loop_nest(scope.k, [one.extent for one in joined], simd=simd, reduce=tuple(reduce)) as counters:
        inner.counters = list(zip(joined, counters, strict=True))
        yield inner


@contextmanager
def shared_loops(scope: Scope, joined: list[CollapsedLoop], work: Scalar, *, simd: bool = False):
    """A context manager that opens parallel loops over `joined` inside `scope`, and yields the scope of these loops.

    work: the time of one iteration of the innermost loop (see KernelBuilder.parallel).
    """
    inner = Scope(scope.k, scope)
    deeper = product(one.extent for one in joined[2:])
    with part_loops(scope.k, [one.extent for one in joined], work * as_scalar(deeper, I64), simd=simd) as counters:
        inner.counters = list(zip(joined, counters, strict=True))
        yield inner


def work_of(trees: Iterable[FusedExpr], over: Iterable[LoopAxis] = ()) -> Scalar:
    """Return the estimated time to compute `trees` in all iterations of the loops `over`, in the unit of
    KernelBuilder.parallel."""
    each = 0
    for tree in post_order(tuple(trees), into_totals=False):
        each += (
            2 if isinstance(tree, BufferLoad) else (8 if tree.is_costly else 1) if isinstance(tree, ApplyExpr) else 0
        )
    return as_scalar(product(axis.extent for axis in over), I64) * each


def store_all(scope: Scope, outputs: list[tuple[BufferLoad, FusedExpr]]) -> None:
    for leaf, tree in outputs:
        scope.store(leaf, scope.value(tree))


def prepare(scope: Scope, outputs: Iterable[tuple[BufferLoad | None, FusedExpr]], inside: set[LoopAxis]) -> None:
    """Generate code that computes in advance those values of `outputs` that do not depend on the loops `inside`.

    The caller opens the loops `inside` afterwards.   outputs: pairs of a tree and the element in which its value is
    stored.  The element comes first, and is None if the value is not stored.
    """
    waiting: list[FusedExpr] = []
    for leaf, tree in outputs:
        waiting.append(tree)
        if leaf is not None:
            scope.prepare(leaf)
    seen: set[FusedExpr] = set()
    while waiting:
        tree = waiting.pop()
        if tree in seen or scope.known(tree) is not None:
            continue
        seen.add(tree)
        if not tree.axes & inside:
            if not isinstance(tree, ConstantExpr):
                scope.values[tree] = _named(scope.k, scope.value(tree))
        elif isinstance(tree, ApplyExpr):
            waiting += reversed(tree.args)
        elif isinstance(tree, BufferLoad):
            scope.prepare(tree)
            waiting += parts(tree)


def _named(k: KernelBuilder, value: Scalar) -> Scalar:
    return k.let("once", value) if isinstance(value, Load) else value
