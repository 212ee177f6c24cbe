"""Reading of StableHLO programs: the text form, a portable artifact or an export of JAX, recognized by the content."""

from __future__ import annotations

import os
from pathlib import Path

from relvm.errors import RelvmFormatError, RelvmUnsupportedError, expect_type
from relvm.frontend.stablehlo.program import Program
from relvm.frontend.stablehlo_file import BYTECODE_MAGIC, exported_artifact, exported_platforms
from relvm.runtime.file_io import read_buffer


def read_program(model: str | os.PathLike[str] | bytes | bytearray | memoryview, name: str = "model") -> Program:
    """Return the program in a file or in memory.   The arguments and errors are those of `from_stablehlo`."""
    if isinstance(model, bytes | bytearray | memoryview):
        data, place = bytes(model), name
    else:
        expect_type("from_stablehlo: model", model, (str, os.PathLike), "a path or bytes")
        data, place = bytes(read_buffer(Path(model))), str(model)
    artifact = exported_artifact(data)
    platform = None if artifact is None else _platform_index(data, place)
    data = data if artifact is None else data[artifact]
    if data[:4] == BYTECODE_MAGIC:
        from relvm.frontend.stablehlo.bytecode_reader import read_bytecode

        program = read_bytecode(data, place)
        program.platform_index = platform
        return program
    from relvm.frontend.stablehlo.text_reader import read_text

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RelvmFormatError(
            f"{place}: expected a StableHLO program: MLIR text in UTF-8, a portable artifact, which begins with"
            f" ML\\xefR, or what jax.export serializes (byte {error.start} is none of these)"
        ) from None
    return read_text(text, place)


def _platform_index(data: bytes, place: str) -> int | None:
    """Return the index of CPUs among the platforms of an export of JAX, or None if there is only one platform."""
    try:
        platforms = exported_platforms(data)
    except ValueError as error:
        raise RelvmFormatError(f"{place}: the export of JAX is damaged: {error}") from None
    if len(platforms) < 2:
        return None
    if "cpu" not in platforms:
        raise RelvmUnsupportedError(
            f"{place}: the program was exported for the platforms {', '.join(platforms)}; export it for cpu, too"
        )
    return platforms.index("cpu")
