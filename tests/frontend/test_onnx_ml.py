"""Tests of the operators of ai.onnx.ml, such as trees and linear models, compared with ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime, assert_answers, c_answers
from frontend.onnx_models import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.modes import FEWER_WAYS, machines

import relvm.ops as ops
from relvm import vm
from relvm.errors import RelvmFormatError, RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.ops.ml.tree_packing import MEMBER, Forest, pack_trees
from relvm.frontend.onnx.ops.ml.tree_packing import MODES as ALL_MODES
from relvm.ir.printer import print_module

RANDOM = np.random.default_rng(8)
FEATURES = 5
ROWS = np.round(RANDOM.standard_normal((40, FEATURES)), 1).astype(np.float32)


def model(
    op: str, outputs: int, version: int = 3, dtype=np.float32, shape=("n", FEATURES), **attributes
) -> onnx.ModelProto:
    """Return a model of one operator with the input x."""
    node = helper.make_node(op, ["x"], [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attributes)
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "test", [x], results), opset_imports=opsets, ir_version=10)


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def trees(count: int, depth: int, modes=MODES[:1], nan: bool = False) -> tuple[dict, list[tuple[int, int]]]:
    """Return the node attributes of random trees, and the leaves as pairs of tree number and node number.

    nan: whether nodes specify the branch for missing values.
    """
    rows: dict[str, list] = {
        name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    }
    tracks, leaves = [], []
    for tree in range(count):
        waiting, number = [(0, depth)], 1
        while waiting:
            node, left = waiting.pop()
            is_leaf = left == 0 or (node and RANDOM.random() < 0.2)
            yes, no = (0, 0) if is_leaf else (number, number + 1)
            values = (tree, node, int(RANDOM.integers(FEATURES)), "LEAF" if is_leaf else str(RANDOM.choice(modes)))
            values += (float(np.round(RANDOM.standard_normal(), 1)), yes, no)
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
            tracks.append(int(nan and RANDOM.random() < 0.5))
            if is_leaf:
                leaves.append((tree, node))
            else:
                waiting += [(yes, left - 1), (no, left - 1)]
                number += 2
    attributes = {f"nodes_{name}": column for name, column in rows.items()}
    return attributes | ({"nodes_missing_value_tracks_true": tracks} if nan else {}), leaves


def says(prefix: str, leaves, targets, low: float = -1.0) -> dict:
    """Return the attributes with a random weight for each leaf and each target."""
    rows = [(t, n, target, float(RANDOM.uniform(low, 1))) for t, n in leaves for target in targets]
    columns = zip(*rows, strict=True)
    return {
        f"{prefix}_{name}": list(c) for name, c in zip(("treeids", "nodeids", "ids", "weights"), columns, strict=True)
    }


def test_regressors() -> None:
    for count, depth, targets in ((1, 0, 1), (1, 3, 1), (20, 5, 1), (33, 4, 3)):
        nodes, leaves = trees(count, depth)
        attributes = {**nodes, **says("target", leaves, range(targets)), "n_targets": targets}
        against_onnxruntime(model("TreeEnsembleRegressor", 1, **attributes), ROWS, rtol=1e-4)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_aggregates_and_base_values(aggregate: str) -> None:
    nodes, leaves = trees(7, 4)
    attributes = {**nodes, **says("target", leaves, range(2)), "n_targets": 2, "base_values": [0.5, -2.0]}
    against_onnxruntime(model("TreeEnsembleRegressor", 1, aggregate_function=aggregate, **attributes), ROWS, rtol=1e-4)


@pytest.mark.parametrize("modes", [MODES, *((mode,) for mode in MODES)], ids=str)
def test_every_condition(modes) -> None:
    nodes, leaves = trees(9, 4, modes)
    attributes = {**nodes, **says("target", leaves, [0]), "n_targets": 1}
    against_onnxruntime(model("TreeEnsembleRegressor", 1, **attributes), ROWS, rtol=1e-4)


def test_what_is_missing_goes_its_own_way() -> None:
    nodes, leaves = trees(9, 4, nan=True)
    attributes = {**nodes, **says("target", leaves, [0]), "n_targets": 1}
    holes = np.where(RANDOM.random(ROWS.shape) < 0.3, np.float32(np.nan), ROWS)
    against_onnxruntime(model("TreeEnsembleRegressor", 1, **attributes), holes, rtol=1e-4)


def test_one_executable_takes_any_number_of_rows_and_doubles() -> None:
    nodes, leaves = trees(5, 3)
    attributes = {**nodes, **says("target", leaves, [0]), "n_targets": 1}
    made = model("TreeEnsembleRegressor", 1, **attributes)
    for rows in (0, 1, 40):
        against_onnxruntime(made, ROWS[:rows], rtol=1e-4)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [3, 4])
def test_classifiers(classes: int, transform: str) -> None:
    nodes, leaves = trees(8, 4)
    attributes = {**nodes, **says("class", leaves, range(classes)), "classlabels_int64s": [7, -1, 3, 0][:classes]}
    against_onnxruntime(model("TreeEnsembleClassifier", 2, post_transform=transform, **attributes), ROWS, rtol=1e-4)


def test_two_scores_for_two_classes() -> None:
    """Compare with ONNX's reference evaluator, because ONNX Runtime does not return the labels of the model here."""
    nodes, leaves = trees(8, 4)
    attributes = {**nodes, **says("class", leaves, range(2)), "classlabels_int64s": [7, -1]}
    made = model("TreeEnsembleClassifier", 2, **attributes)
    assert_answers(c_answers(made, [ROWS]), ReferenceEvaluator(made).run(None, {"x": ROWS}), rtol=1e-4)


