"""Operators of recurrent networks.  They compute the steps of a network, but not the product of the input and its
weights.

The argument `x` contains that product for all steps, plus all biases.  A step adds the product of the previous hidden
state and `r` to its part of `x`, and computes the next state from the sum.  The cells are defined in
relvm/kernels/rnn/rnn_cells.py.
Source: ONNX GRU-22, LSTM-22, RNN-22.
"""

from __future__ import annotations

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import I32
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import AnyDim
from relvm.ir.type_rules import expect_equal_dims, expect_float, expect_same_dtype, expect_tensor
from relvm.ir.types import TensorType, TupleType
from relvm.kernels.lowering_rules import CustomKernel
from relvm.kernels.rnn.activations import choose_activations
from relvm.kernels.rnn.rnn_cells import gru_kernel, lstm_kernel, numpy_gru, numpy_lstm, numpy_rnn, rnn_kernel
from relvm.kernels.rnn.rnn_steps import DIRECTIONS

Shape = tuple[AnyDim, ...]

_USUAL = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}
_GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def _operations(shapes: tuple[Shape, ...], gates: int, cell: int) -> AnyDim | None:
    """Return the number of operations, or None if `lengths` is given, because lengths are known only at run time.

    gates: the number of matrix products with the previous state in a step.
    cell: the number of other operations for each unit and step.  An activation counts as one operation.
    """
    *_, lengths, (steps, directions, batch, hidden) = shapes
    return steps * directions * batch * hidden * (2 * gates * hidden + cell) if lengths == (0,) else None


def _rnn_operations(*shapes: Shape, **attributes) -> AnyDim | None:
    return _operations(shapes, 1, 2)


def _gru_operations(*shapes: Shape, **attributes) -> AnyDim | None:
    return _operations(shapes, 3, 12)


def _lstm_operations(*shapes: Shape, coupled: bool, **attributes) -> AnyDim | None:
    peepholes = (0 if shapes[2][1] == 0 else 2) * (2 if coupled else 3)
    return _operations(shapes, 3, 12 + peepholes) if coupled else _operations(shapes, 4, 13 + peepholes)


