"""The modules of relvm.frontend.onnx.ops that declare the converters of the ONNX operators.

The importer imports a module when a model first uses one of its operators.
"""

from __future__ import annotations

# For each module, the operators whose converters it declares: `name`, or `domain.name`.
_OPERATORS = {
    "activations": (
        "Acos Acosh Asin Asinh Atan Atanh Celu Cosh Elu Gelu HardSigmoid HardSwish Hardmax LogSoftmax Mish PRelu Selu "
        "Shrink Sinh Softmax Softplus Softsign Swish Tan ThresholdedRelu"
    ),
    "attention": "Attention RotaryEmbedding SwiGLU",
    "bitwise_mod": "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor IsInf IsNaN Mod Xor",
    "cast": "Cast CastLike",
    "center_crop_pad": "CenterCropPad",
    "concat_split_tile": "Concat Split Tile",
    "constant_shape": "Constant ConstantOfShape Shape Size",
    "contrib_attention": (
        "com.microsoft.Attention com.microsoft.GroupQueryAttention com.microsoft.MultiHeadAttention "
        "com.microsoft.RotaryEmbedding"
    ),
    "contrib_blockwise_quant": "com.microsoft.GatherBlockQuantized com.microsoft.MatMulNBits",
    "contrib_fused": (
        "SimplifiedLayerNormalization com.microsoft.BiasGelu com.microsoft.CDist "
        "com.microsoft.EmbedLayerNormalization com.microsoft.FastGelu com.microsoft.FusedConv com.microsoft.FusedGemm "
        "com.microsoft.FusedMatMul com.microsoft.Gelu com.microsoft.QuickGelu com.microsoft.SkipLayerNormalization "
        "com.microsoft.SkipSimplifiedLayerNormalization"
    ),
    "conv": "Conv",
    "conv_transpose_col2im": "Col2Im ConvTranspose",
    "cumsum": "CumProd CumSum",
    "det": "Det",
    "dft_windows": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    "dynamic_quantize_lstm": "com.microsoft.DynamicQuantizeLSTM",
    "einsum": "Einsum",
    "elementwise": (
        "Abs Add And BitCast Ceil Clip Cos Div Dropout Equal Erf Exp Floor Greater GreaterOrEqual LeakyRelu Less "
        "LessOrEqual Log Max Mean Min Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sin Sqrt Sub Sum Tanh "
        "Where"
    ),
    "gather_scatter_topk": (
        "Compress Gather GatherElements GatherND NonZero Scatter ScatterElements ScatterND TensorScatter TopK"
    ),
    "grid_sample": "AffineGrid DeformConv GridSample",
    "if_": "If",
    "loop_scan": "Loop Scan SequenceMap",
    "matmul": "Gemm MatMul",
    "ml.label_encoder": (
        "ai.onnx.ml.CastMap ai.onnx.ml.CategoryMapper ai.onnx.ml.DictVectorizer ai.onnx.ml.LabelEncoder "
        "ai.onnx.ml.ZipMap"
    ),
    "ml.linear_svm": (
        "ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor"
    ),
    "ml.preprocessing": (
        "ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.FeatureVectorizer ai.onnx.ml.Imputer "
        "ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder ai.onnx.ml.Scaler"
    ),
    "ml.tfidf": "TfIdfVectorizer",
    "ml.tree_ensemble": "ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor",
    "normalization": (
        "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization "
        "MeanVarianceNormalization RMSNormalization"
    ),
    "optimizers": "ai.onnx.preview.training.Adagrad ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum",
    "pad_depth_space": "DepthToSpace Pad SpaceToDepth",
    "pooling": "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool",
    "quantized": (
        "ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear "
        "com.microsoft.DequantizeLinear com.microsoft.DynamicQuantizeMatMul com.microsoft.MatMulIntegerToFloat "
        "com.microsoft.QGemm com.microsoft.QLinearAdd com.microsoft.QLinearAveragePool com.microsoft.QLinearConcat "
        "com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearLeakyRelu com.microsoft.QLinearMul "
        "com.microsoft.QLinearSigmoid com.microsoft.QLinearSoftmax com.microsoft.QuantizeLinear"
    ),
    "random": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "range_one_hot": "EyeLike OneHot Range Trilu",
    "reduce": (
        "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
        "ReduceSum ReduceSumSquare"
    ),
    "reshape": "Expand Flatten Reshape Transpose Unsqueeze",
    "resize": "Resize Upsample",
    "rnn": "GRU LSTM RNN ReverseSequence",
    "roi_nms": "MaxRoiPool NonMaxSuppression RoiAlign",
    "sequence_optional": (
        "ConcatFromSequence Identity Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct "
        "SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence"
    ),
    "slice": "Slice",
    "squeeze": "Squeeze",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit com.microsoft.Tokenizer",
    "unique": "Unique",
}
# For each operator, its module.
CONVERTER_MODULES = {
    operator: f"relvm.frontend.onnx.ops.{module}" for module, names in _OPERATORS.items() for operator in names.split()
}
