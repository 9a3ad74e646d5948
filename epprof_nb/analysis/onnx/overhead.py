"""Slowdown of ONNX Runtime's runs by profiling: their duration relative to unprofiled runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

RECORDED, LEARNED, MISMATCHED, NOT_RECORDED = (
    "recorded", "learned", "mismatched", "not recorded",
)  # fmt: skip
"""How the nodes of a run are known."""
CAPTURED = "captured"
"""Likewise, of a run that replays a graph: by the ops that captured the graph."""

NOTABLE_SLOWDOWN = 1.1
"""Smallest ratio that is worth mentioning."""


def call_durations(ops: Table, runs: IntArray) -> tuple[IntArray, IntArray]:
    """Return how long the calls of some runs took, and how long they take unprofiled.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    runs
        Rows of runs.

    Returns
    -------
    call_ns, unprofiled_ns
        int64 arrays, one value per run. The second is the median of unprofiled runs of the same
        session with inputs of the same shapes. `MISSING` if a time was not measured.
    """
    args = _args(ops, runs)
    call, unprofiled = (
        np.array([_duration(of_run.get(key)) for of_run in args], np.int64)
        for key in ("call_ns", "unprofiled_ns")
    )
    return call, unprofiled


def node_events(ops: Table, runs: IntArray) -> list[str | None]:
    """Return how the nodes of some runs are known; see `epprof_nb.analysis.onnx.by_run.by_run`.

    It is unknown, None, of a run that was still in progress at the end of the profile.
    """
    is_open = ops.names("status").equals("open")[runs].tolist()
    known = [of_run.get("nodes", RECORDED) for of_run in _args(ops, runs)]
    return [
        None if open_run or nodes is None else str(nodes)
        for open_run, nodes in zip(is_open, known, strict=True)
    ]


def _args(ops: Table, runs: IntArray) -> list[dict[str, Any]]:
    args = ops.names("args")
    parsed = (json.loads(args.categories[c]) if c >= 0 else {} for c in args.codes[runs].tolist())
    # A file may contain anything.
    return [of_run if isinstance(of_run, dict) else {} for of_run in parsed]


def _duration(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 2**62 else MISSING


def runs_by_session(ops: Table) -> list[dict[str, Any]]:
    """Return how the nodes of each session's runs are known.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Returns
    -------
    sessions
        JSON-serialisable, one entry per session: ``session`` (its number), ``runs`` (in the
        profile), and the number of those ``recorded``, ``learned``, ``mismatched`` and
        ``not_recorded``.
    """
    rows = run_rows(ops)
    known = np.array(node_events(ops, rows), object)
    session = ops["session"][rows]
    return [
        {
            "session": number,
            "runs": int((session == number).sum()),
            **{
                state.replace(" ", "_"): int(((session == number) & (known == state)).sum())
                for state in (RECORDED, LEARNED, MISMATCHED, NOT_RECORDED)
            },
        }
        for number in np.unique(session[session != MISSING]).tolist()
    ]


def run_rows(ops: Table) -> IntArray:
    """Return the rows of the runs of the profile."""
    return np.flatnonzero(ort_runs.is_run(ops) & ran(ops))


def by_session(ops: Table) -> list[dict[str, Any]]:
    """Return the slowdown of each session that ran.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Returns
    -------
    sessions
        JSON-serialisable, one entry per session: ``session`` (its number), ``runs`` (in the
        profile), ``compared`` (runs for which an unprofiled run is known), and if there are such,
        ``profiled_ns`` and ``unprofiled_ns`` (their medians) and ``stretch``, the median of their
        ratios. If only some of them were recorded node by node, ``recorded_stretch`` is that of
        those; without ``stretch`` if no other run was compared, but most runs were others.
    """
    rows = run_rows(ops)
    recorded = np.array(node_events(ops, rows), object) == RECORDED
    call, unprofiled = call_durations(ops, rows)
    session = ops["session"][rows]
    sessions = []
    for number in np.unique(session[session != MISSING]).tolist():
        of_session = session == number
        both = of_session & (call != MISSING) & (unprofiled != MISSING)
        entry = {"session": number, "runs": int(of_session.sum()), "compared": int(both.sum())}
        if both.any():
            profiled_ns, unprofiled_ns = (int(np.median(ns[both])) for ns in (call, unprofiled))
            entry |= {"profiled_ns": profiled_ns, "unprofiled_ns": unprofiled_ns}
            # Runs of other shapes take other times, so each is compared with its own.
            ratio = call / unprofiled
            some = both & recorded
            is_of_recorded = bool(recorded[both].all())
            if not is_of_recorded or 2 * (of_session & recorded).sum() >= of_session.sum():
                entry["stretch"] = round(float(np.median(ratio[both])), 3)
            if some.any() and not recorded[of_session].all():
                entry["recorded_stretch"] = round(float(np.median(ratio[some])), 3)
        sessions.append(entry)
    return sessions


def slowdown_of(info: dict[str, Any], session: int) -> float:
    """Return a session's slowdown from a profile's info, at least 1; 1 if it was not measured."""
    for entry in info.get("onnxruntime_stretch") or ():
        if isinstance(entry, dict) and entry.get("session") == session:
            slowdown = entry.get("stretch")
            return max(1.0, float(slowdown)) if isinstance(slowdown, int | float) else 1.0
    return 1.0


def slowdown_of_nodes(info: dict[str, Any], session: int) -> float:
    """Return the slowdown of a session's runs that were recorded node by node, at least 1."""
    for entry in info.get("onnxruntime_stretch") or ():
        if isinstance(entry, dict) and entry.get("session") == session:
            slowdown = entry.get("recorded_stretch")
            if isinstance(slowdown, int | float):
                return max(1.0, float(slowdown))
    return slowdown_of(info, session)


def largest_slowdown(info: dict[str, Any]) -> float | None:
    """Return the largest slowdown of a session from a profile's info; None if none was measured."""
    entries = info.get("onnxruntime_stretch") or ()
    measured = [
        slowdown_of(info, entry["session"])
        for entry in (entries if isinstance(entries, list | tuple) else ())
        if isinstance(entry, dict) and "session" in entry and "stretch" in entry
    ]
    return max(measured, default=None)


def slowdown_at(profile: ProfileData, op_id: int) -> float:
    """Return the slowdown of an op's session; 1 for an op without a session."""
    if not profile.info.get("onnxruntime_stretch"):
        return 1.0  # avoids a search among millions of ops
    ops = profile.tables["ops"]
    row = np.flatnonzero(ops["op_id"] == op_id)
    return slowdown_of(profile.info, int(ops["session"][row[0]])) if len(row) else 1.0
