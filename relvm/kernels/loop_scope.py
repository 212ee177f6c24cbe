"""Scopes: the open loops of a kernel, and the values that are already computed inside them.

Scopes generate the code of expression trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace

from relvm.data_classes import value_record
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Literal, Load, Local, Operation, Scalar, Size, as_scalar, parts_of
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.fused_expr import ApplyExpr, BufferLoad, ConstantExpr, FusedExpr, GatherLoad, post_order, subtrees
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import LoopAxis, loop_nest, nonnegative_index, parallel_loop_nest
from relvm.quoting import c_identifier


@value_record
class CollapsedLoop:
    """Loop axes that are iterated as one loop."""

    axes: tuple[LoopAxis, ...]
    extent: AnyDim


def collapse_loops(axes: Iterable[LoopAxis], leaves: Iterable[BufferLoad]) -> list[CollapsedLoop]:
    """Collapse loops over `axes` into fewer loops with the same iterations.

    Axes of extent 1 are dropped.  Adjacent axes become one loop if each element of `leaves` is accessed along them with
    a single stride.
    """
    leaves = list(leaves)
    collapsed: list[CollapsedLoop] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        last = collapsed[-1].axes[-1] if collapsed else None
        if last and all(leaf.strides.get(last, 0) == leaf.strides.get(axis, 0) * axis.extent for leaf in leaves):
            collapsed[-1] = CollapsedLoop((*collapsed[-1].axes, axis), product((collapsed[-1].extent, axis.extent)))
        else:
            collapsed.append(CollapsedLoop((axis,), axis.extent))
    return collapsed


def leaves_of(trees: Iterable[FusedExpr], *, into_reductions: bool = True) -> list[BufferLoad]:
    return [tree for tree in post_order(tuple(trees), into_reductions=into_reductions) if isinstance(tree, BufferLoad)]


class Scope:
    """The loops that are open at a point of the kernel, and the values that are already computed inside them.

    A scope can be nested in an outer scope.

    counters: pairs of a loop that this scope opened and its counter.
    values: a dict from a tree to its computed value.
    bases: a dict from a leaf, which is an element of a buffer, to a variable.  The variable contains the part of the
    element's position that depends on this scope and outer scopes.
    """

    def __init__(self, k: KernelBuilder, outer: Scope | None = None) -> None:
        self.k = k
        self.outer = outer
        self.counters: list[tuple[CollapsedLoop, Scalar]] = []
        self.values: dict[FusedExpr, Scalar] = {}
        self.bases: dict[BufferLoad, Scalar] = {}

    def flat(self, leaf: BufferLoad) -> Scalar:
        """Return the part of the position of `leaf` that the loops of this scope and outer scopes determine."""
        own: Scalar = Literal(0, I64)
        for collapsed, counter in self.counters:
            own = own + counter * as_scalar(leaf.strides.get(collapsed.axes[-1], 0), I64)
        if self.outer is None:
            return as_scalar(leaf.start, I64) + own
        return (self.outer.bases[leaf] if leaf in self.outer.bases else self.outer.flat(leaf)) + own

    def prepare(self, leaf: BufferLoad) -> None:
        """Generate a variable for the part of the position of `leaf` that the loops of this and outer scopes determine.

        Inner scopes add the terms of their own loops to this variable.
        """
        position = self.flat(leaf)
        if not isinstance(position, Local | Literal | Size):
            self.bases[leaf] = self.k.let(f"{leaf.buffer.name}at", position)

    def computed_value(self, tree: FusedExpr) -> Scalar | None:
        """Return the value of `tree` if this scope or an outer scope has computed it, otherwise None."""
        if tree in self.values:
            return self.values[tree]
        return self.outer.computed_value(tree) if self.outer else None

    def value(self, tree: FusedExpr) -> Scalar:
        """Generate the code of a tree in this scope, and return its value.

        The result of each operator is assigned to a C variable, which is named after the variable in the IR.
        """
        known = self.computed_value(tree)
        if known is not None:
            return known
        match tree:
            case ConstantExpr(literal):
                return literal
            case GatherLoad(buffer, index=index, size=size, step=step):
                at = nonnegative_index(self.k.let("index", self.value(index).to(I64)), as_scalar(size, I64))
                value: Scalar = Load(buffer, (self.flat(tree) + at * as_scalar(step, I64),))
            case BufferLoad(buffer):
                value = Load(buffer, (self.flat(tree),))
            case ApplyExpr(of, function, args):
                value = self.k.let(c_name(of[0].name), _loaded(self.k, function(*map(self.value, args))), of)
            case _:
                raise AssertionError(f"cannot compute {type(tree).__name__}; it must be bound first")
        self.values[tree] = value
        return value

    def store(self, leaf: BufferLoad, value: Scalar) -> None:
        self.k.store(leaf.buffer, (self.flat(leaf),), value)


def c_name(name: str) -> str:
    """Convert a name to a valid C identifier.  The builder makes the identifier unique."""
    return f"v_{c_identifier(name)}"


@contextmanager
def loops(scope: Scope, collapsed: list[CollapsedLoop], *, simd: bool = False, reduce=()):
    """A context manager that opens the loops `collapsed` inside `scope`, and yields the scope of these loops.

    simd: whether the innermost loop is a SIMD loop.
    reduce: a pair (operator, local) for each reduction of the innermost loop.
    """
    inner = Scope(scope.k, scope)
    with loop_nest(scope.k, [one.extent for one in collapsed], simd=simd, reduce=tuple(reduce)) as counters:
        inner.counters = list(zip(collapsed, counters, strict=True))
        yield inner


@contextmanager
def parallel_scope(scope: Scope, collapsed: list[CollapsedLoop], work: Scalar, *, simd: bool = False):
    """A context manager that opens the loops `collapsed` inside `scope`, and yields the scope of these loops.

    Threads divide the iterations of the first loops.

    work: the estimated time of one iteration of the innermost loop, in eighths of a nanosecond.
    simd: whether the innermost loop is a SIMD loop.
    """
    inner = Scope(scope.k, scope)
    deeper = product(one.extent for one in collapsed[2:])
    with parallel_loop_nest(
        scope.k, [one.extent for one in collapsed], work * as_scalar(deeper, I64), simd=simd
    ) as counters:
        inner.counters = list(zip(collapsed, counters, strict=True))
        yield inner


def estimate_time(trees: Iterable[FusedExpr], over: Iterable[LoopAxis] = ()) -> Scalar:
    """Return the estimated time to compute `trees` in all iterations of the loops `over`.

    The unit is that of KernelBuilder.parallel, an eighth of a nanosecond.
    """
    time = 0
    for tree in post_order(tuple(trees), into_reductions=False):
        time += (
            2 if isinstance(tree, BufferLoad) else (8 if tree.is_costly else 1) if isinstance(tree, ApplyExpr) else 0
        )
    return as_scalar(product(axis.extent for axis in over), I64) * time


def store_all(scope: Scope, outputs: list[tuple[BufferLoad, FusedExpr]]) -> None:
    for leaf, tree in outputs:
        scope.store(leaf, scope.value(tree))


def prepare(scope: Scope, outputs: Iterable[tuple[BufferLoad | None, FusedExpr]], inside: set[LoopAxis]) -> None:
    """Generate code that computes in advance the subtrees of `outputs` that do not depend on the loops `inside`.

    The caller opens the loops `inside` afterwards.

    outputs: pairs (leaf, tree).  `leaf` is the element in which the value of `tree` is stored, or None if the value is
    not stored.
    """
    waiting: list[FusedExpr] = []
    for leaf, tree in outputs:
        waiting.append(tree)
        if leaf is not None:
            scope.prepare(leaf)
    seen: set[FusedExpr] = set()
    while waiting:
        tree = waiting.pop()
        if tree in seen or scope.computed_value(tree) is not None:
            continue
        seen.add(tree)
        if not tree.axes & inside:
            if not isinstance(tree, ConstantExpr):
                scope.values[tree] = _load_once(scope.k, scope.value(tree))
        elif isinstance(tree, ApplyExpr):
            waiting += reversed(tree.args)
        elif isinstance(tree, BufferLoad):
            scope.prepare(tree)
            waiting += subtrees(tree)


def _loaded(k: KernelBuilder, value: Scalar) -> Scalar:
    """Return the value of an operator, with loads of both alternatives in advance if it is a selection.

    All elements that a tree loads exist.  The C compiler does not know this, so it would load an element only in a
    branch, and could not use vector instructions.
    """
    if not isinstance(value, Operation) or value.function != "select":
        return value
    condition, *alternatives = value.operands
    loaded = list(parts_of(condition))  # which are loaded in any case
    hoisted = (each if each in loaded else _load_once(k, each) for each in alternatives)
    return replace(value, operands=(condition, *hoisted))


def _load_once(k: KernelBuilder, value: Scalar) -> Scalar:
    return k.let("once", value) if isinstance(value, Load) else value
