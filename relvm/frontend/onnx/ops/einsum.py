"""Decomposition of Einsum into transpositions, sums and matrix products."""

from __future__ import annotations

import string

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, counted
from relvm.frontend.onnx.broadcasting import broadcast_input, common_dim
from relvm.frontend.onnx.dynamic_sizes import dim_as_operand, iota
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.tensor_expr import TensorExpr, shaped_input
from relvm.ir.expr import Expr
from relvm.ir.symbolic import AnyDim, product
from relvm.ir.type_rules import expect_equal_dims

# A label is a letter, or a number for an axis that an ellipsis covers.  These axes are counted from the last one.
Label = str | int


@value_record
class LabeledTensor:
    """An operand of an Einsum: a tensor, and a distinct label for each of its axes."""

    tensor: TensorExpr
    labels: tuple[Label, ...]

    def size(self, label: Label) -> AnyDim:
        return self.tensor.shape[self.labels.index(label)]

    def sizes(self, labels: tuple[Label, ...]) -> list[AnyDim]:
        return [self.size(label) for label in labels]

    def sum_except(self, kept: set[Label]) -> LabeledTensor:
        """Sum over all axes except those whose labels are in `kept`."""
        removed = tuple(axis for axis, label in enumerate(self.labels) if label not in kept)
        if not removed:
            return self
        remaining = tuple(label for label in self.labels if label in kept)
        return LabeledTensor(self.tensor.apply(ops.sum, axes=removed), remaining)

    def transpose_to(self, labels: tuple[Label, ...]) -> TensorExpr:
        """Transpose the tensor so that its axes are in the order of `labels`, a permutation of its labels."""
        if labels == self.labels:
            return self.tensor
        return self.tensor.apply(ops.transpose, perm=tuple(map(self.labels.index, labels)))


@converts("Einsum")
def _einsum(node: OnnxNode) -> Expr:
    """Multiplies the operands from left to right.

    After each product, it sums over the labels that neither a later operand nor the result uses.
    """
    tensors = [shaped_input(node, i) for i in range(len(node.inputs))]
    terms, result = _parse_equation(node.attribute("equation"), [len(tensor.shape) for tensor in tensors])
    operands = [_take_diagonals(*pair) for pair in zip(tensors, terms, strict=True)]
    operands = _broadcast_operands(_squeeze_broadcast_axes(operands))
    total = operands[0].sum_except({*result, *(label for each in operands[1:] for label in each.labels)})
    for i, operand in enumerate(operands[1:], 1):
        needed_later = {*result, *(label for each in operands[i + 1 :] for label in each.labels)}
        total = _multiply(total, operand, needed_later)
    return total.transpose_to(result).expr


