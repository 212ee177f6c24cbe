"""Import of PyTorch modules and exported programs in memory.  This needs PyTorch."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmTypeError, RelvmUnsupportedError, resources, shortened
from relvm.frontend.torch.importer import import_program, with_weights
from relvm.frontend.torch.limits import MAX_EXPANDED_BYTES
from relvm.frontend.torch.program import GraphNode, Program
from relvm.frontend.torch.read_program import program_of_json
from relvm.frontend.torch.registry import full_name, supported_operators
from relvm.frontend.weights import Weights
from relvm.ir.expr import Module

_PLACE = "model"


def from_torch(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    weights: Weights | str | os.PathLike[str] | None = None,
    decompose: bool = True,
) -> Module:
    """Import a PyTorch module, function or exported program.  This needs PyTorch.

    The parameters of the module become constants, whose memory is shared where it is contiguous and on the CPU.

    Parameters
    ----------
    model
        A torch.nn.Module or a function, which torch.export.export traces, or a torch.export.ExportedProgram.
    args, kwargs
        Example arguments, if `model` is not an exported program.
    dynamic_shapes
        The sizes that are not fixed, as for torch.export.export.
    weights
        As for `from_pt2`.
    decompose
        Whether to call ExportedProgram.run_decompositions, which decomposes operators that relvm does not have, and
        replaces updates in place by new tensors.  False leaves the program unchanged.

    Returns
    -------
    Module
        A module with the function `main`, as for `from_pt2`.

    Raises
    ------
    RelvmUnsupportedError
        PyTorch is not installed, or relvm does not support some operators.  The message lists up to 100 of them.
    RelvmTypeError
        `model` has another type.
    RelvmArgumentError
        `args`, `kwargs` or `dynamic_shapes` are given for an exported program.
    """
    export = import_torch("from_torch").export
    if isinstance(model, export.ExportedProgram):
        if args or kwargs or dynamic_shapes is not None:
            raise RelvmArgumentError("from_torch: args, kwargs and dynamic_shapes are part of the exported program")
        program = model
    else:
        module = _as_module(model)
        program = export.export(module, tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False)
    if decompose:
        with _derivatives_of_composite_operators():
            program = program.run_decompositions(_decompositions())
    with resources("from_torch"):
        return import_program(with_weights(program_of(program), weights))


def import_torch(what: str) -> Any:
    """Import PyTorch, and return its module.

    what: the function that needs PyTorch, for the message.

    Raises
    ------
    RelvmUnsupportedError
        PyTorch is not installed.
    """
    try:
        import torch
        import torch.export
    except ImportError as error:
        raise RelvmUnsupportedError(
            f"{what} needs PyTorch, which cannot be imported ({error}); install torch, or read a file that"
            " torch.export.save wrote with from_pt2"
        ) from None
    return torch


def _as_module(model: Any) -> Any:
    import torch

    if isinstance(model, torch.nn.Module):
        return model
    if not callable(model):
        raise RelvmTypeError(
            f"from_torch: model is {type(model).__name__}, expected a torch.nn.Module, a function or an ExportedProgram"
        )

    class Function(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return model(*args, **kwargs)

    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):
        return Function()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = inspect.Signature([own, *parameters])  # to which torch.export matches dynamic_shapes
    Function.forward.__signature__ = signature  # type: ignore[attr-defined]
    return Function()


def _decompositions() -> Any:
    """Return the decompositions of PyTorch without those of operators that relvm has."""
    import torch.export

    table = torch.export.default_decompositions()
    own = frozenset(supported_operators())
    for operator in list(table):
        if full_name(str(operator)) in own:
            del table[operator]
    return table


@cache
def _split_decompositions() -> tuple[Any, Any]:
    """Return the decompositions of composite operators, which PyTorch expands first, and those of the others."""
    from torch.export.exported_program import _split_decomp_table_to_cia_and_python_decomp

    composite, others = _split_decomp_table_to_cia_and_python_decomp(_decompositions().materialize())
    return composite, others


def decompositions() -> tuple[Any, Any]:
    """Return the decompositions for AOTAutograd.

    Returns
    -------
    tuple
        Two items: a context manager, under which PyTorch keeps the composite operators that relvm has, such as
        `linear`; and the decompositions of the other operators.
    """
    from torch.export.exported_program import _override_composite_implicit_decomp

    composite, others = _split_decompositions()

    @contextmanager
    def kept() -> Iterator[None]:
        with _derivatives_of_composite_operators(), _override_composite_implicit_decomp(composite):
            yield

    return kept(), others


@contextmanager
def _derivatives_of_composite_operators() -> Iterator[None]:
    """Let PyTorch decompose composite operators where it differentiates while it traces, as in torch.func.grad.

    A composite operator that PyTorch keeps has no derivative: without this context, its gradient would be 0.
    """
    import torch

    key = torch._C.DispatchKey.AutogradCPU
    composite, _ = _split_decompositions()
    added = [operator for operator in composite if key not in operator.py_kernels]
    for operator in added:
        operator.py_impl(key)(partial(_call_composite, operator, _composite_kernel(operator)))
    try:
        yield
    finally:
        for operator in added:
            del operator.py_kernels[key]
            operator._dispatch_cache.clear()


@cache
def _composite_kernel(operator: Any) -> Callable[..., Any]:
    """Return the function with which PyTorch decomposes a composite operator."""
    from torch._export.utils import _get_decomp_for_cia

    return _get_decomp_for_cia(operator)


def _call_composite(operator: Any, decomposed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a composite operator, and decompose it if PyTorch differentiates."""
    import torch
    from torch.autograd import forward_ad
    from torch.utils import _pytree

    if (
        torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or (
            torch.is_grad_enabled()
            and any(getattr(leaf, "requires_grad", False) for leaf in _pytree.arg_tree_leaves(*args, **kwargs))
        )
    ):
        return decomposed(*args, **kwargs)
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*args, **kwargs)


