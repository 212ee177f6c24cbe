"""`relvm map`: run a model on many files, in several processes or on a cluster."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from relvm.cli.arguments import MAX_INTEGER, Parser, file_name
from relvm.cli.common_arguments import (
    add_build_limits,
    add_function,
    add_model,
    add_number,
    add_run_limits,
    add_trust_native,
)
from relvm.cli.models import load_or_build, run_limits
from relvm.cli.output import complain, has_progress, note
from relvm.cli.shell_terms import in_shell_terms
from relvm.distributed import map_files
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError, counted
from relvm.system import block_interrupts, processor_count

if TYPE_CHECKING:
    from distributed import Client


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm map model.onnx --inputs 'in/*.npy' -o out"
    add_model(parser)
    add_function(parser)
    parser.add_argument(
        "--inputs",
        required=True,
        type=file_name,
        metavar="FILES",
        help="folder of .npy and .npz files, or a quoted pattern: 'in/*.npy'; an .npz file holds inputs by name",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=file_name,
        metavar="FOLDER",
        help="folder for one .npz file per input; existing files are kept, so an interrupted run can be resumed",
    )
    parser.add_argument("--overwrite", action="store_true", help="delete the .npz files of an earlier run in --output")
    where = parser.add_mutually_exclusive_group()
    add_number(where, "--workers", "processes on this machine (default: one per processor)", most=4096)
    where.add_argument("--scheduler", metavar="ADDRESS", help="use a running Dask cluster: tcp://host:8786")
    add_number(parser, "--threads", "kernel threads of each worker (default: 1)", most=256, default=1)
    add_number(
        parser,
        "--retries",
        "times to retry a file after a lost worker or an error outside of the model (default: 2); with --scheduler the "
        "cluster's own setting counts lost workers",
        least=0,
        most=MAX_INTEGER,
        default=2,
    )
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), help="default: bytecode")
    add_run_limits(parser)
    add_build_limits(parser)
    add_trust_native(parser)


def run(options: argparse.Namespace) -> int:
    """Run a function of a model on files, in processes of this machine or on a cluster.  Return 1 if a file failed."""
    processes = processor_count() if options.workers is None else options.workers
    executable = load_or_build(options)
    written = skipped = failed = 0
    with _client(options.scheduler, processes, options.retries) as client:
        mapped = map_files(
            executable,
            options.inputs,
            options.output,
            client=client,
            function=options.function,
            overwrite=options.overwrite,
            retries=options.retries,
            progress=has_progress(),
            trust_native=options.trust_native,
            num_threads=options.threads,
            **run_limits(options),
        )
        for each in mapped:
            written += each.error is None and not each.skipped
            skipped += each.skipped
            if each.error:
                failed += 1
                complain(in_shell_terms(str(each.error), vars(options)))
    there = f"; {skipped} were there" if skipped else ""
    note(f"wrote {counted(written, 'file')} to {options.output}{there}{f'; {failed} failed' if failed else ''}")
    return 1 if failed else 0


@contextmanager
def _client(scheduler: str | None, processes: int, retries: int) -> Iterator[Client]:
    """Context manager: yield a Dask client of the cluster at address `scheduler`.

    If `scheduler` is None, start a local cluster with `processes` processes, and stop it at the end of the block.
    retries: how often the local cluster repeats a task whose process died.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise RelvmUnsupportedError("relvm map requires Dask; install it with: pip install 'relvm[dask]'") from None
    if scheduler is not None:
        if not scheduler:  # for an empty address, Dask would start a local cluster
            raise RelvmArgumentError("--scheduler '': expected an address such as tcp://host:8786")
        try:
            client = Client(scheduler)
        except ValueError as error:
            raise RelvmArgumentError(f"--scheduler {scheduler}: {error}") from None
        with client:
            yield client
        return
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    # A terminal sends Ctrl-C to all processes, but only this process should handle it, and end the workers.  Workers
    # therefore start with SIGINT blocked, and keep this mask.  In this process, the mask is restored when the cluster
    # exists and can be closed.  The resource tracker must run before, because starting it would reset the mask.
    resource_tracker.ensure_running()
    with (
        block_interrupts() as unblock,
        dask.config.set({"distributed.scheduler.allowed-failures": retries}),
        LocalCluster(n_workers=processes, threads_per_worker=1, silence_logs=logging.CRITICAL, **local) as cluster,
        Client(cluster) as client,
    ):
        unblock()
        yield client
