"""Findings on the line, and the op of worker threads, with most of the device time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import device_kinds_ns, is_device_kind
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.breakdowns.line_totals import line_totals
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    code,
    computed_later,
    launcher_name,
    line_name,
)
from epprof_nb.analysis.findings.hot_shares import HOT_ON_DEVICE
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


_REMEDY = "Make this work faster or do less of it. `evidence()` with this rank lists its kernels."


def device_time(index: ProfileIndex) -> int:
    """Return the total time of the kernels, memcpys and memsets, ns."""
    return device_kinds_ns(index.profile.tables["activities"], index.kinds)


def hot_line(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the line that accounts for most of the device time."""
    with_work = [line for line in index.cached(line_totals) if line.device_ns]
    if len(with_work) < 2:
        return  # the only line with device work needs no mention
    top = max(with_work, key=lambda line: line.device_ns)
    share = top.device_ns / index.cached(device_time)
    if share < HOT_ON_DEVICE:
        return
    ops = index.profile.tables["ops"]
    is_line = (ops["line"] == top.line) & ops.names("cell").equals(top.cell)
    stack = top.stacks[0] if top.stacks else MISSING
    name = launcher_name(index, stack, MISSING) if top.stacks else ""
    where = capitalised(name or line_name(index.profile, top.cell, top.line))
    yield Finding(
        f"{where} accounts for {percent(share)} of the {device_word(index.profile.info)} time.",
        0,
        top.start_ns,
        top.end_ns,
        kind="hot line",
        remedy=_REMEDY,
        op_id=MISSING if top.stacks else _longest(index, is_line),
        stack_id=stack,
        rows=computed_later(index, _launched_at, is_line, top.stacks),
    )


def _launched_at(index: ProfileIndex, is_line: BoolArray, stacks: list[int]) -> IntArray:
    """Return the device work of a line: of its stacks, or of its statements."""
    if not len(index.cached(StackLines)):
        return _launched_under(index, is_line)
    places = index.cached(Places)
    place = places.of_stack[stacks[0]] if stacks else places.of_op[int(is_line.argmax())]
    is_there = places.of_activities(slice(None)) == place
    return np.flatnonzero(is_there & is_device_kind(index.kinds))


def hot_op(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the op of worker threads, which have no lines, with the most own work."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_range = ops.names("op_type").equals("range")
    outside = tree.nearest_ancestor(ops["line"] >= 0) == MISSING
    names = ops.names("name")
    if not (is_range & outside & (names.codes != MISSING)).any():
        return
    owner = tree.nearest_ancestor(is_range & outside)
    name_of_op = np.append(names.codes, MISSING)[owner]
    own_ns = index.op_sums("launch")["device_ns"][:-1]
    own_ns = np.where(outside, own_ns, 0)
    of_name = sum_by_group(name_of_op, own_ns, len(names.categories))[:-1]
    top = int(of_name.argmax())
    share = int(of_name[top]) / index.cached(device_time)
    # The only op with device work needs no mention.
    if share < HOT_ON_DEVICE or of_name[top] == index.cached(device_time):
        return
    has_name = is_range & outside & (names.codes == top)
    rows = np.flatnonzero(has_name)
    word = device_word(index.profile.info)
    yield Finding(
        f"{code(names.categories[top])} accounts for {percent(share)} of the {word} time.",
        0,
        int(ops["start_ns"][rows].min()),
        int(ops["end_ns"][rows].max()),
        kind="hot op",
        remedy=_REMEDY,
        op_id=_longest(index, has_name),
        rows=computed_later(index, _launched_under, has_name),
    )


def _longest(index: ProfileIndex, mask: BoolArray) -> int:
    """Return the id of the longest op of a mask."""
    ops = index.profile.tables["ops"]
    rows = np.flatnonzero(mask)
    return int(ops["op_id"][rows[int(ops["duration_ns"][rows].argmax())]])


def _launched_under(index: ProfileIndex, mask: BoolArray) -> IntArray:
    """Return the kernels, memcpys and memsets launched by the ops of a mask or below them.

    An op below another statement belongs to that one, as in `line_totals`.
    """
    ops = index.profile.tables["ops"]
    owner = index.tree.nearest_ancestor(mask | (ops["line"] >= 0))
    is_under = np.append(np.append(mask, False)[owner], False)
    return np.flatnonzero(is_under[index.activity_op] & is_device_kind(index.kinds))
