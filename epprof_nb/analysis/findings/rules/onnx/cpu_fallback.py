"""Finding on nodes of ONNX Runtime sessions that fell back to the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import gpu_ids
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.base.work_classes import COMPUTE, class_intervals
from epprof_nb.analysis.breakdowns.registry import breakdown
from epprof_nb.analysis.findings.finding import (
    MIN_GAIN_SHARE,
    Finding,
    code,
    computed_later,
    op_id_of,
)
from epprof_nb.analysis.findings.rules.onnx.onnx_node_time import (
    TYPE_CHARACTERS,
    executions,
    longest_execution,
    longest_row,
)
from epprof_nb.analysis.onnx.fallback import FROM_HOST, NOT_ACCELERATORS, TO_HOST, providers_of
from epprof_nb.analysis.onnx.profiler_slowdown import slowdown_of_nodes
from epprof_nb.arrays.intervals import covered_before, union_of
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.util.format import duration, plural, shorten, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import BoolArray, IntArray

_REMEDY = "Use an operator, type or shape that the accelerator's execution provider supports."
_REMEDY_OF_COPIES = "Write kernels in Python for them, too: {}."
_REMEDY_OF_SELECTED = "Add operators or nodes to {}, or leave it out."

_NAMED = 3
"""Maximum number of operators in a remedy."""


def fallbacks(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the nodes that ran on the CPU in a session with an accelerator."""
    profile = index.profile
    if not profile.info.get("onnxruntime_sessions"):
        return
    every_node = index.cached(breakdown, "node")
    # The host device is the CPU, so only the copies are a cost there.
    at_home = _is_on_host_device(index, every_node)
    counts = every_node["fell_back"] & (~at_home | (every_node["fallback_copies"] > 0))
    nodes, at_home = every_node.take(counts), at_home[counts]
    names, inside = nodes.values("name"), nodes.values("inside")
    # The time of a node includes its subgraph. Only recorded runs have host times.
    is_outermost = np.array([outer not in names for outer in inside], np.bool_)
    outermost_ns = np.where(is_outermost & ~at_home, nodes["host_ns"], 0)
    host_ns = outermost_ns * nodes["count"] // np.maximum(nodes["recorded"], 1)
    about = "" if (nodes["count"] == nodes["recorded"]).all() else "about "
    cost = host_ns + nodes["fallback_copy_ns"]
    total, copies = int(host_ns.sum()), int(nodes["fallback_copies"].sum())
    total += max(int(nodes["fallback_copy_ns"].sum()), _copying_ns(index, every_node, copies))
    if not len(nodes) or total < MIN_GAIN_SHARE * wall_of(profile):
        return
    top = int(cost.argmax())
    name, op_type = str(names[top]), str(nodes.values("op_type")[top])
    session = int(nodes["session"][top])
    which = f"Node {code(name)} ({shorten(op_type, TYPE_CHARACTERS)})"
    if len(nodes) > 1:
        which += f" and {plural(len(nodes) - 1, 'other')}"
    only_copies = bool(at_home.all())
    text = f"{which} ran on the CPU"
    if not only_copies:
        text += f" for {about}{duration(int(host_ns.sum()))}"
    left_out, options = _left_out(index, nodes)
    is_chosen = bool(left_out.all())
    remedy = _REMEDY
    if is_chosen:
        remedy = _REMEDY_OF_SELECTED.format(options)
    elif only_copies:
        remedy = _REMEDY_OF_COPIES.format(_decorators(nodes.take(~left_out)))
    if left_out.any() and not is_chosen:
        remedy += f" {int(left_out.sum())} of these {len(nodes)} nodes are left out by {options}."
    if copies:
        copied = size(int(nodes["fallback_bytes"].sum()))
        text += f", with {plural(copies, 'copy', 'copies')} ({copied}) to and from it"
    if only_copies:
        text += f" that took {duration(total)}"
    kernels = "kernels in Python" if only_copies else "an accelerator"
    yield Finding(
        f"{text}, left out by {options}."
        if is_chosen
        else f"{text}, although its session has {kernels}.",
        int(total / slowdown_of_nodes(profile.info, session)),
        *longest_execution(index, name, session),
        kind="cpu fallback",
        remedy=remedy,
        op_id=op_id_of(index, longest_row(index, name, session)),
        table="ops",
        rows=computed_later(index, _executions, nodes),
        spans=computed_later(index, _host_times, _copy_nodes(every_node) if only_copies else nodes),
    )


