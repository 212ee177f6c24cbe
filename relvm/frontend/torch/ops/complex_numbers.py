"""Operators on complex numbers, and Fourier transforms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.common import complex_math
from relvm.frontend.common.complex_math import Complex
from relvm.frontend.common.fourier import fourier_transform, inverse_real_transform
from relvm.frontend.common.kernel_parts import buffer, loops
from relvm.frontend.torch.complex_numbers import ComplexTensor, as_complex, parts_of
from relvm.frontend.torch.ops.creation import converted
from relvm.frontend.torch.ops.products import einsum, matmul
from relvm.frontend.torch.ops.shapes import sliced
from relvm.frontend.torch.registry import (
    Converter,
    Node,
    axis_of,
    converter_for,
    converts,
    converts_by_parts,
    converts_complex,
    known_int,
    shape_of,
)
from relvm.ir.dtypes import F64
from relvm.ir.expr import Expr, Shape
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Literal as Number
from relvm.ir.symbolic import dim_op, product
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

# ---- operators that treat both parts alike ----

converts_by_parts(
    *("view", "_unsafe_view", "unsafe_view", "reshape", "_reshape_alias", "view_as", "reshape_as"),
    *("flatten.using_ints",),
    *("ravel", "unflatten.int", "permute", "transpose.int", "swapaxes", "swapdims", "t", "numpy_T", "mT"),
    *("movedim.int", "moveaxis.int", "movedim.intlist", "moveaxis.intlist", "expand", "expand_as", "broadcast_to"),
    *("squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze", "slice.Tensor", "slice_copy.Tensor", "narrow"),
    *("select.int", "select_copy.int", "unbind.int", "split.Tensor", "split_with_sizes", "chunk", "as_strided"),
    *("tensor_split.sections", "tensor_split.indices", "flip", "fliplr", "flipud", "rot90", "roll", "repeat", "tile"),
    *("repeat_interleave.self_int", "unfold", "diagonal", "diagonal_copy", "linalg_diagonal", "tril", "triu"),
    *("diag_embed", "diag", "meshgrid", "meshgrid.indexing", "broadcast_tensors", "index_select", "gather"),
    *("take_along_dim", "take", "index.Tensor", "_unsafe_index.Tensor", "alias", "detach", "clone", "contiguous"),
    *("lift_fresh_copy", "view_copy", "expand_copy", "alias_copy", "lift_fresh", "pixel_shuffle", "pixel_unshuffle"),
    *("sum", "sum.dim_IntList", "mean", "mean.dim", "cumsum", "neg", "negative", "positive", "zeros_like", "zeros"),
    *("new_zeros", "empty_like", "empty.memory_format", "zero", "trace", "masked_select", "fft_fftshift"),
    *("fft_ifftshift", "vsplit.int", "vsplit.array", "hsplit.int", "hsplit.array", "dsplit.int", "dsplit.array"),
)
converts_by_parts(
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack", "column_stack", "dstack", "diff"),
    *("index_put", "_unsafe_index_put"),
    *("_index_put_impl", "scatter.src", "scatter.value", "scatter_add", "index_add", "index_copy", "masked_scatter"),
    *("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "where.self", "masked_fill.Scalar"),
    *("masked_fill.Tensor", "constant_pad_nd", "full", "full_like", "new_full", "fill.Scalar", "fill.Tensor"),
    *("pad", "where.ScalarOther", "where.ScalarSelf", "index_fill.int_Scalar", "index_fill.int_Tensor", "copy"),
    values=("self", "other", "src", "source", "value", "values", "tensors", "fill_value", "prepend", "append"),
)


# ---- parts ----


@converts_complex("view_as_real", "view_as_real_copy", view=True)
def _view_as_real(node: Node, self: ComplexTensor) -> Expr:
    """Returns the parts in the last axis, which is how relvm stores complex numbers."""
    columns = [node.reshaped(part, (*shape_of(part), 1)) for part in (self.real, self.imaginary)]
    return ops.concat(*columns, axis=-1)


@converts_complex("view_as_complex", "view_as_complex_copy", view=True)
def _view_as_complex(node: Node, self: Expr) -> ComplexTensor:
    return parts_of(node, self)


@converts_complex("complex")
def _complex(node: Node, real: Expr, imag: Expr) -> ComplexTensor:
    from relvm.ir.type_rules import broadcast_dims

    shape = broadcast_dims("complex", (shape_of(real), shape_of(imag)))
    return ComplexTensor(node.broadcast(real, shape), node.broadcast(imag, shape))


@converts_complex("polar")
def _polar(node: Node, abs: Expr, angle: Expr) -> ComplexTensor:
    real, imaginary = ops.multiply(abs, ops.cos(angle)), ops.multiply(abs, ops.sin(angle))
    return ComplexTensor(node.emit(real), node.emit(imaginary))


@converts_complex("real", view=True)
def _real(node: Node, self: ComplexTensor) -> Expr:
    return self.real


@converts_complex("imag", view=True)
def _imag(node: Node, self: ComplexTensor) -> Expr:
    return self.imaginary


@converts_complex("conj", "_conj", "_conj_physical", "conj_physical")
def _conj(node: Node, self: ComplexTensor) -> ComplexTensor:
    return ComplexTensor(self.real, ops.negative(self.imaginary))


@converts_complex("adjoint", "mH", "matrix_H")
def _adjoint(node: Node, self: ComplexTensor) -> ComplexTensor:
    rank = len(shape_of(self.real))
    order = (*range(rank - 2), rank - 1, rank - 2)
    real, imaginary = (ops.transpose(part, perm=order) for part in (self.real, self.imaginary))
    return ComplexTensor(real, ops.negative(imaginary))


@converts_complex("resolve_conj", "resolve_neg")
def _resolved(node: Node, self: ComplexTensor) -> ComplexTensor:
    return self


@converts_complex("_to_copy", "to.dtype", "to.dtype_layout", "to.other", "type_as")
def _to_copy(node: Node, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Converts a real number with the imaginary part 0, and a complex number to a real one by dropping this part."""
    return _converted(node, self)


