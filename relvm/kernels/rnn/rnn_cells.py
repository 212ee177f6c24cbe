"""Cells of recurrent networks (GRU, LSTM, RNN), as loop nests and as NumPy functions.

relvm/ops/rnn.py has their formulas.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmShapeError
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import Buffer, Literal, Scalar, select
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.rnn.activations import BoundActivation, choose_activations
from relvm.kernels.rnn.rnn_steps import DIRECTIONS, SequenceBatch, SequenceStep, generate_steps


def rnn_kernel(k: KernelBuilder, inputs, outputs, *, direction, activations, alpha, beta, clip) -> None:
    (x, r, h, lengths), (y, last) = inputs, outputs
    hidden = h.shape[2]
    chosen = choose_activations("rnn", activations, alpha, beta, ("tanh",), h.shape[0])

    def step(rows: SequenceBatch) -> None:
        (f,) = chosen[rows.direction]
        rows.multiply(last, rows.at_h, hidden, 0, hidden)
        with rows.each_active_sequence() as at, k.loop(hidden, name="j", simd=True) as j:
            total = k.let("total", x.flat(at.at_x + j) + rows.sums[at.at_sums + j])
            _store_state(k, last, y, at, j, f.point(_clip(total, clip)))

    generate_steps(k, "rnn", x, r, [(h, last)], lengths, y, direction, step)


def gru_kernel(k: KernelBuilder, inputs, outputs, *, reset_after, direction, activations, alpha, beta, clip) -> None:
    (x, r, b, h, lengths), (y, last) = inputs, outputs
    hidden = h.shape[2]
    width = 3 * hidden
    chosen = choose_activations("gru", activations, alpha, beta, ("sigmoid", "tanh"), h.shape[0])

    def step(rows: SequenceBatch) -> None:
        f, g = chosen[rows.direction]
        sums = rows.sums

        def total(at: SequenceStep, part: int, j: Scalar) -> Scalar:
            return _clip(
                k.let("total", x.flat(at.at_x + part * hidden + j) + sums[at.at_sums + part * hidden + j]), clip
            )

        rows.multiply(last, rows.at_h, hidden, 0, width if reset_after else 2 * hidden)
        if not reset_after:  # the reset state overwrites the sums of the reset gate
            with rows.each_sequence() as at, k.loop(hidden, name="j", simd=True) as j:
                reset = f.point(total(at, 1, j)) * last.flat(at.at_h + j)
                k.store(sums, (at.at_sums + hidden + j,), reset)
            rows.multiply(sums, Literal(hidden, I64), width, 2 * hidden, hidden)
        with rows.each_active_sequence() as at, k.loop(hidden, name="j", simd=True) as j:
            own, bias = x.flat(at.at_x + 2 * hidden + j), b.flat(j + rows.direction * hidden)
            product = sums[at.at_sums + 2 * hidden + j]
            new = own + f.point(total(at, 1, j)) * (product + bias) if reset_after else own + bias + product
            z = k.let("z", f.point(total(at, 0, j)))
            new = g.point(_clip(k.let("n", new), clip))
            _store_state(k, last, y, at, j, (1 - z) * new + z * last.flat(at.at_h + j))

    generate_steps(k, "gru", x, r, [(h, last)], lengths, y, direction, step)


def lstm_kernel(k: KernelBuilder, inputs, outputs, *, coupled, direction, activations, alpha, beta, clip) -> None:
    (x, r, p, h, c, lengths), (y, last, last_c) = inputs, outputs
    hidden = h.shape[2]
    chosen = choose_activations("lstm", activations, alpha, beta, ("sigmoid", "tanh", "tanh"), h.shape[0])
    peeps = p.shape[1] != 0

    def step(rows: SequenceBatch) -> None:
        f, g, h_ = chosen[rows.direction]
        rows.multiply(last, rows.at_h, hidden, 0, 4 * hidden)
        with rows.each_active_sequence() as at, k.loop(hidden, name="j", simd=True) as j:

            def total(part: int) -> Scalar:
                return x.flat(at.at_x + part * hidden + j) + rows.sums[at.at_sums + part * hidden + j]

            def gate(part: int, peephole: int, state: Scalar) -> Scalar:
                value = total(part)
                if peeps:
                    value = value + p.flat(j + (3 * rows.direction + peephole) * hidden) * state
                return k.let("gate", f.point(_clip(k.let("total", value), clip)))

            old = k.let("old", last_c.flat(at.at_h + j))
            input_gate = gate(0, 0, old)
            forget_gate = 1 - input_gate if coupled else gate(2, 2, old)
            new = k.let("new", forget_gate * old + input_gate * g.point(_clip(k.let("total", total(3)), clip)))
            k.store(last_c, (at.at_h + j,), new)
            _store_state(k, last, y, at, j, gate(1, 1, new) * h_.point(new))

    generate_steps(k, "lstm", x, r, [(h, last), (c, last_c)], lengths, y, direction, step)


def _store_state(k: KernelBuilder, last: Buffer, y: Buffer, at: SequenceStep, j: Scalar, state: Scalar) -> None:
    state = k.let("state", state)
    k.store(last, (at.at_h + j,), state)
    k.store(y, (at.at_y + j,), state)


def _clip(x: Scalar, clip: float | None) -> Scalar:
    if clip is None:
        return x
    return select(x < -clip, Literal(-clip, x.dtype), select(x > clip, Literal(clip, x.dtype), x))


Cell = Callable[[np.ndarray, list[np.ndarray], int, list[BoundActivation]], list[np.ndarray]]


def numpy_rnn(x, r, h, lengths, *, direction, activations, alpha, beta, clip):
    def cell(total, states, number, chosen):
        (f,) = chosen
        return [f.numpy(_numpy_clip(total + states[0] @ r[number], clip))]

    chosen = choose_activations("rnn", activations, alpha, beta, ("tanh",), h.shape[0])
    return _numpy_steps("rnn", x, [h], lengths, direction, chosen, cell)


def numpy_gru(x, r, b, h, lengths, *, reset_after, direction, activations, alpha, beta, clip):
    hidden = h.shape[2]

    def cell(total, states, number, chosen):
        (state,), (f, g) = states, chosen
        gates = f.numpy(_numpy_clip(total[: 2 * hidden] + state @ r[number][:, : 2 * hidden], clip))
        z, reset = gates[:hidden], gates[hidden:]
        weights, own = r[number][:, 2 * hidden :], total[2 * hidden :]
        after = own + reset * (state @ weights + b[number])
        new = after if reset_after else own + (reset * state) @ weights + b[number]
        return [(1 - z) * g.numpy(_numpy_clip(new, clip)) + z * state]

    chosen = choose_activations("gru", activations, alpha, beta, ("sigmoid", "tanh"), h.shape[0])
    return _numpy_steps("gru", x, [h], lengths, direction, chosen, cell)


def numpy_lstm(x, r, p, h, c, lengths, *, coupled, direction, activations, alpha, beta, clip):
    def cell(total, states, number, chosen):
        (state, old), (f, g, h_) = states, chosen
        i, o, forget, n = np.split(total + state @ r[number], 4)
        to_i, to_o, to_f = np.split(p[number], 3) if p.shape[1] else (np.zeros_like(i),) * 3
        peep = (lambda weight, value: weight * value) if p.shape[1] else (lambda weight, value: weight)
        input_gate = f.numpy(_numpy_clip(i + peep(to_i, old), clip))
        forget_gate = 1 - input_gate if coupled else f.numpy(_numpy_clip(forget + peep(to_f, old), clip))
        new = forget_gate * old + input_gate * g.numpy(_numpy_clip(n, clip))
        return [f.numpy(_numpy_clip(o + peep(to_o, new), clip)) * h_.numpy(new), new]

    chosen = choose_activations("lstm", activations, alpha, beta, ("sigmoid", "tanh", "tanh"), h.shape[0])
    return _numpy_steps("lstm", x, [h, c], lengths, direction, chosen, cell)


def _numpy_steps(op, x, starts, lengths, direction, chosen, cell: Cell) -> tuple[np.ndarray, ...]:
    steps, batch, _ = x.shape
    directions, _, hidden = starts[0].shape
    wrong = next((n for n in lengths if not 0 <= n <= steps), None)
    if wrong is not None:
        raise RelvmShapeError(f"{op}: a sequence has {wrong} steps, expected 0 to {steps}")
    y = np.zeros((steps, directions, batch, hidden), x.dtype)
    last = [np.array(start) for start in starts]
    parts = np.split(x, directions, axis=2)
    for number, backwards in enumerate(DIRECTIONS[direction]):
        for n in range(batch):
            length = steps if lengths.shape == (0,) else int(lengths[n])
            states = [start[number, n] * (length > 0) for start in starts]
            for t in reversed(range(length)) if backwards else range(length):
                states = cell(parts[number][t, n], states, number, chosen[number])
                y[t, number, n] = states[0]
            for final, state in zip(last, states, strict=True):
                final[number, n] = state
    return (y, *last)


def _numpy_clip(x: np.ndarray, clip: float | None) -> np.ndarray:
    return x if clip is None else np.clip(x, -clip, clip)
