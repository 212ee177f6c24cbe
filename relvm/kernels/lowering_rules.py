"""Lowering rules: the `lower` argument of an operator's declaration.  A rule defines how the operator is executed.

The rules:
    elementwise(f)         f(element, ...) -> element, with NumPy broadcasting
    DataMovement(indices)  the elements of one argument, at other indices
    Reduce(...)            a reduction along some axes
    Contraction(function)  a kernel such as a matrix product, to which elementwise operators can be fused: `function`
                           generates code that passes each element of the result to `result.store`
    GatherKernel(...)      the elements of one argument, at indices that another argument contains
    Composition(f)         an expression of other operators that replaces the call
    CustomKernel(function) a kernel that `function(k, inputs, outputs, **attributes)` generates
    VIEW                   no kernel: the memory of the argument, with the shape of the result
    ALIAS                  no kernel: the argument itself is the result
    Builtin(name)          no kernel: a builtin of the virtual machine

Elementwise operators, data movements, reductions, gathers and views can share a kernel (relvm/kernels/fused_expr.py).

Inside a kernel, the dimensions of all shapes are integers or variables.  A compound dimension such as `n + m` becomes a
variable of the kernel, and equal dimensions become the same variable.  An argument that is a shape is not passed to the
kernel, because its values are the dimensions of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from relvm.data_classes import cached_hash, dataclass, value_record
from relvm.errors import counted
from relvm.ir.dtypes import I64, DType
from relvm.ir.loop_ir import Literal, Scalar, as_scalar, constant_value, maximum, minimum, select
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.kernel_builder import KernelBuilder


@value_record
class CustomKernel:
    """A kernel that `function(k: KernelBuilder, inputs, outputs, **attributes)` generates.

    operations: a function such as those in relvm/kernels/flop_count.py, which returns the operation count.  It is None
    if the count is unknown.  It is not used for operators that only move elements (Operator.moves).
    """

    function: Callable[..., None]
    operations: Callable[..., AnyDim | None] | None = None


@value_record
class GatherKernel(CustomKernel):
    """A gather: the elements of the first argument along the attribute `axis`, at the indices in the second argument.

    check(k, indices, size, axis, from_end): generates code that fails if an index is not in [-size, size), or in
    [0, size) if `from_end` is False.
    """

    check: Callable[..., None] = field(kw_only=True)


@value_record
class Pointwise:
    """An elementwise operation: `out[i...] = point(x[i...], y[i...], ..., **attributes)`.

    The inputs are broadcast as in NumPy.
    """

    point: Callable[..., Scalar]


@dataclass(eq=False)
class LoopAxis:
    """A loop over [0, extent).  Index expressions refer to its counter."""

    extent: AnyDim


@cached_hash
@value_record
class IndexExpr:
    """An index along one axis of a tensor: `start` plus the sum of loop counters, each multiplied by its step.

    start: an integer, or a scalar that does not change inside the loops.
    """

    steps: tuple[tuple[LoopAxis, AnyDim], ...] = ()
    start: int | Scalar = 0

    def __mul__(self, factor: AnyDim) -> IndexExpr:
        if factor == 1:
            return self
        steps = tuple((axis, step * factor) for axis, step in self.steps)
        if isinstance(self.start, int) and isinstance(factor, int):
            return IndexExpr(steps, self.start * factor)
        is_zero = isinstance(self.start, int) and self.start == 0
        return IndexExpr(steps, 0 if is_zero else _scalar(self.start) * _scalar(factor))

    def __add__(self, other: IndexExpr | int | Scalar) -> IndexExpr:
        if not isinstance(other, IndexExpr):
            other = IndexExpr((), other)
        steps = dict(self.steps)
        for axis, step in other.steps:
            steps[axis] = steps.get(axis, 0) + step
        if isinstance(self.start, int) and isinstance(other.start, int):
            start: int | Scalar = self.start + other.start
        elif isinstance(other.start, int) and other.start == 0:
            start = self.start
        elif isinstance(self.start, int) and self.start == 0:
            start = other.start
        else:
            start = _scalar(self.start) + _scalar(other.start)
        return IndexExpr(tuple(steps.items()), start)


def _scalar(value: AnyDim | Scalar) -> Scalar:
    return as_scalar(value, I64)


IndexExprs = tuple[IndexExpr, ...]


@value_record
class DataMovement:
    """A rearrangement of the elements of the argument x.

    source_indices(at, x_shape, out_shape, **attributes): returns indices into x.  The element of x at these indices
    becomes the element of the result at the indices `at`.
    """

    source_indices: Callable[..., IndexExprs]


@value_record
class Reduction:
    """The function with which a reduction combines two elements.  An example is the maximum.

    combine(a, b): returns the expression that combines two scalars and propagates NaN.
    clause: the function in loop IR: "add", "mul", "or", "max" or "min".
    start(dtype): returns the result of reducing no elements.
    """

    combine: Callable[[Scalar, Scalar], Scalar]
    clause: str
    start: Callable[[DType], int | float]


@value_record
class Reduce:
    """A reduction along the axes in the attribute `axes`, or along all axes if it is None.

    If the attribute `keepdims` is true, the reduced axes remain, with size 1.

    finish(total, count): converts the total of `count` elements to the result.
    """

    reduction: Reduction
    finish: Callable[[Scalar, AnyDim], Scalar] = lambda total, count: total


@value_record
class Contraction:
    """A kernel that `function(k: KernelBuilder, inputs, result, **attributes)` generates.

    result: the Epilogue to which the function passes each element.
    axes(*shapes, shape): returns the loops of the kernel, in order, given the shapes of the inputs and of the result.
    Each loop is a tuple of axes of the result that the kernel iterates as one.  The loops of a convolution, for
    example, are (image), (filter) and (all other axes).
    operations: a function of relvm/kernels/flop_count.py.
    """

    function: Callable[..., None]
    axes: Callable[..., tuple[tuple[int, ...], ...]]
    operations: Callable[..., AnyDim]


@value_record
class Composition:
    """The replacement of a call by an equivalent expression of other operators.

    function(*args, **attributes): returns this expression.
    """

    function: Callable[..., Any]


@value_record
class Reinterpret:
    """A view: the result is the memory of the first argument, with another shape.  No kernel is needed."""


@value_record
class Alias:
    """An alias: the result is the first argument itself.  No kernel is needed."""


@value_record
class Builtin:
    """A builtin of the virtual machine (csrc/tables/builtins.def).

    It is called with the arguments of the operator, followed by the attributes listed in `attributes`, each of which is
    a dtype or an integer.
    """

    name: str
    attributes: tuple[str, ...] = ()


VIEW, ALIAS = Reinterpret(), Alias()


def elementwise(point: Callable[..., Scalar]) -> Pointwise:
    """Return the rule of an elementwise operator, with NumPy broadcasting.

    The rule is `out[i...] = point(x[i...], y[i...], ..., **attributes)`.
    """
    return Pointwise(point)


def strides_of(shape: tuple[AnyDim, ...]) -> tuple[AnyDim, ...]:
    """Return the strides, in elements, of a contiguous row-major array of shape `shape`."""
    strides: list[AnyDim] = [1]
    for dim in reversed(shape[1:]):
        strides.insert(0, product((strides[0], dim)))
    return tuple(strides) if shape else ()


@dataclass
class loop_nest:
    """A context manager that opens nested loops over `extents` and returns their counters, outermost first.

    simd: whether the innermost loop is a SIMD loop.
    reduce: a pair (operator, local) for each reduction of the innermost loop.
    """

    k: KernelBuilder
    extents: Sequence[AnyDim | Scalar]
    simd: bool = False
    reduce: tuple[tuple[str, Scalar], ...] = ()
    open: list = field(default_factory=list)

    def __enter__(self) -> list[Scalar]:
        counters = []
        for depth, extent in enumerate(self.extents):
            innermost = depth == len(self.extents) - 1
            loop = self.k.loop(extent, simd=self.simd and innermost, reduce=self.reduce if innermost else ())
            counters.append(loop.__enter__())
            self.open.append(loop)
        return counters

    def __exit__(self, *error) -> None:
        for loop in reversed(self.open):
            loop.__exit__(*error)


_SMALL_WORK = 1024  # 128 nanoseconds: too little for threads to share


@contextmanager
def parallel_loop_nest(
    k: KernelBuilder, extents: Sequence[AnyDim | Scalar], work: Scalar | int, *, simd: bool = False
) -> Iterator[list[Scalar]]:
    """A context manager that opens nested loops over `extents`, and yields their counters, outermost first.

    Threads divide the iterations of the first two loops.  If an iteration of the first loop is known to take very
    little time, threads divide only the iterations of the first loop.

    work: the time of one iteration of the second loop, or of the only loop, in eighths of a nanosecond.
    simd: whether the innermost loop is a SIMD loop.
    """
    if not extents:
        yield []
        return
    sizes = [as_scalar(extent, I64) for extent in extents[:2]]
    if len(sizes) == 1:
        with k.parallel(sizes[0], work) as (first, last), k.loop(last, start=first, simd=simd) as i:
            yield [i]
        return
    inside = constant_value(sizes[1] * as_scalar(work, I64))
    if inside is not None and inside <= _SMALL_WORK:
        with (
            k.parallel(sizes[0], inside) as (first, last),
            k.loop(last, start=first) as i,
            loop_nest(k, list(extents[1:]), simd=simd) as rest,
        ):
            yield [i, *rest]
        return
    with (
        k.parallel(sizes[0] * sizes[1], work) as (first, last),
        k.loop((last - 1) / sizes[1] + 1, start=first / sizes[1]) as i,
    ):
        low, high = clip_to_block(k, first, last, i, sizes[1])
        with (
            k.loop(high, start=low, simd=simd and len(extents) == 2) as j,
            loop_nest(k, list(extents[2:]), simd=simd) as rest,
        ):
            yield [i, j, *rest]


def clip_to_block(k: KernelBuilder, first: Scalar, last: Scalar, i: Scalar, extent: Scalar) -> tuple[Scalar, Scalar]:
    """Return the bounds of the part of [first, last) that lies in block `i`, relative to the start of the block.

    Block `i` is the range [i * extent, (i + 1) * extent).
    """
    before = k.let("before", i * extent)
    low = k.let("low", maximum(first - before, 0))
    high = k.let("high", minimum(last - before, extent))
    return low, high


def size_of_block(size: Scalar, start: Scalar, block: int) -> Scalar:
    """Return the size of the block that begins at `start`, if `size` items are divided into blocks of `block` items."""
    known = constant_value(size)
    if known is not None and (known <= block or known % block == 0):
        return Literal(min(known, block), I64)
    return minimum(size - start, block)


def nonnegative_index(index: Scalar, size: Scalar) -> Scalar:
    """Convert an index in [-size, size) to [0, size).  A negative index counts from the end."""
    return select(index < 0, index + size, index)


def flat_position(indices: tuple[Scalar, ...], shape: tuple[AnyDim, ...]) -> Scalar:
    """Return the row-major position of the element at `indices` in an array of shape `shape`."""
    assert len(indices) == len(shape), f"rank {len(shape)}, got {counted(len(indices), 'index')}"
    total: Scalar = indices[0] if indices else Literal(0, I64)
    for index, dim in zip(indices[1:], shape[1:], strict=True):
        total = total * as_scalar(dim, I64) + index
    return total
