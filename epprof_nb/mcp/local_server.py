"""The MCP server of a running process: HTTP on 127.0.0.1, with a token, on a separate thread."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from epprof_nb.core.own_thread import ListedThread

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

_MIN_TOKEN = 16
_START_S, _STOP_S = 30.0, 10.0


class LocalServer:
    """A running server.

    Parameters
    ----------
    server
        The MCP server.
    port
        TCP port; 0 for any free one.
    token
        Token that clients must send; None for a random one.

    Attributes
    ----------
    url
        Address for clients with the transport "streamable HTTP".
    token
        The token.
    """

    def __init__(self, server: MCPServer[Any], port: int = 0, token: str | None = None) -> None:
        if token is not None and (len(token) < _MIN_TOKEN or not token.isascii()):
            raise ValueError(
                f"token must have at least {_MIN_TOKEN} ASCII characters. Leave it out for a "
                "random one."
            )
        self.token = token or secrets.token_urlsafe(32)
        self._socket = socket.socket()
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/mcp"
        app = _WithToken(server.streamable_http_app(stateless_http=True), self.token)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=2, ws="none"
        )
        self._server = _Uvicorn(config)
        self._process = os.getpid()
        self._thread = ListedThread(
            target=self._server.run, args=([self._socket],), name="epprof_nb MCP", daemon=True
        )
        self._thread.start()
        if not self._server.ready.wait(_START_S):
            self.stop()
            raise OSError(f"the MCP server did not start within {_START_S:g} s")

    @property
    def is_running(self) -> bool:
        """Whether the server answers; False in a forked child of its process."""
        return self._process == os.getpid() and self._thread.is_alive()

    def stop(self) -> None:
        """Stop the server; requests in progress have two seconds to end."""
        if self.is_running:
            self._server.should_exit = True
            self._thread.join(_STOP_S)
        self._socket.close()

    def __repr__(self) -> str:
        if not self.is_running:
            return "MCP server (stopped)"
        return (
            f"MCP server at {self.url}\n"
            f"Clients send the header  Authorization: Bearer {self.token}\n"
            "Saved outputs hold this token; it is valid until the server stops."
        )


class _Uvicorn(uvicorn.Server):
    """A server that sets an event when it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _WithToken:
    """An application that refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_allowed(scope):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(sent) == 1 and hmac.compare_digest(sent[0], self._expected)