def _decorators(nodes: ResultTable) -> str:
    """Return how kernels for the most frequent operators of these nodes are declared."""
    op_types = nodes.names("op_type")
    most = sorted(op_types.categories, key=lambda op_type: -op_types.equals(op_type).sum())
    used = [op_type for op_type in most if op_types.equals(op_type).any()]
    declared = [f'`@ep.kernel("{shorten(name, TYPE_CHARACTERS)}")`' for name in used[:_NAMED]]
    return ", ".join(declared) + ", ..." * (len(used) > _NAMED)


def _is_on_host_device(index: ProfileIndex, nodes: ResultTable) -> BoolArray:
    """Return a mask of the nodes whose session has kernels in Python on the host device only.

    The device is the CPU, so ONNX Runtime runs a node on the CPU just as fast.
    """
    info, session, provider = index.profile.info, nodes["session"], nodes.names("provider")
    activities = index.profile.tables["activities"]
    gpus = sorted(gpu_ids(info))
    on_gpu = index.activity_op[np.isin(activities["device_id"], gpus)]
    with_gpu = np.append(index.profile.tables["ops"]["session"], MISSING)[on_gpu]
    on_host = []
    for number in np.unique(session[session != MISSING]).tolist():
        used = {*provider.take(session == number).to_list(), *providers_of(info, number)}
        has_gpu = number in with_gpu if len(activities) else bool(gpus)
        if used - {None, *NOT_ACCELERATORS} == {PROVIDER} and not has_gpu:
            on_host.append(number)
    return np.isin(session, on_host)


def _left_out(index: ProfileIndex, nodes: ResultTable) -> tuple[BoolArray, str]:
    """Return a mask of the nodes that options exclude from kernels in Python, and the options."""
    selected = index.profile.info.get("onnxruntime_selected") or {}
    left_out, used = np.zeros(len(nodes), np.bool_), []
    sessions = [str(number) for number in nodes["session"]]
    for option, column in (("only", "op_type"), ("nodes", "name")):
        chosen = [(selected.get(session) or {}).get(option) or () for session in sessions]
        mask = np.array(
            [
                bool(names) and value not in names
                for names, value in zip(chosen, nodes.values(column), strict=True)
            ],
            np.bool_,
        )
        if mask.any():
            used.append(f"`{option}=`")
            left_out |= mask
    return left_out, " and ".join(used)


def _executions(index: ProfileIndex, nodes: ResultTable) -> IntArray:
    """Return the rows of the ops that executed these nodes, in all their sessions."""
    of_sessions: dict[int, list[str]] = {}
    for name, session in zip(nodes.values("name"), nodes.values("session"), strict=True):
        of_sessions.setdefault(int(session), []).append(str(name))
    rows = [executions(index, names, session) for session, names in of_sessions.items()]
    return np.sort(np.concatenate(rows))


def _host_times(index: ProfileIndex, nodes: ResultTable) -> tuple[IntArray, IntArray]:
    """Return starts and ends of the executions of these nodes."""
    ops, rows = index.profile.tables["ops"], _executions(index, nodes)
    rows = rows[has_host_time(ops)[rows]]
    return ops["start_ns"][rows], ops["end_ns"][rows]


def _copy_nodes(nodes: ResultTable) -> ResultTable:
    op_type = nodes.names("op_type")
    return nodes.take(op_type.equals(TO_HOST) | op_type.equals(FROM_HOST))


def _copying_ns(index: ProfileIndex, nodes: ResultTable, copies: int) -> int:
    """Return how long the host ran `copies` of the copy nodes while no device computed, ns.

    The host prepares and waits for a copy, so its nodes take longer than the device. A copy to the
    host also waits for the kernels before it, which would run anyway.
    """
    copy_nodes = _copy_nodes(nodes)
    executed = int(copy_nodes["recorded"].sum())
    if not copies or not executed:
        return 0
    starts, ends = _host_times(index, copy_nodes)
    exposed = ends - starts
    if index.device_ids:
        computing = [index.cached(class_intervals, device)[COMPUTE] for device in index.device_ids]
        before, until = covered_before(*union_of(computing), np.stack([starts, ends]))
        exposed = exposed - (until - before)
    return int(exposed.sum()) * copies // executed
