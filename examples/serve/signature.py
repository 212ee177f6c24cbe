"""Signatures of models in the datatypes of the Open Inference Protocol, and checks of the inputs of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relvm.bytecode.program import scalar_kind
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmShapeError, RelvmUnsupportedError, counted
from relvm.model import Model, type_fields
from relvm.numpy_dtypes import numpy_dtype
from relvm.tables import DTYPES

# The datatype of the protocol for each dtype in the text form.  The protocol has none for floats and integers of less
# than 8 bits, and for floats of 8 bits.
DATATYPES = {
    "bool": "BOOL",
    **{f"{kind}{bits}": f"{name}{bits}" for kind, name in (("i", "INT"), ("u", "UINT")) for bits in (8, 16, 32, 64)},
    "f16": "FP16",
    "bf16": "BF16",
    "f32": "FP32",
    "f64": "FP64",
    "str": "BYTES",
}
_DTYPES = {row.name: numpy_dtype(row.index) for row in DTYPES if row.name in DATATYPES}
_LONGEST_TYPE = 4000  # limit on the characters of a type
_LONGEST_NAMES = 1000  # characters of the names in an error message
_MAX_RANK = 64  # NumPy's limit


@dataclass(frozen=True)
class TensorSpec:
    """An input or an output of a model.

    Attributes
    ----------
    name
        Its name in the model.
    type
        Its type in the text form, such as "f32[n, 64]".
    datatype, dtype
        The type of its elements in the protocol and in NumPy.
    sizes
        The sizes in its type: "64", "n", "2 * n".
    is_scalar
        Whether the model takes or returns a scalar instead of a tensor of rank 0.
    """

    name: str
    type: str
    datatype: str
    dtype: np.dtype
    sizes: tuple[str, ...]
    is_scalar: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the tensor in the protocol.  A symbolic size is -1."""
        shape = [int(size) if size.isdecimal() else -1 for size in self.sizes]
        return {"name": self.name, "datatype": self.datatype, "shape": shape}

    def expect_shape(self, shape: Sequence[int]) -> None:
        """Raise RelvmShapeError if the rank or a known size of the type differs from `shape`."""
        fits = len(shape) == len(self.sizes) and all(
            not size.isdecimal() or int(size) == got for size, got in zip(self.sizes, shape, strict=True)
        )
        if not fits:
            raise RelvmShapeError(f"input {self.name}: expected {self.type}, got the shape {str(list(shape))[:200]}")


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, in their order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def arguments(self, arrays: Mapping[str, np.ndarray]) -> list[Any]:
        """Return the inputs of a request in the order of the model's parameters.

        Raises
        ------
        RelvmArgumentError
            An input is missing or unknown.
        """
        expected = [each.name for each in self.inputs]
        if set(arrays) != set(expected):
            got = ", ".join(arrays)[:_LONGEST_NAMES] or "none"
            raise RelvmArgumentError(f"expected the inputs {', '.join(expected) or '(none)'}, got {got}")
        return [arrays[each.name].item() if each.is_scalar else arrays[each.name] for each in self.inputs]


def read_signature(model: Model) -> Signature:
    """Return the signature of a model.

    Raises
    ------
    RelvmUnsupportedError
        An input or output is not a tensor or scalar whose elements have a datatype in the protocol.
    RelvmFormatError
        Two inputs or two outputs have the same name.
    """
    inputs, outputs = model.signature.inputs, model.signature.outputs
    for kind, names, types in (("input", model.input_names, inputs), ("output", model.output_names, outputs)):
        if len(names) != len(types):
            raise RelvmFormatError(f"two {kind}s have the same name: {', '.join(names)[:_LONGEST_NAMES]}")
    return Signature(
        tuple(_tensor(f"input {name}", name, text) for name, text in inputs.items()),
        tuple(_tensor(f"output {name}", name, text) for name, text in outputs.items()),
    )


def _tensor(what: str, name: str, text: str) -> TensorSpec:
    if len(text) > _LONGEST_TYPE:
        raise RelvmUnsupportedError(f"{what}: its type has more than {_LONGEST_TYPE} characters")
    if kind := scalar_kind(text):
        return TensorSpec(name, text, DATATYPES[kind], _DTYPES[kind], (), is_scalar=True)
    match = re.fullmatch(r"(\w+)\[(.*)\]", text)
    if match is None or match[1] not in DATATYPES:
        expected = "a tensor or a scalar of one of the dtypes " + ", ".join(DATATYPES)
        raise RelvmUnsupportedError(f"{what} is {text}: the protocol cannot send it; expected {expected}")
    sizes = tuple(type_fields(f"({match[2]})"))
    if len(sizes) > _MAX_RANK:
        raise RelvmUnsupportedError(f"{what} has {len(sizes)} axes: expected at most {_MAX_RANK}")
    return TensorSpec(name, text, DATATYPES[match[1]], _DTYPES[match[1]], sizes)


# ---- batches ----


def batch_axis(signature: Signature) -> str:
    """Return the symbolic size that the types of all inputs and outputs begin with.

    Types do not state whether a row of the result depends only on the same row of the inputs.  The operator of the
    server must ensure this.

    Raises
    ------
    RelvmUnsupportedError
        There is no such size, or another axis depends on it.
    """
    if not signature.inputs:
        raise RelvmUnsupportedError("cannot be batched: there are no inputs")
    axis = next(iter(signature.inputs[0].sizes), "")
    for kind, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        for each in tensors:
            what = f"cannot be batched: {kind} {each.name} is {each.type}"
            if not each.sizes or each.sizes[0] != axis or not axis.isidentifier():
                expected = f"[{axis}, ...]" if axis.isidentifier() else "[n, ...], n being any size"
                raise RelvmUnsupportedError(f"{what}; its first axis is not the batch, {expected}")
            if axis in re.findall(r"\w+", " ".join(each.sizes[1:])):
                raise RelvmUnsupportedError(f"{what}; an axis that grows with the batch cannot be split")
    return axis


def most_rows(attributes: Mapping[str, Any], axis: str) -> int | None:
    """Return the upper bound of a batch axis that a function states, or None.

    attributes: those in the function's entry of `Executable.signature`.

    Raises
    ------
    RelvmFormatError
        The bounds have another form than a build writes.
    """
    match attributes.get("upper_bounds", []):
        case [*pairs] if all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            found = [most for name, most in pairs if name == axis]
            if all(isinstance(most, int) and not isinstance(most, bool) and most > 0 for most in found):
                return min(found, default=None)
    raise RelvmFormatError(f"the upper bounds are not what builds write: {attributes['upper_bounds']!r:.200}")


def batch_rows(signature: Signature, arguments: Sequence[np.ndarray], max_rows: int) -> int:
    """Return the number of rows of a request to a model that is batched.

    Raises
    ------
    RelvmShapeError
        The inputs have different numbers of rows, no rows, or more than `max_rows`.
    """
    rows = {len(each) for each in arguments}
    if len(rows) > 1:
        shown = ", ".join(f"{each.name} {len(array)}" for each, array in zip(signature.inputs, arguments, strict=True))
        raise RelvmShapeError(f"expected as many rows of each input, got {shown[:_LONGEST_NAMES]}")
    (count,) = rows
    if not 1 <= count <= max_rows:
        raise RelvmShapeError(f"expected from 1 to {counted(max_rows, 'row')}, got {count}")
    return count
