"""Python functions that scripts cannot call, or that have a counterpart in NumPy."""

from __future__ import annotations

import builtins
import math
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from relvm.frontend.script.array_functions import FUNCTIONS
from relvm.ir.operator import operators

# Replacements for calls of functions of Python.
_ADVICE = {
    "breakpoint": "debug the built program (docs/explore.md)",
    "callable": "remove it; types are known when the script is translated",
    "dict": "write one variable for each item",
    "format": "format the text outside the function",
    "getattr": "write the attribute, as in x.shape",
    "hasattr": "remove it; types are known when the script is translated",
    "isinstance": "remove it; types are known when the script is translated",
    "iter": "write for i in range(n)",
    "map": "write a list comprehension, or an operation on whole tensors",
    "filter": "write a list comprehension with if",
    "next": "write for i in range(n)",
    "print": "remove it, and return the value to look at it",
    "set": "write a tuple",
    "sorted": "sort the items outside the function",
    "str": "format the text outside the function",
    "type": "remove it; types are known when the script is translated",
}
_METHOD_ADVICE = {
    "append": "write a list comprehension, or items = (*items, x) outside of loops over range(...)",
    "extend": "write items = (*items, *others)",
}
# The functions of math whose names differ in NumPy.
_MATH_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "pow": "power",
}
# Replacements for attributes that tensors have in NumPy or PyTorch.
_ATTRIBUTES = {
    "abs": "write abs(x)",
    "append": "write np.concatenate((x, y))",
    "at": "write np.where(condition, value, x)",
    "clone": "write x, because tensors do not change",
    "contiguous": "write x; its memory is always contiguous",
    "cpu": "write x",
    "cuda": "write x",
    "detach": "write x",
    "device": "remove it; a program runs on the processor",
    "dim": "write x.ndim",
    "double": "write x.astype(np.float64)",
    "fill": "write np.full_like(x, value)",
    "float": "write x.astype(np.float32)",
    "half": "write x.astype(np.float16)",
    "int": "write x.astype(np.int32)",
    "item": "write float(x) or int(x)",
    "long": "write x.astype(np.int64)",
    "masked_fill": "write np.where(mask, value, x)",
    "mm": "write x @ y",
    "norm": "write np.linalg.norm(x)",
    "numel": "write x.size",
    "numpy": "write x",
    "permute": "write x.transpose(axes)",
    "sort": "write np.sort(x)",
    "t": "write x.T",
    "to": "write x.astype(dtype)",
    "tolist": "write x",
    "type": "write x.astype(dtype)",
    "unsqueeze": "write np.expand_dims(x, axis)",
    "view": "write x.reshape(shape)",
}
_INTEGER_RESULTS = ("ceil", "floor")  # of math


def math_function(callee: Any) -> str | None:
    """Return the name in NumPy of a function of the module math that scripts support, otherwise None."""
    if getattr(callee, "__module__", None) != "math" or not isinstance(callee, BuiltinFunctionType):
        return None
    name = _MATH_NAMES.get(callee.__name__, callee.__name__)
    return name if name in FUNCTIONS else None


def has_integer_result(callee: Any) -> bool:
    """Return whether a function of the module math returns an integer."""
    return callee in [getattr(math, name) for name in _INTEGER_RESULTS]


def is_pure_builtin(callee: Any) -> bool:
    """Return whether a script can call a Python function on values known during the translation."""
    pure = (abs, divmod, float, int, list, max, min, pow, round, sum, tuple)
    return any(callee is function for function in pure) or getattr(callee, "__module__", None) == "math"


def sequence_advice(name: str) -> str:
    """Return `; write ...` for a method that changes a list, or an empty string."""
    return f"; {_METHOD_ADVICE[name]}" if name in _METHOD_ADVICE else ""


def attribute_advice(name: str) -> str:
    """Return `; write ...` for an attribute that tensors have in another library, or an empty string."""
    if name in _ATTRIBUTES:
        return f"; {_ATTRIBUTES[name]}"
    if name in FUNCTIONS:
        return f"; write np.{name}(x)"
    return f"; write {name}(x)" if name in operators() else ""


def call_advice(callee: Any) -> str:
    """Return what to write instead of a call of the Python object `callee`, which scripts cannot call."""
    name = getattr(callee, "__name__", "")
    library = str(getattr(callee, "__module__", "") or "").partition(".")[0]
    if isinstance(callee, BuiltinFunctionType | MethodType) and name in _METHOD_ADVICE:
        return _METHOD_ADVICE[name]
    if getattr(builtins, name, None) is callee and name in _ADVICE:
        return _ADVICE[name]
    if isinstance(callee, FunctionType) and library not in ("torch", "jax", "tensorflow"):
        return f"decorate {name} with @script, and state the types of its parameters"
    if name in operators():
        return f"write {name}(...), an operator of relvm"
    if name in FUNCTIONS:
        return f"write np.{name}(...)"
    return "call it outside the function, and pass the result"
