"""Products that other operators finish: what happens to an element before it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from relvm.ir.dtypes import DType
from relvm.ir.symbolic import AnyDim
from relvm.kernels.fused_expr import BufferLoad, FusedExpr, KernelOutput, NotFusable, post_order
from relvm.kernels.loop_ir import KernelBuilder, Scalar
from relvm.kernels.loop_scope import CollapsedLoop, Scope
from relvm.kernels.lowering_rules import LoopAxis


@dataclass(frozen=True)
class Epilogue:
    """Where a product's kernel puts the elements of its result.

    dtype, shape: of the product.  The elements are handed on to the trees of what is fused with it.
    """

    dtype: DType
    shape: tuple[AnyDim, ...]
    core: KernelOutput
    walk: tuple[CollapsedLoop, ...]
    outputs: tuple[tuple[BufferLoad, FusedExpr], ...]

    def store(self, k: KernelBuilder, counters: tuple[Scalar, ...], value: Scalar) -> None:
        """Finishes and stores the element at these places on the product's axes (Product.axes)."""
        scope = Scope(k)
        scope.counters = list(zip(self.walk, counters, strict=True))
        scope.values[self.core] = value
        for leaf, tree in self.outputs:
            scope.store(leaf, scope.value(tree))

    @property
    def partial(self) -> BufferLoad | None:
        """Where an unfinished element may be kept: the place of the result, if it has the product's dtype."""
        leaf = self.outputs[0][0]
        return leaf if leaf.buffer.dtype == self.dtype else None

    def partial_position(self, counters: tuple[Scalar, ...]) -> Scalar:
        """The flat position of an element's place in `partial.buffer`."""
        scope = Scope(KernelBuilder())
        scope.counters = list(zip(self.walk, counters, strict=True))
        return scope.flat(self.outputs[0][0])


def make_epilogue(
    core: KernelOutput,
    dtype: DType,
    shape: tuple[AnyDim, ...],
    groups: tuple[tuple[int, ...], ...],
    root: tuple[LoopAxis, ...],
    outputs: list[tuple[BufferLoad, FusedExpr]],
) -> Epilogue:
    """The result of a product whose element `core` is in the trees of `outputs`.

    Raises
    ------
    NotFusable
        Its elements are not just finished, one by one: some are used again or left out, or something that finishes them
        moves in other steps than the product's loops do.
    """
    own: list[LoopAxis] = []
    for place, dim in zip(core.at, shape, strict=True):
        if dim == 1:
            own.append(LoopAxis(1))
            continue
        if len(place.steps) != 1 or place.steps[0][1] != 1 or place.start != 0:
            raise NotFusable
        ((axis, _),) = place.steps
        if axis.extent != dim:
            raise NotFusable
        own.append(axis)
    walked = {axis for axis in own if axis.extent != 1}
    if walked != {axis for axis in root if axis.extent != 1} or len(walked) != sum(dim != 1 for dim in shape):
        raise NotFusable
    leaves = [leaf for leaf, _ in outputs]
    leaves += [tree for tree in post_order(tuple(tree for _, tree in outputs)) if isinstance(tree, BufferLoad)]
    walk = []
    for group in groups:
        axes = tuple(own[position] for position in group if own[position].extent != 1)
        for outer, inner in pairwise(axes):
            if any(leaf.strides.get(outer, 0) != leaf.strides.get(inner, 0) * inner.extent for leaf in leaves):
                raise NotFusable
        walk.append(CollapsedLoop(axes or (LoopAxis(1),), 1))
    return Epilogue(dtype, shape, core, tuple(walk), tuple(outputs))
