"""DynamicQuantizeLSTM: an LSTM that quantizes the inputs of its matrix products dynamically.

The input x is quantized once, by the range of all its elements.  The state is quantized at every step, by the range of
the states of all sequences of a batch.  Each direction has its own range.

Source: ONNX Runtime, contrib_ops/cpu/quantization/dynamic_quantize_lstm.cc.
"""

from __future__ import annotations

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.onnx.dynamic_sizes import filled, iota
from relvm.frontend.onnx.ops.quantized import dynamic_quantized_matmul
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, input_tensor, shaped_input
from relvm.frontend.onnx_messages import Message, make_graph, make_node
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import Expr

_MICROSOFT = "com.microsoft"
_ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")  # activations without parameters
_OPSET = 17

_STATE = ("h", "c", "r", "r_scale", "r_zero")
_NEXT_STATE = ("h_ahead", "c_ahead", "r_same", "scale_same", "zero_same")


def _step(i: str, u: str, h: str) -> Message:
    """Return the graph of one step of the LSTM.

    The inputs of the graph are _STATE, the contributions x of the input to the gates, and `alive`: whether each
    sequence has not ended yet.  r, r_scale and r_zero are the quantized weights R.

    i, u, h: the names of the activation functions of the gates, of the candidate cell state, and of the cell state in
    the output.
    """
    steps: tuple[tuple[str, str, str, dict[str, int | float]], ...] = (
        ("bytes h_scale h_zero", "DynamicQuantizeLinear", "h", {}),
        ("sums", "MatMulInteger", "bytes r h_zero r_zero", {}),
        ("numbers", "Cast", "sums", {"to": 1}),
        ("factor", "Mul", "h_scale r_scale", {}),
        ("product", "Mul", "numbers factor", {}),
        ("gates", "Add", "x product", {}),
        ("i_in o_in f_in u_in", "Split", "gates", {"axis": 1}),
        ("i", i, "i_in", {}),
        ("o", i, "o_in", {}),
        ("f", i, "f_in", {}),
        ("u", u, "u_in", {}),
        ("kept", "Mul", "f c", {}),
        ("added", "Mul", "i u", {}),
        ("c_new", "Add", "kept added", {}),
        ("seen", h, "c_new", {}),
        ("h_new", "Mul", "o seen", {}),
        ("c_ahead", "Where", "alive c_new c", {}),
        ("h_ahead", "Where", "alive h_new h", {}),
        ("zero", "Constant", "", {"value_float": 0.0}),
        ("row", "Where", "alive h_new zero", {}),
        ("r_same", "Identity", "r", {}),
        ("scale_same", "Identity", "r_scale", {}),
        ("zero_same", "Identity", "r_zero", {}),
    )
    nodes = [make_node(name, read.split(), made.split(), **attributes) for made, name, read, attributes in steps]
    return make_graph(nodes, [*_STATE, "x", "alive"], [*_NEXT_STATE, "row"])


@converts("DynamicQuantizeLSTM", domain=_MICROSOFT)
def _dynamic_quantize_lstm(node: OnnxNode) -> tuple[Expr, Expr, Expr]:
    """Takes x, W, R, biases, sequence lengths, initial h and c, and the scales and zero points of W and R."""
    direction = node.attribute("direction", "forward")
    backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}.get(direction)
    if backwards is None:
        raise RelvmUnsupportedError(f"direction {direction!r} is not supported")
    if node.has(7) or node.attribute("clip") or node.attribute("input_forget", 0):
        raise RelvmUnsupportedError("peepholes, clip and input_forget are not supported")
    names = node.attribute("activations") or [*_ACTIVATIONS[:2], "Tanh"] * len(backwards)
    names = [name.capitalize() for name in names]
    if len(names) != 3 * len(backwards) or not set(names) <= set(_ACTIVATIONS):
        raise RelvmUnsupportedError(
            f"activations {names} are not supported: expected three of {_ACTIVATIONS} for each direction"
        )
    rows = node.type(2).shape
    if rows is None or len(rows) != 3 or rows[0] != len(backwards):
        raise RelvmShapeError(f"R is {node.type(2)}, expected one matrix for each of {len(backwards)} directions")
    results = [_import_direction(node, i, backward, names[3 * i : 3 * i + 3]) for i, backward in enumerate(backwards)]
    joined = [_stack(parts, axis) for parts, axis in zip(zip(*results, strict=True), (1, 0, 0), strict=True)]
    return joined[0], joined[1], joined[2]


