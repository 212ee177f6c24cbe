"""How many operations operators take, as they are defined, whatever their kernels do: the `operations=` of what they
are lowered to.

Each takes the shapes of the tensors among the arguments and of the first result, then the attributes, and gives a
number or a dimension.  A multiplication is one operation, an addition another one.
"""

from __future__ import annotations

from relvm.ir.symbolic import AnyDim, product

Shape = tuple[AnyDim, ...]


def matrix_operations(*shapes: Shape, transpose_a: bool = False, **attributes) -> AnyDim:
    """Of products of matrices, the first shape being (..., m, k), or (..., k, m) where it is transposed."""
    return 2 * product(shapes[-1]) * shapes[0][-2 if transpose_a else -1]


def window_operations(*shapes: Shape, **attributes) -> AnyDim:
    """Of a convolution by weights (filters, channels of a group, window...), the second shape: padding counts as
    elements do."""
    return 2 * product(shapes[-1]) * product(shapes[1][1:])


def pooling_operations(*shapes: Shape, kernel: tuple[int, ...], **attributes) -> AnyDim:
    """One for each element of each window: padding counts as elements do."""
    return product(shapes[-1]) * product(kernel)


def one_for_each(*shapes: Shape, **attributes) -> AnyDim:
    """One for each element of the first argument."""
    return product(shapes[0])
