"""The bytes of ONNX models and of their external data files, and a digest of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from relvm.data_classes import record
from relvm.errors import RelvmError, RelvmFormatError
from relvm.frontend.onnx_messages import CheckedModel, Message, check_model
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.frontend.torch_file import is_exported_program
from relvm.runtime.file_io import open_beneath, read_buffer

_BLOCK_BYTES = 4 << 20  # the part of a file that one thread hashes at a time


@record
class OnnxSource:
    """The bytes of an ONNX model and of its external data files.  Each file is read only once.

    Attributes
    ----------
    place
        The model's name in messages: its path, or "model" for bytes.
    content
        The bytes of the model.
    model
        The ModelProto, whose messages are read from `content`.
    folder
        The folder of the external data files: that of the model, or None if the model was given as bytes.
    digest
        A digest of the model and of its external data files, as a key of the build cache.  It is "" if these files
        cannot be read or are outside of `folder`, or if `folder` is None.  A model without external data always has a
        digest.
    files
        The bytes of each external data file, by path.  Empty if `digest` is "".
    """

    place: str
    content: memoryview
    model: Message
    folder: Path | None
    digest: str
    files: dict[Path, memoryview]


def is_onnx(model: object) -> bool:
    """Return whether a model is the path of an .onnx file, or an ONNX model in memory."""
    if isinstance(model, str | os.PathLike):
        return Path(model).suffix == ".onnx"
    return not is_stablehlo(model) and not is_exported_program(model)


def read_source(model: bytes | str | os.PathLike[str]) -> OnnxSource:
    """Read a model from a path or the bytes of a file, and check that it is well-formed.

    Raises
    ------
    OSError
        The file of the model cannot be read.
    RelvmFormatError
        The file or the bytes are not a model.
    RelvmUnsupportedError
        The file exceeds a limit of the reader (`relvm.frontend.onnx_messages.OnnxLimits`).
    """
    folder: Path | None = None
    if isinstance(model, bytes):
        place, content = "model", memoryview(model)
    else:
        place, content, folder = str(model), read_buffer(model), Path(model).parent
    try:
        checked = check_model(content, place)
    except RelvmFormatError as error:
        if folder is not None:
            raise
        raise RelvmFormatError(
            f"{error}; the bytes are also no portable artifact of StableHLO, no export of JAX and no .pt2 file, unless"
            " they are damaged"
        ) from error
    return OnnxSource(place, content, checked.model, folder, *_digest(content, checked, folder))


def _digest(content: memoryview, checked: CheckedModel, folder: Path | None) -> tuple[str, dict[Path, memoryview]]:
    """Return the digest of a model with its external data files, and the bytes of each of these files, by path.

    The digest is "" and the dict is empty if an external data file cannot be read or is outside of `folder`.  This is
    also the result if there are external data files, but `folder` is None.

    content: the bytes of the model.
    folder: the folder of the external data files, or None.
    """
    digest = content_digest(content)
    files: dict[Path, memoryview] = {}
    names = external_files(checked)
    if not names:
        return digest, files
    if folder is None or not all(isinstance(name, str) for name in names):
        return "", {}
    try:
        for name in names:
            digest += f" {name!r} {content_digest(read_external(folder, name, files))}"
    except (OSError, RelvmError, ValueError):
        return "", {}
    return digest, files


def content_digest(content: bytes | memoryview) -> str:
    """Return a digest of a file's bytes.

    It is the SHA-256 of the SHA-256 digests of blocks of 4 MB, in hexadecimal.  If possible, several threads hash the
    blocks.
    """
    whole = memoryview(content)
    blocks = [whole[start : start + _BLOCK_BYTES] for start in range(0, len(whole), _BLOCK_BYTES)]
    digests: Iterable[bytes] = map(_sha256, blocks)
    if len(blocks) > 1:
        # No thread can be started while the interpreter exits, and concurrent.futures cannot even be imported.
        with contextlib.suppress(RuntimeError):
            from concurrent.futures import ThreadPoolExecutor  # imported only for large models, to save time

            with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as pool:
                digests = list(pool.map(_sha256, blocks))
    return _sha256(b"".join(digests)).hex()


def _sha256(block: bytes | memoryview) -> bytes:
    return sha256(block).digest()


def external_files(checked: CheckedModel) -> list[Any]:
    """Return the names of the external data files to which a model refers, in alphabetical order.

    A name that is not UTF-8 is a bytes object.
    """
    return sorted({value for key, value in checked.external if key == "location"}, key=repr)


def read_external(folder: Path, name: str, files: dict[Path, memoryview]) -> memoryview:
    """Return the bytes of the external data file `name` of a model.

    folder: the folder of the model, which must contain the file.
    files: the bytes of the files that were already read, by path.  The new file is added.

    Raises
    ------
    ValueError
        The file is outside the folder.
    OSError, RelvmFormatError
        The file cannot be read.
    """
    with open_beneath(folder, name) as (path, opened):
        if (place := Path(path)) not in files:
            files[place] = read_buffer(opened, path)
        return files[place]
