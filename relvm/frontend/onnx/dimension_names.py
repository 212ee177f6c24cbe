"""Names of the symbolic sizes of an ONNX model: in the file, and in the types, signatures and messages of relvm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.onnx_messages import Message

ValueT = TypeVar("ValueT")


def dimension_key(dim: Message, input_name: str, axis: int) -> str | None:
    """Return the key of a symbolic size (`size_key`), or None if the size is a number.

    dim: the TensorShapeProto.Dimension.
    input_name, axis: the input that has the size, and the axis.
    """
    if dim.has("dim_value") and dim.dim_value >= 0:  # exporters write -1 for an unknown size
        return None
    return size_key(dim.dim_param, input_name, axis)


def size_key(stated: str, input_name: str, axis: int) -> str:
    """Return the name of a size that is not a number.

    A size without a name gets one, which consists of the name of the input and the axis.

    stated: the name in the file, or "" or "?".
    """
    return stated if stated not in ("", "?") else f"{input_name}_dim{axis}"


def printed_names(graph: Message) -> dict[str, str]:
    """Return the name that relvm prints for each symbolic size of the inputs of a graph, by its name in the file.

    For example, "batch.size" is printed as "batch_size", because the text form needs an identifier.

    graph: the GraphProto.
    """
    initializers = {each.name for each in graph.initializer}
    used: set[str] = set()
    names: dict[str, str] = {}
    for info in graph.input:
        if info.name in initializers:
            continue
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            key = dimension_key(dim, info.name, axis)
            if key is not None and key not in names:
                names[key] = identifier(key, used)
    return names


def by_names_in_file(dims: Mapping[str, ValueT], names: Mapping[str, str]) -> dict[str, ValueT]:
    """Return `dims` with the names in the file as keys.

    dims: values by the names of symbolic sizes, as in the file or as printed.   names: see `printed_names`.
    """
    keys = {printed: key for key, printed in names.items() if printed not in names}
    return {keys.get(name, name): value for name, value in dims.items()}
