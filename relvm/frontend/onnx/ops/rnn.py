"""Recurrent networks: one matrix product of the whole input with W, plus biases, then one operator for all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import AnyDim
from relvm.kernels.rnn.activations import ACTIVATIONS

_FAR = 2**63 - 1


@converts("RNN")
def _rnn(node: OnnxNode) -> tuple[Expr, ...]:
    rnn = _RnnInputs(node, 1)
    x = rnn.add_bias(rnn.input_product(), rnn.biases())
    return rnn.node_outputs(
        ops.rnn(
            x,
            rnn.recurrence_weights(),
            rnn.initial_state(5),
            rnn.sequence_lengths(),
            **rnn.operator_attributes(("tanh",)),
        )
    )


@converts("GRU")
def _gru(node: OnnxNode) -> tuple[Expr, ...]:
    """Passes the recurrence bias of the hidden gate to the operator gru as a separate argument.

    With linear_before_reset, this bias must be added before the reset gate is applied.
    """
    rnn = _RnnInputs(node, 3)
    hidden = rnn.hidden
    x, own = rnn.input_product(), rnn.zeros(rnn.directions, hidden)
    if biases := rnn.biases():
        first, second = biases
        own = rnn.columns(second, 2 * hidden, _FAR)
        into = rnn.columns(second, 0, 2 * hidden)
        second = node.emit(ops.concat(into, rnn.zeros(rnn.directions, hidden), axis=1))
        x = rnn.add_bias(x, (first, second))
    attributes = rnn.operator_attributes(("sigmoid", "tanh"))
    after = bool(node.attribute("linear_before_reset", 0))
    args = (x, rnn.recurrence_weights(), own, rnn.initial_state(5), rnn.sequence_lengths())
    return rnn.node_outputs(ops.gru(*args, reset_after=after, **attributes))


@converts("LSTM")
def _lstm(node: OnnxNode) -> tuple[Expr, ...]:
    rnn = _RnnInputs(node, 4)
    x = rnn.add_bias(rnn.input_product(), rnn.biases())
    peepholes = rnn.zeros(rnn.directions, 0)
    if node.has(7):
        peepholes = node.graph.with_shape(node.tensor(7), (rnn.directions, 3 * rnn.hidden))
    args = (x, rnn.recurrence_weights(), peepholes, rnn.initial_state(5), rnn.initial_state(6), rnn.sequence_lengths())
    coupled = bool(node.attribute("input_forget", 0))
    return rnn.node_outputs(ops.lstm(*args, coupled=coupled, **rnn.operator_attributes(("sigmoid", "tanh", "tanh"))))


class _RnnInputs:
    """The sizes and inputs of an RNN, GRU or LSTM node.

    node: the node.   gates: the number of gates of a cell.

    The attribute `x` is the input, of shape (steps, batch, inputs) for either value of the node's attribute layout.
    """

    def __init__(self, node: OnnxNode, gates: int) -> None:
        self.node = node
        self.gates = gates
        self.direction = node.attribute("direction", "forward")
        self.directions = 2 if self.direction == "bidirectional" else 1
        hidden = node.attribute("hidden_size") or node.type(2).known_shape[2]
        if not isinstance(hidden, int):
            raise RelvmUnsupportedError(f"hidden_size must be known, got {hidden}")
        self.hidden = hidden
        self.batch_first = node.integer("layout", 0, least=0, most=1) == 1
        for index, what in ((0, "X"), (1, "W"), (2, "R")):
            node.expect_rank(index, 3, what)
        x, self.weights = node.known_shape(0), node.known_shape(1)
        inputs = self.weights.tensor_type.known_shape[2]
        x = node.emit(ops.transpose(x, perm=(1, 0, 2))) if self.batch_first else x
        self.x = node.graph.with_shape(x, (*x.tensor_type.known_shape[:2], inputs))
        self.dtype = self.x.known_element_type

    def input_product(self) -> Expr:
        """Return the product of the input and W, of shape (steps, batch, directions * gates * hidden)."""
        width = self.directions * self.gates * self.hidden
        matrix = self.node.emit(ops.reshape(self.weights, self.node.shape([width, self.x.tensor_type.known_shape[2]])))
        return self.node.emit(ops.matmul(self.x, self.node.emit(ops.transpose(matrix, perm=(1, 0)))))

    def recurrence_weights(self) -> Expr:
        """Return the recurrence weights R, transposed to the shape (directions, hidden, gates * hidden)."""
        shape = (self.directions, self.gates * self.hidden, self.hidden)
        return self.node.emit(ops.transpose(self.node.graph.with_shape(self.node.tensor(2), shape), perm=(0, 2, 1)))

    def biases(self) -> tuple[Expr, Expr] | None:
        """Return the biases of W and of R, or None if the node has no biases.

        Each has the shape (directions, gates * hidden).
        """
        if not self.node.has(3):
            return None
        middle = self.gates * self.hidden
        both = self.node.graph.with_shape(self.node.tensor(3), (self.directions, 2 * middle))
        return self.columns(both, 0, middle), self.columns(both, middle, _FAR)

    def add_bias(self, x: Expr, biases: tuple[Expr, Expr] | None) -> Expr:
        if biases is None:
            return x
        total = self.node.emit(ops.add(*biases))
        row = self.node.emit(ops.reshape(total, self.node.shape([x.tensor_type.known_shape[2]])))
        return self.node.emit(ops.add(x, row))

    def columns(self, x: Expr, begin: int, end: int) -> Expr:
        """Return the columns `begin` to `end` (exclusive) of a matrix."""
        return self.node.emit(ops.slice(x, begin=(begin,), end=(end,), axes=(1,)))

    def zeros(self, *shape: AnyDim) -> Expr:
        zero = constant(np.zeros((), self.dtype.numpy))
        return self.node.emit(ops.broadcast_to(zero, self.node.shape(shape))) if shape else zero

    def initial_state(self, index: int) -> Expr:
        """Return the initial state (input `index`) of shape (directions, batch, hidden).  The default is zeros."""
        node = self.node
        shape: list[AnyDim] = [self.directions, self.x.tensor_type.known_shape[1], self.hidden]
        if not node.has(index):
            return self.zeros(*shape)
        given = node.tensor(index)
        if self.batch_first:
            given = node.emit(ops.transpose(given, perm=(1, 0, 2)))
        return node.graph.with_shape(given, tuple(shape))

    def sequence_lengths(self) -> Expr:
        if not self.node.has(4):
            return constant(np.zeros((0,), np.int32))
        return self.node.graph.with_shape(self.node.tensor(4), (self.x.tensor_type.known_shape[1],))

    def operator_attributes(self, default_activations: tuple[str, ...]) -> dict[str, Any]:
        """Return the attributes for the relvm operator.

        Each activation with a parameter takes the next number of the list activation_alpha or activation_beta.  Source:
        ONNX Runtime, core/providers/cpu/rnn/rnn_helpers.cc.

        default_activations: the activations of one direction if the node does not specify them.
        """
        node = self.node
        given = node.attribute("activations")
        names = list(default_activations * self.directions) if given is None else [name.lower() for name in given]
        for name in names:
            if name not in ACTIVATIONS:
                raise RelvmUnsupportedError(f"activation {name} is not supported")
        numbers = {}
        for which in ("alpha", "beta"):
            left = list(node.attribute(f"activation_{which}", []))
            usual_numbers = [getattr(ACTIVATIONS[name], which) for name in names]
            numbers[which] = tuple(
                0.0 if number is None else left.pop(0) if left else number for number in usual_numbers
            )
            if left:
                raise RelvmFormatError(
                    f"activation_{which} has {counted(len(left), 'element')} more than the activations {names} take"
                )
        clip = node.attribute("clip")
        return {"direction": self.direction, "activations": tuple(names), "clip": clip, **numbers}

    def node_outputs(self, call: Expr) -> tuple[Expr, ...]:
        """Bind `call`, a call of the relvm operator, and return the outputs of the node in the node's layout."""
        node = self.node
        results = node.fields(node.emit(call))
        if not self.batch_first:
            return tuple(results)
        states = [node.emit(ops.transpose(state, perm=(1, 0, 2))) for state in results[1:]]
        return node.emit(ops.transpose(results[0], perm=(2, 0, 1, 3))), *states


@converts("ReverseSequence")
def _reverse_sequence(node: OnnxNode) -> Expr:
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    if (time, batch) not in ((0, 1), (1, 0)):
        raise RelvmFormatError(f"time_axis is {time} and batch_axis is {batch}, expected 0 and 1, or 1 and 0")
    return ops.reverse_sequence(node.tensor(0), node.tensor(1), time_axis=time)
