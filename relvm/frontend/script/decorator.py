"""The decorators `@script` and `@kernel`, which read the source of a Python function (docs/language.md)."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import tokenize
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, TypeVar, get_origin, overload

from relvm.display import html_lines, short_text
from relvm.errors import RelvmArgumentError, RelvmError, RelvmNameError, RelvmSyntaxError, RelvmTypeError
from relvm.frontend.script.kernels import ScriptKernel
from relvm.frontend.script.statements import StatementTranslator
from relvm.frontend.script.syntax_names import syntax_name
from relvm.frontend.script.values import ScriptFunction, SourceFunction, error_at_node
from relvm.frontend.text.lexer import Source
from relvm.ir.builder import Builder, Params
from relvm.ir.expr import Function, Module
from relvm.ir.types import Type
from relvm.runtime.file_io import open_file

if TYPE_CHECKING:
    from relvm import Model

P = ParamSpec("P")
R = TypeVar("R")


class Script(ScriptFunction, Generic[P, R]):
    """A function decorated by @script.  Its source is a program of relvm, and never runs as Python.

    Use `script` to create one.
    """

    def __call__(self, /, *args: P.args, **keywords: P.kwargs) -> R:
        """Run the function on arrays.

        The first call translates and builds the function and all functions that it calls, as load_model does.
        Later calls use the same model, so they do not see later changes of the Python objects that the source uses.

        Parameters
        ----------
        *args, **keywords
            The arguments.  Parameters with defaults can be omitted.

        Returns
        -------
        Tensor, number or tuple
            The result.

        Raises
        ------
        RelvmArgumentError
            An argument is missing, unknown or given twice.
        RelvmError
            The errors of the translation, of the build and of the run.
        """
        try:
            bound = inspect.signature(self.python).bind(*args, **keywords)
        except TypeError as error:
            names = ", ".join(inspect.signature(self.python).parameters)
            raise RelvmArgumentError(f"{self.name}: {error}; expected ({names})") from None
        bound.apply_defaults()
        return self.model(*bound.arguments.values())

    @cached_property
    def model(self) -> Model:
        """The model that a call runs."""
        if self.name.startswith("_"):
            raise RelvmNameError(f"{self.name} is private, because its name begins with _; only scripts can call it")
        from relvm import load_model

        return load_model(self)

    @property
    def entry(self) -> str:
        """The name of the function that load_model runs."""
        return self.name

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return the translated program as text and as HTML, for Jupyter."""
        from relvm.ir.printer import print_module

        try:
            text = print_module(self)
        except RelvmError as error:
            text = str(error)
        return {"text/plain": f"{self!r}\n{short_text(text)}", "text/html": html_lines(text, repr(self))}

    @property
    def module(self) -> Module:
        """A module with this function and all functions that it calls, at stage TYPED."""
        return module_of(self)

    @property
    def function(self) -> Function:
        """The IR of this function, from `module`."""
        return self.module[self.name]


@overload
def script(target: type[Any]) -> Module: ...  # type: ignore[overload-overlap]  # a class is also callable
@overload
def script(target: Callable[P, R]) -> Script[P, R]: ...
def script(target: Any) -> Script | Module:
    """Declare a Python function, or all functions of a class, to be relvm functions.  `script` is used as a decorator,
    `@script`.

    The source of such a function is translated to the IR, so it may use only the supported subset of Python.

    Parameters
    ----------
    target
        A function with a type for each parameter, or a class of such functions without `self`.

    Returns
    -------
    Script | Module
        For a class, the module of its functions.  For a function, a Script, which other scripts can call.  `module_of`
        translates the Script and all functions that it calls to a module.  Since the body is translated only then, it
        may refer to functions that are defined later.

    Raises
    ------
    RelvmSyntaxError
        The source is not available, or not valid in the language.  The message has the file, the line and the column.
    RelvmNameError, RelvmTypeError, RelvmShapeError, RelvmArgumentError
        The source uses an unknown name, is not well typed, or passes an invalid argument.  The message has the position
        in the source.

    Examples
    --------
    >>> @script
    ... def double(x: "f32[n]") -> "f32[n]":
    ...     return x + x
    """
    if inspect.isclass(target):
        return _module_of_class(target, _annotated_types(sys._getframe(1)))
    if inspect.isfunction(target):
        return Script(*_read_source(target), {}, _annotated_types(sys._getframe(1)))
    raise RelvmTypeError(f"script: expected a function or a class, got {target!r}")


def kernel(target: Any) -> ScriptKernel:
    """Decorate a function whose source is a kernel: loops over the elements of tensors (docs/language.md, "Kernels").

    A parameter is an output of the kernel if the function assigns to elements of the parameter, otherwise an input.  In
    the parameter list, outputs must follow the inputs.  The kernel updates an input with an annotation such as "inout
    f32[n]" (docs/language.md, "Inout parameters").  A script calls the kernel with the inputs only, and the call
    returns the outputs.

    Parameters
    ----------
    target
        A function with a tensor type or a dtype for each parameter.

    Returns
    -------
    ScriptKernel
        The kernel.  Its attribute `definition` is the kernel's definition.  Its attribute `python` is the Python
        function, which runs on NumPy arrays.

    Raises
    ------
    RelvmTypeError
        `target` is not a function.
    RelvmSyntaxError
        The source is not available.  An error in the source is raised only when `definition` is read, or when a module
        that uses the kernel is built.  Its message contains the file, the line and the column.

    Examples
    --------
    >>> from relvm import grid, kernel, script
    >>> @kernel
    ... def scale(x: "f32[n, m]", s: "f32", out: "f32[n, m]"):
    ...     for i, j in grid(n, m):
    ...         out[i, j] = x[i, j] * s
    >>> @script
    ... def main(x: "f32[n, m]") -> "f32[n, m]":
    ...     return scale(x, 2.0)
    """
    if not inspect.isfunction(target):
        raise RelvmTypeError(f"kernel: expected a function, got {target!r}")
    return ScriptKernel(*_read_source(target), {}, _annotated_types(sys._getframe(1)))


