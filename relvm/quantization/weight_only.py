"""Weight-only quantization: weights are stored as integers, and DequantizeLinear restores floats before their use.

Weights of 8 bits have a scale for each channel.  Weights of 4 bits have a scale for each block of the axis that the
operator sums over (DequantizeLinear-21).  Both are symmetric: the zero point is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relvm.quantization.graphs import Axes, all_graphs, all_nodes, weights

# Factors of the largest magnitude to try as the range of 4-bit weights.  A smaller range clips a few elements, and
# rounds the others less.
_RANGES = (1, 0.95, 0.9, 0.85, 0.8)


def quantize_weights(model: Any, bits: int, block_size: int) -> None:
    """Quantize the weights of a model, in place.

    Weights whose integers and scales would take more memory than the floats are not changed.

    model: an onnx.ModelProto.   bits: 8 or 4.   block_size: the number of elements that share a scale, for 4 bits.
    """
    names = {name for node in all_nodes(model.graph) for name in (*node.input, *node.output)}
    names |= {tensor.name for graph in all_graphs(model.graph) for tensor in graph.initializer}
    for graph in all_graphs(model.graph):
        found = weights(graph)
        tensors, nodes = [], []
        for tensor in graph.initializer:
            axes = found.get(tensor.name)
            replacement = _dequantized(tensor, axes, bits, block_size, names) if axes else None
            if replacement is None:
                tensors.append(tensor)
                continue
            tensors += replacement[0]
            nodes += replacement[1]
        nodes += graph.node
        del graph.initializer[:], graph.node[:]
        graph.initializer.extend(tensors)
        graph.node.extend(nodes)


def _dequantized(
    tensor: Any, axes: Axes, bits: int, block_size: int, names: set[str]
) -> tuple[list[Any], list[Any]] | None:
    """Return initializers with the integers and scales of a weight, and nodes that compute the weight from them.

    Return None if they would not be smaller than the weight, or if the weight has infinite elements or NaN.

    tensor: the weight.   axes: its axes.   names: the names of all values, to which the names of new values are added.
    """
    from onnx import helper, numpy_helper

    values = numpy_helper.to_array(tensor)
    shape, axis, block = _layout(values.shape, axes, bits, block_size)
    if values.size == 0 or not np.isfinite(values.astype(np.float32)).all():
        return None
    integers, scales = _quantized(values.reshape(shape).astype(np.float32), axis, block, bits)
    if integers.size * bits / 8 + scales.size * values.itemsize >= values.nbytes:
        return None
    name, scale_name = (_new_name(f"{tensor.name}_{suffix}", names) for suffix in (f"int{bits}", "scale"))
    tensors = [
        _integer_tensor(name, integers, bits),
        numpy_helper.from_array(scales.astype(values.dtype), scale_name),
    ]
    options: dict[str, Any] = {"axis": axis} | ({"block_size": block} if block else {})
    if shape == values.shape:
        return tensors, [helper.make_node("DequantizeLinear", [name, scale_name], [tensor.name], name, **options)]
    matrix, shape_name = (_new_name(f"{tensor.name}_{suffix}", names) for suffix in ("matrix", "shape"))
    tensors.append(numpy_helper.from_array(np.array(values.shape, np.int64), shape_name))
    return tensors, [
        helper.make_node("DequantizeLinear", [name, scale_name], [matrix], name, **options),
        helper.make_node("Reshape", [matrix, shape_name], [tensor.name], shape_name),
    ]


def _layout(shape: tuple[int, ...], axes: Axes, bits: int, block_size: int) -> tuple[tuple[int, ...], int, int]:
    """Return the shape in which a weight is stored, the axis of DequantizeLinear, and the size of a block along it.

    The block is 0 for 8 bits, for which the axis is that of the channels.  With 4 bits, the weights of a convolution
    are stored as a matrix, so that a block can cover the input channels and the positions of the kernel.
    """
    if bits == 8:
        return shape, axes.channel, 0
    if len(shape) > 2 and axes == Axes(0, 1):
        shape, axes = (shape[0], math.prod(shape[1:])), Axes(0, 1)
    return shape, axes.reduction, min(block_size, shape[axes.reduction])


def _quantized(values: np.ndarray, axis: int, block: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers, as i8, and the scales of weights.

    axis: the axis that is divided into blocks, each of which has its own scale.
    block: the size of a block.  If it is 0, each index of the axis has its own scale.
    """
    if not block:
        rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
        integers, scales = _quantized_rows(rows, bits)
        moved = np.moveaxis(values, axis, 0).shape
        return np.moveaxis(integers.reshape(moved), 0, axis), scales
    size = values.shape[axis]
    count = -(-size // block)
    last = np.moveaxis(values, axis, -1)
    padded = np.pad(last, [*[(0, 0)] * (last.ndim - 1), (0, count * block - size)])
    integers, scales = _quantized_rows(padded.reshape(-1, block), bits)
    integers = integers.reshape(padded.shape)[..., :size]
    return np.moveaxis(integers, -1, axis), np.moveaxis(scales.reshape(*last.shape[:-1], count), -1, axis)


def _quantized_rows(rows: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers of each row, and its scale: the one of the tried scales with the least squared error."""
    most = 2 ** (bits - 1) - 1
    largest = np.abs(rows).max(axis=1, initial=0)
    largest[largest == 0] = most
    best, scales = np.full(len(rows), np.inf, np.float32), np.empty(len(rows), np.float32)
    integers = np.empty(rows.shape, np.int8)
    for fraction in _RANGES if bits == 4 else _RANGES[:1]:
        scale = largest * np.float32(fraction / most)
        rounded = np.clip(np.rint(rows / scale[:, None]), -most - (bits == 4), most)
        error = np.square(rounded * scale[:, None] - rows).sum(axis=1)
        is_better = error < best
        best[is_better], scales[is_better] = error[is_better], scale[is_better]
        integers[is_better] = rounded[is_better]
    return integers, scales


def _integer_tensor(name: str, integers: np.ndarray, bits: int) -> Any:
    """Return an i8 or i4 tensor.  Two elements of i4 share a byte, the first one in its lower half."""
    from onnx import TensorProto, helper

    if bits == 8:
        return helper.make_tensor(name, TensorProto.INT8, integers.shape, integers.tobytes(), raw=True)
    flat = integers.ravel().view(np.uint8) & 15
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return helper.make_tensor(name, TensorProto.INT4, integers.shape, (flat[::2] | flat[1::2] << 4).tobytes(), raw=True)


def _new_name(name: str, names: set[str]) -> str:
    """Return `name`, with a number added if `names` contains it, and add it to `names`."""
    number, free = 1, name
    while free in names:
        free, number = f"{name}_{number}", number + 1
    names.add(free)
    return free
