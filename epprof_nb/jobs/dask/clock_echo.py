"""The clocks of two hosts, compared by an echo of datagrams.

The notebook answers each request with the times at which it got the request and sent the answer, as
in NTP. Of many, the one with the shortest way there and back counts: its way one way is at most as
long, so the offset is off by at most half of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.core.own_thread import OwnThread

if TYPE_CHECKING:
    from collections.abc import Iterable

Sample = tuple[int, int, int]
"""Time of this clock, what to add to it for the other clock, and the error of that; nanoseconds."""

_NONCE, _MAC = 16, 16
_ANSWER = struct.Struct(f"<{_NONCE}sqq")
_DATAGRAMS = 100
"""Number of requests of one comparison."""
_WAIT_S = 0.05
_MAX_LOST = 5


class Echo:
    """An echo on a UDP port, from its making to `close`. It answers only those with the token.

    Parameters
    ----------
    token
        The secret of the job.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._socket = _listening()
        self._is_closed = False
        self.port: int = self._socket.getsockname()[1]
        self._thread = OwnThread(target=self._answer, name="epprof echo", daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while True:
            try:
                request, sender = self._socket.recvfrom(_NONCE + _MAC + 1)
            except OSError:  # closed
                return
            got_ns = _native.now_ns()
            if self._is_closed:
                return
            nonce, mac = request[:_NONCE], request[_NONCE:]
            if not hmac.compare_digest(mac, _mac(self._token, nonce)):
                continue
            with suppress(OSError):  # an address that cannot be reached
                self._socket.sendto(_ANSWER.pack(nonce, got_ns, _native.now_ns()), sender)

    def close(self) -> None:
        """Stop answering."""
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread up, and raises
        self._socket.close()
        self._thread.join()


def sample(
    hosts: Iterable[str], port: int, token: str, *, count: int = _DATAGRAMS
) -> Sample | None:
    """Compare the clock of this process with the clock of an echo.

    Parameters
    ----------
    hosts, port
        Addresses of the host of the echo, of which the first one that answers counts; its port.
    token
        The secret of the job.
    count
        How many requests to send.

    Returns
    -------
    sample
        The best of the answers; None if there was none.
    """
    for host in hosts:
        with suppress(OSError):
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as connection:
                connection.settimeout(_WAIT_S)
                connection.connect(address)
                found = _best(connection, token.encode(), count)
                if found is not None:
                    return found
    return None


def _best(connection: socket.socket, token: bytes, count: int) -> Sample | None:
    best: Sample | None = None
    lost = 0
    for _ in range(count):
        nonce = secrets.token_bytes(_NONCE)
        request = nonce + _mac(token, nonce)
        sent_ns = _native.now_ns()
        try:
            connection.send(request)
            answer = connection.recv(_ANSWER.size + 1)
            got_ns = _native.now_ns()
        except TimeoutError:
            lost += 1
            if lost > _MAX_LOST:
                break
            continue
        if len(answer) != _ANSWER.size:
            continue
        echoed, there_ns, back_ns = _ANSWER.unpack(answer)
        if echoed != nonce:  # a late answer
            continue
        found = of_times(sent_ns, there_ns, back_ns, got_ns)
        if best is None or found[2] < best[2]:
            best = found
    return best


def of_times(sent_ns: int, there_ns: int, back_ns: int, got_ns: int) -> Sample:
    """Return the sample of one request.

    Parameters
    ----------
    sent_ns, got_ns
        When the request was sent and the answer arrived, on this clock.
    there_ns, back_ns
        When the request arrived and the answer was sent, on the other clock.

    Examples
    --------
    >>> of_times(100, 1_110, 1_120, 130)
    (115, 1000, 10)
    """
    way_ns = max((got_ns - sent_ns) - (back_ns - there_ns), 0)
    offset_ns = ((there_ns - sent_ns) + (back_ns - got_ns)) // 2
    return (sent_ns + got_ns) // 2, offset_ns, (way_ns + 1) // 2


def _mac(token: bytes, nonce: bytes) -> bytes:
    return hmac.digest(token, nonce, hashlib.sha256)[:_MAC]


def _listening() -> socket.socket:
    if socket.has_ipv6:
        with suppress(OSError):
            both = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            both.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            both.bind(("::", 0))
            return both
    only = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    only.bind(("", 0))
    return only
