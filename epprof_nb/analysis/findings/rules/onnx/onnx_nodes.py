"""Findings on ONNX Runtime's nodes: slow ones, missed fusions and kernels, and idle threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.findings.finding import Finding, code, computed_later
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.findings.rules.onnx.onnx_node_time import (
    TYPE_CHARACTERS,
    dominant_operator,
    executions,
    gain_of,
    innermost_nodes,
    longest_execution,
    without_profiler,
)
from epprof_nb.analysis.onnx.unprofiled_times import sampled_runs
from epprof_nb.util.format import duration, percent, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import IntArray

CONVERSION_SHARE = 0.1
"""Minimum share of nodes that only convert values in the host time of all nodes."""
POOL_SHARE = 0.2
"""Minimum share of starting and awaiting threads in the time of all nodes."""
_MIN_PART = 0.01
"""Minimum share of either for it to be named."""

_QUANTIZATION = ("QuantizeLinear", "DequantizeLinear")
_INSERTED_CAST = "InsertedPrecisionFreeCast"


def slowest_node(index: ProfileIndex) -> Iterator[Finding]:
    """Yield the node with the most host time, if no operator stands out but this node does."""
    nodes = innermost_nodes(index)
    host_ns = nodes["unprofiled_host_ns"]
    total = int(host_ns.sum())
    if len(nodes) < 2 or not total or dominant_operator(index) is not None:
        return
    node = nodes.take(np.array([int(host_ns.argmax())]))
    if gain_of(node) < HOT_ON_HOST * total:
        return
    op_type = shorten(str(node.values("op_type")[0]), TYPE_CHARACTERS)
    text = (
        f"Node {code(str(node.values('name')[0]))} ({op_type}) accounts for "
        f"{percent(gain_of(node) / total)} of the time of all nodes "
        f"({duration(int(node['host_ns'][0]))} in "
        f"{plural(int(node['recorded'][0]), 'execution')}"
        f"{without_profiler(index, node)})."
    )
    yield _finding(
        index, node, text, gain_of(node), kind="hot node", remedy="Make this node faster."
    )


def quantization(index: ProfileIndex) -> Iterator[Finding]:
    """Yield the nodes that quantize and dequantize, if they take much time.

    ONNX Runtime fuses such nodes with the operators between them if it has quantized ones.
    """
    nodes = innermost_nodes(index)
    yield from _conversions(
        index,
        nodes,
        [op_type in _QUANTIZATION for op_type in nodes.values("op_type")],
        words=("node that quantizes or dequantizes accounts",
               "nodes that quantize or dequantize account"),
        reason="ONNX Runtime did not fuse them into quantized operators",
        remedy="Quantize the operators between these nodes, or keep their values as floats.",
    )  # fmt: skip


def inserted_casts(index: ProfileIndex) -> Iterator[Finding]:
    """Yield the Cast nodes that ONNX Runtime inserted, if they take much time.

    It does so if a provider has no kernel for the types of a node.
    """
    nodes = innermost_nodes(index)
    columns = nodes.values("name"), nodes.values("op_type")
    yield from _conversions(
        index,
        nodes,
        [
            op_type == "Cast" and (name or "").startswith(_INSERTED_CAST)
            for name, op_type in zip(*columns, strict=True)
        ],
        words=("Cast node inserted by ONNX Runtime accounts",
               "Cast nodes inserted by ONNX Runtime account"),
        reason="the execution provider has no kernels for the types of the model",
        remedy="Export the model in types that the provider supports, such as float32 on the CPU.",
    )  # fmt: skip


def thread_pool(index: ProfileIndex) -> Iterator[Finding]:
    """Yield the time that nodes spent on the threads of their session's pool, if it is much."""
    nodes = innermost_nodes(index)
    start, wait = (_unprofiled(nodes, name) for name in ("pool_start_ns", "pool_wait_ns"))
    total, loss = gain_of(nodes), start + wait
    if not total or int(loss.sum()) < POOL_SHARE * total:
        return
    shares = {"starting": int(start.sum()) / total, "waiting for": int(wait.sum()) / total}
    told = [f"{percent(share)} {doing}" for doing, share in shares.items() if share >= _MIN_PART]
    sampled = sampled_runs(index, nodes["session"])
    runs = "" if sampled is None else f" in the {sampled[0]:,} of {sampled[1]:,} runs recorded"
    text = f"Of their time{runs}, nodes spent {' and '.join(told)} threads of the session's pool."
    order = np.argsort(-loss, kind="stable")
    yield _finding(
        index,
        nodes.take(order[loss[order] > 0]),
        text,
        int(loss.sum()),
        kind="thread pool",
        remedy="A smaller `SessionOptions.intra_op_num_threads` may be faster.",
    )


def _unprofiled(nodes: ResultTable, name: str) -> IntArray:
    """Return a time of nodes in all runs without the profiler, which is part of their host time."""
    factor = nodes["unprofiled_host_ns"] / np.maximum(nodes["host_ns"], 1)
    unprofiled: IntArray = np.rint(np.maximum(nodes[name], 0) * factor).astype(np.int64)
    return unprofiled


def _conversions(
    index: ProfileIndex,
    nodes: ResultTable,
    mask: Sequence[bool],
    *,
    words: tuple[str, str],
    reason: str,
    remedy: str,
) -> Iterator[Finding]:
    chosen = nodes.take(np.array(mask, np.bool_))
    total, all_ns = gain_of(chosen), gain_of(nodes)
    if not total or total < CONVERSION_SHARE * all_ns:
        return
    unprofiled = without_profiler(index, chosen)
    text = (
        f"{plural(len(chosen), *words)} for {percent(total / all_ns)} of the time of all nodes "
        f"({duration(int(chosen['host_ns'].sum()))}{unprofiled}): {reason}."
    )
    longest = chosen.take(np.argsort(-chosen["unprofiled_host_ns"], kind="stable"))
    yield _finding(index, longest, text, gain_of(chosen), kind="conversion", remedy=remedy)


def _finding(
    index: ProfileIndex, nodes: ResultTable, text: str, gain_ns: int, *, kind: str, remedy: str
) -> Finding:
    """Return a finding on nodes of a session, the longest first."""
    names, session = [str(name) for name in nodes.values("name")], int(nodes["session"][0])
    return Finding(
        text,
        gain_ns,
        *longest_execution(index, names[0], session),
        kind=kind,
        remedy=remedy,
        table="ops",
        rows=computed_later(index, executions, names, session),
        is_unprofiled=True,
    )
