"""Tree ensembles of ai.onnx.ml: find the leaf that each row reaches, and aggregate the weights of these leaves.

TreeEnsembleClassifier and TreeEnsembleRegressor identify a node by its tree number and its node number.  TreeEnsemble
(version 5) has separate tables of nodes and leaves.  Both forms become a `Forest`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted, shortened
from relvm.frontend.onnx.ops.ml.postprocess import (
    DOMAIN,
    apply_post_transform,
    argmax_of_rows,
    class_labels,
    concat_columns,
    float_matrix,
    number_list,
    required_number_list,
    select_labels,
)
from relvm.frontend.onnx.ops.ml.tree_packing import MEMBER, MODES, Forest, pack_trees
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, F64, I64
from relvm.ir.expr import Expr, constant
from relvm.ops.decision_trees import AGGREGATES

_MAX_TARGETS = 1 << 16
_BLOCK_STEPS = 8192  # steps of one row in a block of trees, at least: about 8 microseconds
_MAX_BLOCKS = 16
_LEAF = "LEAF"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _scores(forest: Forest, x: TensorExpr, aggregate: str, targets: int) -> TensorExpr:
    """Evaluate the trees, and aggregate the weights of the leaves.  Base values are not added.

    The result has the shape (rows, targets).  Its dtype is that of x, except that it is f64 if the indices of nodes
    and features are too large for f32 (see `pack_trees`).

    x: the features of each row.   aggregate: the attribute aggregate_function of the node.
    """
    if aggregate not in _AGGREGATES:
        raise RelvmFormatError(f"unknown aggregate_function {aggregate!r}")
    columns = x.shape[1] if isinstance(x.shape[1], int) else 2**31
    used = forest.features[~forest.is_leaf]
    if used.max(initial=0) >= columns:
        raise RelvmFormatError(f"the trees use feature {used.max()}, but x has {columns} features")
    if used.min(initial=0) < 0:
        raise RelvmFormatError("nodes_featureids contains a negative number")
    kind = {"MIN": "min", "MAX": "max"}.get(aggregate, "sum")
    packed = pack_trees(forest, x.dtype.numpy, kind, targets)
    if packed.values.dtype != x.dtype.numpy:
        x = x.cast(F64)
    trees, steps = len(forest.roots), packed.steps
    blocks = max(min(trees * steps // _BLOCK_STEPS, _MAX_BLOCKS, 64 // targets), 1)
    parts = x.apply(
        ops.tree_ensemble,
        *map(constant, packed.tables()),
        targets=targets,
        aggregate=kind,
        steps=steps,
        offset_bits=packed.offset_bits,
        blocks=blocks,
    )
    fold = {"min": ops.min, "max": ops.max, "sum": ops.sum}[kind]
    total = parts.apply(ops.squeeze, axes=(0,)) if blocks == 1 else parts.apply(fold, axes=(0,), keepdims=False)
    if kind != "sum":
        return total.apply(ops.equal, AGGREGATES[kind]).where(0.0, total)
    return total / float(trees) if aggregate == "AVERAGE" else total


def _forest_by_node_ids(node: OnnxNode, prefix: str, targets: int) -> Forest:
    """Return the forest of a TreeEnsembleClassifier or TreeEnsembleRegressor.

    The attributes of these operators identify a node of a tree by the tree number and the node number.

    prefix: the prefix of the names of the attributes with the weights: "class" or "target".
    targets: the number of targets.
    """
    tree, number = (_integers(node, f"nodes_{name}") for name in ("treeids", "nodeids"))
    modes = node.string_indices("nodes_modes", (*MODES[:MEMBER], _LEAF))
    count = len(tree)
    features, yes, no = (_integers(node, f"nodes_{name}") for name in ("featureids", "truenodeids", "falsenodeids"))
    thresholds = required_number_list(node, "nodes_values", None)
    nan_is_true = _nan_takes_true_branch(node, count)
    tables = (number, features, yes, no, thresholds, nan_is_true)
    if {len(table) for table in (modes, *tables)} != {count}:
        raise RelvmFormatError("the attributes whose names begin with nodes_ are empty or differ in length")
    is_leaf = modes == MEMBER
    find = _node_finder(tree, number)
    own = np.arange(count)
    successors = []
    for table in (yes, no):
        successor = np.where(is_leaf, own, find(tree, np.where(is_leaf, number, table)))
        if (at := _first(successor < 0)) is not None:
            raise RelvmFormatError(f"node {number[at]} of tree {tree[at]} has the unknown successor {table[at]}")
        successors.append(successor)
    changes = np.flatnonzero(tree[1:] != tree[:-1]) + 1
    roots = np.concatenate([[0], changes])
    if (tree[1:] < tree[:-1]).any():  # the nodes of a tree are not adjacent
        roots = np.sort(np.unique(tree, return_index=True)[1])
    _expect_few_targets(targets)
    owners, nodes, ids = (_integers(node, f"{prefix}_{name}") for name in ("treeids", "nodeids", "ids"))
    weights = required_number_list(node, f"{prefix}_weights", None)
    if len({len(owners), len(nodes), len(ids), len(weights)}) != 1:
        raise RelvmFormatError(f"the attributes whose names begin with {prefix}_ differ in length")
    leaves = find(owners, nodes)
    if (at := _first(leaves < 0)) is not None:
        raise RelvmFormatError(f"{prefix}_nodeids contains {nodes[at]}, but tree {owners[at]} has no such node")
    if (at := _first((ids < 0) | (ids >= targets))) is not None:
        raise RelvmFormatError(f"{prefix}_ids contains {ids[at]}, expected 0 to {targets - 1}")
    return Forest(
        is_leaf=is_leaf,
        features=features,
        thresholds=thresholds,
        modes=modes,
        nan_is_true=nan_is_true != 0,
        yes=successors[0],
        no=successors[1],
        roots=roots,
        leaves=leaves,
        targets=ids,
        weights=weights,
    )


_Find = Callable[[np.ndarray], np.ndarray]


def _node_finder(tree: np.ndarray, number: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function that finds the indices of nodes by their tree numbers and node numbers, or -1.

    tree, number: the tree number and the node number of each node.
    """
    (tree_rank, trees), (number_rank, numbers) = _ranks(tree), _ranks(number)
    owners = tree_rank(tree)
    keys = owners * numbers + number_rank(number)
    order = np.arange(len(keys)) if (keys[1:] > keys[:-1]).all() else np.argsort(keys, kind="stable")
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise RelvmFormatError("nodes_treeids and nodes_nodeids define a node twice")
    ends = np.cumsum(np.bincount(owners, minlength=trees))
    starts = ends - np.diff(ends, prepend=0)
    has_all_numbers = (keys - keys // numbers * numbers == np.arange(len(keys)) - starts[keys // numbers]).all()

    def find(tree: np.ndarray, number: np.ndarray) -> np.ndarray:
        owner, rank = tree_rank(tree), number_rank(number)
        is_known = (owner >= 0) & (rank >= 0)
        if has_all_numbers:
            place = starts[owner] + rank
            is_known &= place < ends[owner]
            return np.where(is_known, order[np.where(is_known, place, 0)], -1)
        place = np.minimum(np.searchsorted(keys, owner * numbers + rank), len(keys) - 1)
        is_known &= keys[place] == owner * numbers + rank
        return np.where(is_known, order[place], -1)

    return find


def _ranks(values: np.ndarray) -> tuple[_Find, int]:
    """Return a function that replaces integers by their ranks among the distinct `values`, and the number of ranks.

    The ranks are in [0, count).  The function may return -1 for an integer that is not in `values`.
    """
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values):
        return lambda wanted: np.where((wanted >= low) & (wanted <= high), wanted - low, -1), high - low + 1
    known = np.unique(values)

    def rank(wanted: np.ndarray) -> np.ndarray:
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, place, -1)

    return rank, len(known)


