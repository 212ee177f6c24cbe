"""Drafts of operators that compute each element of the result from the elements at its position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from frontend.drafts.draft import DTYPES, FLOATS, INTEGERS, MOVED, Draft
from onnx import TensorProto


def two_tensors(draft: Draft) -> None:
    """Draw tensors that broadcast.  The second one has no element 0, so that it can be a divisor."""
    shape, dtype = draft.shape(), draft.one_of(*DTYPES)
    for _ in range(2):
        array = draft.tensor(draft.broadcast(shape), dtype)
        array[array == 0] = 1


def compared(draft: Draft) -> None:
    """Draw tensors of which many elements are equal."""
    shape, dtype = draft.shape(), draft.one_of(*(DTYPES if draft.opset < 13 else MOVED[:-1]))
    for _ in range(2):
        draft.tensor(draft.broadcast(shape), dtype, 0, 3)


def equal_or_not(draft: Draft) -> None:
    shape, dtype = draft.shape(), draft.one_of(*MOVED)
    for _ in range(2):
        draft.tensor(draft.broadcast(shape), dtype, 0, 3)


def some_tensors(draft: Draft) -> None:
    shape = draft.shape()
    dtype = draft.one_of("float32", "float64")
    for _ in range(draft.number(1, 4)):
        draft.tensor(draft.broadcast(shape), dtype)


def truth_values(draft: Draft) -> None:
    shape = draft.shape()
    for _ in range(2):
        draft.tensor(draft.broadcast(shape), "bool", -0.9, 0.9)
        draft.arrays[-1] = draft.random.integers(0, 2, draft.arrays[-1].shape).astype(bool)


def one_truth_value(draft: Draft) -> None:
    draft.arrays.append(draft.random.integers(0, 2, draft.shape()).astype(bool))


def bits(draft: Draft) -> None:
    shape, dtype = draft.shape(), draft.one_of(*INTEGERS)
    for _ in range(2):
        draft.tensor(draft.broadcast(shape), dtype, 0, 100)


def bits_of_one(draft: Draft) -> None:
    draft.tensor(draft.shape(), draft.one_of(*INTEGERS), 0, 100)


def shifted(draft: Draft) -> None:
    shape, dtype = draft.shape(), draft.one_of("uint8", "uint16", "uint32", "uint64")
    draft.tensor(draft.broadcast(shape), dtype, 0, 100)
    draft.tensor(draft.broadcast(shape), dtype, 0, 7)
    draft.attributes["direction"] = draft.one_of("LEFT", "RIGHT")


def remainders(draft: Draft) -> None:
    shape, is_of_floats = draft.shape(), draft.number(0, 1)
    dtype = draft.one_of(*(FLOATS if is_of_floats else INTEGERS))
    for _ in range(2):
        array = draft.tensor(draft.broadcast(shape), dtype, 0 if dtype.startswith("u") else -9, 9)
        array[array == 0] = 1
    if is_of_floats or draft.number(0, 1):
        draft.attributes["fmod"] = 1


def one_tensor(draft: Draft) -> None:
    draft.tensor(draft.shape(), draft.one_of("float32", "float32", *FLOATS))


def one_single(draft: Draft) -> None:
    draft.tensor(draft.shape())


def one_signed_tensor(draft: Draft) -> None:
    draft.tensor(draft.shape(), draft.one_of("float32", "float64", "float16", "int32", "int64", "int8"))


def one_of_any_numbers(draft: Draft) -> None:
    dtype = draft.one_of(*MOVED[:-1])
    draft.tensor(draft.shape(), dtype, 0 if dtype.startswith("u") else -4)


def within(low: float, high: float) -> Callable[[Draft], None]:
    """Return a draft of a tensor with elements from `low` to `high`."""

    def draw(draft: Draft) -> None:
        draft.tensor(draft.shape(), draft.one_of("float32", "float32", *FLOATS), low, high)

    return draw


def limited(draft: Draft) -> None:
    dtype = draft.one_of(*DTYPES) if draft.opset >= 12 else draft.one_of(*FLOATS)
    draft.tensor(draft.shape(), dtype)
    if draft.opset < 11:
        draft.attributes.update({name: limit for name, limit in (("min", -1.0), ("max", 2.0)) if draft.number(0, 2)})
    else:
        draft.arrays += [np.array(limit, dtype) if draft.number(0, 2) else None for limit in (-1, 2)]


def selected(draft: Draft) -> None:
    shape, dtype = draft.shape(), draft.one_of(*MOVED)
    draft.arrays.append(draft.random.integers(0, 2, draft.broadcast(shape)).astype(bool))
    draft.tensor(draft.broadcast(shape), dtype, 0)
    draft.tensor(draft.broadcast(shape), dtype, 0)


def powers(draft: Draft) -> None:
    shape, dtypes = draft.shape(), ("float32", "float64", "int32", "int64")
    draft.tensor(shape, draft.one_of(*dtypes), 1)
    dtype = draft.one_of(*dtypes) if draft.opset >= 12 else draft.arrays[0].dtype.name
    draft.tensor(shape[draft.number(0, len(shape)) :], dtype, 0, 3)


def slopes(draft: Draft) -> None:
    shape, dtype = draft.shape(1), draft.one_of(*FLOATS)
    draft.tensor(shape, dtype)
    draft.tensor(draft.broadcast(shape), dtype)


def cast(draft: Draft) -> None:
    """Draw a cast between numbers that both dtypes have."""
    draft.tensor(draft.shape(), draft.one_of(*MOVED), 0, 100)
    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8)
    kinds += (TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32)
    draft.attributes["to"] = draft.one_of(*kinds, TensorProto.UINT64, TensorProto.BOOL)


def cast_like(draft: Draft) -> None:
    draft.tensor(draft.shape(), draft.one_of(*MOVED), 0, 100)
    draft.tensor(draft.shape(), draft.one_of(*MOVED), 0, 100)


def quantized(draft: Draft) -> None:
    shape = draft.shape()
    draft.tensor(shape, low=-100, high=100)
    dtype, count = draft.one_of("uint8", "int8"), []
    if draft.opset >= 13 and shape and draft.number(0, 1):
        axis = draft.axis(shape)
        draft.attributes["axis"], count = axis, [shape[axis]]
    draft.arrays.append(draft.random.choice([0.5, 1, 4], count).astype(np.float32))
    draft.arrays.append(draft.random.integers(0, 101, count).astype(dtype))


def dequantized(draft: Draft) -> None:
    quantized(draft)
    assert draft.arrays[0] is not None and draft.arrays[2] is not None
    draft.arrays[0] = np.abs(draft.arrays[0]).astype(draft.arrays[2].dtype)


def quantized_by_itself(draft: Draft) -> None:
    draft.tensor(draft.positive_shape(), low=draft.one_of(-4, 1))
    draft.outputs = 3


def dropped(draft: Draft) -> None:
    """Draw a node that drops nothing, because it is not for training."""
    draft.tensor(draft.shape(), draft.one_of(*FLOATS))
    draft.outputs = draft.number(1, 2) if draft.opset >= 12 else 1
    if draft.opset >= 12 and draft.number(0, 1):
        draft.arrays.append(np.array(0.3, np.float32))


UNARY = "Abs Exp Erf Sigmoid Floor Softplus Elu LeakyRelu Ceil Round Selu Celu Softsign Mish Tanh"
UNARY += " ThresholdedRelu Sin Cos Atan Sinh Cosh Asinh IsNaN IsInf Shrink Gelu Swish"

DRAFTS: dict[str, Callable[[Draft], None]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), two_tensors),
    **dict.fromkeys(("Less", "Greater", "GreaterOrEqual", "LessOrEqual"), compared),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min"), some_tensors),
    **dict.fromkeys(UNARY.split(), one_tensor),
    **dict.fromkeys(("Neg", "Relu"), one_signed_tensor),
    **dict.fromkeys(("Abs", "Sign"), one_of_any_numbers),
    **dict.fromkeys(("Acos", "Asin", "Atanh"), within(-0.9, 0.9)),
    **dict.fromkeys(("Log", "Sqrt"), within(0.1, 9)),
    **dict.fromkeys(("HardSigmoid", "HardSwish"), one_single),
    **dict.fromkeys(("And", "Or", "Xor"), truth_values),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), bits),
    "Acosh": within(1, 9),
    "BitShift": shifted,
    "BitwiseNot": bits_of_one,
    "Cast": cast,
    "CastLike": cast_like,
    "Clip": limited,
    "DequantizeLinear": dequantized,
    "Dropout": dropped,
    "DynamicQuantizeLinear": quantized_by_itself,
    "Equal": equal_or_not,
    "Mod": remainders,
    "Not": one_truth_value,
    "PRelu": slopes,
    "Pow": powers,
    "QuantizeLinear": quantized,
    "Reciprocal": within(0.5, 9),
    "Tan": within(-1.4, 1.4),
    "Where": selected,
}
