"""Access control: only the page that this server sent may use the server."""

from __future__ import annotations

from secrets import compare_digest

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    # The page loads no other resources.  Other pages cannot embed it.  Its scripts can only contact this server.
    "content-security-policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",  # the address contains the token
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware that rejects requests of other programs and other web sites.

    A request must satisfy three conditions:

    - The header Host is the address of this server.  This prevents DNS rebinding, in which another web site resolves
      its own name to 127.0.0.1.
    - The header Origin, which browsers send with every POST, names this server.  A GET or HEAD may lack the header.
    - The path begins with the token.  The guard removes the token before it passes the request on.

    Parameters
    ----------
    app
        The application for accepted requests.
    token
        The secret that the path of each request begins with.
    port
        The port of the server.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app = app
        self.token = token
        self.hosts = tuple(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        assert scope["type"] == "http", scope["type"]  # server.py disables WebSockets

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        token, _, rest = scope["path"].removeprefix("/").partition("/")
        reason = self._rejection(scope["method"], Headers(scope=scope))
        if not reason and not compare_digest(token.encode(), self.token.encode()):
            reason = "the address must contain the token that `relvm explore` printed"
        if reason:
            await PlainTextResponse(f"rejected: {reason}\n", 403)(scope, receive, send_with_headers)
            return
        if not rest and not scope["path"].endswith("/"):
            await RedirectResponse(f"/{token}/")(scope, receive, send_with_headers)  # the page's addresses are relative
            return
        await self.app({**scope, "path": f"/{rest}"}, receive, send_with_headers)

    def _rejection(self, method: str, headers: Headers) -> str:
        """Return the reason to reject a request because of its headers, or "" to accept it."""
        if headers.get("host") not in self.hosts:
            return f"expected the header Host to be {' or '.join(self.hosts)}"
        origins = [f"http://{host}" for host in self.hosts]
        has_origin = "origin" in headers or method not in ("GET", "HEAD")
        if has_origin and headers.get("origin") not in origins:
            return f"expected the header Origin to be {' or '.join(origins)}"
        return ""
