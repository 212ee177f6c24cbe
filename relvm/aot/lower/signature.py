"""The signature of an entry function: the C names of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator

from relvm.aot.lower.ir import LoweredFunction, Port, ScalarVar
from relvm.errors import RelvmArgumentError, RelvmTypeError, counted
from relvm.ir.dtypes import I64
from relvm.ir.expr import Function
from relvm.ir.symbolic import DimVar, as_var
from relvm.ir.types import PrimType, ShapeType, TensorType, TupleType, Type
from relvm.quoting import c_identifier

OUTPUT_NAMES = ("output_tensor_names", "output_names")  # attributes of a function that name its outputs


def entry_ports(function: Function, lowered: LoweredFunction) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return the inputs and the outputs of the entry function, with their C names.

    An input has the name of its parameter.  If the parameter is a tuple, a number is appended for each field.  A size
    has the name of its variable.  If an input has the same name, _size is appended until the name is unused.

    The attribute output_tensor_names (or output_names) of the function contains the names of the outputs.  If an output
    is a tuple, a number is appended for each field.  Without the attribute, the outputs are named output, or output0,
    output1, ...

    Raises
    ------
    RelvmArgumentError
        Two inputs or two outputs have the same name in C, or the number of names differs from the number of outputs.
    RelvmTypeError
        The attribute is not a tuple of strings.
    """
    leaves = [leaf for param in function.params for leaf in _named_leaves(param.name, param.type)]
    tensors, scalars = iter(lowered.inputs), iter(lowered.scalars)
    inputs: list[tuple[str, int | ScalarVar | DimVar]] = [
        (name, next(tensors) if isinstance(type_, TensorType) else next(scalars)) for name, type_ in leaves
    ]
    inputs += _named_sizes([var for var, _, _ in lowered.sizes], {c_identifier(name) for name, _ in inputs})
    results = [type_ for _, type_ in _named_leaves("", function.func_type.result)]
    tensors, scalars = iter(lowered.outputs), iter(lowered.results)
    outputs = [next(tensors) if isinstance(type_, TensorType) else next(scalars) for type_ in results]
    names = _output_names(function, len(outputs))
    return _ports(function.name, "inputs", inputs), _ports(
        function.name, "outputs", list(zip(names, outputs, strict=True))
    )


def _named_sizes(sizes: list[DimVar], input_names: set[str]) -> list[tuple[str, DimVar]]:
    """Return each size with a name.   input_names: the C names of the other inputs."""
    used_names = input_names | {c_identifier(var.name) for var in sizes}
    named = []
    for var in sizes:
        name = var.name
        if c_identifier(name) in input_names:
            while c_identifier(name) in used_names:
                name += "_size"
            used_names.add(c_identifier(name))
        named.append((name, var))
    return named


def _named_leaves(name: str, type_: Type) -> Iterator[tuple[str, TensorType | PrimType]]:
    """Yield the tensors and scalars in a type, each with a name.

    name: the name of a parameter, or "" for a result.  In a parameter, shapes are omitted, and so are scalars that only
    pass a dimension variable.  In a result, a shape counts as one scalar for each dimension.
    """
    match type_:
        case TensorType() | PrimType(value=None):
            yield name, type_
        case PrimType(value=value) if not name or (value is not None and as_var(value) is None):
            yield name, type_
        case ShapeType(rank=int() as rank) if not name:
            yield from (("", PrimType(I64)) for _ in range(rank))
        case TupleType(fields):
            for i, field in enumerate(fields):
                yield from _named_leaves(f"{name}_{i}" if name else "", field)


def _output_names(function: Function, count: int) -> list[str]:
    attributes = dict(function.attributes)
    attribute = next((key for key in OUTPUT_NAMES if key in attributes), None)
    if attribute is None:
        return ["output"] if count == 1 else [f"output{i}" for i in range(count)]
    names = attributes[attribute]
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise RelvmTypeError(f"{function.name}: {attribute}: expected a tuple of names, got {names!r}")
    if len(names) == count:
        return list(names)
    fields = function.result_type.fields if isinstance(function.result_type, TupleType) else ()
    if len(names) != len(fields):
        raise RelvmArgumentError(f"{function.name}: {attribute}: expected {counted(count, 'name')}, got {len(names)}")
    return [leaf for name, field in zip(names, fields, strict=True) for leaf in _field_names(name, field)]


def _field_names(name: str, type_: Type) -> list[str]:
    """Return the names of the outputs in a field of the result: `name`, or `name`_0, `name`_1, ... for several outputs.

    type_: the type of the field.
    """
    count = len(list(_named_leaves("", type_)))
    return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]


def _ports(function: str, what: str, named: list[tuple[str, int | ScalarVar | DimVar]]) -> tuple[Port, ...]:
    names_by_c_name: dict[str, str] = {}
    for name, _ in named:
        c_name = c_identifier(name)
        if c_name in names_by_c_name:
            raise RelvmArgumentError(
                f"{function}: {what} {names_by_c_name[c_name]!r} and {name!r} have the same C name {c_name}"
            )
        names_by_c_name[c_name] = name
    return tuple(Port(c_identifier(name), value) for name, value in named)
