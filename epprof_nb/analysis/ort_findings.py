"""Findings on ONNX Runtime's nodes from their host time, for sessions without device work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.breakdowns import breakdown
from epprof_nb.analysis.op_status import has_host_time
from epprof_nb.analysis.ort_overhead import slowdown_of
from epprof_nb.arrays.groups import sum_by_group

if TYPE_CHECKING:
    from epprof_nb.analysis.dataframe import ResultTable
    from epprof_nb.analysis.index import ProfileIndex

NODE_SHARE = 0.3
"""Least share of an operator in the host time of all nodes."""
CONVERSION_SHARE = 0.1
"""Least share of nodes that only convert values in the host time of all nodes."""
POOL_SHARE = 0.2
"""Least share of starting and awaiting threads in the time of all nodes."""
MEMORY_BYTES = 100_000_000
"""Least memory in use by a session's allocator for the node to be named."""

_QUANTIZATION = ("QuantizeLinear", "DequantizeLinear")
_INSERTED_CAST = "InsertedPrecisionFreeCast"


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
        Their rows of `epprof_nb.analysis.by_node.by_node` by descending host time, and their share
        of the host time of all nodes; None if no operator stands out. The time of a node that
        contains others, such as a Loop, is that of the nodes inside.
    """
    nodes = innermost_nodes(index)
    op_type = nodes.names("op_type")
    total = int(nodes["host_ns"].sum())
    if len(np.unique(op_type.codes)) < 2 or not total:
        return None  # the only operator needs no mention
    by_type = sum_by_group(
        op_type.codes.astype(np.int64), nodes["host_ns"], len(op_type.categories)
    )[:-1]
    most = int(by_type.argmax())
    share = float(by_type[most] / total)
    if share < NODE_SHARE:
        return None
    of_type = nodes.take(op_type.codes == most)
    return of_type.take(np.argsort(-of_type["host_ns"], kind="stable")), share


def slowest_node(index: ProfileIndex) -> tuple[ResultTable, float] | None:
    """Return the node with the most host time and its share of that of all nodes.

    None if there is only one node, or none stands out.
    """
    nodes = innermost_nodes(index)
    total = int(nodes["host_ns"].sum())
    if len(nodes) < 2 or not total:
        return None
    most = int(nodes["host_ns"].argmax())
    share = float(nodes["host_ns"][most] / total)
    return (nodes.take(slice(most, most + 1)), share) if share >= NODE_SHARE else None


def quantization(index: ProfileIndex) -> tuple[ResultTable, float] | None:
    """Return the nodes that quantize and dequantize, and their share of the time of all nodes.

    ONNX Runtime fuses such nodes with the operators between them if it has quantized ones. None if
    they take little time.
    """
    nodes = innermost_nodes(index)
    op_types = nodes.values("op_type")
    return _notable(nodes, [op_type in _QUANTIZATION for op_type in op_types])


def inserted_casts(index: ProfileIndex) -> tuple[ResultTable, float] | None:
    """Return the Cast nodes that ONNX Runtime inserted, and their share of the time of all nodes.

    It does so if a provider has no kernel for the types of a node. None if they take little time.
    """
    nodes = innermost_nodes(index)
    columns = nodes.values("name"), nodes.values("op_type")
    return _notable(
        nodes,
        [
            op_type == "Cast" and (name or "").startswith(_INSERTED_CAST)
            for name, op_type in zip(*columns, strict=True)
        ],
    )


def _notable(nodes: ResultTable, mask: list[bool]) -> tuple[ResultTable, float] | None:
    chosen = nodes.take(np.array(mask, np.bool_))
    total = int(nodes["host_ns"].sum())
    share = float(chosen["host_ns"].sum() / max(total, 1))
    if share < CONVERSION_SHARE:
        return None
    return chosen.take(np.argsort(-chosen["host_ns"], kind="stable")), share


def thread_pool(index: ProfileIndex) -> tuple[ResultTable, int, int, int] | None:
    """Return the nodes that spent time on the threads of their session's pool.

    Returns
    -------
    nodes, start_ns, wait_ns, total_ns
        Rows of ``by_node`` by descending loss, and the times that went into starting the threads
        and into waiting for them, of the time of all nodes; None if these are a small share.
    """
    nodes = innermost_nodes(index)
    start, wait = (np.maximum(nodes[name], 0) for name in ("pool_start_ns", "pool_wait_ns"))
    loss = start + wait
    order = np.argsort(-loss, kind="stable")
    order = order[loss[order] > 0]
    total = int(nodes["host_ns"].sum())
    if not total or int(loss.sum()) < POOL_SHARE * total:
        return None
    return nodes.take(order), int(start.sum()), int(wait.sum()), total


def largest_memory(index: ProfileIndex) -> int | None:
    """Return the row of the node at whose end an allocator had the most memory in use.

    None if ONNX Runtime did not report it, or if it is too little to matter.
    """
    ops = index.profile.tables["ops"]
    if ops.is_absent("in_use_bytes") or not len(ops):
        return None
    row = int(ops["in_use_bytes"].argmax())
    return row if ops["in_use_bytes"][row] >= MEMORY_BYTES else None


def longest_execution(index: ProfileIndex, name: str, session: int) -> tuple[int, int]:
    """Return start and end of the longest execution of a node, a recorded one if there is one."""
    ops = index.profile.tables["ops"]
    of_node = ops.names("category").equals("node") & ops.names("name").equals(name)
    rows = np.flatnonzero(of_node & (ops["session"] == session))
    host_ns = np.where(has_host_time(ops)[rows], ops["duration_ns"][rows], 0)
    longest = rows[int(host_ns.argmax())]
    return int(ops["start_ns"][longest]), int(ops["end_ns"][longest])


def unprofiled_ns(index: ProfileIndex, session: int, host_ns: int) -> int:
    """Return a host time of a session's nodes without the slowdown by profiling."""
    return int(host_ns / slowdown_of(index.profile.info, session))
