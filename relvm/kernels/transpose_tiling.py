"""Tiled loop nests, for kernels that read a tensor along one loop and write the result along another.

The tensor is contiguous along the first of these loops, and the result is contiguous along the second.

For each tile of the result, the kernel first copies the elements that the tile needs from the tensor, and transposes
them.  Each cache line of the tensor is then read only once, and the loops over the tile can be vectorized.
"""

from __future__ import annotations

from collections.abc import Callable

from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Address, Buffer, Literal, Scalar, as_scalar
from relvm.kernels.fused_expr import BufferLoad, FusedExpr, GatherLoad
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.loop_scope import CollapsedLoop, Scope, estimate_time, leaves_of, prepare, store_all
from relvm.kernels.lowering_rules import LoopAxis, parallel_loop_nest, size_of_block
from relvm.tables import kernel_constant

TILE = kernel_constant("TRANSPOSED_TILE")  # the edge length of a tile
_LEAST = 8  # the minimum extent of a tiled loop


def find_transposed_loop(collapsed: list[CollapsedLoop], leaves: list[BufferLoad]) -> CollapsedLoop | None:
    """Find a loop for which tiling pays: an outer loop along which a tensor is contiguous, as in a transposition.

    The tensor must not be contiguous along the innermost loop, and both loops must be long.  Return None if there is no
    such loop.

    collapsed: the loops, outermost first.
    leaves: the elements of tensors that the loops access.
    """
    if not collapsed or is_short(collapsed[-1]):
        return None
    inner = collapsed[-1].axes[-1]
    for one in collapsed[:-1]:
        if not is_short(one) and any(_is_transposed(leaf, one, inner) for leaf in leaves):
            return one
    return None


def is_short(one: CollapsedLoop) -> bool:
    """Return whether a loop is known to have too few iterations for tiles to pay."""
    return isinstance(one.extent, int) and one.extent < _LEAST


def _is_transposed(leaf: BufferLoad, one: CollapsedLoop, inner: LoopAxis) -> bool:
    """Return whether the tensor of `leaf` is contiguous along the loop `one`, and not along the axis `inner`."""
    if leaf.strides.get(one.axes[-1]) != 1:
        return False
    if isinstance(leaf, GatherLoad) and not leaf.index.axes.isdisjoint((*one.axes, inner)):
        return leaf.index.axes.isdisjoint(one.axes)
    return leaf.strides.get(inner, 0) not in (0, 1)


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
    blocks = [(extent + (TILE - 1)) / TILE for extent in extents]
    counted = [*(one.extent for one in rest), *blocks]
    work = estimate_time(trees) * (TILE * TILE)
    for extent in counted[2:]:
        work = work * as_scalar(extent, I64)
    with parallel_loop_nest(k, counted, work) as counters:
        outer = Scope(k)
        outer.counters = list(zip(rest, counters, strict=False))
        starts = [k.let("from", block * TILE) for block in counters[-2:]]
        counts = [
            k.let("count", size_of_block(extent, start, TILE)) for extent, start in zip(extents, starts, strict=True)
        ]
        prepare(outer, outputs, {*across.axes, *inner.axes})
        tiles = {}
        for leaf in leaves_of(trees):
            if _is_transposed(leaf, across, inner.axes[-1]):
                tiles[leaf] = k.allocate("tile", leaf.buffer.dtype, (TILE * TILE,))
                _copy_tile(k, tiles[leaf], outer, leaf, [(across, starts[0]), (inner, starts[1])], counts)
        with k.loop(counts[0], name="r") as r, k.loop(counts[1], name="c", simd=True) as c:
            scope = Scope(k, outer)
            scope.counters = [(across, starts[0] + r), (inner, starts[1] + c)]
            scope.values = {leaf: tile[r * TILE + c] for leaf, tile in tiles.items()}
            store_all(scope, outputs)


def _invoke_transposition(k: KernelBuilder, tile: Buffer, x: Address, x_stride: Scalar) -> None:
    """Generate code that transposes TILE x TILE elements from `x` to `tile`.

    x_stride: the distance of the rows at `x`, in elements.
    """
    to, size = Address(tile, Literal(0, I64)), tile.dtype.size_bytes
    if size == 4:
        k.invoke("rvm_transposed_tile", tile=to, x=x, x_stride=x_stride)
    else:
        k.invoke("rvm_transposed_elements", tile=to, x=x, x_stride=x_stride, element_bytes=Literal(size, I64))


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

    def copy(to: Buffer, position: Callable[[Scalar, Scalar], Scalar]) -> None:
        with k.loop(columns, name="c") as c:
            middle = Scope(k, outer)
            middle.counters = [(inner, first_column + c)]
            prepare(middle, [(None, leaf)], set(across.axes))
            with k.loop(rows, name="r", simd=True) as r:
                scope = Scope(k, middle)
                scope.counters = [(across, first_row + r)]
                k.store(to, (position(r, c),), scope.value(leaf))

    def transpose(x: Address, x_stride: Scalar) -> None:
        _invoke_transposition(k, tile, x, x_stride)

    if isinstance(leaf, GatherLoad):
        columns_of_tile = k.allocate("columns", leaf.buffer.dtype, (TILE * TILE,))
        copy(columns_of_tile, lambda r, c: c * TILE + r)
        transpose(Address(columns_of_tile, Literal(0, I64)), Literal(TILE, I64))
        return
    whole = k.let("whole", rows.eq(TILE).logical_and(columns.eq(TILE)))
    with k.branch(whole):
        scope = Scope(k, outer)
        scope.counters = at
        transpose(Address(leaf.buffer, scope.flat(leaf)), as_scalar(leaf.strides[inner.axes[-1]], I64))
    with k.branch(whole.logical_not()):
        copy(tile, lambda r, c: r * TILE + c)


def store_transposed(
    k: KernelBuilder,
    outer: Scope,
    leaf: BufferLoad,
    block: Buffer,
    pitch: int,
    at: tuple[tuple[CollapsedLoop, Scalar], tuple[CollapsedLoop, Scalar]],
    counts: tuple[Scalar, Scalar],
) -> None:
    """Generate code that stores the local array `block`, transposed, in a tensor.

    The element `block[c * pitch + r]` is stored for iteration `r` of the first loop and iteration `c` of the second.

    outer: the scope in which both loops are nested.
    leaf: the element of the tensor that an iteration of the loops stores.  It is contiguous along the second loop.
    pitch: a multiple of TILE.
    at: the two loops, each with its first index.
    counts: the number of iterations of each loop, at most `pitch` and TILE.
    """
    (rows_loop, first_row), (columns_loop, first_column) = at
    rows, columns = counts

    def store(row: Scalar, count: Scalar, element: Callable[[Scalar, Scalar], Scalar]) -> None:
        with k.loop(count, name="r") as r, k.loop(columns, name="c", simd=True) as c:
            scope = Scope(k, outer)
            scope.counters = [(rows_loop, first_row + row + r), (columns_loop, first_column + c)]
            scope.store(leaf, element(r, c))

    tile = k.allocate("tile", leaf.buffer.dtype, (TILE * TILE,))
    with k.loop((rows + (TILE - 1)) / TILE, name="group") as group:
        row = k.let("row", group * TILE)
        count = k.let("count", size_of_block(rows, row, TILE))
        _invoke_transposition(k, tile, Address(block, row), Literal(pitch, I64))
        store(row, count, lambda r, c: tile[r * TILE + c])
