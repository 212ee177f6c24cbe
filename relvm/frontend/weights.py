"""Weights in .safetensors files, which become constants of a model.

Constants have no names in the IR.  A weight therefore replaces a parameter of a function, or an initializer of an ONNX
model (relvm.frontend.onnx.from_onnx), that has the same name.  This module reads the format itself.  The package
safetensors would copy the elements, and its NumPy interface does not support 8-bit floats.
Source: the format description of safetensors 0.8.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from relvm.errors import (
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_path,
    expect_type,
    known_names,
    shortened,
)
from relvm.ir.bind_dims import match_dims
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import Constant, Expr, Function, Module, Var, constant
from relvm.ir.symbolic import AnyDim, DimVar
from relvm.ir.types import TensorType, mismatch_reason, substitute_dims
from relvm.ir.visitor import fresh_copy, function_references
from relvm.numpy_dtypes import plain_array
from relvm.runtime.file_io import read_buffer

__all__ = ["bind_weights", "read_weights"]

_DTYPES = {
    **{"BOOL": "bool", "I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "F16": "f16", "F32": "f32", "F64": "f64"},
    **{"U8": "u8", "U16": "u16", "U32": "u32", "U64": "u64", "BF16": "bf16", "F8_E4M3": "f8e4m3fn"},
    **{"F8_E4M3FNUZ": "f8e4m3fnuz", "F8_E5M2": "f8e5m2", "F8_E5M2FNUZ": "f8e5m2fnuz", "F8_E8M0": "f8e8m0fnu"},
}
_LONGEST_HEADER = 100_000_000  # bytes, the limit of the format
_MOST_AXES = 64  # NumPy's limit

Weights = Mapping[str, np.ndarray]


def read_weights(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the tensors of a .safetensors file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict of str to numpy.ndarray
        A read-only array for each tensor, by its name.  The arrays share the memory of the file's content.

    Raises
    ------
    RelvmTypeError
        `path` is not a path.
    OSError
        The file cannot be read.
    RelvmFormatError
        The file is damaged, or is not a .safetensors file.
    RelvmUnsupportedError
        A tensor has a dtype that relvm does not have, such as complex numbers.
    """
    expect_path("path", path)
    content = read_buffer(path)
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(len(content) - 8, _LONGEST_HEADER):
        raise RelvmFormatError(
            f"{path}: expected a .safetensors file, whose first 8 bytes are the length of its header"
        )
    try:
        header = json.loads(bytes(content[8 : 8 + length]), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(f"{path}: the header is not valid: {shortened(str(error))}") from None
    if not isinstance(header, dict):
        raise RelvmFormatError(f"{path}: expected an object as header, got {shortened(str(header))}")
    header.pop("__metadata__", None)
    data = content[8 + length :]
    return {name: _array(entry, data, f"{path}: {shortened(name)}") for name, entry in header.items()}


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shortened(twice)} is given twice")
    return found


def _array(entry: Any, data: memoryview, here: str) -> np.ndarray:
    match entry:
        case {"dtype": str(name), "shape": list(shape), "data_offsets": [int(first), int(end)]}:
            pass
        case _:
            raise RelvmFormatError(f"{here}: expected dtype, shape and data_offsets, got {shortened(str(entry))}")
    if name not in _DTYPES:
        raise RelvmUnsupportedError(f"{here}: dtype {shortened(name)} is not supported; expected {', '.join(_DTYPES)}")
    dtype = dtype_of(_DTYPES[name]).numpy
    are_sizes = len(shape) <= _MOST_AXES and all(type(size) is int and size >= 0 for size in shape)
    if not are_sizes or math.prod(max(size, 1) for size in shape) * dtype.itemsize >= 1 << 63:
        raise RelvmFormatError(
            f"{here}: expected a shape of at most {_MOST_AXES} sizes whose product fits in 64 bits,"
            f" got {shortened(str(shape))}"
        )
    size_bytes = math.prod(shape) * dtype.itemsize
    if not 0 <= first <= end <= len(data) or end - first != size_bytes:
        raise RelvmFormatError(
            f"{here}: expected {size_bytes} bytes for {name} and shape {shortened(str(shape))},"
            f" got bytes {first} to {end} of {len(data)}"
        )
    array = (
        np.frombuffer(data[first:end], np.uint8).view(dtype).reshape(shape) if size_bytes else np.empty(shape, dtype)
    )
    return plain_array(array)


def as_mapping(weights: Weights | str | os.PathLike[str] | None) -> Weights:
    """Return weights as a mapping from names to arrays.

    If `weights` is a path, read the file.  If it is None, return an empty mapping.

    Raises
    ------
    RelvmTypeError
        `weights` is neither a path nor a mapping nor None, or the mapping has a key that is not a str or a value that
        is not an array.
    OSError
        The file cannot be read.
    RelvmFormatError
        The file is damaged, or is not a .safetensors file.
    RelvmUnsupportedError
        A tensor in the file has a dtype that relvm does not have.
    """
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        return read_weights(weights)
    for name, array in weights.items():
        expect_type("weights", name, str, "names as keys")
        expect_type(f"weights: {name}", array, np.ndarray, "an array")
    return weights


