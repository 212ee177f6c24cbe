"""Recurrent networks: one matrix product of the whole input, then one operator for all steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.ops.products import matmul
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import I64
from relvm.ir.expr import Expr, Shape, constant
from relvm.ir.symbolic import AnyDim


def _reordered(node: Node, x: Expr, order: Sequence[int], size: int) -> Expr:
    """Return x with its gates, which are groups of `size` rows, in the order `order`."""
    if list(order) == list(range(len(order))):
        return x
    rows = np.concatenate([np.arange(gate * size, (gate + 1) * size) for gate in order]).astype(np.int64)
    return node.emit(ops.gather(x, constant(rows), axis=0))


_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}  # the order of the gates in relvm's operators


def _run_layer(
    node: Node,
    kind: str,
    x: Expr,
    states: Sequence[Expr],
    cell: Sequence[Expr],
    reverse: bool,
    activation: str,
    projection: Expr | None = None,
) -> tuple[Expr, list[Expr]]:
    """Return the states after all steps of one layer in one direction, and the final states.

    x: a tensor of shape (steps, batch, inputs).   states: tensors of shape (batch, hidden).
    cell: the weights of the input and of the state, and their biases if there are any.
    projection: the matrix, of shape (size of the first state, hidden), by which an LSTM multiplies its first state.
    """
    w, r, *biases = (node.wide(each) for each in cell)
    order, dtype = _GATES[kind], x.known_element_type
    width = known_int(shape_of(r)[0], "the size of the state")
    hidden = width // len(order)
    w, r = (_reordered(node, each, order, hidden) for each in (w, r))
    product = node.emit(matmul(node, x, node.emit(ops.transpose(w, perm=(1, 0)))))
    own = node.full(0, (1, hidden), dtype)
    if biases:
        first, second = (_reordered(node, each, order, hidden) for each in biases)
        if kind == "gru":  # the bias of the new state is added before the reset gate is applied
            own = node.reshaped(node.emit(ops.slice(second, begin=(2 * hidden,), end=(width,), axes=(0,))), (1, hidden))
            zeros = node.full(0, (hidden,), dtype)
            gates = node.emit(ops.slice(second, begin=(0,), end=(2 * hidden,), axes=(0,)))
            second = node.emit(ops.concat(gates, zeros, axis=0))
        product = node.emit(ops.add(product, ops.add(first, second)))
    if projection is not None:  # the operator computes the states before the projection
        projection = node.wide(projection)
        steps = shape_of(x)[0]
        place = node.reshaped(node.emit(ops.iota(Shape((steps,)))), (steps, 1, 1))
        is_first = node.emit(ops.equal(place, node.number(steps - 1 if reverse else 0, I64)))
        first = matmul(node, states[0], node.emit(ops.transpose(r, perm=(1, 0))))
        product = node.emit(ops.add(product, ops.where(is_first, first, 0)))
        states = [node.full(0, shape_of(states[1]), dtype), states[1]]
        r = node.emit(matmul(node, r, projection))
    recurrent = node.reshaped(node.emit(ops.transpose(r, perm=(1, 0))), (1, hidden, width))
    initial = [node.reshaped(state, (1, *shape_of(state))) for state in states]
    lengths = constant(np.zeros(0, np.int32))
    direction = "reverse" if reverse else "forward"
    if kind == "lstm":
        peepholes = node.full(0, (1, 0), dtype)
        result = ops.lstm(product, recurrent, peepholes, *initial, lengths, direction=direction)
    elif kind == "gru":
        result = ops.gru(product, recurrent, own, *initial, lengths, reset_after=True, direction=direction)
    else:
        result = ops.rnn(product, recurrent, *initial, lengths, direction=direction, activations=(activation,))
    output, *finals = node.items(node.emit(result))
    steps, _, batch, _ = shape_of(output)
    dims: tuple[AnyDim, ...] = (steps, batch, hidden)
    output, finals = node.reshaped(output, dims), [node.reshaped(each, (batch, hidden)) for each in finals]
    if projection is not None:
        columns = node.emit(ops.transpose(projection, perm=(1, 0)))
        output, finals[0] = (node.emit(matmul(node, each, columns)) for each in (output, finals[0]))
    return output, finals


@converts("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def _recurrent(
    node: Node,
    input: Expr,
    hx: Expr | Sequence[Expr],
    params: Sequence[Expr],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Expr, ...]:
    if dropout and train:
        raise RelvmUnsupportedError("random numbers are not supported (dropout is not 0)")
    kind, _, activation = node.node.target.split(".")[-2].partition("_")  # such as rnn_tanh
    states = [hx] if isinstance(hx, Expr) else hx
    x = node.wide(input)
    is_flat = len(shape_of(x)) == 2
    if is_flat:
        x = node.emit(ops.expand_dims(x, axes=(1,)))
        states = [node.emit(ops.expand_dims(state, axes=(1,))) for state in states]
    elif batch_first:
        x = node.emit(ops.transpose(x, perm=(1, 0, 2)))
    directions = 2 if bidirectional else 1
    width = len(params) // (num_layers * directions)
    plain = 4 if has_biases else 2  # an LSTM with projections has one parameter more
    finals: list[list[Expr]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            cell = params[at * width : (at + 1) * width]
            initial = [
                node.emit(ops.slice(node.wide(state), begin=(at,), end=(at + 1,), axes=(0,))) for state in states
            ]
            initial = [node.reshaped(each, shape_of(each)[1:]) for each in initial]
            projection = cell[plain] if width > plain else None
            output, last = _run_layer(
                node, kind, x, initial, cell[:plain], bool(direction), activation, projection=projection
            )
            outputs.append(output)
            for found, each in zip(finals, last, strict=True):
                found.append(node.reshaped(each, (1, *shape_of(each))))
        x = outputs[0] if directions == 1 else node.emit(ops.concat(*outputs, axis=2))
    ends = [found[0] if len(found) == 1 else node.emit(ops.concat(*found, axis=0)) for found in finals]
    if is_flat:
        return ops.squeeze(x, axes=(1,)), *(ops.squeeze(end, axes=(1,)) for end in ends)
    return (ops.transpose(x, perm=(1, 0, 2)) if batch_first else x), *ends


@converts("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def _recurrent_cell(
    node: Node,
    input: Expr,
    hx: Expr | Sequence[Expr],
    w_ih: Expr,
    w_hh: Expr,
    b_ih: Expr | None = None,
    b_hh: Expr | None = None,
) -> tuple[Expr, ...]:
    """Computes one step as a layer of one step."""
    kind, _, activation = node.node.target.split(".")[-2].removesuffix("_cell").partition("_")
    states = [node.wide(state) for state in ([hx] if isinstance(hx, Expr) else hx)]
    x = node.emit(ops.expand_dims(node.wide(input), axes=(0,)))
    cell = [each for each in (w_ih, w_hh, b_ih, b_hh) if each is not None]
    return tuple(_run_layer(node, kind, x, states, cell, False, activation)[1])
