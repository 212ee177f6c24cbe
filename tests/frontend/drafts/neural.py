"""Drafts of products, windows, resizing, normalization, recurrent layers, attention, losses and spectra."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from frontend.drafts.draft import DTYPES, Draft

# ---- products ----


def product(draft: Draft) -> None:
    batch, (rows, inner, columns) = draft.shape(0, 2), (draft.number(1, 5) for _ in range(3))
    dtype = draft.one_of(*(DTYPES if draft.opset >= 9 else DTYPES[:2]))
    draft.tensor([*batch, rows, inner], dtype)
    draft.tensor([*(size if draft.number(0, 2) else 1 for size in batch), inner, columns], dtype)


def product_of_bytes(draft: Draft) -> None:
    product(draft)
    for i in range(2):
        array, dtype = draft.arrays[i], draft.one_of("uint8", "int8")
        assert array is not None
        draft.arrays[i] = draft.random.integers(0, 64, array.shape).astype(dtype)
    if draft.number(0, 1):
        draft.arrays += [np.array(draft.number(0, 9), array.dtype) for array in draft.arrays if array is not None]


def quantized_product(draft: Draft) -> None:
    product(draft)
    operands, draft.arrays = draft.arrays, []
    for array in operands:
        assert array is not None
        draft.arrays.append(draft.random.integers(0, 64, array.shape).astype(np.uint8))
        draft.arrays += [np.array(0.5, np.float32), np.array(draft.number(0, 9), np.uint8)]
    draft.arrays += [np.array(8, np.float32), np.array(draft.number(0, 9), np.uint8)]


def general_product(draft: Draft) -> None:
    rows, inner, columns = (draft.number(1, 5) for _ in range(3))
    left, right = draft.number(0, 1), draft.number(0, 1)
    dtype = draft.one_of("float32", "float64")
    draft.tensor([inner, rows] if left else [rows, inner], dtype)
    draft.tensor([columns, inner] if right else [inner, columns], dtype)
    if draft.opset < 11 or draft.number(0, 1):
        draft.tensor(draft.one_of([rows, columns], [columns], [1, columns], [rows, 1], [1]), dtype)
    draft.attributes.update(transA=left, transB=right, alpha=draft.one_of(1.0, 0.5), beta=draft.one_of(1.0, 2.0))


def summed_product(draft: Draft) -> None:
    sizes = {letter: draft.number(1, 4) for letter in "bijk"}
    equations = "ij,jk->ik bij,bjk->bik ij,kj ii->i ij->ji bij->bi i,j->ij ...ij->...ji"
    equation = draft.attributes["equation"] = draft.one_of(*equations.split())
    for term in equation.partition("->")[0].split(","):
        lead = draft.shape(0, 2) if "..." in term else []
        draft.tensor([*lead, *(sizes[letter] for letter in term.replace("...", ""))])


def matrices(draft: Draft) -> None:
    rows = draft.number(1, 4)
    draft.tensor([*draft.shape(0, 2), rows, rows])


# ---- windows ----


def window(draft: Draft) -> None:
    axes = draft.number(1, 3)
    sizes = [draft.number(3, 6) for _ in range(axes)]
    draft.tensor([draft.number(1, 2), draft.number(1, 3), *sizes])
    kernel = [draft.number(1, 3) for _ in sizes]
    draft.attributes.update(kernel_shape=kernel, strides=[draft.number(1, min(size, 2)) for size in kernel])
    match draft.number(0, 3):
        case 0 | 1:
            draft.attributes["pads"] = [draft.number(0, size - 1) for size in kernel * 2]
        case 2:
            draft.attributes["auto_pad"] = draft.one_of("SAME_UPPER", "SAME_LOWER", "VALID")


def window_of_largest(draft: Draft) -> None:
    window(draft)
    if "auto_pad" in draft.attributes:
        return
    if draft.opset >= 10:
        draft.attributes["ceil_mode"] = draft.number(0, 1)
    if draft.opset >= 8:
        draft.outputs = draft.number(1, 2)


def window_of_mean(draft: Draft) -> None:
    window(draft)
    if "auto_pad" not in draft.attributes:
        draft.attributes["count_include_pad"] = draft.number(0, 1)


def window_of_norm(draft: Draft) -> None:
    window(draft)
    draft.attributes["p"] = draft.number(1, 3)


def convolution(draft: Draft) -> None:
    window(draft)
    assert draft.arrays[0] is not None
    channels, groups = draft.arrays[0].shape[1], draft.one_of(1, draft.arrays[0].shape[1])
    filters = groups * draft.number(1, 2)
    draft.tensor([filters, channels // groups, *draft.attributes["kernel_shape"]])
    draft.attributes["group"] = groups
    if draft.number(0, 1):
        draft.tensor([filters])


def transposed_convolution(draft: Draft) -> None:
    sizes = [draft.number(1, 4) for _ in range(draft.number(1, 2))]
    groups = draft.number(1, 2)
    channels, filters = groups * draft.number(1, 2), draft.number(1, 2)
    kernel, strides = [draft.number(1, 3) for _ in sizes], [draft.number(1, 2) for _ in sizes]
    draft.tensor([draft.number(1, 2), channels, *sizes])
    draft.tensor([channels, filters, *kernel])
    if draft.number(0, 1):
        draft.tensor([groups * filters])
    draft.attributes.update(kernel_shape=kernel, strides=strides, group=groups)
    draft.attributes["output_padding"] = [draft.number(0, stride - 1) for stride in strides]


def convolution_of_bytes(draft: Draft) -> None:
    convolution(draft)
    draft.arrays = [
        draft.random.integers(0, 64, array.shape).astype(np.uint8) for array in draft.arrays[:2] if array is not None
    ]
    if draft.number(0, 1):
        draft.arrays += [np.array(draft.number(0, 9), np.uint8), np.array(draft.number(0, 9), np.uint8)]


def quantized_convolution(draft: Draft) -> None:
    convolution_of_bytes(draft)
    operands, draft.arrays = draft.arrays[:2], []
    for array in operands:
        draft.arrays += [array, np.array(0.5, np.float32), np.array(draft.number(0, 9), np.uint8)]
    draft.arrays += [np.array(8, np.float32), np.array(draft.number(0, 9), np.uint8)]


def columns_to_image(draft: Draft) -> None:
    image, block = [draft.number(2, 5) for _ in range(2)], [draft.number(1, 2) for _ in range(2)]
    count = int(np.prod([size - part + 1 for size, part in zip(image, block, strict=True)]))
    draft.tensor([draft.number(1, 2), draft.number(1, 2) * int(np.prod(block)), count])
    draft.numbers(*image)
    draft.numbers(*block)


def unpooled(draft: Draft) -> None:
    draft.tensor([1, 1, 2, 2])
    draft.arrays.append(draft.random.permutation(16)[:4].reshape(1, 1, 2, 2))
    draft.attributes.update(kernel_shape=[2, 2], strides=[2, 2])


# ---- images ----


def resized(draft: Draft) -> None:
    sizes = [draft.number(1, 5) for _ in range(2)]
    draft.tensor(sizes)
    if draft.opset < 11:
        draft.arrays.append(np.array([draft.one_of(1, 2, 3) for _ in sizes], np.float32))
        draft.attributes["mode"] = draft.one_of("nearest", "linear")
        return
    draft.arrays.append(None if draft.opset >= 13 else np.zeros(0, np.float32))
    if draft.number(0, 2):
        draft.arrays.append(None if draft.opset >= 13 else np.zeros(0, np.float32))
        draft.numbers(*(draft.number(1, 7) for _ in sizes))
    else:
        draft.arrays.append(np.array([draft.one_of(0.6, 1, 1.5, 2) for _ in sizes], np.float32))
    how = draft.one_of("half_pixel", "asymmetric", "pytorch_half_pixel")
    if len(draft.arrays) == 4:
        how = draft.one_of(how, "align_corners")
    draft.attributes.update(mode=draft.one_of("nearest", "linear"), coordinate_transformation_mode=how)


def upsampled(draft: Draft) -> None:
    sizes = [draft.number(1, 5) for _ in range(2)]
    scales = [float(draft.one_of(1, 2, 3)) for _ in sizes]
    draft.tensor(sizes)
    if draft.opset >= 9:
        draft.arrays.append(np.array(scales, np.float32))
    else:
        draft.attributes["scales"] = scales
    draft.attributes["mode"] = "nearest"


def regions(draft: Draft) -> None:
    count = draft.number(1, 3)
    draft.tensor([2, draft.number(1, 2), 6, 6])
    corners, sizes = draft.random.uniform(0, 2, (count, 2)).round(1), draft.random.uniform(1, 3, (count, 2)).round(1)
    draft.arrays.append(np.hstack([corners, corners + sizes]).astype(np.float32))
    draft.arrays.append(draft.random.integers(0, 2, count))
    draft.attributes.update(output_height=draft.number(1, 3), output_width=draft.number(1, 3), sampling_ratio=2)
    draft.attributes["mode"] = draft.one_of("avg", "max") if draft.opset >= 16 else "avg"


def pooled_regions(draft: Draft) -> None:
    count = draft.number(1, 3)
    draft.tensor([2, draft.number(1, 2), 6, 6])
    corners, sizes = draft.random.integers(0, 2, (count, 2)), draft.random.integers(2, 4, (count, 2))
    images = draft.random.integers(0, 2, (count, 1))
    draft.arrays.append(np.hstack([images, corners, corners + sizes]).astype(np.float32))
    draft.attributes["pooled_shape"] = [draft.number(1, 3), draft.number(1, 3)]


def boxes(draft: Draft) -> None:
    count, classes = draft.number(1, 5), draft.number(1, 2)
    corners = draft.random.uniform(0, 2, (1, count, 2)).round(1)
    draft.arrays.append(np.concatenate([corners, corners + 1], axis=-1).astype(np.float32))
    draft.arrays.append((draft.random.permutation(classes * count).reshape(1, classes, count) / 9).astype(np.float32))
    draft.numbers(draft.number(1, 3))
    draft.arrays += [np.array([0.3], np.float32), np.array([0.2], np.float32)]


def sampled_at_grid(draft: Draft) -> None:
    modes = ("bilinear", "nearest", "bicubic") if draft.opset < 20 else ("linear", "nearest", "cubic")
    batch = draft.number(1, 2)
    draft.tensor([batch, draft.number(1, 2), draft.number(2, 4), draft.number(2, 4)])
    draft.arrays.append(draft.random.uniform(-1.2, 1.2, [batch, 2, 3, 2]).astype(np.float32))
    draft.attributes.update(
        mode=draft.one_of(*modes),
        padding_mode=draft.one_of("zeros", "reflection"),
        align_corners=draft.number(0, 1),
    )


def affine_grid(draft: Draft) -> None:
    axes = draft.number(2, 3)
    draft.tensor([2, axes, axes + 1])
    draft.numbers(2, 3, *(draft.number(2, 4) for _ in range(axes)))
    draft.attributes["align_corners"] = draft.number(0, 1)


def neighbors(draft: Draft) -> None:
    draft.tensor([draft.number(0, 2), draft.number(0, 4), draft.number(0, 3), draft.number(1, 3)])
    draft.attributes["size"] = draft.one_of(1, 3, 5)


def channels(draft: Draft) -> None:
    draft.tensor([draft.number(1, 2), draft.number(1, 3), *(draft.number(2, 4) for _ in range(draft.number(1, 2)))])


def channels_and_exponent(draft: Draft) -> None:
    channels(draft)
    draft.attributes["p"] = draft.number(1, 3)


# ---- normalization ----


def normalized(draft: Draft) -> None:
    channels(draft)
    for _ in range(2):
        assert draft.arrays[0] is not None
        draft.tensor([draft.arrays[0].shape[1]])


def normalized_by_statistics(draft: Draft) -> None:
    normalized(draft)
    assert draft.arrays[1] is not None
    count = draft.arrays[1].shape[0]
    draft.tensor([count])
    draft.tensor([count], low=0.5)


def normalized_groups(draft: Draft) -> None:
    groups, width = draft.number(1, 3), draft.number(1, 2)
    draft.tensor([draft.number(1, 2), groups * width, *(draft.number(2, 4) for _ in range(draft.number(1, 2)))])
    for _ in range(2):
        draft.tensor([groups if draft.opset < 21 else groups * width])
    draft.attributes["num_groups"] = groups


def nearby(draft: Draft) -> None:
    shape = draft.positive_shape(1)
    draft.tensor(shape)
    axis = draft.axis(shape)
    for _ in range(draft.number(1, 2)):
        draft.tensor(shape[axis:] if axis < 0 else shape[axis - len(shape) :])
    draft.attributes["axis"] = axis


def scaled_nearby(draft: Draft) -> None:
    nearby(draft)
    del draft.arrays[2:]


# ---- recurrent layers ----


def recurrent(gates: int, states: int) -> Callable[[Draft], None]:
    """Return a draft of a recurrent layer.   gates: the gates of a cell.   states: the number of its states."""

    def draw(draft: Draft) -> None:
        direction = draft.one_of("forward", "reverse", "bidirectional")
        directions = 2 if direction == "bidirectional" else 1
        steps, batch, width, hidden = (draft.number(1, 4) for _ in range(4))
        draft.tensor([steps, batch, width], low=-1, high=1)
        draft.tensor([directions, gates * hidden, width], low=-1, high=1)
        draft.tensor([directions, gates * hidden, hidden], low=-1, high=1)
        has_bias, has_lengths, has_start = (draft.number(0, 1) for _ in range(3))
        draft.arrays.append(
            draft.random.uniform(-1, 1, [directions, 2 * gates * hidden]).astype(np.float32) if has_bias else None
        )
        draft.arrays.append(draft.random.integers(1, steps + 1, batch).astype(np.int32) if has_lengths else None)
        if has_start:
            for _ in range(states):
                draft.tensor([directions, batch, hidden], low=-1, high=1)
        draft.attributes.update(hidden_size=hidden, direction=direction)
        if gates == 3:
            draft.attributes["linear_before_reset"] = draft.number(0, 1)
        draft.outputs = 1 + states

    return draw


# ---- attention ----


def attention(draft: Draft) -> None:
    batch, groups, queries, keys = (draft.number(1, 3) for _ in range(4))
    heads, width, value_width = groups * draft.number(1, 2), draft.number(1, 4), draft.number(1, 4)
    if draft.number(0, 1):
        draft.tensor([batch, heads, queries, width])
        draft.tensor([batch, groups, keys, width])
        draft.tensor([batch, groups, keys, value_width])
    else:
        draft.tensor([batch, queries, heads * width])
        draft.tensor([batch, keys, groups * width])
        draft.tensor([batch, keys, groups * value_width])
        draft.attributes.update(q_num_heads=heads, kv_num_heads=groups)
    if draft.number(0, 1):
        draft.tensor(draft.one_of([queries, keys], [batch, 1, queries, keys], [batch, heads, queries, keys]))
    draft.attributes["is_causal"] = draft.number(0, 1)
    if draft.number(0, 1):
        draft.attributes["softcap"] = 2.0
    if draft.number(0, 1):
        draft.attributes["scale"] = 0.3


def rotated(draft: Draft) -> None:
    batch, heads, length, half = (draft.number(1, 3) for _ in range(4))
    draft.tensor([batch, heads, length, 2 * half])
    if draft.number(0, 1):
        for _ in range(2):
            draft.tensor([5, half], low=-1, high=1)
        draft.arrays.append(draft.random.integers(0, 5, [batch, length]))
    else:
        for _ in range(2):
            draft.tensor([batch, length, half], low=-1, high=1)
    draft.attributes["interleaved"] = draft.number(0, 1)


# ---- losses ----


def loss(draft: Draft) -> None:
    batch, classes = draft.number(1, 3), draft.number(1, 4)
    places = draft.positive_shape(0, 2)
    draft.tensor([batch, classes, *places], low=-4, high=0)
    labels = draft.random.integers(0, classes, [batch, *places])
    draft.arrays.append(labels)
    if draft.number(0, 1):
        draft.tensor([classes], low=0.5)
    if draft.number(0, 1):
        draft.attributes["ignore_index"] = classes
        labels[draft.random.integers(0, 2, labels.shape) == 1] = classes
        labels.reshape(-1)[0] = 0
    draft.attributes["reduction"] = draft.one_of("none", "mean", "sum")


# ---- spectra ----


def spectrum(draft: Draft) -> None:
    length = draft.number(1, 6)
    draft.known.add(0)
    signal = draft.tensor([draft.number(1, 2), length, draft.number(1, 2)])
    is_real = signal.shape[2] == 1
    if draft.number(0, 1):
        draft.arrays.append(np.array(draft.number(1, 7), np.int64))
    if draft.number(0, 1):
        draft.attributes["inverse"] = 1
        if is_real:
            draft.arrays[0] = np.concatenate([signal] * 2, axis=2)
    else:
        draft.attributes["onesided"] = draft.number(0, 1) if is_real else 0
    if draft.opset < 20:
        draft.attributes["axis"] = 1
    else:
        draft.arrays += [None] * (2 - len(draft.arrays))
        draft.arrays.append(np.array(1, np.int64))


def spectra_of_time(draft: Draft) -> None:
    length = draft.number(6, 12)
    draft.known.add(0)
    draft.tensor([draft.number(1, 2), length, 1])
    frame = draft.number(2, 5)
    draft.arrays.append(np.array(draft.number(1, 3), np.int64))
    draft.tensor([frame], low=0.1, high=1)
    draft.arrays.append(np.array(frame, np.int64))
    draft.attributes["onesided"] = draft.number(0, 1)


def weights_of_samples(draft: Draft) -> None:
    draft.arrays.append(np.array(draft.number(1, 9), draft.one_of("int32", "int64")))
    draft.attributes["periodic"] = draft.number(0, 1)


DRAFTS: dict[str, Callable[[Draft], None]] = {
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), channels),
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), weights_of_samples),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), loss),
    "AffineGrid": affine_grid,
    "Attention": attention,
    "AveragePool": window_of_mean,
    "BatchNormalization": normalized_by_statistics,
    "Col2Im": columns_to_image,
    "Conv": convolution,
    "ConvInteger": convolution_of_bytes,
    "ConvTranspose": transposed_convolution,
    "DFT": spectrum,
    "Det": matrices,
    "Einsum": summed_product,
    "GRU": recurrent(3, 1),
    "Gemm": general_product,
    "GlobalLpPool": channels_and_exponent,
    "GridSample": sampled_at_grid,
    "GroupNormalization": normalized_groups,
    "InstanceNormalization": normalized,
    "LRN": neighbors,
    "LSTM": recurrent(4, 2),
    "LayerNormalization": nearby,
    "LpPool": window_of_norm,
    "MatMul": product,
    "MatMulInteger": product_of_bytes,
    "MaxPool": window_of_largest,
    "MaxRoiPool": pooled_regions,
    "MaxUnpool": unpooled,
    "NonMaxSuppression": boxes,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_product,
    "RMSNormalization": scaled_nearby,
    "RNN": recurrent(1, 1),
    "Resize": resized,
    "RoiAlign": regions,
    "RotaryEmbedding": rotated,
    "STFT": spectra_of_time,
    "Upsample": upsampled,
}
