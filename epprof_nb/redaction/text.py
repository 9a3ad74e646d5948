"""What reads as a path, a host or a shape in a text, and what takes its place.

Nothing can know every way to write a path. In doubt a text is taken for one: a formula that
suffers is no harm, a folder's name that stays is.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH, HOST, USER, SHAPE, SOURCE = "(path)", "(host)", "(user)", "(shape)", "(source)"

_SHORTEST_CODE = 6
"""Shorter pieces of source text (``x = 1``) say nothing, and stand in other words."""
_COMMON_NAMES = {"root", "user", "users", "ubuntu", "jovyan", "admin", "localhost", "runner"}

# Texts may be cut short, and a closing mark with them.
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\n])*+)(\1|$)""", re.MULTILINE)
_QUOTED_PATH = re.compile(r"[/\\]|^[\w .~-]*\.[A-Za-z]\w{0,5}$")
_BARE_PATH = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s"'<>]+"""  # a URL
    r"""|(?<![\w.)\]/])(?:[A-Za-z]:[\\/]|\\\\|~?/|~\w+/|\.\.?[\\/])[^\s"'<>|;,()\[\]]+"""
    r"""|(?<![\w/.-])[\w.-]++(?:[\\/][\w.-]++)*[\\/][\w.-]+\.[A-Za-z]\w{0,5}\b(?!\()"""
)
_HOSTS = re.compile(
    r"""(?<=://)[^\s/"'<>]+"""
    r"""|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b(?!\()"""
    r"""|\b\d{1,3}(?:\.\d{1,3}){3}\b"""
    r"""|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|\bfe80:[0-9a-f:]+"""
    r"""|\bGPU-[0-9a-f]{8}[0-9a-f-]*"""
    r"""|(?<![\w.-])[\w-]++(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|local|lan|internal|corp|intranet|cluster)"""
    r"""\b(?!\.\w|\()"""
    r"""|(?<=["'])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}(?=["':/])""",
    re.IGNORECASE,
)
_HOMES = re.compile(r"""((?:/home/|/Users/|\\Users\\))[^\s/\\"']+""")
_INTEGERS = r"\s*-?\d+\s*"
_LISTED_SHAPE = re.compile(
    rf"[\[(](?:{_INTEGERS},)+(?:{_INTEGERS})?[\])]"
    r"|\b(?:float|double|half|bool|string|int|uint|bfloat|complex|[bfius])\d*(?:_t)?"
    rf"\[{_INTEGERS}(?:,{_INTEGERS})*\]"
)
_CROSSED_SHAPE = re.compile(r"(?<![\w.])\d+(?:\s?[x\N{MULTIPLICATION SIGN}]\s?\d+)+(?!\w)")


class Filter:
    """Replaces what must not be told in any text.

    Parameters
    ----------
    paths, hosts, shapes
        What to look for.
    dropped
        Pieces of source text to replace wherever they are quoted.
    """

    def __init__(
        self, *, paths: bool, hosts: bool, shapes: bool, dropped: Iterable[str] = ()
    ) -> None:
        self.paths, self.hosts, self.shapes = paths, hosts, shapes
        telling = [t for t in dropped if len(t) >= _SHORTEST_CODE and re.search(r"\W", t)]
        telling.sort(key=len, reverse=True)
        self._dropped = telling

    def __call__(self, text: str) -> str:
        """Return a text of the user's, or of a note, filtered."""
        text = self._without_code(text)
        if self.shapes:
            text = _CROSSED_SHAPE.sub(SHAPE, text)
        if self.paths:
            text = _QUOTED.sub(_quotation, text)
        return self._common(text)

    def kernel(self, text: str) -> str:
        """Return the name of a kernel, filtered.

        What a compiler writes into it (``gemm_128x64``) is its tile, not a tensor's shape.
        """
        return self._common(self._without_code(text))

    def node(self, text: str) -> str:
        """Return the name of a node in a model's graph, filtered.

        ``/encoder/MatMul`` is its place in the graph, not in a file system.
        """
        return self._common(self._without_code(text), paths=False)

    def _without_code(self, text: str) -> str:
        for piece in self._dropped:
            if piece in text:
                text = text.replace(piece, SOURCE)
        return text

    def _common(self, text: str, *, paths: bool = True) -> str:
        if self.shapes:
            text = _LISTED_SHAPE.sub(SHAPE, text)
        if self.paths and paths:
            text = _BARE_PATH.sub(PATH, text)
        if self.hosts:
            text = _HOMES.sub(rf"\1{USER}", _HOSTS.sub(HOST, text))
            for name, stands in _own_names():
                text = name.sub(stands, text)
        return text


def _quotation(found: re.Match[str]) -> str:
    """A quotation, or the mark in its place where it is a path or a file's name."""
    mark, text, end = found.groups()
    return f"{mark}{PATH}{end}" if _QUOTED_PATH.search(text) else found[0]


@cache
def _own_names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Names of the machine and the user of this process, as whole words."""
    host = socket.gethostname()
    names = {host: HOST, host.partition(".")[0]: HOST}
    with contextlib.suppress(OSError, KeyError):  # a container's user may have no name
        names.setdefault(getpass.getuser(), USER)
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE), stands)
        for name, stands in names.items()
        if len(name) > 1 and name.lower() not in _COMMON_NAMES
    )
