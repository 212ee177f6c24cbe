"""Public functions called with arguments of wrong types raise only errors of relvm."""

from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relvm
from relvm import aot, distributed, explore, vm
from relvm.errors import RelvmError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module

WRONG = [
    None, 3, -1, 2.5, "x", "nul\0tail", "\ud800", b"x", [], {}, object(), np.zeros(2), 2**70, (1, 2), lambda x: x, True,
]  # fmt: skip
PACKAGES = {"relvm": relvm, "vm": vm, "aot": aot, "explore": explore, "distributed": distributed}
# Not tested: Shape is a tuple, so Python raises its errors.  Users do not construct the other classes.
BY_THEMSELVES = {"vm.Shape", "vm.Executable", "vm.Executor", "vm.MachineDebugger"}


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each public function and class once, with its name."""
    seen: set[int] = set()
    for package, module in PACKAGES.items():
        for name in getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]:
            found = getattr(module, name)
            is_error = inspect.isclass(found) and issubclass(found, BaseException)
            if callable(found) and not is_error and id(found) not in seen and f"{package}.{name}" not in BY_THEMSELVES:
                seen.add(id(found))
                yield f"{package}.{name}", found
    yield "parse_module", parse_module
    yield "from_onnx", from_onnx


CALLABLES = dict(callables())


def arguments(parameters: list[inspect.Parameter], wrong: Any) -> Iterator[dict[str, Any]]:
    """Yield keyword arguments: `wrong` for one parameter after another, and for all parameters without a default."""
    for chosen in range(max(1, len(parameters))):
        yield {p.name: wrong for i, p in enumerate(parameters) if i == chosen or p.default is p.empty}


@pytest.mark.parametrize("name", CALLABLES)
def test_wrong_arguments_are_told_by_errors_of_relvm(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function = CALLABLES[name]
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        pytest.skip("it has no signature")
    parameters = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for wrong in WRONG:
        for named in arguments(parameters, wrong):
            by_position = [named.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in named]
            with (
                contextlib.suppress(RelvmError, OSError),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                function(*by_position, **named)