def _first(mask: np.ndarray) -> int | None:
    """Return the index of the first true element, or None."""
    return int(mask.argmax()) if mask.any() else None


def _expect_few_targets(targets: int) -> None:
    """Raise RelvmUnsupportedError if a forest has more targets than _MAX_TARGETS, which is more than in any real model.

    Each target is a column of a table, so a damaged model could otherwise require too much memory.
    """
    if targets > _MAX_TARGETS:
        raise RelvmUnsupportedError(f"n_targets is {targets}, expected at most {_MAX_TARGETS}")


def _integers(node: OnnxNode, name: str) -> np.ndarray:
    return required_number_list(node, name, np.int64)


def _nan_takes_true_branch(node: OnnxNode, count: int) -> np.ndarray:
    """Return, for each of the `count` tree nodes, 1 if a missing value (NaN) takes the true branch, otherwise 0."""
    found = number_list(node, "nodes_missing_value_tracks_true", np.int64)
    return np.zeros(count, np.int64) if found is None else found


@converts("TreeEnsembleRegressor", domain=DOMAIN)
def _regressor(node: OnnxNode) -> Expr:
    targets = node.attribute("n_targets", 1)
    forest = _forest_by_node_ids(node, "target", targets)
    scores = _scores(forest, float_matrix(node, 0), node.attribute("aggregate_function", "SUM"), targets)
    return apply_post_transform(node, _with_base(node, scores, targets)).cast(F32).expr


