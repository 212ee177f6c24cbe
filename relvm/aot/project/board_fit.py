"""The memory that an export takes on a board, and the check that the board has enough."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from relvm.aot.boards import Board
from relvm.aot.metadata_model import Metadata, TensorInfo
from relvm.data_classes import value_record
from relvm.errors import RelvmMemoryError
from relvm.ir.dtypes import ALL_DTYPES

LEVEL = "-Os"  # the optimization level of exports for boards
# Options that the sources of an export need, and those with which a linker can remove unused functions.
NEEDED = ("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
SECTIONS = ("-ffunction-sections", "-fdata-sections")


@value_record
class BoardMemory:
    """The memory that an export takes on a board.

    Attributes
    ----------
    constants_bytes
        The size of the constants.
    code_bytes
        The size of the compiled functions without those of the C library, or None if it was not measured.
    pool_bytes
        The size of the memory pools.
    port_bytes
        The size of the inputs and outputs whose sizes are known.
    unknown_ports
        The names of the other inputs and outputs.
    """

    constants_bytes: int
    code_bytes: int | None
    pool_bytes: int
    port_bytes: int
    unknown_ports: tuple[str, ...] = ()

    @property
    def flash_bytes(self) -> int:
        """The size of the constants and, if it was measured, of the code."""
        return self.constants_bytes + (self.code_bytes or 0)

    @property
    def ram_bytes(self) -> int:
        """The size of the pools, inputs and outputs, without the stack."""
        return self.pool_bytes + self.port_bytes

    def describe(self, board: Board) -> str:
        """Return a line with the flash and RAM that the export takes, and those that the board has."""
        code = "code not measured" if self.code_bytes is None else f"code {self.code_bytes:,}"
        names = ", ".join(self.unknown_ports)
        unknown = f"; not counted, because sizes vary: {names}" if names else ""
        return (
            f"{board.title}: flash {self.flash_bytes:,} of {board.flash_bytes:,} bytes (constants "
            f"{self.constants_bytes:,}, {code}), RAM {self.ram_bytes:,} of {board.ram_bytes:,} bytes (pools "
            f"{self.pool_bytes:,}, inputs and outputs {self.port_bytes:,}{unknown})"
        )


def board_memory(
    metadata: Metadata, constants_bytes: int, pool_bytes: Sequence[int], code_bytes: int | None = None
) -> BoardMemory:
    """Return the memory that an export takes.   pool_bytes: the size of each pool."""
    sizes = {port.name: _port_bytes(port) for port in (*metadata.inputs, *metadata.outputs)}
    known = sum(size for size in sizes.values() if size is not None)
    unknown = tuple(name for name, size in sizes.items() if size is None)
    return BoardMemory(constants_bytes, code_bytes, sum(pool_bytes), known, unknown)


def _port_bytes(port: TensorInfo) -> int | None:
    """Return the size of an input or output, or None if it varies."""
    sizes = [dim for dim in port.shape if isinstance(dim, int)]
    return math.prod(sizes) * ALL_DTYPES[port.dtype].size_bytes if len(sizes) == len(port.shape) else None


def expect_fit(memory: BoardMemory, board: Board) -> None:
    """Raise RelvmMemoryError if an export does not fit on a board."""
    if memory.flash_bytes > board.flash_bytes:
        code = "" if memory.code_bytes is None else f", {memory.code_bytes:,} for code"
        parts = f"{memory.constants_bytes:,} for constants{code}"
        raise RelvmMemoryError(
            f"board {board.name}: the model needs {memory.flash_bytes:,} bytes of flash ({parts}), but {board.title} "
            f"has {board.flash_bytes:,}; quantize the model (`relvm quantize`) or choose a board with more flash "
            "(`relvm boards`)"
        )
    if memory.ram_bytes > board.ram_bytes:
        parts = f"{memory.pool_bytes:,} for pools, {memory.port_bytes:,} for inputs and outputs"
        raise RelvmMemoryError(
            f"board {board.name}: the model needs {memory.ram_bytes:,} bytes of RAM ({parts}), but {board.title} "
            f"has {board.ram_bytes:,}; quantize the model (`relvm quantize`), make its inputs smaller (`--dim`), or "
            "choose a board with more RAM (`relvm boards`)"
        )


def compiler_options(board: Board) -> tuple[str, ...]:
    """Return the options of the C compiler for an export for a board."""
    return (LEVEL, *board.flags, *NEEDED, *SECTIONS)


def measure_code(files: Mapping[str, str], constants: str, board: Board) -> int | None:
    """Compile an export for a board, and return the size of its code in bytes.

    The code includes constants of the functions, such as coefficients, but no functions of the C library.

    files: the text of each file of the export, by path.
    constants: the path of the source with the constants, which is not measured.
    Return None if the tools of the board are not installed, or cannot compile the export.
    """
    compiler, size = (shutil.which(f"{board.tools}{tool}") for tool in ("gcc", "size"))
    if compiler is None or size is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        units = [path for path in files if path.endswith(".c") and path not in (constants, "test/main.c")]
        command = [compiler, "-std=gnu11", *compiler_options(board), "-Iinclude", "-Isrc", "-c", *units]
        if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
            return None
        objects = [Path(unit).stem + ".o" for unit in units]
        done = subprocess.run([size, *objects], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    return None if done.returncode else sum(int(line.split()[0]) for line in done.stdout.splitlines()[1:])
