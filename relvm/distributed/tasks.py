"""The functions that Dask runs on a worker."""

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
    """An error of relvm, which trying again would only repeat: it comes back as a value, so that Dask does not.

    error: what was raised.  of_batch: whether of this batch; False: no batch can run on the worker.
    """

    error: RelvmError
    of_batch: bool


def hand_on(runner: Runner) -> Runner:
    """The task whose result all others take.  A worker gets it from another one that has it; where all that had it are
    gone, the scheduler, which has the task, has it made again."""
    return runner


def run_batch(runner: Runner, batch: Batch | FileBatch, output: Output | None, *computed: Any) -> Any:
    """What the function gives for a batch, or None where it goes to a file; a Failure where relvm refuses it.

    computed: results of Dask that belong in the batch.
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
