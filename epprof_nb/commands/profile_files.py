"""Files of profiles and traces: read by their content, written by the suffix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.profiles import Profile, load, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_ZIP = b"PK"
_WRITERS: dict[str, Callable[[Profile, Path], None]] = {
    ".epprof": Profile.save,
    ".html": Profile.to_html,
    ".pftrace": Profile.to_perfetto,
    ".pftrace.gz": Profile.to_perfetto,
    # Before .json, which these names end in, too.
    ".speedscope.json": Profile.to_speedscope,
    ".speedscope.json.gz": Profile.to_speedscope,
    ".json": Profile.to_chrome,
    ".json.gz": Profile.to_chrome,
}
SUFFIXES = tuple(_WRITERS)
"""Suffixes that `writer_for` knows."""


def open_any(path: Path) -> Profile:
    """Read a saved profile, which is a zip archive, or a trace of another tool."""
    with path.open("rb") as file:
        is_profile = file.read(len(_ZIP)) == _ZIP
    return load(path) if is_profile else read_trace(path)


def writer_for(path: Path) -> Callable[[Profile, Path], None] | None:
    """Return the method that writes the format of a path's suffix; None for other suffixes."""
    return next((write for suffix, write in _WRITERS.items() if path.name.endswith(suffix)), None)
