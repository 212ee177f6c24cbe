"""All operators, by name.  Importing this module declares them."""

# ruff: noqa: F401  (this module re-exports the imported names)

from relvm.ops.attention import attention
from relvm.ops.blockwise_quant_matmul import matmul_blockwise_int8, matmul_blockwise_quant, quantize_blocks
from relvm.ops.col2im import col2im
from relvm.ops.compact_trees import tree_ensemble_compact
from relvm.ops.conv_by_size import conv_by_size
from relvm.ops.conv_int8 import conv_integer
from relvm.ops.conv_int8_packed import conv_integer_packed
from relvm.ops.conv_packed import conv_packed
from relvm.ops.conv_winograd import conv_winograd
from relvm.ops.convolution import conv
from relvm.ops.cumulative import cumprod, cumsum
from relvm.ops.decision_trees import tree_ensemble
from relvm.ops.elementwise import abs_ as abs
from relvm.ops.elementwise import (
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cbrt,
    ceil,
    cos,
    cosh,
    count_leading_zeros,
    divide,
    equal,
    erf,
    erfc,
    exp,
    exp_ftz,
    expm1,
    floor,
    greater,
    greater_equal,
    is_finite,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    modulo,
    multiply,
    negative,
    not_equal,
    population_count,
    power,
    reciprocal,
    relu,
    remainder,
    round_away,
    shift_left,
    shift_right,
    shift_right_logical,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
)
from relvm.ops.elementwise import round_ as round
from relvm.ops.gather import gather, gather_elements, gather_nd
from relvm.ops.grid_sample import grid_sample
from relvm.ops.interpolate import interpolate, iota
from relvm.ops.lists import (
    is_null,
    list_append,
    list_concat,
    list_erase,
    list_insert,
    list_item,
    list_length,
    list_split,
    list_stack,
    list_unstack,
    make_list,
)
from relvm.ops.matmul import matmul, matmul_packed
from relvm.ops.matmul_int8 import matmul_integer, matmul_integer_packed
from relvm.ops.nms import non_max_suppression
from relvm.ops.pad import pad
from relvm.ops.pairwise_coupling import pairwise_coupling
from relvm.ops.pooling import average_pool, max_pool, max_pool_indices
from relvm.ops.quantization import dynamic_quantize
from relvm.ops.random import random_bits
from relvm.ops.reduction import argmax, argmin, mean, prod, softmax
from relvm.ops.reduction import max_ as max
from relvm.ops.reduction import min_ as min
from relvm.ops.reduction import sum_ as sum
from relvm.ops.reshape_transpose import (
    broadcast_to,
    concat,
    expand,
    expand_dims,
    reshape,
    shape_of,
    shape_to_tensor,
    squeeze,
    tensor_to_shape,
    transpose,
)
from relvm.ops.reverse_sequence import reverse_sequence
from relvm.ops.rnn import gru, lstm, rnn
from relvm.ops.roi import roi_align, roi_max_pool
from relvm.ops.row_echelon import row_echelon
from relvm.ops.scalar_tensor import element_at, to_scalar, to_tensor
from relvm.ops.scatter import scatter_elements, scatter_nd
from relvm.ops.slice import slice_ as slice
from relvm.ops.sort_topk import argtopk, lexsort_rows, nonzero
from relvm.ops.strings import (
    string_case,
    string_concat,
    string_equal,
    string_lookup,
    string_match,
    string_of_number,
    string_part_count,
    string_positions,
    string_split,
    string_take,
    string_to_number,
    string_tokens,
)
from relvm.ops.where_cast import bit_cast, cast, clip, identity, saturating_cast, where
