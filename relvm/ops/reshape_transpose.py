"""Operators that rearrange elements without changing them: views, broadcasting, transposition."""

from __future__ import annotations

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError, counted
from relvm.ir.dtypes import I64
from relvm.ir.loop_ir import as_scalar
from relvm.ir.operator import expect, op
from relvm.ir.symbolic import difference, format_dim
from relvm.ir.type_rules import (
    broadcast_dims,
    claim_same_size,
    expect_axes,
    expect_axis,
    expect_equal_dims,
    expect_integers,
    expect_shape,
    expect_tensor,
)
from relvm.ir.types import ShapeType, TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import (
    VIEW,
    Builtin,
    CustomKernel,
    DataMovement,
    IndexExprs,
    elementwise,
    parallel_loop_nest,
)


@op("shape_of", numpy=np.shape, lower=Builtin("shape_of"), moves=True)
def shape_of(x: TensorType) -> ShapeType:
    """The dimensions of x.

    x: any tensor.
    Result: a shape.
    Raises RelvmTypeError if the argument is not a tensor.
    Source: ONNX Shape-19.

    Examples:

        >>> run("shape_of(x)", x=[[1, 2, 3], [4, 5, 6]])
        Shape(2, 3)
    """
    expect(isinstance(x, TensorType), "shape_of: x is {}, expected a tensor", x)
    return ShapeType(x.shape, x.rank)


@op("shape_to_tensor", numpy=lambda shape: np.array(shape, np.int64), lower=Builtin("shape_to_tensor"))
def shape_to_tensor(shape: ShapeType) -> TensorType:
    """The dimensions of a shape as a tensor.

    shape: any shape.
    Result: an i64 tensor with one element for each dimension.
    Raises RelvmTypeError if the argument is not a shape.
    Source: ONNX Shape-19.

    Examples:

        >>> run("shape_to_tensor(shape_of(x))", x=[[1, 2, 3], [4, 5, 6]])
        [2 3]
    """
    expect_shape("shape_to_tensor", "shape", shape)
    return TensorType(I64, None if shape.rank is None else (shape.rank,), 1)


def _numpy_tensor_to_shape(x: np.ndarray) -> tuple[int, ...]:
    for axis, size in enumerate(x.tolist()):
        message = "tensor_to_shape: element {} is {}; a dimension must be at least 0"
        expect(size >= 0, message, axis, size, error=RelvmShapeError)
    return tuple(x.tolist())


@op("tensor_to_shape", numpy=_numpy_tensor_to_shape, lower=Builtin("tensor_to_shape"))
def tensor_to_shape(x: TensorType) -> ShapeType:
    """The elements of a vector as the dimensions of a shape.

    x: an i64 tensor of shape (n,).
    Result: a shape, whose rank is n if n is known.
    Raises RelvmTypeError if x has another dtype or rank.  At run time, it raises RelvmShapeError if an element is
    negative.
    Source: the shape argument of ONNX Reshape-19.

    Examples:

        >>> run("tensor_to_shape(x)", x=[2, 3])
        Shape(2, 3)
    """
    expect_tensor("tensor_to_shape", x=x)
    expect(x.dtype == I64, "tensor_to_shape: x has dtype {}, expected i64", x.dtype)
    expect(x.rank in (None, 1), "tensor_to_shape: x has rank {}, expected 1", x.rank)
    (size,) = x.shape or (None,)
    return ShapeType(None, size if isinstance(size, int) else None)


@op("reshape", numpy=np.reshape, lower=VIEW, moves=True)
def reshape(x: TensorType, shape: ShapeType) -> TensorType:
    """A tensor of another shape with the elements of x, in row-major order.

    x: any tensor.
    shape: a shape with the same number of elements.  -1 is not allowed.
    Result: a tensor with the dtype of x and the shape `shape`.
    Raises RelvmShapeError if the number of elements differs, or a dimension is negative.
    Source: ONNX Reshape-19.

    Examples:

        >>> run("reshape(x, shape(3, 2))", x=[[1, 2, 3], [4, 5, 6]])
        [[1 2]
         [3 4]
         [5 6]]
    """
    expect_tensor("reshape", x=x)
    expect_shape("reshape", "shape", shape)
    if x.shape is not None and shape.dims is not None:
        claim_same_size("reshape", x.shape, shape.dims)
    return TensorType(x.dtype, shape.dims, shape.rank)


