"""The settings of a server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from relvm.errors import RelvmArgumentError


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes
    ----------
    function
        The name of the function of each model that is served.
    trust_native
        Whether to run native code in executables that this user did not build on this machine.
    workers
        The number of threads of each model, which each have a machine; None: one for each processor.
    max_batch
        The maximum number of rows in a batch, for each model whose signature has a batch axis.  1: no batching.
    model_batches
        Values of `max_batch` for single models, by name.  Such a model must have a batch axis.
    max_wait
        How many seconds a request waits for others to join its batch.
    max_queue
        The maximum number of requests that wait for a worker of a model.
    timeout
        The maximum seconds until a body has arrived, and again until the result is available.  Also the maximum time of
        a run.
    max_run_bytes
        The maximum memory that a run may allocate.
    max_body
        The maximum size of the body of a request, also after decompression.
    max_bodies
        The maximum size of the bodies of all requests and responses that are being processed.
    max_connections
        The maximum number of open connections.  Further connections are closed immediately.
    control
        Whether clients may load and unload models.

    Raises
    ------
    RelvmArgumentError
        A number is out of range.
    """

    function: str = "main"
    trust_native: bool = False
    workers: int | None = None
    max_batch: int = 1
    model_batches: Mapping[str, int] = field(default_factory=dict)
    max_wait: float = 0.002
    max_queue: int = 256
    timeout: float = 10
    max_run_bytes: int = 2 << 30
    max_body: int = 64 << 20
    max_bodies: int = 256 << 20
    max_connections: int = 512
    control: bool = False

    def __post_init__(self) -> None:
        for name, rows in (("max_batch", self.max_batch), *self.model_batches.items()):
            if rows < 1:
                raise RelvmArgumentError(f"{name} is {rows}, expected at least 1 row")
        for name in ("max_queue", "max_run_bytes", "max_body", "max_connections"):
            if getattr(self, name) < 1:
                raise RelvmArgumentError(f"{name} is {getattr(self, name)}, expected at least 1")
        if not (0 <= self.max_wait < math.inf and 0 < self.timeout < math.inf):
            raise RelvmArgumentError("expected max_wait >= 0 and timeout > 0, both finite")
        if self.max_bodies < self.max_body:
            raise RelvmArgumentError(f"max_bodies is {self.max_bodies}, expected at least max_body, {self.max_body}")