@pytest.mark.parametrize(("low", "base"), list(itertools.product((0.0, -1.0), (None, [0.25]))))
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_one_score_for_two_classes(low: float, base, transform: str) -> None:
    nodes, leaves = trees(2, 3)
    attributes = {**nodes, **says("class", leaves, [0], low), "classlabels_int64s": [4, 9]}
    attributes |= {} if base is None else {"base_values": base}
    against_onnxruntime(model("TreeEnsembleClassifier", 2, post_transform=transform, **attributes), ROWS, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_values": [1.0]}, "differ in length"),
        ({"nodes_truenodeids": [9, 0, 0]}, "has the unknown successor 9"),
        ({"nodes_truenodeids": [0, 0, 0]}, "some nodes never reach a leaf"),
        ({"nodes_nodeids": [0, 0, 2]}, "define a node twice"),
        ({"nodes_featureids": [-1, 0, 0]}, "nodes_featureids contains a negative number"),
        ({"nodes_featureids": [5, 0, 0]}, "feature 5, but x has 5 features"),
        ({"target_ids": [0, 1]}, "target_ids contains 1, expected 0 to 0"),
        ({"target_nodeids": [1, 7]}, "target_nodeids contains 7, but tree 0"),
        ({"aggregate_function": "MEDIAN"}, "unknown aggregate_function 'MEDIAN'"),
    ],
)
def test_inconsistent_trees_are_refused(change, message) -> None:
    attributes = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
        "n_targets": 1,
    }
    with pytest.raises(RelvmFormatError, match=message):
        from_onnx(model("TreeEnsembleRegressor", 1, **(attributes | change)))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifiers(classes: int, transform: str) -> None:
    attributes = {
        "coefficients": RANDOM.standard_normal(classes * FEATURES).tolist(),
        "intercepts": RANDOM.standard_normal(classes).tolist(),
        "classlabels_ints": [5, 2, 8][:classes],
        "post_transform": transform,
    }
    for columns in (FEATURES, "m"):
        against_onnxruntime(model("LinearClassifier", 2, shape=("n", columns), **attributes), ROWS, rtol=1e-4)


