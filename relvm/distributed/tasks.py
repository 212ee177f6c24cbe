"""Functions that Dask runs on a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relvm.distributed.batch import Batch, FileBatch, arguments_of
from relvm.distributed.output_dir import Output
from relvm.distributed.runner import Runner, machine_of
from relvm.errors import RelvmError
from relvm.runtime.array_files import named_outputs


@dataclass(frozen=True)
class Failure:
    """An error of relvm.  It is returned as a value, so that Dask does not retry the task, which would fail again.

    error: the exception.   of_batch: whether it concerns this batch only; otherwise no batch can run on the worker.
    """

    error: RelvmError
    of_batch: bool


def hand_on(runner: Runner) -> Runner:
    """Return the runner.  All other tasks depend on this one: a worker gets the runner from another worker, and if
    none has it any more, the scheduler repeats this task."""
    return runner


def run_batch(runner: Runner, batch: Batch | FileBatch, output: Output | None, *computed: Any) -> Any:
    """Run the function on a batch.  Return its result, None if it is written to a file, or a Failure if relvm raises an
    error.

    computed: the results of Dask that belong to the batch.
    """
    try:
        with machine_of(runner):
            pass
    except RelvmError as error:
        return Failure(error.with_traceback(None), of_batch=False)
    try:
        arguments, named = arguments_of(batch, computed, runner.signature)
        result = runner(*arguments, **named)
        if output is None:
            return result
        output.write(named_outputs(result, runner.signature.outputs))
        return None
    except RelvmError as error:
        return Failure(error.with_traceback(None), of_batch=True)
