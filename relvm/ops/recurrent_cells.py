"""The cells of recurrent networks, as loop nests and as NumPy functions; relvm/ops/recurrent.py says what they compute.

A kernel keeps a sequence's state where the last state is to be, and the sums of one step on the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relvm.errors import RelvmShapeError
from relvm.ir.dtypes import I64
from relvm.lir.kernel import Buffer, KernelBuilder, Literal, Local, Scalar, Select
from relvm.ops.activation import Chosen, choose

# direction -> for each direction, whether the last step comes first
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

_UNROLLED = 4  # rows of r that one pass over the sums adds


@dataclass(frozen=True)
class _Step:
    """One step of one sequence.  at_x: where its part of x begins; at_h: its state's place in h and in `last`."""

    direction: int
    at_x: Scalar
    at_h: Scalar


def rnn_kernel(k: KernelBuilder, inputs, outputs, *, direction, activations, alpha, beta, clip) -> None:
    (x, r, h, lengths), (_, last) = inputs, outputs
    hidden = h.shape[2]
    chosen = choose("rnn", activations, alpha, beta, ("tanh",), h.shape[0])
    sums = k.allocate("sums", x.dtype, (hidden,))

    def step(at: _Step) -> None:
        (f,) = chosen[at.direction]
        _copy(k, sums, 0, x, at.at_x, hidden)
        _add_product(k, sums, 0, hidden, lambda p: last.flat(at.at_h + p), r, at.direction)
        with k.loop(hidden, name="j", simd=True) as j:
            k.store(last, (at.at_h + j,), f.point(_clipped(sums[j], clip)))

    _each_step(k, "rnn", x, [(h, last)], lengths, outputs[0], direction, step)


def gru_kernel(k: KernelBuilder, inputs, outputs, *, reset_after, direction, activations, alpha, beta, clip) -> None:
    (x, r, b, h, lengths), (_, last) = inputs, outputs
    hidden = h.shape[2]
    chosen = choose("gru", activations, alpha, beta, ("sigmoid", "tanh"), h.shape[0])
    sums = k.allocate("sums", x.dtype, (3 * hidden,))
    reset = None if reset_after else k.allocate("reset", x.dtype, (hidden,))

    def step(at: _Step) -> None:
        f, g = chosen[at.direction]
        _copy(k, sums, 0, x, at.at_x, 2 * hidden)
        at_n = at.at_x + 2 * hidden
        if reset_after:
            _copy(k, sums, 2 * hidden, b, Literal(at.direction * hidden, I64), hidden)
            _add_product(k, sums, 0, 3 * hidden, lambda p: last.flat(at.at_h + p), r, at.direction)
        else:
            _add_product(k, sums, 0, 2 * hidden, lambda p: last.flat(at.at_h + p), r, at.direction)
            with k.loop(hidden, name="j", simd=True) as j:
                k.store(reset, (j,), f.point(_clipped(sums[j + hidden], clip)) * last.flat(at.at_h + j))
                k.store(sums, (j + 2 * hidden,), x.flat(at_n + j) + b.flat(j + at.direction * hidden))
            _add_product(k, sums, 2 * hidden, hidden, lambda p: reset[p], r, at.direction)
        with k.loop(hidden, name="j", simd=True) as j:
            new = sums[j + 2 * hidden]
            if reset_after:
                new = x.flat(at_n + j) + f.point(_clipped(sums[j + hidden], clip)) * new
            z = k.declare("z", f.point(_clipped(sums[j], clip)))
            new = g.point(_clipped(k.declare("n", new), clip))
            k.store(last, (at.at_h + j,), (1 - z) * new + z * last.flat(at.at_h + j))

    _each_step(k, "gru", x, [(h, last)], lengths, outputs[0], direction, step)


