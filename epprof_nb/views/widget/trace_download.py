"""The profile as a trace that the user of a live view downloads and opens in Perfetto."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from epprof_nb.views.widget.requests import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.data.profile_data import ProfileData

_MAX_EVENTS = 1_000_000
"""Maximum number of events; more would block the kernel and exhaust the browser's memory."""
_TABLES = ("ops", "api_calls", "activities")


def trace(profile: ProfileData, write: Callable[[Path], None] | None) -> Response:
    """Return a gzip-compressed Chrome trace, an error, or nothing if `write` is None."""
    if write is None:
        return Response({})
    events = sum(len(profile.tables[name]) for name in _TABLES)
    if events > _MAX_EVENTS:
        return Response({"error": f"A trace of {events:,} events is too large for a download."})
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json.gz"
            write(path)
            return Response({}, path.read_bytes())
    except (OSError, ValueError) as error:
        return Response({"error": f"The trace was not written: {error}"})
