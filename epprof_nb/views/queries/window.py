"""The events of a window as columns for the viewer, no more than can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.timeline.lanes import MAX_ROWS
from epprof_nb.views.timeline.lod import holding, reaching, resolution
from epprof_nb.views.timeline.lod import window as cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.data.table import Table
    from epprof_nb.views.timeline.lod import Rects
    from epprof_nb.views.view_model import ViewModel

Ints = npt.NDArray[np.int64]

_NONE: Ints = np.empty(0, np.int64)
_NAME_CHARACTERS = 600
_LABELS = {"op": "ops", "api": "API calls", "act": "activities"}
_NOT_FIELDS = {"start_ns", "end_ns", "op_id", "parent_op_id", "kind"}


MOST = 50_000
"""Rectangles of an answer at most, whatever the number of lanes."""
_ASIDE = 8
"""How much coarser lanes are that are not in view."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is to be drawn.

    Attributes
    ----------
    start_ns, end_ns
        The stretch of time.
    width
        How many pixels it is wide; None for as many as the rectangles allow.
    lanes
        The lanes in view, first and last + 1; None for all. Others are sent coarser.
    """

    start_ns: int
    end_ns: int
    width: float | None = None
    lanes: tuple[int, int] | None = None


class _Strings:
    """One table of strings for all columns."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.columns: list[str] = []

    def codes(self, column: str, codes: npt.NDArray[Any], categories: Sequence[str]) -> Ints:
        """Codes into this table, noted for `column`; what is missing stays -1."""
        self.columns.append(column)
        used = np.unique(codes[codes >= 0])
        remap = np.full(len(categories) + 1, MISSING, np.int64)
        for code in used.tolist():
            text = categories[code]
            if len(text) > _NAME_CHARACTERS:
                text = shorten(text, _NAME_CHARACTERS)
            remap[code] = self.index.setdefault(text, len(self.index))
        mapped: Ints = remap[codes]
        return mapped


def _fields(
    prefix: str, table: Table, rows: Ints, strings: _Strings, columns: dict[str, Ints]
) -> None:
    """Add every column that says anything, for the details of an event."""
    for column in table.schema.columns:
        if column.name in _NOT_FIELDS or (column.name == "duration_ns" and prefix != "op"):
            continue
        if column.kind in ("name", "args"):
            names = table.names(column.name)
            values = strings.codes(f"{prefix}.{column.name}", names.codes[rows], names.categories)
            missing = values < 0
        else:
            values = table[column.name][rows].astype(np.int64)
            blank = 0 if column.kind in ("bool", "time", "int") else MISSING
            missing = values == blank
        if not missing.all():
            columns[f"{prefix}.{column.name}"] = values


def rectangles(
    prepared: ViewModel, window: Window, most: int, keep: Mapping[str, Ints]
) -> dict[str, Rects]:
    """Rectangles of the window by table, together at most about `most`."""
    places = prepared.layout.places()
    low, high = window.start_ns, window.end_ns
    within = {prefix: reaching(place.series, low, high) for prefix, place in places.items()}
    counts = [end - begin for begin, end in within.values()]
    wanted = []
    for place, count in zip(places.values(), counts, strict=True):
        bins = np.full(len(count), window.width or 2.0 * most)
        if window.lanes is not None:
            lane = place.series.lane
            bins[(lane < window.lanes[0]) | (lane >= window.lanes[1])] /= _ASIDE
        wanted.append(bins)
    bins = resolution(np.concatenate(counts), np.concatenate(wanted), most)
    cuts = np.cumsum([len(count) for count in counts])[:-1]
    return {
        prefix: cut(place.series, low, high, mine, keep=keep.get(prefix, _NONE), within=here)
        for (prefix, place), mine, here in zip(
            places.items(), np.split(bins, cuts), within.values(), strict=True
        )
    }


