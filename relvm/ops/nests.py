"""The loops of a group of fused operators, written from its trees.

Without reductions they are one nest over the result.  With reductions there are outer loops over what the reductions
have in common, the rows, and inside them one loop nest for each reduction and one for the result: softmax takes three
walks along a row.  Where rows lie side by side in memory, as columns of a matrix do, LANES of them are taken at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from relvm.ir.dims import AnyDim, product
from relvm.ir.dtypes import F32, I32, I64
from relvm.ir.expr import Expr
from relvm.lir.kernel import Buffer, KernelBuilder, Literal, Load, Local, Scalar, Select, Size, as_scalar, smaller
from relvm.ops.lowering import LoopAxis, loop_nest, part_loops
from relvm.ops.trees import Apply, Known, Leaf, NotFusable, Total, Tree, post_order

LANES = 64


@dataclass(frozen=True)
class Joined:
    """Loop axes that are walked as one."""

    axes: tuple[LoopAxis, ...]
    extent: AnyDim


def join(axes: Iterable[LoopAxis], leaves: Iterable[Leaf]) -> list[Joined]:
    """The same walk in fewer loops: axes of one step are left out, neighbours joined where every leaf steps through
    both as through one."""
    leaves = list(leaves)
    joined: list[Joined] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        last = joined[-1].axes[-1] if joined else None
        if last and all(leaf.strides.get(last, 0) == leaf.strides.get(axis, 0) * axis.extent for leaf in leaves):
            joined[-1] = Joined((*joined[-1].axes, axis), product((joined[-1].extent, axis.extent)))
        else:
            joined.append(Joined((axis,), axis.extent))
    return joined


def write_nest(k: KernelBuilder, root: tuple[LoopAxis, ...], outputs: list[tuple[Leaf, Tree]]) -> None:
    """Statements that store each tree at its leaf, for all values of the loops `root`.

    Raises
    ------
    NotFusable
        The reductions have different rows.
    """
    if totals := _totals(outputs):
        _Rows(k, root, outputs, totals).write()
    else:
        _write_plain(k, root, outputs)


def overwrites_early(root: tuple[LoopAxis, ...], outputs: list[tuple[Leaf, Tree]]) -> bool:
    """Whether `write_nest` writes to the outputs before it has read all inputs of a row."""
    totals = _totals(outputs)
    return bool(totals) and _Rows(KernelBuilder(), root, outputs, totals).overwrites


def recomputes(root: tuple[LoopAxis, ...], outputs: list[tuple[Leaf, Tree]]) -> bool:
    """Whether something that takes long would be computed more often than once for each element that it has, but for
    one such value that several walks along a row can share.

    Raises
    ------
    NotFusable
        The reductions have different rows.
    """
    totals = _totals(outputs)
    rows = row_axes(root, totals) if totals else []
    walks = [((total.arg,), [*rows, *total.over]) for total in totals]
    walks.append((tuple(tree for _, tree in outputs), [*rows, *(axis for axis in root if axis not in rows)]))
    met: set[tuple] = set()
    shared: set[tuple] = set()
    for inside, order in walks:
        over = tuple(order[len(rows) :])
        order = [axis for axis in order if axis.extent != 1]
        seen: set[Expr] = set()
        for tree in post_order(inside, into_totals=False):
            if not isinstance(tree, Apply) or not tree.is_costly or tree.axes <= set(rows):
                continue
            expr, _ = tree.key
            missing = [axis for axis in order if axis not in tree.axes]
            last = max(order.index(axis) for axis in tree.axes if axis in order) if tree.axes & set(order) else -1
            if expr in seen or any(order.index(axis) < last for axis in missing):
                return True
            seen.add(expr)
            key = _relative(tree, over)
            if key in met:
                shared.add(key)
                if tree.dtype != outputs[0][0].buffer.dtype:
                    return True  # it cannot wait where the result will be
            met.add(key)
    return len(shared) > 1


def row_axes(root: tuple[LoopAxis, ...], totals: list[Total]) -> list[LoopAxis]:
    """The loops that all reductions are inside of.

    Raises
    ------
    NotFusable
        Some are inside of others than the rest.
    """
    rows = totals[0].axes
    if any(total.axes != rows for total in totals) or not rows <= set(root):
        raise NotFusable
    return [axis for axis in root if axis in rows]


def _totals(outputs: list[tuple[Leaf, Tree]]) -> list[Total]:
    return [tree for tree in post_order(tuple(tree for _, tree in outputs)) if isinstance(tree, Total)]


def _leaves(trees: Iterable[Tree], *, into_totals: bool = True) -> list[Leaf]:
    return [tree for tree in post_order(tuple(trees), into_totals=into_totals) if isinstance(tree, Leaf)]


class Scope:
    """Loops that are open, and the values known inside them."""

    def __init__(self, k: KernelBuilder, outer: Scope | None = None) -> None:
        self.k = k
        self.outer = outer
        self.counters: list[tuple[Joined, Scalar]] = []
        self.values: dict[Tree, Scalar] = {}
        self.bases: dict[Leaf, Scalar] = {}

    def position(self, leaf: Leaf) -> Scalar | None:
        """The part of a leaf's position that this scope's own loops give; None for 0."""
        total: Scalar | None = None
        for joined, counter in self.counters:
            stride = leaf.strides.get(joined.axes[-1], 0)
            if stride == 0:
                continue
            term = counter if stride == 1 else counter * as_scalar(stride, I64)
            total = term if total is None else total + term
        return total

    def base(self, leaf: Leaf) -> Scalar | None:
        """The position as far as the scopes around give it; None for 0."""
        if self.outer is None:
            return None if isinstance(leaf.start, int) and leaf.start == 0 else as_scalar(leaf.start, I64)
        if leaf in self.outer.bases:
            return self.outer.bases[leaf]
        return _sum(self.outer.base(leaf), self.outer.position(leaf))

    def prepare(self, leaf: Leaf) -> None:
        """Names the position as far as it is known here, for the scopes inside."""
        position = _sum(self.base(leaf), self.position(leaf))
        if position is not None and not isinstance(position, Local | Literal | Size):
            self.bases[leaf] = self.k.declare(f"{leaf.buffer.name}at", position)

    def flat(self, leaf: Leaf) -> Scalar:
        position = _sum(self.base(leaf), self.position(leaf))
        return as_scalar(0, I64) if position is None else position

    def known(self, tree: Tree) -> Scalar | None:
        if tree in self.values:
            return self.values[tree]
        return self.outer.known(tree) if self.outer else None

    def value(self, tree: Tree) -> Scalar:
        """The value here; what operators give is declared, under its name in the IR."""
        known = self.known(tree)
        if known is not None:
            return known
        match tree:
            case Known(literal):
                return literal
            case Leaf(buffer):
                value: Scalar = Load(buffer, (self.flat(tree),))
            case Apply(name, function, args):
                value = self.k.declare(_c_name(name), function(*map(self.value, args)))
            case _:
                raise AssertionError(f"a {type(tree).__name__} that was not computed before")
        self.values[tree] = value
        return value

    def store(self, leaf: Leaf, value: Scalar) -> None:
        self.k.store(leaf.buffer, (self.flat(leaf),), value)


def _sum(a: Scalar | None, b: Scalar | None) -> Scalar | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _c_name(name: str) -> str:
    """A name that C takes; the builder makes it unique."""
    kept = "".join(ch if ch.isascii() and (ch.isalnum() or ch == "_") else "_" for ch in name)
    return f"v_{kept}"


@contextmanager
def _loops(scope: Scope, joined: list[Joined], *, simd: bool = False, reduce=()):
    """A scope inside loops over `joined`, that has what the scope around it has."""
    inner = Scope(scope.k, scope)
    with loop_nest(scope.k, [one.extent for one in joined], simd=simd, reduce=tuple(reduce)) as counters:
        inner.counters = list(zip(joined, counters, strict=True))
        yield inner


@contextmanager
def _part_loops(scope: Scope, joined: list[Joined], work: Scalar, *, simd: bool = False):
    """The same, shared among threads.   work: of one step of the innermost loop."""
    inner = Scope(scope.k, scope)
    deeper = product(one.extent for one in joined[2:])
    with part_loops(scope.k, [one.extent for one in joined], work * as_scalar(deeper, I64), simd=simd) as counters:
        inner.counters = list(zip(joined, counters, strict=True))
        yield inner


def _work(trees: Iterable[Tree], over: Iterable[LoopAxis] = ()) -> Scalar:
    """About what trees take at all places of some loops, see KernelBuilder.parallel."""
    each = 0
    for tree in post_order(tuple(trees), into_totals=False):
        each += 2 if isinstance(tree, Leaf) else (8 if tree.is_costly else 1) if isinstance(tree, Apply) else 0
    return as_scalar(product(axis.extent for axis in over), I64) * each


def _write_plain(k: KernelBuilder, root: tuple[LoopAxis, ...], outputs: list[tuple[Leaf, Tree]]) -> None:
    trees = [tree for _, tree in outputs]
    leaves = [leaf for leaf, _ in outputs] + _leaves(trees)
    joined = join(root, leaves)
    inside = joined[-1].axes if joined else ()
    if len(joined) == 1:
        outer = Scope(k)
        _prepare(outer, outputs, set(inside))
        with _part_loops(outer, joined, _work(trees), simd=True) as inner:
            _store_all(inner, outputs)
        return
    with _part_loops(Scope(k), joined[:-1], _work(trees, inside)) as outer:
        _prepare(outer, outputs, set(inside))
        with _loops(outer, joined[-1:], simd=True) as inner:
            _store_all(inner, outputs)


def _store_all(scope: Scope, outputs: list[tuple[Leaf, Tree]]) -> None:
    for leaf, tree in outputs:
        scope.store(leaf, scope.value(tree))


def _prepare(scope: Scope, outputs: Iterable[tuple[Leaf | None, Tree]], inside: set[LoopAxis]) -> None:
    """Computes, before loops over `inside`, all that does not depend on them."""
    waiting: list[Tree] = []
    for leaf, tree in outputs:
        waiting.append(tree)
        if leaf is not None:
            scope.prepare(leaf)
    seen: set[Tree] = set()
    while waiting:
        tree = waiting.pop()
        if tree in seen or scope.known(tree) is not None:
            continue
        seen.add(tree)
        if not tree.axes & inside:
            if not isinstance(tree, Known):
                scope.values[tree] = _named(scope.k, scope.value(tree))
        elif isinstance(tree, Apply):
            waiting += reversed(tree.args)
        elif isinstance(tree, Leaf):
            scope.prepare(tree)


def _named(k: KernelBuilder, value: Scalar) -> Scalar:
    return k.declare("once", value) if isinstance(value, Load) else value


class _Rows:
    """The loops of a group with reductions."""

    def __init__(
        self, k: KernelBuilder, root: tuple[LoopAxis, ...], outputs: list[tuple[Leaf, Tree]], totals: list[Total]
    ) -> None:
        self.k = k
        self.outputs = outputs
        self.totals = totals
        rows = row_axes(root, totals)
        self.columns = [axis for axis in root if axis not in rows]
        everything = [leaf for leaf, _ in outputs] + _leaves(tree for _, tree in outputs)
        self.rows = join(rows, everything)
        self.saved: dict[tuple, Leaf] = {}  # what an earlier walk has written where the result will be
        self.shared = self._shared()

    def write(self) -> None:
        lane = self.rows[-1] if self.rows and self._side_by_side(self.rows[-1]) else None
        work = _work((tree for _, tree in self.outputs), self.columns)
        for total in self.totals:
            work = work + _work((total.arg,), total.over)
        if lane is None:
            with _part_loops(Scope(self.k), self.rows, work) as row:
                for total in self.totals:
                    row.values[total] = self._total(row, total)
                self._result(row)
            return
        outer, extent = Scope(self.k), as_scalar(lane.extent, I64)
        extents = [*(one.extent for one in self.rows[:-1]), (extent + (LANES - 1)) / LANES]
        deeper = product(one.extent for one in self.rows[2:-1])
        with part_loops(self.k, extents, work * LANES * as_scalar(deeper, I64)) as (*counters, block):
            outer.counters = list(zip(self.rows[:-1], counters, strict=True))
            first = self.k.declare("at", block * LANES)
            width = self.k.declare("width", smaller(extent - first, LANES))
            _Lanes(self, outer, lane, first, width).write()

    def _side_by_side(self, lane: Joined) -> bool:
        """Whether rows are next to each other and their own elements are not."""
        over = {axis for total in self.totals for axis in total.over if axis.extent != 1}
        leaves = [leaf for leaf in _leaves(self.totals) if leaf.axes & over]
        along = any(leaf.strides[axis] == 1 for leaf in leaves for axis in leaf.axes & over)
        return not along and any(leaf.strides.get(lane.axes[-1]) == 1 for leaf in leaves)

    def walk(self, over: Iterable[LoopAxis], trees: list[Tree], extra: Iterable[Leaf] = ()) -> list[Joined]:
        """The loops of one walk along a row."""
        return join(over, [*_leaves(trees, into_totals=False), *extra])

    def _total(self, row: Scope, total: Total) -> Scalar:
        """Adds up one row in vector lanes.

        A lane of a maximum or minimum never holds NaN: that one was met is noted beside it.
        """
        k, reduction, dtype = self.k, total.reduction, total.dtype
        result = k.declare(_c_name(total.name), Literal(reduction.start(dtype), dtype))
        sees_nan = dtype.is_float and reduction.clause in ("max", "min")
        lanes = [(reduction.clause, result)]
        if sees_nan:
            flag = I32 if dtype == F32 else I64  # as wide as an element
            unordered = k.declare("unordered", Literal(0, flag))
            lanes.append(("|", unordered))
        kept = self._kept(total.arg, total.over)
        _prepare(row, [(None, total.arg), *((leaf, total.arg) for leaf in kept.values())], set(total.over))
        with _loops(row, self.walk(total.over, [total.arg], kept.values()), simd=True, reduce=lanes) as inner:
            element = self.value(inner, total.arg, total.over, kept)
            if not isinstance(element, Local):
                element = k.declare("element", element)
            if sees_nan:
                better = element > result if reduction.clause == "max" else element < result
                k.assign(result, Select(better, element, result))
                k.assign(unordered, Select(element.differs(element), Literal(1, flag), unordered))
            else:
                k.assign(result, reduction.combine(result, element))
        value: Scalar = Select(unordered > 0, Literal(np.nan, dtype), result) if sees_nan else result
        value = total.finish(value, total.count)
        return value if value is result else k.declare(_c_name(total.name), value)

    def _result(self, row: Scope) -> None:
        trees = [tree for _, tree in self.outputs]
        over = tuple(self.columns)
        kept = {key: leaf for tree in trees for key, leaf in self._kept(tree, over).items()}
        _prepare(row, [*self.outputs, *((leaf, trees[0]) for leaf in kept.values())], set(over))
        with _loops(row, self.walk(over, trees, [leaf for leaf, _ in self.outputs]), simd=True) as inner:
            for leaf, tree in self.outputs:
                inner.store(leaf, self.value(inner, tree, over, kept))

    def value(self, scope: Scope, tree: Tree, over: tuple[LoopAxis, ...], kept: dict[tuple, Leaf]) -> Scalar:
        """The tree's value; what is shared by several walks is written by the first and read by the others."""
        for part in post_order((tree,), into_totals=False):
            key = _relative(part, over)
            if key not in kept or part in scope.values:
                continue
            if key in self.saved:
                scope.values[part] = Load(kept[key].buffer, (scope.flat(kept[key]),))
            else:
                scope.store(kept[key], scope.value(part))
        self.saved |= kept
        return scope.value(tree)

    def _shared(self) -> tuple | None:
        """What takes long and is needed by several walks, if there is room for it where the result will be."""
        if len(self.outputs) != 1 or not self.columns:
            return None
        tree, columns = self.outputs[0][1], tuple(self.columns)
        walks = [(total.arg, total.over) for total in self.totals] + [(tree, columns)]
        found: dict[tuple, int] = {}
        for arg, over in walks:
            if tuple(axis.extent for axis in over) != tuple(axis.extent for axis in columns):
                continue
            keys = {
                _relative(part, over)
                for part in post_order((arg,), into_totals=False)
                if isinstance(part, Apply)
                and part.is_costly
                and part.dtype == self.outputs[0][0].buffer.dtype
                and part.axes & set(over)
            }
            for key in keys:
                found[key] = found.get(key, 0) + 1
        return next((key for key, count in found.items() if count > 1), None)

    def _kept(self, tree: Tree, over: tuple[LoopAxis, ...]) -> dict[tuple, Leaf]:
        """Where the shared value is, along the walk `over`, if it is in `tree`."""
        if self.shared is None:
            return {}
        inside = [part for part in post_order((tree,), into_totals=False) if _relative(part, over) == self.shared]
        out = self.outputs[0][0]
        if not inside:
            return {}
        strides = {axis: stride for axis, stride in out.strides.items() if axis not in self.columns}
        for axis, column in zip(over, self.columns, strict=True):
            strides[axis] = out.strides.get(column, 0)
        return {self.shared: Leaf(out.buffer, strides, out.start)}

    @property
    def overwrites(self) -> bool:
        """Whether the result's memory is written before the last read of the inputs."""
        return self.shared is not None


