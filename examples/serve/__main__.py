"""Serve a model:   python -m serve MODEL"""

from __future__ import annotations

import argparse
import asyncio
import math
import socket
import sys
from pathlib import Path
from types import FrameType

import uvicorn

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmError
from relvm.frontend.load_model import read_model
from serve.app import make_app
from serve.connections import LimitedProtocol


class Server(uvicorn.Server):
    """Server with a shutdown in two steps.

    After SIGTERM or SIGINT, /health reports for `drain` seconds that the server is not ready, but the server still
    accepts requests.  Then it accepts no more connections, and exits when all accepted requests are answered.  A second
    signal ends the first step.
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


def load_executable(path: Path, trust_native: bool) -> vm.Executable:
    """Load the executable in a .rvm or .so file, or build one from an .onnx or .relvm file.

    Raise OSError or RelvmError if the file cannot be read, loaded or built.
    """
    if path.suffix in (".rvm", ".so"):
        return vm.load(path, trust_native=trust_native)
    return vm.build(read_model(path), "compiled" if vm.find_compiler() else "bytecode")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m serve", description="Serves a model over HTTP.")
    parser.add_argument("model", type=Path, help="a .onnx, .relvm, .rvm or .so file")
    parser.add_argument("--function", default="main")
    parser.add_argument("--trust-native", action="store_true", help="run native code that was built elsewhere")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free; the first line of output says it")
    parser.add_argument("--fd", type=int, help="a listening socket that the parent process has opened, not a port")
    parser.add_argument("--workers", type=int, help="threads; one for each processor if not given")
    parser.add_argument("--max-batch", type=int, default=32, help="rows")
    parser.add_argument("--max-wait-ms", type=float, default=2, help="how long a request waits for others")
    parser.add_argument("--max-queue", type=int, default=256, help="requests that wait; more are answered with 503")
    parser.add_argument("--timeout", type=float, default=10, help="seconds until a request is answered with 504")
    parser.add_argument("--max-bodies-mb", type=int, default=256, help="of all bodies that are not answered together")
    parser.add_argument("--max-connections", type=int, default=512, help="at a time; one more is closed at once")
    parser.add_argument("--drain", type=float, default=1, help="seconds between not being ready and not accepting")
    return parser


def expect_ranges(options: argparse.Namespace) -> None:
    """Raise RelvmArgumentError if --port, --fd or --drain is out of range.  Service checks the other options."""
    if not 0 <= options.port <= 65535:
        raise RelvmArgumentError(f"--port {options.port}: expected 0 to 65535")
    if options.fd is not None and options.fd < 0:
        raise RelvmArgumentError(f"--fd {options.fd}: expected the number of an open file")
    if not 0 <= options.drain < math.inf:
        raise RelvmArgumentError(f"--drain {options.drain:g}: expected seconds")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket.

    The socket sets TCP_NODELAY, so that answers are sent without waiting for acknowledgments of earlier ones.  Its
    connections inherit the option.  asyncio sets it only for sockets that were created with an explicit protocol.
    """
    listener = socket.create_server((host, port), backlog=2048)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def main(arguments: list[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    try:
        expect_ranges(options)
        app = make_app(
            load_executable(options.model, options.trust_native),
            options.function,
            workers=options.workers,
            max_batch=options.max_batch,
            max_wait=options.max_wait_ms / 1000,
            max_queue=options.max_queue,
            timeout=options.timeout,
            max_bodies=options.max_bodies_mb << 20,
            max_connections=options.max_connections,
        )
        if options.fd is None:
            listener = listen(options.host, options.port)
        else:
            listener = socket.socket(fileno=options.fd)
    except (OSError, UnicodeDecodeError, RelvmError) as error:
        print(f"serve: {error}", file=sys.stderr)
        return 1
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",  # an upgrade would leave LimitedProtocol
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=math.ceil(2 * options.timeout) + 1,
    )
    server = Server(config, options.drain)
    server.run(sockets=[listener])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