def _parse_equation(equation: str, ranks: list[int]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """Parse the equation of an Einsum.  Return the labels of each operand, and the labels of the result.

    ranks: the ranks of the operands.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ranks):
        operands, inputs = counted(len(texts), "operand"), counted(len(ranks), "input")
        raise RelvmArgumentError(f"the equation {equation!r} has {operands}, but the node has {inputs}")
    terms = [_labels(equation, text, rank) for text, rank in zip(texts, ranks, strict=True)]
    found = [label for term in terms for label in term]
    hidden = sorted({label for label in found if isinstance(label, int)}, reverse=True)
    if arrow:
        result = _labels(equation, right, len(right.replace("...", "")) + len(hidden) * ("..." in right))
    else:  # implicit output: each letter that occurs once, in alphabetical order
        result = (*hidden, *sorted({label for label in found if isinstance(label, str) and found.count(label) == 1}))
    unknown = [label for label in result if label not in found]
    if unknown or len(set(result)) != len(result):
        raise RelvmArgumentError(
            f"the equation {equation!r}: every output label must occur in an operand, and only once in the output"
        )
    return terms, result


def _labels(equation: str, text: str, rank: int) -> tuple[Label, ...]:
    before, dots, after = text.partition("...")
    hidden = rank - len(before) - len(after)
    if not all(letter in string.ascii_letters for letter in before + after) or hidden < 0 or (hidden and not dots):
        raise RelvmArgumentError(f"the equation {equation!r}: {text!r} does not match an operand of rank {rank}")
    return (*before, *range(hidden - 1, -1, -1), *after)


def _take_diagonals(tensor: TensorExpr, labels: tuple[Label, ...]) -> LabeledTensor:
    """Return an operand without repeated labels: replace axes with the same label by one axis, their diagonal."""
    for label in labels:
        if labels.count(label) == 1:
            continue
        first = labels.index(label)
        second = labels.index(label, first + 1)
        remaining = tuple(axis for axis in range(len(labels)) if axis not in (first, second))
        size = tensor.shape[first]
        expect_equal_dims("Einsum", f"sizes of label {label} differ", size, tensor.shape[second])
        flat = tensor.apply(ops.transpose, perm=(first, second, *remaining))
        flat = flat.reshape(size * size, *(tensor.shape[axis] for axis in remaining))
        diagonal = iota(tensor.node, size) * (dim_as_operand(tensor.node, size) + 1)
        kept = tuple(labels[axis] for axis in remaining)
        return _take_diagonals(flat.apply(ops.gather, diagonal, axis=0), (label, *kept))
    return LabeledTensor(tensor, labels)


def _squeeze_broadcast_axes(operands: list[LabeledTensor]) -> list[LabeledTensor]:
    """Remove the axes of size 1 that broadcast to a larger axis with the same label in another operand."""
    kept = []
    for operand in operands:
        others = [other for other in operands if other is not operand]
        removed = tuple(
            axis
            for axis, label in enumerate(operand.labels)
            if operand.tensor.shape[axis] == 1
            and any(label in other.labels and other.size(label) != 1 for other in others)
        )
        tensor = operand.tensor.apply(ops.squeeze, axes=removed) if removed else operand.tensor
        labels = tuple(label for axis, label in enumerate(operand.labels) if axis not in removed)
        kept.append(LabeledTensor(tensor, labels))
    return kept


def _broadcast_operands(operands: list[LabeledTensor]) -> list[LabeledTensor]:
    """Broadcast the operands so that axes with the same label have the same size."""
    sizes: dict[Label, AnyDim] = {}
    for operand in operands:
        for label in operand.labels:
            size = operand.size(label)
            sizes[label] = common_dim(sizes.get(label, size), size) or sizes.get(label, size)
    results = []
    for operand in operands:
        tensor = operand.tensor
        value = broadcast_input(tensor.node, tensor.expr, [sizes[label] for label in operand.labels])
        results.append(LabeledTensor(TensorExpr(tensor.node, value), operand.labels))
    return results


def _multiply(a: LabeledTensor, b: LabeledTensor, needed_later: set[Label]) -> LabeledTensor:
    """Multiply two operands, and sum over the labels that are not in `needed_later`.

    The result is a batched matrix product, or an elementwise product if no common label is summed over.

    needed_later: the labels that a later operand or the result uses.
    """
    a, b = a.sum_except(needed_later | set(b.labels)), b.sum_except(needed_later | set(a.labels))
    for label in a.labels:
        if label in b.labels:
            expect_equal_dims("Einsum", f"sizes of label {label} differ", a.size(label), b.size(label))
    common = [label for label in a.labels if label in b.labels]
    batch = tuple(label for label in common if label in needed_later)
    inner = tuple(label for label in common if label not in needed_later)
    rows = tuple(label for label in a.labels if label not in common)
    columns = tuple(label for label in b.labels if label not in common)
    labels = (*batch, *rows, *columns)
    sizes = (*a.sizes(batch), *a.sizes(rows), *b.sizes(columns))
    if not inner:
        left = a.transpose_to((*batch, *rows)).reshape(*a.sizes((*batch, *rows)), *[1] * len(columns))
        right = b.transpose_to((*batch, *columns)).reshape(*b.sizes(batch), *[1] * len(rows), *b.sizes(columns))
        return LabeledTensor(left * right, labels)
    left = a.transpose_to((*batch, *rows, *inner))
    left = left.reshape(*a.sizes(batch), product(a.sizes(rows)), product(a.sizes(inner)))
    right = b.transpose_to((*batch, *inner, *columns))
    right = right.reshape(*b.sizes(batch), product(b.sizes(inner)), product(b.sizes(columns)))
    return LabeledTensor(left.apply(ops.matmul, right).reshape(*sizes), labels)
