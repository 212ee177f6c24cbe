"""Sorting and selection: the positions of the largest elements, of sorted rows, and of true elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmShapeError
from relvm.ir.dtypes import F32, I32, I64, U32
from relvm.ir.loop_ir import (
    Address,
    Buffer,
    Literal,
    Local,
    Operation,
    Scalar,
    as_scalar,
    constant_value,
    minimum,
    select,
)
from relvm.ir.operator import claim_at_most, expect, op
from relvm.ir.symbolic import product
from relvm.ir.type_rules import expect_axis, expect_bool, expect_equal_dims, expect_shape, expect_tensor
from relvm.ir.types import ShapeType, TensorType
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import CustomKernel, loop_nest, parallel_loop_nest

_POSITIONS = 2**32
_BLOCK = 512  # elements whose keys are computed together


def numpy_top_positions(x: np.ndarray, shape: tuple[int, ...], *, axis: int, largest: bool) -> np.ndarray:
    count, size = shape[axis], x.shape[axis]
    if largest:  # the row is reversed, so that the first of equal elements comes last
        order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    return np.take(order, np.arange(count), axis).astype(np.int64)


def comes_before(x: Scalar, y: Scalar, largest: bool) -> Scalar:
    """Return whether the element x must come before the element y.

    largest: whether the order is descending instead of ascending.  NaN counts as the largest element.
    """
    if largest:
        before = x > y
        return before.logical_or(x.ne(x).logical_and(y.eq(y))) if x.dtype.is_float else before
    before = x < y
    return before.logical_or(y.ne(y).logical_and(x.eq(x))) if x.dtype.is_float else before


def sort_key(x: Scalar, largest: bool) -> Scalar:
    """Return an i64 in [-2^31, 2^31) whose order is that of the elements x, of at most 32 bits.

    Equal elements have equal keys, and NaN counts as the largest element.

    largest: whether the key of a larger element is smaller.
    """
    if x.dtype.is_float:
        number = x.to(F32)
        bits = Operation("rvm_bits_of_f32", (number + 0.0,), I32).to(I64)  # -0.0 + 0.0 is 0.0
        ordered = select(bits < 0, -(2**31) - 1 - bits, bits)
        key = select(number.ne(number), Literal(2**31 - 1, I64), ordered)
    else:
        key = x.to(I64) - 2**31 if x.dtype is U32 else x.to(I64)
    return -1 - key if largest else key


def packed_position(key: Scalar, position: Scalar) -> Scalar:
    """Return an i64 that orders elements by `sort_key` and then by position, which is below 2^32."""
    return key * _POSITIONS + position


def check_positions(k: KernelBuilder, op: str, size: Scalar) -> None:
    """Generate code that fails if `packed_position` cannot represent the positions of `size` elements."""
    known = constant_value(size)
    if known is None or known > _POSITIONS:
        message = f"{op}: the axis has %lld elements, expected at most {_POSITIONS}"
        k.fail(size > _POSITIONS, "SHAPE_ERROR", message, size)


def unpack_positions(k: KernelBuilder, out: Buffer, start: Scalar, count: Scalar) -> None:
    """Generate code that replaces the results of `packed_position` at `start` by the positions."""
    with k.loop(count, name="n", simd=True) as n:
        k.store(out, (start + n,), out.flat(start + n).to(U32).to(I64))


def _argtopk(k: KernelBuilder, inputs, outputs, *, axis: int, largest: bool) -> None:
    (x,), (out,) = inputs, outputs
    axis %= len(x.shape)
    is_contiguous = product(x.shape[axis + 1 :]) == 1
    if is_contiguous and x.dtype.bits <= 32 and not k.is_small:
        _argtopk_by_keys(k, x, out, axis, largest)
    else:
        _argtopk_in_place(k, x, out, axis, largest)


def _argtopk_by_keys(k: KernelBuilder, x: Buffer, out: Buffer, axis: int, largest: bool) -> None:
    """Generate the kernel of `argtopk` along an axis whose elements are contiguous, of at most 32 bits each.

    A row of the result stores keys with positions, first as a heap with the worst at the root, then sorted.
    """
    size, count = as_scalar(x.shape[axis], I64), as_scalar(out.shape[axis], I64)
    check_positions(k, "argtopk", size)
    sorts_all = x.shape[axis] == out.shape[axis]
    with parallel_loop_nest(k, [product(x.shape[:axis])], size * 16 + count * 64) as (row,):
        source, target = k.let("source", row * size), k.let("target", row * count)

        def pack(to: Buffer, at: Scalar, first: Scalar, elements: Scalar) -> None:
            with k.loop(elements, name="n", simd=True) as n:
                key = sort_key(x.flat(source + first + n), largest)
                k.store(to, (at + n,), packed_position(key, first + n))

        zero = Literal(0, I64)
        pack(out, target, zero, count)
        if not sorts_all:
            block = k.allocate("block", I64, (_BLOCK,))
            with k.loop((size - count + (_BLOCK - 1)) / _BLOCK, name="part") as part:
                first = k.let("first", count + part * _BLOCK)
                elements = k.let("elements", minimum(size - first, _BLOCK))
                pack(block, zero, first, elements)
                k.invoke(
                    "rvm_keep_least_i64",
                    kept=Address(out, target),
                    most=count,
                    is_heap=part,
                    values=Address(block, zero),
                    count=elements,
                )
        k.invoke("rvm_sort_i64", values=Address(out, target), count=count)
        unpack_positions(k, out, target, count)


def _argtopk_in_place(k: KernelBuilder, x: Buffer, out: Buffer, axis: int, largest: bool) -> None:
    """Generate the kernel of `argtopk` for any axis and dtype.

    A row of the result stores a heap of the best positions so far, with the worst at the root.  At the end, the row is
    sorted.  Two positions never compare equal: of equal elements, the one at the smaller position is better.
    """
    size, count = as_scalar(x.shape[axis], I64), as_scalar(out.shape[axis], I64)
    step = k.size(x.shape[axis + 1 :])
    levels = heap_levels(k, count)
    with loop_nest(k, [product(x.shape[:axis]), product(x.shape[axis + 1 :])]) as (row, column):
        source = k.let("source", row * size * step + column)
        target = k.let("target", row * count * step + column)

        def is_better(p: Scalar, q: Scalar) -> Scalar:
            one, other = (k.let("element", x.flat(source + at * step)) for at in (p, q))
            tie = comes_before(other, one, largest).eq(False).logical_and(p < q)
            return k.let("better", comes_before(one, other, largest).logical_or(tie))

        heap = Heap(k, out, target, step, levels, is_better)
        heap.fill_with_numbers(count)
        heap.heapify(count)
        first = Literal(0, I64)
        with k.loop(select(count > 0, size, first), start=count, name="n") as n, k.branch(is_better(n, heap.at(first))):
            heap.put(first, n)
            heap.sift_down(first, count)
        heap.sort(count)


def heap_levels(k: KernelBuilder, count: Scalar) -> Local:
    """Generate code that computes the number of levels below the root of a heap of `count` elements."""
    levels, reach = k.variable("levels", Literal(0, I64)), k.variable("reach", Literal(1, I64))
    with k.loop(62), k.branch(reach < count):
        k.assign(reach, reach * 2)
        k.assign(levels, levels + 1)
    return levels


class Heap:
    """Generates code for a binary heap of positions, stored in the buffer `out`, with the worst position at the root.

    target, step: node n is stored at the flat position target + n * step.
    levels: the number of levels below the root.
    is_better: a function of two positions that returns whether the first is better.
    """

    def __init__(
        self,
        k: KernelBuilder,
        out: Buffer,
        target: Scalar,
        step: Scalar,
        levels: Scalar,
        is_better: Callable[[Scalar, Scalar], Scalar],
    ) -> None:
        self.k, self.out, self.target, self.step, self.levels = k, out, target, step, levels
        self.is_better = is_better

    def at(self, node: Scalar) -> Scalar:
        return self.out.flat(self.target + node * self.step)

    def put(self, node: Scalar, position: Scalar) -> None:
        self.k.store(self.out, (self.target + node * self.step,), position)

    def swap(self, first: Scalar, second: Scalar) -> None:
        saved = self.k.let("held", self.at(first))
        self.put(first, self.at(second))
        self.put(second, saved)

    def sift_down(self, node: Scalar, size: Scalar) -> None:
        """Generate code that moves a node down until no child is worse than the node.

        size: the number of nodes in the heap.
        """
        k, node = self.k, self.k.variable("node", node)
        with k.loop(self.levels):
            child = k.variable("child", node * 2 + 1)
            with k.branch(child < size):
                other = k.let("other", select(child + 1 < size, child + 1, child))
                k.assign(child, select(self.is_better(self.at(child), self.at(other)), other, child))
                with k.branch(self.is_better(self.at(node), self.at(child))):
                    self.swap(node, child)
                    k.assign(node, child)

    def fill_with_numbers(self, size: Scalar) -> None:
        """Generate code that stores n in node n, for each of the first `size` nodes."""
        with self.k.loop(size, name="n") as n:
            self.put(n, n)

    def heapify(self, size: Scalar) -> None:
        """Generate code that establishes the heap order of the first `size` nodes."""
        half = self.k.let("half", size / 2)
        with self.k.loop(half, name="n") as n:
            self.sift_down(half - 1 - n, size)

    def sort(self, size: Scalar) -> None:
        """Generate code that sorts a heap of `size` nodes, so that the best position comes first."""
        root = Literal(0, I64)
        with self.k.loop(size - 1, name="n") as n:
            last = self.k.let("last", size - 1 - n)
            self.swap(root, last)
            self.sift_down(root, last)


@op("argtopk", numpy=numpy_top_positions, lower=CustomKernel(_argtopk))
def argtopk(x: TensorType, shape: ShapeType, *, axis: int, largest: bool = True) -> TensorType:
    """The positions of the largest elements along an axis, the largest first.  Equal elements are in order of their
    positions.

    x: a tensor of rank >= 1.  NaN counts as the largest element.
    shape: the shape of the result.  It is the shape of x, except that the size along the axis is the number of
    positions to return.
    axis: the axis, in [-rank, rank).
    largest: if it is False, the result contains the positions of the smallest elements, the smallest first.
    Result: an i64 tensor of shape `shape`.
    Raises RelvmTypeError if the rank of `shape` is not that of x, or `axis` is out of range.  Raises RelvmArgumentError
    if `largest` is not a bool.  Raises RelvmShapeError if `shape` has more positions than the axis has elements, or
    differs from x along another axis.  At run time, it may also raise RelvmShapeError if the axis has more than 2^32
    elements.
    Source: ONNX TopK-24; NaN: numpy.sort.

    Examples:

        >>> run("argtopk(x, shape(2), axis=0)", x=[10, 40, 30, 20])
        [1 2]
    """
    expect_tensor("argtopk", x=x)
    expect_shape("argtopk", "shape", shape)
    is_bool = isinstance(largest, bool)
    expect(is_bool, "argtopk: largest is {!r}, expected a bool", largest, error=RelvmArgumentError)
    if x.rank is None:
        return TensorType(I64, shape.dims, shape.rank)
    at = expect_axis("argtopk", axis, x.rank)
    expect(shape.rank in (None, x.rank), "argtopk: x has rank {}, but shape has rank {}", x.rank, shape.rank)
    for i, (size, count) in enumerate(zip(x.shape or (), shape.dims or (), strict=False)):
        if i != at:
            expect_equal_dims("argtopk", f"dimension {i} of x and of shape differs", size, count)
            continue
        claim_at_most(count, size, "argtopk: {} positions exceed the axis size {}")
    return TensorType(I64, shape.dims, x.rank)


def _numpy_lexsort_rows(x: np.ndarray) -> np.ndarray:
    if x.shape[1] == 0:
        return np.arange(len(x))
    return np.lexsort(x.T[::-1])


def _lexsort_rows(k: KernelBuilder, inputs, outputs) -> None:
    """Generate the kernel of `lexsort_rows`: a heapsort of the rows of a matrix."""
    (x,), (out,) = inputs, outputs
    count, width = as_scalar(x.shape[0], I64), as_scalar(x.shape[1], I64)

    def is_better(p: Scalar, q: Scalar) -> Scalar:
        """Return whether row p comes before row q in lexicographic order.  Equal rows are ordered by position."""
        first, second = (k.let("row", at * width) for at in (p, q))
        order = k.variable("order", Literal(0, I64))
        less, more = Literal(-1, I64), Literal(1, I64)
        with k.loop(select(order.eq(0), width, Literal(0, I64)), name="j") as j:
            one, other = (k.let("element", x.flat(row + j)) for row in (first, second))
            found = select(comes_before(one, other, False), less, select(comes_before(other, one, False), more, order))
            k.assign(order, found)
        return k.let("better", (order < 0).logical_or(order.eq(0).logical_and(p < q)))

    heap = Heap(k, out, Literal(0, I64), Literal(1, I64), heap_levels(k, count), is_better)
    heap.fill_with_numbers(count)
    heap.heapify(count)
    heap.sort(count)


@op("lexsort_rows", numpy=_numpy_lexsort_rows, lower=CustomKernel(_lexsort_rows))
def lexsort_rows(x: TensorType) -> TensorType:
    """The row indices that sort the rows of a matrix in lexicographic order: x[lexsort_rows(x)] has sorted rows.

    x: a tensor of shape (n, width).  NaN counts as the largest element.
    Result: an i64 tensor of shape (n,).  The sort is stable: equal rows keep their order.
    Raises RelvmTypeError if x has another rank.
    Source: numpy.lexsort.

    Examples:

        >>> run("lexsort_rows(x)", x=[[2, 1], [1, 9], [1, 3]])
        [2 1 0]
    """
    expect_tensor("lexsort_rows", x=x)
    expect(x.rank in (None, 2), "lexsort_rows: x has rank {}, expected 2", x.rank)
    return TensorType(I64, None if x.shape is None else x.shape[:1], 1)


def _numpy_nonzero(cond: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    found = np.flatnonzero(cond)
    if len(found) != shape[0]:
        raise RelvmShapeError(
            f"nonzero: the number of true elements is {len(found)}, but the stated shape is [{shape[0]}]"
        )
    return found


def _nonzero(k: KernelBuilder, inputs, outputs) -> None:
    (cond,), (out,) = inputs, outputs
    size, count = k.size(cond.shape), k.size(out.shape)
    found = k.variable("found", Literal(0, I64))
    with k.loop(size, name="n", simd=True, reduce=[("add", found)]) as n:
        k.assign(found, found + cond.flat(n).to(I64))
    message = "nonzero: the number of true elements is %lld, but the stated shape is [%lld]"
    k.fail(found.ne(count), "SHAPE_ERROR", message, found, count)
    k.assign(found, 0)
    with k.loop(size, name="n") as n, k.branch(cond.flat(n)):
        k.store(out, (found,), n)
        k.assign(found, found + 1)


@op("nonzero", numpy=_numpy_nonzero, lower=CustomKernel(_nonzero))
def nonzero(cond: TensorType, shape: ShapeType) -> TensorType:
    """The row-major positions of the true elements, in order.

    cond: a bool tensor.
    shape: a shape of rank 1, whose dimension is the number of true elements.
    Result: an i64 tensor of shape `shape`.
    Raises RelvmTypeError if `cond` has another dtype or the rank of `shape` is not 1.  At run time, it raises
    RelvmShapeError if the number of true elements differs from `shape`.
    Source: ONNX NonZero-13.

    Examples:

        >>> run("nonzero(cond, shape(2))", cond=[False, True, True])
        [1 2]
    """
    expect_bool("nonzero", cond=cond)
    expect_shape("nonzero", "shape", shape)
    expect(shape.rank in (None, 1), "nonzero: shape has rank {}, expected 1", shape.rank)
    return TensorType(I64, shape.dims, 1)
