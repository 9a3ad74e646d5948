"""What one event has to do with others: its launch, its ops, what it launched, its neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.device_work import FIRST_WAIT
from epprof_nb.analysis.source_lines import source_line
from epprof_nb.arrays.chunks import chunks
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.scan import Some, among
from epprof_nb.views.queries.selection import event_row
from epprof_nb.views.timeline.lanes import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.views.view_model import ViewModel

Ints = npt.NDArray[np.int64]

FLOWS = 200
"""Lines from launches to activities that are drawn at most."""
_NAME_CHARACTERS = 600
_CHAIN = 200


def related(
    prepared: ViewModel, prefix: str, row: int, window: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return the events that one event leads to.

    Parameters
    ----------
    prepared
        The profile.
    prefix, row
        The event: ``op``, ``api`` or ``act``, and its row in the table.
    window
        First and last nanosecond that is looked at: of too many activities, those in it are told.

    Returns
    -------
    told
        JSON-serialisable. An event is ``{prefix, row, name, start, dur, lane, level}``: times in
        ns, ``lane`` and ``level`` (-1 for the lane's foot) where it is drawn, lane -1 nowhere.

        ``chain``
            The ops around it, outermost first; an op's own chain ends with itself.
        ``line``
            ``cell``, ``line`` and ``text`` of the nearest statement; None without one.
        ``call``
            The API call that launched it, of an activity; else None.
        ``delay``
            From the start of that call to its own start, ns; None where the call is not known.
        ``flows``
            ``[from, to]`` pairs, the longest activity first, at most `FLOWS`: each activity that
            it launched, or itself, with the API call or op it was launched by. Of more, the
            longest one and then some evenly spread, of those in the window first.
        ``launched``
            How many there are.
        ``before``, ``after``
            Its neighbours in the same row of its lane; None at the ends.
        ``same``
            ``before`` and ``after`` among the events of its table with its name, ``number`` (from
            1) and ``count``.

    Raises
    ------
    ValueError
        For an event that the profile does not have.
    """
    row = event_row(prepared, {"prefix": prefix, "row": row})
    index = prepared.index
    if prefix == "op":
        owner = row
    else:
        op_id = prepared.profile.tables[PREFIXES[prefix]]["op_id"]
        owner = int(index.tree.rows(op_id[[row]])[0])
    chain = _chain(index.tree.parent, owner)
    call = _call_of(prepared, row) if prefix == "act" else None
    activities, total = _launched(prepared, prefix, row, window)
    return {
        "chain": [event(prepared, "op", op) for op in chain],
        "line": _line(prepared, chain),
        "call": None if call is None else event(prepared, "api", call),
        "delay": None if call is None else _delay(prepared, row, call),
        "flows": _flows(prepared, prefix, row, activities),
        "launched": total,
        **_neighbours(prepared, prefix, row),
        "same": _same_name(prepared, prefix, row),
    }


