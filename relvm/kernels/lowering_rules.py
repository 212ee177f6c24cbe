"""How an operator becomes something the machine can run: the `lower=` of its declaration.

The forms:
    elementwise(f)       f(element, ...) -> element under NumPy broadcasting
    Rearrange(places)    elements of one argument in other places
    Reduce(...)          elements along some axes become one
    Product(function)    a kernel of its own that other operators may finish: it hands each element to `finish.store`
    Composition(f)       other operators, which take its place
    Loops(function)      a kernel of its own; `function(k, inputs, outputs, **attributes)` writes the loop nest
    Lookup(...)          elements of one argument at positions that another says; alone a kernel of its own
    VIEW, ALIAS          no kernel: the argument's bytes under the result's shape; the argument itself
    Builtin(name)        no kernel: a builtin of the machine

Operators of the first three forms, lookups and views can share a kernel (relvm/kernels/fused_expr.py).

Inside a kernel every shape is made of plain integers and variables: a compound dimension such as `n + m` has become a
variable of its own, equal dimensions the same one.  Arguments that are shapes are not buffers and are left out; what
they say is in the outputs' shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from relvm.ir.dtypes import I64, DType
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.loop_ir import KernelBuilder, Local, Scalar, Select, as_scalar, maximum, minimum


@dataclass(frozen=True)
class CustomKernel:
    """A kernel written by `function(k: KernelBuilder, inputs, outputs, **attributes)`.

    operations: a function of relvm/kernels/flop_count.py; None: unknown.  Not used for operators that only move
    elements (Operator.moves).
    """

    function: Callable[..., None]
    operations: Callable[..., AnyDim | None] | None = None


@dataclass(frozen=True)
class GatherKernel(CustomKernel):
    """Elements of the first argument: along the attribute `axis`, those at positions that the second argument says.

    check(k, indices, size, axis): statements that fail where an index is not in [-size, size).
    """

    check: Callable[..., None] = field(kw_only=True)


@dataclass(frozen=True)
class Pointwise:
    """`out[i...] = point(x[i...], y[i...], ..., **attributes)` with NumPy broadcasting of the inputs."""

    point: Callable[..., Scalar]


@dataclass(eq=False)
class LoopAxis:
    """A loop over [0, extent) that places move with."""

    extent: AnyDim


@dataclass(frozen=True)
class IndexExpr:
    """An index along one axis of a tensor: `start` plus, for some loops, their counters times a step.

    start: an integer, or a scalar that no loop changes.
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


@dataclass(frozen=True)
class DataMovement:
    """`places(at, x_shape, out_shape, **attributes)`: where in x the element at the places `at` of the result is."""

    places: Callable[..., IndexExprs]


@dataclass(frozen=True)
class Reduction:
    """combine: two elements into one, keeping NaN.  clause: its OpenMP name.  start: the value of no elements."""

    combine: Callable[[Scalar, Scalar], Scalar]
    clause: str
    start: Callable[[DType], int | float]


@dataclass(frozen=True)
class Reduce:
    """The elements along the attribute `axes` (None: all) become one; those axes stay with size 1 where `keepdims`.

    finish: what is made of the total and the number of elements in it.
    """

    reduction: Reduction
    finish: Callable[[Scalar, AnyDim], Scalar] = lambda total, count: total


@dataclass(frozen=True)
class Contraction:
    """A kernel written by `function(k: KernelBuilder, inputs, result, **attributes)`, `result` being an `Epilogue`.

    axes: of the result, given the shapes of the arguments and its own, those that the kernel walks as one, in order:
    for a convolution (image), (filter), (all others).   operations: how many it takes (relvm/kernels/flop_count.py).
    """

    function: Callable[..., None]
    axes: Callable[..., tuple[tuple[int, ...], ...]]
    operations: Callable[..., AnyDim]


@dataclass(frozen=True)
class Composition:
    """`function(*args, **attributes)` gives an expression of other operators with the same meaning."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class Reinterpret:
    """The first argument's bytes under the result's shape."""


@dataclass(frozen=True)
class Alias:
    """The first argument itself."""


@dataclass(frozen=True)
class Builtin:
    """The builtin of that name (csrc/tables/builtins.def) on the same arguments, then these attributes, dtypes or
    integers."""

    name: str
    attributes: tuple[str, ...] = ()


VIEW, ALIAS = Reinterpret(), Alias()


def elementwise(point: Callable[..., Scalar]) -> Pointwise:
    """`out[i...] = point(x[i...], y[i...], ..., **attributes)` with NumPy broadcasting of the inputs."""
    return Pointwise(point)


def strides_of(shape: tuple[AnyDim, ...]) -> tuple[AnyDim, ...]:
    """Elements between neighbours along each axis of a compact row-major array."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass
class loop_nest:
    """Nested loops over `extents`, the innermost one `simd` with `reduce`; gives the counters, outermost first."""

    k: KernelBuilder
    extents: Sequence[AnyDim | Scalar]
    simd: bool = False
    reduce: tuple[tuple[str, Local], ...] = ()
    open: list = field(default_factory=list)

    def __enter__(self) -> list[Local]:
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


@contextmanager
def part_loops(
    k: KernelBuilder, extents: Sequence[AnyDim | Scalar], work: Scalar | int, *, simd: bool = False
) -> Iterator[list[Local]]:
    """Nested loops over `extents` that threads share: what the first two of them count is split into parts.  Gives the
    counters, outermost first.

    work: of one step of the second loop, or of the only one, see KernelBuilder.parallel.   simd: of the innermost loop.
    """
    if not extents:
        yield []
        return
    sizes = [as_scalar(extent, I64) for extent in extents[:2]]
    one = len(sizes) == 1
    with k.parallel(sizes[0] if one else sizes[0] * sizes[1], work) as (first, last):
        if one:
            with k.loop(last, start=first, simd=simd) as i:
                yield [i]
            return
        with k.loop((last - 1) / sizes[1] + 1, start=first / sizes[1]) as i:
            low, high = clip(k, first, last, i, sizes[1])
            with (
                k.loop(high, start=low, simd=simd and len(extents) == 2) as j,
                loop_nest(k, list(extents[2:]), simd=simd) as rest,
            ):
                yield [i, j, *rest]


def clip(k: KernelBuilder, first: Scalar, last: Scalar, i: Scalar, extent: Scalar) -> tuple[Local, Local]:
    """Which of the numbers [0, extent) a part has whose step is the `i`-th of that extent."""
    before = k.let("before", i * extent)
    low = k.let("low", maximum(first - before, 0))
    high = k.let("high", minimum(last - before, extent))
    return low, high


def from_the_front(index: Scalar, size: Scalar) -> Scalar:
    """An index in [-size, size) counted from 0."""
    return Select(index < 0, index + size, index)


def flat_position(indices: tuple[Scalar, ...], shape: tuple[AnyDim, ...]) -> Scalar:
    """The row-major position of an element of an array of that shape."""
    total = indices[0]
    for index, dim in zip(indices[1:], shape[1:], strict=True):
        total = total * as_scalar(dim, I64) + index
    return total
