"""Measure tree ensembles:   python -m benchmarks.trees [--trees 10,100,1000] [--threads 1,2] [--import]

A seed determines each ensemble: gradient boosted regression trees of 32-bit floats, in which all splits are equally
likely.  The peers are ONNX Runtime, Treelite (GTIL, its interpreter, and TL2cgen, which generates C) and lleaves (which
generates LLVM IR), if they are installed.  The peers that compile do not take part if an ensemble is large.

Each engine has a process of its own, and the processes take turns.  A time is the minimum of many calls.  With
--import, measure instead the time and memory from the start of a process to the first result of a large model.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from benchmarks.engine_process import EngineProcess, serve
from relvm.data_classes import record

_ROUNDS, _SECONDS = 5, 0.05
_SPLIT_PROBABILITY = {4: 1.0, 8: 0.985, 12: 0.8}  # by depth: of a node between the root and the greatest depth
LARGE = (10_000, 8, 100)


@record
class Ensemble:
    """Regression trees, as arrays with an element for each node.  The nodes of a tree are adjacent, the root first.

    trees: the number of the tree.
    features, thresholds: the comparison `x[feature] <= threshold`.
    yes, no: the numbers of the children within the tree, 0 for a leaf.
    values: the value of a leaf, 0 for other nodes.
    """

    trees: np.ndarray
    features: np.ndarray
    thresholds: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    values: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """The number of nodes of each tree."""
        return np.bincount(self.trees)


def ensemble(trees: int, depth: int, features: int, seed: int = 0) -> Ensemble:
    """Return random trees.   depth: the greatest number of comparisons, 4, 8 or 12."""
    random = np.random.default_rng(seed)
    levels, parents = [], np.arange(trees)  # for each node of a level, its tree
    is_inner_levels = []
    for level in range(depth + 1):
        inner = (random.random(len(parents)) < _SPLIT_PROBABILITY[depth]) & (level < depth)
        inner |= level == 0
        levels.append(parents)
        is_inner_levels.append(inner)
        parents = np.repeat(parents[inner], 2)
    tree, inner = np.concatenate(levels), np.concatenate(is_inner_levels)
    order = np.argsort(tree, kind="stable")  # breadth-first within each tree
    tree, inner = tree[order], inner[order]
    starts = np.searchsorted(tree, np.arange(trees))
    inner_before = np.cumsum(inner) - inner
    child = np.where(inner, 1 + 2 * (inner_before - inner_before[starts][tree]), 0)
    count = len(tree)
    return Ensemble(
        tree,
        np.where(inner, random.integers(features, size=count), 0),
        np.where(inner, random.standard_normal(count), 0).astype(np.float32),
        child,
        np.where(inner, child + 1, 0),
        np.where(inner, 0, random.standard_normal(count)).astype(np.float32),
    )


def onnx_model(forest: Ensemble, features: int) -> onnx.ModelProto:
    starts = np.cumsum(forest.sizes) - forest.sizes
    ids = np.arange(len(forest.trees)) - starts[forest.trees]
    leaf = forest.yes == 0
    modes = np.where(leaf, "LEAF", "BRANCH_LEQ")
    node = onnx.NodeProto(op_type="TreeEnsembleRegressor", domain="ai.onnx.ml", input=["x"], output=["y"])
    lists = {
        "nodes_treeids": forest.trees,
        "nodes_nodeids": ids,
        "nodes_featureids": forest.features,
        "nodes_values": forest.thresholds,
        "nodes_truenodeids": forest.yes,
        "nodes_falsenodeids": forest.no,
        "target_treeids": forest.trees[leaf],
        "target_nodeids": ids[leaf],
        "target_ids": np.zeros(leaf.sum(), np.int64),
        "target_weights": forest.values[leaf],
    }
    for name, array in lists.items():
        is_float = array.dtype == np.float32
        kind = onnx.AttributeProto.FLOATS if is_float else onnx.AttributeProto.INTS
        attribute = node.attribute.add(name=name, type=kind)
        (attribute.floats if is_float else attribute.ints).extend(array.tolist())
    strings = node.attribute.add(name="nodes_modes", type=onnx.AttributeProto.STRINGS)
    strings.strings.extend([mode.encode() for mode in modes.tolist()])
    node.attribute.add(name="n_targets", type=onnx.AttributeProto.INT, i=1)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", features])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 1])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "trees", [x], [y]), opset_imports=opsets, ir_version=8)


def lightgbm_text(forest: Ensemble, features: int) -> str:
    """Return the ensemble in the text format of LightGBM."""
    names = " ".join(f"f{i}" for i in range(features))
    header = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0"]
    header += [f"max_feature_idx={features - 1}", "objective=regression", f"feature_names={names}"]
    header += [f"feature_infos={' '.join(['[-9:9]'] * features)}"]
    texts = []
    for number, (start, size) in enumerate(zip(np.cumsum(forest.sizes) - forest.sizes, forest.sizes, strict=True)):
        part = slice(start, start + size)
        leaf = forest.yes[part] == 0
        index = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
        inner = ~leaf
        rows = {
            "num_leaves": [int(leaf.sum())],
            "num_cat": [0],
            "split_feature": forest.features[part][inner].tolist(),
            "split_gain": [1] * int(inner.sum()),
            "threshold": [repr(float(t)) for t in forest.thresholds[part][inner]],
            "decision_type": [2] * int(inner.sum()),
            "left_child": index[forest.yes[part][inner]].tolist(),
            "right_child": index[forest.no[part][inner]].tolist(),
            "leaf_value": [repr(float(v)) for v in forest.values[part][leaf]],
            "leaf_weight": [1] * int(leaf.sum()),
            "leaf_count": [1] * int(leaf.sum()),
            "internal_value": [0] * int(inner.sum()),
            "internal_weight": [1] * int(inner.sum()),
            "internal_count": [1] * int(inner.sum()),
            "is_linear": [0],
            "shrinkage": [1],
        }
        lines = [f"Tree={number}", *(f"{name}={' '.join(map(str, row))}" for name, row in rows.items())]
        texts.append("\n".join(lines) + "\n\n\n")
    header.append(f"tree_sizes={' '.join(str(len(text)) for text in texts)}")
    return (
        "\n".join(header)
        + "\n\n"
        + "".join(texts)
        + "end of trees\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    )


def _relvm(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    import relvm

    model = relvm.load_model(folder / "m.onnx", exec_mode="compiled", num_threads=threads)
    return lambda x: model(x)


def _onnxruntime(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    from benchmarks.models.engines import onnxruntime_runner

    run = onnxruntime_runner(folder / "m.onnx", threads)
    return lambda x: run({"x": x})[0]


def _treelite(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    import treelite

    model = treelite.frontend.load_lightgbm_model(folder / "m.txt")
    return lambda x: treelite.gtil.predict(model, x, nthread=threads)


def _tl2cgen(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    import tl2cgen
    import treelite

    model = treelite.frontend.load_lightgbm_model(folder / "m.txt")
    library = folder / "m.so"
    if not library.exists():
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor(library, nthread=threads)
    return lambda x: predictor.predict(tl2cgen.DMatrix(x, dtype="float32"))


def _lleaves(folder: Path, threads: int) -> Callable[[np.ndarray], Any]:
    import lleaves

    model = lleaves.Model(model_file=folder / "m.txt")
    model.compile(cache=folder / "m.lleaves")
    return lambda x: model.predict(x, n_jobs=threads)


ENGINES: dict[str, Callable[[Path, int], Callable[[np.ndarray], Any]]] = {
    "relvm": _relvm,
    "onnxruntime": _onnxruntime,
    "treelite": _treelite,
    "tl2cgen": _tl2cgen,
    "lleaves": _lleaves,
}
_COMPILED = ("tl2cgen", "lleaves")


def _inputs(engine: str, rows: int, features: int) -> np.ndarray:
    dtype = np.float64 if engine in ("treelite", "lleaves") else np.float32
    return np.random.default_rng(1).standard_normal((rows, features)).astype(np.float32).astype(dtype)


def _serve(engine: str, folder: Path, threads: int, features: int) -> None:
    """Load an ensemble into an engine.  Answer a number of rows with the microseconds of a run, and save its result."""
    run = ENGINES[engine](folder, threads)

    def microseconds(rows: int) -> float:
        x = _inputs(engine, rows, features)
        np.save(folder / f"{engine}.npy", np.asarray(run(x)).reshape(-1))
        best, end = math.inf, time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            start = time.perf_counter()
            run(x)
            best = min(best, time.perf_counter() - start)
        return best * 1e6

    serve(microseconds)


def _measure(
    forest: Ensemble, features: int, threads: int, batches: list[int], most_compiled: int
) -> Iterator[dict[str, float]]:
    """Yield, for each number of rows, the microseconds of a run in each engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.onnx").write_bytes(onnx_model(forest, features).SerializeToString())
        (folder / "m.txt").write_text(lightgbm_text(forest, features))
        names = [engine for engine in _installed() if engine not in _COMPILED or len(forest.trees) <= most_compiled]
        arguments = (str(folder), str(threads), str(features))
        processes = {engine: EngineProcess("benchmarks.trees", "--serve", engine, *arguments) for engine in names}
        for rows in batches:
            best = dict.fromkeys(processes, math.inf)
            for _ in range(_ROUNDS):
                for engine, process in processes.items():
                    best[engine] = min(best[engine], process.request(rows))
            expected = np.load(folder / "relvm.npy")
            for engine in processes:
                np.testing.assert_allclose(np.load(folder / f"{engine}.npy"), expected, 1e-3, 1e-2, err_msg=engine)
            yield best
        for process in processes.values():
            process.close()


