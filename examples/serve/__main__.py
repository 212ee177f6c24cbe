"""Serve a model, or a folder of models:   python -m serve MODELS"""

from __future__ import annotations

import argparse
import asyncio
import math
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from relvm.errors import RelvmArgumentError, RelvmError
from relvm.quoting import terminal
from serve.app import Service, make_app
from serve.connections import LimitedProtocol
from serve.repository import LoadError


class Server(uvicorn.Server):
    """Server with a shutdown in two steps.

    After SIGTERM or SIGINT, /v2/health/ready reports for `drain` seconds that the server is not ready, but the server
    still accepts requests.  Then it accepts no more connections, and exits when all accepted requests are answered.  A
    second signal ends the first step.
    """

    def __init__(self, config: uvicorn.Config, drain: float) -> None:
        super().__init__(config)
        self.drain = drain

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)
        host, port = sockets[0].getsockname()[:2]
        print(f"serving on http://{host}:{port}", flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        service = self.config.app.state.service
        if service.ready:
            service.ready = False
            self.loop.call_soon_threadsafe(self.loop.call_later, self.drain, self.stop)
        else:
            self.stop()

    def stop(self) -> None:
        self.should_exit = True


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m serve", description="Serve models over HTTP with the Open Inference Protocol, version 2."
    )
    parser.add_argument("models", type=Path, help="a model (.onnx, .rvm, .relvm or .so), or a folder of models")
    parser.add_argument("--function", default="main", help="the function of each model that is served")
    parser.add_argument("--trust-native", action="store_true", help="run native code that was built elsewhere")
    parser.add_argument("--allow-control", action="store_true", help="let clients load and unload models")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: a free port, which the first line of output names")
    parser.add_argument("--fd", type=int, help="a listening socket that the parent process opened, instead of a port")
    parser.add_argument("--workers", type=int, help="threads of each model; by default one for each processor")
    parser.add_argument(
        "--max-batch",
        type=rows_option,
        action="append",
        default=[],
        metavar="[MODEL=]ROWS",
        help="run requests in batches of up to ROWS rows: those of a model, or of all models with a batch axis.  "
        "Only for models whose result in a row depends only on that row",
    )
    parser.add_argument("--max-wait-ms", type=float, default=2, help="how long a request waits for its batch")
    parser.add_argument("--max-queue", type=int, default=256, help="requests that wait for a model; others get 503")
    parser.add_argument("--timeout", type=float, default=10, help="seconds until a request gets 504")
    parser.add_argument("--max-run-mb", type=int, default=2048, help="memory that a run may allocate")
    parser.add_argument("--max-bodies-mb", type=int, default=256, help="size of all unfinished bodies together")
    parser.add_argument("--max-connections", type=int, default=512, help="open connections; others are closed at once")
    parser.add_argument("--drain", type=float, default=1, help="seconds between not being ready and not accepting")
    return parser


def rows_option(text: str) -> tuple[str, int]:
    """Parse `ROWS` or `MODEL=ROWS`.  Raise ValueError if ROWS is not a number."""
    name, _, rows = text.rpartition("=")
    return name, int(rows)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the attributes of `Settings` for the command-line options."""
    batches = dict(options.max_batch)
    return {
        "function": options.function,
        "trust_native": options.trust_native,
        "control": options.allow_control,
        "workers": options.workers,
        "max_batch": batches.pop("", 1),
        "model_batches": batches,
        "max_wait": options.max_wait_ms / 1000,
        "max_queue": options.max_queue,
        "timeout": options.timeout,
        "max_run_bytes": options.max_run_mb << 20,
        "max_bodies": options.max_bodies_mb << 20,
        "max_connections": options.max_connections,
    }


def expect_models(service: Service, models: Path) -> None:
    """Print why models are not served or not batched.  Raise LoadError if the server would have no model.

    An empty folder is not an error if clients may load models, because models can be added later.
    """
    reasons = service.repository.reasons
    if not service.repository.served and not (service.control and models.is_dir()):
        raise LoadError("; ".join(reasons.values()) or f"{models}: the folder contains no models")
    for (name, version), reason in reasons.items():
        print(f"serve: model {name}, version {version}, is not served: {terminal(reason)}", file=sys.stderr)
    for model in service.repository.served:
        if model.unbatched_because:
            print(f"serve: model {model.name} {terminal(model.unbatched_because)}", file=sys.stderr)


def expect_ranges(options: argparse.Namespace) -> None:
    """Raise RelvmArgumentError if a number that concerns the process, not the service, is out of range."""
    if not 0 <= options.port <= 65535:
        raise RelvmArgumentError(f"--port {options.port}: expected 0 to 65535")
    if options.fd is not None and options.fd < 0:
        raise RelvmArgumentError(f"--fd {options.fd}: expected the number of an open file")
    if not 0 <= options.drain < math.inf:
        raise RelvmArgumentError(f"--drain {options.drain:g}: expected seconds")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket with TCP_NODELAY, which asyncio sets only for sockets that know their protocol."""
    listener = socket.create_server((host, port), backlog=2048)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def main(arguments: list[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    try:
        expect_ranges(options)
        app = make_app(options.models, **settings_of(options))
        expect_models(app.state.service, options.models)
        if options.fd is None:
            listener = listen(options.host, options.port)
        else:
            listener = socket.socket(fileno=options.fd)
    except (OSError, LoadError, RelvmError) as error:
        print(f"serve: {terminal(str(error))}", file=sys.stderr)
        return 1
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",  # an upgraded connection would bypass LimitedProtocol
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=math.ceil(2 * options.timeout) + 1,
    )
    server = Server(config, options.drain)
    server.run(sockets=[listener])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
