"""Patterns of names and addresses of hosts, and of names of users, and their replacement."""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from functools import cache

_HOST, _USER = "(host)", "(user)"

_COMMON_NAMES = {"root", "user", "users", "ubuntu", "jovyan", "admin", "localhost", "runner"}
_HOSTS = re.compile(
    r"""(?<=://)[^\s/"'<>]+"""
    r"""|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b(?!\()"""
    r"""|\b\d{1,3}(?:\.\d{1,3}){3}\b"""
    r"""|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b"""
    # Compressed IPv6. Addresses begin with these digits; slices and names in C++ rarely do.
    r"""|(?<![\w:.])(?=[0-9a-f:]*::)[23f][0-9a-f]{3}(?::[0-9a-f]{0,4}){2,7}(?:%\w+)?(?![\w:])"""
    r"""|\bGPU-[0-9a-f]{8}[0-9a-f-]*"""
    r"""|(?<![\w.-])[\w-]++(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|local|lan|internal|corp|intranet|cluster)"""
    r"""\b(?!\.\w|\()"""
    r"""|(?<=["'])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}(?=["':/])""",
    re.IGNORECASE,
)
_HOMES = re.compile(r"""((?:/home/|/Users/|\\Users\\))[^\s/\\"']+""")
"""Names of users in paths of home folders."""


def without_hosts_and_users(text: str) -> str:
    """Replace names and addresses of hosts, and names of users."""
    text = _HOMES.sub(rf"\1{_USER}", _HOSTS.sub(_HOST, text))
    for name, replacement in _local_names():
        text = name.sub(replacement, text)
    return text


@cache
def _local_names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of the machine's and user's names as whole words, with their replacement."""
    host = socket.gethostname()
    names = {host: _HOST, host.partition(".")[0]: _HOST}
    with contextlib.suppress(OSError, KeyError):  # the user of a container may have no name
        names.setdefault(getpass.getuser(), _USER)
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE), replacement)
        for name, replacement in names.items()
        if len(name) > 1 and name.lower() not in _COMMON_NAMES
    )
