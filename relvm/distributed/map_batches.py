"""Functions that apply a function of an executable to many batches or files, on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.data_classes import dataclass
from relvm.distributed.batch import Batch, FileBatch, find_array_files, make_batches
from relvm.distributed.output_dir import Output, OutputFolder
from relvm.distributed.progress import progress_bar
from relvm.distributed.runner import Runner
from relvm.distributed.scheduler import Stream
from relvm.errors import RelvmBatchError, expect_choice
from relvm.vm import Executable

if TYPE_CHECKING:
    from distributed import Client


def map_batches(
    executable: Executable,
    batches: Iterable[Any] | Mapping[str, Any] | str | os.PathLike,
    *,
    client: Client | None = None,
    function: str = "main",
    ahead: int | None = None,
    retries: int = 2,
    on_error: str = "raise",
    progress: bool = False,
    **options: Any,
) -> Iterator[Any]:
    """Run a function on batches, on the workers of a Dask cluster, and yield the results in the order of the batches.

    Batches are taken from `batches` one after another, at most `ahead` in advance, and each runs on any worker.  If a
    worker dies, its batches run again.  A batch that fails with an error of relvm does not run again, because the error
    would repeat.

    Parameters
    ----------
    executable
        The executable.  It is sent to the cluster once, and workers pass it on to each other.
    batches
        An iterable, files or Dask arrays.  The items of an iterable are arrays, tuples of arguments, dicts of arguments
        by parameter, or `Batch` objects.  Their values are sent through the scheduler.  An item can also be the path
        (pathlib.Path) of a .npy or .npz file.  Several files are given by the path of their folder, or by a pattern
        such as ``in/*.npy``.  Workers read the files.  Dask arrays are given as one array, or as a dict of arrays by
        parameter.  Each block along the first axis is a batch, and workers compute it.
    client
        The Dask client, or None for the most recently created client.
    function
        The name of a function of the executable.
    ahead
        The maximum number of batches that have been taken from `batches` while their results have not been yielded.
        This limits the memory use.  The default is two for each thread of the workers.
    retries
        How often a batch runs again after an error that is not an error of relvm.  The setting
        distributed.scheduler.allowed-failures of the scheduler limits how many workers may die while running a batch.
    on_error
        "raise": the first batch that fails ends the run.  "return": the error of a batch is yielded in place of its
        result.
    progress
        Whether to show a progress bar if standard error is a terminal.  Requires rich.
    **options
        The options of `Runner`: trust_native, functions, num_threads, max_bytes, max_steps, max_seconds.

    Yields
    ------
    Any
        For each batch, the result of the function, with NumPy arrays for tensors, or a RelvmBatchError.

    Raises
    ------
    RelvmBatchError
        A batch failed: with an error of relvm, with another error in every attempt, or because workers died.  The error
        contains the name of the batch, and `__cause__` is the original error.
    RelvmUnsupportedError
        Dask is not installed, or a worker does not trust the native code of the executable or cannot run it.
    RelvmTypeError, RelvmArgumentError, RelvmNameError, RelvmShapeError
        The arguments are invalid.  These errors are raised before anything runs.
    RelvmInterrupted
        The cluster was lost, the client was closed, or the run was cancelled.
    Exception
        Iterating over `batches` raised an exception.  It is raised after the results of the preceding batches.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from relvm import vm
    >>> from relvm.distributed import map_batches
    >>> from relvm.frontend.text import parse_module
    >>> executable = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = add(x, x)"), target="numpy")
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     list(map_batches(executable, [np.float32([1]), np.float32([2, 3])], client=client))
    [array([2.], dtype=float32), array([4., 6.], dtype=float32)]
    """
    expect_choice("on_error", on_error, ("raise", "return"))
    stream = Stream(client, Runner(executable, function, **options), ahead=ahead, retries=retries)
    found = make_batches(batches)
    step = progress_bar(found.count, shown=progress)
    return _results(stream, found.iterator, step, raises=on_error == "raise")


def _results(stream: Stream, batches: Iterator[Batch | FileBatch], bar: Any, *, raises: bool) -> Iterator[Any]:
    with bar as step, closing(stream.outcomes(batches)) as outcomes:
        for outcome in outcomes:
            step()
            if outcome.error and raises:
                raise outcome.error
            yield outcome.error or outcome.result


@dataclass(frozen=True)
class MappedFile:
    """The outcome for one input file of `map_files`.

    Attributes
    ----------
    source
        The input file.
    output
        The .npz file with the outputs of the function, each under its name.  The file exists and is complete if `error`
        is None.
    error
        The error, or None.
    skipped
        Whether the function did not run, because the output file already existed from an earlier run.
    """

    source: Path
    output: Path
    error: RelvmBatchError | None = None
    skipped: bool = False


def map_files(
    executable: Executable,
    inputs: str | os.PathLike,
    out: str | os.PathLike,
    *,
    client: Client | None = None,
    function: str = "main",
    overwrite: bool = False,
    ahead: int | None = None,
    retries: int = 2,
    progress: bool = False,
    **options: Any,
) -> Iterator[MappedFile]:
    """Run a function on .npy and .npz files and write a .npz file for each, on the workers of a Dask cluster.

    Workers read and write the files, so all workers need access to both folders.  Outputs are written atomically, and
    existing outputs are not computed again.  The same call therefore resumes an interrupted run.  It does not check
    whether the inputs have changed since then.  Nothing runs before the first item is requested.

    Parameters
    ----------
    executable
        The executable, which is sent to the cluster once.
    client
        The Dask client, or None for the most recently created client.
    function
        The name of a function of the executable.
    ahead
        The maximum number of files that have been submitted while their outcomes have not been yielded.  The default is
        two for each thread of the workers.
    retries
        How often a file is tried again after an error that is not an error of relvm.
    progress
        Whether to show a progress bar if standard error is a terminal.  Requires rich.
    inputs
        A folder, a pattern such as ``in/*.npy``, or one file.
    out
        The folder for outputs: the output for `a.npy` is `a.npz`.  The folder is created if necessary.  Its file
        relvm-map.json records the executable and the function.  A later call that uses the folder with another
        executable or function raises RelvmArgumentError, unless `overwrite` is set.
    overwrite
        Whether to first remove the .npz files of `out`, if the folder contains a file relvm-map.json.
    **options
        The options of `Runner`: trust_native, functions, num_threads, max_bytes, max_steps, max_seconds.

    Yields
    ------
    MappedFile
        The outcome for each input, in the order of paths.  A file that fails does not end the run.

    Raises
    ------
    RelvmArgumentError
        There are no inputs, two inputs have the same output, or `out` contains outputs of another function.
    RelvmUnsupportedError
        Dask is not installed, or a worker does not trust the native code of the executable or cannot run it.
    RelvmTypeError, RelvmArgumentError, RelvmNameError
        An argument is invalid.
    RelvmInterrupted
        The cluster was lost, the client was closed, or the run was cancelled.
    """
    runner = Runner(executable, function, **options)
    stream = Stream(client, runner, ahead=ahead, retries=retries)
    sources = find_array_files(inputs)
    folder = OutputFolder(out, runner)
    outputs = folder.outputs(sources)
    folder.claim(overwrite=overwrite)
    there = folder.existing_files()
    return _mapped(stream, sources, outputs, there, progress_bar(len(sources), shown=progress))


def _mapped(
    stream: Stream, sources: list[Path], outputs: dict[Path, Output], there: set[Path], bar: Any
) -> Iterator[MappedFile]:
    missing = (FileBatch(source) for source in sources if outputs[source].path not in there)
    with bar as step, closing(stream.outcomes(missing, lambda batch: outputs[batch.path])) as outcomes:
        for source in sources:
            target = outputs[source].path
            skipped = target in there
            error = None if skipped else next(outcomes).error
            step()
            yield MappedFile(source, target, error, skipped)
