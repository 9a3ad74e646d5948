"""What to change first: one or two sentences, ranked by the time to be won."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from epprof_nb.analysis.device_work import KERNEL, MEMCPY, busy_time
from epprof_nb.analysis.line_totals import source_line
from epprof_nb.analysis.ort_overhead import STRETCHED, stretch_at, stretch_of
from epprof_nb.analysis.summary import device_word, wall_of
from epprof_nb.util.format import duration, percent, plural, shorten, size, three_digits

if TYPE_CHECKING:
    from epprof_nb.analysis.device_work import Work
    from epprof_nb.analysis.line_totals import LineTotals
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.view_model import Prepared

_HOT_SHARE = 0.4
_IDLE_SHARE = 0.05
_COPY_SHARE = 0.15
_SHORT_KERNEL_NS = 10_000
_MANY_KERNELS = 200
_LAUNCH_BOUND_BUSY = 0.5
_FALLBACK_SHARE = 0.05
_CODE_CHARACTERS = 56
_TYPE_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, and the place in the timeline that shows it.

    Attributes
    ----------
    text
        The sentence; source text stands between backticks.
    gain_ns
        Time that could be won at most, nanoseconds.
    start_ns, end_ns
        The stretch to look at.
    """

    text: str
    gain_ns: int
    start_ns: int
    end_ns: int


def _code(text: str) -> str:
    # A backtick of its own would end the code span early.
    return f"`{shorten(text.replace('`', chr(0x2BC)), _CODE_CHARACTERS)}`"


def _hot_line(profile: ProfileData, totals: list[LineTotals], busy_ns: int) -> list[Finding]:
    with_work = [t for t in totals if t.device_ns]
    if len(with_work) < 2:
        return []  # the only line with work is no news
    top = max(with_work, key=lambda t: t.device_ns)
    share = top.device_ns / busy_ns
    if share < _HOT_SHARE:
        return []
    text = source_line(profile, top.cell, top.line)
    where = f"Line {top.line}" + (f" ({_code(text)})" if text else "")
    sentence = f"{where} holds {percent(share)} of the {device_word(profile.info)} time."
    return [Finding(sentence, top.device_ns, top.start_ns, top.end_ns)]


def _idle(profile: ProfileData, gaps: pd.DataFrame, wall_ns: int) -> list[Finding]:
    together: dict[tuple[int, str, float], list[tuple[int, int]]] = {}
    for gap in gaps.astype(object).to_dict("records"):
        line = -1 if pd.isna(gap["line"]) else int(gap["line"])
        name = "" if pd.isna(gap["name"]) else str(gap["name"])
        stretch = (int(gap["start_ns"]), int(gap["end_ns"]))
        slower = 1.0 if pd.isna(gap["op_id"]) else stretch_at(profile, int(gap["op_id"]))
        together.setdefault((line, name, slower), []).append(stretch)
    found = []
    for (line, name, slower), stretches in together.items():
        total = sum(end - start for start, end in stretches)
        if total < _IDLE_SHARE * wall_ns:
            continue
        amount = f"{duration(total)} of idle"
        if len(stretches) > 1:
            amount += f" in {plural(len(stretches), 'gap')}"
        # Where the source was left out, a statement's name is its line.
        code = f" ({_code(name)})" if name and name != f"line {line}" else ""
        if line >= 0:
            doing = f"while the host is in line {line}{code}"
        else:
            doing = f"while the host is in {_code(name)}" if name else "with no op open on the host"
        if slower >= STRETCHED:
            doing += f", whose run being profiled stretched {three_digits(slower)}x"
        start, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
        found.append(Finding(f"{amount} {doing}.", int(total / slower), start, end))
    return found


