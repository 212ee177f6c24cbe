"""Limits on constant folding.

Without them, constant folding could take any amount of time, and create constants of any size, even for a short
program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relvm.ir.dtypes import STR
from relvm.ir.expr import OpCall
from relvm.ir.types import TensorType
from relvm.kernels.lowering_rules import Contraction, CustomKernel

_MAX_BYTES = 64 << 20  # limit on the size of a constant
_MAX_OPERATIONS = 1 << 32  # limit on operations: about one second on a slow processor
_STRING_BYTES = 64  # size of a Python string without its characters

# Operators without an operation count that nevertheless access their arguments and results more than twice.
_UNCOUNTED = frozenset(
    {
        "non_max_suppression",
        "pairwise_coupling",
        "roi_align",
        "roi_max_pool",
        "row_echelon",
        "tree_ensemble",
        "tree_ensemble_compact",
    }
)


class FoldingBudget:
    """A limit on constant folding: how many bytes new constants may still use, and how many operations may still be
    spent to compute them.

    Parameters
    ----------
    known_bytes
        The total size in bytes of the constants before folding.  All folded constants together may use four times this
        size, plus 128 MB.
    """

    def __init__(self, known_bytes: int = 0) -> None:
        self.bytes = 2 * _MAX_BYTES + 4 * known_bytes
        self.operations = _MAX_OPERATIONS

    def spend(self, call: OpCall, args: Sequence[np.ndarray | tuple[int, ...]]) -> bool:
        """Subtract the bytes and operations for folding `call` from the budget, and return True.

        Return False if the budget is too small, if the result can be larger than 64 MB, or if the number of operations
        is unknown.

        call: a call whose type is a tensor type with known dimensions.
        args: the values of the arguments.
        """
        operations, made = _count_operations(call), _max_bytes(call, args)
        if operations is None or operations > self.operations or made > min(_MAX_BYTES, self.bytes):
            return False
        self.operations -= operations
        self.bytes -= made
        return True


def _count_operations(call: OpCall) -> int | None:
    """Return the number of operations of a call, or None if it is unknown.

    A call with only a few operations per element counts as 0.  The number is unknown for calls with padded windows,
    because the padding can have any size.
    """
    op, attributes = call.op, dict(call.attributes)
    if op.name in _UNCOUNTED or ("pads" in attributes and not op.moves):
        return None
    if not isinstance(op.lower, Contraction | CustomKernel) or op.lower.operations is None:
        return 0
    shapes = (arg.type.shape for arg in call.args if isinstance(arg.type, TensorType))
    counted: Any = op.lower.operations(*shapes, call.tensor_type.known_shape, **attributes)
    return counted


def _max_bytes(call: OpCall, args: Sequence[np.ndarray | tuple[int, ...]]) -> int:
    """Return an upper bound on the size of the result in bytes.

    A string in the result is at most as long as the longest strings of all arguments together.
    """
    count: Any = math.prod(call.tensor_type.known_shape)
    if call.element_type != STR:
        return count * call.known_element_type.size_bytes
    strings = [arg for arg in args if isinstance(arg, np.ndarray) and arg.dtype == object]
    longest = sum(max(map(len, array.reshape(-1)), default=0) for array in strings)
    return count * (_STRING_BYTES + longest)
