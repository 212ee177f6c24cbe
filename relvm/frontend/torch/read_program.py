"""Reading of exported programs: `.pt2` archives, and programs that torch.export serialized in memory."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relvm.errors import RelvmError, RelvmFormatError, RelvmUnsupportedError, counted, expect_type, shortened
from relvm.frontend.torch.archive import Archive
from relvm.frontend.torch.element_types import dtype_of_scalar_type, is_complex
from relvm.frontend.torch.limits import MAX_BYTES, MAX_EXPANDED_BYTES, MAX_GUARDS, MAX_JSON_BYTES, MAX_RANK
from relvm.frontend.torch.program import GraphReader, Program, expect_fields, expect_union, leaf_paths
from relvm.runtime.file_io import map_file

_SCHEMA = 8  # the major version of torch.export's schema
_LAYOUT_STRIDED = 7


def read_program(
    model: str | os.PathLike[str] | bytes | bytearray | memoryview, name: str = "model", function: str | None = None
) -> Program:
    """Return the program in a file or in memory.

    model: as for `from_pt2`.
    name: the name of the program in messages, if `model` is not a path.
    function: the name of the program in the archive.  None selects the program "model", or else the only program.
    The errors are those of `from_pt2`.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        content, place = memoryview(model).toreadonly(), name
    else:
        expect_type("from_pt2: model", model, (str, os.PathLike), "a path or bytes")
        content, place = map_file(Path(model)), str(model)
    archive = Archive(content, place)
    prefix = _prefix(archive)
    models = {
        match[1]: path
        for path in archive.names()
        if (match := re.fullmatch(re.escape(f"{prefix}models/") + r"([^/]+)\.json", path))
    }
    if not models:
        raise RelvmUnsupportedError(f"{place}: the archive contains no exported program (models/*.json)")
    if function is None and len(models) > 1 and "model" not in models:
        raise RelvmUnsupportedError(f"{place}: the archive contains several programs: {', '.join(models)}")
    chosen = function or ("model" if "model" in models else next(iter(models)))
    if chosen not in models:
        raise RelvmFormatError(f"{place}: the archive has no program {shortened(chosen)}; it has {', '.join(models)}")
    tensors: dict[str, np.ndarray] = {}
    refused: dict[str, str] = {}
    for folder, kind in (("weights", "weights"), ("constants", "constants")):
        config = f"{prefix}data/{folder}/{chosen}_{kind}_config.json"
        if config in archive:
            found, problems = _read_tensors(archive, f"{prefix}data/{folder}/", _read_json(archive, config))
            tensors.update(found)
            refused.update(problems)
    return program_of_json(_read_json(archive, models[chosen]), tensors, refused, place)


def program_of_json(value: Any, tensors: Mapping[str, np.ndarray], refused: Mapping[str, str], place: str) -> Program:
    """Return the program that JSON describes.

    value: an object of the class ExportedProgram of torch.export's schema.
    tensors, refused: the fields of the program.

    Raises
    ------
    RelvmFormatError
        The JSON violates the schema.
    RelvmUnsupportedError
        The version of the schema is not supported.
    """
    module, constraints, version = expect_fields(
        place, value, graph_module=dict, range_constraints=dict, schema_version=dict
    )
    (major,) = expect_fields(f"{place}: schema_version", version, major=int)
    if major != _SCHEMA:
        torch_version = shortened(str(value.get("torch_version", "unknown")))
        raise RelvmUnsupportedError(
            f"{place}: version {major} of torch.export's schema, written by PyTorch {torch_version}, is not supported;"
            f" expected version {_SCHEMA}, which PyTorch 2.5 and later write"
        )
    graph, signature = expect_fields(f"{place}: graph_module", module, graph=dict, signature=dict)
    inputs, outputs = expect_fields(f"{place}: signature", signature, input_specs=list, output_specs=list)
    ranges = {}
    for name, limits in constraints.items():
        expect_fields(f"{place}: range_constraints", limits)
        low, high = limits.get("min_val"), limits.get("max_val")
        if not all(bound is None or type(bound) is int for bound in (low, high)):
            raise RelvmFormatError(f"{place}: the range of {shortened(name)} is {shortened(repr(limits))}")
        ranges[name] = low, high
    guards = tuple(value.get("guards_code") or ())
    if len(guards) > MAX_GUARDS or not all(isinstance(guard, str) for guard in guards):
        raise RelvmFormatError(f"{place}: guards_code: expected at most {MAX_GUARDS} texts")
    return Program(
        place,
        GraphReader(place).graph(graph),
        tuple(_specs(place, inputs)),
        tuple(_specs(place, outputs)),
        ranges,
        tensors,
        refused,
        _output_paths(module.get("module_call_graph")),
        str(value.get("torch_version", "")),
        guards,
        "TRAINING" not in (value.get("verifiers") or ()),
    )


def _specs(place: str, specs: list[Any]) -> list[dict[str, Any]]:
    found = []
    for spec in specs:
        kind, content = expect_union(f"{place}: signature", spec)
        expect_fields(f"{place}: signature", content)
        found.append({kind: content})
    return found


def _output_paths(entries: Any) -> tuple[str, ...] | None:
    """Return the paths of the outputs, which the signature of the outermost module contains, or None."""
    try:
        spec = json.loads(entries[0]["signature"]["out_spec"])
        paths = leaf_paths(spec[1])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return None if paths is None else tuple(paths)


