"""The events of a time window as columns for the viewer, at most as many as it can draw."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.base.stack_lines import launching_lines
from epprof_nb.data.schema import ACTIVITY_KINDS, MISSING
from epprof_nb.data.table import FILL
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.string_table import StringTable
from epprof_nb.views.timeline.lanes import MAX_ROWS
from epprof_nb.views.timeline.level_of_detail import (
    allocate_bins,
    contains_any,
    rects_in_window,
    visible_positions,
)
from epprof_nb.views.timeline.with_statements import statement_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.level_of_detail import Rects
    from epprof_nb.views.view_model import ViewModel


_NONE: IntArray = np.empty(0, np.int64)
_LABELS = {"op": "ops", "api": "API calls", "act": "activities"}
_PLACE = {"cell", "line", "end_line"}
_NOT_FIELDS = {"start_ns", "end_ns", "op_id", "parent_op_id", "kind"}

MAX_RECTS = 50_000
"""Maximum number of rectangles of a response, whatever the number of lanes."""
_OFFSCREEN_FACTOR = 8
"""Factor by which lanes outside the viewport are coarser."""


@dataclass(frozen=True, slots=True)
class WindowQuery:
    """A request for the events of a time window.

    Attributes
    ----------
    start_ns, end_ns
        The time range.
    width
        Width of the window in pixels; None for as many bins as `max_rects` allows.
    lanes
        First and last + 1 lane in the viewport; None for all. Other lanes are coarser.
    """

    start_ns: int
    end_ns: int
    width: float | None = None
    lanes: tuple[int, int] | None = None


def query_window(
    view_model: ViewModel,
    window: WindowQuery,
    *,
    max_rects: int = MAX_RECTS,
    details: bool = True,
    highlighted: Mapping[str, IntArray] | None = None,
    pinned: Mapping[str, IntArray] | None = None,
    positions: bool = False,
) -> tuple[dict[str, Any], dict[str, IntArray]]:
    """Return the header and the columns of the events to draw.

    Parameters
    ----------
    view_model
        The profile.
    window
        The time range, and the width it is drawn at.
    max_rects
        Maximum number of rectangles. With more events, one rectangle represents several.
    details
        Include every column with a value. If False, only drawn columns are included, and the row
        numbers with which the viewer requests the details of an event.
    highlighted, pinned
        Positions of the highlighted events, and of the events not to merge, by prefix (``op``,
        ``api``, ``act``); see `epprof_nb.views.timeline.level_of_detail.positions_of`.
    positions
        With details, include the position of each event as ``row``.

    Returns
    -------
    header
        ``kinds`` (kinds of activities by code), ``names`` (string table), ``short_names`` (of
        kernels, by index into it), ``texts`` (columns of codes into it), ``slices`` (by prefix,
        runs of rectangles in one row: lane, row, first, last + 1) and ``shown`` (by table, the
        number of rectangles and of the events they represent).
    columns
        Integers by ``<prefix>.<column>``. ``op`` is the index of the op among those sent, -1 for
        none; text columns are codes into ``names``, -1 for missing. ``op.operator`` is the hue of
        an op's operator, see `epprof_nb.views.timeline.op_colours.operator_hues`, -1 for other ops.
        If a rectangle represents several events, ``members`` is their number and ``cover`` the time
        they cover; the other columns describe the longest event.
    """
    tables, layouts = view_model.profile.tables, view_model.layout.by_prefix()
    strings = StringTable()
    columns: dict[str, IntArray] = {}
    slices: dict[str, list[list[int]]] = {}
    shown: dict[str, list[int]] = {}
    rects_of = _rects_by_prefix(view_model, window, max_rects, pinned or {})
    rows_of = {
        prefix: layouts[prefix].event_rows.order[rects.event].astype(np.int64)
        for prefix, rects in rects_of.items()
    }
    sent = np.full(len(tables["ops"]) + 1, -1, np.int32)
    sent[rows_of["op"]] = np.arange(len(rows_of["op"]))
    for prefix, rects in rects_of.items():
        table, rows = tables[PREFIXES[prefix]], rows_of[prefix]
        event_rows = layouts[prefix].event_rows
        columns[f"{prefix}.start"], columns[f"{prefix}.dur"] = rects.start, rects.dur
        slices[prefix] = row_slices(
            event_rows.lane[rects.row_index], event_rows.row[rects.row_index]
        )
        shown[_LABELS[prefix]] = [len(rows), int(rects.members.sum())]
        if (rects.members > 1).any():
            columns[f"{prefix}.members"], columns[f"{prefix}.cover"] = rects.members, rects.cover
        if highlighted is not None:
            contains = contains_any(rects, highlighted.get(prefix, _NONE))
            columns[f"{prefix}.highlighted"] = contains.astype(np.int64)
        if pinned is not None and prefix in pinned:
            is_pinned = (rects.members == 1) & np.isin(rects.event, pinned[prefix])
            columns[f"{prefix}.pinned"] = is_pinned.astype(np.int64)
        if positions:
            columns[f"{prefix}.row"] = rects.event
        if details:
            columns |= detailed_columns(
                view_model, prefix, rows, sent,
                strings=strings, names=with_values(view_model, prefix, rows),
            )  # fmt: skip
            continue
        columns |= _relations(view_model, prefix, rows, sent)[1]
        columns[f"{prefix}.row"] = rows
        names = table.names("name")
        columns[f"{prefix}.name"] = strings.encode(
            f"{prefix}.name", names.codes[rows], names.categories
        )
        if prefix != "op":
            columns[f"{prefix}.correlation_id"] = table["correlation_id"][rows]
    header = {
        "kinds": ACTIVITY_KINDS, "names": list(strings.index), "short_names": strings.short,
        "texts": strings.columns, "slices": slices, "shown": shown,
    }  # fmt: skip
    return header, columns


def _rects_by_prefix(
    view_model: ViewModel, window: WindowQuery, max_rects: int, pinned: Mapping[str, IntArray]
) -> dict[str, Rects]:
    """Return the rectangles of the window by prefix, together at most about `max_rects`."""
    rows_of = {
        prefix: layout.event_rows for prefix, layout in view_model.layout.by_prefix().items()
    }
    low, high = window.start_ns, window.end_ns
    visible = {prefix: visible_positions(rows, low, high) for prefix, rows in rows_of.items()}
    counts = {prefix: end - begin for prefix, (begin, end) in visible.items()}
    desired = []
    for prefix, rows in rows_of.items():
        bins = np.full(len(counts[prefix]), window.width or 2.0 * max_rects)
        if window.lanes is not None:
            is_offscreen = (rows.lane < window.lanes[0]) | (rows.lane >= window.lanes[1])
            bins[is_offscreen] /= _OFFSCREEN_FACTOR
        desired.append(bins)
    bins = allocate_bins(np.concatenate([*counts.values()]), np.concatenate(desired), max_rects)
    cuts = np.cumsum([len(count) for count in counts.values()])[:-1]
    return {
        prefix: rects_in_window(
            rows, low, high, bins_of, keep=pinned.get(prefix, _NONE), visible=visible[prefix]
        )
        for (prefix, rows), bins_of in zip(rows_of.items(), np.split(bins, cuts), strict=True)
    }


def _relations(
    view_model: ViewModel, prefix: str, rows: IntArray, sent: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.integer[Any]], dict[str, IntArray]]:
    """Return the op of each event (of an op: its parent), and the columns of kinds and ops.

    ``sent`` has the index of each op among those sent, -1 for the others and at its end.
    """
    index = view_model.index
    parent, columns = index.tree.parent, {}
    if prefix == "op":
        owner = parent[rows]
        columns["op.kind"] = index.op_device_time.main_kind(rows).astype(np.int64)
        if view_model.operators.names:
            columns["op.operator"] = view_model.operator_hues[rows]
    else:
        # Look up only the ops of the rows sent; all rows would be a pass over the table.
        table = view_model.profile.tables[PREFIXES[prefix]]
        owner = index.tree.rows(table["op_id"][rows])
    columns[f"{prefix}.op"] = _nearest_sent_ancestor(owner, parent, sent)
    if prefix == "act":
        columns["act.kind"] = index.kinds[rows].astype(np.int64)
    return owner, columns


def with_values(view_model: ViewModel, prefix: str, rows: IntArray) -> list[str]:
    """Return the columns of a table that have a value in some of the rows, and are sent."""
    table = view_model.profile.tables[PREFIXES[prefix]]
    placed = rows_of_place(view_model, rows) if prefix == "op" else rows
    found = []
    for column in table.schema.columns:
        if column.name in _NOT_FIELDS or (column.name == "duration_ns" and prefix != "op"):
            continue
        of = placed if column.name in _PLACE else rows
        is_text = column.kind in ("name", "args")
        values = table.names(column.name).codes[of] if is_text else table[column.name][of]
        if not (values == (MISSING if is_text else FILL[column.kind])).all():
            found.append(column.name)
    return found


def detailed_columns(
    view_model: ViewModel,
    prefix: str,
    rows: IntArray,
    sent: npt.NDArray[np.int32],
    *,
    strings: StringTable,
    names: Sequence[str],
) -> dict[str, IntArray]:
    """Return all columns of events except their times.

    Parameters
    ----------
    view_model
        The profile.
    prefix, rows
        The table, and the rows of the events in it.
    sent
        Index of each op among those sent, -1 for the others and at the end of the array.
    strings
        Table for the strings.
    names
        Columns of the table to include; see `with_values`.
    """
    index, tables = view_model.index, view_model.profile.tables
    table = tables[PREFIXES[prefix]]
    owner, columns = _relations(view_model, prefix, rows, sent)
    placed = rows_of_place(view_model, rows) if prefix == "op" else rows
    if prefix == "op":
        columns["op.id"] = table["op_id"][rows]
        columns["op.device_ns"] = index.op_device_time.total(rows)
        columns["op.launches"] = index.op_launches[rows]
    else:
        of_ops = tables["ops"].names("name")
        missing = np.full(len(rows), MISSING)
        codes = np.where(owner < 0, missing, of_ops.codes[owner]) if len(of_ops) else missing
        columns[f"{prefix}.op_name"] = strings.encode(f"{prefix}.op_name", codes, of_ops.categories)
        if not table.is_absent("stack_id"):
            lines = view_model.index.cached(launching_lines)
            codes = lines.codes[table["stack_id"][rows]].astype(np.int64)
            name = f"{prefix}.launched_at"
            columns[name] = strings.encode(name, codes, lines.categories)
    for name in names:
        kind, of = table.schema.column(name).kind, placed if name in _PLACE else rows
        if kind in ("name", "args"):
            texts = table.names(name)
            values = strings.encode(f"{prefix}.{name}", texts.codes[of], texts.categories)
        else:
            values = table[name][of].astype(np.int64)
            if kind == "delta":  # JavaScript represents the stored missing value exactly
                values = np.maximum(values, -(2**53))
        columns[f"{prefix}.{name}"] = values
    return columns


def rows_of_place(view_model: ViewModel, ops: IntArray) -> IntArray:
    """Return the rows that have the place of ops in the source.

    An op drawn in place of its ``with`` statement has the place of the statement.
    """
    statement = statement_rows(ops, view_model.op_of_statement)
    return np.where(statement == MISSING, ops, statement)


def _nearest_sent_ancestor(
    ops: IntArray, parent: IntArray, sent: npt.NDArray[np.int32]
) -> IntArray:
    """Return the index of each op among those sent, or of its nearest sent ancestor; -1 if none."""
    at = ops.copy()
    while len(unsent := np.flatnonzero((sent[at] < 0) & (at >= 0))):
        at[unsent] = parent[at[unsent]]
    return sent[at].astype(np.int64)


def row_slices(lane: IntArray, row: IntArray) -> list[list[int]]:
    """Return runs of equal lane and row as [lane, row, first, last + 1]; row -1 is the edge."""
    if not len(lane):
        return []
    change = np.flatnonzero((np.diff(lane) != 0) | (np.diff(row) != 0)) + 1
    bounds = [0, *change.tolist(), len(lane)]
    return [
        [int(lane[a]), -1 if row[a] == MAX_ROWS else int(row[a]), a, b] for a, b in pairwise(bounds)
    ]
