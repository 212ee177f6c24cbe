"""A bar that says how many batches are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from relvm.errors import RelvmUnsupportedError


def progress_bar(count: int | None, *, shown: bool) -> AbstractContextManager[Callable[[], None]]:
    """A block with a bar on standard error, where that is a terminal, and what it is told by that one more is done.

    count: of all; None: not known.  shown: False: no bar.  Raises RelvmUnsupportedError: rich is not installed.
    """
    if not shown:
        return nullcontext(lambda: None)
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        raise RelvmUnsupportedError("a progress bar needs rich: pip install 'relvm[dask]'") from None
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())

    @contextmanager
    def bar() -> Iterator[Callable[[], None]]:
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=count)
            yield lambda: progress.advance(task)

    return bar()
