"""Matrix products and convolutions."""

from __future__ import annotations

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.moving import padded_dynamically
from relvm.frontend.common.products import ConvDimensions, DotDimensions, conv_general, dot_general
from relvm.frontend.stablehlo.registry import Node, converts
from relvm.ir.dtypes import F32, I32, DType
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim


@converts("dot_general")
def _dot_general(node: Node) -> Expr:
    """Multiplies tensors.  Operands of different types are first converted to the type of the result."""
    node.expect_operands(2)
    dims = DotDimensions(
        node.integers("lhs_batching_dimensions"),
        node.integers("rhs_batching_dimensions"),
        node.integers("lhs_contracting_dimensions"),
        node.integers("rhs_contracting_dimensions"),
    )
    return _dot(node, dims)


@converts("dot")
def _dot_of_matrices(node: Node) -> Expr:
    """Multiplies vectors and matrices.  StableHLO has replaced this operation by `dot_general`."""
    node.expect_operands(2)
    return _dot(node, DotDimensions((), (), (len(node.shape()) - 1,), (0,)))


def _dot(node: Node, dims: DotDimensions) -> Expr:
    x, y = node.operands
    left, right = node.shape(0), list(node.shape(1))
    pairs = zip((*dims.left_batch, *dims.left_contracted), (*dims.right_batch, *dims.right_contracted), strict=False)
    for one, other in pairs:  # sizes that must be equal
        if 0 <= one < len(left) and 0 <= other < len(right) and not isinstance(right[other], int):
            right[other] = left[one]
    y = node.importer.with_shape(y, right)
    result = node.result_dtype()
    dtype = _computed_dtype(node, result)
    x, y = node.cast(x, dtype), node.cast(y, dtype)
    found = dot_general(node.importer.emit, x, y, dims)
    if result.is_bool:
        return ops.not_equal(found, 0)
    return node.cast(found, result)


def _computed_dtype(node: Node, result: DType) -> DType:
    """Return the dtype in which a product is computed."""
    operands = (node.dtype(0), node.dtype(1))
    if result.is_bool:
        return I32
    if result.is_narrow_float or any(dtype.is_narrow_float for dtype in operands):
        return F32 if not any(dtype.bits == 64 for dtype in (*operands, result)) else result
    if result.bits < 8:
        raise RelvmUnsupportedError(f"products of the type {result} are not supported")
    return result


def _layout(node: Node, kind: str, first: str, second: str) -> tuple[int, ...]:
    return (
        node.integer(f"{kind}_{first}_dimension"),
        node.integer(f"{kind}_{second}_dimension"),
        *node.integers(f"{kind}_spatial_dimensions"),
    )


@converts("convolution", "dynamic_conv")
def _convolution(node: Node) -> Expr:
    """Supports any layout, strides, dilations, groups and reversed windows."""
    x, w = node.operands[:2]
    rank = len(node.shape())
    spatial = rank - 2
    if spatial < 0 or len(node.shape(1)) != rank:
        raise RelvmFormatError(f"the operands have the types {node.type(0)} and {node.type(1)}")
    dims = ConvDimensions(
        _layout(node, "input", "batch", "feature"),
        _layout(node, "kernel", "output_feature", "input_feature"),
        _layout(node, "output", "batch", "feature"),
    )
    padding = node.padding("padding", spatial)
    is_padded = node.operation.name == "stablehlo.dynamic_conv"
    if is_padded:
        x = _padded_at_run_time(node, dims, node.integers("lhs_dilation", spatial, 1))
    reverse = node.attribute("window_reversal", (False,) * spatial)
    reverse = reverse if isinstance(reverse, tuple) else (reverse,) * spatial
    if len(reverse) != spatial:
        raise RelvmFormatError(f"window_reversal has {counted(len(reverse), 'item')}, expected {spatial}")
    result = node.result_dtype()
    dtype = _computed_dtype(node, result)
    feature_groups, batch_groups = node.integer("feature_group_count", 1), node.integer("batch_group_count", 1)
    if (
        min(feature_groups, batch_groups) < 1
        or max(feature_groups, batch_groups) > 1 == min(feature_groups, batch_groups) - 1
    ):
        raise RelvmFormatError("feature_group_count and batch_group_count must be positive, and one of them 1")
    found = conv_general(
        node.importer.emit,
        node.cast(x, dtype),
        node.cast(w, dtype),
        dims,
        strides=node.integers("window_strides", spatial, 1),
        padding=padding,
        input_dilation=(1,) * spatial if is_padded else node.integers("lhs_dilation", spatial, 1),
        kernel_dilation=node.integers("rhs_dilation", spatial, 1),
        reversed_axes=[bool(each) for each in reverse],
        feature_groups=feature_groups,
        batch_groups=batch_groups,
    )
    return node.cast(found, result)


def _padded_at_run_time(node: Node, dims: ConvDimensions, dilation: tuple[int, ...]) -> Expr:
    """Return the input of a convolution, dilated, and padded by the numbers that operand 2 contains."""
    node.expect_operands(3)
    sizes, rank = node.sizes(2), len(node.shape())
    if len(sizes) != 2 * len(dilation):
        raise RelvmFormatError(f"the padding has {counted(len(sizes), 'number')}, expected {2 * len(dilation)}")
    low: list[AnyDim] = [0] * rank
    high: list[AnyDim] = [0] * rank
    interior: list[AnyDim] = [0] * rank
    for i, axis in enumerate(dims.input[2:]):
        low[axis], high[axis], interior[axis] = sizes[2 * i], sizes[2 * i + 1], dilation[i] - 1
    zero = node.number(0, node.dtype())
    return padded_dynamically(node, node.operands[0], zero, low, high, interior)
