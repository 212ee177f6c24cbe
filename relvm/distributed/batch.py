"""Batches: a batch is the arguments of one call, given as values, as a file, or as Dask collections to compute."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from relvm.data_classes import dataclass
from relvm.distributed.inputs import FunctionSignature
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmShapeError, RelvmTypeError, expect_type
from relvm.runtime.array_files import read_members, translate_numpy_errors
from relvm.runtime.file_io import open_file
from relvm.runtime.tensor import Tensor

SUFFIXES = (".npy", ".npz")


@dataclass(frozen=True)
class Batch:
    """The arguments of one call, with a name for messages.

    Attributes
    ----------
    name
        The name of the batch in error messages.
    arguments
        The arguments by position: values that a virtual machine accepts, or values that Dask computes (a Dask array or
        a Delayed).
    named
        The arguments by parameter name.

    Raises
    ------
    RelvmTypeError
        `arguments` is not a tuple or list, or `named` is not a dict.
    """

    name: str
    arguments: tuple = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect_type(f"batch {self.name}: arguments", self.arguments, (tuple, list), "a tuple")
        expect_type(f"batch {self.name}: named", self.named, Mapping, "a dict")
        for name in self.named:
            if not isinstance(name, str):
                raise RelvmTypeError(f"batch {self.name}: the keys of `named` must be parameter names, got {name!r}")


@dataclass(frozen=True)
class FileBatch:
    """The arguments of one call, stored in a file.  The worker that runs the call reads the file.

    Attributes
    ----------
    path
        The path of the file.  A .npy file contains one array, which is the first argument.  A .npz file contains one
        array for each argument, stored under the name of the function's input.
    """

    path: Path

    @property
    def name(self) -> str:
        """The name of the batch in error messages, which is the path of its file."""
        return str(self.path)


@dataclass(frozen=True)
class Deferred:
    """A placeholder for an argument that Dask computes.

    index: the index of the argument among all arguments of the batch that Dask computes.
    """

    index: int


@dataclass(frozen=True)
class Batches:
    """Several batches.

    iterator: an iterator over the batches.
    count: the number of batches, or None if it is unknown.
    """

    iterator: Iterator[Batch | FileBatch]
    count: int | None


def make_batches(batches: Any) -> Batches:
    """Convert `batches`, an argument of `relvm.distributed.map_batches`, to Batches.

    batches: the path of a folder or file or a pattern, an iterable of batches, a Dask array, or a dict of Dask arrays
    by parameter name.

    Raises
    ------
    RelvmTypeError
        `batches` has none of the accepted forms.
    RelvmArgumentError
        `batches` is a folder without .npy and .npz files, or a pattern that matches no such file.
    RelvmShapeError
        A Dask array has no axis; a Dask array is divided into blocks along an axis other than the first; or the blocks
        of several Dask arrays have different sizes along the first axis.
    """
    match batches:
        case str() | os.PathLike():
            paths = find_array_files(batches)
            return Batches(map(FileBatch, paths), len(paths))
        case np.ndarray() | Tensor():
            raise RelvmTypeError("batches: expected several arrays, got one; split it with np.array_split(x, 10)")
        case Mapping():
            return _batches_of_blocks({name: _dask_array(name, array) for name, array in batches.items()})
    if _is_dask_array(batches):
        return _batches_of_blocks({"": batches})
    if not isinstance(batches, Iterable) or is_deferred(batches):
        raise RelvmTypeError(f"batches: expected arrays, a Dask array or files, got {type(batches).__name__}")
    count = len(batches) if isinstance(batches, Sized) else None
    return Batches((_batch(number, item) for number, item in enumerate(batches)), count)


def find_array_files(source: str | os.PathLike) -> list[Path]:
    """Find the .npy and .npz files that `source` denotes.  Return their absolute paths, sorted.

    `source` is a folder, a pattern with * and ?, or the path of a single file.

    Raise RelvmArgumentError if there are no such files, or a file has another suffix.
    """
    place = Path(source)
    if place.is_dir():
        found = [path for path in place.iterdir() if path.suffix in SUFFIXES]
    else:
        found = [place] if place.is_file() or place.is_fifo() else _find_matching(place)
    if not found:
        raise RelvmArgumentError(f"{source}: found no .npy or .npz files")
    return sorted(map(_absolute_path, found))


def _find_matching(pattern: Path) -> list[Path]:
    """Return the paths that match a pattern.

    As in a shell, hidden files match only if a part of the pattern begins with a dot.  ** does not follow symbolic
    links, because they may form cycles.
    """
    folder = Path(pattern.anchor)
    relative_pattern = pattern.relative_to(folder)
    if not relative_pattern.parts:
        return []
    takes_hidden = any(part.startswith(".") for part in relative_pattern.parts)

    def is_shown(path: Path) -> bool:
        return takes_hidden or not any(part.startswith(".") for part in path.relative_to(folder).parts)

    return list(filter(is_shown, folder.glob(str(relative_pattern))))


def is_deferred(value: Any) -> bool:
    """Return whether `value` is a Dask array or a Delayed, so that Dask computes it."""
    return hasattr(value, "__dask_graph__") and value.__dask_graph__() is not None


def extract_deferred(batch: Batch | FileBatch) -> tuple[Batch | FileBatch, list[Any]]:
    """Replace each argument that Dask computes by a Deferred.  Return the new batch and the replaced arguments."""
    if isinstance(batch, FileBatch):
        return batch, []
    deferred: list[Any] = []

    def place(value: Any) -> Any:
        if not is_deferred(value):
            return value
        deferred.append(value)
        return Deferred(len(deferred) - 1)

    arguments = tuple(map(place, batch.arguments))
    named = {name: place(value) for name, value in batch.named.items()}
    return replace(batch, arguments=arguments, named=named), deferred


def load_arguments(
    batch: Batch | FileBatch, computed: Sequence[Any], signature: FunctionSignature
) -> tuple[tuple, dict]:
    """Return the arguments of a batch on the worker that runs it: arguments by position, and by parameter name.

    For a FileBatch, read the arguments from its file.  Otherwise, replace each placeholder by the argument that Dask
    has computed.

    Parameters
    ----------
    batch
        The batch, in which `extract_deferred` has replaced the arguments that Dask computes by placeholders.
    computed
        The values of the replaced arguments, in the order in which `extract_deferred` returned the arguments.
    signature
        The signature of the function.  The arrays in a .npz file have the input names of the signature.

    Raises
    ------
    RelvmFormatError
        The file is malformed, or contains something other than arrays.
    RelvmArgumentError
        The file contains an array for which the function has no input, or the array for a scalar input does not have
        exactly 1 element.
    OSError
        The file cannot be read.
    """
    if isinstance(batch, FileBatch):
        return _read_arguments(batch.path, signature)

    def filled(value: Any) -> Any:
        return computed[value.index] if isinstance(value, Deferred) else value

    return tuple(map(filled, batch.arguments)), {name: filled(value) for name, value in batch.named.items()}


def _read_arguments(path: Path, signature: FunctionSignature) -> tuple[tuple, dict]:
    with open_file(path) as opened, translate_numpy_errors(f"{path} is not a {path.suffix} file"):
        found = np.load(opened, allow_pickle=False)
        if not isinstance(found, np.ndarray):
            with found:
                found = read_members(found, path)
    if isinstance(found, np.ndarray):
        return (signature.first_argument(found),), {}
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # bytes: the archive contains a file that is not an array
            raise RelvmFormatError(f"{path} is not a .npz file: {name} is not an array")
    return (), signature.named_arguments(found)


def _batch(number: int, item: Any) -> Batch | FileBatch:
    match item:
        case Batch() | FileBatch():
            return item
        case os.PathLike():
            return FileBatch(_absolute_path(Path(item)))
        case tuple():
            return Batch(str(number), item)
        case Mapping():
            return Batch(str(number), (), dict(item))
    return Batch(str(number), (item,))


def _absolute_path(path: Path) -> Path:
    """Return the absolute path of an array file.  Raise RelvmArgumentError if its suffix is not .npy or .npz."""
    if path.suffix not in SUFFIXES:
        raise RelvmArgumentError(f"{path}: expected a .npy or .npz file")
    return path.absolute()


def _is_dask_array(value: Any) -> bool:
    return is_deferred(value) and isinstance(getattr(value, "chunks", None), tuple)  # a Delayed has every attribute


def _dask_array(name: str, value: Any) -> Any:
    if not _is_dask_array(value):
        what = type(value).__name__
        raise RelvmTypeError(
            f"batches: {name}: expected a Dask array, got {what}; to run one batch, pass a list that contains the dict"
        )
    return value


def _batches_of_blocks(arrays: dict[str, Any]) -> Batches:
    """Return a batch for each block of Dask arrays along the first axis.

    arrays: the arrays by parameter name.  The name "" means the first parameter.
    """
    if not arrays:
        raise RelvmTypeError("batches: expected at least one Dask array, got an empty dict")
    sizes: tuple[int, ...] = ()
    for name, array in arrays.items():
        what = f"array {name}" if name else "the array"
        if array.ndim == 0 or any(len(along) != 1 for along in array.chunks[1:]):
            expected = "expected at least one axis, and blocks along the first axis only; rechunk the array"
            raise RelvmShapeError(f"batches: {what} has blocks {array.chunks}; {expected}")
        if sizes and sizes != array.chunks[0]:
            expected = f"expected {sizes} as in the other arrays; rechunk the array"
            raise RelvmShapeError(f"batches: {what} has blocks of sizes {array.chunks[0]}; {expected}")
        sizes = array.chunks[0]

    def block(number: int) -> Batch:
        blocks = {name: array.blocks[number] for name, array in arrays.items()}
        first = (blocks.pop(""),) if "" in blocks else ()
        return Batch(str(number), first, blocks)

    return Batches(map(block, range(len(sizes))), len(sizes))
