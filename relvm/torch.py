"""`relvm.torch.backend`: the backend of torch.compile.

PyTorch finds the backend by its name: `torch.compile(model, backend="relvm")`.  Importing this module does not import
PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import Any

from relvm.compiler.build import EXEC_MODES, build
from relvm.data_classes import record
from relvm.errors import (
    RelvmArgumentError,
    RelvmUnsupportedError,
    expect_choice,
    expect_type,
    known_names,
    resources,
)
from relvm.frontend.torch.graph_module import expand_flex_attention, program_of_graph
from relvm.frontend.torch.graph_outputs import plan_outputs
from relvm.frontend.torch.importer import import_program
from relvm.frontend.torch.traced import array_of, decompositions, import_torch
from relvm.runtime.executable import Executable
from relvm.runtime.virtual_machine import VirtualMachine

__all__ = ["backend"]

_numbers = count()


@record
class _Settings:
    """The options of the backend."""

    exec_mode: str = "auto"
    target: str = "c"
    num_threads: int | None = None
    freeze: bool = False
    fallback: bool = False


def backend(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph that TorchDynamo captured.  torch.compile calls this function.

    Use it as `torch.compile(model, backend="relvm", options={...})`, under `torch.no_grad()` or
    `torch.inference_mode()`.  The graph goes through AOTAutograd, and then through the importer of `.pt2` files.
    TorchDynamo guards the graph: it compiles another one for other dtypes, ranks, sizes that are not dynamic, and
    values of Python objects.

    Parameters
    ----------
    graph_module, example_inputs
        The graph and its inputs, as TorchDynamo passes them to backends.
    options
        The options of the backend, by name.

        - `exec_mode` and `target`: as for `relvm.vm.build`; by default "auto" and "c".
        - `num_threads`: as for `relvm.vm.VirtualMachine`; by default torch.get_num_threads().
        - `freeze`: whether parameters and buffers that the graph only reads are constants, so that they are packed for
          kernels once.  By default, they are inputs of the program.  If PyTorch has changed one in place or replaced
          its memory, the next call builds the program again.  Changes that PyTorch does not count, such as those of
          `parameter.data` and of NumPy arrays that share the memory, have no effect.
        - `fallback`: whether PyTorch runs the graphs that relvm does not support, and those whose results require
          gradients.  A warning states the reason.  By default, they are an error.
    mode
        The argument `mode` of torch.compile, which this backend does not have.

    Returns
    -------
    Callable
        A function that runs the graph.  Tensors are passed and returned without a copy, if they are contiguous.

    Raises
    ------
    RelvmUnsupportedError
        relvm does not support some operators, which the message lists with the lines of the source, or the results
        require gradients, which relvm does not compute.  torch.compile raises its own BackendCompilerFailed, whose
        cause is this error.
    RelvmArgumentError
        An option is unknown, or has a value that it does not accept.

    Examples
    --------
    >>> compiled = torch.compile(model, backend="relvm")                             # doctest: +SKIP
    >>> with torch.no_grad():                                                        # doctest: +SKIP
    ...     y = compiled(x)
    """
    import_torch("relvm.torch.backend")
    settings = _settings(options, mode)
    place = f"graph {next(_numbers)}"
    try:
        return _compile(graph_module, list(example_inputs), settings, place)
    except RelvmUnsupportedError as error:
        if not settings.fallback:
            raise
        warnings.warn(f"PyTorch runs a graph, which relvm does not support: {error}", stacklevel=2)
        return graph_module.forward


def _settings(options: Mapping[str, Any] | None, mode: str | None) -> _Settings:
    if mode is not None:
        raise RelvmArgumentError(f"torch.compile: mode: the backend relvm has no modes, got {mode!r}; use options")
    found = dict(options or {})
    known = _Settings.__annotations__
    for name in found:
        if name not in known:
            raise RelvmArgumentError(f"torch.compile: options: no option {name}{known_names(str(name), known)}")
    settings = _Settings(**found)
    expect_choice("torch.compile: options: exec_mode", settings.exec_mode, EXEC_MODES)
    for name in ("freeze", "fallback"):
        expect_type(f"torch.compile: options: {name}", getattr(settings, name), bool, "True or False")
    return settings


