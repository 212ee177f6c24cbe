"""Compare single operators with ONNX Runtime, on one thread:   python -m benchmarks.operators [NAME...]

Each model has one node.  The table has the microseconds of a run in relvm and in ONNX Runtime, which take turns in one
process, and their ratio, which is below 1 if relvm is faster.  It does not tell how long an operator takes inside of a
model, where relvm fuses it with others.  NAME selects the rows whose name contains it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import relvm
from benchmarks.turns import least_times
from relvm.data_classes import value_record

_SECONDS = 0.05
_RANDOM = np.random.default_rng(0)


@value_record
class Row:
    """A node with its inputs.

    constants: the inputs that are initializers, by name.  The other inputs are arguments of a run.
    """

    name: str
    op_type: str
    inputs: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray]
    attributes: Mapping[str, Any]
    outputs: int
    opset: int


def _row(name: str, inputs: Mapping[str, Any], constants: Mapping[str, Any] | None = None, **options: Any) -> Row:
    """Return a row of the table.

    name: the name of the operator, and after a space what distinguishes the row from others.
    options: the attributes of the node, and optionally `outputs` and `opset`.
    """
    outputs, opset = options.pop("outputs", 1), options.pop("opset", 17)
    arrays = {key: np.asarray(value) for key, value in (constants or {}).items()}
    return Row(name, name.split(" ", maxsplit=1)[0], inputs, arrays, options, outputs, opset)


def _floats(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _positive(*shape: int) -> np.ndarray:
    return np.abs(_floats(*shape)) + np.float32(1e-3)


def _integers(low: int, high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    return _RANDOM.integers(low, high, shape).astype(dtype)


def _boxes(count: int) -> np.ndarray:
    """Return boxes whose second corner is behind the first."""
    return np.sort(_RANDOM.random((count, 4)).astype(np.float32), axis=-1)


def _products() -> list[Row]:
    """Return rows of products of matrices."""
    return [
        _row("MatMul row", {"x": _floats(1, 512), "w": _floats(512, 1024)}),
        _row("MatMul rows", {"x": _floats(8, 512), "w": _floats(512, 1024)}),
        _row("MatMul batch", {"x": _floats(12, 64, 64), "w": _floats(12, 64, 64)}),
        _row("MatMul batch of rows", {"x": _floats(12, 1, 200), "w": _floats(12, 200, 64)}),
        _row("MatMul vector", {"x": _floats(512, 512), "w": _floats(512)}),
        _row("MatMul f64", {"x": _floats(128, 128).astype("f8"), "w": _floats(128, 128).astype("f8")}),
        _row("Gemm transposed row", {"x": _floats(1, 512), "w": _floats(1024, 512), "b": _floats(1024)}, transB=1),
        _row("Gemm transposed rows", {"x": _floats(8, 512), "w": _floats(1024, 512), "b": _floats(1024)}, transB=1),
        _row(
            "MatMulInteger",
            {"x": _integers(0, 255, 32, 256, dtype="u1")},
            {"w": _integers(-9, 9, 256, 256, dtype="i1")},
        ),
        _row(
            "MatMulInteger of many rows",
            {"x": _integers(0, 255, 128, 768, dtype="u1")},
            {"w": _integers(-9, 9, 768, 768, dtype="i1")},
        ),
        _row("Einsum", {"x": _floats(2, 8, 64, 32), "w": _floats(2, 8, 64, 32)}, equation="bhid,bhjd->bhij"),
    ]


def _windows() -> list[Row]:
    """Return rows of convolutions and poolings."""
    image = _floats(1, 64, 56, 56)
    return [
        _row("Conv 3x3", {"x": _floats(1, 32, 28, 28)}, {"w": _floats(32, 32, 3, 3)}, pads=[1] * 4),
        _row("Conv argument", {"x": _floats(1, 32, 28, 28), "w": _floats(32, 32, 3, 3)}, pads=[1] * 4),
        _row("Conv groups", {"x": _floats(1, 64, 28, 28)}, {"w": _floats(64, 16, 3, 3)}, pads=[1] * 4, group=4),
        _row("Conv 3-d", {"x": _floats(1, 16, 8, 16, 16)}, {"w": _floats(16, 16, 3, 3, 3)}, pads=[1] * 6),
        _row(
            "ConvTranspose", {"x": _floats(1, 64, 16, 16)}, {"w": _floats(64, 32, 4, 4)}, strides=[2, 2], pads=[1] * 4
        ),
        _row(
            "ConvInteger",
            {"x": _integers(0, 255, 1, 32, 28, 28, dtype="u1")},
            {"w": _integers(-9, 9, 32, 32, 3, 3, dtype="i1")},
        ),
        _row("MaxPool", {"x": image}, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        _row("AveragePool", {"x": image}, kernel_shape=[3, 3], pads=[1] * 4),
        _row("GlobalAveragePool", {"x": _floats(1, 512, 7, 7)}),
    ]


def _layers() -> list[Row]:
    """Return rows of recurrent layers and normalizations."""
    x, image = _floats(64, 100, 80), _floats(1, 64, 56, 56)
    return [
        *(
            _row(
                f"{kind} {size}",
                {"x": _floats(50, 1, 64)},
                {"W": _floats(1, gates * size, 64) / 8, "R": _floats(1, gates * size, size) / 8},
                hidden_size=size,
            )
            for kind, gates, size in (("LSTM", 4, 128), ("LSTM", 4, 512), ("GRU", 3, 64))
        ),
        *(_row(f"Softmax axis {axis}", {"x": x}, axis=axis) for axis in range(3)),
        _row("LayerNormalization", {"x": _floats(128, 768), "s": _floats(768), "b": _floats(768)}),
        _row("InstanceNormalization", {"x": image}, {"s": _floats(64), "b": _floats(64)}),
    ]


def _reductions() -> list[Row]:
    """Return rows of reductions."""
    x = _floats(64, 100, 80)
    return [
        *(_row(f"ReduceSum axis {axis}", {"x": x}, {"axes": [axis]}) for axis in range(3)),
        _row("ReduceMax", {"x": x}, axes=[0]),
        *(_row(f"ArgMax axis {axis}", {"x": x}, axis=axis) for axis in range(3)),
    ]


def _moves() -> list[Row]:
    """Return rows that move elements."""
    x = _floats(64, 100, 80)
    return [
        *(_row(f"Transpose {order}", {"x": x}, perm=order) for order in ([0, 2, 1], [1, 0, 2], [2, 1, 0])),
        _row("Transpose of bytes", {"x": _integers(0, 255, 2, 32, 56, 56, dtype="u1")}, perm=[0, 2, 3, 1]),
        _row("Concat", {"x": _floats(64, 50, 5), "w": _floats(64, 50, 3)}, axis=-1),
        _row("Gather rows", {"x": _floats(5000, 128), "i": _integers(0, 5000, 8, 64)}),
        _row("Gather columns", {"x": _floats(200, 128), "i": _integers(0, 128, 64)}, axis=-1),
        _row("GatherElements", {"x": _floats(200, 128), "i": _integers(0, 128, 200, 64)}, axis=1),
        _row("ScatterND", {"x": _floats(200, 128), "i": _integers(0, 200, 50, 1), "u": _floats(50, 128)}),
    ]


def _images() -> list[Row]:
    """Return rows of operators on images, and moves of blocks."""
    square, other = _floats(300, 300), _floats(300, 300)
    return [
        *(
            _row(
                f"Resize {mode}",
                {"x": _floats(1, 32, 28, 28)},
                {"": np.float32([]), "s": np.float32([1, 1, 2, 2])},
                mode=mode,
            )
            for mode in ("nearest", "linear", "cubic")
        ),
        _row("GridSample", {"x": _floats(1, 16, 28, 28), "g": np.tanh(_floats(1, 28, 28, 2))}),
        _row("Pad", {"x": _floats(1, 32, 28, 28)}, {"p": [0, 0, 3, 3, 0, 0, 3, 3]}),
        _row("Expand", {"x": _floats(300, 1)}, {"shape": [300, 300]}),
        _row("Tile", {"x": _floats(10, 30, 8)}, {"r": [2, 3, 4]}),
        _row("Where", {"c": square > 0, "x": square, "w": other}),
        _row("NonZero", {"x": square > 1}),
        _row("OneHot", {"i": _integers(0, 200, 500)}, {"depth": 200, "values": np.float32([0, 1])}),
    ]


def _searches() -> list[Row]:
    """Return rows of searches, detections and scans."""
    square = _floats(300, 300)
    return [
        _row("TopK", {"x": _floats(64, 1000)}, {"k": [10]}, outputs=2),
        _row("TopK of many", {"x": _floats(8, 8400)}, {"k": [300]}, outputs=2),
        *(_row(f"CumSum axis {axis}", {"x": square}, {"axis": axis}) for axis in range(2)),
        _row(
            "NonMaxSuppression",
            {"boxes": _boxes(1000)[None], "scores": _RANDOM.random((1, 5, 1000)).astype("f4")},
            {"most": [50], "overlap": np.float32([0.5]), "least": np.float32([0.3])},
        ),
        _row(
            "RoiAlign",
            {"x": _floats(1, 32, 50, 50), "r": _boxes(20) * 40},
            {"batch": np.zeros(20, np.int64)},
            output_height=7,
            output_width=7,
            sampling_ratio=2,
        ),
        _row("DFT", {"x": _floats(16, 512, 1)}),
    ]


def _elementwise() -> list[Row]:
    """Return rows of elementwise operators."""
    square = _floats(300, 300)
    names = ("Abs", "Atan", "Cos", "Erf", "Exp", "Gelu", "Log", "Round", "Sigmoid", "Softplus", "Sqrt", "Tanh")
    return [
        _row("Cast to f16", {"x": square}, to=onnx.TensorProto.FLOAT16),
        _row("Cast to i64", {"x": square * 50}, to=onnx.TensorProto.INT64),
        _row("QuantizeLinear", {"x": square}, {"scale": np.float32(0.1), "zero": np.uint8(3)}),
        _row("DynamicQuantizeLinear", {"x": square}, outputs=3),
        _row("Add of a column", {"x": square, "w": _floats(300, 1)}),
        _row("Div of integers", {"x": _integers(-1000, 1000, 300, 300), "w": _integers(1, 100, 300, 300)}),
        *(_row(name, {"x": _positive(300, 300), "w": _positive(300, 300)}) for name in ("Add", "Div", "Pow", "Less")),
        *(_row(name, {"x": _positive(300, 300)}, opset=20) for name in names),
    ]


def _model(row: Row, *, is_dynamic: bool) -> bytes:
    """Return the ONNX file of a row.   is_dynamic: whether all sizes of the inputs are symbolic."""

    def declared(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
        shape = [f"{name}{axis}" for axis in range(array.ndim)] if is_dynamic else array.shape
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    outputs = [f"y{i}" for i in range(row.outputs)]
    node = helper.make_node(row.op_type, [*row.inputs, *row.constants], outputs, **row.attributes)
    graph = helper.make_graph(
        [node],
        "operator",
        [declared(name, array) for name, array in row.inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in row.constants.items() if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", row.opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def _times(row: Row, target: str, *, is_dynamic: bool) -> list[float]:
    """Return the seconds of a run in relvm and in ONNX Runtime."""
    data, values = _model(row, is_dynamic=is_dynamic), dict(row.inputs)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    model = relvm.load_model(data, target=target, exec_mode="bytecode", threads=1)
    arguments = [values[name] for name in model.input_names]
    found = model(*arguments)
    for ours, theirs in zip(found if row.outputs > 1 else (found,), session.run(None, values), strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-3, atol=1e-3, err_msg=row.name)
    return least_times([lambda: model(*arguments), lambda: session.run(None, values)], _SECONDS)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--target", choices=("c", "bytecode"), default="c", help="how kernels run")
    parser.add_argument("--dynamic", action="store_true", help="make all sizes of the inputs symbolic")
    options = parser.parse_args(argv)
    ratios = []
    print("| operator | relvm us | ONNX Runtime us | ratio |\n|---|---|---|---|")
    tables = (_products, _windows, _layers, _reductions, _moves, _images, _searches, _elementwise)
    for row in (row for table in tables for row in table()):
        if options.names and not any(name in row.name for name in options.names):
            continue
        try:
            ours, theirs = _times(row, options.target, is_dynamic=options.dynamic)
        except relvm.errors.RelvmError as error:
            print(f"| {row.name} | {type(error).__name__} | | |", flush=True)
            continue
        ratios.append(ours / theirs)
        print(f"| {row.name} | {1e6 * ours:.1f} | {1e6 * theirs:.1f} | {ours / theirs:.2f} |", flush=True)
    print(f"\ngeometric mean of the {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