def as_constant(array: np.ndarray, here: str) -> Constant:
    """Convert a weight to a constant.  A read-only array is not copied.

    here: the beginning of error messages.

    Raises
    ------
    RelvmTypeError
        relvm does not support the dtype.
    """
    try:
        plain = plain_array(array)
    except RelvmError as error:
        raise type(error)(f"{here}: {error}") from None
    return constant(plain) if plain.flags.writeable else Constant(plain)


def bind_weights(module: Module, weights: Weights | str | os.PathLike[str], *, function: str = "main") -> Module:
    """Replace parameters of a function by constant weights.

    A weight replaces the parameter of the same name.  If there is none, characters of the weight's name that are not
    valid in a parameter name are replaced by _: the weight "layers.0.weight" replaces the parameter layers_0_weight.
    Parameters without a weight remain.  If the type of a replaced parameter has a symbolic dimension, the size of the
    weight replaces this dimension in the whole function.

    Parameters
    ----------
    module
        The module, which is not changed.
    weights
        A mapping from names to arrays, or the path of a .safetensors file.
    function
        The name of the function.

    Returns
    -------
    Module
        A copy of the module, in which the function has fewer parameters.

    Raises
    ------
    RelvmNameError
        The module has no public function `function`, a weight has no matching parameter, or two weights match the same
        parameter.
    RelvmTypeError, RelvmShapeError
        The dtype or the shape of a weight differs from the type of the parameter.
    RelvmUnsupportedError
        A function of the module calls `function`, or a tensor in the file has a dtype that relvm does not have.
    OSError, RelvmFormatError
        The file cannot be read, is damaged, or is not a .safetensors file.

    Examples
    --------
    >>> import numpy as np
    >>> from relvm.frontend.text import parse_module
    >>> from relvm.ir import print_module
    >>> module = parse_module("def main(x: f32[n, k], layer_weight: f32[k, 2]) = matmul(x, layer_weight)")
    >>> bound = bind_weights(module, {"layer.weight": np.ones((1, 2), np.float32)})
    >>> print(print_module(bound), end="")
    def main(x: f32[n, 1]) = matmul(x, const(f32[1, 2], [[1.0, 1.0]]))
    """
    expect_type("module", module, Module, "a Module")
    names = {each.name for each in module.functions if not each.private}
    if function not in names:
        raise RelvmNameError(f"no function {function}{known_names(str(function), names)}")
    for caller in module.functions:
        if function in function_references(caller):
            raise RelvmUnsupportedError(
                f"{caller.name} calls {function}, so the parameters of {function} cannot become constants; bind the "
                "weights of a function that nothing calls"
            )
    target = module[function]
    values = _constants_by_parameter(target, as_mapping(weights))
    bound = _replace_parameters(target, values) if values else target
    return module.with_functions(tuple(bound if each is target else each for each in module.functions))


def _constants_by_parameter(function: Function, weights: Weights) -> dict[Var, Constant]:
    """Return a constant for each parameter of `function` for which there is a weight."""
    by_name = {param.name: param for param in function.params}
    by_name |= dict(zip(function.input_names, function.params, strict=True))
    values: dict[Var, Constant] = {}
    for name, array in weights.items():
        param = by_name.get(name) or by_name.get(re.sub(r"\W", "_", name, flags=re.ASCII))
        if param is None:
            raise RelvmNameError(f"weights: {function.name} has no parameter {name}{known_names(name, by_name)}")
        if param in values:
            raise RelvmNameError(f"weights: two weights are for the parameter {param.name} of {function.name}")
        values[param] = as_constant(array, f"weights: {name}")
    return values


def _replace_parameters(function: Function, values: Mapping[Var, Constant]) -> Function:
    """Return a copy of `function` in which constants replace some parameters.

    values: the constant for each parameter to replace.
    """
    dims: dict[DimVar, AnyDim] = {}
    for param, value in values.items():
        match_dims(param.type, value.type, dims)
    for param, value in values.items():
        expected = substitute_dims(param.type, dims)
        if reason := mismatch_reason(expected, value.type):
            is_shape = isinstance(expected, TensorType) and expected.dtype in (None, dtype_of(value.value.dtype))
            error = RelvmShapeError if is_shape else RelvmTypeError
            raise error(f"weights: parameter {param.name} of {function.name} is {param.type}: {reason}")
    kept = [param not in values for param in function.params]

    def remaining(items: tuple) -> tuple:
        return tuple(item for item, keeps in zip(items, kept, strict=True) if keeps)

    attributes = tuple((key, remaining(value) if key == "input_names" else value) for key, value in function.attributes)
    smaller = replace(function, params=remaining(function.params), attributes=attributes)
    replaced: dict[Var, Expr] = dict(values)
    return fresh_copy(smaller, replaced, dims)
