"""The module `relvm.language`, whose stub describes the names of the language to type checkers and editors."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import relvm.ops  # noqa: F401  (declares the operators)
from relvm import language
from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.operator import Operator, operators

STUB = Path(language.__file__).with_suffix(".pyi")
HEAD = '''"""The names of the language, for scripts.

`pytest tests/frontend/test_language_names.py --update` writes this file from the declarations of the operators.
"""

from typing import Any

import numpy as np

{functions}
from relvm.runtime.tensor import Tensor as Tensor

_TensorLike = Tensor | np.ndarray | np.generic | float
'''


def test_the_stub_describes_the_names_of_the_language(update: bool) -> None:
    if update:
        STUB.write_text(stub())
        subprocess.run([sys.executable, "-m", "ruff", "format", STUB], check=True)
    described = ast.parse(STUB.read_text())
    assert ast.dump(described) == ast.dump(ast.parse(stub())), "see the docstring of language.pyi"
    functions = {node.name for node in described.body if isinstance(node, ast.FunctionDef)}
    assert {*functions, *SCRIPT_FUNCTIONS, "Tensor"} == set(dir(language)) == set(language.__all__)


def stub() -> str:
    """Return the stub: a function for each operator, with its arguments, its attributes and its first sentence."""
    imports = (f"from relvm.frontend.script.names import {name} as {name}" for name in sorted(SCRIPT_FUNCTIONS))
    lines = [HEAD.format(functions="\n".join(imports))]
    for name, operator in sorted(operators().items()):
        lines += definition(name, ", ".join(parameters(operator)), result_type(operator), summary(operator.doc))
    for name in sorted(ALL_DTYPES.keys() & set(dir(language))):
        lines += definition(name, "value: Any, /", "Any", f"Convert a number or a tensor to {name}.")
    return "\n".join(lines)


def definition(name: str, params: str, result: str, doc: str) -> list[str]:
    return [f"def {name}({params}) -> {result}:", f'    """{doc}"""', "", ""]


def parameters(operator: Operator) -> Iterator[str]:
    rule = inspect.signature(operator.type_rule).parameters
    for parameter in operator.parameters:
        annotation = "_TensorLike" if rule[parameter.name].annotation == "TensorType" else "Any"
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        yield f"{star}{parameter.name}: {annotation}"
    if operator.parameters and not star:
        yield "/"
    if operator.attributes and not (operator.parameters and star):
        yield "*"
    for parameter in operator.attributes:
        annotation = str(rule[parameter.name].annotation).replace("str | DType", "Any")
        default = "" if parameter.default is parameter.empty else f" = {shown(parameter.default)}"
        yield f"{parameter.name}: {annotation}{default}"


def shown(default: Any) -> str:
    return repr(default) if not isinstance(default, float) or isfinite(default) else "..."


def result_type(operator: Operator) -> str:
    return "Tensor" if inspect.signature(operator.type_rule).return_annotation == "TensorType" else "Any"


def summary(doc: str) -> str:
    """Return the first sentence of a docstring in one line."""
    return " ".join(doc.split("\n\n")[0].split()).split(".  ")[0].split(". ")[0].rstrip(".") + "."
