"""Activities of copies, as the host device and the recorder of its sessions log them."""

from __future__ import annotations

from epprof_nb.host._log import Activity


def copy_activity(
    name: str, correlation_id: int, stream_id: int, *, nbytes: int, copy_kind: str, host_kind: str
) -> Activity:
    """Return the activity of a copy.

    Parameters
    ----------
    name, correlation_id, stream_id, nbytes
        See `Activity`.
    copy_kind
        Direction in CUPTI's letters, such as ``"HtoD"``.
    host_kind
        Kind of the memory of the host, ``"pinned"`` or ``"pageable"``.
    """
    kind_of = {"H": host_kind, "D": "device"}
    return Activity(
        "memcpy", name, correlation_id, stream_id, nbytes, copy_kind,
        kind_of[copy_kind[0]], kind_of[copy_kind[-1]],
    )  # fmt: skip