@op("expand_dims", numpy=lambda x, *, axes: np.expand_dims(x, axes), lower=VIEW, moves=True)
def expand_dims(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    """x with new axes of size 1.

    x: any tensor.
    axes: the distinct positions of the new axes in the result, each in [-r, r), where r is the rank of the result.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if an axis is out of range or given twice.
    Source: ONNX Unsqueeze-21.

    Examples:

        >>> run("expand_dims(x, axes=(0,))", x=[1, 2, 3])
        [[1 2 3]]
    """
    expect_tensor("expand_dims", x=x)
    expect_integers("expand_dims", "axes", axes)
    if x.rank is None:
        return x
    rank = x.rank + len(axes)
    new = expect_axes("expand_dims", axes, rank)
    if x.shape is None:
        return TensorType(x.dtype, None, rank)
    kept = iter(x.shape)
    return TensorType(x.dtype, tuple(1 if axis in new else next(kept) for axis in range(rank)))


def _numpy_squeeze(x: np.ndarray, *, axes: tuple[int, ...] | None) -> np.ndarray:
    return np.squeeze(x, axis=axes)


@op("squeeze", numpy=_numpy_squeeze, lower=VIEW, moves=True)
def squeeze(x: TensorType, *, axes: tuple[int, ...] | None = None) -> TensorType:
    """x with axes of size 1 removed.

    x: any tensor.
    axes: distinct axes of size 1, each in [-rank, rank), or None for every axis of size 1.  None is allowed only if all
    dimensions of x are known numbers.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if an axis is out of range or given twice.  Raises RelvmShapeError if an axis is not provably
    of size 1, or axes is None and a dimension is unknown.
    Source: ONNX Squeeze-21.

    Examples:

        >>> run("squeeze(x, axes=(0,))", x=[[1, 2, 3]])
        [1 2 3]
    """
    expect_tensor("squeeze", x=x)
    if axes is None:
        known = x.shape is not None and all(isinstance(dim, int) for dim in x.shape)
        expect(known, "squeeze: x is {}; every dimension must be known if axes is omitted", x, error=RelvmShapeError)
        return TensorType(x.dtype, tuple(dim for dim in x.known_shape if dim != 1))
    expect_integers("squeeze", "axes", axes)
    if x.rank is None:
        return x
    squeezed_axes = expect_axes("squeeze", axes, x.rank)
    if x.shape is None:
        return TensorType(x.dtype, None, x.rank - len(squeezed_axes))
    for axis in squeezed_axes:
        expect_equal_dims("squeeze", f"the size of axis {axis} must be 1", x.shape[axis], 1)
    return TensorType(x.dtype, tuple(dim for axis, dim in enumerate(x.shape) if axis not in squeezed_axes))


def _expect_no_smaller_rank(name: str, x: TensorType, shape: ShapeType) -> None:
    """Check that x is a tensor, and that `shape` is a shape whose rank is at least that of x.

    name: the operator, for messages.
    """
    expect_tensor(name, x=x)
    expect_shape(name, "shape", shape)
    if x.rank is not None and shape.rank is not None:
        message = "{}: x has rank {}, but the shape has only {}"
        dimensions = counted(shape.rank, "dimension")
        expect(x.rank <= shape.rank, message, name, x.rank, dimensions, error=RelvmShapeError)


@op("broadcast_to", numpy=np.broadcast_to, lower=elementwise(lambda x: x), moves=True)
def broadcast_to(x: TensorType, shape: ShapeType) -> TensorType:
    """x broadcast to a shape: repeated along axes of size 1 and along new axes in front, as in NumPy.

    x: any tensor.
    shape: the shape of the result, whose rank is at least that of x.
    Result: a tensor with the dtype of x and the shape `shape`.
    Raises RelvmShapeError if a dimension of x is neither 1 nor provably equal to the dimension of the shape.
    Source: numpy.broadcast_to.

    Examples:

        >>> run("broadcast_to(x, shape(2, 3))", x=[1, 2, 3])
        [[1 2 3]
         [1 2 3]]
    """
    _expect_no_smaller_rank("broadcast_to", x, shape)
    if x.shape is not None and shape.dims is not None:
        merged = broadcast_dims("broadcast_to", [x.shape, shape.dims])
        for got, dim in zip(merged, shape.dims, strict=True):
            message = "broadcast_to: a dimension {} of x cannot be broadcast to {}"
            expect(difference(got, dim) == 0, message, format_dim(got), format_dim(dim), error=RelvmShapeError)
    return TensorType(x.dtype, shape.dims, shape.rank)


def _numpy_expand(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    message = "expand: x has rank {}, but the shape has only {}"
    expect(x.ndim <= len(shape), message, x.ndim, counted(len(shape), "dimension"), error=RelvmShapeError)
    for axis, (have, want) in enumerate(zip(x.shape, shape[len(shape) - x.ndim :], strict=True)):
        expect(have in (1, want), _NOT_EXPANDED, axis, have, want, error=RelvmShapeError)
    return np.broadcast_to(x, shape)


_NOT_EXPANDED = "expand: dimension {} of x is {}, expected 1 or {}"


@op("expand", numpy=_numpy_expand, lower=Builtin("expand"), moves=True)
def expand(x: TensorType, shape: ShapeType) -> TensorType:
    """x broadcast to a shape: repeated along axes whose size is 1 at run time, and along new axes in front.

    Unlike broadcast_to, expand does not need to know at compile time which axes have size 1.
    x: any tensor.
    shape: the shape of the result, whose rank is at least that of x.
    Result: a tensor with the dtype of x and the shape `shape`.
    Raises RelvmShapeError, at compile time or at run time, if an axis of x has neither size 1 nor the size of the same
    axis in `shape`.  Axes are matched from the last to the first.
    Source: ONNX Expand-13, numpy.broadcast_to.

    Examples:

        >>> run("expand(x, shape(2, 3))", x=[[1], [2]])
        [[1 1 1]
         [2 2 2]]
    """
    _expect_no_smaller_rank("expand", x, shape)
    if x.shape is not None and shape.dims is not None:
        for axis, (have, want) in enumerate(zip(x.shape, shape.dims[len(shape.dims) - len(x.shape) :], strict=True)):
            fits = have == 1 or difference(have, want) in (None, 0) or difference(have, 1) is None
            expect(fits, _NOT_EXPANDED, axis, format_dim(have), format_dim(want), error=RelvmShapeError)
    return TensorType(x.dtype, shape.dims, shape.rank)


def _transposed(at: IndexExprs, x_shape, out_shape, *, perm: tuple[int, ...] | None) -> IndexExprs:
    if perm is None:
        return at[::-1]
    order = [axis % len(perm) for axis in perm]
    return tuple(at[order.index(axis)] for axis in range(len(order)))


def _numpy_transpose(x: np.ndarray, *, perm: tuple[int, ...] | None) -> np.ndarray:
    return np.transpose(x, perm)


@op("transpose", numpy=_numpy_transpose, lower=DataMovement(_transposed), moves=True)
def transpose(x: TensorType, *, perm: tuple[int, ...] | None = None) -> TensorType:
    """x with its axes permuted: axis i of the result is axis perm[i] of x.

    x: any tensor.
    perm: each axis once, in [-rank, rank), or None for the axes in reverse order.
    Result: a tensor of the dtype of x.
    Raises RelvmTypeError if an axis is out of range or given twice.  Raises RelvmArgumentError if the length of perm is
    not the rank of x.
    Source: ONNX Transpose-21.

    Examples:

        >>> run("transpose(x)", x=[[1, 2, 3], [4, 5, 6]])
        [[1 4]
         [2 5]
         [3 6]]
    """
    expect_tensor("transpose", x=x)
    if perm is not None:
        expect_integers("transpose", "perm", perm, x.rank)
        perm = expect_axes("transpose", perm, len(perm))
    if x.shape is None:
        return TensorType(x.dtype, None, x.rank if perm is None else len(perm))
    return TensorType(x.dtype, x.shape[::-1] if perm is None else tuple(x.shape[axis] for axis in perm))


def _concat(k: KernelBuilder, inputs, outputs, *, axis: int) -> None:
    """Generate the kernel of `concat`.  Each input is treated as a matrix whose rows run over the axes before `axis`.

    A row of the result consists of the corresponding rows of all inputs.
    """
    (out,) = outputs
    axis %= len(out.shape)
    wide = k.size(out.shape[axis:])
    with parallel_loop_nest(k, [k.size(out.shape[:axis])], wide * 4) as (row,):
        before = as_scalar(0, I64)
        for x in inputs:
            width = k.size(x.shape[axis:])
            start = k.let("start", row * wide + before)
            with k.loop(width, simd=True) as i:
                k.store(out, (start + i,), x.flat(row * width + i))
            before = before + width


@op("concat", numpy=lambda *xs, axis: np.concatenate(xs, axis), lower=CustomKernel(_concat), moves=True)
def concat(*xs: TensorType, axis: int) -> TensorType:
    """The tensors concatenated along an axis.

    xs: at least one tensor.  All tensors have the same dtype, the same rank (>= 1), and equal dimensions except along
    `axis`.
    axis: the axis, in [-rank, rank).
    Result: a tensor of the dtype of xs.  Its size along `axis` is the sum of the sizes of xs.
    Raises RelvmArgumentError if there is no tensor.  Raises RelvmTypeError if the dtypes or ranks differ, or the axis
    is out of range.  Raises RelvmShapeError if dimensions along another axis are not provably equal.
    Source: ONNX Concat-13.

    Examples:

        >>> run("concat(x, y, axis=0)", x=[[1, 2]], y=[[3, 4], [5, 6]])
        [[1 2]
         [3 4]
         [5 6]]
    """
    expect(len(xs) > 0, "concat: expected at least one tensor", error=RelvmArgumentError)
    for i, x in enumerate(xs):
        expect_tensor("concat", **{f"xs[{i}]": x})
        message = "concat: xs[0] has dtype {} and xs[{}] has {}; cast one"
        expect(x.dtype == xs[0].dtype, message, xs[0].dtype, i, x.dtype)
    ranks = {x.rank for x in xs if x.rank is not None}
    expect(len(ranks) <= 1, "concat: the tensors have ranks {}, expected one rank", sorted(ranks))
    if not ranks:
        return TensorType(xs[0].dtype)
    (rank,) = ranks
    at = expect_axis("concat", axis, rank)
    if any(x.shape is None for x in xs):
        return TensorType(xs[0].dtype, None, rank)
    dims = list(xs[0].known_shape)
    for i, x in enumerate(xs[1:], 1):
        for position, (a, b) in enumerate(zip(dims, x.known_shape, strict=True)):
            if position != at:
                expect_equal_dims("concat", f"dimension {position} of xs[0] and xs[{i}] differs", a, b)
        dims[at] = dims[at] + x.known_shape[at]
    return TensorType(xs[0].dtype, tuple(dims))