def events(
    prepared: ViewModel,
    window: Window,
    *,
    most: int = MOST,
    light: bool = False,
    lit: Mapping[str, Ints] | None = None,
    keep: Mapping[str, Ints] | None = None,
) -> tuple[dict[str, Any], dict[str, Ints]]:
    """Header and columns of the events to draw.

    Parameters
    ----------
    prepared
        The profile.
    window
        What is to be drawn.
    most
        Rectangles at most. Where there are more events, one stands for several.
    light
        Send what is drawn and the rows in the tables, by which Python can be asked for the rest;
        else every field that says anything.
    lit, keep
        Table (``op``, ``api``, ``act``) to positions in its series (see
        `epprof_nb.views.timeline.lod.positions`): which events are lit, and which stay
        by themselves.

    Returns
    -------
    header
        ``names`` (the strings that codes point at), ``texts`` (the columns that hold such
        codes), ``slices`` (per table, stretches of one lane and row: lane, row, first, last + 1)
        and ``shown`` (per table: rectangles, and the events they stand for).
    columns
        ``<table>.<column>`` to integers. ``op`` is the position of the op among those sent, -1
        for none; what is not a number is a code into ``names``, -1 for missing. Where a
        rectangle stands for several events, ``members`` tells how many and ``cover`` the time
        they cover; its other fields are those of the longest.
    """
    index, tables, layout = prepared.index, prepared.profile.tables, prepared.layout
    strings = _Strings()
    columns: dict[str, Ints] = {}
    slices: dict[str, list[list[int]]] = {}
    shown: dict[str, list[int]] = {}
    parent = index.tree.parent
    found = rectangles(prepared, window, most, keep or {})
    places = layout.places()
    rows_of = {
        p: places[p].series.order[rects.event].astype(np.int64) for p, rects in found.items()
    }
    sent = np.full(len(parent) + 1, -1, np.int32)
    sent[rows_of["op"]] = np.arange(len(rows_of["op"]))
    for prefix, rects in found.items():
        table, rows, series = tables[PREFIXES[prefix]], rows_of[prefix], places[prefix].series
        columns[f"{prefix}.start"], columns[f"{prefix}.dur"] = rects.start, rects.dur
        slices[prefix] = _slices(series.lane[rects.series], series.row[rects.series])
        shown[_LABELS[prefix]] = [len(rows), int(rects.members.sum())]
        if (rects.members > 1).any():
            columns[f"{prefix}.members"], columns[f"{prefix}.cover"] = rects.members, rects.cover
        if lit is not None:
            columns[f"{prefix}.lit"] = holding(rects, lit.get(prefix, _NONE)).astype(np.int64)
        if keep is not None and prefix in keep:
            kept = (rects.members == 1) & np.isin(rects.event, keep[prefix])
            columns[f"{prefix}.kept"] = kept.astype(np.int64)
        if prefix == "op":
            owner = parent[rows]
            columns["op.kind"] = index.op_device_time.main_kind(rows).astype(np.int64)
        else:
            # Only the owners of what is sent: those of all would be a pass over the table.
            owner = index.tree.rows(table["op_id"][rows])
        columns[f"{prefix}.op"] = _stand_in(owner, parent, sent)
        if prefix == "act":
            columns["act.kind"] = index.kinds[rows].astype(np.int64)
        if light:
            columns[f"{prefix}.row"] = rows
            names = table.names("name")
            columns[f"{prefix}.name"] = strings.codes(
                f"{prefix}.name", names.codes[rows], names.categories
            )
            if prefix != "op":
                columns[f"{prefix}.correlation_id"] = table["correlation_id"][rows]
            continue
        if prefix == "op":
            columns["op.id"] = tables["ops"]["op_id"][rows]
            columns["op.device_ns"] = index.op_device_time.total[rows]
            columns["op.launches"] = index.op_launches[rows]
        else:
            names = tables["ops"].names("name")
            columns[f"{prefix}.op_name"] = strings.codes(
                f"{prefix}.op_name",
                np.where(owner < 0, MISSING, names.codes[owner])
                if len(names)
                else np.full(len(rows), MISSING),
                names.categories,
            )
        _fields(prefix, table, rows, strings, columns)
    header = {
        "names": list(strings.index), "texts": strings.columns, "slices": slices, "shown": shown,
    }  # fmt: skip
    return header, columns


def _stand_in(ops: Ints, parent: Ints, sent: npt.NDArray[np.int32]) -> Ints:
    """Place among the ops sent of each op, or of the nearest one above it; -1 for none."""
    at = ops.copy()
    while len(climbing := np.flatnonzero((sent[at] < 0) & (at >= 0))):
        at[climbing] = parent[at[climbing]]
    return sent[at].astype(np.int64)


def _slices(lane: Ints, row: Ints) -> list[list[int]]:
    """Stretches of equal lane and row as [lane, row, first, last + 1]; row -1 is the foot."""
    if not len(lane):
        return []
    change = np.flatnonzero((np.diff(lane) != 0) | (np.diff(row) != 0)) + 1
    bounds = [0, *change.tolist(), len(lane)]
    return [
        [int(lane[a]), -1 if row[a] == MAX_ROWS else int(row[a]), a, b] for a, b in pairwise(bounds)
    ]
