"""Ahead-of-time compilation: converts a module to the files of an export, such as C sources."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relvm.aot.c.sources import Sources, print_sources
from relvm.aot.config import AotConfig
from relvm.aot.lower.ir import LoweredModule
from relvm.aot.lower.lower_main import lower_main
from relvm.aot.lower.place_storage import FunctionPlacement, place_storages
from relvm.aot.metadata_model import metadata_json
from relvm.aot.project.board_fit import BoardMemory, board_memory, expect_fit, measure_code
from relvm.aot.project.makefile import print_makefile
from relvm.aot.project.package import package_files
from relvm.aot.project.self_test import make_trial
from relvm.aot.project.self_test_c import print_trial
from relvm.aot.project.tar import is_archive, write_archive
from relvm.data_classes import dataclass
from relvm.display import Displayed, html_table, text_table
from relvm.errors import (
    RelvmArgumentError,
    RelvmTypeError,
    RelvmUnsupportedError,
    expect_name,
    expect_path,
    expect_type,
    file_errors,
)
from relvm.ir.expr import Function, HasModule, Module, expect_module
from relvm.ir.printer import print_module
from relvm.ir.verifier import Stage
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.quoting import terminal
from relvm.runtime.array_files import to_file_dtype
from relvm.runtime.file_io import complete_file


@dataclass(frozen=True, repr=False)
class AotProgram(Displayed):
    """A module compiled ahead of time.

    Attributes
    ----------
    config
        The options of the export.
    module, kernel_module
        `module` is the module that was given to `build`.  `kernel_module` is the same module after compilation to stage
        LOWERED.
    lowered, placements, sources
        The results of `lower_main`, `place_storages` and `print_sources`.
    """

    config: AotConfig
    module: Module
    kernel_module: Module
    lowered: LoweredModule
    placements: dict[str, FunctionPlacement]
    sources: Sources

    def __str__(self) -> str:
        return "\n".join((self._title(), *text_table(self._rows())))

    def _repr_html_(self) -> str:
        return html_table(self._rows(), self._title())

    def _title(self) -> str:
        pools = ", ".join(f"{size:,}" for size in self.sources.pool_bytes) or "no"
        sizes = f"pools of {pools} bytes, constants of {self.sources.constants_bytes:,} bytes"
        return terminal(f"AotProgram {self.config.name}: {sizes}")

    def _rows(self) -> list[tuple[str, str]]:
        return [("file", "lines"), *((name, str(text.count("\n"))) for name, text in self.sources.files.items())]

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The constants, by their names in C."""
        return {f"c{number}": storage.array for number, storage in enumerate(self.sources.constants)}

    @property
    def entry(self) -> Function:
        """The entry function at stage LOWERED."""
        return self.kernel_module[self.lowered.functions[-1].name]

    def board_memory(self, *, measured: bool = False) -> BoardMemory:
        """Return the memory that the export takes on a microcontroller.

        measured: whether to compile the export for its board, to measure the size of the code.
        """
        sources, board = self.sources, self.config.known_board
        code_bytes = None
        if measured and board is not None:
            code_bytes = measure_code(sources.files, f"src/{self.config.name}_constants.c", board)
        return board_memory(sources.metadata, sources.constants_bytes, sources.pool_bytes, code_bytes)

    def files(
        self, trial: tuple[Sequence[Any], Sequence[Any]] | None = None, *, package: str | None = None
    ) -> dict[str, bytes]:
        """Return the files of an export, by path.

        Parameters
        ----------
        trial
            The inputs and expected outputs for `make test`, in the order of the parameters and results of the entry
            function.
        package
            "arduino": the files are an Arduino library.  "platformio": they are a PlatformIO project.  Both require a
            board and a trial.  None: the files are C sources with a Makefile.

        Raises
        ------
        RelvmUnsupportedError
            A trial is given for the hosted runtime, or PlatformIO does not have the board.
        RelvmTypeError, RelvmShapeError, RelvmArgumentError
            The trial does not consist of inputs and outputs, or they do not fit the parameters and results.  The
            package is invalid, or requires other options.
        """
        if trial is not None and (not isinstance(trial, tuple | list) or len(trial) != 2):
            raise RelvmTypeError(f"trial: expected a pair of the inputs and the expected outputs, got {trial!r:.80}")
        if trial and self.config.runtime == "hosted":
            raise RelvmUnsupportedError('runtime="hosted" does not support a self-test in C; run it with AotExecutor')
        if package is not None:
            if trial is None:
                raise RelvmArgumentError(f"package={package!r}: expected a trial for the self-test, got None")
            data = make_trial(self.entry, self.lowered, *trial)
            packed = package_files(package, self.sources.files, self.lowered, data, self.config)
            return {path: text.encode() for path, text in packed.items()}
        texts = dict(self.sources.files)
        texts["Makefile"] = print_makefile(self.config, texts, tests=trial is not None)
        if trial:
            texts["test/main.c"] = print_trial(self.lowered, make_trial(self.entry, self.lowered, *trial), self.config)
        constants = self.sources.constants
        texts["metadata.json"] = metadata_json(self.sources.metadata, self.lowered, self.placements, constants)
        texts[f"{self.config.name}.relvm"] = print_module(self.module, elide_constants=True)
        files = {path: text.encode() for path, text in texts.items()}
        if constants:
            parameters = io.BytesIO()
            arrays: dict[str, Any] = {name: to_file_dtype(array) for name, array in self.params.items()}
            np.savez(parameters, **arrays)
            files["parameters.npz"] = parameters.getvalue()
        return files

    def write(
        self,
        path: str | Path,
        trial: tuple[Sequence[Any], Sequence[Any]] | None = None,
        *,
        package: str | None = None,
    ) -> None:
        """Write the files of the export to a folder or an archive.  Run `make` in the folder to build the export.

        Parameters
        ----------
        path
            The path of an archive if it ends with .tar, otherwise of a folder, which is created if necessary.  Files of
            an earlier export are replaced atomically.
        trial
            The inputs and expected outputs for `make test`, in the order of the parameters and results of the entry
            function.
        package
            The kind of package, as in `files`.

        Raises
        ------
        RelvmTypeError
            `path` is not a path.
        RelvmFileError
            A file or folder cannot be written.
        RelvmUnsupportedError, RelvmShapeError, RelvmArgumentError
            As for `files`.
        """
        expect_path("path", path)
        files = self.files(trial, package=package)
        with file_errors():
            if is_archive(path):
                write_archive(path, self.config.name, files)
                return
            for name, content in files.items():
                file_path = Path(path, name)
                file_path.parent.mkdir(parents=True, exist_ok=True)
                with complete_file(file_path) as partial:
                    partial.write_bytes(content)


