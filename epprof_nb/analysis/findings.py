"""Findings: one or two sentences on what to change first, ranked by the possible saving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.breakdowns import breakdown
from epprof_nb.analysis.device_work import KERNEL, MEMCPY, device_kinds_ns
from epprof_nb.analysis.idle import gap_table
from epprof_nb.analysis.line_totals import line_totals
from epprof_nb.analysis.ort_findings import (
    dominant_operator,
    inserted_casts,
    largest_memory,
    longest_execution,
    quantization,
    slowest_node,
    thread_pool,
    unprofiled_ns,
)
from epprof_nb.analysis.ort_overhead import NOTABLE_SLOWDOWN, slowdown_at
from epprof_nb.analysis.source_lines import source_line
from epprof_nb.analysis.summary import device_word, wall_of
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, percent, plural, shorten, size, three_digits

if TYPE_CHECKING:
    from epprof_nb.analysis.index import ProfileIndex

HOT_SHARE = 0.4
"""Least share of the device time for a line, or an op outside of all lines, to be named."""
IDLE_SHARE = 0.05
"""Least share of the wall time for idle gaps at one place."""
COPY_SHARE = 0.15
"""Least share of the device time for copies of pageable memory."""
COPY_BYTES, COPY_WALL_SHARE = 1_000_000, 0.01
"""Least size of these copies, and their least share of the wall time."""
SHORT_KERNEL_NS, MANY_KERNELS, LAUNCH_BOUND_BUSY = 10_000, 200, 0.5
"""Launch-bound: this many kernels of at most this median time keep the device less busy."""
FALLBACK_SHARE = 0.05
"""Least share of the wall time for nodes that fell back to the CPU."""

_CODE_CHARACTERS = 56
_TYPE_CHARACTERS = 32
_POSITIONS = {"between": "", "before": " before its first work", "after": " after its last work"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, and the time range that shows it.

    Attributes
    ----------
    text
        The sentence; source text is between backticks.
    gain_ns
        Upper bound of the time saved, nanoseconds.
    start_ns, end_ns
        The time range.
    """

    text: str
    gain_ns: int
    start_ns: int
    end_ns: int


def findings(index: ProfileIndex, *, limit: int = 2) -> list[Finding]:
    """Return up to `limit` findings by descending saving; a weak one is left out.

    Examples
    --------
    >>> from epprof_nb.analysis.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> findings(ProfileIndex(synthetic_profile(activities=100)))[0].text  # doctest: +ELLIPSIS
    'GPU idle 60.0 ms before its first work while the host ran line 1 (`model, opti...).'
    """
    wall_ns = wall_of(index.profile)
    device_ns = device_kinds_ns(index.profile.tables["activities"], index.kinds)
    # The sum is negative if the times of an overflown clock are in it.
    if device_ns <= 0:
        found = [
            *_fallbacks(index, wall_ns),
            *(_dominant_operator(index) or _slowest_node(index)),
            *_conversions(index),
            *_thread_pool(index),
            *_largest_memory(index),
        ]
        return found[:limit]
    found = [
        *_hot_line(index, device_ns),
        *_hot_op(index, device_ns),
        *_idle(index, wall_ns),
        *_pageable_copies(index, device_ns, wall_ns),
        *_launch_bound(index, wall_ns),
        *_fallbacks(index, wall_ns),
        *_largest_memory(index),
    ]
    return sorted(found, key=lambda finding: -finding.gain_ns)[:limit]


def _code(text: str) -> str:
    # A backtick in the text would end the code span.
    return f"`{shorten(text.replace('`', chr(0x2BC)), _CODE_CHARACTERS)}`"