def _compile(graph_module: Any, examples: list[Any], settings: _Settings, place: str) -> Callable[..., Any]:
    """Compile a graph with AOTAutograd.  The errors are those of `backend`."""
    import torch
    from torch._dynamo.backends.common import aot_autograd

    programs: list[_Program] = []

    def compile_inference(functional: Any, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        metadata = torch._guards.TracingContext.get().fw_metadata
        programs.append(_Program(functional, examples, metadata, settings, place))
        return programs[-1].boxed()

    def refuse(functional: Any, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        raise RelvmUnsupportedError(
            f"{place}: the results require gradients, which relvm does not compute; call the model under"
            ' torch.no_grad() or torch.inference_mode(), or pass options={"fallback": True} to torch.compile, so that'
            " PyTorch runs such graphs"
        )

    needs_gradients = torch.is_grad_enabled() and any(getattr(each, "requires_grad", False) for each in examples)
    expand_flex_attention(graph_module)
    composite, table = decompositions()
    with nullcontext() if needs_gradients else composite:
        compiled = aot_autograd(
            fw_compiler=refuse, bw_compiler=refuse, inference_compiler=compile_inference, decompositions=table
        )(graph_module, examples)
    if len(programs) == 1 and programs[0].is_whole:  # the code of AOTAutograd around the program would do nothing
        return programs[0].run
    return compiled


class _Program:
    """The program of one graph.

    functional: the graph without updates in place.
    examples: the inputs of the graph that TorchDynamo captured.
    metadata: AOTAutograd's description of the inputs and outputs.
    """

    def __init__(self, functional: Any, examples: list[Any], metadata: Any, settings: _Settings, place: str) -> None:
        import torch

        placeholders = [node for node in functional.graph.nodes if node.op == "placeholder"]
        values = [node.meta.get("val") for node in placeholders]
        is_same = len(values) == len(examples)  # AOTAutograd passes an input that is given twice only once
        self.is_whole = is_same and _changes_nothing(metadata)
        self._settings = settings
        self._threads = torch.get_num_threads() if settings.num_threads is None else settings.num_threads
        frozen: dict[int, Any] = {}
        if settings.freeze and is_same:
            for i in metadata.static_input_indices:
                if not metadata.input_info[i].mutates_data and not examples[i].is_inference():
                    frozen[i] = examples[i]
        self._plan = plan_outputs(functional)
        self._is_plain = self._plan.is_plain()
        self._complex = _complex_results(functional)
        self._names = {i: placeholders[i].name for i in frozen}
        self._sizes = _sizes_by_symbol(values)
        self._program = program_of_graph(functional, place, {self._names[i]: array_of(x) for i, x in frozen.items()})
        self._arguments = [
            i for i, value in enumerate(values) if i not in frozen and isinstance(value, torch.Tensor | torch.SymInt)
        ]
        self._all = len(self._arguments) == len(values)
        self._adjusted = [
            i for i in self._arguments if isinstance(values[i], torch.Tensor) and not _is_passed_as_it_is(values[i])
        ]
        self._single = len(self._plan.orders) == 1
        self._state = self._built(frozen)

    def _built(self, frozen: dict[int, Any]) -> tuple[Any, Executable, list[Any]]:
        """Build the program.

        Return the position, tensor, version and address of each input that is a constant, the executable, and the
        functions of idle machines.

        frozen: the inputs that are constants, by position.
        """
        tensors = dict(self._program.tensors)
        tensors.update((self._names[i], array_of(tensor)) for i, tensor in frozen.items())
        with resources("torch.compile"):
            module = import_program(replace(self._program, tensors=tensors), known_size=self._known_size)
            executable = build(module, self._settings.exec_mode, self._settings.target)
        known = [(i, x, x._version, x.data_ptr()) for i, x in frozen.items()]
        return known, executable, [self._function(executable)]

    def _known_size(self, symbol: str) -> int | None:
        """Return the value of a symbol, or None.  TorchDynamo then compiles another graph for other values."""
        size = self._sizes.get(symbol)
        return None if size is None else int(size)

    def _function(self, executable: Executable) -> Callable[..., Any]:
        """Return the function `main` of a new machine, which takes and returns tensors of PyTorch."""
        import torch

        machine = VirtualMachine(executable, num_threads=self._threads)
        machine.set_array_type(torch.Tensor)
        return machine["main"]

    def run(self, *args: Any) -> Any:
        """Run the graph.  Any number of threads can call this method at the same time."""
        frozen, executable, free = self._state
        for i, tensor, version, address in frozen:
            given = args[i]
            if given is not tensor or given._version != version or given.data_ptr() != address:
                self._state = _, executable, free = self._built({j: args[j] for j, *_ in frozen})
                break
        passed: Any = args
        if not self._all or self._adjusted:
            passed = list(args)
            for i in self._adjusted:
                passed[i] = _real_elements(args[i].resolve_conj().resolve_neg().contiguous())
            if not self._all:
                passed = [passed[i] for i in self._arguments]
        try:
            function = free.pop()
        except IndexError:
            function = self._function(executable)
        try:
            result = function(*passed)
        finally:
            free.append(function)
        if self._single:
            result = (result,)
        if self._complex:
            result = [_complex_elements(x) if i in self._complex else x for i, x in enumerate(result)]
        return result if self._is_plain else self._plan.apply(args, result)

    def boxed(self) -> Callable[[list[Any]], Any]:
        """Return `run` with the calling convention of AOTAutograd: it takes a list, and empties it."""

        def boxed(args: list[Any]) -> Any:
            given = tuple(args)
            args.clear()
            return self.run(*given)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed


def _sizes_by_symbol(values: Sequence[Any]) -> dict[str, Any]:
    """Return the sizes that are single symbols, by the names of the symbols.

    values: the inputs of a graph.
    """
    found = (size for value in values for size in (value, *getattr(value, "shape", ())))
    nodes = ((size, getattr(size, "node", None)) for size in found)
    return {str(node.expr): size for size, node in nodes if node is not None and node.expr.is_Symbol}


def _is_passed_as_it_is(example: Any) -> bool:
    """Return whether tensors like `example` are dense, and their elements are those in memory."""
    return example.is_contiguous() and not example.is_neg() and not example.is_complex()


def _real_elements(tensor: Any) -> Any:
    """Return a tensor as it is passed to a program: the parts of complex numbers are in an additional last axis."""
    import torch

    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _complex_elements(tensor: Any) -> Any:
    """Return the complex tensor whose parts are in the last axis of a tensor."""
    import torch

    return torch.view_as_complex(tensor)


def _complex_results(functional: Any) -> frozenset[int]:
    """Return the positions of the complex results of a graph."""
    (end,) = (node for node in functional.graph.nodes if node.op == "output")
    results = end.args[0] if isinstance(end.args[0], tuple | list) else (end.args[0],)
    values = [node.meta.get("val") if hasattr(node, "meta") else None for node in results]
    return frozenset(i for i, value in enumerate(values) if getattr(value, "is_complex", bool)())


def _changes_nothing(metadata: Any) -> bool:
    """Return whether a graph has only tensors as inputs and new tensors as outputs, and changes nothing.

    metadata: AOTAutograd's description of the graph.
    """
    return (
        not any(
            each.mutates_data or each.mutates_metadata or each.mutates_storage_metadata for each in metadata.input_info
        )
        and all(each.output_type.name == "non_alias" for each in metadata.output_info)
        and metadata.num_intermediate_bases == 0
        and metadata.grad_enabled_mutation is None
        and not metadata.tokens
        and all(type(each).__name__ == "PlainTensorMeta" for each in metadata.subclass_inp_meta)
        and all(type(each).__name__ == "PlainTensorMeta" for each in metadata.subclass_fw_graph_out_meta)
    )
