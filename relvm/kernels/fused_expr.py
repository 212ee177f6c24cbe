"""Expression trees of fused operators.

A tree computes one element of a tensor.  The indices of the element depend on loop counters.  The leaves of the tree
are elements of buffers, whose positions are sums of counters times strides.  The kernel evaluates the whole tree for
each element, so no intermediate tensor is stored.  `relvm/kernels/loop_nest.py` generates the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from relvm.data_classes import dataclass
from relvm.ir.dtypes import DType, dtype_of
from relvm.ir.expr import Attributes, Constant, Expr, OpCall, Var
from relvm.ir.loop_ir import Buffer, Literal, Local, Operation, Scalar, parts_of
from relvm.ir.scalar_ops import SIGNS
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import (
    Contraction,
    DataMovement,
    GatherKernel,
    IndexExpr,
    IndexExprs,
    LoopAxis,
    Pointwise,
    Reduce,
    Reduction,
    Reinterpret,
    strides_of,
)

# Functions that take only a few cycles, like an addition.
_FREE = frozenset(("rem", "neg", "not", "select", "cast", "abs", "floor", "ceil", "round", "trunc", "sqrt", *SIGNS))
_FREE |= {"rvm_saturate_u8", "rvm_saturate_i8"}


class NotFusable(Exception):
    """Raised if operators cannot share a kernel."""


class FusedExpr:
    """Base class of expression trees.  A tree computes one element of a tensor.

    axes: the loops that the value of the tree depends on.
    """

    axes: frozenset[LoopAxis]


@dataclass(eq=False)
class BufferLoad(FusedExpr):
    """The element `buffer.flat[start + sum of counter * stride]`.

    strides: a dict from a loop to the number of elements by which the position moves in one iteration.
    """

    buffer: Buffer
    strides: dict[LoopAxis, AnyDim]
    start: int | Scalar

    def __post_init__(self) -> None:
        self.axes = frozenset(self.strides)


@dataclass(eq=False)
class GatherLoad(BufferLoad):
    """The element `buffer.flat[start + sum of counter * stride + index * step]`, whose position depends on data.

    index: the tree that computes an index along an axis of size `size`.  A negative index counts from the end.
    step: the distance, in elements, between adjacent indices of this axis.
    """

    index: FusedExpr
    size: AnyDim
    step: AnyDim

    def __post_init__(self) -> None:
        self.axes = frozenset(self.strides) | self.index.axes


@dataclass(eq=False)
class ConstantExpr(FusedExpr):
    value: Literal

    def __post_init__(self) -> None:
        self.axes = frozenset()


@dataclass(eq=False)
class ApplyExpr(FusedExpr):
    """The result of `function(args...)`, for an elementwise operator.

    of: the IR variables that this node replaces.  The first is the result of the operator.  The others are arguments of
    the operator that only rearrange another tensor, for example by a transpose.  `args` read the other tensor instead.
    key: the IR value and the indices of the element.  Trees with equal keys compute the same element and can share the
    result.
    is_costly: whether `function` costs much more than a few additions.
    """

    of: tuple[Var, ...]
    function: Callable[..., Scalar]
    args: tuple[FusedExpr, ...]
    key: tuple[Expr, IndexExprs]
    dtype: DType
    is_costly: bool

    def __post_init__(self) -> None:
        self.axes = frozenset().union(*(arg.axes for arg in self.args))


@dataclass(eq=False)
class ReduceExpr(FusedExpr):
    """The result of a reduction: `finish(total, count)`.

    `total` is the reduction of `arg` over the loops `over`, and `count` is the number of reduced elements.

    of: the IR variables that this node replaces.  The first is the result of the reduction.  The others only rearrange
    another tensor, for example by a transpose.  `arg` reads the other tensor instead.
    """

    of: tuple[Var, ...]
    reduction: Reduction
    finish: Callable[[Scalar, AnyDim], Scalar]
    arg: FusedExpr
    over: tuple[LoopAxis, ...]
    dtype: DType

    def __post_init__(self) -> None:
        self.axes = self.arg.axes - frozenset(self.over)

    @property
    def count(self) -> AnyDim:
        return product(axis.extent for axis in self.over)


@dataclass(eq=False)
class ContractionElement(FusedExpr):
    """A leaf that stands for an element of a contraction, which is a matrix product or a convolution.

    at: the indices of the element in the result of the contraction.
    """

    at: IndexExprs

    def __post_init__(self) -> None:
        self.axes = frozenset(axis for index_expr in self.at for axis, _ in index_expr.steps)


def subtrees(tree: FusedExpr) -> tuple[FusedExpr, ...]:
    """Return the direct subtrees of a tree."""
    match tree:
        case ApplyExpr(args=args):
            return args
        case ReduceExpr(arg=arg):
            return (arg,)
        case GatherLoad(index=index):
            return (index,)
    return ()


def post_order(trees: tuple[FusedExpr, ...], *, into_reductions: bool = True) -> Iterator[FusedExpr]:
    """Yield every subtree of `trees` once, after its own subtrees.

    into_reductions: whether to visit the operands of reductions.
    """
    seen: set[FusedExpr] = set()
    for tree in trees:
        yield from _unseen_post_order(tree, seen, into_reductions)


def _unseen_post_order(tree: FusedExpr, seen: set[FusedExpr], into_reductions: bool) -> Iterator[FusedExpr]:
    """Yield the subtrees of `tree` that are not in `seen`, and add them to `seen`.

    into_reductions: whether to visit the operands of reductions.
    """
    if tree in seen:
        return
    seen.add(tree)
    if into_reductions or not isinstance(tree, ReduceExpr):
        for part in subtrees(tree):
            yield from _unseen_post_order(part, seen, into_reductions)
    yield tree


class FusedExprBuilder:
    """Builder of expression trees for the values of a fusion group, the operator calls that one kernel computes.

    Parameters
    ----------
    members
        A mapping of each variable of the group to the operator call that computes the variable.
    type_of
        A function that returns the type of an IR value.  The dimensions of the type are integers, or expressions of the
        kernel's variables.
    buffers
        The buffers of the values that the group reads but does not compute.
    """

    def __init__(
        self, members: Mapping[Var, OpCall], type_of: Callable[[Expr], TensorType], buffers: Mapping[Expr, Buffer]
    ) -> None:
        self.members = members
        self.type_of = type_of
        self.buffers = buffers
        self.built: dict[tuple[Expr, IndexExprs], FusedExpr] = {}
        self.core: ContractionElement | None = None  # the node for the element of the group's contraction
        # A tree -> the variables of data movements and gathers that have this tree as an element.
        self.moves: dict[FusedExpr, tuple[Var, ...]] = {}

    def tree(self, expr: Expr, at: IndexExprs) -> FusedExpr:
        """Return the expression tree that computes the element of `expr` at indices `at`.

        Raises
        ------
        NotFusable
            The indices of a view cannot be computed, or an operator of the group has a lowering rule that cannot be
            expressed as a tree.
        """
        key = (expr, at)
        if key not in self.built:
            self.built[key] = self._build(expr, at)
        return self.built[key]

    def _build(self, expr: Expr, at: IndexExprs) -> FusedExpr:
        if not isinstance(expr, Var) or (call := self.members.get(expr)) is None:
            return self.leaf(expr, at, self.type_of(expr).known_shape)
        attributes = dict(call.attributes)
        args = [arg for arg in call.args if isinstance(arg.type, TensorType)]
        shape = self.type_of(expr).known_shape
        match call.op.lower:
            case Pointwise(point):
                trees = tuple(self.tree(arg, _broadcast(at, self.type_of(arg).known_shape)) for arg in args)
                dtypes = tuple(self.type_of(arg).known_dtype for arg in args)
                costly = is_costly(point, dtypes, call.attributes)
                dtype = self.type_of(expr).known_dtype
                of = (expr, *(var for tree in trees for var in self.moves.get(tree, ())))
                return ApplyExpr(of, lambda *xs: point(*xs, **attributes), trees, (expr, at), dtype, costly)
            case DataMovement(source_indices):
                x_shape = self.type_of(args[0]).known_shape
                return self._record_move(expr, self.tree(args[0], source_indices(at, x_shape, shape, **attributes)))
            case Reinterpret():
                if args[0] not in self.members:
                    return self._record_move(expr, self.leaf(args[0], at, shape))
                places_in = _undo_view(at, shape, self.type_of(args[0]).known_shape)
                return self._record_move(expr, self.tree(args[0], places_in))
            case GatherKernel():
                x, indices = args
                return self._record_move(expr, self._gather(x, indices, at, attributes["axis"]))
            case Contraction():
                if self.core is not None:
                    raise NotFusable
                self.core = ContractionElement(at)
                return self.core
            case Reduce(reduction, finish):
                return self._reduction(expr, args[0], at, reduction, finish, **attributes)
        raise NotFusable

    def _record_move(self, var: Var, tree: FusedExpr) -> FusedExpr:
        """Record that `tree` also computes an element of `var`, so that the kernel gets the source locations of `var`,
        too.

        Return `tree`.

        var: the result of an operator that only moves elements.
        """
        self.moves[tree] = (*self.moves.get(tree, ()), var)
        return tree

    def leaf(self, expr: Expr, at: IndexExprs, shape: tuple[AnyDim, ...]) -> FusedExpr:
        """Return a leaf of a tree: an element of the buffer of `expr`, or a constant.

        at: the indices of the element.
        shape: the shape of the tensor to which the indices belong.  This tensor can be a view of the buffer.
        """
        if isinstance(expr, Constant) and expr.value.size == 1:
            return ConstantExpr(Literal(expr.value.item(), dtype_of(expr.value.dtype)))
        return self.load(self.buffers[expr], at, shape)

    def load(self, buffer: Buffer, at: IndexExprs, shape: tuple[AnyDim, ...]) -> BufferLoad:
        """Return the load of the element of `buffer` at indices `at`.

        shape: the shape of the tensor to which the indices belong.  This tensor can be a view of the buffer.
        """
        position = IndexExpr()
        for index_expr, stride in zip(at, strides_of(shape), strict=True):
            position = position + index_expr * stride
        return BufferLoad(buffer, {axis: step for axis, step in position.steps if step != 0}, position.start)

    def _gather(self, x: Expr, indices: Expr, at: IndexExprs, axis: int) -> GatherLoad:
        if x not in self.buffers or indices not in self.buffers:
            raise NotFusable
        shape, rank = self.type_of(x).known_shape, self.type_of(indices).known_rank
        axis %= len(shape)
        index = self.leaf(indices, at[axis : axis + rank], self.type_of(indices).known_shape)
        leaf = self.load(self.buffers[x], (*at[:axis], IndexExpr(), *at[axis + rank :]), shape)
        return GatherLoad(leaf.buffer, leaf.strides, leaf.start, index, shape[axis], strides_of(shape)[axis])

    def _reduction(
        self, expr: Var, x: Expr, at: IndexExprs, reduction: Reduction, finish: Callable, axes: Any, keepdims: bool
    ) -> ReduceExpr:
        shape = self.type_of(x).known_shape
        reduced = range(len(shape)) if axes is None else {axis % len(shape) for axis in axes}
        over = {axis: LoopAxis(shape[axis]) for axis in reduced}
        result_indices = iter(at)
        source_indices = []
        for axis in range(len(shape)):
            if axis not in over or keepdims:
                index_expr = next(result_indices)
            source_indices.append(IndexExpr(((over[axis], 1),)) if axis in over else index_expr)
        arg = self.tree(x, tuple(source_indices))
        order = tuple(over[axis] for axis in sorted(over))
        of = (expr, *self.moves.get(arg, ()))
        return ReduceExpr(of, reduction, finish, arg, order, self.type_of(x).known_dtype)


@lru_cache(maxsize=1024)
def is_costly(point: Callable[..., Scalar], dtypes: tuple[DType, ...], attributes: Attributes) -> bool:
    """Return whether a pointwise operator costs much more than a few additions.

    point: the operator's function on scalars.
    dtypes: the dtypes of its arguments.
    attributes: its attributes.
    """
    result = point(*(Local(f"x{i}", dtype) for i, dtype in enumerate(dtypes)), **dict(attributes))
    return any(isinstance(part, Operation) and part.function not in _FREE for part in parts_of(result))


def _broadcast(at: IndexExprs, shape: tuple[AnyDim, ...]) -> IndexExprs:
    """Return the indices of the argument's element that NumPy broadcasting reads for one element of the result.

    at: the indices of the result's element.
    shape: the shape of the argument.
    """
    own = at[len(at) - len(shape) :]
    return tuple(IndexExpr() if dim == 1 else index_expr for index_expr, dim in zip(own, shape, strict=True))


def _undo_view(at: IndexExprs, shape: tuple[AnyDim, ...], original_shape: tuple[AnyDim, ...]) -> IndexExprs:
    """Convert indices into a view to indices into the original tensor.

    The view may split axes of the tensor, and add or remove axes of size 1.  Raise NotFusable if the view merges axes.

    at: the indices into the view.
    shape: the shape of the view.
    original_shape: the shape of the original tensor.
    """
    source_indices: list[IndexExpr] = []
    remaining = [(index_expr, dim) for index_expr, dim in zip(at, shape, strict=True) if dim != 1]
    for dim in original_shape:
        if dim == 1:
            source_indices.append(IndexExpr())
            continue
        run: list[tuple[IndexExpr, AnyDim]] = []
        while remaining and product(extent for _, extent in run) != dim:
            run.append(remaining.pop(0))
        if product(extent for _, extent in run) != dim:
            raise NotFusable
        index_expr = IndexExpr()
        for (own, _), stride in zip(run, strides_of(tuple(extent for _, extent in run)), strict=True):
            index_expr = index_expr + own * stride
        source_indices.append(index_expr)
    if remaining:
        raise NotFusable
    return tuple(source_indices)