def lstm_kernel(k: KernelBuilder, inputs, outputs, *, coupled, direction, activations, alpha, beta, clip) -> None:
    (x, r, p, h, c, lengths), (_, last, last_c) = inputs, outputs
    hidden = h.shape[2]
    chosen = choose("lstm", activations, alpha, beta, ("sigmoid", "tanh", "tanh"), h.shape[0])
    sums = k.allocate("sums", x.dtype, (4 * hidden,))
    peeps = p.shape[1] != 0

    def step(at: _Step) -> None:
        _copy(k, sums, 0, x, at.at_x, 4 * hidden)
        _add_product(k, sums, 0, 4 * hidden, lambda q: last.flat(at.at_h + q), r, at.direction)
        f, g, h_ = chosen[at.direction]
        with k.loop(hidden, name="j", simd=True) as j:

            def gate(part: int, peephole: int, state: Scalar) -> Local:
                total = sums[j + part * hidden]
                if peeps:
                    total = total + p.flat(j + (3 * at.direction + peephole) * hidden) * state
                return k.declare("gate", f.point(_clipped(k.declare("sum", total), clip)))

            old = k.declare("old", last_c.flat(at.at_h + j))
            into = gate(0, 0, old)
            kept = 1 - into if coupled else gate(2, 2, old)
            new = k.declare("new", kept * old + into * g.point(_clipped(sums[j + 3 * hidden], clip)))
            k.store(last_c, (at.at_h + j,), new)
            k.store(last, (at.at_h + j,), gate(1, 1, new) * h_.point(new))

    _each_step(k, "lstm", x, [(h, last), (c, last_c)], lengths, outputs[0], direction, step)


