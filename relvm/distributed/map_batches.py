"""`map_batches` and `map_files`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm.distributed.batch import Batch, FileBatch, batches_of, files_of
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
    """Run a function on batches, on the workers of a Dask cluster; results come one by one, in the batches' order.

    A batch is taken from `batches` when there is room for it, and runs on any worker.  A worker that dies costs that
    its batches are run again.  Errors of relvm are not tried again, since they would come again.

    Parameters
    ----------
    executable
        Sent to the cluster once; a worker has it from another one.
    batches
        An iterable of which each item is an array, a tuple of arguments, a dict of arguments by parameter, a `Batch`,
        or the path (a pathlib.Path) of a .npy or .npz file; the values are sent through the scheduler.  A folder of
        .npy and .npz files, or a pattern such as ``in/*.npy``: workers read them.  An array of Dask, or a dict of such
        by parameter: each block along the first axis is a batch, and is computed by the workers.
    client
        None: the client of Dask that was made last.
    function
        Which of the executable's functions.
    ahead
        The most batches that are taken and whose results are not given yet: what bounds the memory.  None: two for each
        thread of the workers.
    retries
        How often a batch is run again after an error that is not relvm's.  How many workers may die of one is the
        scheduler's setting, distributed.scheduler.allowed-failures.
    on_error
        "raise": the first batch that fails ends the run.  "return": its error stands in the place of its result.
    progress
        Whether to show a bar on standard error, where that is a terminal; needs rich.
    **options
        Of `Runner`: trust_native, functions, num_threads, max_bytes, max_steps, max_seconds.

    Yields
    ------
    Any
        For each batch what the function gives, with NumPy arrays for tensors; or a RelvmBatchError.

    Raises
    ------
    RelvmBatchError
        A batch failed: by an error of relvm, by another one at each of its tries, or because workers died of it.  It
        names the batch, and its `__cause__` is what happened.
    RelvmUnsupportedError
        Dask is not installed; a worker does not trust the executable's native code, or has not the processor for it.
    RelvmTypeError, RelvmArgumentError, RelvmNameError, RelvmShapeError
        Arguments that do not fit; said by the call, before anything runs.
    RelvmInterrupted
        The cluster has gone, the client was closed, or the run was cancelled.
    Exception
        What `batches` raises, behind the results of the batches before it.

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
    found = batches_of(batches)
    step = progress_bar(found.count, shown=progress)
    return _results(stream, found.each, step, raises=on_error == "raise")


def _results(stream: Stream, batches: Iterator[Batch | FileBatch], bar: Any, *, raises: bool) -> Iterator[Any]:
    with bar as step, closing(stream.outcomes(batches)) as outcomes:
        for outcome in outcomes:
            step()
            if outcome.error and raises:
                raise outcome.error
            yield outcome.error or outcome.result


@dataclass(frozen=True)
class MappedFile:
    """What became of an input file.

    Attributes
    ----------
    source
        The input.
    output
        The .npz file with each output under its name; complete where `error` is None.
    error
        Why it is not there.
    skipped
        Whether an earlier run has written it.
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

    Workers read and write, so all of them have to see both folders.  An output appears when it is complete, and one
    that is there is not made again: the same call goes on where an earlier one ended.  Whether the inputs have changed
    since is not looked at.  Nothing runs before the first item is asked for.

    Parameters
    ----------
    executable, client, function, ahead, retries, progress
        As for `map_batches`.
    inputs
        A folder, a pattern such as ``in/*.npy``, or one file.
    out
        The folder of the outputs: `a.npy` becomes `a.npz`.  It is made where it is not there, and belongs to this
        function of this executable: a file in it, relvm-map.json, says so.
    overwrite
        Whether to remove the .npz files of `out` first, if it is such a folder.
    **options
        Of `Runner`, as for `map_batches`.

    Yields
    ------
    MappedFile
        For each input, in the order of their paths.  Files that fail do not end the run.

    Raises
    ------
    RelvmArgumentError
        No inputs, or two that would have one output; `out` has outputs of something else.
    RelvmError
        As `map_batches`, but for errors of a batch.
    """
    runner = Runner(executable, function, **options)
    stream = Stream(client, runner, ahead=ahead, retries=retries)
    sources = files_of(inputs)
    folder = OutputFolder(out, runner)
    outputs = folder.outputs(sources)
    folder.claim(overwrite=overwrite)
    there = folder.there()
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