def _installed() -> list[str]:
    return [engine for engine in ENGINES if engine == "relvm" or find_spec(engine)]


def _first_result(engine: str, path: str) -> None:
    """Load a model and run one row.  Print the seconds since the start of the script and the peak memory in MB."""
    start = time.perf_counter()
    if engine == "relvm":
        import relvm

        run = relvm.load_model(path)
        loaded = time.perf_counter()
        run(np.zeros((1, LARGE[2]), np.float32))
    else:
        from benchmarks.models.engines import onnxruntime_runner

        session = onnxruntime_runner(Path(path), 1)
        loaded = time.perf_counter()
        session({"x": np.zeros((1, LARGE[2]), np.float32)})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([loaded - start, time.perf_counter() - start, peak]))


def _measure_import() -> None:
    forest = ensemble(*LARGE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(onnx_model(forest, LARGE[2]).SerializeToString())
        print(f"{LARGE[0]:,} trees, {len(forest.trees):,} nodes, {path.stat().st_size / 1e6:.0f} MB\n")
        print("| engine | load, s | first result, s | peak memory, MB |\n|---|---|---|---|")
        for label, engine in (("relvm", "relvm"), ("relvm, cached", "relvm"), ("onnxruntime", "onnxruntime")):
            command = [sys.executable, "-m", "benchmarks.trees", "--first-result", engine, str(path)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            loaded, first, peak = json.loads(answer)
            print(f"| {label} | {loaded:.2f} | {first:.2f} | {peak:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trees")
    for name, values in {
        "trees": "10,100,1000,10000",
        "depths": "4,8,12",
        "features": "10,100",
        "rows": "1,100,10000",
        "threads": "1,2",
    }.items():
        numbers = [int(number) for number in values.split(",")]
        parser.add_argument(f"--{name}", default=numbers, type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--import", action="store_true", dest="is_import", help="measure the import of a large model")
    parser.add_argument(
        "--compiled", type=int, default=6000, metavar="NODES", help="largest ensemble of peers that compile"
    )
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--first-result", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_result:
        _first_result(*options.first_result)
        return
    if options.serve:
        engine, folder, threads, features = options.serve
        _serve(engine, Path(folder), int(threads), int(features))
        return
    if options.is_import:
        _measure_import()
        return
    engines = _installed()
    print(f"| trees | depth | features | rows | threads | {' | '.join(engines)} | relvm / best peer |")
    print("|---" * (6 + len(engines)) + "|")
    ratios = []
    for trees, depth, features in itertools.product(options.trees, options.depths, options.features):
        forest = ensemble(trees, depth, features)
        for threads in options.threads:
            measured = _measure(forest, features, threads, options.rows, options.compiled)
            for rows, best in zip(options.rows, measured, strict=True):
                times = [f"{best[engine]:.1f}" if engine in best else "" for engine in engines]
                ratios.append(best["relvm"] / min(t for engine, t in best.items() if engine != "relvm"))
                row = [trees, depth, features, rows, threads, *times, f"{ratios[-1]:.2f}"]
                print(f"| {' | '.join(map(str, row))} |", flush=True)
    print(f"\nrelvm / best peer: geometric mean {math.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
