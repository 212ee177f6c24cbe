"""Kernels: loop nests with their inputs and outputs, and calls of reference implementations."""

from __future__ import annotations

from collections.abc import Mapping

from relvm.data_classes import dataclass, value_record
from relvm.display import Displayed
from relvm.ir.loop_ir import Buffer, Statement
from relvm.ir.symbolic import AnyDim
from relvm.kernels.cost import Work


@value_record
class Provenance:
    """A map from the variables and statements of a kernel to the operators for which they were generated.

    Operators are given as indices into `members`.

    members: for each operator of the kernel, its source locations in all operator calls that share the kernel.
    values: a dict from the name of a variable, array or output to its operators.
    default: the operators of statements that compute none of these values.  If it is None, such a statement belongs to
    the operators that use its result.
    """

    members: tuple[tuple[str, ...], ...]
    values: Mapping[str, tuple[int, ...]]
    default: tuple[int, ...] | None


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Displayed):
    """A kernel: a loop nest that reads `inputs` and writes every element of `outputs`.

    comment: the operators that the kernel implements.
    work: the work of a call, for profiles, or None if it is unknown.
    provenance: the operators that the statements come from, or None for a kernel that is not composed of operators.

    relations: pairs of a size variable and an expression of other size variables.  Both have the same value in each
    valid call.  A kernel has such a variable for each compound dimension, such as `n * 2`.  Native kernels check these
    relations, because the accesses of their loops are not checked.
    in_place: the indices of the inputs that the output may overwrite, if there is only one output.  Such an input has
    the shape and dtype of the output, and each of its elements is read only to compute the output element with the same
    indices.  A caller may also pass, as another input, a view of the overwritten tensor with the same number of
    elements.  This is safe because the kernel reads each input of this size at the flat position of the output element.
    updated: the index of the input that a kernel with one output updates, or None (relvm/kernels/updates.py).  The
    caller may pass the same tensor as this input and as the output.  No other argument may then be in its memory.
    """

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    comment: str
    in_place: tuple[int, ...] = ()
    updated: int | None = None
    work: Work | None = None
    provenance: Provenance | None = None
    relations: tuple[tuple[AnyDim, AnyDim], ...] = ()

    @property
    def overwritable(self) -> tuple[int, ...]:
        """The indices of the inputs that the output may overwrite, by `in_place` or `updated`."""
        return self.in_place if self.updated is None else (*self.in_place, self.updated)

    def __str__(self) -> str:
        inputs, outputs = (", ".join(buffer.name for buffer in side) for side in (self.inputs, self.outputs))
        return f"<kernel {self.name}({inputs}) -> ({outputs}): {self.comment}>"


@value_record
class ReferenceKernel:
    """A kernel of target "numpy": a call of the registered Python function `reference.<op>`.

    The arguments of the function are the attributes as JSON text, the input tensors, and the output tensors.
    """

    op: str
    attributes: str
