"""Kernels of target "numpy": packed functions `reference.<op>` that call the NumPy implementations of operators."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmError, RelvmMemoryError, near_matches
from relvm.runtime.binding import is_own
from relvm.runtime.tensor import Tensor
from relvm.tables import REFERENCE_PREFIX


def reference_kernel(name: str) -> Callable[..., None] | None:
    """Return the packed function `name`, such as `reference.add`, or None if there is no such operator.

    The packed function takes the attributes as JSON text, the inputs, and the output tensors to fill.  An example is
    the call `reference.add("{}", x, y, out)`.
    """
    import relvm.ops  # noqa: F401  (declares the operators)
    from relvm.ir.operator import operators

    operator = operators().get(name.removeprefix(REFERENCE_PREFIX))
    if operator is None:
        return None

    declared = {parameter.name for parameter in operator.attributes}

    def run(attributes: str, *args: Any) -> None:
        keywords = _attributes(attributes)
        for name in keywords:
            if name not in declared:  # NumPy's parameters, such as `where`, would leave memory unwritten
                raise RelvmArgumentError(f"{operator.name}: unknown attribute {name}{near_matches(name, declared)}")
        values = [_as_array(arg) for arg in args]
        count = _input_count(operator.parameters, len(values))
        for out in args[count:]:
            if not isinstance(out, Tensor) or not is_own(out):
                raise RelvmArgumentError(f"{operator.name}: expected an output tensor that the machine allocated")
        try:
            result = operator.numpy(*values[:count], **keywords)
        except MemoryError as error:
            raise RelvmMemoryError(f"{operator.name}: {error}") from None
        except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError) as error:
            if isinstance(error, RelvmError):
                raise
            shapes = ", ".join(str(np.shape(value)) for value in values[:count])
            raise RelvmArgumentError(
                f"{operator.name}: cannot compute the result for arguments of shapes {shapes}: {error}"
            ) from error
        results = result if isinstance(result, tuple) else (result,)
        for out, value in zip(values[count:], results, strict=True):
            np.copyto(out, value, casting="unsafe")

    return run


@functools.lru_cache(maxsize=4096)
def _attributes(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RelvmArgumentError(f"the attributes of a kernel are not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise RelvmArgumentError(f"the attributes of a kernel must be a JSON object, got {type(found).__name__}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def _input_count(parameters: tuple, count: int) -> int:
    """Return how many of the `count` tensors that are passed to an operator are inputs.  The others are outputs.

    parameters: the parameters of the operator that are tensors.  If one of them is variadic, the operator has exactly
    one output, so all tensors except the last are inputs.
    """
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return count - 1 if variadic else len(parameters)


def _as_array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value