def _prefix(archive: Archive) -> str:
    """Return the folder that contains all files of the archive, such as `model/`."""
    for name in archive.names():
        if name.rpartition("/")[2] == "archive_format" and name.count("/") <= 1:
            if bytes(archive.read(name, 64)) != b"pt2":
                raise RelvmFormatError(f"{archive.place}: archive_format is not pt2")
            prefix = name.removesuffix("archive_format")
            order = f"{prefix}byteorder"
            if order in archive and bytes(archive.read(order, 64)) != b"little":
                raise RelvmUnsupportedError(f"{archive.place}: only the byte order little is supported")
            return prefix
    names = {name.rpartition("/")[2] for name in archive.names()}
    if "serialized_exported_program.json" in names:
        raise RelvmUnsupportedError(
            f"{archive.place}: the weights of this exported program are pickles (serialized_state_dict.pt), which relvm"
            " does not read; export it again with PyTorch 2.8 or later"
        )
    if "data.pkl" in names:
        raise RelvmUnsupportedError(
            f"{archive.place}: the file is a pickle or a TorchScript program, which relvm does not read; export the"
            " module with torch.export.save"
        )
    raise RelvmFormatError(f"{archive.place}: expected an exported program of PyTorch, got another zip archive")


def _read_json(archive: Archive, name: str) -> Any:
    data = archive.read(name, MAX_JSON_BYTES)
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise RelvmFormatError(
            f"{archive.place}: {shortened(name)} is not valid JSON: {shortened(str(error))}"
        ) from None


def _read_tensors(archive: Archive, folder: str, value: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the tensors of a folder, and for each tensor that cannot be read the reason."""
    what = f"{archive.place}: {folder}"
    (config,) = expect_fields(what, value, config=dict)
    found: dict[str, np.ndarray] = {}
    refused: dict[str, str] = {}
    for name, each in config.items():
        here = f"{what}{shortened(name)}"
        (path,) = expect_fields(here, each, path_name=str)
        if each.get("use_pickle"):
            refused[name] = f"{shortened(name)} is stored as a pickle, which relvm does not read"
            continue
        (meta,) = expect_fields(here, each, tensor_meta=dict)
        try:
            found[name] = tensor_of(archive.read(folder + path), meta, here)
        except RelvmUnsupportedError as error:
            refused[name] = str(error).removeprefix(f"{here}: ")
    return found, refused


def tensor_of(data: memoryview, meta: Mapping[str, Any], here: str) -> np.ndarray:
    """Return the tensor in a file, as a read-only array.

    The array shares the memory of `data` if it is contiguous and not bool.

    meta: an object of the class TensorMeta.   here: the beginning of messages.

    Raises
    ------
    RelvmFormatError
        The sizes or strides are not valid, or the file is too small.
    RelvmUnsupportedError
        The dtype is complex32 or unknown, or the layout is not strided.
    """
    sizes, strides = (
        [_number(each, here) for each in dims] for dims in expect_fields(here, meta, sizes=list, strides=list)
    )
    offset = _number(meta.get("storage_offset") or {"as_int": 0}, here)
    try:
        dtype = dtype_of_scalar_type(meta.get("dtype"))
    except RelvmError as error:
        raise type(error)(f"{here}: {error}") from None
    numpy_dtype = dtype.numpy
    if is_complex(meta.get("dtype")):
        if dtype.bits < 32:
            raise RelvmUnsupportedError(f"{here}: weights of the type complex32 are not supported")
        numpy_dtype = np.dtype(f"c{2 * dtype.size_bytes}")
    if meta.get("layout", _LAYOUT_STRIDED) != _LAYOUT_STRIDED:
        raise RelvmUnsupportedError(f"{here}: sparse tensors are not supported")
    if len(sizes) != len(strides) or len(sizes) > MAX_RANK or min([*sizes, *strides, offset]) < 0:
        raise RelvmFormatError(f"{here}: the sizes {sizes} and the strides {strides} are not valid")
    item = numpy_dtype.itemsize
    count = math.prod(sizes)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if count * item > MAX_BYTES or (count and (last + 1) * item > len(data)):
        raise RelvmFormatError(
            f"{here}: a tensor of the sizes {sizes} is outside of its file, which has {counted(len(data), 'byte')}"
        )
    if count * item > max(MAX_EXPANDED_BYTES, len(data)):
        raise RelvmFormatError(
            f"{here}: a tensor of {count * item:,} bytes expands a file of {len(data):,} bytes, expected at most"
            f" {MAX_EXPANDED_BYTES:,}"
        )
    if not count:
        return np.zeros(sizes, numpy_dtype)
    flat = np.frombuffer(data, np.uint8, len(data) // item * item)
    flat = flat.view(numpy_dtype) if not dtype.is_bool else flat != 0
    array = np.lib.stride_tricks.as_strided(
        flat[offset:], sizes, [stride * item for stride in strides], writeable=False
    )
    array = np.ascontiguousarray(array).reshape(sizes)
    array.flags.writeable = False
    return array


def _number(value: Any, here: str) -> int:
    kind, number = expect_union(here, value)
    if kind != "as_int" or type(number) is not int:
        raise RelvmFormatError(f"{here}: expected a number, got {shortened(repr(value))}")
    return number
