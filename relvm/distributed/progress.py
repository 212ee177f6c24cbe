"""A progress bar for batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from relvm.errors import RelvmUnsupportedError


def progress_bar(count: int | None, *, shown: bool) -> AbstractContextManager[Callable[[], None]]:
    """Return a context manager that shows a progress bar if standard error is a terminal.

    The context manager yields a function, which the caller must call once for each finished batch.  Raise
    RelvmUnsupportedError if rich is not installed.

    count: the number of batches, or None if unknown.
    shown: False to show no bar even on a terminal.
    """
    if not shown:
        return nullcontext(lambda: None)
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        raise RelvmUnsupportedError("the progress bar requires rich: pip install 'relvm[dask]'") from None
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())

    @contextmanager
    def bar() -> Iterator[Callable[[], None]]:
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=count)
            yield lambda: progress.advance(task)

    return bar()
