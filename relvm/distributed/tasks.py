"""Functions that Dask runs on a worker."""

from __future__ import annotations

from typing import Any

from relvm.data_classes import dataclass
from relvm.distributed.batch import Batch, FileBatch, load_arguments
from relvm.distributed.output_dir import Output
from relvm.distributed.runner import Runner, machine_of
from relvm.errors import RelvmError
from relvm.runtime.array_files import named_outputs


@dataclass(frozen=True)
class Failure:
    """An error of relvm as the result of a task.

    The task returns the error instead of raising it.  Otherwise, Dask would run the task again, and it would fail
    again.

    error: the exception.
    is_batch_error: whether the error concerns only this batch.  If not, the worker cannot run any batch.
    """

    error: RelvmError
    is_batch_error: bool


def share_runner(runner: Runner) -> Runner:
    """Return `runner`.

    Dask runs this function as a task on which the tasks of all batches depend.  Because of this dependency, Dask copies
    the runner from worker to worker.  If no worker has the runner any more, the scheduler repeats this task.
    """
    return runner


def run_batch(runner: Runner, batch: Batch | FileBatch, output: Output | None, *computed: Any) -> Any:
    """Run the function of `runner` on a batch, and return the result.  Return a Failure if relvm raises an error.

    output: the file to which to write the result, or None to return the result.  If there is a file, return None.
    computed: the values of the arguments of the batch that Dask has computed.
    """
    try:
        with machine_of(runner):
            pass
    except RelvmError as error:
        return Failure(error.with_traceback(None), is_batch_error=False)
    try:
        arguments, named = load_arguments(batch, computed, runner.signature)
        result = runner(*arguments, **named)
        if output is None:
            return result
        output.write(named_outputs(result, runner.signature.outputs))
        return None
    except RelvmError as error:
        return Failure(error.with_traceback(None), is_batch_error=True)
