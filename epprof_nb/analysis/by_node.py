"""ONNX Runtime's nodes, operators and runs: how often, how long on the host, what on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.analysis.dataframe import categorical, optional
from epprof_nb.analysis.index import Shared
from epprof_nb.analysis.measures import Columns
from epprof_nb.analysis.op_totals import Totals, totals
from epprof_nb.analysis.ort_fallback import copies_caused, placement
from epprof_nb.analysis.ort_overhead import lengths
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData


NO_NODE = "(no node)"
"""Name of the row of device work that belongs to no node."""


def by_node(
    profile: ProfileData, *, attribution: Attribution = "launch", shared: Shared | None = None
) -> pd.DataFrame:
    """Return the host and device time of each node of the ONNX Runtime sessions.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribution.op_rows`.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a node of a session, the longest device time first, then the longest host time.
        A node inside an If, Loop or Scan has a row of its own, and counts for that one too. Where
        device work belongs to no node, a last row ``"(no node)"`` holds it: `self_device_ns`
        always adds up to the device's time.

        ====================  ========  =======================================================
        name                  category  the node's name
        op_type, provider     category  its operator; the execution provider that runs it
        session               Int64     the session, as in ``prof.ops``
        inside                category  name of the node whose subgraph it is in; else missing
        node_index            Int64     its index in its graph
        count                 int64     executions
        mean_ns, p50_ns,      int64     host time of an execution, of all below it included;
        p95_ns                          the percentiles are durations that occurred
        host_ns               int64     host time of all executions
        device_ns             int64     device time of the node and all below it
        self_device_ns        int64     device time that the node launched itself
        share                 float64   `device_ns` as a fraction of all device time
        kernels, memcpys,     int64     activities of the node and all below it
        memsets
        bytes                 int64     bytes copied and set by them
        bandwidth             float64   bytes a second of the copies; NaN where there are none
        launch_delay_ns       Int64     mean time from a kernel's API call to its start;
                                        missing where no call was recorded
        mean_device_ns,       int64     device time of an execution, of all below it included;
        p95_device_ns                   the percentile is a time that occurred
        fell_back             bool      it ran on the CPU in a session with an accelerator
        fallback_copies       int64     executions of the copy nodes that ONNX Runtime put around
                                        it for that; see `epprof_nb.analysis.ort_fallback`
        fallback_bytes,       int64     what these copied, and the device time of it; they count
        fallback_copy_ns                for the copy nodes, in rows of their own, too
        ====================  ========  =======================================================

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    shared = shared or Shared(profile)
    tree = shared.tree
    node = ops.names("category").equals("node")
    above = _enclosing(tree, node)
    groups, first = _same_node(profile, above, node)
    sums = totals(profile, shared, groups, tree.nearest(node), attribution=attribution)
    order = sums.longest_first()
    rows, rest = first[order], int(sums.has_rest)
    outer = above[rows]
    inside = ops.names("name").take(outer)
    inside_names = [n if at >= 0 else None for n, at in zip(inside.to_list(), outer, strict=True)]

    place = placement(profile, groups)
    caused = copies_caused(profile, tree, place, groups)
    copies, size, copy_ns = (np.append(each[order], [0] * rest) for each in caused)

    def names(column: str, of_rest: str | None = None) -> pd.Categorical:
        return categorical([*ops.names(column).take(rows).to_list(), *[of_rest] * rest])

    return pd.DataFrame(
        {
            "name": names("name", NO_NODE),
            "op_type": names("op_type"),
            "provider": names("provider"),
            "session": optional([*ops["session"][rows], *[MISSING] * rest]),
            "inside": categorical([*inside_names, *[None] * rest]),
            "node_index": optional([*ops["node_index"][rows], *[MISSING] * rest]),
            **_times(profile, groups, sums, order),
            "fell_back": np.append(place.fell_back[rows], [False] * rest).astype(np.bool_),
            "fallback_copies": copies.astype(np.int64),
            "fallback_bytes": size.astype(np.int64),
            "fallback_copy_ns": copy_ns.astype(np.int64),
        }
    )


def by_op_type(
    profile: ProfileData, *, attribution: Attribution = "launch", shared: Shared | None = None
) -> pd.DataFrame:
    """Return the host and device time of each operator, by the provider that ran it.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribution.op_rows`.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row an operator and provider: `op_type`, `provider` (category), `nodes` (int64: the
        different nodes) and the columns of `by_node` from `count` on.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    shared = shared or Shared(profile)
    tree = shared.tree
    node = ops.names("category").equals("node")
    nodes, _ = _same_node(profile, _enclosing(tree, node), node)
    codes = ops.names("op_type").codes, ops.names("provider").codes
    groups, first = _numbered(node, *codes)
    sums = totals(profile, shared, groups, tree.nearest(node), attribution=attribution)
    order = sums.longest_first()
    rows, rest = first[order], int(sums.has_rest)
    of_node = group_codes(groups[node], nodes[node])[1]
    different = np.bincount(groups[node][of_node], minlength=len(first)).astype(np.int64)
    types, providers = (ops.names(n).take(rows).to_list() for n in ("op_type", "provider"))
    return pd.DataFrame(
        {
            "op_type": categorical([*types, *[NO_NODE] * rest]),
            "provider": categorical([*providers, *[None] * rest]),
            "nodes": np.append(different[order], np.zeros(rest, np.int64)),
            **_times(profile, groups, sums, order),
        }
    )


