"""Source locations and text of the functions decorated with ``@epprof_nb.op``."""

from __future__ import annotations

import inspect
import linecache
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from epprof_nb.data.table import Table

_FUNCTIONS = 40
_LINES = 300
_LINE_CHARACTERS = 400
_FILE_BYTES = 4_000_000

_lock = fork_safe_lock()
_locations: dict[str, tuple[str, int]] = {}
"""Op name to the file and first line of the most recently decorated function."""


def register(name: str, function: object) -> None:
    """Register the source location of a function that runs inside the range `name`."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
    if code is not None:
        with _lock:
            _locations[name] = (code.co_filename, code.co_firstlineno)


def sources_of(ops: Table) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the source locations and text of the functions of a profile's ranges.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Returns
    -------
    places
        Op name to ``{"file", "line"}`` with the first line of the function, for at most forty
        functions in readable files. Functions defined in cells are shown with their cell.
    sources
        File name to text, which contains the functions of `places` and blank lines otherwise.
    """
    with _lock:
        known = dict(_locations)
    ranges = ops.names("name").take(ops.names("op_type").equals("range"))
    names = [name for name in ranges.compact().categories if name in known][:_FUNCTIONS]
    places: dict[str, dict[str, Any]] = {}
    files: dict[str, dict[int, str]] = {}
    for name in names:
        file, first = known[name]
        block = _block(file, first)
        if not block:
            continue
        places[name] = {"file": file, "line": first}
        files.setdefault(file, {}).update(enumerate(block, first))
    sources = {
        file: "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
        for file, lines in files.items()
    }
    return places, sources


def _block(file: str, first: int) -> list[str]:
    """Return the lines of the function that begins at line `first`; empty if not readable."""
    try:
        path = Path(file)
        if not path.is_file() or path.stat().st_size > _FILE_BYTES:
            return []
        linecache.checkcache(file)
        lines = linecache.getlines(file)[first - 1 :]
        block = inspect.getblock(lines[: _LINES * 4])[:_LINES]
    except (OSError, ValueError, SyntaxError, tokenize.TokenError):
        # The file does not exist or has changed since it was imported.
        return []
    return [line.rstrip("\r\n")[:_LINE_CHARACTERS] for line in block]
