"""Metamorphic tests: saving a model, building it without fusion or splitting a batch does not change results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from differential.comparison import difference
from differential.onnxruntime_process import OnnxRuntimeProcess
from differential.random_models import RandomModel, draw
from frontend.onnx_answers import outputs
from frontend.onnx_models import make_model
from onnx import helper
from support.modes import assert_same_bits, plain

from relvm import vm
from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx

SEEDS = range(100, 124)


@pytest.fixture(scope="module")
def models() -> dict[int, RandomModel]:
    with OnnxRuntimeProcess() as onnxruntime:
        return {seed: draw(seed, onnxruntime.run) for seed in SEEDS}


def answer(executable: vm.Executable, arrays: list[np.ndarray]) -> object:
    try:
        return plain(vm.VirtualMachine(executable)["main"](*arrays))
    except RelvmError as error:
        return f"{type(error).__name__}: {error}"


def test_saved_is_built_and_fused_is_apart(models: dict[int, RandomModel], tmp_path: Path) -> None:
    compared = 0
    for seed, model in models.items():
        try:
            module = from_onnx(model.proto())
            fused = vm.build(module, "bytecode", "c")
        except RelvmError:
            continue
        apart = vm.build(module, "bytecode", "c", fused=False)
        fused.save(tmp_path / "model.rvm")
        saved = vm.load(tmp_path / "model.rvm")
        random = np.random.default_rng(seed)
        for _ in range(3):
            arrays = model.arrays(model.other_sizes(random), random)
            arrays = [np.where(np.isfinite(a) & (np.abs(a) < 100), a, np.float32(1)) for a in arrays]
            results = [answer(executable, arrays) for executable in (fused, saved, apart)]
            if isinstance(results[0], str):
                assert results[0] == results[1] == results[2], seed
                continue
            assert_same_bits(results[0], results[1])
            found = difference(*(outputs(result) for result in (results[0], results[2])))
            assert not found, f"seed {seed}: {found}"
            compared += 1
    assert compared > len(SEEDS)


def test_a_batch_of_n_is_n_runs() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "m"], ["e"]),
        helper.make_node("Softmax", ["e"], ["y"], axis=1),
    ]
    random = np.random.default_rng(0)
    constants = {
        "w": random.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "m": random.normal(size=(4, 5)).astype(np.float32),
    }
    model = make_model(nodes, [("x", np.float32, ["n", 3, "h", "w"])], ["y"], constants)
    main = vm.VirtualMachine(vm.build(from_onnx(model), "bytecode", "c"))["main"]
    for n, h, w in ((1, 1, 1), (3, 5, 4), (4, 8, 9)):
        x = random.normal(size=(n, 3, h, w)).astype(np.float32)
        rows = np.concatenate([main(x[i : i + 1]).numpy() for i in range(n)])
        np.testing.assert_allclose(main(x).numpy(), rows, rtol=1e-5, atol=1e-7)
