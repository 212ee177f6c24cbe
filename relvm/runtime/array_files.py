"""Named outputs of functions, and files of arrays (.npy, .npz)."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError, RelvmMemoryError, counted
from relvm.numpy_dtypes import STRINGS, numpy_dtype, tensor_dtype_row
from relvm.quoting import file_name
from relvm.runtime.file_io import complete_file, is_sparse
from relvm.runtime.tensor import Tensor


def named_outputs(result: Any, names: list[str] | None) -> dict[str, np.ndarray]:
    """Return the outputs of a function as arrays, by name.

    names: the names of the outputs in the model.  If it is None, a single output is named output, and the items of a
    tuple are named output0, output1...  The items of an output that is a tuple itself get the names NAME.0, NAME.1...

    Raises
    ------
    RelvmArgumentError
        An output is neither a tensor nor a number, two outputs have the same name, or the number of names is wrong.
    """
    values = list(result) if isinstance(result, tuple) else [result]
    if names is None:
        names = ["output"] if not isinstance(result, tuple) else [f"output{i}" for i in range(len(values))]
    if len(names) != len(values):
        expected = counted(len(values), "name")
        raise RelvmArgumentError(
            f"expected {expected}, one for each output, got {counted(len(names), 'name')}: {', '.join(names)}"
        )
    leaves = [leaf for name, value in zip(names, values, strict=True) for leaf in _leaves(name, value)]
    outputs = {name: _as_array(name, value) for name, value in leaves}
    if len(outputs) < len(leaves):
        raise RelvmArgumentError(f"output names must be unique, got {', '.join(names)}")
    return outputs


def save_arrays(path: str | os.PathLike, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to a .npz file.  An existing file is replaced atomically.

    Unlike np.savez, this function accepts any name (see `file_name`), strings, and dtypes that NumPy does not have (see
    `to_file_dtype`).

    Raises
    ------
    RelvmArgumentError
        Two names map to the same name in the file, or a string ends with a NUL character, which NumPy's string arrays
        would drop.
    OSError
        The file cannot be written; an existing file is unchanged.
    """
    stored = {file_name(name): to_file_dtype(_to_numpy_strings(name, array)) for name, array in arrays.items()}
    if len(stored) < len(arrays):
        raise RelvmArgumentError(f"two outputs map to the same name in the file: {', '.join(arrays)}; rename one")
    with complete_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in stored.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


@contextmanager
def translate_numpy_errors(message_prefix: str) -> Iterator[None]:
    """A context manager that translates the exceptions that NumPy raises when it reads a .npy or .npz file.

    For damaged files, NumPy raises a dozen different classes of exceptions, such as TokenError, OverflowError and
    zlib.error.  OSError and RelvmError are not translated.

    Raises
    ------
    RelvmFormatError
        The file is invalid.  The message begins with `message_prefix`, followed by the reason.
    RelvmMemoryError
        The file declares more elements than fit in memory.
    """
    try:
        yield
    except (OSError, RelvmError):
        raise
    except MemoryError as error:
        raise RelvmMemoryError(f"{message_prefix}, or too large: {error}") from None
    except Exception as error:
        reason = str(error).partition(". ")[0]  # the rest explains how to load objects, which is unsafe
        raise RelvmFormatError(f"{message_prefix}: {reason}") from None


def read_members(archive: Any, path: os.PathLike) -> dict[str, Any]:
    """Return the contents of a .npz archive that np.load has opened, by member name.

    Arrays are returned as arrays, and other files as bytes.

    path: the path of the archive, for messages.

    Raises
    ------
    RelvmFormatError
        The archive may be a zip bomb: its members would unpack to more than 1 GB and to more than 16 times their
        compressed size.
    """
    size, stored = (
        sum(getattr(each, name) for each in archive.zip.infolist()) for name in ("file_size", "compress_size")
    )
    if is_sparse(size, stored):
        raise RelvmFormatError(
            f"{path}: the archive of {stored:,} bytes unpacks to {size:,}, which is rejected as a possible zip bomb;"
            " save it uncompressed with np.savez"
        )
    return dict(archive)


def to_file_dtype(array: np.ndarray) -> np.ndarray:
    """Return an array in a form that NumPy can write to a file.

    If the dtype is not one of NumPy's own, the elements become raw bytes of dtype V1 or V2.
    """
    return array if _is_numpy_dtype(array.dtype) else array.view(f"V{array.dtype.itemsize}")


def restore_dtype(array: np.ndarray, type_text: str) -> np.ndarray:
    """Reverse `to_file_dtype`: restore the dtype of an array that was read from a file.

    type_text: the type of the parameter for which the array is read, as in a signature.
    """
    number = tensor_dtype_row(type_text)
    if array.dtype.kind != "V" or number is None:
        return array
    dtype = numpy_dtype(number)
    fits = not _is_numpy_dtype(dtype) and array.dtype == np.dtype(f"V{dtype.itemsize}")
    return array.view(dtype) if fits else array


def _is_numpy_dtype(dtype: np.dtype) -> bool:
    return dtype.type.__module__ == "numpy"


def _to_numpy_strings(name: str, array: np.ndarray) -> np.ndarray:
    """Convert an array of str objects to NumPy's own string dtype.  Return other arrays unchanged."""
    if array.dtype != STRINGS:
        return array
    stored = array.astype(str)
    if not np.array_equal(stored.astype(STRINGS), array):
        raise RelvmArgumentError(f"output {name}: cannot save a string that ends with a NUL character")
    return stored


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, tuple):
        return [(name, value)]
    return [leaf for i, item in enumerate(value) for leaf in _leaves(f"{name}.{i}", item)]


def _as_array(name: str, value: Any) -> np.ndarray:
    if not isinstance(value, Tensor | np.ndarray | bool | int | float):
        raise RelvmArgumentError(f"output {name}: expected a tensor or a number, got {type(value).__name__}")
    return np.asarray(value)