def module_of(*functions: ScriptFunction) -> Module:
    """Return a module with the given functions and all functions that they call, at stage TYPED.

    Raises
    ------
    RelvmTypeError
        An argument is not a function decorated by `script`.
    RelvmNameError
        Two functions have the same name.
    """
    for function in functions:
        if not isinstance(function, ScriptFunction):
            raise RelvmTypeError(f"module_of: expected functions decorated with @script, got {function!r}")
    translator = _ModuleTranslator()
    try:
        for function in functions:
            translator.require(function)
        return translator.module()
    except RelvmError as error:
        if getattr(error, "lineno", None) is None:
            raise
        raise error.with_traceback(None) from None  # its message has the position in the source


def _annotated_types(frame: FrameType) -> dict[str, Any]:
    """Return the variables of a frame whose values are Annotated types, by name.

    A function does not keep variables that only its annotations use.
    """
    return {name: value for name, value in frame.f_locals.items() if get_origin(value) is Annotated}


def _module_of_class(cls: type, types: dict[str, Any]) -> Module:
    members = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
    functions: list[Script] = []
    for name, value in list(members.items()):
        if isinstance(value, staticmethod):
            value = value.__func__
        if inspect.isfunction(value):
            functions.append(Script(*_read_source(value), members, types))
            members[name] = functions[-1]
        elif isinstance(value, ScriptKernel):
            members[name] = replace(value, members=members, types={**types, **value.types})
    if not functions:
        raise RelvmTypeError(f"class {cls.__name__} has no functions")
    return module_of(*functions)


# Errors of inspect and ast for a file that changed after it was imported.
_UNREADABLE = (
    OSError,
    TypeError,
    ValueError,
    SyntaxError,
    IndexError,
    tokenize.TokenError,
    RecursionError,
    MemoryError,
)


def _read_source(python: Any) -> tuple[Any, ast.FunctionDef, Source]:
    """Read the source of a Python function.  Return the function, its syntax tree, and the source of its file.

    These are the first three fields of a SourceFunction.  The positions in the tree are positions in the file.
    """
    file = python.__code__.co_filename
    try:
        if file not in linecache.cache and os.path.exists(file):
            open_file(file).close()  # reading a pipe would block
        lines, first = inspect.getsourcelines(python)
        text = "".join(lines)
        if text[:1].isspace():
            text, first = f"if True:\n{text}", first - 1
        tree = ast.parse(text).body[0]
    except RelvmError:
        raise
    except _UNREADABLE as error:
        reason = f"{file}: the source of {python.__qualname__} is not available; define the function in a file"
        raise RelvmSyntaxError(f"{reason}: {error}" if str(error) else reason) from None
    ast.increment_lineno(tree, first - 1)
    if isinstance(tree, ast.If):
        tree = tree.body[0]
    source = Source("".join(linecache.getlines(file)), file)
    if not isinstance(tree, ast.FunctionDef):
        name = f", got {syntax_name(tree)}" if isinstance(tree, ast.AsyncFunctionDef) else ""
        raise error_at_node(source, RelvmSyntaxError, f"expected a function defined with def{name}", tree)
    if tree.name != python.__code__.co_name:
        reason = f"expected the function {python.__code__.co_name}; the file has changed since it was imported"
        raise error_at_node(source, RelvmSyntaxError, reason, tree)
    return python, tree, source


class _ModuleTranslator:
    """Translates functions, and all functions that they call."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.known: dict[str, SourceFunction] = {}
        self.open: set[str] = set()
        self.waiting: deque[tuple] = deque()  # argument tuples of `translate`

    def require(self, function: SourceFunction) -> str:
        """Add a function or a kernel to the module, and return its name in the module.

        Afterwards the builder knows the type of the function.  A function with an annotated result type is translated
        later.  Any other function is translated immediately, to infer the result type.
        """
        name = function.name
        if name in self.known:
            if self.known[name].python is not function.python:
                raise RelvmNameError(f"two functions are named {name}")
            if name in self.open and function.tree.returns is None:
                raise RelvmTypeError(
                    f'{name} is recursive and needs a result type annotation, as in def {name}(...) -> "f32[n]":'
                )
            return name
        self.known[name] = function
        if isinstance(function, ScriptKernel):
            self.builder.kernel(function.definition)
            return name
        assert isinstance(function, ScriptFunction)
        translator = StatementTranslator(self.builder, function, {}, self.require)
        params, result = translator.signature(function.tree)
        if result is None:
            self.translate(translator, params, result)
        else:
            self.builder.declare(name, params, result)
            self.waiting.append((translator, params, result))
        return name

    def translate(self, translator: StatementTranslator, params: Params, result: Type | None) -> None:
        function, tree = translator.function, translator.function.tree
        self.open.add(tree.name)
        try:
            private = tree.name.startswith("_")
            with self.builder.function(tree.name, params, result, private=private) as variables:
                named = zip((name for name, _ in params), variables, strict=True)
                self.builder.ret(translator.function_body(tree, named, result))
        except RecursionError:
            raise error_at_node(function.source, RelvmSyntaxError, f"{tree.name} is nested too deeply", tree) from None
        self.open.discard(tree.name)

    def module(self) -> Module:
        while self.waiting:
            self.translate(*self.waiting.popleft())
        module = self.builder.module()
        return module.with_functions(tuple(module[name] for name in self.known if name in module))