@converts_complex("prims.convert_element_type.default")
def _convert_element_type(node: Node, a: Any, dtype: Any) -> Any:
    return _converted(node, a)


def _converted(node: Node, x: Any) -> Any:
    dtype = node.out_dtype()
    if node.has_complex_result():
        return as_complex(node, x, dtype)
    if dtype.is_bool:
        return ops.logical_or(ops.not_equal(x.real, 0), ops.not_equal(x.imaginary, 0))
    return converted(node, x.real, dtype)


# ---- functions ----


def _wide(node: Node, x: Any) -> Complex:
    """Return the parts of a tensor or a number in f64."""
    found = as_complex(node, x, F64)
    return node.emit(found.real), node.emit(found.imaginary)


def _rounded(node: Node, x: Complex) -> ComplexTensor:
    """Return a complex tensor with the dtype of the result."""
    real, imaginary = (node.emit(node.cast(node.emit(part), node.out_dtype())) for part in x)
    return ComplexTensor(real, imaginary)


def _declare(function: Callable[..., Complex], *names: str) -> None:
    """Declare a function of one complex number."""

    @converts_complex(*names)
    def convert(node: Node, self: ComplexTensor) -> ComplexTensor:
        return _rounded(node, function(node, _wide(node, self)))


_declare(complex_math.acos, "acos", "arccos")
_declare(complex_math.acosh, "acosh", "arccosh")
_declare(complex_math.asin, "asin", "arcsin")
_declare(complex_math.asinh, "asinh", "arcsinh")
_declare(complex_math.atan, "atan", "arctan")
_declare(complex_math.atanh, "atanh", "arctanh")
_declare(complex_math.cosh, "cosh")
_declare(complex_math.cosine, "cos")
_declare(complex_math.exponential, "exp")
_declare(complex_math.exponential_minus_one, "expm1", "special_expm1")
_declare(complex_math.log, "log")
_declare(complex_math.log_plus_one, "log1p", "special_log1p")
_declare(complex_math.logistic, "sigmoid", "special_expit")
_declare(complex_math.rsqrt, "rsqrt")
_declare(complex_math.sign, "sgn")
_declare(complex_math.sine, "sin")
_declare(complex_math.sinh, "sinh")
_declare(complex_math.sqrt, "sqrt")
_declare(complex_math.square, "square")
_declare(complex_math.tan, "tan")
_declare(complex_math.tanh, "tanh")


