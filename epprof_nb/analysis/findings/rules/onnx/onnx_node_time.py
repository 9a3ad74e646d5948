"""Findings on host time and memory of ONNX Runtime's nodes, and helpers of such findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.breakdowns.registry import breakdown
from epprof_nb.analysis.findings.finding import Finding, code, computed_later
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.onnx.unprofiled_times import sampled_runs
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.util.format import duration, percent, plural, shorten, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import IntArray

MEMORY_BYTES = 100_000_000
"""Minimum memory in use by a session's allocator for the node to be named."""

TYPE_CHARACTERS = 32


def innermost_nodes(index: ProfileIndex) -> ResultTable:
    """Return the recorded nodes that contain no others: rows of ``by_node``."""
    nodes = index.cached(breakdown, "node")
    if not index.profile.info.get("onnxruntime_sessions"):
        return nodes.take(slice(0, 0))
    outer = set(nodes.values("inside"))
    is_innermost = np.array([name not in outer for name in nodes.values("name")], np.bool_)
    return nodes.take((nodes["recorded"] > 0) & is_innermost)


def dominant_operator(index: ProfileIndex) -> tuple[ResultTable, float] | None:
    """Return the nodes of the operator that takes most of the host time of all nodes.

    Parameters
    ----------
    index
        Index of the profile.

    Returns
    -------
    nodes, share
        Their rows of `epprof_nb.Profile.by_node` by descending host time in all runs, and their
        share of the time of all nodes; None if no operator stands out. The time of a node that
        contains others, such as a Loop, counts for the inner nodes.
    """
    nodes = innermost_nodes(index)
    op_type, host_ns = nodes.names("op_type"), nodes["unprofiled_host_ns"]
    total = int(host_ns.sum())
    if len(np.unique(op_type.codes)) < 2 or not total:
        return None  # the only operator needs no mention
    by_type = sum_by_group(op_type.codes.astype(np.int64), host_ns, len(op_type.categories))[:-1]
    most = int(by_type.argmax())
    share = float(by_type[most] / total)
    if share < HOT_ON_HOST:
        return None
    of_type = nodes.take(op_type.codes == most)
    return of_type.take(np.argsort(-of_type["unprofiled_host_ns"], kind="stable")), share


def longest_execution(index: ProfileIndex, name: str, session: int) -> tuple[int, int]:
    """Return start and end of the longest execution of a node, a recorded one if there is one."""
    ops = index.profile.tables["ops"]
    longest = longest_row(index, name, session)
    return int(ops["start_ns"][longest]), int(ops["end_ns"][longest])


def longest_row(index: ProfileIndex, name: str, session: int) -> int:
    """Return the row of the longest execution of a node, a recorded one if there is one."""
    ops = index.profile.tables["ops"]
    rows = executions(index, [name], session)
    host_ns = np.where(has_host_time(ops)[rows], ops["duration_ns"][rows], 0)
    return int(rows[int(host_ns.argmax())])


def executions(index: ProfileIndex, names: Sequence[str], session: int) -> IntArray:
    """Return the rows of the ops that executed a session's nodes of these names."""
    ops = index.profile.tables["ops"]
    column = ops.names("name")
    wanted = set(names)
    has_name = np.array([*(name in wanted for name in column.categories), False], np.bool_)
    of_node = has_name[column.codes] & ops.names("category").equals("node")
    return np.flatnonzero(of_node & (ops["session"] == session))


def gain_of(nodes: ResultTable) -> int:
    """Return the host time of nodes in all runs, without the slowdown by profiling."""
    return int(nodes["unprofiled_host_ns"].sum())


def without_profiler(index: ProfileIndex, nodes: ResultTable) -> str:
    """Return the host time of nodes without the slowdown by profiling as text.

    For example ``, 400 µs without the profiler``, or
    ``, recorded in 6 of 200 runs; about 4.20 ms in all runs without the profiler``. It is empty if
    that changes little.

    Parameters
    ----------
    index, nodes
        Index of the profile, and rows of `by_node`.
    """
    unprofiled = duration(gain_of(nodes))
    sampled = sampled_runs(index, nodes["session"])
    if sampled is not None:
        recorded, runs = sampled
        return (
            f", recorded in {recorded:,} of {plural(runs, 'run')}; about {unprofiled} in all runs "
            "without the profiler"
        )
    is_same = unprofiled == duration(nodes["host_ns"].sum())
    return "" if is_same else f", {unprofiled} without the profiler"


def slowest_operator(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the operator that takes most of the host time of all nodes."""
    found = dominant_operator(index)
    if found is None:
        return
    nodes, share = found
    total = int(nodes["host_ns"].sum())
    slowest, session = str(nodes.values("name")[0]), int(nodes["session"][0])
    op_type = shorten(str(nodes.values("op_type")[0]), TYPE_CHARACTERS)
    text = (
        f"{op_type} nodes account for {percent(share)} of the time of all nodes "
        f"({duration(total)} in {plural(int(nodes['recorded'].sum()), 'execution')}"
        f"{without_profiler(index, nodes)})"
    )
    if len(nodes) > 1:
        text += f"; the slowest is {code(slowest)} ({_of_slowest(index, nodes.take(slice(1)))})"
    yield Finding(
        f"{text}.",
        gain_of(nodes),
        *longest_execution(index, slowest, session),
        kind="hot operator",
        remedy="Make these nodes faster, or run fewer of them: `by_node()` lists them.",
        table="ops",
        rows=computed_later(index, executions, [str(n) for n in nodes.values("name")], session),
        is_unprofiled=True,
    )


def _of_slowest(index: ProfileIndex, node: ResultTable) -> str:
    """Return how long a node took, and the number of executions with a known time."""
    sampled = sampled_runs(index, node["session"])
    if sampled is None:
        recorded = int(node["recorded"][0])
        mean, profiled = duration(gain_of(node) / recorded), duration(int(node["mean_host_ns"][0]))
        without = "" if mean == profiled else " without the profiler"
        return f"{mean}{without}, mean of {plural(recorded, 'execution')}"
    return f"about {duration(gain_of(node))} of it, from {sampled[0]:,} of {sampled[1]:,} runs"


def node_memory(index: ProfileIndex) -> Iterator[Finding]:
    """Yield the node at whose end an allocator had the most memory in use, if this is much."""
    ops = index.profile.tables["ops"]
    if ops.is_absent("in_use_bytes") or not len(ops):
        return
    row = int(ops["in_use_bytes"].argmax())
    in_use, held = int(ops["in_use_bytes"][row]), int(ops["arena_held_bytes"][row])
    if in_use < MEMORY_BYTES:
        return
    at = np.array([row])
    name, op_type = (str(ops.names(column).take(at).to_list()[0]) for column in ("name", "op_type"))
    text = (
        f"ONNX Runtime used the most memory in node {code(name)} "
        f"({shorten(op_type, TYPE_CHARACTERS)}): {size(in_use)}"
    )
    if held > in_use:
        text += f" of {size(held)} that its allocator held"
    yield Finding(
        f"{text}.",
        0,  # less memory may not be faster
        int(ops["start_ns"][row]),
        int(ops["end_ns"][row]),
        kind="memory",
        remedy="Use smaller inputs or types: `by_node()` has the sizes of outputs.",
        op_id=int(ops["op_id"][row]),
        table="ops",
        rows=lambda: at,
    )