@op("rnn", numpy=numpy_rnn, lower=CustomKernel(rnn_kernel, _rnn_operations))
def rnn(
    x: TensorType,
    r: TensorType,
    h: TensorType,
    lengths: TensorType,
    *,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> TupleType:
    """The simple recurrent network: h' = f(x + h * r), where h * r is a matrix product.

    x: a tensor of a float dtype and of shape (steps, batch, directions * hidden).  For each step, it contains the
    product of the input and its weights, plus biases.
    r: the recurrent weights, of shape (directions, hidden, hidden), with a row for each unit of the previous state.
    `hidden` must be a known number.
    h: the states before the first step, of shape (directions, batch, hidden).
    lengths: the length of each sequence, an i32 tensor of shape (batch,).  If it has size 0, each sequence has all
    steps.  x, r and h have the same dtype.
    direction: `forward`, `reverse` (beginning with the last step) or `bidirectional` (both, in this order).
    activations: the name of f for each direction (see relvm/kernels/rnn/activations.py), or None for tanh.
    alpha, beta: parameters of the activations, one number for each activation, or None for the defaults.
    clip: the argument of f is clamped to [-clip, clip].  If `clip` is None, the argument is not clamped.
    Result: a tuple of two tensors.  The first contains the states after all steps and has shape (steps, directions,
    batch, hidden).  States after the end of a sequence are 0.  The second contains the final states and has the shape
    of h.  The final state of a sequence without steps is 0, as in ONNX Runtime.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the dimensions do not fit
    together or, at run time, if a length is not in [0, steps].  Raises RelvmArgumentError if an attribute is invalid.
    Source: ONNX RNN-22.
    """
    tensors = {"x": x, "r": r, "h": h}
    return _check_arguments("rnn", tensors, lengths, direction, activations, alpha, beta, clip)


@op("gru", numpy=numpy_gru, lower=CustomKernel(gru_kernel, _gru_operations))
def gru(
    x: TensorType,
    r: TensorType,
    b: TensorType,
    h: TensorType,
    lengths: TensorType,
    *,
    reset_after: bool = False,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> TupleType:
    """The gated recurrent unit.  x has the parts x_z, x_r and x_n, and b is an additional bias of n:

        z = f(x_z + h * r_z)    r = f(x_r + h * r_r)    h' = (1 - z) * n + z * h
        n = g(x_n + (r . h) * r_n + b), or with reset_after n = g(x_n + r . (h * r_n + b))

    Products with the weights r_z, r_r and r_n are matrix products.  All others are elementwise.
    x: a tensor of a float dtype and of shape (steps, batch, directions * 3 * hidden), with the parts z, r, n of each
    direction.
    r: the recurrent weights r_z, r_r and r_n, of shape (directions, hidden, 3 * hidden).  `hidden` must be a known
    number.
    b: the additional bias, of shape (directions, hidden).
    h: the states before the first step, of shape (directions, batch, hidden).
    lengths: the length of each sequence, an i32 tensor of shape (batch,).  If it has size 0, each sequence has all
    steps.  x, r, b and h have the same dtype.
    reset_after: whether n is computed by the second formula, which applies r after the matrix product.
    direction: `forward`, `reverse` (beginning with the last step) or `bidirectional` (both, in this order).
    activations: the names of f and g for each direction, or None for sigmoid and tanh.
    alpha, beta: parameters of the activations, one number for each activation, or None for the defaults.
    clip: the arguments of f and g are clamped to [-clip, clip].  If `clip` is None, they are not clamped.
    Result: a tuple of two tensors.  The first contains the states after all steps and has shape (steps, directions,
    batch, hidden).  States after the end of a sequence are 0.  The second contains the final states and has the shape
    of h.  The final state of a sequence without steps is 0.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the dimensions do not fit
    together or, at run time, if a length is not in [0, steps].  Raises RelvmArgumentError if an attribute is invalid.
    Source: ONNX GRU-22; reset_after is its linear_before_reset.
    """
    is_bool = isinstance(reset_after, bool)
    expect(is_bool, "gru: reset_after is {!r}, expected a bool", reset_after, error=RelvmArgumentError)
    tensors = {"x": x, "r": r, "b": b, "h": h}
    return _check_arguments("gru", tensors, lengths, direction, activations, alpha, beta, clip)


@op("lstm", numpy=numpy_lstm, lower=CustomKernel(lstm_kernel, _lstm_operations))
def lstm(
    x: TensorType,
    r: TensorType,
    p: TensorType,
    h: TensorType,
    c: TensorType,
    lengths: TensorType,
    *,
    coupled: bool = False,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> TupleType:
    """Long short-term memory.  x has the parts x_i, x_o, x_f and x_n:

        i = f(x_i + h * r_i + p_i . c)    f = f(x_f + h * r_f + p_f . c), or 1 - i if `coupled`
        c' = f . c + i . g(x_n + h * r_n)    o = f(x_o + h * r_o + p_o . c')    h' = o . h(c')

    Products with the weights r_i, r_f, r_n and r_o are matrix products.  All others are elementwise.  In front of a
    parenthesis, f, g and h are activations.  Otherwise, f is the forget gate and h the state.
    x: a tensor of a float dtype and of shape (steps, batch, directions * 4 * hidden), with the parts i, o, f, n of each
    direction.
    r: the recurrent weights r_i, r_o, r_f and r_n, of shape (directions, hidden, 4 * hidden).  `hidden` must be a known
    number.
    p: the peephole weights p_i, p_o and p_f, of shape (directions, 3 * hidden), or of shape (directions, 0) if there
    are none.
    h, c: the initial states, tensors of shape (directions, batch, hidden).
    lengths: the length of each sequence, an i32 tensor of shape (batch,).  If it has size 0, each sequence has all
    steps.  x, r, p, h and c have the same dtype.
    coupled: whether the forget gate is 1 - i.
    direction: `forward`, `reverse` (beginning with the last step) or `bidirectional` (both, in this order).
    activations: the names of f, g and h for each direction, or None for sigmoid, tanh and tanh.
    alpha, beta: parameters of the activations, one number for each activation, or None for the defaults.
    clip: the arguments of f and g are clamped to [-clip, clip].  If `clip` is None, they are not clamped.
    Result: a tuple of three tensors.  The first contains the states h after all steps and has shape (steps, directions,
    batch, hidden).  States after the end of a sequence are 0.  The second and third contain the final h and the final
    c, and have the shape of h.  They are 0 for a sequence without steps.
    Raises RelvmTypeError if an argument has another dtype or rank.  Raises RelvmShapeError if the dimensions do not fit
    together or, at run time, if a length is not in [0, steps].  Raises RelvmArgumentError if an attribute is invalid.
    Source: ONNX LSTM-22; coupled is its input_forget.
    """
    is_bool = isinstance(coupled, bool)
    expect(is_bool, "lstm: coupled is {!r}, expected a bool", coupled, error=RelvmArgumentError)
    tensors = {"x": x, "r": r, "p": p, "h": h, "c": c}
    return _check_arguments("lstm", tensors, lengths, direction, activations, alpha, beta, clip)


def _check_arguments(
    name: str, tensors: dict[str, TensorType], lengths: TensorType, direction, activations, alpha, beta, clip
) -> TupleType:
    """Check the arguments that rnn, gru and lstm have in common, and return the type of the result."""
    expect_float(name, **tensors)
    expect_same_dtype(name, **tensors)
    expect_tensor(name, lengths=lengths)
    expect(lengths.dtype == I32, "{}: lengths has dtype {}, expected i32", name, lengths.dtype)
    ranks = {"b": 2, "p": 2}
    for parameter, type_ in tensors.items():
        rank = ranks.get(parameter, 3)
        expect(type_.rank in (rank, None), "{}: {} has rank {}, expected {}", name, parameter, type_.rank, rank)
    expect(lengths.rank in (1, None), "{}: lengths has rank {}, expected 1", name, lengths.rank)
    message = "{}: direction is {!r}, expected one of {}"
    expect(direction in DIRECTIONS, message, name, direction, ", ".join(DIRECTIONS), error=RelvmArgumentError)
    fits = clip is None or (isinstance(clip, int | float) and clip >= 0)
    expect(fits, "{}: clip is {!r}, expected None or a number of at least 0", name, clip, error=RelvmArgumentError)
    directions = len(DIRECTIONS[direction])
    choose_activations(name, activations, alpha, beta, _USUAL[name], directions)
    dtype, states = tensors["x"].dtype, 2 if name == "lstm" else 1
    shapes = [type_.shape for type_ in (*tensors.values(), lengths)]
    if None in shapes:
        return TupleType((TensorType(dtype, None, 4), *[TensorType(dtype, None, 3)] * states))
    steps, batch, _ = tensors["x"].known_shape
    hidden = tensors["h"].known_shape[2]
    known = isinstance(hidden, int)
    expect(known, "{}: h has {} units, expected a known number", name, hidden, error=RelvmShapeError)
    state = (directions, batch, hidden)
    expected = {
        "x": (steps, batch, directions * _GATES[name] * hidden),
        "r": (directions, hidden, _GATES[name] * hidden),
        "b": (directions, hidden),
        "p": (directions, 0 if "p" in tensors and tensors["p"].known_shape[1] == 0 else 3 * hidden),
        "h": state,
        "c": state,
    }
    for parameter, type_ in tensors.items():
        _expect_dims(name, parameter, type_.known_shape, expected[parameter])
    if lengths.shape != (0,):
        _expect_dims(name, "lengths", lengths.known_shape, (batch,))
    return TupleType((TensorType(dtype, (steps, *state)), *[TensorType(dtype, state)] * states))


def _expect_dims(op: str, parameter: str, got: tuple[AnyDim, ...], expected: tuple[AnyDim, ...]) -> None:
    for axis, (got_dim, expected_dim) in enumerate(zip(got, expected, strict=True)):
        expect_equal_dims(op, f"dimension {axis} of {parameter} and the expected size differ", got_dim, expected_dim)
