"""Replacement of paths, hosts, shapes and source in text.

`epprof_nb.files.redaction.path_patterns` recognises paths, and `host_and_user_patterns` beside it
the names of hosts and users.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.files.redaction.host_and_user_patterns import without_hosts_and_users
from epprof_nb.files.redaction.path_patterns import (
    PATH,
    without_bare_paths,
    without_quoted_paths,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SHAPE, SOURCE = "(shape)", "(source)"

_SHORTEST_CODE = 6
"""Shorter pieces of source text (``x = 1``) reveal nothing and may be part of other words."""
_THREAD_OF = re.compile(r"\b(Thread-\d+) \([^()]*\)")
"""Names that Python gives to threads, with the function that they run."""
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
    source
        Whether to replace the functions in the names of threads.
    source_pieces
        Pieces of source text to replace wherever they are quoted.
    files
        Names of files to replace everywhere, in any form.
    """

    def __init__(
        self,
        *,
        paths: bool,
        hosts: bool,
        shapes: bool,
        source: bool = False,
        source_pieces: Iterable[str] = (),
        files: Iterable[str] = (),
    ) -> None:
        self.paths, self.hosts, self.shapes, self.source = paths, hosts, shapes, source
        names = "|".join(map(re.escape, sorted(filter(None, files), key=len, reverse=True)))
        self._files = re.compile(rf"(?<!\w)(?:{names})(?!\w)") if names else None
        pieces = [t for t in source_pieces if len(t) >= _SHORTEST_CODE and re.search(r"\W", t)]
        pieces.sort(key=len, reverse=True)
        self._source_pieces = pieces

    def __call__(self, text: str) -> str:
        """Filter a text of the user or a note."""
        text = self._remove_source(text)
        if self.shapes:
            text = _CROSSED_SHAPE.sub(SHAPE, text)
        if self.source:
            text = _THREAD_OF.sub(r"\1", text)
        if self.paths:
            text = without_quoted_paths(text)
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
        if self.paths and self._files:
            text = self._files.sub(PATH, text)
        if self.paths and paths:
            text = without_bare_paths(text)
        if self.hosts:
            text = without_hosts_and_users(text)
        return text
