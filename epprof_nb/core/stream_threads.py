"""Names of the threads that do the work of the host device's streams."""

from __future__ import annotations

_PREFIX = "epprof-host-stream-"


def stream_thread_name(stream_id: int) -> str:
    """Return the name of the thread of a stream.

    Examples
    --------
    >>> stream_thread_name(2)
    'epprof-host-stream-2'
    """
    return f"{_PREFIX}{stream_id}"


def is_stream_thread(name: str) -> bool:
    """Return whether a thread of this name does the work of a stream.

    Examples
    --------
    >>> is_stream_thread("epprof-host-stream-2"), is_stream_thread("rank 1, epprof-host-stream-0")
    (True, True)
    >>> is_stream_thread("MainThread")
    False
    """
    return _PREFIX in name
