"""How much longer ONNX Runtime's runs took because they were profiled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

STRETCHED = 1.1
"""From this ratio on a stretch is worth a word."""


def lengths(ops: Table, runs: IntArray) -> tuple[IntArray, IntArray]:
    """Return how long the calls of some runs took, and would have taken unprofiled.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    runs
        Rows of runs.

    Returns
    -------
    call_ns, unprofiled_ns
        int64 arrays, one value a run. The second is the median of unprofiled runs of the same
        session with inputs of the same shapes. `MISSING` where a time was not measured.
    """
    args = ops.names("args")
    said = [json.loads(args.categories[code]) if code >= 0 else {} for code in args.codes[runs]]
    call, plain = (
        np.array([_number(each.get(key)) for each in said], np.int64)
        for key in ("call_ns", "unprofiled_ns")
    )
    return call, plain


def _number(value: object) -> int:
    # A file may say anything.
    return value if isinstance(value, int) and 0 < value < 2**62 else MISSING


def by_session(ops: Table) -> list[dict[str, Any]]:
    """Return, for each session that ran, how much profiling stretched its runs.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Returns
    -------
    sessions
        JSON-serialisable, one entry a session: ``session`` (its number), ``runs`` (all in the
        profile), ``compared`` (those for which an unprofiled run was seen), and where there are
        such, ``profiled_ns`` and ``unprofiled_ns`` (medians over them) and ``stretch``, the ratio.
    """
    run = ops.names("category").equals("session") & ops.names("op_type").equals("run")
    rows = np.flatnonzero(run & ~ops.names("status").equals("earlier"))
    call, plain = lengths(ops, rows)
    session = ops["session"][rows]
    found = []
    for number in np.unique(session[session != MISSING]).tolist():
        mine = session == number
        both = mine & (call != MISSING) & (plain != MISSING)
        entry = {"session": number, "runs": int(mine.sum()), "compared": int(both.sum())}
        if both.any():
            profiled, unprofiled = int(np.median(call[both])), int(np.median(plain[both]))
            entry |= {"profiled_ns": profiled, "unprofiled_ns": unprofiled}
            entry["stretch"] = round(profiled / unprofiled, 3)
        found.append(entry)
    return found


def stretch_of(info: dict[str, Any], session: int) -> float:
    """Return a session's stretch as `Profile.info` tells it; 1 where it was not measured."""
    for entry in info.get("onnxruntime_stretch") or ():
        if isinstance(entry, dict) and entry.get("session") == session:
            stretch = entry.get("stretch")
            return max(1.0, float(stretch)) if isinstance(stretch, int | float) else 1.0
    return 1.0


def stretch_at(profile: ProfileData, op_id: int) -> float:
    """Return the stretch of the session whose event an op is; 1 for another op."""
    if not profile.info.get("onnxruntime_stretch"):
        return 1.0  # no session was measured, and ops may be millions
    ops = profile.tables["ops"]
    row = np.flatnonzero(ops["op_id"] == op_id)
    return stretch_of(profile.info, int(ops["session"][row[0]])) if len(row) else 1.0
