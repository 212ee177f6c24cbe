"""Printing of metadata as C constants.  csrc/include/relvm_metadata.h declares their types."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.aot.metadata_model import Metadata, TensorInfo
from relvm.codegen.c.expression import integer
from relvm.quoting import c_string


def print_metadata(metadata: Metadata) -> str:
    """Return the C definitions of `NAME_metadata` and of the constants that it points to."""
    parts, names = [], {}
    for what in ("inputs", "outputs", "pools"):
        infos = getattr(metadata, what)
        parts += [dimension_arrays(info, f"{what}{number}") for number, info in enumerate(infos)]
        rows = [tensor_info(info, f"{what}{number}") for number, info in enumerate(infos)]
        parts += [_array(f"static const rvm_tensor_info {what}[]", rows)] if rows else []
        names[what] = what if rows else "0"
    rows = [f"{{{c_string(s.name)}, {integer(s.least)}, {-1 if s.most is None else s.most}}}" for s in metadata.sizes]
    parts += [_array("static const rvm_size_info sizes[]", rows)] if rows else []
    names["sizes"] = "sizes" if rows else "0"
    lists = (metadata.inputs, metadata.outputs, metadata.pools, metadata.sizes)
    rows = [
        f"RVM_METADATA_VERSION, {metadata.alignment}",
        c_string(metadata.mod_name),
        ", ".join(str(len(each)) for each in lists),
        ", ".join(names.values()),
    ]
    parts.append(_array(f"const rvm_metadata {metadata.mod_name}_metadata", rows))
    return "\n\n".join(part for part in parts if part)


def dimension_arrays(info: TensorInfo, name: str) -> str:
    """Return the C definitions of two arrays: the dimensions of `info` as integers (-1 if symbolic) and as strings.

    For a scalar, return an empty string.   name: the prefix of the names of the arrays.
    """
    if not info.shape:
        return ""
    numbers = ", ".join(str(dim if isinstance(dim, int) else -1) for dim in info.shape)
    texts = ", ".join(c_string(str(dim)) for dim in info.shape)
    return (
        f"static const int64_t {name}_shape[] = {{{numbers}}};\nstatic const char *const {name}_dims[] = {{{texts}}};"
    )


def tensor_info(info: TensorInfo, name: str) -> str:
    """Return the C initializer of an rvm_tensor_info.   name: the prefix given to `dimension_arrays`."""
    pointers = f"{name}_shape, {name}_dims" if info.shape else "0, 0"
    return f"{{{c_string(info.name)}, {c_string(info.dtype)}, {len(info.shape)}, {int(info.is_updated)}, {pointers}}}"


def _array(declaration: str, rows: Sequence[str]) -> str:
    return "\n".join([f"{declaration} = {{", *(f"    {row}," for row in rows), "};"])
