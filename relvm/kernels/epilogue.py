"""Epilogues: operators that are fused into a contraction, which is a matrix product or a convolution.

The operators are applied to each element of the contraction's result before the element is stored.
"""

from __future__ import annotations

from itertools import pairwise

from relvm.data_classes import value_record
from relvm.ir.dtypes import I64, DType
from relvm.ir.loop_ir import Address, Scalar, as_scalar
from relvm.ir.symbolic import AnyDim, product
from relvm.kernels.fused_expr import BufferLoad, ContractionElement, FusedExpr, GatherLoad, NotFusable, post_order
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.loop_scope import CollapsedLoop, Scope
from relvm.kernels.lowering_rules import LoopAxis

_CACHED_BYTES = 256 << 10  # a result of so many bytes is often in the L2 cache, where an earlier one was


@value_record
class Epilogue:
    """The epilogue of a contraction: the computation and the stores for each element.

    dtype, shape: the dtype and shape of the contraction's result.
    element: the node that stands for an element of this result in the expression trees of `outputs`.
    loops: the loops over the axes of this result.
    outputs: for each output, a pair of the element to store and the expression tree that computes its value.
    """

    dtype: DType
    shape: tuple[AnyDim, ...]
    element: ContractionElement
    loops: tuple[CollapsedLoop, ...]
    outputs: tuple[tuple[BufferLoad, FusedExpr], ...]

    def store(self, k: KernelBuilder, counters: tuple[Scalar, ...], value: Scalar) -> None:
        """Generate code that computes one element of each output from an element of the contraction, and stores the
        computed elements.

        value: the element of the contraction.
        counters: the indices of this element, one for each loop of the contraction (Contraction.axes).
        """
        scope = Scope(k)
        scope.counters = list(zip(self.loops, counters, strict=True))
        scope.values[self.element] = value
        for leaf, tree in self.outputs:
            scope.store(leaf, scope.value(tree))

    def prefetch(self, k: KernelBuilder, counters: tuple[Scalar, ...], rows: Scalar, columns: Scalar) -> None:
        """Generate code that asks the processor to load what `store` accesses for `rows` x `columns` elements, unless
        that is likely to be in the L2 cache.

        Without it, the stores of a tile wait for memory.

        counters: the indices of the first of these elements, one for each loop.  The last two loops are those over the
        rows and the columns.
        """
        if k.is_compact or k.is_small or len(self.loops) < 2:
            return
        size = product(self.shape)
        if isinstance(size, int) and size * self.dtype.size_bytes < _CACHED_BYTES:
            return
        row_axis, column_axis = (loop.axes[-1] for loop in self.loops[-2:])
        trees = post_order(tuple(tree for _, tree in self.outputs))
        for leaf in (*(leaf for leaf, _ in self.outputs), *trees):
            if not isinstance(leaf, BufferLoad) or isinstance(leaf, GatherLoad):
                continue
            if leaf.strides.get(column_axis) == 1 and row_axis in leaf.axes:
                k.invoke(
                    "rvm_prefetch_rows",
                    x=Address(leaf.buffer, self._position(leaf, counters)),
                    row_stride=as_scalar(leaf.strides[row_axis], I64),
                    rows=rows,
                    columns=columns,
                    element_bytes=leaf.buffer.dtype.size_bytes,
                )

    @property
    def partial(self) -> BufferLoad | None:
        """An element of the first output, if its buffer can store partial sums of the contraction.

        This property is None if the dtype of the output differs from that of the contraction.
        """
        leaf = self.outputs[0][0]
        return leaf if leaf.buffer.dtype == self.dtype else None

    def partial_position(self, counters: tuple[Scalar, ...]) -> Scalar:
        """Return the flat position in `partial.buffer` for the partial sum of one element of the contraction.

        counters: the indices of this element, one for each loop of the contraction.
        """
        return self._position(self.outputs[0][0], counters)

    def _position(self, leaf: BufferLoad, counters: tuple[Scalar, ...]) -> Scalar:
        """Return the flat position of `leaf` for one element of the contraction."""
        scope = Scope(KernelBuilder())
        scope.counters = list(zip(self.loops, counters, strict=True))
        return scope.flat(leaf)


def make_epilogue(
    element: ContractionElement,
    dtype: DType,
    shape: tuple[AnyDim, ...],
    groups: tuple[tuple[int, ...], ...],
    root: tuple[LoopAxis, ...],
    outputs: list[tuple[BufferLoad, FusedExpr]],
) -> Epilogue:
    """Return the epilogue of a contraction.

    element, dtype, shape, outputs: the fields of the Epilogue with these names.
    groups: the loops of the contraction, as returned by Contraction.axes.
    root: the loops of the kernel over the elements of the outputs.

    Raises
    ------
    NotFusable
        The epilogue is not elementwise: some element of the contraction is used several times or not at all.  The error
        is also raised if the contraction iterates several axes as one loop, but these axes are not contiguous in a
        buffer that the epilogue reads or writes.
    """
    own: list[LoopAxis] = []
    for index_expr, dim in zip(element.at, shape, strict=True):
        if dim == 1:
            own.append(LoopAxis(1))
            continue
        if len(index_expr.steps) != 1 or index_expr.steps[0][1] != 1 or index_expr.start != 0:
            raise NotFusable
        ((axis, _),) = index_expr.steps
        if axis.extent != dim:
            raise NotFusable
        own.append(axis)
    loop_axes = {axis for axis in own if axis.extent != 1}
    if loop_axes != {axis for axis in root if axis.extent != 1} or len(loop_axes) != sum(dim != 1 for dim in shape):
        raise NotFusable
    leaves = [leaf for leaf, _ in outputs]
    leaves += [tree for tree in post_order(tuple(tree for _, tree in outputs)) if isinstance(tree, BufferLoad)]
    loops = []
    for group in groups:
        axes = tuple(own[position] for position in group if own[position].extent != 1)
        for outer, inner in pairwise(axes):
            if any(leaf.strides.get(outer, 0) != leaf.strides.get(inner, 0) * inner.extent for leaf in leaves):
                raise NotFusable
        loops.append(CollapsedLoop(axes or (LoopAxis(1),), 1))
    return Epilogue(dtype, shape, element, tuple(loops), tuple(outputs))
