"""Tiled loop nests, for kernels that read a tensor along one loop and write the result along another.

The tensor is contiguous along the first of these loops, and the result is contiguous along the second.

For each tile of the result, the kernel first copies the elements that the tile needs from the tensor, and transposes
them.  Each cache line of the tensor is then read only once, and the loops over the tile can be vectorized.
"""

from __future__ import annotations

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar, minimum
from relvm.kernels.fused_expr import BufferLoad, FusedExpr, GatherLoad
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.loop_scope import CollapsedLoop, Scope, estimate_time, leaves_of, prepare, store_all
from relvm.kernels.lowering_rules import LoopAxis, parallel_loop_nest
from relvm.tables import kernel_constant

_TILE = kernel_constant("TRANSPOSED_TILE")  # the edge length of a tile
_LEAST = 8  # the minimum extent of a tiled loop


def find_transposed_loop(collapsed: list[CollapsedLoop], leaves: list[BufferLoad]) -> CollapsedLoop | None:
    """Find a loop for which tiling pays: an outer loop along which a tensor is contiguous, as in a transposition.

    The tensor must not be contiguous along the innermost loop, and both loops must be long.  Return None if there is no
    such loop or if a leaf is a gather.

    collapsed: the loops, outermost first.
    leaves: the elements of tensors that the loops access.
    """
    if not collapsed or _is_short(collapsed[-1]) or any(isinstance(leaf, GatherLoad) for leaf in leaves):
        return None
    inner = collapsed[-1].axes[-1]
    for one in collapsed[:-1]:
        if not _is_short(one) and any(_is_transposed(leaf, one, inner) for leaf in leaves):
            return one
    return None


def _is_short(one: CollapsedLoop) -> bool:
    return isinstance(one.extent, int) and one.extent < _LEAST


def _is_transposed(leaf: BufferLoad, one: CollapsedLoop, inner: LoopAxis) -> bool:
    return leaf.strides.get(one.axes[-1]) == 1 and leaf.strides.get(inner, 0) not in (0, 1)


def write_tiles(
    k: KernelBuilder, collapsed: list[CollapsedLoop], across: CollapsedLoop, outputs: list[tuple[BufferLoad, FusedExpr]]
) -> None:
    """Generate loops over tiles of the innermost loop and the loop `across`.

    If a tensor is contiguous along `across`, the elements that a tile needs are first copied to a local array.

    collapsed: all loops, outermost first.
    outputs: pairs of the element that is stored and the tree that computes its value.
    """
    trees, inner = [tree for _, tree in outputs], collapsed[-1]
    rest = [one for one in collapsed[:-1] if one is not across]
    extents = [as_scalar(one.extent, I64) for one in (across, inner)]
    blocks = [(extent + (_TILE - 1)) / _TILE for extent in extents]
    counted = [*(one.extent for one in rest), *blocks]
    work = estimate_time(trees) * (_TILE * _TILE)
    for extent in counted[2:]:
        work = work * as_scalar(extent, I64)
    with parallel_loop_nest(k, counted, work) as counters:
        outer = Scope(k)
        outer.counters = list(zip(rest, counters, strict=False))
        starts = [k.let("from", block * _TILE) for block in counters[-2:]]
        counts = [k.let("count", minimum(extent - start, _TILE)) for extent, start in zip(extents, starts, strict=True)]
        prepare(outer, outputs, {*across.axes, *inner.axes})
        tiles = {}
        for leaf in leaves_of(trees):
            if _is_transposed(leaf, across, inner.axes[-1]):
                tiles[leaf] = k.allocate("tile", leaf.buffer.dtype, (_TILE * _TILE,))
                _copy_tile(k, tiles[leaf], outer, leaf, [(across, starts[0]), (inner, starts[1])], counts)
        with k.loop(counts[0], name="r") as r, k.loop(counts[1], name="c", simd=True) as c:
            scope = Scope(k, outer)
            scope.counters = [(across, starts[0] + r), (inner, starts[1] + c)]
            scope.values = {leaf: tile[r * _TILE + c] for leaf, tile in tiles.items()}
            store_all(scope, outputs)


def _copy_tile(
    k: KernelBuilder,
    tile: Buffer,
    outer: Scope,
    leaf: BufferLoad,
    at: list[tuple[CollapsedLoop, Scalar]],
    counts: list[Scalar],
) -> None:
    """Generate code that copies part of a tensor, transposed, to the local array `tile`.

    The part consists of the elements that one tile of the result needs.

    outer: the scope of the tile.
    leaf: the element of the tensor that an iteration of the loops reads.
    at: the two loops over the tile, each with its first index.
    counts: the number of iterations of each loop.
    """
    (across, first_row), (inner, first_column) = at
    rows, columns = counts

    def plain() -> None:
        with k.loop(columns, name="c") as c, k.loop(rows, name="r", simd=True) as r:
            scope = Scope(k, outer)
            scope.counters = [(across, first_row + r), (inner, first_column + c)]
            k.store(tile, (r * _TILE + c,), scope.value(leaf))

    if leaf.buffer.dtype.bits != 32:
        plain()
        return
    whole = k.let("whole", rows.eq(_TILE).logical_and(columns.eq(_TILE)))
    with k.branch(whole):
        scope = Scope(k, outer)
        scope.counters = at
        step = as_scalar(leaf.strides[inner.axes[-1]], I64)
        k.invoke(
            "rvm_transposed_tile",
            tile=Address(tile, Literal(0, I64)),
            x=Address(leaf.buffer, scope.flat(leaf)),
            x_stride=step,
        )
    with k.branch(whole.logical_not()):
        plain()
