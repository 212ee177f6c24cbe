"""Operation counts of operators by their mathematical definition, for the `operations` parameter of lowering rules.

The parameters of each function are the shapes of the tensor arguments and of the first result, then the attributes.
The result is a number or a symbolic dimension.  An addition counts as one operation, and so does a multiplication.  How
the kernel computes the result makes no difference.
"""

from __future__ import annotations

from relvm.ir.symbolic import AnyDim, product

Shape = tuple[AnyDim, ...]


def matrix_operations(*shapes: Shape, transpose_a: bool = False, **attributes) -> AnyDim:
    """Return the number of operations of a matrix product.

    The first argument has shape (..., m, k), or (..., k, m) if `transpose_a`.
    """
    return 2 * product(shapes[-1]) * shapes[0][-2 if transpose_a else -1]


def window_operations(*shapes: Shape, **attributes) -> AnyDim:
    """Return the number of operations of a convolution, including products with padding.

    The second argument contains the weights, of shape (filters, channels per group, window...).
    """
    return 2 * product(shapes[-1]) * product(shapes[1][1:])


def pooling_operations(*shapes: Shape, kernel: tuple[int, ...], **attributes) -> AnyDim:
    """Return the number of operations of pooling: one for each element of each window, including padding."""
    return product(shapes[-1]) * product(kernel)


def one_per_element(*shapes: Shape, **attributes) -> AnyDim:
    """Return the number of operations of an operator with one operation for each element of its first argument."""
    return product(shapes[0])
