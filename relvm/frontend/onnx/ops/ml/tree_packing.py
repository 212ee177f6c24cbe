"""Packing of decision trees for the operator `tree_ensemble`.

All comparisons become `x <= t`, so that one loop evaluates trees of every mode.  All steps process arrays of nodes: a
model can have millions of them.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from relvm.data_classes import record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.ops.decision_trees import AGGREGATES, MAX_STEPS

# The mode names, indexed by the mode numbers of TreeEnsemble.
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(len(MODES))
_MAX_NODES = 1 << 29
_DENSE = 0.5  # leaves have a table with all targets if at least this share of it is used


@record
class Forest:
    """Decision trees, as arrays with an element for each node.

    is_leaf: bool.  The other arrays of nodes are arbitrary where it is true.
    features: the index of the feature that each node compares.
    thresholds: the number with which each node compares its feature.
    modes: the comparison, an index in MODES.
    nan_is_true: whether a comparison with NaN is true.
    yes, no: the index of each node's successor if its comparison is true, and if it is false.
    roots: the index of the root of each tree.
    leaves: the nodes that have weights, with repetitions if a leaf has weights for several targets.
    targets, weights: the target of each element of `leaves`, and the number that the leaf adds to it.
    members: the values of all set-membership tests (BRANCH_MEMBER), in the order of the nodes.
    member_counts: the number of values of each of these nodes.
    """

    is_leaf: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    modes: np.ndarray
    nan_is_true: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    roots: np.ndarray
    leaves: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    members: np.ndarray = field(default_factory=lambda: np.empty(0))
    member_counts: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


@record
class PackedTrees:
    """The tables and attributes for the operator `tree_ensemble`.  The docstring of the operator describes them."""

    nodes: np.ndarray
    roots: np.ndarray
    depths: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    entry_targets: np.ndarray
    values: np.ndarray
    steps: int
    offset_bits: int

    def tables(self) -> tuple[np.ndarray, ...]:
        """Return the arguments of the operator after x."""
        return self.nodes, self.roots, self.depths, self.columns, self.starts, self.entry_targets, self.values


def pack_trees(forest: Forest, dtype: np.dtype, aggregate: str, targets: int) -> PackedTrees:
    """Return the tables of a forest, for features of the given dtype.

    The tables are for f64 features if a word of 32 bits is too small for the offsets and columns.  An f32 has the same
    comparisons after its conversion to f64.

    dtype: f32 or f64.   aggregate: "sum", "min" or "max".

    Raises
    ------
    RelvmFormatError
        The nodes of a tree form a cycle.
    RelvmUnsupportedError
        There are more than 2^29 nodes, or a path is longer than 65,536 comparisons.
    """
    trees = _Comparisons.of(forest, dtype)
    if len(trees.first) > _MAX_NODES:
        raise RelvmUnsupportedError(
            f"the trees have {counted(len(trees.first), 'node')}, expected at most {_MAX_NODES}"
        )
    levels, owners = _levels(trees, forest.roots)
    inner = np.flatnonzero((levels >= 0) & ~trees.is_leaf)
    order = np.lexsort((levels[inner], owners[inner]))
    inner = inner[order]
    # Each tree begins with its root, followed by the pairs of children of its inner nodes, level by level.
    groups = int(owners[forest.roots].max(initial=-1)) + 1
    inner_counts, root_counts = (np.bincount(owners[nodes], minlength=groups) for nodes in (inner, forest.roots))
    begins = np.cumsum(root_counts + 2 * inner_counts) - (root_counts + 2 * inner_counts)
    rank = np.arange(len(inner)) - (np.cumsum(inner_counts) - inner_counts)[owners[inner]]
    pairs = (begins + root_counts)[owners[inner]] + 2 * rank
    root_places = begins[owners[forest.roots]] + (np.arange(len(forest.roots)) if groups == 1 else 0)
    sources = np.empty(len(forest.roots) + 2 * len(inner), np.int64)
    sources[root_places] = forest.roots
    sources[pairs], sources[pairs + 1] = trees.first[inner], trees.second[inner]
    pair_of = np.zeros(len(trees.first), np.int64)
    pair_of[inner] = pairs
    is_leaf = trees.is_leaf[sources]
    offsets = np.where(is_leaf, 0, pair_of[sources] - np.arange(len(sources)) + 1)
    numbers = np.where(trees.takes_first[inner], -1 - trees.features[inner], trees.features[inner])
    columns, of_inner = np.unique(numbers, return_inverse=True)
    column_of = np.full(len(trees.first), len(columns))
    column_of[inner] = of_inner.reshape(-1)
    bits = max(int(offsets.max(initial=0)).bit_length(), 1)
    if dtype == np.float32 and bits + len(columns).bit_length() > 32:
        return pack_trees(forest, np.dtype(np.float64), aggregate, targets)
    bits = 32 if dtype == np.float64 else bits
    payloads, values = _leaf_values(forest, len(trees.first), dtype, aggregate, targets)
    word = np.dtype(f"u{dtype.itemsize}")
    records = np.empty(len(sources), [("threshold", dtype), ("word", word)])
    records["threshold"] = np.where(is_leaf, payloads[sources], trees.thresholds[sources])
    records["word"] = column_of[sources].astype(word) << word.type(bits) | offsets.astype(word)
    depths = _depths(trees, forest.roots, levels, owners)
    return PackedTrees(
        records.view(np.int64),
        root_places.astype(np.int32),
        depths.astype(np.int32),
        columns.astype(np.int32),
        *values,
        int(depths.max(initial=0)),
        bits,
    )


@record
class _Comparisons:
    """Nodes that compare `x[feature] <= threshold`.

    The successor of a node is `first` if the comparison is true, otherwise `second`.

    takes_first: whether the successor is also `first` if the feature is NaN.
    """

    is_leaf: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    takes_first: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @staticmethod
    def of(forest: Forest, dtype: np.dtype) -> _Comparisons:
        """Return comparisons that are equivalent to those of a forest, for features of the given dtype.

        Some nodes become several nodes.  The additional nodes follow the others.
        """
        thresholds, modes = forest.thresholds.astype(dtype), forest.modes
        is_inner = ~forest.is_leaf
        # A comparison of a number with NaN is false, except !=.
        is_never = is_inner & np.isnan(thresholds) & (modes < EQ)
        # x >= t is the opposite of x < t, x > t of x <= t, and x != t, which is true for NaN, of x == t.
        is_opposite = is_inner & ~is_never & ((modes == GTE) | (modes == GT) | (modes == NEQ))
        first, second = np.where(is_opposite, (forest.no, forest.yes), (forest.yes, forest.no))
        takes_first = np.where(is_opposite, ~forest.nan_is_true & (modes != NEQ), forest.nan_is_true) & is_inner
        is_less = is_inner & ~is_never & ((modes == LT) | (modes == GTE))
        thresholds[is_less] = _previous(thresholds[is_less])
        found = _Comparisons(forest.is_leaf, forest.features, thresholds, takes_first, first, second)
        found = found._with_sets(is_inner & (modes >= EQ), modes, forest)
        # A comparison with the threshold NaN, which only NaN satisfies, is the opposite of x <= infinity.
        only_nan = ~found.is_leaf & found.takes_first & np.isnan(found.thresholds)
        found.thresholds[only_nan] = np.inf
        first, second = np.where(only_nan, (found.second, found.first), (found.first, found.second))
        return replace(found, takes_first=found.takes_first & ~only_nan, first=first, second=second)

    def _with_sets(self, is_set: np.ndarray, modes: np.ndarray, forest: Forest) -> _Comparisons:
        """Replace tests for membership in a set of numbers by binary searches.

        is_set: whether each node is such a test.  The set of a node of mode EQ or NEQ is its threshold.
        """
        nodes = np.flatnonzero(is_set)
        if not len(nodes):
            return self
        counts = np.ones(len(self.first), np.int64)
        is_member = modes[nodes] == MEMBER
        counts[nodes[is_member]] = forest.member_counts
        counts = counts[nodes]
        owner = np.repeat(np.arange(len(nodes)), counts)
        numbers = self.thresholds[nodes][owner]
        numbers[is_member[owner]] = forest.members.astype(numbers.dtype)
        owner, numbers = owner[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
        order = np.lexsort((numbers, owner))
        owner, numbers = owner[order], numbers[order]
        counts = np.bincount(owner, minlength=len(nodes))
        # The numbers v of a set become the limits previous(v), v.  Between them, an odd number of limits is less than x
        # if x is in the set.
        limits = np.stack([_previous(numbers), numbers], axis=1).reshape(-1)
        ends = 2 * np.cumsum(counts)
        low, high, place = ends - 2 * counts, ends, nodes
        begin, found = low, self
        # A node first tests for NaN, if NaN is in the set, or if the set is empty.
        has_nan = self.takes_first[nodes] | (counts == 0)
        found = found._with_more(int((has_nan & (counts > 0)).sum()))
        added = len(self.first) + np.arange(len(found.first) - len(self.first))
        yes, no = found.first[nodes], found.second[nodes]
        entry = np.where(has_nan & (counts == 0), no, 0)
        entry[has_nan & (counts > 0)] = added
        found.features[added] = found.features[nodes[has_nan & (counts > 0)]]
        tests = nodes[has_nan]
        found.thresholds[tests], found.first[tests] = np.inf, entry[has_nan]
        found.second[tests] = np.where(self.takes_first[tests], yes[has_nan], no[has_nan])
        found.takes_first[nodes] = False
        place = np.where(has_nan, entry, nodes)
        sets = np.flatnonzero(counts > 0)
        low, high, place, begin = low[sets], high[sets], place[sets], begin[sets]
        while len(sets):
            middle = (low + high) // 2
            found.thresholds[place] = limits[middle]
            waiting = []
            for side, (left, right) in enumerate(((low, middle), (middle + 1, high))):
                is_done = left == right
                new = len(found.first) + np.cumsum(~is_done) - 1
                found = found._with_more(int((~is_done).sum()))
                result = np.where((left - begin) % 2 == 1, yes[sets], no[sets])
                (found.second if side else found.first)[place] = np.where(is_done, result, new)
                found.features[new[~is_done]] = found.features[place[~is_done]]
                waiting.append((sets[~is_done], left[~is_done], right[~is_done], new[~is_done], begin[~is_done]))
            sets, low, high, place, begin = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
        return found

    def _with_more(self, count: int) -> _Comparisons:
        """Add `count` nodes with all fields 0."""
        arrays = (self.is_leaf, self.features, self.thresholds, self.takes_first, self.first, self.second)
        return _Comparisons(*(np.concatenate([array, np.zeros(count, array.dtype)]) for array in arrays))


def _previous(numbers: np.ndarray) -> np.ndarray:
    """Return the largest floats that are less than the given ones, or NaN if there is none."""
    previous = np.nextafter(numbers, numbers.dtype.type(-np.inf))
    return np.where(numbers == -np.inf, numbers.dtype.type(np.nan), previous)


def _levels(trees: _Comparisons, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the length of the longest path from a root to each node, and the index of the node's tree.

    A node that no root reaches has the level -1.  If a node is reached from two roots, the index is 0 for all nodes.
    """
    count = len(trees.first)
    inner = np.flatnonzero(~trees.is_leaf)
    parents = np.bincount(trees.first[inner], minlength=count) + np.bincount(trees.second[inner], minlength=count)
    is_forest = parents.max(initial=0) <= 1 and not parents[roots].any() and len(np.unique(roots)) == len(roots)
    if not is_forest:  # count only the parents that a root reaches
        reached = np.zeros(count, bool)
        front = np.unique(roots)
        parents = np.zeros(count, np.int64)
        while len(front):
            reached[front] = True
            front = front[~trees.is_leaf[front]]
            children = np.concatenate([trees.first[front], trees.second[front]])
            np.add.at(parents, children, 1)
            front = np.unique(children[~reached[children]])
        if parents[roots].any():
            # A root within another tree begins at a lower level, unless the nodes form a cycle.
            roots = roots[parents[roots] == 0]
    levels, owners = np.full(count, -1), np.zeros(count, np.int64)
    owners[roots] = np.arange(len(roots)) if is_forest else 0
    front, level = np.unique(roots), 0
    while len(front):
        if level > MAX_STEPS:
            raise RelvmUnsupportedError(f"a path in the trees is longer than {MAX_STEPS} comparisons")
        levels[front] = level
        front = front[~trees.is_leaf[front]]
        children = np.concatenate([trees.first[front], trees.second[front]])
        if is_forest:
            owners[children] = np.tile(owners[front], 2)
        else:
            np.subtract.at(parents, children, 1)
            children = np.unique(children[parents[children] == 0])
        front, level = children, level + 1
    if not is_forest and (reached & (levels < 0)).any():
        raise RelvmFormatError("the trees contain a cycle: some nodes never reach a leaf")
    return levels, owners