def _stack(parts: tuple[TensorExpr, ...], axis: int) -> Expr:
    first, *others = (part.apply(ops.expand_dims, axes=(axis,)) for part in parts)
    return first.apply(ops.concat, *others, axis=axis).expr


def _import_direction(
    node: OnnxNode, direction: int, backward: bool, activations: list[str]
) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Import one direction of the LSTM.

    Return the states h of all steps, of shape (steps, batch, hidden), and the final states h and c.

    direction: the index of the direction in the inputs.
    backward: whether the direction runs from the last step to the first.
    activations: the names of the activation functions.
    """
    x = shaped_input(node, 0)
    steps, batch, _ = x.shape
    r, r_scale, r_zero = (input_tensor(node, index).select(direction, 0) for index in (2, 10, 11))
    total = dynamic_quantized_matmul(
        node, x.expr, *(input_tensor(node, index).select(direction, 0).expr for index in (1, 8, 9))
    )
    gates = TensorExpr(node, total)
    if node.has(3):
        first, second = (
            input_tensor(node, 3)
            .select(direction, 0)
            .apply(ops.slice, begin=(part * r.shape[1],), end=((part + 1) * r.shape[1],))
            for part in (0, 1)
        )
        gates = gates + (first + second)
    states = [
        input_tensor(node, index).select(direction, 0).expr
        if node.has(index)
        else filled(node, np.float32(0), batch, r.shape[0])
        for index in (5, 6)
    ]
    lengths = shaped_input(node, 4) if node.has(4) else None
    alive = TensorExpr(node, node.emit(filled(node, np.bool_(True), steps, 1, 1)))
    turned = backward
    if lengths is not None:
        alive = iota(node, steps, 1, 1) < lengths.cast(I64).apply(ops.expand_dims, axes=(0, 2))
        gates, turned = (_reversed(gates, lengths), False) if backward else (gates, False)
    h, c, rows = _import_steps(
        node, (*states, r.expr, r_scale.expr, r_zero.expr, gates.expr, alive.expr), turned, activations
    )
    return (_reversed(rows, lengths) if backward and lengths is not None else rows), h, c


def _reversed(x: TensorExpr, lengths: TensorExpr) -> TensorExpr:
    return x.apply(ops.reverse_sequence, lengths.cast(I64), time_axis=0)


def _import_steps(
    node: OnnxNode, values: tuple[Expr, ...], backward: bool, activations: list[str]
) -> tuple[TensorExpr, TensorExpr, TensorExpr]:
    """Import a Scan over the steps of an LSTM.  Return the final states h and c, and the outputs of all steps.

    values: the inputs of the Scan, in the order of the inputs of the graph `_step`.
    backward: whether the Scan runs from the last step to the first.
    activations: the names of the activation functions.
    """
    body = _step(*activations)
    inputs, outputs = [info.name for info in body.input], [info.name for info in body.output]
    given = [f"{name}_given" for name in inputs]
    scan = make_node(
        "Scan",
        given,
        outputs,
        body=body,
        num_scan_inputs=2,
        scan_input_directions=[int(backward)] * 2,
        scan_output_directions=[int(backward)],
    )
    scope = node.graph.function_context({"": _OPSET}, node.here, (_MICROSOFT, node.proto.op_type, ""))
    scope.values.update(zip(given, values, strict=True))
    h, c, *_, rows = (TensorExpr(node, scope.tensor(value)) for value in scope.import_nodes([scan], outputs))
    assert rows.type.dtype == F32
    return h, c, rows
