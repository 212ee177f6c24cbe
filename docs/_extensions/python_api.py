"""A directive that documents a module by its docstrings: `.. relvm-api:: relvm.vm`, within `{eval-rst}`.

The documented names are those in `__all__`, or all public names that the module defines if it has no `__all__`.  A name
that an earlier module of MODULES also has is documented only there.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

# The documented modules.  Operators (relvm.ops), which users can also call, have a separate page.
MODULES = (
    "relvm.vm",
    "relvm.model",
    "relvm.quantization",
    "relvm.onnxruntime",
    "relvm.jax",
    "relvm.torch",
    "relvm.bytecode.program",
    "relvm.frontend.script",
    "relvm.frontend.text",
    "relvm.frontend.onnx",
    "relvm.frontend.stablehlo",
    "relvm.frontend.jax",
    "relvm.frontend.torch",
    "relvm.frontend.weights",
    "relvm.ir",
    "relvm.explore",
    "relvm.distributed",
    "relvm.aot",
    "relvm.errors",
)

# Patterns of types that occur in signatures, but are not described in the reference.  Users only pass such values from
# one call to another, or never see them.
HANDED_ON = (
    r"relvm\.aot\.(c\.sources\.Sources|config\.CallKind|hosted\.library\.AotLibrary|lower\.ir\.LoweredModule|lower\.place_storage\.FunctionPlacement)",
    r"relvm\.frontend\.(text\.lexer\.Source|script\.(values\.(ScriptFunction|SourceFunction)|decorator\.[PR]))",
    r"relvm\.display\.Displayed",
    r"relvm\.explore\.draw\.graph\.Graph",
    r"relvm\.ir\.(builder\.OpenFunction|expr\.HasModule|kernel_def\.KernelDef|symbolic\.DimOp|node\.Node|visitor\.Any\w+)",
    r"relvm\.lir\.routine\.LirModule",
    r"relvm\.onnxruntime\.(options\.OrtEnum|values\.CDevice)",
    r"relvm\.compiler\.(find_compiler\.Compiler|target\.Target)",
    r"relvm\._binding\.\w+",
    r"relvm\.runtime\.(exec_builder\.Label|executable\.LoadPolicy|invoke\.Invoker|signature\.Signatures|time_evaluator\.TimeEvaluator)",
)


def public_names(name: str) -> list[str]:
    """Return the public names of one of MODULES."""
    module = importlib.import_module(name)
    stated = getattr(module, "__all__", None)
    return sorted(stated) if stated else [key for key in vars(module) if _is_own(module, key)]


def _is_own(module: ModuleType, name: str) -> bool:
    value = getattr(module, name)
    return (
        not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module.__name__
    )


def own_names(name: str) -> list[str]:
    """Return the public names of a module that no earlier module of MODULES has."""
    shown: list[object] = []
    for earlier in MODULES[: MODULES.index(name)]:
        shown += [
            getattr(importlib.import_module(earlier), key) for key in public_names(earlier)
        ]
    module = importlib.import_module(name)
    return [
        key
        for key in public_names(name)
        if not any(getattr(module, key) is value for value in shown)
    ]


class ApiDirective(Directive):
    """Directive that documents the public names of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in MODULES:
            raise self.error(f"no module {name} among those of python_api.MODULES")
        lines = [f".. py:module:: {name}", ""]
        for key in own_names(name):
            lines += [
                *_entry(getattr(importlib.import_module(name), key), f"{name}.{key}"),
                "",
            ]
        shared = [key for key in public_names(name) if key not in own_names(name)]
        if shared:
            lines += [
                f"Also there, and described above: {', '.join(f'``{key}``' for key in shared)}.",
                "",
            ]
        container = nodes.container()
        self.state.nested_parse(
            StringList(lines, source=f"relvm-api {name}"), self.content_offset, container
        )
        return container.children


def _entry(value: object, path: str) -> list[str]:
    if inspect.isclass(value):
        if issubclass(value, Exception):
            return [f".. autoexception:: {path}", "   :members:", "   :show-inheritance:"]
        bases = ["   :show-inheritance:"] if value.__bases__ != (object,) else []
        return [
            f".. autoclass:: {path}",
            "   :members:",
            "   :inherited-members: object,int,tuple,Enum",
            *bases,
        ]
    if inspect.isroutine(value):
        return [f".. autofunction:: {path}"]
    return [
        f".. py:data:: {path.rpartition('.')[2]}",
        "",
        *(f"   {line}" for line in (inspect.getdoc(value) or "").splitlines()),
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive.  Sphinx calls this function."""
    app.add_directive("relvm-api", ApiDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
