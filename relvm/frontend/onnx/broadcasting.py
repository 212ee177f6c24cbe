"""Broadcasting of symbolic sizes, which can turn out to be 1 at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import relvm.ops as ops
from relvm.frontend.onnx.registry import OnnxNode
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import AnyDim, Dim, DimOp, difference, dim_op
from relvm.ir.types import TensorType

# Operators whose inputs broadcast to each other along every axis.
ELEMENTWISE = {
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip

# Operators whose other inputs broadcast to the first one.
_BROADCAST_TO_FIRST = {"LayerNormalization", "PRelu", "RMSNormalization"}

# The two factors of a matrix product, whose batches broadcast to each other.
_FACTORS = {"MatMul": (0, 1), "MatMulInteger": (0, 1), "QLinearMatMul": (0, 3)}

# Inputs that broadcast to each other, of ONNX Runtime's own operators.
_BROADCAST_INPUTS = {
    "QLinearAdd": (0, 3),
    "QLinearMul": (0, 3),
    "SkipLayerNormalization": (0, 1),
    "SkipSimplifiedLayerNormalization": (0, 1),
}


def common_dim(first: AnyDim, second: AnyDim) -> AnyDim | None:
    """Return the size that two sizes broadcast to, or None if broadcasting is not supported for them.

    If the result is None, the importer assumes that the sizes are equal, and checks this at run time.  This keeps the
    loops of kernels simple.  The result is None in three cases:

    - The sizes differ by a known nonzero number, as `n` and `n + 1`.
    - One size is the other with an upper limit, as `n` and `min(512, n)`.  If one of them is 1, the other is 1, too,
      so broadcasting is possible only if they are equal.  An example is the length of a sentence and that of its
      position table.
    - A size is rounded down, like the side of an image that is halved and doubled.
    """
    if first == 1 or difference(first, second) == 0:
        return second
    if second == 1:
        return first
    if difference(first, second) is not None:
        return None
    for dim, other in ((first, second), (second, first)):
        if isinstance(dim, int):
            return None if _is_rounded(other) else dim
    if _is_rounded(first) or _is_rounded(second) or _is_capped(first, second) or _is_capped(second, first):
        return None
    return dim_op("max", first, second) * dim_op("min", 1, dim_op("min", first, second))


def _is_rounded(dim: AnyDim) -> bool:
    """Return whether `dim` is computed with a rounded division or a remainder."""
    atoms = [atom for monomial, _ in dim.terms for atom in monomial] if isinstance(dim, Dim) else []
    operators = [atom for atom in atoms if isinstance(atom, DimOp)]
    return any(a.function in ("floordiv", "mod") or _is_rounded(a.left) or _is_rounded(a.right) for a in operators)


def _is_capped(dim: AnyDim, uncapped: AnyDim) -> bool:
    """Return whether `dim` is `min(c, uncapped)`, where c is a constant above 1."""
    match dim:
        case Dim(terms=(((DimOp("min", left, right),), 1),)):
            cap, other = (left, right) if isinstance(left, int) else (right, left)
            return isinstance(cap, int) and cap > 1 and difference(other, uncapped) == 0
    return False


def common_dims(shapes: Sequence[Sequence[AnyDim]]) -> list[AnyDim] | None:
    """Return the shape that several shapes broadcast to.

    Return None if `common_dim` returns None for an axis.
    """
    rank = max(map(len, shapes))
    result: list[AnyDim] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            found = common_dim(result[axis], dim)
            if found is None:
                return None
            result[axis] = found
    return result


def require_broadcast(node: OnnxNode, dim: AnyDim, target: AnyDim) -> None:
    """Check that size `dim` can be broadcast to `target`: it must be 1 or equal to `target`.

    The check is made at compile time if possible, otherwise at run time.
    """
    if dim == 1 or difference(dim, target) == 0:
        return
    is_long = dim_op("min", dim_op("max", dim - 1, 1 - dim), 1)  # 0 if the size is 1, otherwise 1
    node.require_equal(dim, (target - 1) * is_long + 1, "size {} cannot be broadcast to {}")


def broadcast_input(node: OnnxNode, value: Expr, dims: Sequence[AnyDim]) -> Expr:
    """Expand the axes of `value` to the sizes in `dims`, aligned at the last axis.

    An axis of known size 1 is not expanded, because operators broadcast it.  If all other axes already have the
    required sizes, return `value` itself.
    """
    shape = value.tensor_type.known_shape
    own = dims[len(dims) - len(shape) :]
    for have, want in zip(shape, own, strict=True):
        require_broadcast(node, have, want)
    target = tuple(have if have == 1 else want for have, want in zip(shape, own, strict=True))
    if all(difference(have, want) == 0 for have, want in zip(shape, target, strict=True)):
        return value
    return node.emit(ops.expand(value, Shape(target)))


def with_broadcast_inputs(node: OnnxNode) -> OnnxNode | None:
    """Return a copy of the node whose inputs are expanded to their common shape.

    Return None if no input needs to be expanded, if the inputs cannot be broadcast, or if the shape of an input is
    unknown.  Also return None for operators other than elementwise operators, Gemm, and those in the tables of this
    module, such as `_FACTORS`.
    """
    op = node.proto.op_type
    positions: Sequence[int] = _FACTORS.get(op, range(len(node.inputs)))
    if node.proto.domain:
        positions = _BROADCAST_INPUTS.get(op, ()) if node.proto.domain == "com.microsoft" else ()
    values = [node.inputs[at] for at in positions]
    tensors = [value for value in values if isinstance(value, Expr) and isinstance(value.type, TensorType)]
    if not tensors or any(t.tensor_type.shape is None or t.element_type is None for t in tensors):
        return None
    shapes = [tensor.tensor_type.known_shape for tensor in tensors]
    inputs = list(node.inputs)
    wanted: Sequence[Sequence[AnyDim] | None]
    if node.proto.domain or (op in ELEMENTWISE and len(tensors) == len(node.inputs) and node.attribute("axis") is None):
        wanted = [common_dims(shapes)] * len(shapes)
    elif op in _BROADCAST_TO_FIRST:
        wanted = [shapes[0]] * len(shapes)
    elif op in _FACTORS and min(map(len, shapes)) >= 2:
        batch = common_dims([shape[:-2] for shape in shapes])
        wanted = [None if batch is None else (*batch, *shape[-2:]) for shape in shapes]
    elif op == "Gemm" and len(tensors) == 3:
        rows = shapes[0][1 if node.attribute("transA", 0) else 0]
        columns = shapes[1][0 if node.attribute("transB", 0) else 1]
        wanted = [shapes[0], shapes[1], (rows, columns)]
    else:
        return None
    if len(tensors) < len(positions) and node.proto.domain:
        return None
    for at, tensor, shape, dims in zip(positions, tensors, shapes, wanted, strict=False):
        if dims is None or len(dims) < len(shape) or _is_impossible(shape, dims):
            return None
        inputs[at] = broadcast_input(node, tensor, dims)
    return None if inputs == list(node.inputs) else replace(node, inputs=inputs)


def _is_impossible(shape: Sequence[AnyDim], dims: Sequence[AnyDim]) -> bool:
    pairs = zip(shape, dims[len(dims) - len(shape) :], strict=True)
    return any(have != 1 and difference(have, want) not in (None, 0) and isinstance(have, int) for have, want in pairs)