@converts_complex("reciprocal")
def _reciprocal(node: Node, self: ComplexTensor) -> ComplexTensor:
    return _rounded(node, complex_math.divide(node, _wide(node, 1), _wide(node, self)))


@converts_complex("abs", "absolute")
def _abs(node: Node, self: ComplexTensor) -> Expr:
    return node.cast(complex_math.magnitude(node, _wide(node, self)), node.out_dtype())


@converts_complex("angle")
def _angle(node: Node, self: ComplexTensor) -> Expr:
    real, imaginary = _wide(node, self)
    return node.cast(node.emit(ops.atan2(imaginary, real)), node.out_dtype())


def _scaled(node: Node, y: Any, alpha: Any) -> ComplexTensor:
    y = as_complex(node, y, node.out_dtype())
    if alpha == 1:
        return y
    if not isinstance(alpha, complex):
        return ComplexTensor(ops.multiply(y.real, alpha), ops.multiply(y.imaginary, alpha))
    return _rounded(node, complex_math.multiply(node, _wide(node, y), _wide(node, alpha)))


@converts_complex("add.Tensor", "add.Scalar")
def _add(node: Node, self: Any, other: Any, alpha: Any = 1) -> ComplexTensor:
    x, y = as_complex(node, self, node.out_dtype()), _scaled(node, other, alpha)
    return ComplexTensor(ops.add(x.real, y.real), ops.add(x.imaginary, y.imaginary))


@converts_complex("sub.Tensor", "sub.Scalar", "subtract.Tensor", "subtract.Scalar")
def _sub(node: Node, self: Any, other: Any, alpha: Any = 1) -> ComplexTensor:
    x, y = as_complex(node, self, node.out_dtype()), _scaled(node, other, alpha)
    return ComplexTensor(ops.subtract(x.real, y.real), ops.subtract(x.imaginary, y.imaginary))


@converts_complex("rsub.Tensor", "rsub.Scalar")
def _rsub(node: Node, self: Any, other: Any, alpha: Any = 1) -> ComplexTensor:
    return _sub(node, other, self, alpha)


@converts_complex("mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar")
def _mul(node: Node, self: Any, other: Any) -> ComplexTensor:
    """Multiplies both parts, if a factor is real."""
    dtype = node.out_dtype()
    for x, y in ((self, other), (other, self)):
        if isinstance(x, ComplexTensor) and not isinstance(y, ComplexTensor | complex):
            factor = node.emit(node.number(y, dtype))
            real, imaginary = as_complex(node, x, dtype).real, as_complex(node, x, dtype).imaginary
            return ComplexTensor(ops.multiply(real, factor), ops.multiply(imaginary, factor))
    return _rounded(node, complex_math.multiply(node, _wide(node, self), _wide(node, other)))


@converts_complex("div.Tensor", "div.Scalar", "divide.Tensor", "divide.Scalar", "true_divide.Tensor")
def _div(node: Node, self: Any, other: Any) -> ComplexTensor:
    """Divides both parts, if the divisor is real."""
    if not isinstance(other, ComplexTensor | complex):
        x, divisor = as_complex(node, self, node.out_dtype()), node.emit(node.number(other, node.out_dtype()))
        return ComplexTensor(ops.divide(x.real, divisor), ops.divide(x.imaginary, divisor))
    return _rounded(node, complex_math.divide(node, _wide(node, self), _wide(node, other)))


