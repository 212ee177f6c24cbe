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
    """An error of relvm as the result of a task.

    The task returns the error instead of raising it, so that Dask does not run the task again, which would fail again.

    error: the exception.   of_batch: whether the error concerns only this batch.  If not, the worker cannot run any
    batch.
    """

    error: RelvmError
    of_batch: bool


def hand_on(runner: Runner) -> Runner:
    """Return the runner, as a task on which the tasks of all batches depend.

    Because of this dependency, Dask copies the runner from worker to worker.  If no worker has the runner any more, the
    scheduler repeats this task.
    """
    return runner


def run_batch(runner: Runner, batch: Batch | FileBatch, output: Output | None, *computed: Any) -> Any:
    """Run the function on a batch, and return the result.  Return a Failure if relvm raises an error.

    output: the file to which to write the result.  The function then returns None.  If `output` is None, it returns the
    result.   computed: the values of the arguments of the batch that Dask has computed.
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
