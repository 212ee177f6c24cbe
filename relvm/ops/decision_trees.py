"""Decision trees: aggregate the values of the leaves that a row of features reaches."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, F64, I32, I64
from relvm.ir.loop_ir import Address, Buffer, Literal, as_scalar, maximum, minimum
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel

AGGREGATES = {"sum": 0.0, "min": np.inf, "max": -np.inf}  # the totals before the first tree
FOLDS = {"sum": np.add, "min": np.fmin, "max": np.fmax}
_MOST_ROWS = 256  # rows that are evaluated together
_FEW_ROWS = 16  # the same, if kernels should use little memory
_VECTOR_ROWS = 16  # rows of the widest vector
_BLOCK_BYTES = 128 << 10  # maximum size of the features of rows that are evaluated together, unless it is one row
MAX_STEPS = 1 << 16
_STEP_WORK = 8  # time of one step down a tree, in eighths of a nanosecond


def _numpy_trees(
    x, nodes, roots, depths, columns, starts, entry_targets, values, *, targets, aggregate, steps, offset_bits, blocks
):
    if len(x) and x.shape[1] < 1:
        raise RelvmShapeError("tree_ensemble: x has no features")
    word_type = np.dtype(f"u{x.itemsize}")
    records = np.ascontiguousarray(nodes).view([("threshold", x.dtype), ("word", word_type)]).reshape(-1)
    block = np.full((len(x), len(columns) + 1), np.nan, x.dtype)
    if len(columns) and len(x):
        numbers = np.where(columns < 0, -1 - columns.astype(np.int64), columns)
        block[:, :-1] = x[:, np.minimum(numbers, x.shape[1] - 1)]
        block[:, :-1][np.isnan(block[:, :-1]) & (columns < 0)] = -np.inf
    totals = np.full((blocks, len(x), targets), AGGREGATES[aggregate], x.dtype)
    rows = np.arange(len(x))
    for tree, (root, depth) in enumerate(zip(roots.tolist(), depths.tolist(), strict=True)):
        total = totals[tree // -(-len(roots) // blocks)]
        at = np.full(len(x), min(root & 0xFFFFFFFF, len(records) - 1))
        for _ in range(min(depth, steps)):
            node = records[at]
            column = np.minimum(node["word"] >> word_type.type(offset_bits), len(columns)).astype(np.int64)
            offset = (node["word"] & word_type.type((1 << offset_bits) - 1)).astype(np.int64)
            at = at + offset - (block[rows, column] <= node["threshold"])
            at = np.minimum(at & 0xFFFFFFFF, len(records) - 1)
        payload = records["threshold"][at]
        if targets == 1:
            total[:, 0] = FOLDS[aggregate](total[:, 0], payload)
            continue
        leaf_count = _leaf_count(len(starts), len(values), targets)
        leaves = np.minimum(payload.view(word_type) & word_type.type(0xFFFFFFFF), leaf_count - 1)
        if not len(starts):
            total[:] = FOLDS[aggregate](total, values.reshape(-1, targets)[leaves])
            continue
        leaves = leaves.astype(np.int64)
        first = np.maximum(starts[leaves], 0).astype(np.int64)
        stop = np.minimum(starts[leaves + 1], np.minimum(first + targets, len(values)))
        for step in range(int((stop - first).max(initial=0))):
            row = np.flatnonzero(first + step < stop)
            entry = first[row] + step
            target = np.minimum(entry_targets[entry].view(np.uint32), targets - 1)
            total[row, target] = FOLDS[aggregate](total[row, target], values[entry])
    return totals


def _leaf_count(starts: int, values: int, targets: int) -> int:
    """Return the number of leaves whose values are in the table `values` instead of the nodes.

    starts, values: the lengths of these two tables.
    """
    return 0 if targets == 1 else starts - 1 if starts else values // targets


def table_length(table: Buffer) -> int:
    """Return the size of a table, which is known at compile time."""
    (size,) = table.shape
    assert isinstance(size, int)
    return size


def _trees(
    k: KernelBuilder,
    inputs: list[Buffer],
    outputs: list[Buffer],
    *,
    targets: int,
    aggregate: str,
    steps: int,
    offset_bits: int,
    blocks: int,
) -> None:
    x, nodes, roots, depths, columns, starts, entry_targets, values = inputs
    (out,) = outputs
    rows, features = (as_scalar(dim, I64) for dim in x.shape)
    trees, used, entries = table_length(roots), table_length(columns), table_length(values)
    node_count = table_length(nodes) // (x.dtype.numpy.itemsize // 4)
    leaves = _leaf_count(table_length(starts), entries, targets)
    k.fail((features < 1).logical_and(rows > 0), "SHAPE_ERROR", "tree_ensemble: x has no features")
    most = max(min(_FEW_ROWS if k.is_compact else _MOST_ROWS, _BLOCK_BYTES // ((used + 1) * x.dtype.numpy.itemsize)), 1)
    if isinstance(x.shape[0], int):
        most = max(min(most, x.shape[0]), 1)
    parts = k.let("parts", (rows + (most - 1)) / most)
    # The parts are nearly equal, so that threads can share them: whole vectors of rows, and at most `most` rows.
    divisor = maximum(parts, 1)
    vectors = ((rows + (divisor - 1)) / divisor + (_VECTOR_ROWS - 1)) / _VECTOR_ROWS
    part_rows = k.let("part_rows", minimum(vectors * _VECTOR_ROWS, most))
    tree_count = -(-trees // blocks)
    work = minimum(rows, most) * (tree_count * (steps * _STEP_WORK + targets) + used)
    suffix = "f64" if x.dtype is F64 else "f32"
    with k.parallel(parts * blocks, work) as (begin, end), k.loop(end, start=begin, name="part") as part:
        first = k.let("first_row", part % parts * part_rows)
        row_count = k.let("row_count", minimum(rows - first, part_rows))
        block = k.allocate("block", x.dtype, (most * (used + 1),))
        zero = Literal(0, I64)
        k.invoke(
            f"rvm_tree_columns_{suffix}",
            block=Address(block, zero),
            x=Address(x, first * features),
            rows=row_count,
            features=features,
            count=used,
            columns=Address(columns, zero),
        )
        number = k.let("number", part / parts)
        first_tree = k.let("first_tree", minimum(number * tree_count, trees))
        if targets == 1:
            with k.loop(row_count, simd=True) as row:
                k.store(out, (number, first + row, 0), AGGREGATES[aggregate])
        else:
            with k.loop(row_count, name="row") as row, k.loop(targets, simd=True) as target:
                k.store(out, (number, first + row, target), AGGREGATES[aggregate])
        k.invoke(
            f"rvm_trees_{suffix}",
            totals=Address(out, (number * rows + first) * targets),
            x=Address(block, zero),
            rows=row_count,
            columns=used,
            trees=minimum(trees - first_tree, tree_count),
            roots=Address(roots, first_tree),
            depths=Address(depths, first_tree),
            steps=steps,
            nodes=Address(nodes, zero),
            node_count=node_count,
            offset_bits=offset_bits,
            aggregate=list(AGGREGATES).index(aggregate),
            targets=targets,
            leaves=leaves,
            entries=entries if table_length(starts) else 0,
            starts=Address(starts, zero),
            entry_targets=Address(entry_targets, zero),
            values=Address(values, zero),
        )


@op("tree_ensemble", numpy=_numpy_trees, lower=CustomKernel(_trees))
def tree_ensemble(
    x: TensorType,
    nodes: TensorType,
    roots: TensorType,
    depths: TensorType,
    columns: TensorType,
    starts: TensorType,
    entry_targets: TensorType,
    values: TensorType,
    *,
    targets: int,
    aggregate: str,
    steps: int,
    offset_bits: int,
    blocks: int,
) -> TensorType:
    """For each block of trees and each row of x, the aggregated values of the leaves that the row reaches.

    x: a tensor of dtype f32 or f64 and of shape (rows, features).  The other tensors are tables of rank 1, whose sizes
    are known at compile time.
    nodes: an i64 tensor with the records of the nodes: a threshold of the dtype of x, and a word of the same size,
    which contains an offset in its lowest `offset_bits` bits and a column in the other bits.  The next node is
    `offset - 1` nodes ahead if the column is at most the threshold, otherwise `offset` nodes ahead.  A leaf has the
    offset 0 and a column that does not exist.  If there is one target, the threshold of a leaf is its value.
    Otherwise, the lowest 32 bits of the threshold are the index of the leaf.
    roots, depths: i32 tensors with the root of each tree, and the length of its longest path.
    columns: an i32 tensor with the index of the feature of each column.  If a number c is negative, the column is
    feature `-1 - c`, with -infinity in place of NaN.
    starts, entry_targets, values: if there are several targets, leaf i adds `values[e]` to target `entry_targets[e]`
    for e in [starts[i], starts[i + 1]).  A leaf has at most `targets` entries.  If `starts` is empty, `values` has
    `targets` numbers for each leaf.  `values` has the dtype of x, the others are i32.
    targets: the number of targets, at least 1.
    aggregate: "sum", "min" or "max".  The values of a block of trees are aggregated in the order of the trees.
    steps: an upper limit on the depths, from 0 to 65,536.
    offset_bits: the number of bits of an offset, from 1 to 32, or to 31 if x has dtype f32.
    blocks: the number of blocks into which the trees are divided, at least 1.  A block has as many trees as the number
    of trees divided by `blocks`, rounded up.  The last blocks have fewer trees, or none.
    Result: a tensor of the dtype of x and of shape (blocks, rows, targets).  Without trees, a sum is 0, a minimum
    infinity, and a maximum -infinity.  Indices of nodes, columns, leaves, entries and targets that are out of range are
    clamped.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the size of a table is
    symbolic or wrong or, at run time, if x has rows but no features.  Raises RelvmArgumentError if an attribute is
    invalid.
    Source: ONNX ai.onnx.ml TreeEnsembleRegressor-3.
    """
    expect(x.dtype in (F32, F64), "tree_ensemble: x has dtype {}, expected f32 or f64", x.dtype)
    expect(x.rank in (2, None), "tree_ensemble: x has rank {}, expected 2", x.rank)
    limits = {"targets": (targets, 1, 1 << 30), "steps": (steps, 0, MAX_STEPS), "blocks": (blocks, 1, 1 << 30)}
    limits["offset_bits"] = (offset_bits, 1, 31 if x.dtype is F32 else 32)
    for name, (number, low, high) in limits.items():
        is_valid = isinstance(number, int) and not isinstance(number, bool) and low <= number <= high
        text = "tree_ensemble: {} is {!r}, expected an integer from {} to {}"
        expect(is_valid, text, name, number, low, high, error=RelvmArgumentError)
    text = "tree_ensemble: aggregate is {!r}, expected one of {}"
    expect(aggregate in AGGREGATES, text, aggregate, tuple(AGGREGATES), error=RelvmArgumentError)
    sizes: dict[str, int] = {}
    tables = {"nodes": (nodes, I64), "roots": (roots, I32), "depths": (depths, I32), "columns": (columns, I32)}
    tables |= {"starts": (starts, I32), "entry_targets": (entry_targets, I32), "values": (values, x.known_dtype)}
    for name, (table, dtype) in tables.items():
        is_table = isinstance(table, TensorType) and table.dtype == dtype and table.rank == 1
        expect(is_table, "tree_ensemble: {} is {}, expected {}[_]", name, table, dtype)
        if table.shape is not None:
            (size,) = table.shape
            text = "tree_ensemble: {} is {}, expected a size that is known at compile time"
            expect(isinstance(size, int), text, name, table, error=RelvmShapeError)
            assert isinstance(size, int)
            sizes[name] = size
    if len(sizes) == len(tables):
        _expect_sizes(sizes, targets, x.known_dtype.numpy.itemsize)
    return TensorType(x.dtype, None, 3) if x.shape is None else TensorType(x.dtype, (blocks, x.shape[0], targets))


def _expect_sizes(sizes: dict[str, int], targets: int, itemsize: int) -> None:
    """Raise RelvmShapeError if the sizes of the tables, by name, do not match.   itemsize: bytes of a feature."""
    words = itemsize // 4  # of 8 bytes, in a record
    leaves = _leaf_count(sizes["starts"], sizes["values"], targets)
    for is_valid, problem in (
        (sizes["depths"] == sizes["roots"], "roots and depths differ in length: {roots} and {depths}"),
        (sizes["nodes"] % words == 0, "nodes has {nodes} numbers, expected two for each record"),
        (sizes["nodes"] or not sizes["roots"], "the trees have no nodes"),
        (leaves > 0 or targets == 1 or not sizes["roots"], "the trees have no leaves"),
        (
            not sizes["starts"] or sizes["entry_targets"] == sizes["values"],
            "entry_targets and values differ in length: {entry_targets} and {values}",
        ),
    ):
        expect(bool(is_valid), f"tree_ensemble: {problem.format(**sizes)}", error=RelvmShapeError)
