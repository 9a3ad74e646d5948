"""Slowdown of ONNX Runtime's runs by profiling: their duration relative to unprofiled runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.onnx.recorded_runs import (
    NOT_RECORDED,
    RECORDED,
    node_events,
    number_of,
    run_args,
    run_rows,
)
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

    FloatArray = npt.NDArray[np.float64]

NOTABLE_SLOWDOWN = 1.1
"""Minimum notable ratio."""


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
    args = run_args(ops, runs)
    call, unprofiled = (
        np.array([number_of(of_run.get(key)) for of_run in args], np.int64)
        for key in ("call_ns", "unprofiled_ns")
    )
    return call, unprofiled


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
        ratios. If only some runs were recorded node by node, ``recorded_stretch`` is the median of
        these; ``stretch`` is left out if only these were compared but most runs were not recorded,
        and if no nodes of any run are known: nothing slows such runs down but other work.
    """
    rows = run_rows(ops)
    state = np.array(node_events(ops, rows), object)
    recorded = state == RECORDED
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
            # Runs with different shapes take different times, so each has its own unprofiled time.
            ratio = call / unprofiled
            some = both & recorded
            is_of_recorded = bool(recorded[both].all())
            has_nodes = bool((state[of_session] != NOT_RECORDED).any())
            if has_nodes and (
                not is_of_recorded or 2 * (of_session & recorded).sum() >= of_session.sum()
            ):
                entry["stretch"] = round(float(np.median(ratio[both])), 3)
            if some.any() and not recorded[of_session].all():
                entry["recorded_stretch"] = round(float(np.median(ratio[some])), 3)
        sessions.append(entry)
    return sessions


def _entry(info: dict[str, Any], session: int) -> dict[str, Any]:
    """Return the entry on the slowdown of a session in a profile's info; empty for none."""
    entries = info.get("onnxruntime_stretch") or ()
    of_session = (e for e in entries if isinstance(e, dict) and e.get("session") == session)
    return next(of_session, {})


def slowdown_of(info: dict[str, Any], session: int) -> float:
    """Return a session's slowdown from a profile's info, at least 1; 1 if it was not measured."""
    slowdown = _entry(info, session).get("stretch")
    return max(1.0, float(slowdown)) if isinstance(slowdown, int | float) else 1.0


def slowdown_of_nodes(info: dict[str, Any], session: int) -> float:
    """Return the slowdown of a session's runs that were recorded node by node, at least 1."""
    return measured_slowdown(info, session) or 1.0


def measured_slowdown(info: dict[str, Any], session: int) -> float | None:
    """Return `slowdown_of_nodes`; None if no such run was compared with unprofiled ones."""
    entry = _entry(info, session)
    for name in ("recorded_stretch", "stretch"):
        slowdown = entry.get(name)
        if isinstance(slowdown, int | float):
            return max(1.0, float(slowdown))
    return None


def without_profiling(info: dict[str, Any], session: int, call_ns: IntArray) -> FloatArray | None:
    """Return how long recorded runs take unprofiled; None if none of the session was compared.

    Each run executes the same nodes, so recording costs a long run no more than a short one. The
    cost of the compared runs is subtracted, but no more than their slowdown explains.
    """
    slowdown = measured_slowdown(info, session)
    if slowdown is None:
        return None
    typical = _entry(info, session).get("unprofiled_ns")
    cost = typical * (slowdown - 1) if isinstance(typical, int | float) else np.inf
    without: FloatArray = np.maximum(call_ns / slowdown, call_ns - cost)
    return without


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
