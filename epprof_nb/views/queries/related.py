"""Relations of one event: its launch, its ops, the work it launched and its neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.device_work import FIRST_WAIT
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.arrays.chunks import chunks
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.selected_events import checked_row
from epprof_nb.views.queries.single_pass import EvenSample, same_name_neighbours
from epprof_nb.views.queries.string_table import MAX_NAME_LENGTH
from epprof_nb.views.timeline.lanes import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel


MAX_FLOWS = 200
"""Maximum number of arrows from launches to activities."""
_MAX_DEPTH = 200


def related(
    view_model: ViewModel, prefix: str, row: int, window: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return the events related to one event.

    Parameters
    ----------
    view_model
        The profile.
    prefix, row
        The event: ``op``, ``api`` or ``act``, and its row in the table.
    window
        Time range in view, ns. Of too many activities, those inside are preferred.

    Returns
    -------
    related
        JSON-serialisable. Events are as from `locate_event`.

        ``chain``
            Enclosing ops, outermost first. For an op, the chain ends with the op itself.
        ``line``
            ``cell``, ``line`` and ``text`` of the innermost statement; None if there is none.
        ``call``
            API call that launched the activity; else None.
        ``delay``
            Time from the start of that call to the start of the activity, ns; None without a call.
        ``flows``
            ``[from, to]`` pairs, longest activity first: the activities that the event launched, or
            the activity itself, each with its API call or, without one, its op. If there are more
            than `MAX_FLOWS`, the longest and an even sample of the others.
        ``launched``
            Number of these activities without the limit.
        ``before``, ``after``
            Neighbours in the same row of the lane; None at the ends.
        ``same``
            ``before`` and ``after`` among the events of the same table and name, with ``number``
            (from 1) and ``count``.

    Raises
    ------
    ValueError
        If the profile has no such event.
    """
    row = checked_row(view_model, {"prefix": prefix, "row": row})
    index = view_model.index
    if prefix == "op":
        owner = row
    else:
        op_id = view_model.profile.tables[PREFIXES[prefix]]["op_id"]
        owner = int(index.tree.rows(op_id[[row]])[0])
    chain = _chain(index.tree.parent, owner)
    call = _call_of(view_model, row) if prefix == "act" else None
    activities, total = _launched(view_model, prefix, row, window)
    return {
        "chain": [
            locate_event(view_model, "op", op)
            for op in chain
            if op == row or op not in view_model.op_of_statement
        ],
        "line": _line(view_model, chain),
        "call": _located(view_model, "api", call),
        "delay": None if call is None else _delay(view_model, row, call),
        "flows": _flows(view_model, prefix, row, activities),
        "launched": total,
        **_neighbours(view_model, prefix, row),
        "same": _same_name(view_model, prefix, row),
    }


