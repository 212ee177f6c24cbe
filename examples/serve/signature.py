"""Signatures that the server supports: functions of tensors whose first axis is the batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from relvm.bytecode.program import input_names, stated_signature
from relvm.errors import (
    RelvmArgumentError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import DTYPES
from relvm.vm import Executable

# Dtypes by their names in the text form.  _DTYPES contains those that .npy files support: no strings, no ml_dtypes.
_ALL = {row.name: numpy_dtype(row.index) for row in DTYPES}
_LONGEST_TYPE = 4000  # characters
_LONGEST_NAMES = 1000  # maximum length of a request's input names in an error message
_DTYPES = {name: dtype for name, dtype in _ALL.items() if dtype.isbuiltin == 1 and dtype.kind in "biuf"}


@dataclass(frozen=True)
class TensorOf:
    """An input or an output.

    name, type: the name, and the type in text form.   dtype: the NumPy dtype.   sizes: the sizes of the axes after the
    first, in the notation of types, such as "3", "m" or "2 * m".
    """

    name: str
    type: str
    dtype: np.dtype
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """The signature of a function on batches.  most_rows: the maximum number of rows in a batch, None: no limit."""

    inputs: tuple[TensorOf, ...]
    outputs: tuple[TensorOf, ...]
    most_rows: int | None

    def expect_inputs(self, names: Iterable[str]) -> None:
        """Raise RelvmArgumentError if `names` are not exactly the names of the inputs."""
        expected = [each.name for each in self.inputs]
        if set(names) != set(expected):
            got = ", ".join(names)[:_LONGEST_NAMES] or "none"
            raise RelvmArgumentError(f"expected the inputs {', '.join(expected)}, got {got}")

    def arguments(self, arrays: Mapping[str, np.ndarray], max_rows: int) -> list[np.ndarray]:
        """Check the arrays of one request, and return them in the order of the parameters.

        Equality of symbolic sizes is not checked here, but by the machine.  This is sufficient, because only requests
        with equal sizes share a batch.

        Raises
        ------
        RelvmArgumentError
            An input is missing or unknown.
        RelvmTypeError, RelvmShapeError
            An array does not have the type of its input, the arrays have different numbers of rows, or the number is
            not in 1 to `max_rows`.
        """
        self.expect_inputs(arrays)
        arguments = [_checked(each, arrays[each.name]) for each in self.inputs]
        rows = [len(each) for each in arguments]
        if len(set(rows)) > 1:
            raise RelvmShapeError(f"expected as many rows of each input, got {', '.join(map(str, rows))}")
        if not 1 <= rows[0] <= max_rows:
            raise RelvmShapeError(f"expected 1 to {max_rows} rows, got {rows[0]}")
        return arguments


def batch_signature(executable: Executable, function: str = "main") -> Signature:
    """Return the signature of a function whose inputs and outputs are tensors with the same symbolic first dimension.

    The caller must know that each row of the result depends only on the same row of the inputs.  Types do not show it.

    Raises
    ------
    RelvmNameError
        The executable has no such function.
    RelvmFormatError
        The signature in the executable is malformed.
    RelvmUnsupportedError
        An input or output, which the message names, has another form, or the function has no inputs.
    """
    stated = stated_signature(executable.signature, function)
    if stated is None:
        raise RelvmNameError(f"no function {function}: there are {', '.join(executable.signature)}")
    attributes, types = stated["attributes"], [each["type"] for each in stated["params"]]
    if max(map(len, (stated["result"], *types))) > _LONGEST_TYPE:
        raise RelvmUnsupportedError(f"{function}: a type of more than {_LONGEST_TYPE} characters")
    names = input_names(stated)
    result = stated["result"]
    results = re.findall(r"\w+\[[^\]]*\]", result) if result.startswith("(") else [result]
    if result.startswith("(") and f"({', '.join(results)})" != result:
        raise RelvmUnsupportedError(f"{function} returns {result}: expected a tensor, or a tuple of tensors")
    outputs = attributes.get("output_names", [f"result{k}" for k in range(len(results))])
    if len(outputs) != len(results):
        raise RelvmFormatError(f"{function}: {len(outputs)} names of outputs for {len(results)} outputs")
    if not types:
        raise RelvmUnsupportedError(f"{function} has no inputs: there is nothing to put into a batch")
    batch = _axes(types[0])[0]
    return Signature(
        inputs=tuple(_tensor(f"{function}: input {n}", n, t, batch) for n, t in zip(names, types, strict=True)),
        outputs=tuple(_tensor(f"{function}: output {n}", n, t, batch) for n, t in zip(outputs, results, strict=True)),
        most_rows=_most_rows(function, attributes.get("upper_bounds", []), batch),
    )


def _most_rows(function: str, bounds: object, batch: str) -> int | None:
    match bounds:
        case [*pairs] if all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            found = [most for name, most in pairs if name == batch]
            if all(isinstance(most, int) and not isinstance(most, bool) and most > 0 for most in found):
                return min(found, default=None)
    raise RelvmFormatError(f"{function}: its upper bounds are not what builds write: {bounds!r:.200}")


def _axes(type_: str) -> list[str]:
    """Return the sizes in the type of a tensor, or one empty string if the tensor has rank 0."""
    return re.split(r", (?![^(]*\))", type_.partition("[")[2].removesuffix("]"))


def _tensor(what: str, name: str, type_: str, batch: str) -> TensorOf:
    dtype = type_.partition("[")[0]
    if dtype not in _DTYPES:
        raise RelvmUnsupportedError(f"{what} is {type_}: expected a tensor of one of {', '.join(_DTYPES)}")
    first, *sizes = _axes(type_)
    if first != batch or not first.isidentifier():
        expected = f"[{batch}, ...]" if batch.isidentifier() else "[n, ...], n being any size"
        raise RelvmUnsupportedError(f"{what} is {type_}: its first axis is not the batch, {expected}")
    if batch in re.findall(r"\w+", " ".join(sizes)):
        raise RelvmUnsupportedError(f"{what} is {type_}: an axis that grows with the batch cannot be split")
    return TensorOf(name, type_, _DTYPES[dtype], tuple(sizes))


def _checked(expected: TensorOf, array: np.ndarray) -> np.ndarray:
    if array.dtype != expected.dtype:
        raise RelvmTypeError(f"input {expected.name}: expected {expected.type}, got elements of {array.dtype}")
    fits = array.ndim == 1 + len(expected.sizes) and all(
        not size.isdecimal() or int(size) == got for size, got in zip(expected.sizes, array.shape[1:], strict=True)
    )
    if not fits:
        raise RelvmShapeError(f"input {expected.name}: expected {expected.type}, got the shape {array.shape}")
    return array