def _depths(trees: _Comparisons, roots: np.ndarray, levels: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return, for each tree, the length of the longest path from its root to a leaf."""
    if owners[roots].max(initial=0) + 1 == len(roots):
        deepest = np.zeros(len(roots), np.int64)
        is_reached = levels >= 0
        np.maximum.at(deepest, owners[is_reached], levels[is_reached])
        return deepest[owners[roots]]
    heights = np.zeros(len(levels), np.int64)
    order = np.argsort(levels, kind="stable")
    order = order[(levels[order] >= 0) & ~trees.is_leaf[order]]
    for nodes in reversed(np.split(order, np.flatnonzero(np.diff(levels[order])) + 1)):
        heights[nodes] = 1 + np.maximum(heights[trees.first[nodes]], heights[trees.second[nodes]])
    return heights[roots]


def _leaf_values(
    forest: Forest, count: int, dtype: np.dtype, aggregate: str, targets: int
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the threshold of each node that is a leaf, and the tables `starts`, `entry_targets` and `values`.

    If there is one target, the threshold of a leaf is its weight.  Otherwise, the bits of the threshold are the index
    of the leaf among all leaves.
    """
    missing = dtype.type(AGGREGATES[aggregate])
    none, no_values = np.empty(0, np.int32), np.empty(0, dtype)
    used = forest.is_leaf[forest.leaves]
    leaves, of, weights = forest.leaves[used], forest.targets[used], forest.weights[used]
    keys = leaves * targets + of
    if (np.diff(keys) <= 0).any():  # sort the weights, and add up those for the same target of a leaf
        keys, which = np.unique(keys, return_inverse=True)
        weights = np.bincount(which.reshape(-1), weights, len(keys))
        leaves, of = keys // targets, keys % targets
    weights = weights.astype(dtype)
    payloads = np.full(count, missing)
    if targets == 1:
        payloads[leaves] = weights
        return payloads, (none, none, no_values)
    nodes = np.flatnonzero(forest.is_leaf)
    numbers = np.zeros(count, f"u{dtype.itemsize}")
    numbers[nodes] = np.arange(len(nodes))
    payloads = numbers.view(dtype)
    if len(weights) >= _DENSE * targets * len(nodes):
        table = np.full(len(nodes) * targets, missing)
        table[numbers[leaves].astype(np.int64) * targets + of] = weights
        return payloads, (none, none, table)
    starts = np.searchsorted(leaves, np.append(nodes, count))
    return payloads, (starts.astype(np.int32), of.astype(np.int32), weights)