def by_run(
    profile: ProfileData, *, attribution: Attribution = "launch", shared: Shared | None = None
) -> pd.DataFrame:
    """Return the host and device time of each run of the ONNX Runtime sessions.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribution.op_rows`.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a run, in order of start: `run_id`, `session` (Int64), `thread_id`, `start_ns`,
        `host_ns` (how long the run took on the host), `nodes` (executions of nodes), `device_ns`,
        `kernels`, `memcpys`, `bytes` (int64), `call_ns` (Int64: how long the call took that made
        it), `unprofiled_ns` (Int64: median of such calls outside of profiles: of the same session,
        with inputs of the same shapes) and `stretch` (float64: their ratio). What was not measured
        is missing. Device work outside of runs is left out.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    shared = shared or Shared(profile)
    tree = shared.tree
    run = ops.names("category").equals("session") & ops.names("op_type").equals("run")
    if attribution == "launch":  # a run of an earlier profile only captured
        run &= ~ops.names("status").equals("earlier")
    rows = np.flatnonzero(run)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[rows] = np.arange(len(rows))
    sums = totals(profile, shared, groups, tree.nearest(run), attribution=attribution)
    node = ops.names("category").equals("node").astype(np.int64)
    call, plain = lengths(ops, rows)
    known = (call != MISSING) & (plain != MISSING)
    return pd.DataFrame(
        {
            "run_id": optional(ops["run_id"][rows]),
            "session": optional(ops["session"][rows]),
            "thread_id": ops["thread_id"][rows],
            "start_ns": ops["start_ns"][rows],
            "host_ns": ops["duration_ns"][rows],
            "nodes": tree.subtree_sum(node)[rows],
            **{name: sums.work[name] for name in ("device_ns", "kernels", "memcpys", "bytes")},
            "call_ns": optional(call),
            "unprofiled_ns": optional(plain),
            "stretch": np.where(known, call / np.where(known, plain, 1), np.nan),
        }
    )


def _enclosing(tree: OpTree, node: BoolArray) -> IntArray:
    """Return the row of the node around each op, itself not counted; `MISSING` for none."""
    nearest = np.append(tree.nearest(node), MISSING)
    return nearest[tree.parent]


def _same_node(profile: ProfileData, above: IntArray, node: BoolArray) -> tuple[IntArray, IntArray]:
    """Give each node a number, shared by the executions of one node of one graph."""
    ops = profile.tables["ops"]
    path = np.full(len(ops) + 1, MISSING, np.int64)
    while True:
        # An index restarts in each subgraph: nodes are the same where those around them are too.
        groups, first = _numbered(
            node, ops["session"], ops.names("name").codes, ops.names("op_type").codes,
            ops["node_index"], path[above],
        )  # fmt: skip
        further = np.append(groups, MISSING)
        if np.array_equal(further, path):
            return groups, first
        path = further


def _numbered(
    which: BoolArray, *columns: npt.NDArray[np.integer[Any]]
) -> tuple[IntArray, IntArray]:
    """Give each combination of values over some rows a number; `MISSING` for other rows."""
    rows = np.flatnonzero(which)
    groups = np.full(len(which), MISSING, np.int64)
    if not len(rows):
        return groups, rows
    codes, first = group_codes(*(column[rows] for column in columns))
    groups[rows] = codes
    return groups, rows[first]


def _times(profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray) -> dict[str, Any]:
    """Return the columns of host and device time of the groups in `order`, then of the rest."""
    columns = Columns(profile, groups, sums, order)
    return {
        "count": columns.of(sums.count),
        **columns.host_an_execution(50, 95),
        "host_ns": columns.of(sums.host_ns),
        **columns.device(),
        **columns.device_an_execution(),
    }
