"""`relvm info`: what a model contains."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relvm.bytecode.program import signature_entry
from relvm.cli.arguments import Parser, file_name
from relvm.cli.colors import Style
from relvm.cli.common_arguments import ANY_MODEL, add_inputs, add_json, add_model_options, add_trust_native
from relvm.cli.inputs import input_values, signature_of
from relvm.cli.models import model_path_and_dims
from relvm.cli.output import put, put_json
from relvm.cli.progress import Progress
from relvm.compiler.build_model import expect_to_build
from relvm.errors import RelvmError, RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.onnx_bytes import read_source
from relvm.frontend.onnx_info import OnnxValue, onnx_info
from relvm.quoting import terminal
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.tables import BUILTIN_PREFIX


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm info model.onnx"
    what = ANY_MODEL
    parser.add_argument("models", type=file_name, nargs="+", metavar="MODEL", help=what)
    add_model_options(parser)
    parser.add_argument("--function", default="main", help="function of --operations (default: main)")
    parser.add_argument(
        "--operations", action="store_true", help="also run the model and count its arithmetic operations"
    )
    add_inputs(parser)
    add_json(parser)
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled", "auto"), help="mode of --operations")
    add_trust_native(parser)


def run(options: argparse.Namespace) -> int:
    """Print the inputs, outputs, operators and parameters of models, and what relvm does not support."""
    found = []
    for model in options.models:
        found.append(_info_of(argparse.Namespace(**vars(options), model=model)))
        if options.json:
            continue
        if len(found) > 1:
            put()
        for name, value in found[-1].items():
            _put(name.replace("_", " "), value, "bad" if name == "unsupported" and value else None)
    if options.json:
        put_json(found[0] if len(found) == 1 else found)
    return 0


def _info_of(options: argparse.Namespace) -> dict[str, Any]:
    path, dims = model_path_and_dims(options)
    with Progress("reading", path.name):
        found = _contents_of(path, dims, options)
    if options.operations:
        found["operations"] = _count_operations(options)
    return found


def _contents_of(path: Path, dims: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    if path.suffix == ".onnx":
        return _onnx_contents(path, dims, options.weights)
    if path.suffix in EXECUTABLE_SUFFIXES:
        sizes = None if options.random else dims or None
        expect_to_build(options.model, {"--weights": options.weights, "--dim": sizes})
        return _executable_contents(path)
    return _program_contents(path, dims, options.weights, options.function)


def _put(name: str, value: Any, style: Style | None = None) -> None:
    """Print a name and its value.  A dict, or a list of several items, takes a line for each item.

    style: the style of all lines.
    """
    match value:
        case dict() if value:
            width = max(len(terminal(key)) for key in value)
            lines = [f"{name}:", *(f"  {terminal(key).ljust(width)}  {_text(each)}" for key, each in value.items())]
        case list() if len(value) > 1:
            lines = [f"{name}:", *(f"  {_text(each)}" for each in value)]
        case dict() | list():
            lines = [f"{name}: {_text(value[0]) if value else 'none'}"]
        case _:
            lines = [f"{name}: {_text(value)}"]
    for line in lines:
        put(line, styles={0: style} if style else {})


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else terminal(str(value))


def _onnx_contents(path: Path, dims: dict[str, Any], weights: str | None) -> dict[str, Any]:
    source = read_source(path)
    declared = onnx_info(source.content, str(path))
    from relvm.frontend.onnx import from_onnx
    from relvm.frontend.onnx.dimension_names import printed_names
    from relvm.frontend.onnx.model_file import read_model_file

    proto = read_model_file(source).proto
    nodes, tensors = _nodes_and_tensors(proto)
    operators = Counter(f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in nodes)
    sizes = printed_names(proto.graph)
    return {
        "file": str(path),
        "format": f"ONNX, IR version {proto.ir_version}",
        "size_bytes": len(source.content),
        "producer": f"{declared.producer_name} {declared.producer_version}".strip() or "unknown",
        "opsets": {each.domain or "ai.onnx": each.version for each in proto.opset_import},
        "inputs": _types_by_name(declared.inputs, sizes),
        "outputs": _types_by_name(declared.outputs, sizes),
        "symbolic_sizes": list(sizes.values()),
        "parameters": sum(math.prod(tensor.dims) for tensor in tensors),
        "nodes": operators.total(),
        "operators": dict(operators.most_common()),
        "unsupported": _import_problems(lambda: from_onnx(source, dims=dims or None, weights=weights)),
    }


def _nodes_and_tensors(proto: Any) -> tuple[list[Any], list[Any]]:
    """Return the nodes and the constant tensors of the graph, and of its subgraphs and functions."""
    from relvm.frontend.onnx.model_checker import node_graphs

    nodes = [node for function in proto.functions for node in function.node]
    graphs = [proto.graph, *(graph for node in nodes for graph in node_graphs(node))]
    tensors: list[Any] = []
    for graph in graphs:  # the loop body appends to the list
        nodes += graph.node
        tensors += graph.initializer
        graphs += [inner for node in graph.node for inner in node_graphs(node)]
    tensors += [
        each.t for node in nodes if node.op_type == "Constant" for each in node.attribute if each.name == "value"
    ]
    return nodes, tensors


def _types_by_name(values: tuple[OnnxValue, ...], sizes: Mapping[str, str]) -> dict[str, str]:
    """Return the type of each value as text.   sizes: the printed name of each symbolic size of the inputs."""
    from relvm.frontend.onnx.dimension_names import size_key

    types = {}
    for value in values:
        shown = []
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, int) and size >= 0:
                shown.append(str(size))
            else:
                key = size_key(size if isinstance(size, str) else "", value.name, axis)
                shown.append(sizes.get(key, key if key == size else "?"))
        types[value.name] = value.type + ("" if value.shape is None else f"[{', '.join(shown)}]")
    return types


def _import_problems(import_model: Any) -> list[str]:
    """Return the reasons why a model cannot be imported, if any.  import_model: a function that imports the model."""
    try:
        import_model()
    except RelvmUnsupportedError as error:
        first, *rest = str(error).split("\n  ")
        return rest or [first]
    except RelvmError as error:
        return [f"{type(error).__name__}: {error}"]
    return []


def _program_contents(path: Path, dims: dict[str, Any], weights: str | None, function: str) -> dict[str, Any]:
    from relvm.frontend.read_model import read_model
    from relvm.frontend.stablehlo_file import is_stablehlo
    from relvm.frontend.torch_file import is_exported_program
    from relvm.ir.expr import OpCall
    from relvm.ir.node import walk
    from relvm.ir.types import format_type

    module = read_model(path, dims, weights, function)
    kind = "a program in text form"
    if is_exported_program(path):
        kind = "an exported program of PyTorch"
    elif is_stablehlo(path):
        kind = "a StableHLO program"
    calls = Counter(each.op.name for f in module.functions for each in walk(f) if isinstance(each, OpCall))
    return {
        "file": str(path),
        "format": kind,
        "size_bytes": path.stat().st_size,
        "functions": {f.name: format_type(f.func_type) for f in module.functions if not f.private},
        "operators": dict(calls.most_common()),
    }


def _executable_contents(path: Path) -> dict[str, Any]:
    from relvm.vm import Executable

    executable = Executable.check(path, check_data=False)
    stats, functions = executable.stats(), {}
    for name in executable.signature:
        declared = signature_entry(executable.signature, name)
        if declared is None:
            raise RelvmFormatError(f"{path}: the signature of function {name} is missing")
        parameters = ", ".join(f"{each['name']}: {each['type']}" for each in declared["params"])
        functions[name] = f"({parameters}) -> {declared['result']}"
    native = executable.program.native
    return {
        "file": str(path),
        "format": "an executable",
        "size_bytes": stats.size_bytes,
        "functions": functions,
        "parameter_bytes": stats.tensor_bytes,
        "function_table": {kind: len(names) for kind, names in stats.functions.items()},
        "native_code": f"{native.triple} {native.cpu}".rstrip() if native else "none",
        "portable_bytes": stats.portable_bytes,
        "calls": {name: count for name, count in stats.calls.items() if not name.startswith(BUILTIN_PREFIX)},
    }


def _count_operations(options: argparse.Namespace) -> int:
    """Return the number of arithmetic operations of a run on random inputs."""
    from relvm.cli.models import load_or_build
    from relvm.compiler.adapt import adapt
    from relvm.vm import VirtualMachine

    executable = adapt(load_or_build(options, exec_mode="auto"))
    machine = VirtualMachine(executable)
    function = machine[options.function]
    values = input_values(options, signature_of(executable, options.function), lambda values: function(*values))
    return sum(row.operations or 0 for row in machine.profile(options.function, *values).rows)
