"""The builder: starts the process of worker.py, sends it one request at a time, and ends it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from relvm.explore.live.build_request import BuildRequest
from relvm.explore.live.worker import LENGTH_BYTES
from relvm.runtime.child_processes import temporary_environment
from relvm.system import end_processes, has_ended_late, own_session

MAX_SECONDS = 30  # default time limit of a build
_PATIENCE = 1.0  # seconds before a build is ended whose client has gone away; starting a new process takes as long
_POLL = 0.05  # seconds between checks whether the client still waits for the answer


class BuildError(Exception):
    """Raised if a build takes too long, or its process ends unexpectedly."""


class Builder:
    """Controls a process that builds programs.

    Parameters
    ----------
    name
        Name of the program in messages and source locations.
    model
        Path of the ONNX model to build, or "" to build the text of each request.
    max_seconds
        Limit on the time of a build, at least 1.
    """

    def __init__(self, name: str, model: str = "", max_seconds: int = MAX_SECONDS) -> None:
        self.arguments = (str(max_seconds), name, model)
        self.max_seconds = max_seconds
        self.process: asyncio.subprocess.Process | None = None
        self.folder: tempfile.TemporaryDirectory[str] | None = None  # the temporary files of the process
        self.turn = asyncio.Lock()
        self.is_closed = False

    async def build(
        self, request: BuildRequest, is_abandoned: Callable[[], Awaitable[bool]], action: str = "build"
    ) -> bytes | None:
        """Build a program, or build and run it.  Return the result of `worker.answer` as JSON.

        Return None if the builder is closed, or if the client no longer waits for the result.  If the client no longer
        waits, a build that has not started does not start, and a build that takes longer than a second is ended.

        is_abandoned: a function that returns whether the client no longer waits.
        action: "build", "run" to run the program, or "graph" for the page of its graph.

        Raises
        ------
        BuildError
            The build or the run takes too long, or the process ended unexpectedly.
        """
        async with self.turn:
            if self.is_closed or await is_abandoned():
                return None
            process = self.process or await self.start()
            started = time.monotonic()
            answer = asyncio.ensure_future(self._exchange(process, f"{action}\n{request.to_json()}".encode()))
            try:
                while not (await asyncio.wait((answer,), timeout=_POLL))[0]:
                    if await is_abandoned() and time.monotonic() - started > _PATIENCE:
                        await self.stop()
                        return None
                return answer.result()
            except (asyncio.IncompleteReadError, ConnectionError):
                status = await process.wait()
                await self.stop()
                if self.is_closed:
                    return None
                if has_ended_late(status):
                    raise BuildError(f"the {action} took more than {self.max_seconds} seconds and was ended") from None
                raise BuildError(
                    f"the {action} ended with status {status}; the terminal of the server shows the reason"
                ) from None
            finally:
                answer.cancel()
                await asyncio.gather(answer, return_exceptions=True)  # errors have been handled above

    async def start(self) -> asyncio.subprocess.Process:
        """Start the process, and return it."""
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-P", "-m", "relvm.explore.live.worker", *self.arguments)
        # A process that is killed does not remove its temporary files, nor does the C compiler that it has started.
        self.folder = tempfile.TemporaryDirectory(prefix="relvm-", ignore_cleanup_errors=True)
        # A new session shields the process from Ctrl-C in the terminal, and lets `stop` also end the C compiler.  The
        # process ends when its standard input ends.
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, env=temporary_environment(self.folder.name), **own_session()
        )
        return self.process

    async def close(self) -> None:
        """End the process, and never start another one.  Calls of `build` that have not returned return None."""
        self.is_closed = True
        await self.stop()

    async def stop(self) -> None:
        """End the process, if there is one, with all processes that it started, and remove its temporary files."""
        process, self.process = self.process, None
        folder, self.folder = self.folder, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            end_processes(process.pid)
            await process.wait()
        if folder is not None:
            folder.cleanup()

    @staticmethod
    async def _exchange(process: asyncio.subprocess.Process, request: bytes) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(len(request).to_bytes(LENGTH_BYTES, "little") + request)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "little")
        return await process.stdout.readexactly(length)
