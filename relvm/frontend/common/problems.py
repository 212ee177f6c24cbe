"""The error of an import that lists everything that is not supported."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from relvm.errors import RelvmUnsupportedError

_MAX_PROBLEMS = 100  # maximum number of problems that one message lists


def expect_no_problems(place: str, problems: Collection[str], items: str) -> None:
    """If there are problems, raise one RelvmUnsupportedError that lists up to _MAX_PROBLEMS of them.

    place: the model, with which the messages of the problems begin.
    items: what could not be imported, such as "nodes".
    """
    if not problems:
        return
    if len(problems) == 1:
        raise RelvmUnsupportedError(*problems)
    lines = [f"\n  {problem.removeprefix(f'{place}:').lstrip()}" for problem in islice(problems, _MAX_PROBLEMS)]
    if len(problems) > _MAX_PROBLEMS:
        lines.append(f"\n  and {len(problems) - _MAX_PROBLEMS} more")
    raise RelvmUnsupportedError(f"{place}: {len(problems)} {items} cannot be imported:{''.join(lines)}")