def _relative(tree: Tree, over: tuple[LoopAxis, ...]) -> tuple | None:
    """What a tree computes, and where along a walk: the same for two walks that compute the same."""
    if not isinstance(tree, Apply):
        return None
    expr, places = tree.key
    number = {axis: i for i, axis in enumerate(over)}
    at = tuple((tuple((number.get(axis, axis), step) for axis, step in place.steps), place.start) for place in places)
    return (expr, at)


class _Lanes:
    """LANES rows side by side: every value of a row is an array of them."""

    def __init__(self, rows: _Rows, outer: Scope, lane: Joined, first: Scalar, width: Scalar) -> None:
        self.rows = rows
        self.k = rows.k
        self.scope = Scope(self.k, outer)
        self.lane = lane
        self.first = first
        self.width = width
        self.arrays: dict[Tree, Buffer] = {}

    def write(self) -> None:
        rows, k = self.rows, self.k
        for total in rows.totals:
            array = k.allocate(_c_name(total.name), total.dtype, (LANES,))
            with self.lanes(self.scope) as (_, lane):
                k.store(array, (lane,), total.reduction.start(total.dtype))
            with _loops(self.scope, rows.walk(total.over, [total.arg])) as inner, self.lanes(inner) as (scope, lane):
                k.store(array, (lane,), total.reduction.combine(array[lane], scope.value(total.arg)))
            finished = total.finish(array[Literal(0, I64)], total.count)
            if not isinstance(finished, Load):
                with self.lanes(self.scope) as (_, lane):
                    k.store(array, (lane,), total.finish(array[lane], total.count))
            self.arrays[total] = array
        trees = [tree for _, tree in rows.outputs]
        self.settle(trees)
        walk = rows.walk(rows.columns, trees, [leaf for leaf, _ in rows.outputs])
        with _loops(self.scope, walk) as inner, self.lanes(inner) as (scope, _):
            _store_all(scope, rows.outputs)

    def settle(self, trees: list[Tree]) -> None:
        """Computes what operators make of the totals once for each row, not for each element."""
        columns = set(self.rows.columns)
        if not columns:
            return
        for tree in post_order(tuple(trees), into_totals=False):
            if isinstance(tree, Apply) and not tree.axes & columns and tree.axes:
                array = self.k.allocate(_c_name(tree.name), tree.dtype, (LANES,))
                with self.lanes(self.scope) as (scope, lane):
                    self.k.store(array, (lane,), scope.value(tree))
                self.arrays[tree] = array

    @contextmanager
    def lanes(self, around: Scope):
        """A loop over the rows of the block: a scope in it, and its counter."""
        scope = Scope(self.k, around)
        with self.k.loop(self.width, name="l", simd=True) as lane:
            scope.counters = [(self.lane, self.first + lane)]
            scope.values |= {tree: array[lane] for tree, array in self.arrays.items()}
            yield scope, lane
