"""Profiles for assistants and other programs, through the Model Context Protocol (MCP).

`serve` offers the profiles of a running notebook; ``epprof mcp FILE...`` offers saved ones. Both
need ``pip install epprof-nb[mcp]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.mcp.notebook_profiles import profiles_of_notebook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.mcp.local_server import LocalServer
    from epprof_nb.profiles import Profile

__all__ = ["serve"]


def serve(
    profiles: Mapping[str, Profile] | None = None,
    *,
    port: int = 0,
    token: str | None = None,
    redact: bool | str | Iterable[str] = False,
) -> LocalServer:
    """Offer profiles to programs on this machine, until the returned server is stopped.

    Parameters
    ----------
    profiles
        The profiles by name; by default the variables of the notebook that hold a profile at the
        time of a request.
    port
        TCP port on 127.0.0.1; 0 for any free one.
    token
        Text of at least 16 characters that clients must send (``Authorization: Bearer TOKEN``); a
        random one if None.
    redact
        What to leave out of all answers; see `Profile.redacted`.

    Returns
    -------
    server
        A client needs its ``url`` and ``token``; ``stop()`` ends it. It also ends with the
        process.

    Raises
    ------
    ImportError
        If the MCP SDK is not installed.
    OSError
        If the port is in use.
    ValueError
        If `token` is too short, or a part to redact does not exist.

    Examples
    --------
    >>> server = epprof_nb.mcp.serve()  # doctest: +SKIP
    >>> server.url, server.token  # doctest: +SKIP
    """
    from epprof_nb.mcp.tools import make_server  # first: its error says that the SDK is missing

    from epprof_nb.mcp.local_server import LocalServer  # isort: skip

    given = None if profiles is None else dict(profiles)
    source = profiles_of_notebook if given is None else lambda: given
    return LocalServer(make_server(source, redact=redact), port, token)
