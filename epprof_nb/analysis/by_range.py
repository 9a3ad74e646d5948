"""What happened in one span of time: the device's time clipped to it, and what took it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.by_op import NO_OP
from epprof_nb.analysis.devices import device_names
from epprof_nb.analysis.range_sums import Adding, ByName, joined

if TYPE_CHECKING:
    from epprof_nb.data.table import Names
    from epprof_nb.views.view_model import Prepared

_NO_NAME = "(no name)"


def breakdown(prepared: Prepared, start_ns: int, end_ns: int, top: int = 12) -> dict[str, Any]:
    """Break down the device's time in a span.

    Parameters
    ----------
    prepared
        The profile.
    start_ns, end_ns
        The span, nanoseconds since the profile's start.
    top
        Rows of each table at most.

    Returns
    -------
    told
        JSON-serialisable. Activities with a part in the span count whole, their time and what is
        shared by it only as far as it lies within.

        ``start``, ``end``
            The span, ns.
        ``devices``
            ``device``, ``name`` and ``busy`` (ns in which it did any work) of each device of the
            profile.
        ``device_ns``
            Time of all kernels, copies and sets added up.
        ``kernels``, ``copies``, ``sets``, ``bytes``
            How many, and the bytes of the copies.
        ``ops``, ``names``
            ``rows``, each ``[name, count, ns]``, the most time first, and ``total``, how many
            there are: by the op that launched, and by the name of the kernel, copy or set. Each
            adds up to ``device_ns``.
    """
    profile, moments = prepared.profile, prepared.moments
    pieces = [prepared.sums[n] for n in np.flatnonzero(moments.whole(start_ns, end_ns)).tolist()]
    adding = Adding(prepared)
    parts = [adding.of(rows, start_ns, end_ns) for rows in moments.parts(start_ns, end_ns)]
    counts, ops, names = zip(adding.of(slice(0, 0)), *pieces, *parts, strict=True)
    kernels, copies, sets, moved, spent = np.sum(counts, axis=0).tolist()
    return {
        "start": start_ns,
        "end": end_ns,
        "devices": _busy(prepared, start_ns, end_ns),
        "device_ns": spent,
        "kernels": kernels,
        "copies": copies,
        "sets": sets,
        "bytes": moved,
        "ops": _table(joined(ops), profile.tables["ops"].names("name"), NO_OP, top),
        "names": _table(joined(names), profile.tables["activities"].names("name"), _NO_NAME, top),
    }


def _busy(prepared: Prepared, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    names = device_names(prepared.profile.info)
    told = []
    for device in sorted({lane.device for lane in prepared.layout.lanes if lane.device >= 0}):
        starts, ends = prepared.shared.busy(device)
        inside = slice(np.searchsorted(ends, start_ns, "right"), np.searchsorted(starts, end_ns))
        begin, stop = np.maximum(starts[inside], start_ns), np.minimum(ends[inside], end_ns)
        name = names.get(device, f"device {device}")
        told.append({"device": device, "name": name, "busy": int((stop - begin).sum())})
    return told


def _table(sums: ByName, names: Names, missing: str, top: int) -> dict[str, Any]:
    """Return the names that took the most time, and how many there are."""
    order = np.lexsort((-sums.number, -sums.spent))
    rows = [
        [names.categories[code] if code >= 0 else missing, int(number), int(spent)]
        for code, number, spent in zip(*(column[order[:top]] for column in sums), strict=True)
    ]
    return {"rows": rows, "total": len(order)}
