"""Cost of kernels: the number of operations and of elements read, as functions of the sizes of the arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relvm.data_classes import value_record
from relvm.ir.symbolic import AnyDim, Atom, as_var

# A list of terms [coefficient, [argument, axis], ...].  A term is the product of the coefficient and of the sizes of
# the listed axes, and the value of the polynomial is the sum of its terms.
Polynomial = list[list[Any]]


@value_record
class Work:
    """The work of one call of a kernel, in terms of the dimensions of its buffers.

    operations: the number of operations (docs/explore.md defines them), or None if it is unknown.
    reads: for each input, the maximum number of elements that the kernel reads, or None if it can read all elements.
    """

    operations: AnyDim | None
    reads: tuple[AnyDim | None, ...]


def work_entry(work: Work, shapes: Iterable[tuple[AnyDim, ...]]) -> dict[str, Any]:
    """Return `work` as JSON data, for the entry of the kernel in the executable's debug section.

    The result has the keys "operations" and "reads".  A number of operations or elements is a list of terms, or None.
    A term is a list: a coefficient, then a pair [argument, axis] for each size by which it is multiplied.

    shapes: the shapes of the inputs, then of the outputs.
    """
    indices: dict[Atom, list[int]] = {}
    for argument, shape in enumerate(shapes):
        for axis, dim in enumerate(shape):
            var = as_var(dim)
            if var is not None:
                indices.setdefault(var, [argument, axis])

    def terms(dim: AnyDim | None) -> Polynomial | None:
        if dim is None or isinstance(dim, int):
            return None if dim is None else [[dim]]
        return [[coefficient, *(indices[var] for var in monomial)] for monomial, coefficient in dim.terms]

    return {"operations": terms(work.operations), "reads": [terms(dim) for dim in work.reads]}
