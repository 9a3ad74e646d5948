"""Messages between a notebook and its child processes: JSON objects, one per line of a socket."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

MAX_BYTES = 1_000_000
"""Maximum length of a message. Larger ones are refused, because they would fill the memory."""
_CREDENTIALS = struct.Struct("3i")


class Channel:
    """One end of a connection.

    Parameters
    ----------
    connection
        A connected Unix socket. Its time-out, or that it does not block, stays as it is.

    Attributes
    ----------
    connection
        The socket.
    is_closed
        Whether the other end has closed the connection, or has sent something else than messages.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_closed = False
        self._received = b""

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self.connection.fileno()

    def peer(self) -> tuple[int, int]:
        """Return the process id and the user id of the process at the other end."""
        packed = self.connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
        )
        pid, user, _ = _CREDENTIALS.unpack(packed)
        return pid, user

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; `is_closed` becomes true if the other end is gone."""
        try:
            data = json.dumps(message).encode() + b"\n"
            self.connection.sendall(data, socket.MSG_NOSIGNAL)
        except OSError:  # also a time-out: the other end does not read what was sent to it
            self.is_closed = True

    def receive(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived; wait as long as the socket does for the first."""
        try:
            chunk = self.connection.recv(65_536)
        except (BlockingIOError, TimeoutError):
            return []
        except OSError:
            chunk = b""
        *lines, self._received = (self._received + chunk).split(b"\n")
        messages = [_parsed(line) for line in lines]
        if not chunk or len(self._received) > MAX_BYTES or None in messages:
            self.is_closed = True
        return [message for message in messages if message is not None]

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self.connection.close()


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
