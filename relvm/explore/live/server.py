"""The server of `relvm explore`."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from relvm.explore.live.app import Settings, make_app
from relvm.explore.live.build_request import BuildRequest
from relvm.explore.live.connections import LimitedProtocol

_HOST = "127.0.0.1"
_GRACE = 1  # seconds after Ctrl-C in which running requests can finish


def serve(
    start: BuildRequest,
    name: str,
    *,
    model: str = "",
    output: Path | None = None,
    port: int = 0,
    opens_browser: bool = True,
    announce: Callable[[str], None],
) -> None:
    """Serve the page of `relvm explore`, which shows every compilation stage, on 127.0.0.1 until Ctrl-C.

    Parameters
    ----------
    start
        The program and the build options with which the page opens.
    name
        Name of the program.  It appears in the title of the page, in messages and in source locations.
    model
        Path of an ONNX model, which every build compiles.  If it is "", a build compiles the text in the page's editor.
    output
        The file that the button "Save" writes, or None for no such button.
    port
        The port, or 0 for a free port.
    opens_browser
        Whether to open the page in the user's browser.
    announce
        Called with the address of the page when it can be opened.

    Raises
    ------
    OSError
        The port is in use.
    """
    with socket.create_server((_HOST, port)) as listener:
        port = listener.getsockname()[1]
        settings = Settings(start, secrets.token_urlsafe(32), port, name, model, output)
        app = make_app(settings)
        address = f"http://{_HOST}:{port}/{settings.token}/"

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                announce(address)
                if opens_browser:  # in a thread, because a text-mode browser blocks until it is closed
                    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await app.state.builder.close()  # ends running builds, so that shutdown does not wait for them
                await super().shutdown(sockets)

        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it after its shutdown
            Server(server_config(app)).run(sockets=[listener])


def server_config(app: Starlette) -> uvicorn.Config:
    """Return the configuration of the server that runs the application."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
