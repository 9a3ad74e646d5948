"""by_node, by_op_type and by_run: ONNX Runtime's nodes, operators and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.analysis.dataframe import categorical, optional
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.measures import MeasureColumns
from epprof_nb.analysis.op_status import has_host_time
from epprof_nb.analysis.op_totals import Totals, totals
from epprof_nb.analysis.ort_fallback import copies_caused, find_fallbacks
from epprof_nb.analysis.ort_overhead import call_durations, node_events
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData

NO_NODE = "(no node)"
"""Name of the row of device work without a node."""


def by_node(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the host and device time of each node of the ONNX Runtime sessions.

    Parameters
    ----------
    profile, attribution, index
        See `epprof_nb.analysis.by_op.by_op`.

    Returns
    -------
    frame
        One row per node of a session, by descending device time, then host time. A node inside
        an If, Loop or Scan has a row of its own and also counts for that one. A last row
        ``"(no node)"`` holds device work without a node, if there is any, so `self_device_ns`
        always adds up to the device time of the profile.

        ====================  ========  =======================================================
        name                  category  the node's name
        op_type, provider     category  its operator; the execution provider that runs it
        session               Int64     the session, as in ``prof.ops``
        inside                category  name of the node whose subgraph contains it, or missing
        node_index            Int64     its index in its graph
        count                 int64     executions
        recorded              int64     executions in runs that were recorded node by node; the
                                        host times are those of these executions, 0 without any
        mean_ns, p50_ns,      int64     host time per recorded execution, with all ops below; the
        p95_ns                          percentiles are durations that occurred
        host_ns               int64     host time of all recorded executions
        device_ns             int64     device time of the node and all ops below it
        self_device_ns        int64     device time of what the node launched itself
        share                 float64   `device_ns` as a fraction of all device time
        kernels, memcpys,     int64     activities of the node and all ops below it
        memsets
        bytes                 int64     bytes that these copied and set
        bandwidth             float64   bytes per second of the copies; NaN if there are none
        launch_delay_ns       Int64     mean time from a kernel's API call to its start;
                                        missing if no call was recorded
        mean_device_ns,       int64     device time per execution, with all ops below; the
        p95_device_ns                   percentile is a time that occurred
        fell_back             bool      it ran on the CPU in a session with an accelerator
        fallback_copies       int64     executions of the copy nodes that ONNX Runtime inserted
                                        for that; see `epprof_nb.analysis.ort_fallback`
        fallback_bytes,       int64     bytes that these copied, and their device time; both are
        fallback_copy_ns                also in the rows of the copy nodes
        ====================  ========  =======================================================

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_node(synthetic_profile(activities=100))["name"].tolist()  # runs no session
    ['(no node)']
    """
    index = index or ProfileIndex(profile)
    ops, tree = profile.tables["ops"], index.tree
    is_node = ops.names("category").equals("node")
    enclosing = _enclosing(tree, is_node)
    groups, first = _node_groups(profile, enclosing, is_node)
    sums = totals(index, groups, tree.nearest_ancestor(is_node), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    outer = enclosing[rows]
    outer_names = ops.names("name").take(outer).to_list()
    inside = [name if row >= 0 else None for name, row in zip(outer_names, outer, strict=True)]

    report = find_fallbacks(profile, groups)
    caused = copies_caused(profile, tree, report, groups)
    copies, size, copy_ns = (np.append(values[order], [0] * last) for values in caused)

    def names(column: str, of_last: str | None = None) -> pd.Categorical:
        return categorical([*ops.names(column).take(rows).to_list(), *[of_last] * last])

    return pd.DataFrame(
        {
            "name": names("name", NO_NODE),
            "op_type": names("op_type"),
            "provider": names("provider"),
            "session": optional([*ops["session"][rows], *[MISSING] * last]),
            "inside": categorical([*inside, *[None] * last]),
            "node_index": optional([*ops["node_index"][rows], *[MISSING] * last]),
            **_times(profile, groups, sums, order),
            "fell_back": np.append(report.fell_back[rows], [False] * last).astype(np.bool_),
            "fallback_copies": copies.astype(np.int64),
            "fallback_bytes": size.astype(np.int64),
            "fallback_copy_ns": copy_ns.astype(np.int64),
        }
    )


def by_op_type(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the host and device time of each ONNX operator and execution provider.

    Parameters
    ----------
    profile, attribution, index
        See `epprof_nb.analysis.by_op.by_op`.

    Returns
    -------
    frame
        One row per operator and provider: `op_type`, `provider` (category), `nodes` (int64:
        number of different nodes) and the columns `count` to `p95_device_ns` of `by_node`.

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_op_type(synthetic_profile(activities=100))["op_type"].tolist()  # runs no session
    ['(no node)']
    """
    index = index or ProfileIndex(profile)
    ops, tree = profile.tables["ops"], index.tree
    is_node = ops.names("category").equals("node")
    nodes, _ = _node_groups(profile, _enclosing(tree, is_node), is_node)
    codes = ops.names("op_type").codes, ops.names("provider").codes
    groups, first = _masked_group_codes(is_node, *codes)
    sums = totals(index, groups, tree.nearest_ancestor(is_node), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    node_counts = count_distinct(groups[is_node], nodes[is_node], len(first))
    types, providers = (ops.names(n).take(rows).to_list() for n in ("op_type", "provider"))
    return pd.DataFrame(
        {
            "op_type": categorical([*types, *[NO_NODE] * last]),
            "provider": categorical([*providers, *[None] * last]),
            "nodes": np.append(node_counts[order], np.zeros(last, np.int64)),
            **_times(profile, groups, sums, order),
        }
    )


def by_run(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the host and device time of each run of the ONNX Runtime sessions.

    Parameters
    ----------
    profile, attribution, index
        See `epprof_nb.analysis.by_op.by_op`.

    Returns
    -------
    frame
        One row per run, in order of start. Device work outside of runs is left out.

        =============  =======  ==============================================================
        run_id         Int64    the run, as in ``prof.ops``
        session        Int64    its session
        thread_id      int64    the thread that ran it
        start_ns       int64    start, since the profile's start
        host_ns        int64    host time of the run
        nodes          int64    executions of nodes
        node_events    category how they are known: recorded; learned (the launches of the run
                                equal those of a recorded run); mismatched (they do not: the
                                device work has no nodes); not recorded; missing for a run
                                that did not end in the profile
        device_ns      int64    device time
        kernels,       int64    number of kernels and copies
        memcpys
        bytes          int64    bytes copied and set
        call_ns        Int64    duration of the call that made the run; missing if not measured
        unprofiled_ns  Int64    median duration of such calls outside of profiles, with the same
                                session and inputs of the same shapes; missing if not measured
        stretch        float64  `call_ns` / `unprofiled_ns`; NaN if not measured
        =============  =======  ==============================================================

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> len(by_run(synthetic_profile(activities=100)))  # runs no session
    0
    """
    index = index or ProfileIndex(profile)
    ops, tree = profile.tables["ops"], index.tree
    is_run = ops.names("category").equals("session") & ops.names("op_type").equals("run")
    if attribution == "launch":  # a run of an earlier profile has only captured a graph
        is_run &= ~ops.names("status").equals("earlier")
    rows = np.flatnonzero(is_run)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[rows] = np.arange(len(rows))
    sums = totals(index, groups, tree.nearest_ancestor(is_run), attribution=attribution)
    is_node = ops.names("category").equals("node").astype(np.int64)
    measures = ("device_ns", "kernels", "memcpys", "bytes")
    call, unprofiled = call_durations(ops, rows)
    is_known = (call != MISSING) & (unprofiled != MISSING)
    return pd.DataFrame(
        {
            "run_id": optional(ops["run_id"][rows]),
            "session": optional(ops["session"][rows]),
            "thread_id": ops["thread_id"][rows],
            "start_ns": ops["start_ns"][rows],
            "host_ns": ops["duration_ns"][rows],
            "nodes": tree.subtree_sum(is_node)[rows],
            "node_events": categorical(node_events(ops, rows)),
            **{name: sums.measures[name] for name in measures},
            "call_ns": optional(call),
            "unprofiled_ns": optional(unprofiled),
            "stretch": np.where(is_known, call / np.where(is_known, unprofiled, 1), np.nan),
        }
    )


def _enclosing(tree: OpTree, is_node: BoolArray) -> IntArray:
    """Return the row of the node that encloses each op; `MISSING` for none."""
    nearest = np.append(tree.nearest_ancestor(is_node), MISSING)
    return nearest[tree.parent]


def _node_groups(
    profile: ProfileData, enclosing: IntArray, is_node: BoolArray
) -> tuple[IntArray, IntArray]:
    """Number the nodes of all graphs; executions of one node have the same number."""
    ops = profile.tables["ops"]
    path = np.full(len(ops) + 1, MISSING, np.int64)
    while True:
        # Node indexes restart in each subgraph: equal nodes also have equal enclosing nodes.
        groups, first = _masked_group_codes(
            is_node, ops["session"], ops.names("name").codes, ops.names("op_type").codes,
            ops["node_index"], path[enclosing],
        )  # fmt: skip
        next_path = np.append(groups, MISSING)
        if np.array_equal(next_path, path):
            return groups, first
        path = next_path


def _masked_group_codes(
    mask: BoolArray, *columns: npt.NDArray[np.integer[Any]]
) -> tuple[IntArray, IntArray]:
    """Return `group_codes` of the rows of a mask; other rows have the code `MISSING`."""
    rows = np.flatnonzero(mask)
    groups = np.full(len(mask), MISSING, np.int64)
    if not len(rows):
        return groups, rows
    codes, first = group_codes(*(column[rows] for column in columns))
    groups[rows] = codes
    return groups, rows[first]


def _recorded(profile: ProfileData, groups: IntArray, count: int) -> IntArray:
    """Return the number of executions of each group that were recorded node by node."""
    ops = profile.tables["ops"]
    recorded: IntArray = sum_by_group(groups, np.where(has_host_time(ops), ops["count"], 0), count)
    return recorded[:-1]


def _times(profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray) -> dict[str, Any]:
    """Return the columns of executions, host time and device time."""
    columns = MeasureColumns(profile, groups, sums, order)
    return {
        "count": columns.column(sums.count),
        "recorded": columns.column(_recorded(profile, groups, len(sums.count))),
        **columns.host_per_execution(50, 95),
        "host_ns": columns.column(sums.host_ns),
        **columns.device(),
        **columns.device_per_execution(),
    }
