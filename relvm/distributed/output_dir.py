"""Output folders of `map_files`.  A record in each folder identifies the executable and function that wrote the
outputs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relvm.data_classes import dataclass
from relvm.distributed.runner import Runner
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.runtime.array_files import save_arrays
from relvm.runtime.file_io import complete_file, read_text

RECORD = "relvm-map.json"
_VERSION = 1


@dataclass(frozen=True)
class Output:
    """An output file that a worker writes.

    path: the path of the file.
    record: the content that the record file in the folder must have.  `write` checks it, so that outputs of different
    functions or executables are not mixed.
    """

    path: Path
    record: str

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write `arrays` atomically to this output file.

        Raises
        ------
        RelvmArgumentError
            The output folder does not exist on this machine, or the folder belongs to a run of another executable or
            function.
        OSError
            The file cannot be written.
        """
        folder = self.path.parent
        try:
            found = read_text(folder / RECORD)
        except FileNotFoundError:
            raise RelvmArgumentError(
                f"the output folder {folder} does not exist on {platform.node()}, where a worker runs;"
                " choose a folder that all workers share"
            ) from None
        if found != self.record:
            raise RelvmArgumentError(
                f"{folder} belongs to a run of another executable or function; choose another folder"
            )
        save_arrays(self.path, arrays)


class OutputFolder:
    """A folder for the outputs of one function of one executable.

    A record file in the folder identifies the function and the executable.  Existing outputs are complete, because
    outputs are written atomically.

    path: the path of the folder, which need not exist.
    runner: the runner that computes the outputs.
    """

    def __init__(self, path: str | os.PathLike, runner: Runner) -> None:
        self.path = Path(path).absolute()
        self._known: dict[str, Any] = {"relvm-map": _VERSION, "executable": runner.digest, "function": runner.function}
        self._record = json.dumps(self._known, indent=1) + "\n"

    def claim(self, *, overwrite: bool) -> None:
        """Claim the folder for the runner: create it if necessary, and write the record.

        Parameters
        ----------
        overwrite
            Whether to remove all .npz files from a folder that has a record, and to replace the record.

        Raises
        ------
        RelvmArgumentError
            The folder contains outputs of another executable or function, or files but no record.
        RelvmFormatError
            The record is malformed.
        OSError
            The folder cannot be read or written.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        found = self._read_record()
        if found == self._known and not overwrite:
            return
        if found and not overwrite:
            other, own = (
                f"function {e['function']} of executable {e['executable'][:12]}" for e in (found, self._known)
            )
            raise RelvmArgumentError(
                f"{self.path} contains the outputs of {other}, but this run would write those of {own};"
                " choose another folder, or pass --overwrite (overwrite=True)"
            )
        if found:  # removed before the record changes, so that outputs and record always agree
            for file in self.path.glob("*.npz"):
                file.unlink()
        with complete_file(self.path / RECORD) as partial:
            partial.write_text(self._record, encoding="utf-8")

    def outputs(self, inputs: Iterable[Path]) -> dict[Path, Output]:
        """Return the output for each input file: a file of the same name with the suffix .npz.

        Raise RelvmArgumentError if two inputs have the same output, or an input is in this folder.
        """
        found: dict[Path, Output] = {}
        sources: dict[Path, Path] = {}
        for source in inputs:
            target = self.path / f"{source.stem}.npz"
            if target in sources:
                raise RelvmArgumentError(f"{sources[target]} and {source} have the same output, {target}; rename one")
            if os.path.realpath(source.parent) == os.path.realpath(self.path):
                raise RelvmArgumentError(f"{source} is in the output folder; choose another folder")
            sources[target] = source
            found[source] = Output(target, self._record)
        return found

    def existing_files(self) -> set[Path]:
        return {path for path in self.path.iterdir() if path.is_file()}

    def _read_record(self) -> dict[str, Any] | None:
        """Read the record in the folder.  Return None if there is no record and the folder is empty.

        Temporary files that killed processes have left are ignored.
        """
        place = self.path / RECORD
        try:
            found = json.loads(read_text(place))
        except FileNotFoundError:
            others = [each.name for each in self.path.iterdir() if not each.name.endswith(".part")]
            if others:
                what = f"contains {others[0]} but no {RECORD}"
                raise RelvmArgumentError(f"{self.path} {what}: expected an empty folder or an output folder") from None
            return None
        except (ValueError, RecursionError) as error:
            raise RelvmFormatError(f"{place} is not a valid record of outputs: {error}") from None
        match found:
            case {"relvm-map": version, "executable": str(), "function": str()} if version == _VERSION:
                return found
        raise RelvmFormatError(f"{place} is not a valid record of outputs, or is of another version of relvm")