def _each_step(
    k: KernelBuilder,
    op: str,
    x: Buffer,
    states: list[tuple[Buffer, Buffer]],
    lengths: Buffer,
    y: Buffer,
    direction: str,
    step: Callable[[_Step], None],
) -> None:
    """Writes y; `step` brings the states, each given as its start and where it is kept, the hidden one first, from one
    step to the next."""
    steps, batch, width = (k.size((dim,)) for dim in x.shape)
    directions, _, hidden = states[0][0].shape
    all_steps = lengths.shape == (0,)
    if not all_steps:
        with k.loop(batch, name="n") as n:
            length = k.declare("length", lengths[n].to(I64))
            outside = (length < 0).either(length > steps)
            k.fail(outside, "SHAPE_ERROR", f"{op}: a sequence of %lld steps, expected 0 to %lld", length, steps)
    for number, backwards in enumerate(DIRECTIONS[direction]):
        with k.loop(batch, name="n") as n:
            at_h = k.declare("at_h", (n + batch * number) * hidden)
            length = k.declare("length", steps if all_steps else lengths[n].to(I64))
            for start, kept in states:
                with k.loop(hidden, name="j", simd=True) as j:
                    k.store(kept, (at_h + j,), Select(length > 0, start.flat(at_h + j), Literal(0, x.dtype)))
            with k.loop(length, name="step") as i:
                t = k.declare("t", length - 1 - i if backwards else i)
                at_x = k.declare("at_x", (t * batch + n) * width + number * (x.shape[2] // directions))
                step(_Step(number, at_x, at_h))
                at_y = k.declare("at_y", ((t * directions + number) * batch + n) * hidden)
                _copy(k, y, at_y, states[0][1], at_h, hidden)
            with k.loop(steps, start=length, name="t") as t:
                at_y = k.declare("at_y", ((t * directions + number) * batch + n) * hidden)
                with k.loop(hidden, name="j", simd=True) as j:
                    k.store(y, (at_y + j,), 0)


def _copy(k: KernelBuilder, to: Buffer, at: Scalar | int, source: Buffer, start: Scalar, count: int) -> None:
    with k.loop(count, name="j", simd=True) as j:
        k.store(to, (j + at,), source.flat(start + j))


def _add_product(
    k: KernelBuilder, sums: Buffer, first: int, count: int, element: Callable[[Scalar], Scalar], r: Buffer, number: int
) -> None:
    """Adds to sums[first : first + count] those columns of the vector of `element`s times r[number]."""
    _, hidden, width = r.shape

    def add(row: Scalar, rows: int) -> None:
        factors = [k.declare("factor", element(row + i)) for i in range(rows)]
        at_r = k.declare("at_r", (row + number * hidden) * width + first)
        with k.loop(count, name="j", simd=True) as j:
            total: Scalar = sums[j + first]
            for i, factor in enumerate(factors):
                total = total + factor * r.flat(at_r + i * width + j)
            k.store(sums, (j + first,), total)

    with k.loop(hidden // _UNROLLED, name="group") as group:
        add(k.declare("row", group * _UNROLLED), _UNROLLED)
    with k.loop(hidden, start=hidden // _UNROLLED * _UNROLLED, name="row") as row:
        add(row, 1)


def _clipped(x: Scalar, clip: float | None) -> Scalar:
    if clip is None:
        return x
    return Select(x < -clip, Literal(-clip, x.dtype), Select(x > clip, Literal(clip, x.dtype), x))


Cell = Callable[[np.ndarray, list[np.ndarray], int, list[Chosen]], list[np.ndarray]]


def numpy_rnn(x, r, h, lengths, *, direction, activations, alpha, beta, clip):
    def cell(total, states, number, chosen):
        (f,) = chosen
        return [f.numpy(_numpy_clipped(total + states[0] @ r[number], clip))]

    chosen = choose("rnn", activations, alpha, beta, ("tanh",), h.shape[0])
    return _numpy_steps("rnn", x, [h], lengths, direction, chosen, cell)


def numpy_gru(x, r, b, h, lengths, *, reset_after, direction, activations, alpha, beta, clip):
    hidden = h.shape[2]

    def cell(total, states, number, chosen):
        (state,), (f, g) = states, chosen
        gates = f.numpy(_numpy_clipped(total[: 2 * hidden] + state @ r[number][:, : 2 * hidden], clip))
        z, reset = gates[:hidden], gates[hidden:]
        weights, own = r[number][:, 2 * hidden :], total[2 * hidden :]
        after = own + reset * (state @ weights + b[number])
        new = after if reset_after else own + (reset * state) @ weights + b[number]
        return [(1 - z) * g.numpy(_numpy_clipped(new, clip)) + z * state]

    chosen = choose("gru", activations, alpha, beta, ("sigmoid", "tanh"), h.shape[0])
    return _numpy_steps("gru", x, [h], lengths, direction, chosen, cell)


def numpy_lstm(x, r, p, h, c, lengths, *, coupled, direction, activations, alpha, beta, clip):
    def cell(total, states, number, chosen):
        (state, old), (f, g, h_) = states, chosen
        i, o, forget, n = np.split(total + state @ r[number], 4)
        to_i, to_o, to_f = np.split(p[number], 3) if p.shape[1] else (np.zeros_like(i),) * 3
        peep = (lambda weight, value: weight * value) if p.shape[1] else (lambda weight, value: weight)
        into = f.numpy(_numpy_clipped(i + peep(to_i, old), clip))
        kept = 1 - into if coupled else f.numpy(_numpy_clipped(forget + peep(to_f, old), clip))
        new = kept * old + into * g.numpy(_numpy_clipped(n, clip))
        return [f.numpy(_numpy_clipped(o + peep(to_o, new), clip)) * h_.numpy(new), new]

    chosen = choose("lstm", activations, alpha, beta, ("sigmoid", "tanh", "tanh"), h.shape[0])
    return _numpy_steps("lstm", x, [h, c], lengths, direction, chosen, cell)


def _numpy_steps(op, x, starts, lengths, direction, chosen, cell: Cell) -> tuple[np.ndarray, ...]:
    steps, batch, _ = x.shape
    directions, _, hidden = starts[0].shape
    wrong = next((n for n in lengths if not 0 <= n <= steps), None)
    if wrong is not None:
        raise RelvmShapeError(f"{op}: a sequence of {wrong} steps, expected 0 to {steps}")
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
            for kept, state in zip(last, states, strict=True):
                kept[number, n] = state
    return (y, *last)


def _numpy_clipped(x: np.ndarray, clip: float | None) -> np.ndarray:
    return x if clip is None else np.clip(x, -clip, clip)