@pytest.mark.parametrize("targets", [1, 2])
def test_linear_regressors(targets: int) -> None:
    attributes = {
        "coefficients": RANDOM.standard_normal(targets * FEATURES).tolist(),
        "intercepts": RANDOM.standard_normal(targets).tolist(),
        "targets": targets,
    }
    against_onnxruntime(model("LinearRegressor", 1, **attributes), ROWS, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    shared = {"kernel_type": kernel, "kernel_params": [0.3, 0.1, 3.0]}
    vectors = RANDOM.standard_normal(7 * FEATURES).tolist()
    regressor = {
        "coefficients": RANDOM.standard_normal(7).tolist(),
        "support_vectors": vectors,
        "n_supports": 7,
        "rho": [0.2],
    }
    against_onnxruntime(model("SVMRegressor", 1, **shared, **regressor), ROWS, rtol=1e-4, atol=1e-5)
    for counts in ([3, 4], [2, 3, 2]):
        classes = len(counts)
        classifier = {
            "coefficients": RANDOM.standard_normal((classes - 1) * 7).tolist(),
            "support_vectors": vectors,
            "vectors_per_class": counts,
            "rho": RANDOM.standard_normal(classes * (classes - 1) // 2).tolist(),
            "classlabels_ints": [3, 1, 4][:classes],
        }
        against_onnxruntime(model("SVMClassifier", 2, **shared, **classifier), ROWS, rtol=1e-4, atol=1e-5)
        pairs = len(classifier["rho"])
        sigmoids = {"prob_a": RANDOM.uniform(-3, -1, pairs).tolist(), "prob_b": RANDOM.uniform(-1, 1, pairs).tolist()}
        against_onnxruntime(model("SVMClassifier", 2, **shared, **classifier, **sigmoids), ROWS, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalised(norm: str) -> None:
    rows = ROWS.copy()
    rows[3] = 0
    against_onnxruntime(model("Normalizer", 1, norm=norm), rows)
    against_onnxruntime(model("Normalizer", 1, norm=norm, shape=("n",)), rows[0])


def test_features_are_prepared() -> None:
    against_onnxruntime(model("Scaler", 1, offset=[0.5], scale=[2.0]), ROWS)
    against_onnxruntime(model("Scaler", 1, offset=[0.5, 1, 2, 3, 4], scale=[2.0, 1, 1, 0.5, 3]), ROWS)
    against_onnxruntime(model("Binarizer", 1, threshold=0.5), ROWS)
    holes = np.where(RANDOM.random(ROWS.shape) < 0.3, np.float32(np.nan), ROWS)
    values = [1.0, 2, 3, 4, 5]
    against_onnxruntime(model("Imputer", 1, imputed_value_floats=values, replaced_value_float=float("nan")), holes)
    counts = RANDOM.integers(0, 4, (6, FEATURES))
    integers = {"imputed_value_int64s": [9], "replaced_value_int64": 2}
    against_onnxruntime(model("Imputer", 1, dtype=np.int64, **integers), counts)
    against_onnxruntime(model("OneHotEncoder", 1, dtype=np.int64, cats_int64s=[2, 0, 3], zeros=1), counts)


def test_what_is_no_category_is_told_when_it_comes() -> None:
    made = model("OneHotEncoder", 1, dtype=np.int64, shape=("n",), cats_int64s=[2, 0, 3], zeros=0)
    against_onnxruntime(made, np.array([3, 0, 0, 2]))
    for machine in machines(from_onnx(made), FEWER_WAYS).values():
        with pytest.raises(RelvmShapeError, match="elements of unknown category"):
            machine["main"](np.array([3, 1]))


def test_labels_are_encoded() -> None:
    counts = RANDOM.integers(0, 5, (6, 3))
    given = {"keys_int64s": [3, 1, 4], "values_floats": [0.5, -1.5, 2.0], "default_float": 9.0}
    against_onnxruntime(model("LabelEncoder", 1, dtype=np.int64, shape=("n", 3), **given), counts)
    keys = numpy_helper.from_array(np.array([np.nan, 1.0, 2.0], np.float32), "keys")
    values = numpy_helper.from_array(np.array([7, 8, 9]), "values")
    default = numpy_helper.from_array(np.array([-5]), "default")
    tensors = model("LabelEncoder", 1, 4, shape=("n",), keys_tensor=keys, values_tensor=values, default_tensor=default)
    against_onnxruntime(tensors, np.array([1, np.nan, 3, 2], np.float32))


def test_what_is_not_there_yet_is_refused() -> None:
    one = {"coefficients": [1.0] * 5, "intercepts": [0.0]}
    with pytest.raises(RelvmUnsupportedError, match="a single class with a string label"):
        from_onnx(model("LinearClassifier", 2, classlabels_strings=["a"], **one))
    nodes, leaves = trees(2, 2)
    with pytest.raises(RelvmUnsupportedError, match="a single class with a single score"):
        from_onnx(model("TreeEnsembleClassifier", 2, **nodes, **says("class", leaves, [0]), classlabels_strings=["a"]))


def test_columns_are_chosen_and_put_together() -> None:
    columns = helper.make_node("ArrayFeatureExtractor", ["x", "places"], ["a"], domain="ai.onnx.ml")
    beside = helper.make_node(
        "FeatureVectorizer", ["x", "a"], ["b"], domain="ai.onnx.ml", inputdimensions=[FEATURES, 2]
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", FEATURES])
    results = [helper.make_empty_tensor_value_info(name) for name in ("a", "b")]
    places = numpy_helper.from_array(np.array([3, 1]), "places")
    graph = helper.make_graph([columns, beside], "test", [x], results, [places])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    against_onnxruntime(helper.make_model(graph, opset_imports=opsets, ir_version=10), ROWS)


def test_trees_with_leaves_in_a_table_of_their_own() -> None:
    """Compare two trees, one with a set-membership test, with ONNX's reference evaluator."""
    tables = {
        "nodes_splits": numpy_helper.from_array(np.array([0.5, np.nan], np.float32), "splits"),
        "nodes_featureids": [0, 2],
        "nodes_modes": numpy_helper.from_array(np.array([0, 6], np.uint8), "modes"),
        "nodes_truenodeids": [0, 2],
        "nodes_falsenodeids": [1, 3],
        "nodes_trueleafs": [1, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": numpy_helper.from_array(np.array([1.0, 2.0, 4.0, 8.0], np.float32), "weights"),
        "membership_values": numpy_helper.from_array(np.array([1.0, -0.5, 2.5, np.nan], np.float32), "members"),
        "tree_roots": [0, 1],
        "n_targets": 2,
    }
    made = model("TreeEnsemble", 1, 5, **tables)
    rows = np.array([[0, 0, 1, 0, 0], [1, 0, -0.5, 0, 0], [0.5, 0, 0, 0, 0], [2, 0, 2.5, 0, 0]], np.float32)
    assert_answers(c_answers(made, [rows]), ReferenceEvaluator(made).run(None, {"x": rows}))


def test_trees_of_f64_are_not_rounded_to_f32() -> None:
    """Weights, splits, features and sums have digits, and a range, that f32 does not have."""
    weights = np.array([16777217.0, 1e300, -1e-300, 3.0])
    tables = {
        "nodes_splits": numpy_helper.from_array(np.array([1 + 1e-12, 2.0]), "splits"),
        "nodes_featureids": [0, 1],
        "nodes_modes": numpy_helper.from_array(np.array([0, 0], np.uint8), "modes"),
        "nodes_truenodeids": [0, 2],
        "nodes_falsenodeids": [1, 3],
        "nodes_trueleafs": [1, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0, 0, 0],
        "leaf_weights": numpy_helper.from_array(weights, "weights"),
        "tree_roots": [0, 1],
        "n_targets": 1,
    }
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **tables)
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, ["n", None]) for name in "xy"]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    graph = helper.make_graph([node], "test", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    rows = np.array([[1 + 5e-13, 0.0], [1 + 2e-12, 3.0], [1.0, 3.0]])
    (found,) = c_answers(made, [rows])
    assert found.dtype == np.float64
    assert found.ravel().tolist() == [weights[0] + weights[2], weights[1] + weights[3], weights[0] + weights[3]]


def random_graphs(random: np.random.Generator, modes, trees: int = 5, nodes: int = 12, targets: int = 1) -> dict:
    """Return the arrays of random trees, by field of Forest.  Their nodes are in random order.

    Some nodes share a successor.  Thresholds and features are often equal, and some are NaN or infinite.
    """
    numbers = np.float32([-np.inf, -1.5, -1, -0.0, 0, 0.5, 1, np.inf, np.nan])
    inner, leaves = trees * nodes, trees * (nodes + 1)
    yes, no = np.arange(inner + leaves), np.arange(inner + leaves)
    for tree in range(trees):
        first = tree * nodes
        targets_of = np.concatenate(
            [first + 1 + np.arange(nodes - 1), inner + tree * (nodes + 1) + np.arange(nodes + 1)]
        )
        for at in range(nodes):
            choices = targets_of[at:]  # successors that come later, so there is no cycle
            yes[first + at] = choices[0] if random.random() < 0.7 else random.choice(choices)
            no[first + at] = random.choice(choices)
    chosen = random.choice(modes, inner)
    counts = random.integers(0, 6, int((chosen == MEMBER).sum()))
    filled = {
        "features": random.integers(FEATURES, size=inner),
        "thresholds": random.choice(numbers, inner),
        "modes": chosen,
        "nan_is_true": random.random(inner) < 0.5,
    }
    fields = {name: np.concatenate([array, np.zeros(leaves, array.dtype)]) for name, array in filled.items()}
    order = random.permutation(inner + leaves)
    place = np.argsort(order)
    fields = {name: array[order] for name, array in fields.items()}
    entries = random.integers(leaves, size=leaves * targets) + inner
    return fields | {
        "is_leaf": order >= inner,
        "yes": place[yes[order]],
        "no": place[no[order]],
        "roots": place[np.arange(trees) * nodes],
        "leaves": place[entries],
        "targets": random.integers(targets, size=len(entries)),
        "weights": random.integers(-8, 9, len(entries)).astype(np.float32),
        "members": random.choice(numbers[:-1], int(counts.sum())),
        "member_counts": counts,
    }


def walk(forest: Forest, row: np.ndarray) -> list[int]:
    """Return the leaf that a row reaches in each tree, by the definition of the operators."""
    compare = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
    is_member = ~forest.is_leaf & (forest.modes == MEMBER)
    members = np.split(forest.members, np.cumsum(forest.member_counts))
    sets = dict(zip(np.flatnonzero(is_member), members, strict=False))
    found = []
    for at in forest.roots:
        while not forest.is_leaf[at]:
            value, mode = row[forest.features[at]], forest.modes[at]
            holds = value in sets[at] if mode == MEMBER else compare[mode](value, forest.thresholds[at])
            at = forest.yes[at] if holds or (np.isnan(value) and forest.nan_is_true[at]) else forest.no[at]
        found.append(int(at))
    return found


@pytest.mark.parametrize(("targets", "aggregate"), [(1, "sum"), (1, "max"), (3, "sum"), (3, "min")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_trees_give_what_their_definition_gives(dtype, targets: int, aggregate: str) -> None:
    random = np.random.default_rng(4)
    values = np.array([-np.inf, -1.5, -1.25, -1, -0.0, 0, 0.25, 0.5, 1, np.inf, np.nan], dtype)
    for modes in (*([mode] for mode in range(len(ALL_MODES))), range(len(ALL_MODES)), range(MEMBER)):
        forest = Forest(**random_graphs(random, np.array(modes), targets=targets))
        rows = random.choice(values, (20, FEATURES))
        packed = pack_trees(forest, np.dtype(dtype), aggregate, targets)
        attributes = {"targets": targets, "aggregate": aggregate, "steps": packed.steps, "blocks": 1}
        found = ops.tree_ensemble.numpy(rows, *packed.tables(), **attributes, offset_bits=packed.offset_bits)
        weights: dict[tuple[int, int], float] = {}
        for leaf, target, weight in zip(forest.leaves, forest.targets, forest.weights, strict=True):
            if forest.is_leaf[leaf]:
                weights[int(leaf), int(target)] = weights.get((int(leaf), int(target)), 0.0) + float(weight)
        fold = {"sum": sum, "min": min, "max": max}[aggregate]
        start = {"sum": 0.0, "min": np.inf, "max": -np.inf}[aggregate]
        for row, totals in zip(rows, found[0], strict=True):
            reached = walk(forest, row)
            for target in range(targets):
                parts = [weights[leaf, target] for leaf in reached if (leaf, target) in weights]
                if targets == 1 and aggregate == "sum" and not parts:
                    parts = [0.0]
                assert totals[target] == fold([start, *parts]), (modes, row)


def test_modes_with_missing_values() -> None:
    """Compare all modes with ONNX Runtime, for rows and thresholds that are often equal, infinite or NaN."""
    for modes in (MODES, *((mode,) for mode in MODES)):
        nodes, leaves = trees(9, 4, modes, nan=True)
        attributes = {**nodes, **says("target", leaves, [0]), "n_targets": 1}
        rows = RANDOM.choice(np.float32([-np.inf, -1, -0.5, 0, 0.5, 1, np.inf, np.nan]), (40, FEATURES))
        attributes["nodes_values"] = [float(RANDOM.choice(rows[:, 0])) for _ in nodes["nodes_values"]]
        against_onnxruntime(model("TreeEnsembleRegressor", 1, **attributes), rows, rtol=1e-4)


@pytest.mark.parametrize("roots", [[0], [1], [0, 1]])
def test_cyclic_trees_are_refused(roots) -> None:
    """Node 0 leads to node 1, and node 1 back to node 0."""
    arrays = random_graphs(np.random.default_rng(0), np.array([0]), trees=1, nodes=2)
    arrays |= {"is_leaf": np.arange(5) >= 2, "yes": np.array([1, 0, 2, 3, 4]), "no": np.array([2, 3, 2, 3, 4])}
    with pytest.raises(RelvmFormatError, match="the trees contain a cycle"):
        pack_trees(Forest(**arrays | {"roots": np.array(roots)}), np.dtype(np.float32), "sum", 1)


def test_many_nodes_and_features_need_f64_records() -> None:
    """Each of 2^18 nodes compares another feature.  Its children are nearly 2^18 nodes ahead of it."""
    count = 1 << 18
    own = np.arange(2 * count + 1)
    is_leaf = own >= count
    arrays = {"features": own % count, "thresholds": np.zeros(len(own)), "modes": np.zeros(len(own), int)}
    arrays |= {"nan_is_true": is_leaf, "is_leaf": is_leaf, "roots": np.array([0]), "leaves": own[count:]}
    arrays |= {"yes": np.where(is_leaf, own, 2 * own + 1), "no": np.where(is_leaf, own, 2 * own + 2)}
    forest = Forest(**arrays, targets=np.zeros(count + 1, int), weights=own[count:].astype(np.float32))
    packed = pack_trees(forest, np.dtype(np.float32), "sum", 1)
    assert (packed.values.dtype, len(packed.nodes), packed.steps) == (np.float64, 2 * len(own), 19)


def test_the_bits_depend_neither_on_the_batch_nor_on_threads() -> None:
    """The 4,500 trees are evaluated in two blocks."""
    nodes, leaves = trees(45, 4)
    attributes = {**nodes, **says("target", leaves, [0]), "n_targets": 1}
    for name in nodes.keys() | {"target_treeids", "target_nodeids", "target_ids", "target_weights"}:
        attributes[name] = attributes[name] * 100
    for name in ("nodes_treeids", "target_treeids"):
        count = len(attributes[name]) // 100
        attributes[name] = [tree + 45 * (at // count) for at, tree in enumerate(attributes[name])]
    executable = vm.build(from_onnx(model("TreeEnsembleRegressor", 1, **attributes)), target="bytecode")
    assert "blocks=2" in print_module(from_onnx(model("TreeEnsembleRegressor", 1, **attributes)))
    rows = RANDOM.standard_normal((85, FEATURES)).astype(np.float32)
    alone, together = (vm.VirtualMachine(executable, num_threads=threads)["main"] for threads in (1, 2))
    expected = alone(rows).numpy()
    np.testing.assert_array_equal(together(rows).numpy(), expected)
    for begin, end in ((0, 1), (1, 18), (18, 85)):
        np.testing.assert_array_equal(together(rows[begin:end]).numpy(), expected[begin:end])