@converts_complex("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(node: Node, self: Any, exponent: Any) -> ComplexTensor:
    if exponent == 2 and not isinstance(exponent, Expr):
        return _rounded(node, complex_math.square(node, _wide(node, self)))
    return _rounded(node, complex_math.power(node, _wide(node, self), _wide(node, exponent)))


def _same(node: Node, self: Any, other: Any) -> Expr:
    (a, b), (c, d) = _wide(node, self), _wide(node, other)
    return node.emit(ops.logical_and(ops.equal(a, c), ops.equal(b, d)))


@converts_complex("eq.Tensor", "eq.Scalar")
def _eq(node: Node, self: Any, other: Any) -> Expr:
    return _same(node, self, other)


@converts_complex("ne.Tensor", "ne.Scalar")
def _ne(node: Node, self: Any, other: Any) -> Expr:
    return ops.logical_not(_same(node, self, other))


@converts_complex("isfinite")
def _isfinite(node: Node, self: ComplexTensor) -> Expr:
    return ops.logical_and(ops.is_finite(self.real), ops.is_finite(self.imaginary))


@converts_complex("isnan")
def _isnan(node: Node, self: ComplexTensor) -> Expr:
    return ops.logical_or(ops.not_equal(self.real, self.real), ops.not_equal(self.imaginary, self.imaginary))


@converts_complex("isinf")
def _isinf(node: Node, self: ComplexTensor) -> Expr:
    real, imaginary = (ops.equal(ops.abs(part), math.inf) for part in (self.real, self.imaginary))
    return ops.logical_or(real, imaginary)


@converts_complex("isreal")
def _isreal(node: Node, self: ComplexTensor) -> Expr:
    return ops.equal(self.imaginary, 0)


def _product(node: Node, x: Any, y: Any) -> ComplexTensor:
    """Return the matrix product: four products of the parts."""
    dtype = node.out_dtype()
    a, b = as_complex(node, x, dtype), as_complex(node, y, dtype)

    def multiplied(x: Expr, y: Expr) -> Expr:
        return node.emit(matmul(node, node.emit(x), node.emit(y)))

    real = ops.subtract(multiplied(a.real, b.real), multiplied(a.imaginary, b.imaginary))
    return ComplexTensor(real, ops.add(multiplied(a.real, b.imaginary), multiplied(a.imaginary, b.real)))


@converts_complex("mm", "bmm")
def _mm(node: Node, self: Any, mat2: Any) -> ComplexTensor:
    return _product(node, self, mat2)


@converts_complex("matmul", "linalg_matmul")
def _matmul(node: Node, self: Any, other: Any) -> ComplexTensor:
    return _product(node, self, other)


@converts_complex("mv")
def _mv(node: Node, self: Any, vec: Any) -> ComplexTensor:
    return _product(node, self, vec)


@converts_complex("dot")
def _dot(node: Node, self: Any, tensor: Any) -> ComplexTensor:
    return _product(node, self, tensor)


@converts_complex("vdot")
def _vdot(node: Node, self: Any, other: Any) -> ComplexTensor:
    return _product(node, _conj(node, as_complex(node, self, node.out_dtype())), other)


@converts_complex("outer", "ger")
def _outer(node: Node, self: Any, vec2: Any) -> ComplexTensor:
    x, y = (as_complex(node, each, node.out_dtype()) for each in (self, vec2))
    column = ComplexTensor(*(node.reshaped(part, (*shape_of(part), 1)) for part in (x.real, x.imaginary)))
    return _rounded(node, complex_math.multiply(node, _wide(node, column), _wide(node, y)))


@converts_complex("einsum")
def _einsum(node: Node, equation: str, tensors: Sequence[Any], *, path: Any = None) -> ComplexTensor:
    """Adds up the products of all choices of parts."""
    operands = [as_complex(node, each, node.out_dtype()) for each in tensors]
    totals: list[Expr | None] = [None, None]
    for choice in itertools.product((0, 1), repeat=len(operands)):
        parts = [x.imaginary if part else x.real for x, part in zip(operands, choice, strict=True)]
        term = node.emit(einsum(node, equation, [node.emit(part) for part in parts]))
        at, is_negative = sum(choice) % 2, sum(choice) % 4 >= 2  # the power of i
        before = totals[at]
        if before is None:
            totals[at] = node.emit(ops.negative(term)) if is_negative else term
        else:
            totals[at] = node.emit((ops.subtract if is_negative else ops.add)(before, term))
    real, imaginary = totals
    assert real is not None and imaginary is not None
    return ComplexTensor(real, imaginary)


# ---- sizes and reductions ----


def _running_products(name: str, x: TensorType, *, only_last: bool) -> KernelDef:
    """Return a kernel for the products of complex numbers along the middle one of three axes.

    x: the type of each part of the argument, of dtype f64.
    only_last: whether the results are the products of all numbers, otherwise those up to each number.
    """
    k = KernelBuilder()
    parts = [buffer(part, x) for part in ("real", "imaginary")]
    first, count, last = parts[0].shape
    shape = TensorType(F64, (first, last) if only_last else (first, count, last))
    outs = [buffer(f"{part.name}_out", shape, is_output=True) for part in parts]
    with loops(k, (first, last)) as (i, j):
        totals = [k.variable("total", Number(value, F64)) for value in (1.0, 0.0)]
        with loops(k, (count,)) as (at,):
            (a, b), (c, d) = (k.let("a", totals[0]), k.let("b", totals[1])), (part[i, at, j] for part in parts)
            k.assign(totals[0], a * c - b * d)
            k.assign(totals[1], a * d + b * c)
            if not only_last:
                for out, total in zip(outs, totals, strict=True):
                    k.store(out, (i, at, j), total)
        if only_last:
            for out, total in zip(outs, totals, strict=True):
                k.store(out, (i, j), total)
    return KernelDef(name, tuple(parts), tuple(outs), k.finish())


def _products_along(node: Node, x: Any, axis: int, *, only_last: bool) -> Complex:
    """Return the products along an axis, without this axis if `only_last` is true.   x: a tensor of rank >= 1."""
    parts = _wide(node, x)
    shape = shape_of(parts[0])
    before, after = shape[:axis], shape[axis + 1 :]
    flat = [node.reshaped(part, (product(before), shape[axis], product(after))) for part in parts]
    kernel = _running_products(node.kernel_name("complex_products"), flat[0].tensor_type, only_last=only_last)
    found = (product(before), product(after)) if only_last else (product(before), shape[axis], product(after))
    real, imaginary = node.call_kernel(kernel, flat, [TensorType(F64, found)] * 2)
    result = (*before, *after) if only_last else shape
    return node.reshaped(real, result), node.reshaped(imaginary, result)


@converts_complex("prod", "prod.dim_int")
def _prod(node: Node, self: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> ComplexTensor:
    x = as_complex(node, self, F64)
    shape = shape_of(x.real)
    if not shape:
        return _rounded(node, _wide(node, x))
    if dim is None:
        x = ComplexTensor(*(node.reshaped(node.emit(part), (product(shape),)) for part in (x.real, x.imaginary)))
    axis = 0 if dim is None else axis_of(dim, len(shape))
    found = _products_along(node, x, axis, only_last=True)
    if keepdim:
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        found = node.reshaped(found[0], kept), node.reshaped(found[1], kept)
    return _rounded(node, found)


@converts_complex("cumprod")
def _cumprod(node: Node, self: Any, dim: int, *, dtype: Any = None) -> ComplexTensor:
    x = as_complex(node, self, F64)
    shape = shape_of(x.real)
    if not shape:
        return _rounded(node, _wide(node, x))
    return _rounded(node, _products_along(node, x, axis_of(dim, len(shape)), only_last=False))


@converts_complex("sym_size.int")
def _sym_size(node: Node, self: ComplexTensor, dim: int) -> Any:
    return shape_of(self.real)[dim]


@converts_complex("sym_numel")
def _sym_numel(node: Node, self: ComplexTensor) -> Any:
    return product(shape_of(self.real))


def _ones(*names: str) -> None:
    @converts_complex(*names)
    def convert(node: Node, *args: Any, **kwargs: Any) -> ComplexTensor:
        one, zero = (node.full(value, node.out_shape(), node.out_dtype()) for value in (1, 0))
        return ComplexTensor(one, zero)


_ones("ones_like", "ones", "new_ones")


@converts_complex("linalg_vector_norm", "norm.Scalar", "norm.ScalarOpt_dim")
def _vector_norm(node: Node, self: ComplexTensor, *args: Any, **kwargs: Any) -> Expr:
    return _for_real(node)(node, _abs(node, self), *args, **kwargs)


def _declare_variance(name: str, *, root: bool) -> None:
    @converts_complex(name, f"{name}.dim", f"{name}.correction")
    def convert(node: Node, self: ComplexTensor, *args: Any, **kwargs: Any) -> Expr:
        """Adds up the variances of both parts."""
        found = [node.emit(_for_real(node)(node, part, *args, **kwargs)) for part in (self.real, self.imaginary)]
        return ops.sqrt(ops.add(*(ops.multiply(each, each) for each in found))) if root else ops.add(*found)


_declare_variance("var", root=False)
_declare_variance("std", root=True)


def _for_real(node: Node) -> Converter:
    """Return the converter of a node's operator for real numbers."""
    convert = converter_for(node.node.target.removeprefix("torch.ops."))
    assert convert is not None
    return convert


# ---- Fourier transforms ----


Half = Literal["", "operand", "result"]


def _transformed(node: Node, x: Complex, axis: int, count: int, *, inverse: bool, half: Half) -> Complex:
    """Return the transform along one axis.

    half: "operand" if x has only the first half of a spectrum whose inverse transform is real, or "result" if only the
        first half of the spectrum is needed.
    """
    rank = len(shape_of(x[0]))
    order = (*(i for i in range(rank) if i != axis), axis)
    real, imaginary = (node.emit(ops.transpose(part, perm=order)) for part in x)
    if half == "operand":
        real = inverse_real_transform(node.importer, real, imaginary, count)
        imaginary = node.emit(ops.multiply(real, 0.0))
    else:
        real, imaginary = fourier_transform(node.importer, real, imaginary, count, inverse=inverse)
    if half == "result":
        end = count // 2 + 1
        real, imaginary = (node.emit(ops.slice(part, begin=(0,), end=(end,), axes=(-1,))) for part in (real, imaginary))
    back = (*range(axis), rank - 1, *range(axis, rank - 1))
    real, imaginary = (node.emit(ops.transpose(part, perm=back)) for part in (real, imaginary))
    return real, imaginary


def _fourier(
    node: Node, x: Complex, dims: Sequence[int], normalization: int, *, inverse: bool, last: int = 0, half: Half = ""
) -> Complex:
    """Return the transform along axes.

    normalization: 0 for no scale, 1 for 1 / sqrt(n), 2 for 1 / n.
    last: the number of points of the last of the axes, if only half of them are given.
    half: as for `_transformed`, along the last of the axes.  This axis is transformed first if only half of the result
        is needed, and otherwise last.
    """
    rank = len(shape_of(x[0]))
    axes = [axis_of(dim, rank) for dim in dims]
    order = axes[::-1] if half == "result" else axes
    total = 1
    for axis in order:
        is_half = axis == axes[-1] and half
        given = known_int(shape_of(x[0])[axis], "the number of points of a Fourier transform")
        count = last if is_half and half == "operand" else given
        if is_half and half == "operand" and given != count // 2 + 1:
            needed = count // 2 + 1
            if given < needed:
                raise RelvmFormatError(f"the axis {axis} has the size {given}, expected {needed}")
            real, imaginary = (node.emit(ops.slice(part, begin=(0,), end=(needed,), axes=(axis,))) for part in x)
            x = (real, imaginary)
        x = _transformed(node, x, axis, count, inverse=inverse, half=half if is_half else "")
        total *= count
    wanted = (1.0, total**-0.5, 1 / max(total, 1))[normalization] if total else 1.0
    factor = wanted * (total if inverse else 1)
    if abs(factor - 1) > 1e-15:
        real, imaginary = (node.emit(ops.multiply(part, factor)) for part in x)
        return (real, imaginary)
    return x


def _window(node: Node, window: Expr | None, count: int, win_length: Any) -> Expr:
    """Return the factors of `count` elements in f64: the elements of a window, in the middle of zeros.

    window: the elements, or None for ones.
    win_length: the number of elements, or None for `count`.
    """
    width = count if win_length is None else known_int(win_length, "win_length")
    before = (count - width) // 2
    weights = node.emit(node.full(1, (width,), F64) if window is None else node.cast(window, F64))
    return node.emit(ops.pad(weights, pads=(before, count - width - before)))


def _short_time_transform(
    node: Node,
    self: Any,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Complex:
    """Return the Fourier transforms of windows of signals, which are in the last axis."""
    if isinstance(window, ComplexTensor) or align_to_window:
        raise RelvmUnsupportedError("a complex window, or the argument align_to_window, is not supported")
    count = known_int(n_fft, "n_fft")
    step = count // 4 if hop_length is None else known_int(hop_length, "hop_length")
    weights = _window(node, window, count, win_length)
    unfold = converter_for("aten.unfold.default")
    assert unfold is not None
    frames = [node.emit(unfold(node, part, len(shape_of(part)) - 1, count, step)) for part in _wide(node, self)]
    real, imaginary = (node.emit(ops.multiply(part, weights)) for part in frames)
    half: Half = "result" if onesided is not False and not isinstance(self, ComplexTensor) else ""
    rank = len(shape_of(real))
    found = _fourier(node, (real, imaginary), (rank - 1,), int(normalized), inverse=False, half=half)
    order = (*range(rank - 2), rank - 1, rank - 2)
    real, imaginary = (node.emit(ops.transpose(part, perm=order)) for part in found)
    return real, imaginary


@converts_complex("stft")
def _stft(node: Node, **arguments: Any) -> ComplexTensor:
    return _rounded(node, _short_time_transform(node, **arguments))


@converts("stft")
def _stft_of_parts(node: Node, **arguments: Any) -> Expr:
    """Needs numbers of points that are known when the program is imported."""
    return _view_as_real(node, _rounded(node, _short_time_transform(node, **arguments)))


@converts_complex("istft")
def _istft(
    node: Node,
    self: ComplexTensor,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    """Needs a number of points that is known when the program is imported."""
    if isinstance(window, ComplexTensor):
        raise RelvmUnsupportedError("a complex window is not supported")
    count = known_int(n_fft, "n_fft")
    step = count // 4 if hop_length is None else known_int(hop_length, "hop_length")
    real, imaginary = _wide(node, self)
    rank, frames = len(shape_of(real)), shape_of(real)[-1]
    batch = shape_of(real)[:-2]
    half: Half = "" if return_complex else "operand"
    parts = _fourier(node, (real, imaginary), (rank - 2,), 1 if normalized else 2, inverse=True, last=count, half=half)
    weights = node.reshaped(_window(node, window, count, win_length), (count, 1))
    signal, start = count + step * (frames - 1), count // 2 if center else 0
    end = start + length if length is not None else signal - start
    inside = dim_op("min", end, signal)

    def overlapped(windows: Expr) -> Expr:
        """Return the sum of windows of shape (rows, count, frames), cut off at both ends."""
        rows = shape_of(windows)[0]
        shape = Shape((rows, 1, signal))
        total = node.emit(ops.col2im(node.reshaped(windows, (rows, 1, count, frames)), shape, strides=(step,)))
        return node.emit(sliced(node, node.reshaped(total, (rows, signal)), 1, start, inside))

    squares = node.broadcast(node.emit(ops.multiply(weights, weights)), (1, count, frames))
    envelope = overlapped(squares)
    found = []
    for part in parts[: 2 if return_complex else 1]:
        windows = node.reshaped(node.emit(ops.multiply(part, weights)), (product(batch), count, frames))
        result = node.emit(ops.divide(overlapped(windows), envelope))
        if length is not None:
            missing = node.full(0, (product(batch), end - inside), F64)
            result = node.emit(ops.concat(result, missing, axis=1))
        found.append(node.reshaped(result, (*batch, end - start)))
    return _rounded(node, (found[0], found[1])) if return_complex else node.cast(found[0], node.out_dtype())


@converts_complex("_fft_c2c")
def _fft_c2c(node: Node, self: ComplexTensor, dim: Sequence[int], normalization: int, forward: bool) -> ComplexTensor:
    return _rounded(node, _fourier(node, _wide(node, self), dim, normalization, inverse=not forward))


@converts_complex("_fft_r2c")
def _fft_r2c(node: Node, self: Expr, dim: Sequence[int], normalization: int, onesided: bool) -> ComplexTensor:
    half: Half = "result" if onesided else ""
    return _rounded(node, _fourier(node, _wide(node, self), dim, normalization, inverse=False, half=half))


@converts_complex("_fft_c2r")
def _fft_c2r(node: Node, self: ComplexTensor, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Expr:
    last = known_int(last_dim_size, "the number of points of a Fourier transform")
    x = _fourier(node, _wide(node, self), dim, normalization, inverse=True, last=last, half="operand")
    return node.cast(x[0], node.out_dtype())


def _sized(node: Node, x: Complex, axis: int, count: Any) -> Complex:
    """Return x cut off, or filled with zeros, to a size along an axis.   count: the size, or None to keep it."""
    shape = shape_of(x[0])
    if count is None or count == shape[axis]:
        return x
    count = known_int(count, "the number of points of a Fourier transform")
    missing = count - known_int(shape[axis], "the number of points of a Fourier transform")
    if missing < 0:
        real, imaginary = (ops.slice(part, begin=(0,), end=(count,), axes=(axis,)) for part in x)
    else:
        zeros = node.full(0, (*shape[:axis], missing, *shape[axis + 1 :]), F64)
        real, imaginary = (ops.concat(part, zeros, axis=axis) for part in x)
    return node.emit(real), node.emit(imaginary)


_NORMS = {None: 0, "backward": 0, "ortho": 1, "forward": 2}


def _declare_fourier(*names: str, inverse: bool, half: Half, fixed: Sequence[int] | None) -> None:
    """Declare transforms along axes.

    fixed: the axes by default, or None for the last ones for which a size is given, or else all.
    """

    @converts_complex(*names)
    def convert(node: Node, self: Any, n: Any = None, dim: Any = None, norm: Any = None, s: Any = None) -> Any:
        x = _wide(node, self)
        rank = len(shape_of(x[0]))
        sizes = n if s is None else s
        sizes = sizes if sizes is None or isinstance(sizes, tuple) else (sizes,)
        axes = fixed if dim is None else (dim if isinstance(dim, tuple) else (dim,))
        if axes is None:
            axes = tuple(range(rank)) if sizes is None else tuple(range(rank - len(sizes), rank))
        axes = [axis_of(axis, rank) for axis in axes]
        counts = [None if size == -1 else size for size in (sizes or [None] * len(axes))]
        if not axes:
            return _rounded(node, x) if node.has_complex_result() else node.cast(x[0], node.out_dtype())
        last: Any = 0
        if half == "operand":
            given = known_int(shape_of(x[0])[axes[-1]], "the number of points of a Fourier transform")
            last = 2 * (given - 1) if counts[-1] is None else known_int(counts[-1], "the size of a Fourier transform")
            counts[-1] = last // 2 + 1
        for axis, count in zip(axes, counts, strict=True):
            x = _sized(node, x, axis, count)
        scale = _NORMS[norm]
        x = _fourier(node, x, axes, 2 - scale if inverse else scale, inverse=inverse, last=last, half=half)
        return _rounded(node, x) if node.has_complex_result() else node.cast(x[0], node.out_dtype())


_KINDS: tuple[tuple[str, bool, Half], ...] = (
    ("fft", False, ""),
    ("ifft", True, ""),
    ("rfft", False, "result"),
    ("irfft", True, "operand"),
)
for _kind, _inverse, _half in _KINDS:
    _declare_fourier(f"fft_{_kind}", inverse=_inverse, half=_half, fixed=(-1,))
    _declare_fourier(f"fft_{_kind}2", inverse=_inverse, half=_half, fixed=(-2, -1))
    _declare_fourier(f"fft_{_kind}n", inverse=_inverse, half=_half, fixed=None)
