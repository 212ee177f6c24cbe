"""Predict chemical shifts with a plain session: a graph neural network, which scatters and gathers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime as ort
from client import main

FOLDER = Path(find_spec("caustic").submodule_search_locations[0]) / "data"


def start():
    return ort.InferenceSession(FOLDER / "best_v2_carbons.onnx")


def call(made):
    return [made.run(None, graph(made, residues)) for residues in (5, 12)]


def graph(session, residues):
    """Return inputs: a chain of residues of six atoms each, in which each atom has eight neighbors."""
    atoms, rng = 6 * residues, np.random.default_rng(residues)
    start = np.repeat(np.arange(atoms), 8)
    end = (start + np.tile([-4, -3, -2, -1, 1, 2, 3, 4], atoms)) % atoms
    position = np.cumsum(rng.normal(0, 0.8, (atoms, 3)), axis=0).astype(np.float32)
    sizes = {"num_atoms": atoms, "num_edges": len(start), "num_residues": residues}
    known = {
        "edge_index": np.stack([start, end]),
        "edge_dist": np.linalg.norm(position[start] - position[end], axis=1),
        "target_indices": np.arange(atoms).reshape(residues, 6),
        "target_mask": rng.random((residues, 6)) < 0.8,
        "pos": position,
    }
    for each in session.get_inputs():
        shape = [sizes.get(size, size) for size in each.shape]
        if each.type == "tensor(int64)":
            known.setdefault(each.name, rng.integers(0, 4, shape))
        else:
            known.setdefault(each.name, rng.random(shape, np.float32))
    return known


main(start, call)
