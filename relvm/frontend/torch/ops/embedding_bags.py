"""Embedding bags: sums, means and maxima of rows of a table."""

from __future__ import annotations

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.kernel_parts import buffer, index_of, loops, size
from relvm.frontend.torch.registry import Node, converts, known_int, shape_of
from relvm.ir.dtypes import BOOL
from relvm.ir.expr import Expr
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Literal
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

_MODES = ("sum", "mean", "max")


@converts("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag", "embedding_bag.padding_idx")
def _embedding_bag(
    node: Node,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Expr | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Expr | None, ...]:
    """Computes only the first result, the bags."""
    if len(shape_of(indices)) != 1:
        raise RelvmUnsupportedError(f"indices of rank {len(shape_of(indices))} are not supported, expected 1")
    table = node.emit(node.wide(weight))
    args = [table, node.emit(indices), node.emit(offsets)]
    if per_sample_weights is not None:
        args.append(node.emit(node.cast(per_sample_weights, table.known_element_type)))
    bags = shape_of(offsets)[0] - 1 if include_last_offset else shape_of(offsets)[0]
    types = [each.tensor_type for each in args]
    padding = padding_idx
    if padding is not None and padding < 0:
        counts_from_end = node.node.target.endswith(".embedding_bag.padding_idx")  # for the others, it stands for none
        padding = padding + known_int(shape_of(table)[0], "the number of rows") if counts_from_end else None
    kernel = _bags(node.kernel_name("embedding_bag"), types, bags, _MODES[mode], padding)
    result = TensorType(table.known_element_type, (bags, shape_of(table)[1]))
    found = node.call_kernel(kernel, args, [result])
    return (node.cast(node.emit(found), weight.known_element_type), None, None, None)


def _bags(name: str, types: list[TensorType], bags: AnyDim, mode: str, padding: int | None) -> KernelDef:
    """Return the kernel that combines the rows of each bag.  A bag without rows is 0.

    types: the types of the table, the indices of its rows, the positions in the indices at which the bags begin, and
    optionally the factors of the rows.
    bags: the number of bags.
    mode: sum, mean or max.
    padding: the index that does not belong to a bag, or None.
    """
    k = KernelBuilder()
    inputs = [
        buffer(stem, type_) for stem, type_ in zip(("table", "indices", "offsets", "factors"), types, strict=False)
    ]
    table, indices, offsets = inputs[:3]
    columns = table.shape[1]
    out = buffer("out", TensorType(table.dtype, (bags, columns)), is_output=True)
    zero = Literal(0.0, table.dtype)
    with loops(k, out.shape[:1]) as (bag,):
        with k.loop(size(columns), name="column") as column:
            k.store(out, (bag, column), zero)
        start = k.let("start", index_of(offsets[bag,]))
        end = k.variable("end", size(indices.shape[0]))
        with k.branch(bag + 1 < size(offsets.shape[0])):
            k.assign(end, index_of(offsets[bag + 1,]))
        count = k.variable("count", Literal(0, start.dtype))
        with k.loop(end, start=start, name="n") as n:
            row = k.let("row", index_of(indices[n,]))
            with k.branch(row.ne(padding) if padding is not None else Literal(True, BOOL)):
                with k.loop(size(columns), name="column") as column:
                    element = k.let("element", table[row, column])
                    if len(inputs) == 4:
                        element = k.let("element", element * inputs[3][n,])
                    if mode == "max":
                        with k.branch(count.eq(0).logical_or(element > out[bag, column])):
                            k.store(out, (bag, column), element)
                    else:
                        k.store(out, (bag, column), out[bag, column] + element)
                k.assign(count, count + 1)
        if mode == "mean":
            with k.branch(count > 1), k.loop(size(columns), name="column") as column:
                k.store(out, (bag, column), out[bag, column] / count.to(table.dtype))
    return KernelDef(name, tuple(inputs), (out,), k.finish())
