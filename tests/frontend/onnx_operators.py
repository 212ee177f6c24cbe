"""The operators whose cases in the ONNX suite are run, in families.

All cases of a family are functions of one module, so that there is one build for each execution mode and target."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.modes import FEWER_WAYS


@dataclass(frozen=True)
class Operator:
    """How the cases of an operator are run.

    known: the indices of inputs that are initializers in a second run of each case.  fixed: the indices of inputs that
    must always be initializers.  refused: the cases that relvm rejects, each with a part of the error message.  Cases
    with element types that relvm does not have are not listed.
    """

    known: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    operators: dict[str, Operator]
    ways: list[tuple[str, str]] = field(default_factory=lambda: FEWER_WAYS)


def rows(*names: str) -> dict[str, Operator]:
    return {name: Operator() for name in names}


_TRIGONOMETRY = ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh")
_ACTIVATIONS = ("HardSigmoid", "HardSwish", "PRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "ThresholdedRelu")
_ACTIVATIONS += ("Gelu", "Celu", "Swish", "Shrink", "LogSoftmax", "Hardmax", "Relu", "LeakyRelu", "Sigmoid", "Softmax")
_NORMALIZATIONS = ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "LayerNormalization")
_NORMALIZATIONS += ("RMSNormalization", "MeanVarianceNormalization", "LpNormalization")
_WINDOWS = ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "Conv", "ConvTranspose")

_SAMPLED = ("GridSample", "DeformConv", "RoiAlign", "MaxUnpool", "Det")

_NEURAL = {
    **rows(*_TRIGONOMETRY, *_ACTIVATIONS, *_NORMALIZATIONS, *_WINDOWS, "DepthToSpace", "SpaceToDepth"),
    **rows(*_SAMPLED),
    "AffineGrid": Operator(known=(1,)),
    "CenterCropPad": Operator(known=(1,)),
    "Col2Im": Operator(known=(1, 2)),
    "Pad": Operator(known=(1, 3)),
    "Resize": Operator(known=(1, 2, 3)),
    "Upsample": Operator(known=(1,)),
}

_POSITIONS = ("GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "TopK", "NonZero", "Compress")
_LOGIC = ("IsNaN", "IsInf", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod", "Min")
_SIZES = ("Size", "Shape", "Einsum", "Trilu", "EyeLike", "ArgMax", "ArgMin", "Range", "CastLike", "Tile", "OneHot")
_SIZES += ("Constant",)
_SPECTRA = ("HannWindow", "HammingWindow", "BlackmanWindow")
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "SumSquare", "Sum", "Mean", "Max", "Min", "Prod")

_POSITIONS += ("Unique", "TensorScatter", "NonMaxSuppression")
_INTEGERS = ("BitCast", "TfIdfVectorizer")
_TRAINING = ("Adagrad", "Adam", "Momentum")
_TRAINED = [f"test_training_dropout{case}" for case in ("", "_mask", "_default", "_default_mask")]

_INDEXING = {
    **rows(*_POSITIONS, *_LOGIC, *_SIZES, *_SPECTRA, *_INTEGERS, *_TRAINING),
    "MelWeightMatrix": Operator(known=(0, 1, 2)),
    "DFT": Operator(known=(1, 2)),
    "STFT": Operator(known=(1, 3)),
    **{f"Reduce{name}": Operator(known=(1,)) for name in _REDUCTIONS},
    **{name: Operator(known=(1,)) for name in ("CumSum", "CumProd")},
    "Split": Operator(known=(1,)),
    **{name: Operator(known=(1,)) for name in ("Reshape", "Expand", "Squeeze", "Unsqueeze")},
    "Slice": Operator(known=(1, 2, 3, 4)),
    "Dropout": Operator(fixed=(1, 2), refused=dict.fromkeys(_TRAINED, "Dropout in training mode is not supported")),
}

_SEQUENCES = ("SequenceInsert", "SequenceMap", "SplitToSequence", "Identity", "If")
_OPTIONALS = ("OptionalHasElement", "OptionalGetElement")
_LOOPS = {
    **rows(*_SEQUENCES, *_OPTIONALS, "Loop", "Scan"),
}

_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger")
_QUANTISED += ("QLinearConv", "QLinearMatMul")

_FUNCTIONS = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "LinearAttention", "CausalConvWithState")
_FUNCTIONS += ("FlexAttention",)

# Attention runs only with NumPy kernels, because its matrix products and softmaxes are tested in C elsewhere.
FAMILIES = {
    "neural": Family(_NEURAL),
    "indexing": Family(_INDEXING),
    "attention": Family(rows("Attention", "RotaryEmbedding", "SwiGLU"), [("bytecode", "numpy")]),
    "functions": Family(rows(*_FUNCTIONS)),
    "loops": Family(_LOOPS),
    "quantised": Family(rows(*_QUANTISED)),
    "recurrent": Family(rows("GRU", "LSTM", "RNN", "ReverseSequence")),
}
OPERATORS = {name: operator for family in FAMILIES.values() for name, operator in family.operators.items()}

# Cases whose expected outputs in the suite have only four digits.
ROUNDED = {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_gridsample_bicubic"}
ROUNDED |= {"test_roialign_aligned_false", "test_roialign_aligned_true"}