def program_of(program: Any) -> Program:
    """Return an exported program in the form that the reader of files returns.

    program: a torch.export.ExportedProgram.

    Raises
    ------
    RelvmUnsupportedError
        PyTorch cannot serialize the program.
    """
    from torch._export.serde.serialize import ExportedProgramSerializer, SerializeError, _to_json_bytes

    serializer = ExportedProgramSerializer()
    known = inspect.signature(serializer.serialize).parameters
    names = ("serialize_state_dict", "serialize_constants", "serialize_example_inputs")
    plain = _with_plain_outputs(program)
    try:
        serialized = serializer.serialize(plain, **{name: False for name in names if name in known})
    except (SerializeError, NotImplementedError, AssertionError) as error:
        raise RelvmUnsupportedError(f"{_PLACE}: {reason_of_serializer(error, program.graph_module)}") from error
    tensors: dict[str, np.ndarray] = {}
    refused: dict[str, str] = {}
    for name, tensor in {**program.state_dict, **program.constants}.items():
        try:
            tensors[name] = array_of(tensor)
        except RelvmUnsupportedError as error:
            refused[name] = f"{shortened(name)}: {error}"
    value = json.loads(_to_json_bytes(serialized.exported_program))
    return program_of_json(value, tensors, refused, _PLACE)


def reason_of_serializer(error: Exception, graph_module: Any) -> str:
    """Return the message about a graph module for which PyTorch's serializer raised an error."""
    reason = f"PyTorch cannot serialize the graph: {str(error.__cause__ or error).partition(chr(10))[0]}"
    failed = re.match(r"Failed serializing node (\S+) in graph", str(error))
    nodes = [node for node in graph_module.graph.nodes if failed and node.name == failed[1]]
    if not nodes:
        return reason
    target = str(nodes[0].target)
    line = GraphNode(target, nodes[0].name, (), (), nodes[0].meta.get("stack_trace") or "", "").source_line()
    where = ", ".join(filter(None, (shortened(target), line.removesuffix(":1"))))
    return f"{shortened(nodes[0].name)} ({where}): {reason}"


def _with_plain_outputs(program: Any) -> Any:
    """Return an exported program in which outputs of classes that PyTorch cannot serialize are tuples.

    An example is `torch.return_types.max`, the class of the result of `x.max(0)`.
    """
    from torch.utils import _pytree

    entries = []
    for entry in program.module_call_graph:
        signature = entry.signature
        if signature is not None:
            try:
                _pytree.treespec_dumps(signature.out_spec)
            except NotImplementedError:
                leaves: list[_pytree.TreeSpec] = [_pytree.LeafSpec()] * signature.out_spec.num_leaves
                spec = _pytree.TreeSpec(tuple, None, leaves)
                entry = replace(entry, signature=replace(signature, out_spec=spec))
        entries.append(entry)
    changed = copy(program)
    changed._module_call_graph = entries
    return changed


def array_of(tensor: Any) -> np.ndarray:
    """Return the elements of a tensor.

    Raises
    ------
    RelvmUnsupportedError
        The tensor is not dense, or has a dtype that relvm does not have.
    """
    import ml_dtypes
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    if not isinstance(tensor, torch.Tensor):
        raise RelvmUnsupportedError(f"objects of the class {type(tensor).__name__} are not supported")
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.dtype == torch.complex32:
        raise RelvmUnsupportedError(
            f"tensors of the type {tensor.dtype} and the layout {tensor.layout} are not supported"
        )
    size_bytes = tensor.numel() * tensor.element_size()
    if size_bytes > max(MAX_EXPANDED_BYTES, tensor.untyped_storage().nbytes()):
        raise RelvmUnsupportedError(f"a tensor with {size_bytes:,} bytes that expands a smaller one is not supported")
    with unset_fake_temporarily():  # while PyTorch traces
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        foreign = {
            torch.bfloat16: ml_dtypes.bfloat16,
            torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
            torch.float8_e5m2: ml_dtypes.float8_e5m2,
            torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
            torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
        }
        if plain.dtype in foreign:
            raw = plain.view(torch.int16 if plain.dtype == torch.bfloat16 else torch.uint8)
            array = raw.numpy().view(foreign[plain.dtype])
        else:
            array = plain.numpy()
    array = array.view()
    array.flags.writeable = False
    return array
