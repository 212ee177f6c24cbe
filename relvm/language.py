"""The names of the language, for scripts: operators, conversions such as `f32`, and functions such as `match_cast`.

A script, a function decorated with `@script`, may use these names without importing them.  Imports make them known to
type checkers, linters and editors.  In annotations, `Tensor` stands for a tensor of a script, and a string states its
type in the language:

>>> from typing import Annotated
>>> import numpy as np
>>> from relvm import script, vm
>>> from relvm.language import Tensor, exp
>>> Vector = Annotated[Tensor, "f32[n]"]
>>> @script
... def main(x: Vector) -> Vector:
...     return exp(x) + 1
>>> vm.VirtualMachine(vm.build(main, target="numpy"))["main"](np.zeros(2, np.float32)).tolist()
[2.0, 2.0]
"""

from __future__ import annotations

from typing import Any

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.operator import operators
from relvm.runtime.tensor import Tensor

_PYTHON_TYPES = ("bool", "str")  # which scripts use for these dtypes
_NAMES: dict[str, Any] = {
    "Tensor": Tensor,
    **SCRIPT_FUNCTIONS,
    **operators(),
    **{name: dtype for name, dtype in ALL_DTYPES.items() if name not in _PYTHON_TYPES},
}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return _NAMES[name]


def __dir__() -> list[str]:
    """Return the names of the language, for completion and `help`."""
    return __all__
