"""Inference engines in processes of their own, which answer requests in turns.

An engine has a process of its own, because the threads of some engines wait actively after a run, and would slow down
the other engines.  The parent process sends requests to the engines one at a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_ANSWER = "answer: "  # begins the lines of answers, because some engines print messages


class EngineProcess:
    """A process that has loaded a model into an engine: a module of the benchmarks that calls `serve`."""

    def __init__(self, module: str, *arguments: str, stderr: int | None = None) -> None:
        command = [sys.executable, "-m", module, *arguments]
        folder = Path(__file__).resolve().parents[1]
        self._process = subprocess.Popen(
            command, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )

    def request(self, value: Any) -> Any:
        """Send a request, and return the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):  # the engine has ended, so there is no answer
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                return json.loads(line.removeprefix(_ANSWER))
        raise RuntimeError(f"the engine ended with status {self._process.wait()}")

    def close(self) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer requests from stdin, one line each, until stdin ends."""
    for line in sys.stdin:
        print(_ANSWER + json.dumps(answer(json.loads(line))), flush=True)
