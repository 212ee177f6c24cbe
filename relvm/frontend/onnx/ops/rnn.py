"""Recurrent networks: one matrix product of the whole input with W, plus biases, then one operator for all steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.ir.expr import Expr, constant
from relvm.ir.symbolic import AnyDim
from relvm.kernels.rnn.activations import ACTIVATIONS

_FAR = 2**63 - 1


@converts("RNN")
def _rnn(node: OnnxNode) -> tuple[Expr, ...]:
    sizes = _Sizes(node, 1)
    x = sizes.add_bias(sizes.product(), sizes.biases())
    return sizes.results(ops.rnn(x, sizes.recurrence(), sizes.state(5), sizes.lengths(), **sizes.attributes(("tanh",))))


@converts("GRU")
def _gru(node: OnnxNode) -> tuple[Expr, ...]:
    """Passes the recurrence bias of the hidden gate to the operator gru as a separate argument.

    With linear_before_reset, this bias must be added before the reset gate is applied.
    """
    sizes = _Sizes(node, 3)
    hidden = sizes.hidden
    x, own = sizes.product(), sizes.zeros(sizes.directions, hidden)
    if biases := sizes.biases():
        first, second = biases
        own = sizes.part(second, 2 * hidden, _FAR)
        into = sizes.part(second, 0, 2 * hidden)
        second = node.emit(ops.concat(into, sizes.zeros(sizes.directions, hidden), axis=1))
        x = sizes.add_bias(x, (first, second))
    attributes = sizes.attributes(("sigmoid", "tanh"))
    after = bool(node.attribute("linear_before_reset", 0))
    args = (x, sizes.recurrence(), own, sizes.state(5), sizes.lengths())
    return sizes.results(ops.gru(*args, reset_after=after, **attributes))


@converts("LSTM")
def _lstm(node: OnnxNode) -> tuple[Expr, ...]:
    sizes = _Sizes(node, 4)
    x = sizes.add_bias(sizes.product(), sizes.biases())
    peepholes = sizes.zeros(sizes.directions, 0)
    if node.has(7):
        peepholes = node.graph.with_shape(node.tensor(7), (sizes.directions, 3 * sizes.hidden))
    args = (x, sizes.recurrence(), peepholes, sizes.state(5), sizes.state(6), sizes.lengths())
    coupled = bool(node.attribute("input_forget", 0))
    return sizes.results(ops.lstm(*args, coupled=coupled, **sizes.attributes(("sigmoid", "tanh", "tanh"))))


class _Sizes:
    """The sizes and inputs that RNN, GRU and LSTM share.

    x: the input, of shape (steps, batch, inputs) for either value of the attribute layout.   gates: how many gates a
    cell has.
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
        self.batch_first = node.attribute("layout", 0) == 1
        x, self.weights = node.known_shape(0), node.known_shape(1)
        inputs = self.weights.tensor_type.known_shape[2]
        x = node.emit(ops.transpose(x, perm=(1, 0, 2))) if self.batch_first else x
        self.x = node.graph.with_shape(x, (*x.tensor_type.known_shape[:2], inputs))
        self.dtype = self.x.known_element_type

    def product(self) -> Expr:
        """Return x times W, of shape (steps, batch, directions * gates * hidden)."""
        width = self.directions * self.gates * self.hidden
        matrix = self.node.emit(ops.reshape(self.weights, self.node.shape([width, self.x.tensor_type.known_shape[2]])))
        return self.node.emit(ops.matmul(self.x, self.node.emit(ops.transpose(matrix, perm=(1, 0)))))

    def recurrence(self) -> Expr:
        """Return the transposed recurrence weights R, of shape (directions, hidden, gates * hidden).

        Each row belongs to a unit of the previous hidden state.
        """
        shape = (self.directions, self.gates * self.hidden, self.hidden)
        return self.node.emit(ops.transpose(self.node.graph.with_shape(self.node.tensor(2), shape), perm=(0, 2, 1)))

    def biases(self) -> tuple[Expr, Expr] | None:
        """Return the biases of W and of R, each of shape (directions, gates * hidden), or None if the node has no
        biases."""
        if not self.node.has(3):
            return None
        middle = self.gates * self.hidden
        both = self.node.graph.with_shape(self.node.tensor(3), (self.directions, 2 * middle))
        return self.part(both, 0, middle), self.part(both, middle, _FAR)

    def add_bias(self, x: Expr, biases: tuple[Expr, Expr] | None) -> Expr:
        if biases is None:
            return x
        total = self.node.emit(ops.add(*biases))
        row = self.node.emit(ops.reshape(total, self.node.shape([x.tensor_type.known_shape[2]])))
        return self.node.emit(ops.add(x, row))

    def part(self, x: Expr, begin: int, end: int) -> Expr:
        """Return the columns `begin` to `end` (exclusive) of a matrix."""
        return self.node.emit(ops.slice(x, begin=(begin,), end=(end,), axes=(1,)))

    def zeros(self, *shape: AnyDim) -> Expr:
        """Return a tensor of zeros.  Constant folding makes small tensors constants."""
        zero = constant(np.zeros((), self.dtype.numpy))
        return self.node.emit(ops.broadcast_to(zero, self.node.shape(shape))) if shape else zero

    def state(self, index: int) -> Expr:
        """Return input `index`, an initial state, of shape (directions, batch, hidden).  The default is zeros."""
        node = self.node
        shape: list[AnyDim] = [self.directions, self.x.tensor_type.known_shape[1], self.hidden]
        if not node.has(index):
            return self.zeros(*shape)
        given = node.tensor(index)
        if self.batch_first:
            given = node.emit(ops.transpose(given, perm=(1, 0, 2)))
        return node.graph.with_shape(given, tuple(shape))

    def lengths(self) -> Expr:
        if not self.node.has(4):
            return constant(np.zeros((0,), np.int32))
        return self.node.graph.with_shape(self.node.tensor(4), (self.x.tensor_type.known_shape[1],))

    def attributes(self, usual: tuple[str, ...]) -> dict[str, Any]:
        """Return the attributes of the relvm operator.  usual: the default activations of one direction.

        Each activation with parameters takes the next numbers of the lists activation_alpha and activation_beta.
        Source: ONNX Runtime, core/providers/cpu/rnn/rnn_helpers.cc.
        """
        node = self.node
        given = node.attribute("activations")
        names = list(usual * self.directions) if given is None else [name.lower() for name in given]
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
                    f"activation_{which} has {len(left)} elements more than the activations {names} take"
                )
        clip = node.attribute("clip")
        return {"direction": self.direction, "activations": tuple(names), "clip": clip, **numbers}

    def results(self, call: Expr) -> tuple[Expr, ...]:
        """Return the outputs of the node, in the node's layout, from a call of the relvm operator."""
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
