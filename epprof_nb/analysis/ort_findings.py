"""Findings on ONNX Runtime's nodes from their host time, for sessions without device work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.breakdowns import breakdown
from epprof_nb.analysis.op_status import has_host_time
from epprof_nb.analysis.ort_overhead import slowdown_of

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.analysis.index import ProfileIndex

NODE_SHARE = 0.3
"""Least share of an operator in the host time of all nodes."""


def dominant_operator(index: ProfileIndex) -> tuple[pd.DataFrame, float] | None:
    """Return the nodes of the operator that takes most of the host time of all nodes.

    Parameters
    ----------
    index
        Index of the profile.

    Returns
    -------
    nodes, share
        Their rows of `epprof_nb.analysis.by_node.by_node` by descending host time, and their share
        of the host time of all nodes; None if no operator stands out. The time of a node that
        contains others, such as a Loop, is that of the nodes inside.
    """
    if not index.profile.info.get("onnxruntime_sessions"):
        return None
    nodes = index.cached(breakdown, "node")
    nodes = nodes[(nodes["recorded"] > 0) & ~nodes["name"].isin(nodes["inside"].dropna())]
    total = int(nodes["host_ns"].sum())
    by_type = nodes.groupby("op_type", observed=True)["host_ns"].sum()
    if len(by_type) < 2 or not total:
        return None  # the only operator needs no mention
    share = float(by_type.max() / total)
    if share < NODE_SHARE:
        return None
    of_type = nodes[nodes["op_type"] == by_type.idxmax()]
    return of_type.sort_values("host_ns", ascending=False, kind="stable"), share


def longest_execution(index: ProfileIndex, node: pd.Series) -> tuple[int, int]:
    """Return start and end of the longest execution of a node, a recorded one if there is one."""
    ops = index.profile.tables["ops"]
    of_node = ops.names("category").equals("node") & ops.names("name").equals(str(node["name"]))
    rows = np.flatnonzero(of_node & (ops["session"] == node["session"]))
    host_ns = np.where(has_host_time(ops)[rows], ops["duration_ns"][rows], 0)
    longest = rows[int(host_ns.argmax())]
    return int(ops["start_ns"][longest]), int(ops["end_ns"][longest])


def unprofiled_ns(index: ProfileIndex, node: pd.Series, host_ns: int) -> int:
    """Return a host time of a node's session without the slowdown by profiling."""
    return int(host_ns / slowdown_of(index.profile.info, int(node["session"])))