def _with_base(node: OnnxNode, scores: TensorExpr, targets: int) -> TensorExpr:
    base = number_list(node, "base_values", scores.dtype.numpy)
    if base is None:
        return scores
    if len(base) not in (1, targets):
        raise RelvmFormatError(f"base_values has {counted(len(base), 'element')}, expected 1 or {targets}")
    return scores.apply(ops.add, constant(base))


@converts("TreeEnsembleClassifier", domain=DOMAIN)
def _classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the predicted class and the scores.

    If two classes share one score, it is the score of the second class.  The second class is then chosen if its score
    exceeds a threshold: 0.5 if no leaf has a negative weight, otherwise 0.  Source: ONNX Runtime.
    """
    labels = class_labels(node, "int64s")
    classes = 0 if labels is None else len(labels)
    named = np.unique(_integers(node, "class_ids")).tolist()
    targets = max(classes, named[-1] + 1)
    forest = _forest_by_node_ids(node, "class", targets)
    x = float_matrix(node, 0)
    scores = _scores(forest, x, "SUM", targets)
    if len(named) != 1 or classes > 2:
        scores = _with_base(node, scores, classes)
        return select_labels(node, argmax_of_rows(scores), labels), apply_post_transform(node, scores).cast(F32).expr
    if classes == 1:
        raise RelvmUnsupportedError("a single class with a single score is not supported")
    score = scores.apply(ops.slice, begin=(named[0],), end=(named[0] + 1,), axes=(1,))
    base = number_list(node, "base_values", score.dtype.numpy)
    if base is not None:
        score = score + float(base[-1])
    all_positive = not (forest.weights < 0).any()
    is_second = (score > (0.5 if all_positive and classes == 2 else 0.0)).reshape(x.shape[0])
    two = labels if classes == 2 else np.array([0, 1])
    return select_labels(node, is_second.cast(I64), two), binary_scores(node, score, all_positive).cast(F32).expr


def binary_scores(node: OnnxNode, score: TensorExpr, all_positive: bool) -> TensorExpr:
    """Compute the scores of two classes from the score of the second class: (rows, 1) -> (rows, 2).

    Source: ONNX Runtime, which ignores the post_transform SOFTMAX in this case.  PROBIT is not supported, because ONNX
    Runtime then writes only half of the result.

    all_positive: whether no leaf has a negative weight.
    """
    match node.attribute("post_transform", "NONE"):
        case "PROBIT":
            raise RelvmUnsupportedError("PROBIT is not supported for two classes with a single score")
        case "LOGISTIC":
            return apply_post_transform(node, concat_columns(0 - score, score))
    return concat_columns(1 - score if all_positive else 0 - score, score)


@converts("TreeEnsemble", domain=DOMAIN)
def _ensemble(node: OnnxNode) -> Expr:
    """Returns the scores of an ensemble whose nodes and leaves are in separate tables."""
    targets, own = node.attribute("n_targets", 1), node.type(0).known_dtype
    forest = _forest_from_tables(node, targets)
    aggregate = _enum_name(node, "aggregate_function", 1, _AGGREGATES)
    scores = _scores(forest, float_matrix(node, 0), aggregate, targets)
    transform = _enum_name(node, "post_transform", 0, _TRANSFORMS)
    if transform != "NONE":
        raise RelvmUnsupportedError(f"post_transform {transform} is not supported")
    return scores.cast(own if own.is_float else F32).expr


def _enum_name(node: OnnxNode, name: str, default: int, names: tuple[str, ...]) -> str:
    """Return the element of `names` whose index is the value of an integer attribute.

    name: the name of the attribute.
    default: the index if the attribute is absent.
    """
    number = node.attribute(name, default)
    if not 0 <= number < len(names):
        raise RelvmFormatError(f"{name} is {number}, expected 0 to {len(names) - 1}")
    return names[number]


def _forest_from_tables(node: OnnxNode, targets: int) -> Forest:
    modes, splits = node.attribute("nodes_modes"), node.attribute("nodes_splits")
    weights, target = node.attribute("leaf_weights"), _integers(node, "leaf_targetids")
    features = _integers(node, "nodes_featureids")
    successors = [_integers(node, f"nodes_{name}") for name in ("truenodeids", "falsenodeids")]
    is_leaf_index = [_integers(node, f"nodes_{name}") != 0 for name in ("trueleafs", "falseleafs")]
    roots = _integers(node, "tree_roots")
    count, leaves = len(features), len(target)
    nan_is_true = _nan_takes_true_branch(node, count)
    tables = (modes, splits, nan_is_true, *successors, *is_leaf_index)
    if {len(table) for table in tables} != {count} or len(weights) != leaves:
        raise RelvmFormatError("the attributes whose names begin with nodes_ (or leaf_) differ in length")
    _expect_few_targets(targets)
    if (at := _first((target < 0) | (target >= targets))) is not None:
        raise RelvmFormatError(f"leaf_targetids contains {target[at]}, expected 0 to {targets - 1}")
    if (at := _first(modes >= len(MODES))) is not None:
        raise RelvmFormatError(f"node {at} has mode {modes[at]}, expected 0 to {len(MODES) - 1}")
    for successor, leaf in zip(successors, is_leaf_index, strict=True):
        if (at := _first((successor < 0) | (successor >= np.where(leaf, leaves, count)))) is not None:
            raise RelvmFormatError(f"node {at} has an unknown successor")
    if ((roots < 0) | (roots >= count)).any():
        raise RelvmFormatError(f"tree_roots is {shortened(str(roots.tolist()))}, expected nodes 0 to {count - 1}")
    # The leaves follow the nodes.
    yes, no = (
        np.concatenate([np.where(leaf, count + successor, successor), count + np.arange(leaves)])
        for successor, leaf in zip(successors, is_leaf_index, strict=True)
    )
    # A tree of one leaf has a root whose successors are this leaf.
    is_only_leaf = is_leaf_index[0][roots] & is_leaf_index[1][roots] & (yes[roots] == no[roots])
    members, member_counts = _member_sets(node, modes)

    def extended(table: np.ndarray) -> np.ndarray:
        return np.concatenate([table, np.zeros(leaves, table.dtype)])

    return Forest(
        is_leaf=np.arange(count + leaves) >= count,
        features=extended(features),
        thresholds=extended(splits),
        modes=extended(modes),
        nan_is_true=extended(nan_is_true) != 0,
        yes=yes,
        no=no,
        roots=np.where(is_only_leaf, yes[roots], roots),
        leaves=count + np.arange(leaves),
        targets=target,
        weights=weights,
        members=members,
        member_counts=member_counts,
    )


def _member_sets(node: OnnxNode, modes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values that the tree nodes of mode BRANCH_MEMBER test for, and the number of values of each node.

    The attribute membership_values contains these sets in the order of the tree nodes, each followed by NaN.

    modes: the mode of each tree node.
    """
    nodes = int((modes == MEMBER).sum())
    values = node.attribute("membership_values")
    values = np.empty(0, np.float32) if values is None else values.reshape(-1)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != nodes:
        raise RelvmFormatError(
            f"membership_values has {len(ends)} sets, expected {nodes}, one for each BRANCH_MEMBER node"
        )
    return values[~np.isnan(values)][: ends[-1] + 1 - nodes if nodes else 0], np.diff(ends, prepend=-1) - 1