def _hot_line(index: ProfileIndex, device_ns: int) -> list[Finding]:
    with_work = [line for line in index.cached(line_totals) if line.device_ns]
    if len(with_work) < 2:
        return []  # the only line with device work needs no mention
    top = max(with_work, key=lambda line: line.device_ns)
    share = top.device_ns / device_ns
    if share < HOT_SHARE:
        return []
    text = source_line(index.profile, top.cell, top.line)
    where = f"Line {top.line}" + (f" ({_code(text)})" if text else "")
    word = device_word(index.profile.info)
    sentence = f"{where} accounts for {percent(share)} of the {word} time."
    return [Finding(sentence, top.device_ns, top.start_ns, top.end_ns)]


def _hot_op(index: ProfileIndex, device_ns: int) -> list[Finding]:
    """Name the op of worker threads, which have no lines, with the most work of its own."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_range = ops.names("op_type").equals("range")
    outside = tree.nearest_ancestor(ops["line"] >= 0) == MISSING
    if not (is_range & outside).any():
        return []
    owner = tree.nearest_ancestor(is_range & outside)
    names = ops.names("name")
    name_of_op = np.append(names.codes, MISSING)[owner]
    own_ns = index.op_sums("launch")["device_ns"][:-1]
    own_ns = np.where(outside, own_ns, 0)
    of_name = sum_by_group(name_of_op, own_ns, len(names.categories))[:-1]
    top = int(of_name.argmax())
    share = int(of_name[top]) / device_ns
    # The only op with device work needs no mention.
    if share < HOT_SHARE or of_name[top] == device_ns:
        return []
    rows = np.flatnonzero(is_range & outside & (names.codes == top))
    name = _code(names.categories[top])
    sentence = (
        f"{name} accounts for {percent(share)} of the {device_word(index.profile.info)} time."
    )
    start, end = int(ops["start_ns"][rows].min()), int(ops["end_ns"][rows].max())
    return [Finding(sentence, int(of_name[top]), start, end)]


def _idle(index: ProfileIndex, wall_ns: int) -> list[Finding]:
    """Group idle intervals by position and by what the host ran."""
    profile = index.profile
    grouped: dict[tuple[str, int, str, float], list[tuple[int, int]]] = {}
    gaps = index.cached(gap_table)
    names = ("position", "line", "name", "op_id", "start_ns", "end_ns")
    for position, line, name, op_id, start, end in zip(*map(gaps.values, names), strict=True):
        slowdown = 1.0 if op_id is None else slowdown_at(profile, op_id)
        key = (position, -1 if line is None else line, name or "", slowdown)
        grouped.setdefault(key, []).append((start, end))
    word = device_word(profile.info)
    open_ops = union(profile.tables["ops"]["start_ns"], profile.tables["ops"]["end_ns"])
    result = []
    for (position, line, name, slowdown), intervals in grouped.items():
        total = sum(end - start for start, end in intervals)
        if total < IDLE_SHARE * wall_ns:
            continue
        text = f"{word[0].upper()}{word[1:]} idle {duration(total)}"
        if position == "between" and len(intervals) > 1:
            text += f" in {plural(len(intervals), 'gap')}"
        text += _POSITIONS[position]
        if line >= 0 or name:
            text += f" while the host ran {_host_op(line, name)}"
        elif not any(np.diff(covered_before(*open_ops, np.array(times))) for times in intervals):
            text += " while no op was open on the host"
        if slowdown >= NOTABLE_SLOWDOWN:
            text += f"; profiling slowed its run by {three_digits(slowdown)}x"
        start, end = max(intervals, key=lambda interval: interval[1] - interval[0])
        result.append(Finding(f"{text}.", int(total / slowdown), start, end))
    return result


def _host_op(line: int, name: str) -> str:
    if line < 0:
        return _code(name)
    # Without its source, a statement is named after its line.
    return f"line {line}" + (f" ({_code(name)})" if name and name != f"line {line}" else "")


def _pageable_copies(index: ProfileIndex, device_ns: int, wall_ns: int) -> list[Finding]:
    activities = index.profile.tables["activities"]
    pageable = (index.kinds == MEMCPY) & (
        activities.names("src_kind").equals("pageable")
        | activities.names("dst_kind").equals("pageable")
    )
    rows = np.flatnonzero(pageable)
    time = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    total = int(time.sum())
    copied = int(np.maximum(activities["bytes"][rows], 0).sum())
    if total < max(COPY_SHARE * device_ns, COPY_WALL_SHARE * wall_ns) or copied < COPY_BYTES:
        return []
    longest = rows[int(time.argmax())]
    verb = "accounts" if len(rows) == 1 else "account"
    text = (
        f"{plural(len(rows), 'copy', 'copies')} of pageable memory ({size(copied)}) {verb} for "
        f"{percent(total / device_ns)} of the {device_word(index.profile.info)} time: "
        "copies of pinned memory are faster and overlap with kernels."
    )
    # Pinned memory usually saves half of a copy's time at best.
    return [Finding(text, total // 2, int(activities["start_ns"][longest]),
                    int(activities["end_ns"][longest]))]  # fmt: skip


def _launch_bound(index: ProfileIndex, wall_ns: int) -> list[Finding]:
    activities = index.profile.tables["activities"]
    kernels = np.flatnonzero(index.kinds == KERNEL)
    if len(kernels) < MANY_KERNELS:
        return []
    start, end = activities["start_ns"][kernels], activities["end_ns"][kernels]
    low, high = int(start.min()), int(end.max())
    starts, ends = index.busy()
    busy = float((ends - starts).sum()) / max(high - low, 1)
    if busy > LAUNCH_BOUND_BUSY:
        return []
    median = float(np.median(np.subtract(end, start, out=end), overwrite_input=True))
    if median > SHORT_KERNEL_NS:
        return []
    text = (
        f"Launch-bound: launching takes longer than the kernels run ({duration(median)}, median): "
        f"the {device_word(index.profile.info)} is idle {percent(1 - busy)} of the time between "
        f"the first and the last of {plural(len(kernels), 'kernel')}."
    )
    saving = int((high - low) * (1 - busy))
    return [Finding(text, min(saving, wall_ns) // 2, low, high)]


def _fallbacks(index: ProfileIndex, wall_ns: int) -> list[Finding]:
    profile = index.profile
    if not profile.info.get("onnxruntime_sessions"):
        return []
    nodes = index.cached(breakdown, "node")
    nodes = nodes.take(nodes["fell_back"])
    names, inside = nodes.values("name"), nodes.values("inside")
    # The time of a node includes that of its subgraph. Host times are those of recorded runs.
    is_outermost = np.array([outer not in names for outer in inside], np.bool_)
    outermost_ns = np.where(is_outermost, nodes["host_ns"], 0)
    host_ns = outermost_ns * nodes["count"] // np.maximum(nodes["recorded"], 1)
    about = "" if (nodes["count"] == nodes["recorded"]).all() else "about "
    cost = host_ns + nodes["fallback_copy_ns"]
    total = int(cost.sum())
    if total < FALLBACK_SHARE * wall_ns:
        return []
    top = int(cost.argmax())
    name, op_type = str(names[top]), str(nodes.values("op_type")[top])
    session = int(nodes["session"][top])
    which = f"Node {_code(name)} ({shorten(op_type, _TYPE_CHARACTERS)})"
    if len(nodes) > 1:
        which += f" and {plural(len(nodes) - 1, 'other')}"
    text = f"{which} ran on the CPU for {about}{duration(int(host_ns.sum()))}"
    copies = int(nodes["fallback_copies"].sum())
    if copies:
        copied = size(int(nodes["fallback_bytes"].sum()))
        text += f", with {plural(copies, 'copy', 'copies')} ({copied}) to and from it"
    gain = unprofiled_ns(index, session, total)
    return [Finding(f"{text}, although its session has an accelerator.", gain,
                    *longest_execution(index, name, session))]  # fmt: skip


def _dominant_operator(index: ProfileIndex) -> list[Finding]:
    found = dominant_operator(index)
    if found is None:
        return []
    nodes, share = found
    total = int(nodes["host_ns"].sum())
    slowest, session = str(nodes.values("name")[0]), int(nodes["session"][0])
    op_type = shorten(str(nodes.values("op_type")[0]), _TYPE_CHARACTERS)
    text = (
        f"{op_type} nodes account for {percent(share)} of the time of all nodes "
        f"({duration(total)} in {plural(int(nodes['recorded'].sum()), 'execution')})"
    )
    if len(nodes) > 1:
        mean = duration(int(nodes["mean_host_ns"][0]))
        text += f"; the slowest is {_code(slowest)} ({mean}, mean)"
    return [Finding(f"{text}.", unprofiled_ns(index, session, total),
                    *longest_execution(index, slowest, session))]  # fmt: skip


def _slowest_node(index: ProfileIndex) -> list[Finding]:
    found = slowest_node(index)
    if found is None:
        return []
    node, share = found
    name, session, total = str(node.values("name")[0]), int(node["session"][0]), node["host_ns"][0]
    text = (
        f"Node {_code(name)} ({shorten(str(node.values('op_type')[0]), _TYPE_CHARACTERS)}) "
        f"accounts for {percent(share)} of the time of all nodes ({duration(int(total))} in "
        f"{plural(int(node['recorded'][0]), 'execution')})."
    )
    return [Finding(text, unprofiled_ns(index, session, int(total)),
                    *longest_execution(index, name, session))]  # fmt: skip


def _conversions(index: ProfileIndex) -> list[Finding]:
    """Name fusions and kernels that ONNX Runtime lacked, by the nodes that this leaves."""
    result = []
    for found, one, many, reason in (
        (quantization(index), "node that quantizes or dequantizes accounts",
         "nodes that quantize or dequantize account",
         "ONNX Runtime did not fuse them into quantized operators"),
        (inserted_casts(index), "Cast node inserted by ONNX Runtime accounts",
         "Cast nodes inserted by ONNX Runtime account",
         "the execution provider has no kernels for the types of the model"),
    ):  # fmt: skip
        if found is not None:
            nodes, share = found
            total, session = int(nodes["host_ns"].sum()), int(nodes["session"][0])
            text = (
                f"{plural(len(nodes), one, many)} for {percent(share)} of the time of all nodes "
                f"({duration(total)}): {reason}."
            )
            longest = longest_execution(index, str(nodes.values("name")[0]), session)
            result.append(Finding(text, unprofiled_ns(index, session, total), *longest))
    return result


def _thread_pool(index: ProfileIndex) -> list[Finding]:
    found = thread_pool(index)
    if found is None:
        return []
    nodes, start_ns, wait_ns, total = found
    session = int(nodes["session"][0])
    text = (
        f"Nodes spent {percent(start_ns / total)} of their time starting the threads of the "
        f"session's pool and {percent(wait_ns / total)} waiting for them: a smaller "
        "`SessionOptions.intra_op_num_threads` may be faster."
    )
    longest = longest_execution(index, str(nodes.values("name")[0]), session)
    return [Finding(text, unprofiled_ns(index, session, start_ns + wait_ns), *longest)]


def _largest_memory(index: ProfileIndex) -> list[Finding]:
    row = largest_memory(index)
    if row is None:
        return []
    ops = index.profile.tables["ops"]
    at = np.array([row])
    name, op_type = (str(ops.names(column).take(at).to_list()[0]) for column in ("name", "op_type"))
    in_use, held = int(ops["in_use_bytes"][row]), int(ops["arena_held_bytes"][row])
    text = (
        f"ONNX Runtime used the most memory in node {_code(name)} "
        f"({shorten(op_type, _TYPE_CHARACTERS)}): {size(in_use)}"
    )
    if held > in_use:
        text += f" of {size(held)} that its allocator held"
    # Less memory need not be faster.
    return [Finding(f"{text}.", 0, int(ops["start_ns"][row]), int(ops["end_ns"][row]))]
