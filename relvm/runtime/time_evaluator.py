"""Timing of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.errors import RelvmArgumentError
from relvm.runtime.invoke import PreparedCall
from relvm.runtime.status import uncopyable


@dataclass(frozen=True, repr=False)
class Timing(Displayed):
    """The measured time of a function, in seconds per run.

    Attributes
    ----------
    results
        The mean time of a run, for each repeat.
    mean, median, std, min, max
        Statistics of `results`.  std is the population standard deviation, which is 0 for one repeat.
    """

    mean: float
    median: float
    std: float
    min: float
    max: float
    results: tuple[float, ...]

    def __str__(self) -> str:
        rest = f"median {_milliseconds(self.median)}, {_milliseconds(self.min)} to {_milliseconds(self.max)}"
        return f"{_milliseconds(self.mean)} (std {_milliseconds(self.std)}; {rest}; {len(self.results)} repeats)"


class TimeEvaluator:
    """A callable that measures the time of a function.  See VirtualMachine.time_evaluator."""

    def __init__(self, prepare: Callable[..., PreparedCall], number: int, repeat: int, min_repeat_ms: float) -> None:
        for name, value in (("number", number), ("repeat", repeat)):
            if not isinstance(value, int) or value < 1:
                raise RelvmArgumentError(f"time_evaluator: {name}: expected an integer of at least 1, got {value!r}")
        if not isinstance(min_repeat_ms, int | float) or not 0 <= min_repeat_ms < float("inf"):
            got = repr(min_repeat_ms)
            raise RelvmArgumentError(f"time_evaluator: min_repeat_ms: expected a number of at least 0, got {got}")
        self._prepare = prepare
        self._number = number
        self._repeat = repeat
        self._min_repeat_seconds = min_repeat_ms / 1e3

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def __call__(self, /, *arguments: Any, **named: Any) -> Timing:
        """Measure the time of the function with the given arguments.

        The results of the function are discarded.  If a run of the function raises an exception, so does this
        method.
        """
        prepared = self._prepare(arguments, named)
        prepared.repeat(1)  # untimed warm-up run
        results = []
        number = self._number
        for _ in range(self._repeat):
            while (seconds := prepared.repeat(number)) < self._min_repeat_seconds:
                number = max(int(self._min_repeat_seconds / max(seconds / number, 1e-9)) + 1, int(number * 1.5) + 1)
            results.append(seconds / number)
        return Timing(
            mean=float(np.mean(results)),
            median=float(np.median(results)),
            std=float(np.std(results)),
            min=min(results),
            max=max(results),
            results=tuple(results),
        )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
