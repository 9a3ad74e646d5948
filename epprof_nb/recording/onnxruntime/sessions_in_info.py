"""ONNX Runtime sessions in `Profile.info`, and the notes about them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.onnx.fallback import has_accelerator
from epprof_nb.analysis.onnx.profiler_slowdown import NOTABLE_SLOWDOWN, by_session
from epprof_nb.analysis.onnx.recorded_runs import runs_by_session, uncovered_inputs
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data import ort_runs
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.onnxruntime import choice_of_runs, run_log, sessions
from epprof_nb.recording.onnxruntime.event_nesting import EventNesting
from epprof_nb.recording.onnxruntime.learned_nodes import has_subgraphs
from epprof_nb.util.format import plural, shorten, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.data.table import Table

_MAX_NAMED, _MAX_NAME = 3, 60


def session_info(ops: Table) -> dict[str, Any]:
    """Return the entries of `Profile.info` about ONNX Runtime.

    Parameters
    ----------
    ops
        The profile's ops.

    Returns
    -------
    entries
        ``onnxruntime_sessions``: the name of each session by its number (as a string, for JSON);
        ``onnxruntime_providers``: the execution providers of each, likewise;
        ``onnxruntime_selected``: the options ``only`` and ``nodes`` of sessions with Python
        kernels, if set;
        ``onnxruntime_stretch``: see `epprof_nb.analysis.onnx.profiler_slowdown.by_session`;
        ``onnxruntime_runs``: see `epprof_nb.analysis.onnx.recorded_runs.runs_by_session`.
    """
    numbers = np.unique(ops["session"][ops["session"] != MISSING]).tolist()
    observed = {str(number): sessions.observed_by_number(number) for number in numbers}
    return {
        "onnxruntime_sessions": {number: each.name for number, each in observed.items()},
        "onnxruntime_providers": {
            number: list(each.providers) for number, each in observed.items()
        },
        "onnxruntime_selected": {
            number: each.selected for number, each in observed.items() if each.selected
        },
        "onnxruntime_stretch": by_session(ops),
        "onnxruntime_runs": runs_by_session(ops),
    }


def session_notes(ops: Table, activities: Table, info: dict[str, Any]) -> list[str]:
    """Return notes for the user on the sessions.

    Parameters
    ----------
    ops, activities
        The profile's ops and activities.
    info
        The result of `session_info`.
    """
    return [
        *_failed_runs(ops, info),
        *_nodes_without_run(ops),
        *_unrecorded_captures(ops, activities, info),
        *_missing_providers(info),
        *_low_optimization(info),
        *_runs_without_node_events(ops, info),
        *_always_recorded(ops, info),
        *_profiling_overhead(info),
    ]


def _failed_runs(ops: Table, info: dict[str, Any]) -> Iterator[str]:
    is_run, failed = ort_runs.is_run(ops), ops.names("status").equals("failed")
    for number in np.unique(ops["session"][is_run & failed]).tolist():
        of_session = ops["session"] == number
        names = ops.names("name").take(of_session & failed & ~is_run).to_list()
        named = Counter(name for name in names if name)
        nodes = [f"`{shorten(name, _MAX_NAME)}`" for name, _ in named.most_common(_MAX_NAMED)]
        nodes += ["..."] * (len(named) > _MAX_NAMED)
        in_node = f", in {'node' if len(named) == 1 else 'nodes'} {', '.join(nodes)}"
        which = f"{_title(info, number)}: " if len(info["onnxruntime_sessions"]) > 1 else ""
        yield (
            f"{which}{int((of_session & is_run & failed).sum()):,} of "
            f"{plural(int((of_session & is_run).sum()), 'run')} failed"
            f"{in_node if nodes else ''}: their times end with the error."
        )


def _nodes_without_run(ops: Table) -> list[str]:
    nodes = ops.names("category").equals("node") & (ops["run_id"] == MISSING)
    nodes &= ~ops.names("status").equals("earlier")
    if not nodes.any():
        return []
    note = (
        f"{int(nodes.sum()):,} node events are not assigned to a run. Their run began before this "
        "profile, or overlapped another run of a session that ONNX Runtime profiles as a whole "
        "(SessionOptions.enable_profiling). Disable that option to separate the runs."
    )
    return [note]


def _unrecorded_captures(ops: Table, activities: Table, info: dict[str, Any]) -> Iterator[str]:
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
        of_session = session == number
        yield (
            f"{_title(info, number)}: {int((of_session & ~of_node).sum()):,} of "
            f"{int(of_session.sum()):,} kernels, copies and memsets replayed from its CUDA graphs "
            "are attributed to their run but not to a node. ONNX Runtime reports captures only in "
            "the first profile in which the session runs, and these graphs were captured before "
            "or after it. Create the session again, and capture all its graphs (each "
            "gpu_graph_id) inside one profile."
        )


def _missing_providers(info: dict[str, Any]) -> Iterator[str]:
    for number in info["onnxruntime_sessions"]:
        missing = sessions.observed_by_number(int(number)).missing_providers
        if missing:
            yield (
                f"{_title(info, number)} was created for {', '.join(missing)}, but ONNX "
                "Runtime did not use it. The nodes run on "
                f"{', '.join(info['onnxruntime_providers'][number])} instead. ONNX Runtime "
                "logged the reason when the session was created."
            )


def _low_optimization(info: dict[str, Any]) -> Iterator[str]:
    for number in info["onnxruntime_sessions"]:
        level = sessions.observed_by_number(int(number)).optimization_level
        if level:
            yield (
                f"{_title(info, number)} was created with graph_optimization_level {level}: "
                "ONNX Runtime did not fuse its nodes. Unless the model file is optimized already, "
                "use ORT_ENABLE_ALL, the default."
            )


def _runs_without_node_events(ops: Table, info: dict[str, Any]) -> Iterator[str]:
    entries = info.get("onnxruntime_runs", [])
    stretch = {
        entry["session"]: entry.get("recorded_stretch", 1) for entry in info["onnxruntime_stretch"]
    }
    for entry in entries:
        runs, recorded = entry["runs"], entry["recorded"]
        which = f"{_title(info, entry['session'])}: " if len(entries) > 1 else ""
        by_node = f"{plural(recorded, 'run')} {_were(recorded)} recorded node by node"
        if stretch.get(entry["session"], 1) >= NOTABLE_SLOWDOWN:
            slowed = "it" if recorded == 1 else "them"
            by_node += f", which slowed {slowed} by {three_digits(stretch[entry['session']])}x"
        if entry["learned"] or entry["mismatched"]:
            yield (
                f"{which}Nodes of {entry['learned']:,} of {plural(runs, 'run')} were identified by "
                f"their launch sequence; {by_node}."
            )
        if entry["mismatched"]:
            yield (
                f"{which}{plural(entry['mismatched'], 'run')} launched other work than the runs "
                "recorded before. Their device work is attributed to the run, not to nodes. Use "
                "ort_nodes='every' to record each run node by node."
            )
        elif entry["not_recorded"] and not recorded:
            yield f"{which}{ort_runs.reason_without_nodes(runs, sessions.mode())}"
        elif entry["not_recorded"]:
            yield (
                f"{which}The nodes of {recorded:,} of {plural(runs, 'run')} were recorded, to keep "
                "the profiling overhead low. Counts and times of nodes cover only these runs; "
                "`unprofiled_host_ns` is an estimate for all runs"
                f"{_uncovered(ops, entry['session'])}. Use ort_nodes='every' to record each run."
            )


def _uncovered(ops: Table, number: int) -> str:
    """Say how many shapes of inputs no recorded run of a session has; empty for none."""
    uncovered, shapes = uncovered_inputs(ops, number)
    if not uncovered:
        return ""
    return (
        f", but no recorded run has {uncovered:,} of its {shapes:,} shapes of inputs: their nodes "
        "are assumed to take the same shares of the time as in recorded runs"
    )


def _always_recorded(ops: Table, info: dict[str, Any]) -> Iterator[str]:
    """Say why all runs of a session were recorded in the mode ``"auto"``."""
    for entry in info.get("onnxruntime_runs", []) if sessions.mode() == "auto" else []:
        if entry["runs"] <= choice_of_runs.FIRST_RUNS or entry["recorded"] < entry["runs"]:
            continue
        observed = sessions.observed_by_number(entry["session"])
        accelerated = has_accelerator(observed.providers)
        if observed.session_profile and not observed.captures_graphs:
            reason = "ONNX Runtime profiles the whole session (SessionOptions.enable_profiling)"
        elif observed.uses_pool_threads and accelerated:
            reason = "they run on the threads of a pool (ORT_PARALLEL)"
        elif accelerated and has_subgraphs(
            ops, EventNesting(ops), np.flatnonzero(ops["session"] == observed.number)
        ):
            reason = "its model has subgraphs, and equal launches may come from different nodes"
        elif accelerated and _learns_nothing(ops, observed.number):
            reason = "its launches do not prove which node made them"
        else:
            continue
        title = _title(info, entry["session"])
        yield f"{title}: the nodes of all its runs were recorded, because {reason}."


def _learns_nothing(ops: Table, number: int | None) -> bool:
    logged = run_log.logged_runs()
    of_session = ops["op_id"][ops["session"] == number].tolist()
    histories = (logged[op].history for op in of_session if op in logged)
    return any(history is not None and not history.may_learn for history in histories)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _profiling_overhead(info: dict[str, Any]) -> Iterator[str]:
    entries = info["onnxruntime_stretch"]
    slowed = [entry for entry in entries if entry.get("stretch", 1) >= NOTABLE_SLOWDOWN]
    slowed.sort(key=lambda entry: -entry["runs"] * (entry["profiled_ns"] - entry["unprofiled_ns"]))
    if slowed:
        worst, *others = slowed
        which = _title(info, worst["session"])
        all_recorded = _recorded_runs(info, worst["session"]) == worst["runs"]
        cause = (
            "Most of this is ONNX Runtime's own profiling of each node. " if all_recorded else ""
        )
        if others:
            more = [
                f"{_title(info, entry['session'])} {three_digits(entry['stretch'])}x"
                for entry in others[:_MAX_NAMED]
            ]
            if len(others) > _MAX_NAMED:
                more.append(f"{len(others) - _MAX_NAMED} more")
            which += f", and {plural(len(others), 'other')} ({', '.join(more)})"
        yield (
            f"{which}: profiling slowed these runs by {three_digits(worst['stretch'])}x (median of "
            "the ratios to unprofiled runs with the same input shapes). "
            f"{cause}Device times are accurate; host times and the gaps between device activities "
            "are too long."
        )
    # If few runs were recorded node by node, recording hardly slows the code down.
    mostly = {
        entry["session"]
        for entry in info.get("onnxruntime_runs", [])
        if 2 * entry["recorded"] >= entry["runs"]
    }
    unknown = [e for e in entries if not e["compared"] and e["session"] in mostly]
    if unknown:
        which = _title(info, unknown[0]["session"])
        if len(unknown) > 1:
            which = f"{which} and {plural(len(unknown) - 1, 'other')}"
        yield (
            f"{which}: recording the nodes slowed these runs down by an unknown factor, so their "
            "host times are too long. The factor is measured for runs that do not overlap, after "
            "two unprofiled runs with the same input shapes."
        )


def _recorded_runs(info: dict[str, Any], number: int) -> int:
    """Return how many runs of a session were recorded node by node."""
    entries = info.get("onnxruntime_runs", [])
    return sum(entry["recorded"] for entry in entries if entry["session"] == number)


def _title(info: dict[str, Any], number: int | str) -> str:
    """Return the name of a session, with its number if another session has the same name."""
    names = info["onnxruntime_sessions"]
    name = str(names[str(number)])
    return name if list(names.values()).count(name) == 1 else f"{name} (session {number})"
