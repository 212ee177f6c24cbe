"""Every operator, under its name.  Importing this module declares them all."""

# ruff: noqa: F401  (the names are for those who import this)

from relvm.ops.arithmetic import add, divide, maximum, minimum, multiply, power, subtract
from relvm.ops.attention import attention
from relvm.ops.bits import bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right
from relvm.ops.block_product import matmul_blocks
from relvm.ops.byte_windows import conv_integer_packed
from relvm.ops.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from relvm.ops.convolution import conv
from relvm.ops.coupling import couple
from relvm.ops.cumulation import cumulative_product, cumulative_sum
from relvm.ops.decision import tree_leaves
from relvm.ops.elimination import triangular
from relvm.ops.folding import fold
from relvm.ops.gathering import gather_elements, gather_slices
from relvm.ops.indexing import gather, pad
from relvm.ops.indexing import slice_ as slice
from relvm.ops.integer import matmul_integer, matmul_integer_packed
from relvm.ops.integer_convolution import conv_integer
from relvm.ops.linear import matmul, matmul_packed
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
from relvm.ops.margins import extend
from relvm.ops.ordering import row_order, top_positions, true_positions
from relvm.ops.pooling import average_pool, max_pool, max_pool_indices
from relvm.ops.quantisation import quantise_by_range
from relvm.ops.random import random_bits
from relvm.ops.recurrent import gru, lstm, rnn
from relvm.ops.reduction import argmax, argmin, mean, prod, softmax
from relvm.ops.reduction import max_ as max
from relvm.ops.reduction import min_ as min
from relvm.ops.reduction import sum_ as sum
from relvm.ops.regions import align_regions, pool_regions
from relvm.ops.remainders import modulo, remainder
from relvm.ops.resampling import iota, resample
from relvm.ops.sampling import sample
from relvm.ops.scalar import to_scalar, to_tensor
from relvm.ops.scattering import scatter_elements, scatter_slices
from relvm.ops.selection import bit_cast, cast, saturate, where
from relvm.ops.sequence import reverse_sequence
from relvm.ops.shape import (
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
from relvm.ops.suppression import suppress_overlaps
from relvm.ops.trigonometry import acos, acosh, asin, asinh, atan, atanh, cosh, log1p, sinh, tan
from relvm.ops.unary import abs_ as abs
from relvm.ops.unary import (
    ceil,
    clip,
    cos,
    erf,
    exp,
    floor,
    identity,
    log,
    negative,
    reciprocal,
    relu,
    sigmoid,
    sign,
    sin,
    sqrt,
    tanh,
)
from relvm.ops.unary import round_ as round
from relvm.ops.winograd import conv_tiles
