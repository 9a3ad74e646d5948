"""What a profile says about the ONNX Runtime sessions in it: `Profile.info` and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.ort_overhead import NOTABLE_SLOWDOWN, by_session
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING
from epprof_nb.recorders.onnxruntime import sessions as ort_runs
from epprof_nb.util.format import duration, plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.data.table import Table

_MOST_NAMED = 3


def describe(ops: Table) -> dict[str, Any]:
    """Return the entries of `Profile.info` about ONNX Runtime.

    Parameters
    ----------
    ops
        The profile's ops.

    Returns
    -------
    entries
        ``onnxruntime_sessions``: the name of each session by its number (a string, as JSON has
        it); ``onnxruntime_providers``: the execution providers of each, likewise;
        ``onnxruntime_stretch``: see `epprof_nb.analysis.ort_overhead.by_session`.
    """
    numbers = np.unique(ops["session"][ops["session"] != MISSING]).tolist()
    sights = {str(number): ort_runs.sight_by_number(number) for number in numbers}
    return {
        "onnxruntime_sessions": {number: sight.name for number, sight in sights.items()},
        "onnxruntime_providers": {n: list(sight.providers) for n, sight in sights.items()},
        "onnxruntime_stretch": by_session(ops),
    }


def notes(ops: Table, activities: Table, info: dict[str, Any]) -> list[str]:
    """Return what the user should know of the sessions.

    Parameters
    ----------
    ops, activities
        The profile's ops and activities.
    info
        What `describe` returned.
    """
    return [
        *_without_run(ops),
        *_unseen_captures(ops, activities, info),
        *_refused(info),
        *_stretched(info),
    ]


def _without_run(ops: Table) -> list[str]:
    nodes = ops.names("category").equals("node") & (ops["run_id"] == MISSING)
    nodes &= ~ops.names("status").equals("earlier")
    if not nodes.any():
        return []
    found = (
        f"{int(nodes.sum()):,} node events belong to no run for certain: their run began before "
        "this profile, or ran beside another one of a session that ONNX Runtime profiles as a "
        "whole (SessionOptions.enable_profiling). Leave that off to tell the runs apart."
    )
    return [found]


def _unseen_captures(ops: Table, activities: Table, info: dict[str, Any]) -> Iterator[str]:
    replayed = np.flatnonzero(activities["graph_node_id"] != MISSING)
    if not len(replayed) or not info["onnxruntime_sessions"]:
        return
    launched, captured = (
        IdIndex(ops["op_id"]).rows(activities[name][replayed])
        for name in ("op_id", "capture_op_id")
    )
    session = np.append(ops["session"], MISSING)[launched]
    of_node = np.append(ops.names("category").equals("node"), [False])[captured]
    for number in np.unique(session[(session != MISSING) & ~of_node]).tolist():
        mine = session == number
        yield (
            f"{_named(info, {'session': number})}: {int((mine & ~of_node).sum()):,} of "
            f"{int(mine.sum()):,} kernels, copies and sets replayed from its CUDA graphs know "
            "their run, not their node: ONNX Runtime tells of a capture only in the first profile "
            "in which the session runs, and these graphs were captured before or after it. Make "
            "the session again, and capture all its graphs (each gpu_graph_id) inside one profile."
        )


def _refused(info: dict[str, Any]) -> Iterator[str]:
    for number, name in info["onnxruntime_sessions"].items():
        refused = ort_runs.sight_by_number(int(number)).refused
        if refused:
            yield (
                f"{name} (session {number}) was to run on {', '.join(refused)}, which ONNX "
                "Runtime did not give it: all that it could not take runs on "
                f"{', '.join(info['onnxruntime_providers'][number])}. ONNX Runtime wrote why when "
                "the session was made."
            )


def _stretched(info: dict[str, Any]) -> Iterator[str]:
    all_sessions = info["onnxruntime_stretch"]
    told = [each for each in all_sessions if each.get("stretch", 1) >= NOTABLE_SLOWDOWN]
    told.sort(key=lambda each: -each["runs"] * (each["profiled_ns"] - each["unprofiled_ns"]))
    if told:
        worst, *others = told
        which = _named(info, worst)
        if others:
            more = [
                f"session {each['session']} {three_digits(each['stretch'])}x"
                for each in others[:_MOST_NAMED]
            ]
            if len(others) > _MOST_NAMED:
                more.append(f"{len(others) - _MOST_NAMED} more")
            which += f", and {plural(len(others), 'other')} ({', '.join(more)})"
        yield (
            f"{which}: being profiled stretched its runs "
            f"{three_digits(worst['stretch'])}x ({duration(worst['unprofiled_ns'])} -> "
            f"{duration(worst['profiled_ns'])}, medians). This is mostly ONNX Runtime's own "
            "noting of each node: device times are to be trusted; host times and the gaps between "
            "device work are stretched."
        )
    unknown = [each for each in all_sessions if not each["compared"]]
    if unknown:
        which = _named(info, unknown[0])
        if len(unknown) > 1:
            which = f"{which} and {plural(len(unknown) - 1, 'other')}"
        yield (
            f"{which}: how far profiling stretched the runs is not measured. It is where a run "
            "goes on alone, and the session ran twice with such inputs before the profile."
        )


def _named(info: dict[str, Any], entry: dict[str, Any]) -> str:
    number = entry["session"]
    return f"{info['onnxruntime_sessions'][str(number)]} (session {number})"
