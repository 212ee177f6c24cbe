"""Loop nests of fused operators, generated from expression trees.

A group without reductions has one loop nest over the result.  In a group with reductions, the outer loops are those
that all reductions have in common.  An iteration of the outer loops is called a row.  Inside it, there is one loop nest
for each reduction and one for the result, each of which is called a pass over the row.  Softmax, for example, takes
three passes.

If the corresponding elements of adjacent rows are contiguous in memory, as when the columns of a matrix are reduced,
LANES rows are processed together.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager

from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr
from relvm.ir.loop_ir import Buffer, Literal, Load, Local, Scalar, as_scalar
from relvm.ir.symbolic import product
from relvm.kernels.fused_expr import ApplyExpr, BufferLoad, FusedExpr, NotFusable, ReduceExpr, post_order
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.loop_scope import (
    CollapsedLoop,
    Scope,
    c_name,
    collapse_loops,
    estimate_time,
    leaves_of,
    loops,
    parallel_scope,
    prepare,
    store_all,
)
from relvm.kernels.lowering_rules import LoopAxis, parallel_loop_nest, size_of_block
from relvm.kernels.simd_extreme import SimdExtreme
from relvm.kernels.transpose_tiling import TILE, find_transposed_loop, is_short, store_transposed, write_tiles

LANES = 64


def write_nest(k: KernelBuilder, root: tuple[LoopAxis, ...], outputs: list[tuple[BufferLoad, FusedExpr]]) -> None:
    """Generate the loops and the statements of a fused kernel.

    root: the loops over the elements of the outputs.
    outputs: for each output, a pair of the element to store and the expression tree that computes its value.

    Raises
    ------
    NotFusable
        The reductions in the trees are not all inside the same loops, or one of these loops is not in `root`.
    """
    if totals := _find_reductions(outputs):
        _RowGenerator(k, root, outputs, totals).write()
    else:
        _write_elementwise(k, root, outputs)


def overwrites_before_reading(root: tuple[LoopAxis, ...], outputs: list[tuple[BufferLoad, FusedExpr]]) -> bool:
    """Return whether the kernel that `write_nest` generates writes to an output before it has read all inputs.

    If it does, an output must not share memory with an input.  The kernel does so if the first pass over a row stores a
    value in the memory of the output, from which later passes load it.
    """
    totals = _find_reductions(outputs)
    return bool(totals) and _RowGenerator(KernelBuilder(), root, outputs, totals).writes_result_early


def recomputes_costly_value(root: tuple[LoopAxis, ...], outputs: list[tuple[BufferLoad, FusedExpr]]) -> bool:
    """Return whether the kernel that `write_nest` generates would compute an expensive value more than once.

    A kernel with reductions, such as softmax, makes several passes over each row.  If several passes need the same
    value, the first pass can store the value in the memory of the output, from which later passes load it.  The memory
    of the output has room for only one such value, so a second shared value would be computed again.

    Raises
    ------
    NotFusable
        The reductions in the trees are not all inside the same loops, or one of these loops is not in `root`.
    """
    totals = _find_reductions(outputs)
    rows = row_axes(root, totals) if totals else []
    passes: list[tuple[tuple[FusedExpr, ...], list[LoopAxis]]] = []
    passes += [((total.arg,), [*rows, *total.over]) for total in totals]
    passes.append((tuple(tree for _, tree in outputs), [*rows, *(axis for axis in root if axis not in rows)]))
    seen_keys: set[tuple] = set()
    shared: set[tuple] = set()
    for inside, order in passes:
        over = tuple(order[len(rows) :])
        order = [axis for axis in order if axis.extent != 1]
        seen: set[Expr] = set()
        for tree in post_order(inside, into_reductions=False):
            if not isinstance(tree, ApplyExpr) or not tree.is_costly or tree.axes <= set(rows):
                continue
            expr, _ = tree.key
            missing = [axis for axis in order if axis not in tree.axes]
            last = max(order.index(axis) for axis in tree.axes if axis in order) if tree.axes & set(order) else -1
            if expr in seen or any(order.index(axis) < last for axis in missing):
                return True
            seen.add(expr)
            key = _value_key(tree, over)
            if key in seen_keys:
                shared.add(key)
                if tree.dtype != outputs[0][0].buffer.dtype:
                    return True  # the value cannot be stored in the memory of the result
            seen_keys.add(key)
    return len(shared) > 1


def row_axes(root: tuple[LoopAxis, ...], totals: list[ReduceExpr]) -> list[LoopAxis]:
    """Return the outer loops that the reductions `totals` share with the result, in the order of `root`.

    root: the loops over the result of the fused operators.
    totals: the reductions, such as the sum and the maximum of a softmax.

    Raises
    ------
    NotFusable
        The reductions are not all inside the same loops, or one of these loops is not in `root`.
    """
    rows = totals[0].axes
    if any(total.axes != rows for total in totals) or not rows <= set(root):
        raise NotFusable
    return [axis for axis in root if axis in rows]


def _find_reductions(outputs: list[tuple[BufferLoad, FusedExpr]]) -> list[ReduceExpr]:
    return [tree for tree in post_order(tuple(tree for _, tree in outputs)) if isinstance(tree, ReduceExpr)]


def _write_elementwise(
    k: KernelBuilder, root: tuple[LoopAxis, ...], outputs: list[tuple[BufferLoad, FusedExpr]]
) -> None:
    trees = [tree for _, tree in outputs]
    leaves = [leaf for leaf, _ in outputs] + leaves_of(trees)
    collapsed = collapse_loops(root, leaves)
    if across := find_transposed_loop(collapsed, leaves):
        write_tiles(k, collapsed, across, outputs)
        return
    inside = collapsed[-1].axes if collapsed else ()
    if len(collapsed) == 1:
        outer = Scope(k)
        prepare(outer, outputs, set(inside))
        with parallel_scope(outer, collapsed, estimate_time(trees), simd=True) as inner:
            store_all(inner, outputs)
        return
    with parallel_scope(Scope(k), collapsed[:-1], estimate_time(trees, inside)) as outer:
        prepare(outer, outputs, set(inside))
        with loops(outer, collapsed[-1:], simd=True) as inner:
            store_all(inner, outputs)


class _RowGenerator:
    """Generator of the loops of a group with reductions.

    A row is an iteration of the outer loops that all reductions share.  A pass is a loop nest inside a row, which
    computes one reduction or the result.

    columns: the loops over the result inside a row.
    rows: the outer loops.
    shared: the key of an expensive value that several passes use (see `_value_key`), or None.
    saved: a dict from the key of a value that is already stored to the element that stores it.
    """

    def __init__(
        self,
        k: KernelBuilder,
        root: tuple[LoopAxis, ...],
        outputs: list[tuple[BufferLoad, FusedExpr]],
        totals: list[ReduceExpr],
    ) -> None:
        self.k = k
        self.outputs = outputs
        self.totals = totals
        rows = row_axes(root, totals)
        self.columns = [axis for axis in root if axis not in rows]
        everything = [leaf for leaf, _ in outputs] + leaves_of(tree for _, tree in outputs)
        self.rows = collapse_loops(rows, everything)
        self.saved: dict[tuple, BufferLoad] = {}  # values that an earlier pass has stored in the memory of the result
        self.shared = self._find_shared_key()

    def write(self) -> None:
        lane = self.rows[-1] if self.rows and self._has_contiguous_rows(self.rows[-1]) else None
        work = estimate_time((tree for _, tree in self.outputs), self.columns)
        for total in self.totals:
            work = work + estimate_time((total.arg,), total.over)
        if lane is None:
            with parallel_scope(Scope(self.k), self.rows, work) as row:
                for total in self.totals:
                    row.values[total] = self._write_reduction(row, total)
                self._write_result(row)
            return
        outer, extent = Scope(self.k), as_scalar(lane.extent, I64)
        extents = [*(one.extent for one in self.rows[:-1]), (extent + (LANES - 1)) / LANES]
        deeper = product(one.extent for one in self.rows[2:-1])
        with parallel_loop_nest(self.k, extents, work * LANES * as_scalar(deeper, I64)) as (*counters, block):
            outer.counters = list(zip(self.rows[:-1], counters, strict=True))
            first = self.k.let("at", block * LANES)
            width = self.k.let("width", size_of_block(extent, first, LANES))
            _LaneGenerator(self, outer, lane, first, width).write()

    def _has_contiguous_rows(self, lane: CollapsedLoop) -> bool:
        """Return whether the reductions read contiguous memory across adjacent rows, and not along a row.

        lane: the loop over adjacent rows.
        """
        over = {axis for total in self.totals for axis in total.over if axis.extent != 1}
        leaves = [leaf for leaf in leaves_of(self.totals) if leaf.axes & over]
        along = any(leaf.strides.get(axis) == 1 for leaf in leaves for axis in leaf.axes & over)
        return not along and any(leaf.strides.get(lane.axes[-1]) == 1 for leaf in leaves)

    def pass_loops(
        self, over: Iterable[LoopAxis], trees: list[FusedExpr], extra: Iterable[BufferLoad] = ()
    ) -> list[CollapsedLoop]:
        """Return the loops of one pass over a row, with adjacent axes collapsed where possible.

        over: the axes of the pass.
        trees: the trees that the pass computes.
        extra: the elements that the pass stores.
        """
        return collapse_loops(over, [*leaves_of(trees, into_reductions=False), *extra])

    def _write_reduction(self, row: Scope, total: ReduceExpr) -> Scalar:
        """Generate the reduction `total` of one row in vector lanes, and return its result.

        row: the scope of the row.
        """
        k, reduction, dtype = self.k, total.reduction, total.dtype
        result = k.variable(c_name(total.of[0].name), Literal(reduction.start(dtype), dtype), total.of)
        is_extreme = dtype.is_float and reduction.clause in ("max", "min")
        extreme = SimdExtreme(k, result, reduction.clause) if is_extreme else None
        lanes = extreme.reduce if extreme else [(reduction.clause, result)]
        storage = self._shared_storage(total.arg, total.over)
        prepare(row, [(None, total.arg), *((leaf, total.arg) for leaf in storage.values())], set(total.over))
        with loops(row, self.pass_loops(total.over, [total.arg], storage.values()), simd=True, reduce=lanes) as inner:
            element = self.value(inner, total.arg, total.over, storage)
            if not isinstance(element, Local):
                element = k.let("element", element)
            if extreme:
                extreme.add(element)
            else:
                k.assign(result, reduction.combine(result, element))
        value = total.finish(extreme.result() if extreme else result, total.count)
        return value if value is result else k.let(c_name(total.of[0].name), value, total.of)

    def _write_result(self, row: Scope) -> None:
        trees = [tree for _, tree in self.outputs]
        over = tuple(self.columns)
        storage = {key: leaf for tree in trees for key, leaf in self._shared_storage(tree, over).items()}
        prepare(row, [*self.outputs, *((leaf, trees[0]) for leaf in storage.values())], set(over))
        with loops(row, self.pass_loops(over, trees, [leaf for leaf, _ in self.outputs]), simd=True) as inner:
            for leaf, tree in self.outputs:
                inner.store(leaf, self.value(inner, tree, over, storage))

    def value(
        self, scope: Scope, tree: FusedExpr, over: tuple[LoopAxis, ...], storage: dict[tuple, BufferLoad]
    ) -> Scalar:
        """Return the value of `tree` in a pass over the axes `over` of a row.

        storage: a dict, which is empty or has one entry.  The entry maps the key of a value that several passes share
        to the element that stores the value.  The first pass that computes the shared value stores it in this element,
        and later passes load it.
        """
        for part in post_order((tree,), into_reductions=False):
            if (
                not isinstance(part, ApplyExpr)
                or (key := _value_key(part, over)) not in storage
                or part in scope.values
            ):
                continue
            if key in self.saved:
                scope.values[part] = Load(storage[key].buffer, (scope.flat(storage[key]),))
            else:
                scope.store(storage[key], scope.value(part))
        self.saved |= storage
        return scope.value(tree)

    def _find_shared_key(self) -> tuple | None:
        """Find an expensive value that several passes over a row need and that the memory of the result can store.

        Return its key (see `_value_key`), or None if there is no such value.
        """
        if len(self.outputs) != 1 or not self.columns:
            return None
        tree, columns = self.outputs[0][1], tuple(self.columns)
        passes = [(total.arg, total.over) for total in self.totals] + [(tree, columns)]
        found: dict[tuple, int] = {}
        for arg, over in passes:
            if tuple(axis.extent for axis in over) != tuple(axis.extent for axis in columns):
                continue
            keys = {
                _value_key(part, over)
                for part in post_order((arg,), into_reductions=False)
                if isinstance(part, ApplyExpr)
                and part.is_costly
                and part.dtype == self.outputs[0][0].buffer.dtype
                and part.axes & set(over)
            }
            for key in keys:
                found[key] = found.get(key, 0) + 1
        return next((key for key, count in found.items() if count > 1), None)

    def _shared_storage(self, tree: FusedExpr, over: tuple[LoopAxis, ...]) -> dict[tuple, BufferLoad]:
        """Return a dict from the key of the shared value (see `_find_shared_key`) to the element that stores the value.

        The dict is empty if `tree` does not contain the shared value.

        over: the loops of the pass, which determine the position of the element.
        """
        if self.shared is None:
            return {}
        parts = [part for part in post_order((tree,), into_reductions=False) if isinstance(part, ApplyExpr)]
        inside = [part for part in parts if _value_key(part, over) == self.shared]
        out = self.outputs[0][0]
        if not inside:
            return {}
        strides = {axis: stride for axis, stride in out.strides.items() if axis not in self.columns}
        for axis, column in zip(over, self.columns, strict=True):
            strides[axis] = out.strides.get(column, 0)
        return {self.shared: BufferLoad(out.buffer, strides, out.start)}

    @property
    def writes_result_early(self) -> bool:
        """Whether the kernel writes to the memory of the result before it has read all inputs.

        The kernel does so if it stores the value that several passes share (see `_find_shared_key`) in this memory.
        """
        return self.shared is not None


def _value_key(tree: ApplyExpr, over: tuple[LoopAxis, ...]) -> tuple:
    """Return a key of the value of `tree`.  Two trees with equal keys compute the same value.

    The trees can belong to different passes over the data.  Each pass has its own loops, so the key identifies a loop
    by its index in `over`.

    over: the loops of the pass that computes `tree`.
    """
    expr, indices = tree.key
    number = {axis: i for i, axis in enumerate(over)}
    at = tuple((tuple((number.get(axis, axis), step) for axis, step in index.steps), index.start) for index in indices)
    return (expr, at)


class _LaneGenerator:
    """Generator of the loops for LANES adjacent rows that are processed together.

    Each per-row scalar becomes an array of LANES elements, one for each row.

    rows: the generator of the whole kernel.
    outer: the scope around these loops.
    lane: the loop over adjacent rows.
    first, width: the first of the rows that are processed together, and their number.
    """

    def __init__(self, rows: _RowGenerator, outer: Scope, lane: CollapsedLoop, first: Scalar, width: Scalar) -> None:
        self.rows = rows
        self.k = rows.k
        self.scope = Scope(self.k, outer)
        self.lane = lane
        self.first = first
        self.width = width
        self.arrays: dict[FusedExpr, Buffer] = {}

    def write(self) -> None:
        rows, k = self.rows, self.k
        for total in rows.totals:
            array = k.allocate(c_name(total.of[0].name), total.dtype, (LANES,), total.of)
            with self.lanes(self.scope) as (_, lane):
                k.store(array, (lane,), total.reduction.start(total.dtype))
            with (
                loops(self.scope, rows.pass_loops(total.over, [total.arg])) as inner,
                self.lanes(inner) as (scope, lane),
            ):
                k.store(array, (lane,), total.reduction.combine(array[lane], scope.value(total.arg)))
            finished = total.finish(array[Literal(0, I64)], total.count)
            if not isinstance(finished, Load):
                with self.lanes(self.scope) as (_, lane):
                    k.store(array, (lane,), total.finish(array[lane], total.count))
            self.arrays[total] = array
        trees = [tree for _, tree in rows.outputs]
        self.compute_row_values(trees)
        pass_loops = rows.pass_loops(rows.columns, trees, [leaf for leaf, _ in rows.outputs])
        transposed = [leaf for leaf, _ in rows.outputs if pass_loops and self._is_transposed(leaf, pass_loops[-1])]
        if transposed:
            self._write_blocks(pass_loops, transposed)
            return
        with loops(self.scope, pass_loops) as inner, self.lanes(inner) as (scope, _):
            store_all(scope, rows.outputs)

    def _is_transposed(self, leaf: BufferLoad, column: CollapsedLoop) -> bool:
        """Return whether an output is contiguous along the loop `column` and not along the lanes."""
        along_lanes = leaf.strides.get(self.lane.axes[-1], 0)
        return along_lanes != 1 and leaf.strides.get(column.axes[-1]) == 1 and not is_short(column)

    def _write_blocks(self, pass_loops: list[CollapsedLoop], transposed: list[BufferLoad]) -> None:
        """Generate the pass over the result, if some outputs are contiguous along the columns instead of the lanes.

        The pass computes TILE columns of all lanes at a time.  It collects the elements of these outputs in local
        arrays, from which it stores them transposed.

        pass_loops: the loops of the pass.
        transposed: the elements of these outputs.
        """
        k, column = self.k, pass_loops[-1]
        collected = {leaf: k.allocate("block", leaf.buffer.dtype, (TILE * LANES,)) for leaf in transposed}
        extent = as_scalar(column.extent, I64)
        with loops(self.scope, pass_loops[:-1]) as outer, k.loop((extent + (TILE - 1)) / TILE, name="number") as number:
            start = k.let("from", number * TILE)
            count = k.let("count", size_of_block(extent, start, TILE))
            with k.loop(count, name="c") as c:
                inner = Scope(k, outer)
                inner.counters = [(column, start + c)]
                with self.lanes(inner) as (scope, lane):
                    for leaf, tree in self.rows.outputs:
                        if leaf in collected:
                            k.store(collected[leaf], (c * LANES + lane,), scope.value(tree))
                        else:
                            scope.store(leaf, scope.value(tree))
            for leaf, block in collected.items():
                at = ((self.lane, self.first), (column, start))
                store_transposed(k, outer, leaf, block, LANES, at, (self.width, count))

    def compute_row_values(self, trees: list[FusedExpr]) -> None:
        """Generate code that computes the subtrees of `trees` that depend only on the row.

        They are then computed once per row instead of once per element.
        """
        columns = set(self.rows.columns)
        if not columns:
            return
        for tree in post_order(tuple(trees), into_reductions=False):
            if isinstance(tree, ApplyExpr) and not tree.axes & columns and tree.axes:
                array = self.k.allocate(c_name(tree.of[0].name), tree.dtype, (LANES,), tree.of)
                with self.lanes(self.scope) as (scope, lane):
                    self.k.store(array, (lane,), scope.value(tree))
                self.arrays[tree] = array

    @contextmanager
    def lanes(self, outer: Scope):
        """A context manager that opens a loop over the rows that are processed together.

        It yields the scope of the loop, nested in scope `outer`, and the loop counter.
        """
        scope = Scope(self.k, outer)
        with self.k.loop(self.width, name="l", simd=True) as lane:
            scope.counters = [(self.lane, self.first + lane)]
            scope.values |= {tree: array[lane] for tree, array in self.arrays.items()}
            yield scope, lane