def build(
    module: Module | HasModule, config: AotConfig | None = None, *, entry: str = "main", verified: bool = False
) -> AotProgram:
    """Compile a function ahead of time.

    Parameters
    ----------
    module
        A module from a front end, or a function that is decorated by `script`.
    config
        The options of the export, by default `AotConfig()`.
    entry
        The name of the function to export.  The functions that it calls are also exported.
    verified
        Whether to verify the module after every pass.

    Raises
    ------
    RelvmTypeError
        An argument has the wrong type.
    RelvmNameError
        There is no function `entry`.
    RelvmUnsupportedError
        The program needs the VM.  The message contains the location and the reason.
    RelvmMemoryError
        Tensors do not fit into the pools, or the model does not fit on the board.
    """
    module = expect_module("build: module", module)
    expect_name("build: entry", entry)
    config = config or AotConfig()
    expect_type("build: config", config, AotConfig, "an AotConfig")
    passes = build_pipeline("c", favour=config.kernel_favour)
    steps = [step for step in passes if step.to <= Stage.LOWERED]
    kernel_module = run_passes(module, steps, verified=verified)
    lowered = lower_main(kernel_module, config, entry)
    placements = place_storages(lowered, config)
    sources = print_sources(lowered, placements, config, print_module(module, elide_constants=True))
    program = AotProgram(config, module, kernel_module, lowered, placements, sources)
    if config.known_board is not None:
        expect_fit(program.board_memory(), config.known_board)
    return program