def event(prepared: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    """Return where and when one event is; see `related`."""
    table = prepared.profile.tables[PREFIXES[prefix]]
    names = table.names("name")
    lane, level = prepared.layout.places()[prefix].place(row)
    code, start = int(names.codes[row]), int(table["start_ns"][row])
    return {
        "prefix": prefix,
        "row": int(row),
        "name": shorten(names.categories[code], _NAME_CHARACTERS) if code >= 0 else "",
        "start": start,
        "dur": max(int(table["end_ns"][row]) - start, 0),
        "lane": lane,
        "level": -1 if level == MAX_ROWS else level,
    }


def _chain(parent: Ints, op: int) -> list[int]:
    chain: list[int] = []
    while op >= 0 and len(chain) < _CHAIN:
        chain.append(op)
        op = int(parent[op])
    return chain[::-1]


def _line(prepared: ViewModel, chain: Iterable[int]) -> dict[str, Any] | None:
    ops = prepared.profile.tables["ops"]
    for op in reversed(list(chain)):
        line, cell = int(ops["line"][op]), ops.names("cell").take(slice(op, op + 1)).to_list()[0]
        if line > 0 and cell is not None:
            text = source_line(prepared.profile, cell, line)
            return {"cell": cell, "line": line, "text": shorten(text, _NAME_CHARACTERS)}
    return None


def _call_of(prepared: ViewModel, row: int) -> int | None:
    tables = prepared.profile.tables
    correlation = int(tables["activities"]["correlation_id"][row])
    if correlation == MISSING:
        return None
    # Of calls that share an id, as a runtime call and the driver call within, the first counts.
    call = int(prepared.index.calls.rows(np.array([correlation]))[0])
    return None if call < 0 else call


def _delay(prepared: ViewModel, row: int, call: int) -> int:
    tables = prepared.profile.tables
    # Device times are interpolated: a kernel can seem to start slightly before its launch.
    return max(
        int(tables["activities"]["start_ns"][row]) - int(tables["api_calls"]["start_ns"][call]), 0
    )


def _launched(
    prepared: ViewModel, prefix: str, row: int, window: tuple[float, float] | None
) -> tuple[Ints, int]:
    """Return the activities to draw lines to, the longest first, and how many there are."""
    index, tables = prepared.index, prepared.profile.tables
    activities = tables["activities"]
    if prefix == "act":
        return np.array([row]), 1
    tree, inside = index.tree, np.empty(0, np.bool_)
    correlation = MISSING
    if prefix == "api":
        correlation = int(tables["api_calls"]["correlation_id"][row])
        if correlation == MISSING:
            return np.empty(0, np.int64), 0
    else:
        inside = (tree.preorder_begin >= tree.preorder_begin[row]) & (
            tree.preorder_begin < tree.preorder_end[row]
        )
        inside = np.append(inside, np.False_)  # row -1, no op
    # Comparing integers with fractions would make fractions of them all.
    first, last = (0, 0) if window is None else (math.ceil(window[0]), math.floor(window[1]))
    some = Some(FLOWS)
    for piece in chunks(len(activities)):
        if prefix == "api":
            mine = activities["correlation_id"][piece] == correlation
        else:
            # A wait is the host's: no work was launched.
            mine = inside[tree.rows(activities["op_id"][piece])]
            mine &= index.kinds[piece] < FIRST_WAIT
        if not mine.any():
            continue
        start, end = activities["start_ns"][piece], activities["end_ns"][piece]
        near = None if window is None else (start <= last) & (end >= first)
        some.add(piece.start, end - start, mine, near)
    rows = some.rows
    length = activities["end_ns"][rows] - activities["start_ns"][rows]
    return rows[np.argsort(-length, kind="stable")], some.total


def _flows(
    prepared: ViewModel, prefix: str, row: int, activities: Ints
) -> list[list[dict[str, Any]]]:
    if not len(activities):
        return []
    tables = prepared.profile.tables
    if prefix == "api":
        source = event(prepared, "api", row)
        return [[source, event(prepared, "act", a)] for a in activities.tolist()]
    ids = tables["activities"]["correlation_id"][activities]
    owners = prepared.index.tree.rows(tables["activities"]["op_id"][activities])
    calls = prepared.index.calls.rows(ids)
    flows = []
    for activity, call, op in zip(
        activities.tolist(), calls.tolist(), owners.tolist(), strict=True
    ):
        if call >= 0:
            source = event(prepared, "api", call)
        elif op >= 0:
            source = event(prepared, "op", op)
        else:
            continue
        flows.append([source, event(prepared, "act", activity)])
    return flows


def _neighbours(prepared: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    before, after = prepared.layout.places()[prefix].beside(row)
    return {
        "before": None if before is None else event(prepared, prefix, before),
        "after": None if after is None else event(prepared, prefix, after),
    }


def _same_name(prepared: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    table = prepared.profile.tables[PREFIXES[prefix]]
    found = among(table.names("name").codes, prepared.layout.places()[prefix], row)
    return {
        "before": None if found.before is None else event(prepared, prefix, found.before),
        "after": None if found.after is None else event(prepared, prefix, found.after),
        "number": found.number,
        "count": found.total,
    }
