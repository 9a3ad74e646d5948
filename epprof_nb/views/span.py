"""What happened in one span of time: the device's time clipped to it, and what took it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.breakdown import NO_OP
from epprof_nb.analysis.intervals import union
from epprof_nb.analysis.lookup import add_up
from epprof_nb.schema import MISSING
from epprof_nb.views.layout import device_names
from epprof_nb.views.work import KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from epprof_nb.table import Names
    from epprof_nb.views.prepared import Prepared

Ints = npt.NDArray[np.int64]

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
    profile, work = prepared.profile, prepared.work
    activities = profile.tables["activities"]
    rows = prepared.moments.rows(start_ns, end_ns)
    rows = rows[prepared.device_work[rows]]
    kinds = work.kinds[rows]
    begin = np.maximum(activities["start_ns"][rows], start_ns)
    end = np.minimum(activities["end_ns"][rows], end_ns)
    spent = np.maximum(end - begin, 0)
    copies = kinds == MEMCPY
    names = activities.names("name")
    op_names = profile.tables["ops"].names("name")
    # Row -1, no op, is the last element: no name.
    op_codes = np.append(op_names.codes, np.int32(MISSING))[work.activity_op[rows]]
    return {
        "start": start_ns,
        "end": end_ns,
        "devices": _busy(prepared, rows, begin, end),
        "device_ns": int(spent.sum()),
        "kernels": int((kinds == KERNEL).sum()),
        "copies": int(copies.sum()),
        "sets": int((kinds == MEMSET).sum()),
        "bytes": int(np.maximum(activities["bytes"][rows[copies]], 0).sum()),
        "ops": _table(op_codes, op_names, spent, NO_OP, top),
        "names": _table(names.codes[rows], names, spent, _NO_NAME, top),
    }


def _busy(prepared: Prepared, rows: Ints, begin: Ints, end: Ints) -> list[dict[str, Any]]:
    profile = prepared.profile
    on = profile.tables["activities"]["device_id"]
    names = device_names(profile.info)
    told = []
    for device in (b.device_id for b in prepared.summary.busy):
        mine = on[rows] == device
        starts, ends = union(begin[mine], end[mine])
        name = names.get(device, f"device {device}")
        told.append({"device": device, "name": name, "busy": int((ends - starts).sum())})
    return told


def _table(
    codes: npt.NDArray[np.int32], names: Names, spent: Ints, missing: str, top: int
) -> dict[str, Any]:
    """Add up times by name, the longest first; code -1 counts as `missing`."""
    text = [*names.categories, missing]
    total = add_up(codes.astype(np.int64), spent, len(names.categories))
    count = np.roll(np.bincount(codes + 1, minlength=len(text)), -1)
    order = np.lexsort((-count, -total))
    order = order[count[order] > 0]
    rows = [[text[i], int(count[i]), int(total[i])] for i in order[:top]]
    return {"rows": rows, "total": len(order)}
