"""Decision trees with small tables, for programs that favour size."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, F64, I8, I16, I32, I64, U8, U16, U32
from relvm.ir.loop_ir import Buffer, Literal, Scalar, as_scalar, maximum, minimum, select
from relvm.ir.operator import expect, op
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel
from relvm.ops.decision_trees import AGGREGATES, FOLDS, MAX_STEPS, table_length

_UNSIGNED, _SIGNED = (U8, U16, U32), (I8, I16, I32)


def _numpy_trees(
    x, columns, thresholds, children, roots, starts, entry_targets, values, *, targets, aggregate, steps, blocks
):
    if len(x) and x.shape[1] < 1:
        raise RelvmShapeError("tree_ensemble_compact: x has no features")
    totals = np.full((blocks, len(x), targets), AGGREGATES[aggregate], x.dtype)
    rows, leaf_count = np.arange(len(x)), max(len(starts) - 1, 0) if targets > 1 else len(values)
    for tree, root in enumerate(roots.tolist()):
        at = np.full(len(x), root, np.int64)
        for _ in range(steps):
            node = np.clip(at, 0, len(columns) - 1)
            column = columns[node].astype(np.int64)
            feature = np.minimum(np.where(column < 0, -1 - column, column), x.shape[1] - 1)
            seen, limit = x[rows, feature], thresholds[node].astype(x.dtype)
            is_first = (seen <= limit) | (np.isnan(seen) & (column < 0))
            at = np.where(at < 0, at, children[2 * node + ~is_first])
        leaves = np.clip(-1 - at, 0, leaf_count - 1)
        total = totals[tree // -(-len(roots) // blocks)]
        if targets == 1:
            total[:, 0] = FOLDS[aggregate](total[:, 0], values[leaves])
            continue
        for row, leaf in enumerate(leaves):
            first = int(starts[leaf])
            for entry in range(first, min(int(starts[leaf + 1]), first + targets, len(values))):
                target = min(int(entry_targets[entry]), targets - 1)
                total[row, target] = FOLDS[aggregate](total[row, target], values[entry])
    return totals


def _trees(
    k: KernelBuilder,
    inputs: list[Buffer],
    outputs: list[Buffer],
    *,
    targets: int,
    aggregate: str,
    steps: int,
    blocks: int,
) -> None:
    x, columns, thresholds, children, roots, starts, entry_targets, values = inputs
    (out,) = outputs
    rows, features = (as_scalar(dim, I64) for dim in x.shape)
    nodes, trees, entries = table_length(columns), table_length(roots), table_length(values)
    leaves = table_length(starts) - 1 if targets > 1 else entries
    k.fail((features < 1).logical_and(rows > 0), "SHAPE_ERROR", "tree_ensemble_compact: x has no features")
    tree_count = -(-trees // blocks)

    def fold(target: Scalar, value: Scalar, number: Scalar, row: Scalar) -> None:
        total = out[number, row, target]
        new = {
            "sum": total + value,
            "min": select(value < total, value, total),
            "max": select(value > total, value, total),
        }
        k.store(out, (number, row, target), new[aggregate])

    with k.loop(blocks, name="number") as number, k.loop(rows, name="row") as row:
        with k.loop(targets, name="target") as target:
            k.store(out, (number, row, target), AGGREGATES[aggregate])
        if not trees:
            return
        first = number * tree_count
        with k.loop(minimum(first + tree_count, trees), start=minimum(first, trees), name="tree") as tree:
            at = k.variable("at", roots.flat(tree).to(I32))
            if nodes:
                with k.loop(steps, name="step"), k.branch(at >= Literal(0, I32)):
                    node = k.let("node", maximum(minimum(at.to(I64), nodes - 1), 0))
                    column = k.let("column", columns.flat(node).to(I32))
                    feature, threshold = column.to(I64), thresholds.flat(node).to(x.dtype)
                    if columns.dtype in _SIGNED:
                        feature = k.let("feature", select(feature < 0, -1 - feature, feature))
                    seen = k.let("seen", x[row, minimum(feature, features - 1)])
                    is_first = seen <= threshold
                    if columns.dtype in _SIGNED:
                        is_first = is_first.logical_or((column < Literal(0, I32)).logical_and(seen.ne(seen)))
                    other = select(is_first, Literal(0, I64), Literal(1, I64))
                    k.assign(at, children.flat(node * 2 + other).to(I32))
            leaf = k.let("leaf", minimum(maximum(-1 - at.to(I64), 0), leaves - 1))
            if targets == 1:
                fold(Literal(0, I64), k.let("value", values.flat(leaf)), number, row)
            else:
                begin = k.let("begin", starts.flat(leaf).to(I64))
                stop = minimum(minimum(starts.flat(leaf + 1).to(I64), begin + targets), entries)
                with k.loop(k.let("stop", stop), start=begin, name="entry") as entry:
                    target = k.let("target", minimum(entry_targets.flat(entry).to(I64), targets - 1))
                    fold(target, k.let("value", values.flat(entry)), number, row)


@op("tree_ensemble_compact", numpy=_numpy_trees, lower=CustomKernel(_trees))
def tree_ensemble_compact(
    x: TensorType,
    columns: TensorType,
    thresholds: TensorType,
    children: TensorType,
    roots: TensorType,
    starts: TensorType,
    entry_targets: TensorType,
    values: TensorType,
    *,
    targets: int,
    aggregate: str,
    steps: int,
    blocks: int,
) -> TensorType:
    """For each block of trees and each row of x, the aggregated values of the leaves that the row reaches.

    The results are those of tree_ensemble, but the integers of the tables are as narrow as possible.

    x: a tensor of dtype f32 or f64 and of shape (rows, features).  The other tensors are tables of rank 1, whose sizes
    are known at compile time.
    columns, thresholds: the feature that each node compares, and its threshold, of the dtype of x or an integer of up
    to 16 bits.  The columns are signed or unsigned integers of up to 32 bits.  A negative number c stands for feature
    `-1 - c`, of which NaN is at most the threshold.
    children: for each node, its successor if the feature is at most the threshold, and its other successor.  A signed
    integer c of up to 32 bits is node c or, if it is negative, leaf `-1 - c`.
    roots: the root of each tree, with the same encoding.
    starts, entry_targets, values: leaf i adds `values[e]` to target `entry_targets[e]` for e in [starts[i],
    starts[i + 1]), for at most `targets` entries.  The first two are unsigned integers of up to 32 bits.  If there is
    one target, both are empty, and leaf i adds `values[i]`.  `values` has the dtype of x.
    targets: the number of targets, at least 1.
    aggregate: "sum", "min" or "max".  The values of a block of trees are aggregated in the order of the trees.
    steps: the length of the longest path, from 0 to 65,536.
    blocks: the number of blocks into which the trees are divided, at least 1.  A block has as many trees as the number
    of trees divided by `blocks`, rounded up.  The last blocks have fewer trees, or none.
    Result: a tensor of the dtype of x and of shape (blocks, rows, targets).  Without trees, a sum is 0, a minimum
    infinity, and a maximum -infinity.  Indices of nodes, columns, leaves, entries and targets that are out of range are
    clamped.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the size of a table is
    symbolic or wrong or, at run time, if x has rows but no features.  Raises RelvmArgumentError if an attribute is
    invalid.
    Source: the pass pack_weights.
    """
    name = "tree_ensemble_compact"
    expect(x.dtype in (F32, F64), "{}: x has dtype {}, expected f32 or f64", name, x.dtype)
    expect(x.rank in (2, None), "{}: x has rank {}, expected 2", name, x.rank)
    limits = {"targets": (targets, 1, 1 << 30), "steps": (steps, 0, MAX_STEPS), "blocks": (blocks, 1, 1 << 30)}
    for option, (number, low, high) in limits.items():
        is_valid = isinstance(number, int) and not isinstance(number, bool) and low <= number <= high
        text = "{}: {} is {!r}, expected an integer from {} to {}"
        expect(is_valid, text, name, option, number, low, high, error=RelvmArgumentError)
    text = "{}: aggregate is {!r}, expected one of {}"
    expect(aggregate in AGGREGATES, text, name, aggregate, tuple(AGGREGATES), error=RelvmArgumentError)
    sizes: dict[str, int] = {}
    for table, type_, dtypes in (
        ("columns", columns, (*_UNSIGNED, *_SIGNED)),
        ("thresholds", thresholds, (U8, U16, I8, I16, x.known_dtype)),
        ("children", children, _SIGNED),
        ("roots", roots, _SIGNED),
        ("starts", starts, _UNSIGNED),
        ("entry_targets", entry_targets, _UNSIGNED),
        ("values", values, (x.known_dtype,)),
    ):
        is_table = isinstance(type_, TensorType) and type_.dtype in dtypes and type_.rank == 1
        expect(is_table, "{}: {} is {}, expected rank 1 and one of {}", name, table, type_, ", ".join(map(str, dtypes)))
        if type_.shape is not None:
            (size,) = type_.shape
            text = "{}: {} is {}, expected a size that is known at compile time"
            expect(isinstance(size, int), text, name, table, type_, error=RelvmShapeError)
            assert isinstance(size, int)
            sizes[table] = size
    if len(sizes) == 7:
        _expect_sizes(sizes, targets, steps)
    return TensorType(x.dtype, None, 3) if x.shape is None else TensorType(x.dtype, (blocks, x.shape[0], targets))


def _expect_sizes(sizes: dict[str, int], targets: int, steps: int) -> None:
    """Raise RelvmShapeError if the sizes of the tables, by name, do not match."""
    leaves = sizes["values"] if targets == 1 else sizes["starts"] - 1
    for is_valid, problem in (
        (
            sizes["columns"] == sizes["thresholds"],
            "columns and thresholds differ in length: {columns} and {thresholds}",
        ),
        (sizes["children"] == 2 * sizes["columns"], "children has {children} numbers, expected two for each node"),
        (sizes["columns"] or not steps or not sizes["roots"], "the trees have no nodes"),
        (leaves > 0 or not sizes["roots"], "the trees have no leaves"),
        (
            targets == 1 or sizes["entry_targets"] == sizes["values"],
            "entry_targets and values differ in length: {entry_targets} and {values}",
        ),
    ):
        expect(bool(is_valid), f"tree_ensemble_compact: {problem.format(**sizes)}", error=RelvmShapeError)
