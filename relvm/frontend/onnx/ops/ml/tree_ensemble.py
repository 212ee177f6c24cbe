"""Tree ensembles of ai.onnx.ml: find the leaf that each row reaches, and aggregate the weights of these leaves.

TreeEnsembleClassifier and TreeEnsembleRegressor identify a node by its tree number and its node number.  TreeEnsemble
(version 5) has separate tables of nodes and leaves.  Both forms become a `Forest`.
"""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
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
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Expr, constant
from relvm.ops.decision_trees import CONDITIONS

_MAX_TARGETS = 1 << 16
_MODES = {
    "BRANCH_LEQ": "<=",
    "BRANCH_LT": "<",
    "BRANCH_GTE": ">=",
    "BRANCH_GT": ">",
    "BRANCH_EQ": "==",
    "BRANCH_NEQ": "!=",
}
# The mode names, indexed by the mode numbers of TreeEnsemble.
_MODES_5 = (*_MODES, "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@record
class Forest:
    """Decision trees, as arrays with an element or row for each node.  The successor of a leaf is the leaf itself.

    features: the index of the feature that each node compares.
    thresholds: the number with which each node compares its feature.
    tests: the comparison of each node, such as "<=".  If the text ends with "?", a comparison with NaN is true,
    otherwise false.
    yes, no: the index of each node's successor if its comparison is true, and if it is false.
    roots: the index of the root of each tree.
    weights: an array of shape (nodes, targets).  Each element is the number that a leaf adds to a target, or NaN if the
    leaf has no weight for the target.  After `with_leaves_first`, the shape is (leaves, targets), because the leaves
    are the first nodes.
    """

    features: np.ndarray
    thresholds: np.ndarray
    tests: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    roots: np.ndarray
    weights: np.ndarray

    def branch_mask(self) -> np.ndarray:
        """Return a mask of the nodes that are not leaves: bool[nodes]."""
        own = np.arange(len(self.yes))
        return (self.yes != own) | (self.no != own)

    def depth(self) -> int:
        """Return the length of the longest path from a root to a leaf.  Raise RelvmFormatError if a path is a cycle."""
        steps = np.zeros(len(self.yes), np.int64)
        branches = self.branch_mask()
        for _ in range(len(steps) + 1):
            longer = np.where(branches, 1 + np.maximum(steps[self.yes], steps[self.no]), 0)
            if (longer == steps).all():
                return int(steps[self.roots].max(initial=0))
            steps = longer
        raise RelvmFormatError("the trees contain a cycle: some nodes never reach a leaf")

    def with_leaves_first(self, weights: np.ndarray) -> Forest:
        """Return an equivalent forest whose first nodes are the leaves.  Leaves with equal weights become one leaf.

        weights: f32 or f64[nodes, targets], which replaces the weights of this forest.  Only the rows of leaves are
        used.
        """
        branches = self.branch_mask()
        own, leaves = np.flatnonzero(branches), np.flatnonzero(~branches)
        bits = weights[leaves].view(f"i{weights.itemsize}")  # -0.0 is not 0.0
        _, firsts, which = np.unique(bits, axis=0, return_index=True, return_inverse=True)
        number = np.empty(len(branches), np.int64)
        number[leaves], number[own] = which.reshape(-1), len(firsts) + np.arange(len(own))
        nodes = np.concatenate([leaves[firsts], own])
        return Forest(
            features=self.features[nodes],
            thresholds=self.thresholds[nodes],
            tests=self.tests[nodes],
            yes=number[self.yes[nodes]],
            no=number[self.no[nodes]],
            roots=number[self.roots],
            weights=weights[leaves[firsts]],
        )

    def scores(self, x: TensorExpr, aggregate: str) -> TensorExpr:
        """Evaluate the trees, and aggregate the weights of the leaves.  Base values are not added.

        The result has the shape (rows, targets) and the dtype of x.

        x: the features of each row.   aggregate: the attribute aggregate_function of the node.
        """
        if aggregate not in _AGGREGATES:
            raise RelvmFormatError(f"unknown aggregate_function {aggregate!r}")
        columns = x.shape[1] if isinstance(x.shape[1], int) else 2**31
        if self.features.max(initial=0) >= columns:
            raise RelvmFormatError(f"the trees use feature {self.features.max()}, but x has {columns} features")
        depth = self.depth()
        missing = {"MIN": np.inf, "MAX": -np.inf}.get(aggregate, 0.0)
        forest = self.with_leaves_first(np.where(np.isnan(self.weights), missing, self.weights).astype(x.dtype.numpy))
        tests = np.unique(forest.tests[forest.branch_mask()])
        conditions = np.zeros(len(forest.tests) if len(tests) > 1 else 0, np.uint8)
        for number, test in enumerate(tests[: len(conditions)]):
            conditions[forest.tests == test] = number
        tables = (
            forest.features.astype(np.int32),
            forest.thresholds.astype(x.dtype.numpy),
            conditions,
            *(table.astype(np.int32) for table in (forest.yes, forest.no, forest.roots)),
        )
        which = tuple(map(str, tests)) or CONDITIONS[:1]
        leaves = x.apply(ops.tree_leaves, *map(constant, tables), tests=which, depth=depth)
        found = TensorExpr(x.node, x.node.emit(ops.gather(constant(forest.weights), leaves.expr, axis=0)))
        if aggregate in ("MIN", "MAX"):
            extreme = found.apply(ops.min if aggregate == "MIN" else ops.max, axes=(1,), keepdims=False)
            return extreme.apply(ops.equal, missing).where(0.0, extreme)
        total = found.apply(ops.sum, axes=(1,), keepdims=False)
        return total / float(len(self.roots)) if aggregate == "AVERAGE" else total


def _forest_by_node_ids(node: OnnxNode, prefix: str, targets: int) -> Forest:
    """Return the forest of a TreeEnsembleClassifier or TreeEnsembleRegressor.

    The attributes of these operators identify a node of a tree by the tree number and the node number.

    prefix: the prefix of the names of the attributes with the weights: "class" or "target".
    targets: the number of targets.
    """
    tree, number = (_integers(node, f"nodes_{name}") for name in ("treeids", "nodeids"))
    modes = node.attribute("nodes_modes", [])
    count = len(modes)
    row = {each: i for i, each in enumerate(zip(tree.tolist(), number.tolist(), strict=False))}
    features, yes, no = (_integers(node, f"nodes_{name}") for name in ("featureids", "truenodeids", "falsenodeids"))
    thresholds = required_number_list(node, "nodes_values", np.float64)
    nan_is_true = _nan_takes_true_branch(node, count)
    if not count or {len(t) for t in (tree, number, features, yes, no, thresholds, nan_is_true)} != {count}:
        raise RelvmFormatError("the attributes whose names begin with nodes_ are empty or differ in length")
    if len(row) != count:
        raise RelvmFormatError("nodes_treeids and nodes_nodeids define a node twice")
    unknown = sorted({*modes} - {*_MODES, "LEAF"})
    if unknown:
        raise RelvmUnsupportedError(f"mode {unknown[0]!r} in nodes_modes is not supported")
    successors = []
    for table in (yes, no):
        successor = [
            i if mode == "LEAF" else row.get((t, n), -1)
            for i, (mode, t, n) in enumerate(zip(modes, tree.tolist(), table.tolist(), strict=True))
        ]
        if -1 in successor:
            at = successor.index(-1)
            raise RelvmFormatError(f"node {number[at]} of tree {tree[at]} has the unknown successor {table[at]}")
        successors.append(np.array(successor))
    roots = list({int(t): i for i, t in reversed(list(enumerate(tree)))}.values())[::-1]
    _expect_few_targets(targets)
    node.graph.file.count(count * targets * 8, node.here)
    weights = np.full((count, targets), np.nan)
    for t, n, target, weight in zip(
        *(_integers(node, f"{prefix}_{name}").tolist() for name in ("treeids", "nodeids", "ids")),
        required_number_list(node, f"{prefix}_weights", np.float64).tolist(),
        strict=True,
    ):
        if (t, n) not in row:
            raise RelvmFormatError(f"{prefix}_nodeids contains {n}, but tree {t} has no such node")
        if not 0 <= target < targets:
            raise RelvmFormatError(f"{prefix}_ids contains {target}, expected 0 to {targets - 1}")
        previous = weights[row[t, n], target]
        weights[row[t, n], target] = weight + (0 if np.isnan(previous) else previous)
    tests = [_MODES.get(mode, "<=") + "?" * bool(nan) for mode, nan in zip(modes, nan_is_true, strict=True)]
    leaf = np.array([mode == "LEAF" for mode in modes])
    features = np.where(leaf, 0, features)
    if (features < 0).any():
        raise RelvmFormatError("nodes_featureids contains a negative number")
    yes, no = successors
    return Forest(features, thresholds, np.array(tests), yes, no, np.array(sorted(roots)), weights)


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
    scores = _forest_by_node_ids(node, "target", targets).scores(
        float_matrix(node, 0), node.attribute("aggregate_function", "SUM")
    )
    return apply_post_transform(node, _with_base(node, scores, targets)).cast(F32).expr


def _with_base(node: OnnxNode, scores: TensorExpr, targets: int) -> TensorExpr:
    base = number_list(node, "base_values", scores.dtype.numpy)
    if base is None:
        return scores
    if len(base) not in (1, targets):
        raise RelvmFormatError(f"base_values has {len(base)} elements, expected 1 or {targets}")
    return scores.apply(ops.add, constant(base))


@converts("TreeEnsembleClassifier", domain=DOMAIN)
def _classifier(node: OnnxNode) -> tuple[Expr, Expr]:
    """Returns the predicted class and the scores.

    If two classes share one score, it is the score of the second class.  The second class is then chosen if its score
    exceeds a threshold: 0.5 if no leaf has a negative weight, otherwise 0.  Source: ONNX Runtime.
    """
    labels = class_labels(node, "int64s")
    classes = 0 if labels is None else len(labels)
    named = sorted(set(_integers(node, "class_ids").tolist()))
    forest = _forest_by_node_ids(node, "class", max(classes, named[-1] + 1 if named else 1))
    x = float_matrix(node, 0)
    scores = forest.scores(x, "SUM")
    if len(named) != 1 or classes > 2:
        scores = _with_base(node, scores, classes)
        return select_labels(node, argmax_of_rows(scores), labels), apply_post_transform(node, scores).cast(F32).expr
    if classes == 1:
        raise RelvmUnsupportedError("a single class with a single score is not supported")
    score = scores.apply(ops.slice, begin=(named[0],), end=(named[0] + 1,), axes=(1,))
    base = number_list(node, "base_values", score.dtype.numpy)
    if base is not None:
        score = score + float(base[-1])
    all_positive = not (np.nan_to_num(forest.weights) < 0).any()
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
    """Returns the scores of an ensemble whose nodes and leaves are in separate tables.  A set-membership test becomes a
    chain of nodes."""
    targets, own = node.attribute("n_targets", 1), node.type(0).known_dtype
    forest = _forest_from_tables(node, targets)
    scores = forest.scores(float_matrix(node, 0), _enum_name(node, "aggregate_function", 1, _AGGREGATES))
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
    is_leaf_index = [_integers(node, f"nodes_{name}") for name in ("trueleafs", "falseleafs")]
    roots = _integers(node, "tree_roots")
    count, leaves = len(features), len(target)
    nan_is_true = _nan_takes_true_branch(node, count)
    tables = (modes, splits, nan_is_true, *successors, *is_leaf_index)
    if {len(table) for table in tables} != {count} or len(weights) != leaves:
        raise RelvmFormatError("the attributes whose names begin with nodes_ (or leaf_) differ in length")
    _expect_few_targets(targets)
    members = _member_sets(node, modes)
    node.graph.file.count((leaves + count + sum(map(len, members.values()))) * targets * 8, node.here)
    rows = _ForestBuilder(targets)
    for weight, each in zip(weights.tolist(), target.tolist(), strict=True):
        if not 0 <= each < targets:
            raise RelvmFormatError(f"leaf_targetids contains {each}, expected 0 to {targets - 1}")
        rows.leaf(weight, each)
    # A node becomes one row.  A set-membership node becomes one row for each member.  The rows after its first one
    # follow all other nodes.
    for i in range(count):
        bounded = all(
            0 <= successor[i] < (leaves if leaf[i] else count)
            for successor, leaf in zip(successors, is_leaf_index, strict=True)
        )
        if not 0 <= modes[i] < len(_MODES_5):
            raise RelvmFormatError(f"node {i} has mode {modes[i]}, expected 0 to {len(_MODES_5) - 1}")
        if not bounded:
            raise RelvmFormatError(f"node {i} has an unknown successor")
        yes, no = (
            int(successor[i]) if leaf[i] else leaves + int(successor[i])
            for successor, leaf in zip(successors, is_leaf_index, strict=True)
        )
        test = _MODES.get(_MODES_5[modes[i]], "==") + "?" * bool(nan_is_true[i])
        rows.node(int(features[i]), splits[i].item(), test, yes, no)
    for i, values in members.items():
        rows.chain_member_tests(leaves + i, values)
    is_leaf = [
        bool(a and b) and successors[0][r] == successors[1][r]
        for r, (a, b) in enumerate(zip(*is_leaf_index, strict=True))
    ]
    if not all(0 <= root < count for root in roots):
        raise RelvmFormatError(f"tree_roots is {roots.tolist()}, expected nodes 0 to {count - 1}")
    return rows.forest([int(successors[0][r]) if is_leaf[r] else leaves + int(r) for r in roots])


def _member_sets(node: OnnxNode, modes: np.ndarray) -> dict[int, list[float]]:
    """Return the values that each tree node of mode BRANCH_MEMBER tests for, by the index of the node.

    The attribute membership_values contains these sets in the order of the tree nodes, each followed by NaN.

    modes: the mode of each tree node.
    """
    nodes = [i for i, mode in enumerate(modes) if _MODES_5[mode] == "BRANCH_MEMBER"]
    sets: list[list[float]] = [[]]
    values = node.attribute("membership_values")
    for value in [] if values is None else values.tolist():
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(value)
    if len(sets) - 1 != len(nodes):
        raise RelvmFormatError(
            f"membership_values has {len(sets) - 1} sets, expected {len(nodes)}, one for each BRANCH_MEMBER node"
        )
    return dict(zip(nodes, sets, strict=False))


class _ForestBuilder:
    """A forest under construction, to which nodes and leaves are added one by one."""

    def __init__(self, targets: int) -> None:
        self.targets = targets
        self.rows: list[tuple[int, float, str, int, int]] = []
        self.weights: list[np.ndarray] = []

    def leaf(self, weight: float, target: int) -> None:
        at = len(self.rows)
        self.rows.append((0, 0.0, CONDITIONS[0], at, at))
        self.weights.append(np.full(self.targets, np.nan))
        self.weights[-1][target] = weight

    def node(self, feature: int, split: float, test: str, yes: int, no: int) -> None:
        self.rows.append((feature, split, test, yes, no))
        self.weights.append(np.full(self.targets, np.nan))

    def chain_member_tests(self, at: int, values: list[float]) -> None:
        """Replace node number `at` by a chain of nodes that tests whether the feature of node `at` is in `values`.

        Each node of the chain tests for one value.
        """
        feature, _, test, yes, no = self.rows[at]
        for value in values[:0:-1]:
            self.node(feature, value, test, yes, no)
            no = len(self.rows) - 1
        self.rows[at] = (feature, values[0] if values else np.nan, test, yes, no)

    def forest(self, roots: list[int]) -> Forest:
        features, thresholds, tests, yes, no = (np.array(column) for column in zip(*self.rows, strict=True))
        return Forest(features, thresholds, tests, yes, no, np.array(roots), np.array(self.weights))
