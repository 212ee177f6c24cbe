"""The text forms of the lowered IR, for `relvm export --show` and golden tests."""

from __future__ import annotations

from typing import Any

from relvm.aot.lower.ir import (
    Branch,
    CallExtern,
    CallFunction,
    Check,
    CheckRange,
    CheckSizes,
    Compute,
    Continue,
    Copy,
    DimScalar,
    LoweredFunction,
    LoweredModule,
    MemoryKind,
    ReadItem,
    RunKernel,
    Scalar,
    ScalarConstant,
    SetScalar,
    SetSize,
    Statement,
    TensorArgument,
    TensorStorage,
    WriteItem,
)
from relvm.ir.symbolic import format_dim
from relvm.quoting import terminal, text_string


def format_lowered(module: LoweredModule) -> str:
    """Return a module as text: all functions, callees first, then the names of the inputs and outputs of the entry."""
    ports = [f"{terminal(port.name)}={_port(port.value)}" for port in (*module.inputs, *module.outputs)]
    texts = [format_function(function, module.calls.value) for function in module.functions]
    return "\n\n".join([*texts, f"entry {terminal(module.functions[-1].name)}: {', '.join(ports)}"]) + "\n"


def format_function(function: LoweredFunction, call: str) -> str:
    """Return the storages and statements of a function as text.  call: the keyword for kernel calls."""
    storages, sizes = function.storages, function.sizes
    params = [f"s{number}: {_type(storages[number])}" for number in function.inputs]
    params += [f"{terminal(var.name)} in [{low}, {'...' if high is None else high}]" for var, low, high in sizes]
    params += [f"{terminal(var.name)}: {var.dtype}" for var in function.scalars]
    results = [f"s{number}: {_type(storages[number])}" for number in function.outputs]
    results += [f"{terminal(var.name)}: {var.dtype}" for var in function.results]
    lines = [f"{terminal(function.name)}({', '.join(params)}) -> ({', '.join(results)}):"]
    for number, storage in enumerate(storages):
        if storage.kind in (MemoryKind.WORKSPACE, MemoryKind.CONSTANT):
            size = function.size_bytes[number]
            lines.append(
                f"  s{number} = {storage.kind.value} {_type(storage)}  # {terminal(storage.name)}, {size} bytes"
            )
    for number, section in enumerate(function.sections):
        if len(function.sections) > 1:
            lines.append(f"  section {number}:")
        _append(lines, section, "    " if len(function.sections) > 1 else "  ", call)
    return "\n".join(lines)


def format_storage(function: LoweredFunction) -> str:
    """Return a text with a line for each storage, then a line for each variable, then a line for the result."""
    lines = []
    for number, storage in enumerate(function.storages):
        kind, name, device = storage.kind.value, terminal(storage.name), storage.device
        lines.append(f"s{number}: {kind} {name}: {_type(storage)} on device {device}")
    named = [(terminal(var.name), ids) for var, ids in function.variables.items()]
    for name, ids in (*named, ("result", function.outputs)):
        lines.append(f"{name} -> {', '.join(f's{number}' for number in ids) or 'no storage'}")
    return "\n".join(lines) + "\n"


def _append(lines: list[str], body: tuple[Statement, ...], indent: str, call: str) -> None:
    if not body:
        lines.append(f"{indent}pass")
    for statement in body:
        match statement:
            case RunKernel(kernel, storages, sizes):
                parts = [text_string(kernel), *(f"s{number}" for number in storages), *map(format_dim, sizes)]
                lines.append(f"{indent}{call}({', '.join(parts)})")
            case Copy(source, target, size):
                lines.append(f"{indent}s{target} = copy(s{source}, {format_dim(size)})")
            case CallExtern(name, args, result):
                parts = [text_string(name), *map(_argument, args)]
                into = "" if result is None else f"{_argument(result)} = "
                lines.append(f"{indent}{into}call_extern({', '.join(parts)})")
            case ReadItem(target, storage, position):
                lines.append(f"{indent}{terminal(target.name)} = s{storage}[{position}]")
            case WriteItem(storage, position, value):
                lines.append(f"{indent}s{storage}[{position}] = {_scalar(value)}")
            case Compute(target, row, args):
                lines.append(f"{indent}{terminal(target.name)} = {row}({', '.join(map(_scalar, args))})")
            case SetScalar(target, value):
                lines.append(f"{indent}{terminal(target.name)} = {_scalar(value)}")
            case SetSize(target, value):
                lines.append(f"{indent}{terminal(target.name)} = size({_scalar(value)})")
            case CheckSizes(left, right):
                lines.append(f"{indent}check {format_dim(left)} == {format_dim(right)}")
            case CheckRange(value, low, high):
                lines.append(f"{indent}check {_scalar(value)} in [{low}, {high}]")
            case Check(cond, status, message):
                lines.append(f"{indent}check {_scalar(cond)} else {status} {text_string(message)}")
            case Branch(cond, then, orelse):
                lines.append(f"{indent}if {_scalar(cond)}:")
                _append(lines, then, indent + "  ", call)
                lines.append(f"{indent}else:")
                _append(lines, orelse, indent + "  ", call)
            case CallFunction(function, storages, sizes, scalars, results):
                parts = [*(f"s{number}" for number in storages), *map(format_dim, sizes), *map(_scalar, scalars)]
                into = "".join(f"{terminal(var.name)}, " for var in results)[:-2]
                lines.append(f"{indent}{into + ' = ' if into else ''}{terminal(function)}({', '.join(parts)})")
            case Continue(section, moves, sizes, scalars):
                parts = [
                    f"s{m.param} = s{m.source}" + ("" if m.copy_to is None else f" in s{m.copy_to}") for m in moves
                ]
                parts += [f"{terminal(var.name)} = {format_dim(dim)}" for var, dim in sizes]
                parts += [f"{terminal(var.name)} = {_scalar(value)}" for var, value in scalars]
                lines.append(f"{indent}go to section {section}{' with ' if parts else ''}{', '.join(parts)}")


def _type(storage: TensorStorage) -> str:
    return f"{storage.dtype}[{', '.join(map(format_dim, storage.shape))}]"


def _argument(argument: TensorArgument | Scalar) -> str:
    return f"s{argument.storage}" if isinstance(argument, TensorArgument) else _scalar(argument)


def _scalar(scalar: Scalar) -> str:
    match scalar:
        case ScalarConstant(value):
            return str(value).lower() if isinstance(value, bool) else repr(value)
        case DimScalar(dim):
            return f"({format_dim(dim)})"
    return terminal(scalar.name)


def _port(value: Any) -> str:
    return f"s{value}" if isinstance(value, int) else terminal(value.name)
