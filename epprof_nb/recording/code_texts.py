"""Text of functions, cells and modules whose code ran, by file.

Reading a source runs code of loaders and opens arbitrary files. A source that cannot be read safely
has no text; the rest of the profile is complete.
"""

from __future__ import annotations

import inspect
import linecache
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from importlib import util
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINES, _LINE_CHARACTERS, _FILE_BYTES = 2000, 400, 4_000_000


class CodeTexts:
    """Texts of files with only the added functions, at their lines."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[int, str]] = {}
        self._read = cache(_source_lines)

    def add(self, file: str, first: int, *, shown: str, whole: bool = False) -> bool:
        """Add the function that begins at a line, and return whether its text can be read.

        Parameters
        ----------
        file
            The file of the function's code object.
        first
            Its first line, from 1.
        shown
            The name of the file in `by_file`.
        whole
            Whether to add all lines from there on.
        """
        try:
            lines = self._read(file)[first - 1 : first - 1 + _LINES]
            block = lines if whole else inspect.getblock(lines)
            texts = [line.rstrip("\r\n")[:_LINE_CHARACTERS] for line in block]
        except Exception:  # noqa: BLE001 - loaders and linecache run code of others, which may fail
            return False
        if texts:
            self._lines.setdefault(shown, {}).update(enumerate(texts, first))
        return bool(texts)

    def by_file(self) -> dict[str, str]:
        """Return the text of each file."""
        return {
            file: "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
            for file, lines in self._lines.items()
        }


def merged_texts(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    r"""Merge two texts of some lines of each file.

    Examples
    --------
    >>> merged_texts({"a.py": "x = 1"}, {"a.py": "\n\ny = 2", "b.py": "z"})
    {'a.py': 'x = 1\n\ny = 2', 'b.py': 'z'}
    """
    merged = {**one, **other}
    for file in one.keys() & other.keys():
        pairs = zip_longest(one[file].split("\n"), other[file].split("\n"), fillvalue="")
        merged[file] = "\n".join(left or right for left, right in pairs)
    return merged


def _source_lines(file: str) -> list[str]:
    """Return the lines of a file, cell or module; none if it has changed since its import."""
    linecache.checkcache(file)
    entry = linecache.cache.get(file)
    if entry is not None and len(entry) > 1:  # only the cache has the source of a cell
        return linecache.getlines(file)
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        if entry is not None:  # linecache knows a loader
            return linecache.getlines(file)
        return _source_of_loader(file).splitlines(keepends=True)
    # Reading a pipe or a device may never end.
    is_readable = stat.S_ISREG(found.st_mode) and found.st_size <= _FILE_BYTES
    return [] if not is_readable or _has_changed(Path(file)) else linecache.getlines(file)


def _source_of_loader(file: str) -> str:
    """Return the source of a module that has no file, as in an archive."""
    for module in list(sys.modules.values()):
        # Other ways to read attributes would import a module that waits for its first use.
        with suppress(AttributeError):
            names = object.__getattribute__(module, "__dict__")
            if names.get("__file__") == file:
                spec = names["__spec__"]
                return spec.loader.get_source(spec.name) or ""
    return ""


def _has_changed(path: Path) -> bool:
    """Whether a module's file differs from the one that Python compiled when it was imported."""
    try:
        with Path(util.cache_from_source(path)).open("rb") as compiled:
            header = compiled.read(16)
    except (OSError, NotImplementedError):
        return False  # not known
    if len(header) < 16 or any(header[4:8]):
        return False  # identified by a hash of the text
    found = path.stat()
    facts = (int(found.st_mtime), found.st_size)
    return header[8:] != b"".join((fact & 0xFFFFFFFF).to_bytes(4, "little") for fact in facts)