def _pageable_copies(profile: ProfileData, work: Work, busy_ns: int) -> list[Finding]:
    activities = profile.tables["activities"]
    pageable = (work.kinds == MEMCPY) & (
        activities.names("src_kind").equals("pageable")
        | activities.names("dst_kind").equals("pageable")
    )
    rows = np.flatnonzero(pageable)
    time = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    total = int(time.sum())
    if total < _COPY_SHARE * busy_ns:
        return []
    moved = int(np.maximum(activities["bytes"][rows], 0).sum())
    longest = rows[int(time.argmax())]
    text = (
        f"{plural(len(rows), 'copy', 'copies')} of pageable memory ({size(moved)}) take "
        f"{percent(total / busy_ns)} of the {device_word(profile.info)} time: "
        "pinned memory copies faster and beside kernels."
    )
    # Pinned memory halves a copy at best, as a rule.
    return [Finding(text, total // 2, int(activities["start_ns"][longest]),
                    int(activities["end_ns"][longest]))]  # fmt: skip


def _launch_bound(prepared: Prepared, wall_ns: int) -> list[Finding]:
    profile = prepared.profile
    activities = profile.tables["activities"]
    kernels = np.flatnonzero(prepared.work.kinds == KERNEL)
    if len(kernels) < _MANY_KERNELS:
        return []
    start, end = activities["start_ns"][kernels], activities["end_ns"][kernels]
    low, high = int(start.min()), int(end.max())
    starts, ends = prepared.shared.busy()
    inside = float((ends - starts).sum()) / max(high - low, 1)
    if inside > _LAUNCH_BOUND_BUSY:
        return []
    median = float(np.median(np.subtract(end, start, out=end), overwrite_input=True))
    if median > _SHORT_KERNEL_NS:
        return []
    text = (
        f"{plural(len(kernels), 'kernel')} of {duration(median)} (median) leave the "
        f"{device_word(profile.info)} idle {percent(1 - inside)} of the time between them: "
        "launching costs more than the work."
    )
    won = int((high - low) * (1 - inside))
    return [Finding(text, min(won, wall_ns) // 2, low, high)]


def _fallbacks(prepared: Prepared, wall_ns: int) -> list[Finding]:
    profile = prepared.profile
    if not profile.info.get("onnxruntime_sessions"):
        return []
    nodes = prepared.breakdown("node")
    nodes = nodes[nodes["fell_back"]]
    # Time in a node's subgraph is the node's own.
    host_ns = nodes["host_ns"].where(~nodes["inside"].isin(nodes["name"]), 0)
    cost = host_ns + nodes["fallback_copy_ns"]
    total = int(cost.sum())
    if total < _FALLBACK_SHARE * wall_ns:
        return []
    top = nodes.iloc[int(cost.to_numpy().argmax())]
    which = f"Node {_code(str(top['name']))} ({shorten(str(top['op_type']), _TYPE_CHARACTERS)})"
    if len(nodes) > 1:
        which += f" and {plural(len(nodes) - 1, 'other')}"
    text = f"{which} ran on the CPU, for {duration(int(host_ns.sum()))}"
    copies = int(nodes["fallback_copies"].sum())
    if copies:
        moved = size(int(nodes["fallback_bytes"].sum()))
        text += f", with {plural(copies, 'copy', 'copies')} ({moved}) around"
    ops = profile.tables["ops"]
    of_node = ops.names("category").equals("node") & ops.names("name").equals(str(top["name"]))
    rows = np.flatnonzero(of_node & (ops["session"] == top["session"]))
    longest = rows[int(ops["duration_ns"][rows].argmax())]
    gain = int(total / stretch_of(profile.info, int(top["session"])))
    return [Finding(f"{text}, though its session has an accelerator.", gain,
                    int(ops["start_ns"][longest]), int(ops["end_ns"][longest]))]  # fmt: skip


def findings(prepared: Prepared, *, limit: int = 2) -> list[Finding]:
    """Return the `limit` findings with the most time to be won; none is better than a weak one."""
    profile, work = prepared.profile, prepared.work
    busy_ns = busy_time(profile, work.kinds)
    wall_ns = wall_of(profile)
    # Times of an overflown clock can add up to less than nothing.
    if busy_ns <= 0:
        return _fallbacks(prepared, wall_ns)[:limit]
    found = [
        *_hot_line(profile, prepared.lines, busy_ns),
        *_idle(profile, prepared.gaps, wall_ns),
        *_pageable_copies(profile, work, busy_ns),
        *_launch_bound(prepared, wall_ns),
        *_fallbacks(prepared, wall_ns),
    ]
    return sorted(found, key=lambda f: -f.gain_ns)[:limit]
