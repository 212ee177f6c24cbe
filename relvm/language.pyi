"""The names of the language, for scripts.

`pytest tests/frontend/test_language_names.py --update` writes this file from the declarations of the operators.
"""

from typing import Any

import numpy as np

from relvm.frontend.script.names import call_kernel as call_kernel
from relvm.frontend.script.names import const as const
from relvm.frontend.script.names import match_cast as match_cast
from relvm.frontend.script.names import packed as packed
from relvm.frontend.script.names import partial as partial
from relvm.frontend.script.names import shape as shape
from relvm.runtime.tensor import Tensor as Tensor

_TensorLike = Tensor | np.ndarray | np.generic | float

def abs(x: _TensorLike, /) -> Tensor:
    """The absolute value, elementwise; the smallest signed integer stays negative."""

def acos(x: _TensorLike, /) -> Tensor:
    """The inverse cosine in radians, elementwise; NaN outside [-1, 1]."""

def acosh(x: _TensorLike, /) -> Tensor:
    """The inverse hyperbolic cosine, elementwise; NaN where x is below 1."""

def add(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x + y, elementwise; integers wrap around."""

def argmax(x: _TensorLike, /, *, axis: int, keepdims: bool = False) -> Tensor:
    """The index of the largest element along an axis: the first of equal elements, or the first NaN if there is one."""

def argmin(x: _TensorLike, /, *, axis: int, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis: the first of equal elements, or the first NaN if there is one."""

def argtopk(x: _TensorLike, shape: Any, /, *, axis: int, largest: bool = True) -> Tensor:
    """The positions of the largest elements along an axis, the largest first."""

def asin(x: _TensorLike, /) -> Tensor:
    """The inverse sine in radians, elementwise; NaN outside [-1, 1]."""

def asinh(x: _TensorLike, /) -> Tensor:
    """The inverse hyperbolic sine, elementwise."""

def atan(x: _TensorLike, /) -> Tensor:
    """The inverse tangent in radians, elementwise, in [-pi / 2, pi / 2]."""

def atan2(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """The angle in radians of the point (y, x), elementwise: the inverse tangent of x / y in the quadrant of the point."""

def atanh(x: _TensorLike, /) -> Tensor:
    """The inverse hyperbolic tangent, elementwise; infinite where x is -1 or 1, NaN outside [-1, 1]."""

def attention(
    q: _TensorLike,
    k: _TensorLike,
    v: _TensorLike,
    allowed: _TensorLike,
    bias: _TensorLike,
    /,
    *,
    scale: float = 1.0,
    hidden: float = ...,
    absent: str = "nan",
    transposed: bool = False,
) -> Tensor:
    """Scaled dot-product attention: softmax(scores) v, for each batch element."""

def average_pool(
    x: _TensorLike,
    /,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of each window."""

def bit_cast(x: _TensorLike, /, *, to: Any) -> Tensor:
    """The bits of x reinterpreted as another dtype."""

def bitwise_and(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Bitwise AND of x and y, elementwise."""

def bitwise_not(x: _TensorLike, /) -> Tensor:
    """Bitwise NOT of x, elementwise."""

def bitwise_or(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Bitwise OR of x and y, elementwise."""

def bitwise_xor(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Bitwise exclusive OR of x and y, elementwise."""

def broadcast_to(x: _TensorLike, shape: Any, /) -> Tensor:
    """x broadcast to a shape: repeated along axes of size 1 and along new axes in front, as in NumPy."""

def cast(x: _TensorLike, /, *, to: Any) -> Tensor:
    """x converted to another dtype."""

def cbrt(x: _TensorLike, /) -> Tensor:
    """The cube root, elementwise."""

def ceil(x: _TensorLike, /) -> Tensor:
    """The smallest integer not below x, elementwise."""

def clip(x: _TensorLike, /, *, min: float | None = None, max: float | None = None) -> Tensor:
    """x clamped to [`min`, `max`], elementwise; NaN stays NaN."""

def col2im(
    x: _TensorLike,
    shape: Any,
    /,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> Tensor:
    """col2im, the sum of overlapping windows."""

def concat(*xs: _TensorLike, axis: int) -> Tensor:
    """The tensors concatenated along an axis."""

def conv(
    x: _TensorLike,
    w: _TensorLike,
    /,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation over any number of spatial axes."""

def conv_by_size(
    x: _TensorLike, w: _TensorLike, u: _TensorLike, /, *, pads: tuple[int, ...], spread: int = 1
) -> Tensor:
    """Cross-correlation with constant 3 x 3 windows, as `conv` over two spatial axes."""

def conv_integer(
    x: _TensorLike,
    w: _TensorLike,
    x_zero: _TensorLike,
    /,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of x - x_zero with w."""

def conv_integer_packed(
    x: _TensorLike,
    w: _TensorLike,
    sums: _TensorLike,
    x_zero: _TensorLike,
    /,
    *,
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of x - x_zero with constant weights that are packed in advance."""

def conv_packed(
    x: _TensorLike,
    w: _TensorLike,
    /,
    *,
    filters: int,
    window: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> Tensor:
    """Cross-correlation over one or two spatial axes with constant weights that are packed in advance, as `conv`."""

def conv_winograd(x: _TensorLike, u: _TensorLike, /, *, pads: tuple[int, ...], spread: int = 1) -> Tensor:
    """Cross-correlation with constant 3 x 3 windows, as `conv` over two spatial axes."""

def cos(x: _TensorLike, /) -> Tensor:
    """The cosine, elementwise."""

def cosh(x: _TensorLike, /) -> Tensor:
    """The hyperbolic cosine, elementwise."""

def count_leading_zeros(x: _TensorLike, /) -> Tensor:
    """The number of bits above the highest bit that is 1, elementwise; the number of all bits where x is 0."""

def cumprod(x: _TensorLike, /, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The cumulative product along an axis; integers wrap around."""

def cumsum(x: _TensorLike, /, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The cumulative sum along an axis; integers wrap around."""

def divide(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x / y, elementwise."""

def dynamic_quantize(x: _TensorLike, /) -> Any:
    """x quantized to u8: round(x / scale) + zero, clamped to [0, 255]."""

def element_at(x: _TensorLike, position: Any, /) -> Any:
    """The element of a tensor at a flat position, as a scalar."""

def equal(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x == y, elementwise; false where x or y is NaN."""

def erf(x: _TensorLike, /) -> Tensor:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x, elementwise."""

def erfc(x: _TensorLike, /) -> Tensor:
    """The complementary error function, 1 - erf(x), elementwise, accurate where erf(x) is near 1."""

def exp(x: _TensorLike, /) -> Tensor:
    """e to the power of x, elementwise."""

def exp_ftz(x: _TensorLike, /) -> Tensor:
    """e to the power of x, or 0 where x is below -86.9 (for f64: -708.3), elementwise."""

def expand(x: _TensorLike, shape: Any, /) -> Tensor:
    """x broadcast to a shape: repeated along axes whose size is 1 at run time, and along new axes in front."""

def expand_dims(x: _TensorLike, /, *, axes: tuple[int, ...]) -> Tensor:
    """x with new axes of size 1."""

def expm1(x: _TensorLike, /) -> Tensor:
    """e to the power of x, minus 1, elementwise, accurate for x near 0."""

def floor(x: _TensorLike, /) -> Tensor:
    """The largest integer not above x, elementwise."""

def gather(x: _TensorLike, indices: _TensorLike, /, *, axis: int = 0, from_end: bool = True) -> Tensor:
    """The slices of x along an axis at the given indices."""

def gather_elements(x: _TensorLike, indices: _TensorLike, /, *, axis: int, from_end: bool = True) -> Tensor:
    """The elements of x at positions that `indices` selects along `axis`."""

def gather_nd(x: _TensorLike, indices: _TensorLike, /, *, depth: int) -> Tensor:
    """The slices of x that the rows of `indices` select: result[a] is x[indices[a]], if a is the position of a row."""

def greater(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x > y, elementwise; false where x or y is NaN."""

def greater_equal(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x >= y, elementwise; false where x or y is NaN."""

def grid_sample(
    x: _TensorLike, grid: _TensorLike, /, *, mode: str, padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """The values of x, interpolated at positions between its elements, for every channel."""

def gru(
    x: _TensorLike,
    r: _TensorLike,
    b: _TensorLike,
    h: _TensorLike,
    lengths: _TensorLike,
    /,
    *,
    reset_after: bool = False,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> Any:
    """The gated recurrent unit."""

def identity(x: _TensorLike, /) -> Tensor:
    """x, unchanged."""

def interpolate(x: _TensorLike, indices: _TensorLike, weights: _TensorLike, /, *, axis: int) -> Tensor:
    """Weighted sums of elements along an axis."""

def iota(shape: Any, /) -> Tensor:
    """The numbers 0, 1, 2..., in row-major order."""

def is_finite(x: _TensorLike, /) -> Tensor:
    """Whether x is neither infinite nor NaN, elementwise."""

def is_null(x: Any, /) -> Any:
    """Whether a value is null."""

def less(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x < y, elementwise; false where x or y is NaN."""

def less_equal(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x <= y, elementwise; false where x or y is NaN."""

def lexsort_rows(x: _TensorLike, /) -> Tensor:
    """The row indices that sort the rows of a matrix in lexicographic order: x[lexsort_rows(x)] has sorted rows."""

def list_append(x: Any, item: Any, /) -> Any:
    """The list with an item appended."""

def list_concat(x: Any, /, *, axis: int) -> Tensor:
    """The tensors of a list concatenated along an axis."""

def list_erase(x: Any, index: Any, /) -> Any:
    """The list with one item removed."""

def list_insert(x: Any, index: Any, item: Any, /) -> Any:
    """The list x with `item` inserted before the item at `index`."""

def list_item(x: Any, index: Any, /) -> Any:
    """One item of a list."""

def list_length(x: Any, /) -> Any:
    """The number of items."""

def list_split(x: _TensorLike, sizes: Any, /, *, axis: int) -> Any:
    """A tensor split along an axis."""

def list_stack(x: Any, /, *, axis: int) -> Tensor:
    """The tensors of a list stacked along a new axis."""

def list_unstack(x: _TensorLike, /, *, axis: int) -> Any:
    """The slices of x at each position along an axis."""

def log(x: _TensorLike, /) -> Tensor:
    """The natural logarithm, elementwise; -inf where x is 0, NaN where x is below 0."""

def log1p(x: _TensorLike, /) -> Tensor:
    """The natural logarithm of 1 + x, elementwise, accurate for x near 0."""

def logical_and(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x and y, elementwise."""

def logical_not(x: _TensorLike, /) -> Tensor:
    """not x, elementwise."""

def logical_or(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x or y, elementwise."""

def lstm(
    x: _TensorLike,
    r: _TensorLike,
    p: _TensorLike,
    h: _TensorLike,
    c: _TensorLike,
    lengths: _TensorLike,
    /,
    *,
    coupled: bool = False,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> Any:
    """Long short-term memory."""

def make_list(*items: Any) -> Any:
    """A list of the arguments."""

def matmul(a: _TensorLike, b: _TensorLike, /, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The matrix product over the last two axes, for each element of the batch axes."""

def matmul_blockwise_int8(
    a: _TensorLike, b: _TensorLike, scales: _TensorLike, zeros: _TensorLike, /, *, columns: int, bits: int, block: int
) -> Tensor:
    """The product of a result of `quantize_blocks` and the dequantized matrix (q - zero) * scale."""

def matmul_blockwise_quant(
    a: _TensorLike, b: _TensorLike, scales: _TensorLike, zeros: _TensorLike, /, *, columns: int, bits: int, block: int
) -> Tensor:
    """The product of a and the dequantized matrix (q - zero) * scale."""

def matmul_integer(a: _TensorLike, b: _TensorLike, a_zero: _TensorLike, b_zero: _TensorLike, /) -> Tensor:
    """The matrix product of a - a_zero and b - b_zero, for each element of the batch axes."""

def matmul_integer_packed(
    a: _TensorLike, b: _TensorLike, sums: _TensorLike, a_zero: _TensorLike, b_zero: _TensorLike, /, *, columns: int
) -> Tensor:
    """The matrix product of a - a_zero and b - b_zero."""

def matmul_packed(a: _TensorLike, b: _TensorLike, /, *, columns: int) -> Tensor:
    """The product of one or more matrices and a constant matrix."""

def max(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element along some axes; NaN if an element is NaN."""

def max_pool(
    x: _TensorLike,
    /,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
) -> Tensor:
    """The largest element in each window; NaN if the window contains a NaN."""

def max_pool_indices(
    x: _TensorLike,
    /,
    *,
    kernel: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    dilations: tuple[int, ...] | None = None,
    column_major: bool = False,
) -> Tensor:
    """For each window, the position of the element that max_pool returns, the largest."""

def maximum(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """The larger of x and y, elementwise; NaN where x or y is NaN."""

def mean(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The mean along some axes."""

def min(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element along some axes; NaN if an element is NaN."""

def minimum(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """The smaller of x and y, elementwise; NaN where x or y is NaN."""

def modulo(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x - floor(x / y) * y, elementwise."""

def multiply(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x * y, elementwise; integers wrap around."""

def negative(x: _TensorLike, /) -> Tensor:
    """-x, elementwise; integers wrap around."""

def non_max_suppression(
    boxes: _TensorLike,
    scores: _TensorLike,
    limit: _TensorLike,
    overlap: _TensorLike,
    threshold: _TensorLike,
    /,
    *,
    centred: bool = False,
) -> Tensor:
    """Non-maximum suppression: for each image and class, the boxes that do not overlap a selected box of higher score."""

def nonzero(cond: _TensorLike, shape: Any, /) -> Tensor:
    """The row-major positions of the true elements, in order."""

def not_equal(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x != y, elementwise; true where x or y is NaN."""

def pad(x: _TensorLike, /, *, pads: tuple[int, ...], value: float = 0, mode: str = "constant") -> Tensor:
    """Pad each axis of x."""

def pairwise_coupling(x: _TensorLike, /) -> Tensor:
    """The class probabilities of each row that agree best with the probabilities of all pairs of classes."""

def population_count(x: _TensorLike, /) -> Tensor:
    """The number of bits that are 1, elementwise."""

def power(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x to the power of y, elementwise."""

def prod(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The product along some axes; integers wrap around."""

def quantize_blocks(x: _TensorLike, /, *, block: int) -> Tensor:
    """The rows of x quantized to signed bytes, block by block, for `matmul_blockwise_int8`."""

def random_bits() -> Any:
    """The next 64 uniformly random bits of the virtual machine."""

def reciprocal(x: _TensorLike, /) -> Tensor:
    """1 / x, elementwise."""

def relu(x: _TensorLike, /) -> Tensor:
    """max(x, 0), elementwise; NaN stays NaN."""

def remainder(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x - trunc(x / y) * y, elementwise."""

def reshape(x: _TensorLike, shape: Any, /) -> Tensor:
    """A tensor of another shape with the elements of x, in row-major order."""

def reverse_sequence(x: _TensorLike, lengths: _TensorLike, /, *, time_axis: int = 0) -> Tensor:
    """Each sequence in reverse order."""

def rnn(
    x: _TensorLike,
    r: _TensorLike,
    h: _TensorLike,
    lengths: _TensorLike,
    /,
    *,
    direction: str = "forward",
    activations: tuple[str, ...] | None = None,
    alpha: tuple[float, ...] | None = None,
    beta: tuple[float, ...] | None = None,
    clip: float | None = None,
) -> Any:
    """The simple recurrent network: h' = f(x + h * r), where h * r is a matrix product."""

def roi_align(
    x: _TensorLike,
    regions: _TensorLike,
    images: _TensorLike,
    /,
    *,
    size: tuple[int, int],
    mode: str = "avg",
    samples: int = 0,
    scale: float = 1.0,
    half_pixel: bool = True,
) -> Tensor:
    """Each region resampled to an image of size `size`, by bilinear interpolation."""

def roi_max_pool(
    x: _TensorLike, regions: _TensorLike, images: _TensorLike, /, *, size: tuple[int, int], scale: float = 1.0
) -> Tensor:
    """The largest element in each part of each region."""

def round(x: _TensorLike, /) -> Tensor:
    """The integer nearest to x, elementwise; ties to even."""

def round_away(x: _TensorLike, /) -> Tensor:
    """The integer nearest to x, elementwise; ties away from zero."""

def row_echelon(x: _TensorLike, /) -> Tensor:
    """For each matrix, an upper triangular matrix with the same determinant."""

def saturating_cast(x: _TensorLike, /, *, to: Any) -> Tensor:
    """x converted to a narrow integer dtype: rounded toward zero and clamped to the range of the dtype."""

def scatter_elements(
    x: _TensorLike,
    indices: _TensorLike,
    updates: _TensorLike,
    /,
    *,
    axis: int,
    reduction: str = "none",
    from_end: bool = True,
) -> Tensor:
    """A copy of x with elements of `updates` written to the positions that `indices` selects along `axis`."""

def scatter_nd(
    x: _TensorLike, indices: _TensorLike, updates: _TensorLike, /, *, depth: int, reduction: str = "none"
) -> Tensor:
    """x with some slices replaced by, or combined with, slices of `updates`."""

def shape_of(x: _TensorLike, /) -> Any:
    """The dimensions of x."""

def shape_to_tensor(shape: Any, /) -> Tensor:
    """The dimensions of a shape as a tensor."""

def shift_left(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Left shift of x by y bits, elementwise; 0 where y is negative or at least the number of bits of the dtype."""

def shift_right(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Right shift of x by y bits, elementwise, arithmetic for signed integers."""

def shift_right_logical(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Right shift of x by y bits, elementwise, which fills with zeros."""

def sigmoid(x: _TensorLike, /) -> Tensor:
    """1 / (1 + exp(-x)), elementwise."""

def sign(x: _TensorLike, /) -> Tensor:
    """The sign, elementwise: 1 where x > 0, -1 where x < 0, 0 where x is 0, NaN where x is NaN."""

def sin(x: _TensorLike, /) -> Tensor:
    """The sine, elementwise."""

def sinh(x: _TensorLike, /) -> Tensor:
    """The hyperbolic sine, elementwise."""

def slice(
    x: _TensorLike,
    /,
    *,
    begin: tuple[int, ...],
    end: tuple[int, ...],
    axes: tuple[int, ...] | None = None,
    steps: tuple[int, ...] | None = None,
) -> Tensor:
    """The slice x[begin:end:step] along some axes."""

def softmax(x: _TensorLike, /, *, axis: int = -1) -> Tensor:
    """exp(x - max(x)) divided by its sum, along an axis, with the exponentials of `exp_ftz`."""

def sqrt(x: _TensorLike, /) -> Tensor:
    """The square root, elementwise; NaN where x is below 0."""

def squeeze(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None) -> Tensor:
    """x with axes of size 1 removed."""

def string_case(x: _TensorLike, /, *, upper: int) -> Tensor:
    """The strings, converted to upper or lower case."""

def string_concat(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """The strings of x and y concatenated, elementwise."""

def string_equal(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """Whether the strings are equal, elementwise."""

def string_lookup(x: _TensorLike, keys: _TensorLike, table: _TensorLike, /) -> Tensor:
    """The index of each string in a list of keys."""

def string_match(x: _TensorLike, program: _TensorLike, /) -> Tensor:
    """For each string, whether a regular expression matches the whole string."""

def string_of_number(x: _TensorLike, /) -> Tensor:
    """Numbers as text."""

def string_part_count(x: _TensorLike, delimiter: _TensorLike, /, *, most: int = -1) -> Tensor:
    """The number of parts into which string_split divides each string."""

def string_positions(x: _TensorLike, *others: _TensorLike) -> Tensor:
    """The positions of the elements of x in the concatenation of `others` and x, all flattened in row-major order."""

def string_split(x: _TensorLike, delimiter: _TensorLike, /, *, most: int = -1) -> Tensor:
    """The parts of each string along a new last axis, padded with empty strings."""

def string_take(positions: _TensorLike, *xs: _TensorLike) -> Tensor:
    """The strings at the given positions in the concatenation of several flattened tensors."""

def string_to_number(x: _TensorLike, /, *, to: Any) -> Tensor:
    """Text parsed as decimal numbers, with optional white space around them."""

def string_tokens(x: _TensorLike, program: _TensorLike, /) -> Tensor:
    """The nonempty matches of a regular expression in each string, in order, along a new last axis."""

def subtract(x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x - y, elementwise; integers wrap around."""

def sum(x: _TensorLike, /, *, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The sum along some axes; integers wrap around."""

def tan(x: _TensorLike, /) -> Tensor:
    """The tangent, elementwise."""

def tanh(x: _TensorLike, /) -> Tensor:
    """The hyperbolic tangent, elementwise."""

def tensor_to_shape(x: _TensorLike, /) -> Any:
    """The elements of a vector as the dimensions of a shape."""

def to_scalar(x: _TensorLike, /) -> Any:
    """The element of a tensor of rank 0 as a scalar."""

def to_tensor(value: Any, /, *, dtype: Any) -> Tensor:
    """A scalar as a tensor of rank 0."""

def transpose(x: _TensorLike, /, *, perm: tuple[int, ...] | None = None) -> Tensor:
    """x with its axes permuted: axis i of the result is axis perm[i] of x."""

def tree_ensemble(
    x: _TensorLike,
    nodes: _TensorLike,
    roots: _TensorLike,
    depths: _TensorLike,
    columns: _TensorLike,
    starts: _TensorLike,
    entry_targets: _TensorLike,
    values: _TensorLike,
    /,
    *,
    targets: int,
    aggregate: str,
    steps: int,
    offset_bits: int,
    blocks: int,
) -> Tensor:
    """For each block of trees and each row of x, the aggregated values of the leaves that the row reaches."""

def tree_ensemble_compact(
    x: _TensorLike,
    columns: _TensorLike,
    thresholds: _TensorLike,
    children: _TensorLike,
    roots: _TensorLike,
    starts: _TensorLike,
    entry_targets: _TensorLike,
    values: _TensorLike,
    /,
    *,
    targets: int,
    aggregate: str,
    steps: int,
    blocks: int,
) -> Tensor:
    """For each block of trees and each row of x, the aggregated values of the leaves that the row reaches."""

def where(cond: _TensorLike, x: _TensorLike, y: _TensorLike, /) -> Tensor:
    """x where cond is true, otherwise y, elementwise."""

def bf16(value: Any, /) -> Any:
    """Convert a number or a tensor to bf16."""

def f16(value: Any, /) -> Any:
    """Convert a number or a tensor to f16."""

def f32(value: Any, /) -> Any:
    """Convert a number or a tensor to f32."""

def f4e2m1fn(value: Any, /) -> Any:
    """Convert a number or a tensor to f4e2m1fn."""

def f64(value: Any, /) -> Any:
    """Convert a number or a tensor to f64."""

def f6e2m3fn(value: Any, /) -> Any:
    """Convert a number or a tensor to f6e2m3fn."""

def f6e3m2fn(value: Any, /) -> Any:
    """Convert a number or a tensor to f6e3m2fn."""

def f8e4m3fn(value: Any, /) -> Any:
    """Convert a number or a tensor to f8e4m3fn."""

def f8e4m3fnuz(value: Any, /) -> Any:
    """Convert a number or a tensor to f8e4m3fnuz."""

def f8e5m2(value: Any, /) -> Any:
    """Convert a number or a tensor to f8e5m2."""

def f8e5m2fnuz(value: Any, /) -> Any:
    """Convert a number or a tensor to f8e5m2fnuz."""

def f8e8m0fnu(value: Any, /) -> Any:
    """Convert a number or a tensor to f8e8m0fnu."""

def i16(value: Any, /) -> Any:
    """Convert a number or a tensor to i16."""

def i2(value: Any, /) -> Any:
    """Convert a number or a tensor to i2."""

def i32(value: Any, /) -> Any:
    """Convert a number or a tensor to i32."""

def i4(value: Any, /) -> Any:
    """Convert a number or a tensor to i4."""

def i64(value: Any, /) -> Any:
    """Convert a number or a tensor to i64."""

def i8(value: Any, /) -> Any:
    """Convert a number or a tensor to i8."""

def u16(value: Any, /) -> Any:
    """Convert a number or a tensor to u16."""

def u2(value: Any, /) -> Any:
    """Convert a number or a tensor to u2."""

def u32(value: Any, /) -> Any:
    """Convert a number or a tensor to u32."""

def u4(value: Any, /) -> Any:
    """Convert a number or a tensor to u4."""

def u64(value: Any, /) -> Any:
    """Convert a number or a tensor to u64."""

def u8(value: Any, /) -> Any:
    """Convert a number or a tensor to u8."""
