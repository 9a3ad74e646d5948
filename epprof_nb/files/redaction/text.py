"""Patterns of paths, hosts and shapes in text, and their replacement.

Paths cannot be recognised with certainty. Ambiguous text is treated as a path, because a redacted
formula does less harm than a leaked directory name.
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
"""Shorter pieces of source text (``x = 1``) reveal nothing and may be part of other words."""
_COMMON_NAMES = {"root", "user", "users", "ubuntu", "jovyan", "admin", "localhost", "runner"}

# Texts may be truncated, so the closing quotation mark may be missing.
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\n])*+)(\1|$)""", re.MULTILINE)
_QUOTED_PATH = re.compile(r"[/\\]|^[\w .~-]*\.[A-Za-z]\w{0,5}$")
_BARE_PATH = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s"'<>]+"""  # a URL
    r"""|(?<![\w.)\]/])(?!//=?(?:\s|$))(?:[A-Za-z]:[\\/]|\\\\|~?/|~\w+/|\.\.?[\\/])[^\s"'<>|;,()\[\]]+"""
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
    """Replaces sensitive information in texts.

    Parameters
    ----------
    paths, hosts, shapes
        Kinds of information to replace.
    source_pieces
        Pieces of source text to replace wherever they are quoted.
    """

    def __init__(
        self, *, paths: bool, hosts: bool, shapes: bool, source_pieces: Iterable[str] = ()
    ) -> None:
        self.paths, self.hosts, self.shapes = paths, hosts, shapes
        pieces = [t for t in source_pieces if len(t) >= _SHORTEST_CODE and re.search(r"\W", t)]
        pieces.sort(key=len, reverse=True)
        self._source_pieces = pieces

    def __call__(self, text: str) -> str:
        """Filter a text of the user or a note."""
        text = self._remove_source(text)
        if self.shapes:
            text = _CROSSED_SHAPE.sub(SHAPE, text)
        if self.paths:
            text = _QUOTED.sub(_quotation, text)
        return self._apply_patterns(text)

    def kernel(self, text: str) -> str:
        """Filter the name of a kernel.

        Sizes that a compiler puts into it (``gemm_128x64``) are tiles, not shapes of tensors.
        """
        return self._apply_patterns(self._remove_source(text))

    def node(self, text: str) -> str:
        """Filter the name of a node in a model's graph.

        ``/encoder/MatMul`` is a path in the graph, not in a file system.
        """
        return self._apply_patterns(self._remove_source(text), paths=False)

    def _remove_source(self, text: str) -> str:
        for piece in self._source_pieces:
            if piece in text:
                text = text.replace(piece, SOURCE)
        return text

    def _apply_patterns(self, text: str, *, paths: bool = True) -> str:
        if self.shapes:
            text = _LISTED_SHAPE.sub(SHAPE, text)
        if self.paths and paths:
            text = _BARE_PATH.sub(PATH, text)
        if self.hosts:
            text = _HOMES.sub(rf"\1{USER}", _HOSTS.sub(HOST, text))
            for name, replacement in _local_names():
                text = name.sub(replacement, text)
        return text


def _quotation(match: re.Match[str]) -> str:
    """Return a quotation, with its contents replaced if they are a path or a file name."""
    mark, text, end = match.groups()
    return f"{mark}{PATH}{end}" if _QUOTED_PATH.search(text) else match[0]


@cache
def _local_names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of the machine's and user's names as whole words, with their replacement."""
    host = socket.gethostname()
    names = {host: HOST, host.partition(".")[0]: HOST}
    with contextlib.suppress(OSError, KeyError):  # the user of a container may have no name
        names.setdefault(getpass.getuser(), USER)
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE), replacement)
        for name, replacement in names.items()
        if len(name) > 1 and name.lower() not in _COMMON_NAMES
    )