def locate_event(view_model: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    """Return the name, time and place of an event.

    The keys are ``prefix``, ``row``, ``name``, ``start``, ``dur`` (ns), ``lane`` (-1 if it is not
    drawn) and ``level``, its row in the lane (-1 for the bottom edge).
    """
    table = view_model.profile.tables[PREFIXES[prefix]]
    names = table.names("name")
    lane, level = view_model.layout.by_prefix()[prefix].lane_and_row(row)
    code, start = int(names.codes[row]), int(table["start_ns"][row])
    return {
        "prefix": prefix,
        "row": int(row),
        "name": shorten(names.categories[code], MAX_NAME_LENGTH) if code >= 0 else "",
        "start": start,
        "dur": max(int(table["end_ns"][row]) - start, 0),
        "lane": lane,
        "level": -1 if level == MAX_ROWS else level,
    }


def _chain(parent: IntArray, op: int) -> list[int]:
    chain: list[int] = []
    while op >= 0 and len(chain) < _MAX_DEPTH:
        chain.append(op)
        op = int(parent[op])
    return chain[::-1]


def _line(view_model: ViewModel, chain: Iterable[int]) -> dict[str, Any] | None:
    ops = view_model.profile.tables["ops"]
    for op in reversed(list(chain)):
        line, cell = int(ops["line"][op]), ops.names("cell").take(slice(op, op + 1)).to_list()[0]
        if line > 0 and cell is not None:
            text = source_line(view_model.profile, cell, line)
            return {"cell": cell, "line": line, "text": shorten(text, MAX_NAME_LENGTH)}
    return None


def _call_of(view_model: ViewModel, row: int) -> int | None:
    tables = view_model.profile.tables
    correlation = int(tables["activities"]["correlation_id"][row])
    if correlation == MISSING:
        return None
    # A runtime call and the driver call within share an id; the first one counts.
    call = int(view_model.index.calls.rows(np.array([correlation]))[0])
    return None if call < 0 else call


def _delay(view_model: ViewModel, row: int, call: int) -> int:
    tables = view_model.profile.tables
    # Device times are interpolated, so a kernel can appear to start just before its launch.
    return max(
        int(tables["activities"]["start_ns"][row]) - int(tables["api_calls"]["start_ns"][call]), 0
    )


def _launched(
    view_model: ViewModel, prefix: str, row: int, window: tuple[float, float] | None
) -> tuple[IntArray, int]:
    """Return the activities to draw arrows to, longest first, and their number without limit."""
    index, tables = view_model.index, view_model.profile.tables
    activities = tables["activities"]
    if prefix == "act":
        return np.array([row]), 1
    tree, is_inside = index.tree, np.empty(0, np.bool_)
    correlation = MISSING
    if prefix == "api":
        correlation = int(tables["api_calls"]["correlation_id"][row])
        if correlation == MISSING:
            return np.empty(0, np.int64), 0
    else:
        is_inside = (tree.preorder_begin >= tree.preorder_begin[row]) & (
            tree.preorder_begin < tree.preorder_end[row]
        )
        is_inside = np.append(is_inside, np.False_)  # row -1: no op
    # Comparing int64 columns with floats would convert the columns.
    first, last = (0, 0) if window is None else (math.ceil(window[0]), math.floor(window[1]))
    sample = EvenSample(MAX_FLOWS)
    for chunk in chunks(len(activities)):
        if prefix == "api":
            mask = activities["correlation_id"][chunk] == correlation
        else:
            # Synchronization is not launched work.
            mask = is_inside[tree.rows(activities["op_id"][chunk])]
            mask &= index.kinds[chunk] < FIRST_WAIT
        if not mask.any():
            continue
        start, end = activities["start_ns"][chunk], activities["end_ns"][chunk]
        is_near = None if window is None else (start <= last) & (end >= first)
        sample.add(chunk.start, end - start, mask, is_near)
    rows = sample.rows
    length = activities["end_ns"][rows] - activities["start_ns"][rows]
    return rows[np.argsort(-length, kind="stable")], sample.total


def _flows(
    view_model: ViewModel, prefix: str, row: int, activities: IntArray
) -> list[list[dict[str, Any]]]:
    if not len(activities):
        return []
    tables = view_model.profile.tables
    if prefix == "api":
        source = locate_event(view_model, "api", row)
        return [[source, locate_event(view_model, "act", a)] for a in activities.tolist()]
    ids = tables["activities"]["correlation_id"][activities]
    owners = view_model.index.tree.rows(tables["activities"]["op_id"][activities])
    calls = view_model.index.calls.rows(ids)
    flows = []
    for activity, call, op in zip(
        activities.tolist(), calls.tolist(), owners.tolist(), strict=True
    ):
        if call >= 0:
            source = locate_event(view_model, "api", call)
        elif op >= 0:
            source = locate_event(view_model, "op", op)
        else:
            continue
        flows.append([source, locate_event(view_model, "act", activity)])
    return flows


def _neighbours(view_model: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    before, after = view_model.layout.by_prefix()[prefix].neighbours(row)
    return {
        "before": _located(view_model, prefix, before),
        "after": _located(view_model, prefix, after),
    }


def _same_name(view_model: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    codes = view_model.profile.tables[PREFIXES[prefix]].names("name").codes
    neighbours = same_name_neighbours(codes, view_model.layout.by_prefix()[prefix], row)
    return {
        "before": _located(view_model, prefix, neighbours.before),
        "after": _located(view_model, prefix, neighbours.after),
        "number": neighbours.number,
        "count": neighbours.total,
    }


def _located(view_model: ViewModel, prefix: str, row: int | None) -> dict[str, Any] | None:
    return None if row is None else locate_event(view_model, prefix, row)
