"""The events of a window as columns for the viewer, thinned to what can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.schema import MISSING
from epprof_nb.views.layout import MAX_ROWS
from epprof_nb.views.sample import longest_of_each_moment
from epprof_nb.views.units import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.table import Table
    from epprof_nb.views.layout import Placement
    from epprof_nb.views.prepared import Prepared

Ints = npt.NDArray[np.int64]

_NONE: Ints = np.empty(0, np.int64)
_NAME_CHARACTERS = 600
_NOT_FIELDS = {"start_ns", "end_ns", "op_id", "parent_op_id", "kind"}


@dataclass(frozen=True, slots=True)
class Caps:
    """How many events of each table are sent at most."""

    activities: int = 40_000
    ops: int = 20_000
    api_calls: int = 20_000

    def scaled(self, factor: float) -> Caps:
        """Return the caps times `factor`, each at least 100."""
        sizes = (self.activities, self.ops, self.api_calls)
        return Caps(*(max(int(n * factor), 100) for n in sizes))


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


def _inside(table: Table, place: Placement, window: tuple[int, int] | None) -> Ints:
    """Rows that are drawn in the window."""
    inside = place.lane >= 0
    if window is not None:
        inside &= (table["end_ns"] >= window[0]) & (table["start_ns"] <= window[1])
    return np.flatnonzero(inside)


def _choose(table: Table, place: Placement, rows: Ints, limit: int, keep: Ints) -> Ints:
    """Of `rows`, at most `limit` that stand for all; of those to `keep` as many as fit."""
    if len(keep) and len(rows) > limit:
        first = _choose(table, place, np.intersect1d(rows, keep), limit, _NONE)
        others = np.setdiff1d(rows, first)
        return np.union1d(first, _choose(table, place, others, limit - len(first), _NONE))
    start = table["start_ns"][rows]
    length = np.maximum(table["end_ns"][rows] - start, 0)
    key = place.lane[rows] * (MAX_ROWS + 1) + place.row[rows]
    return rows[longest_of_each_moment(start, length, key, limit)]


def _with_ancestors(rows: Ints, parent: Ints, drawn: npt.NDArray[np.bool_]) -> Ints:
    keep = np.zeros(len(parent), np.bool_)
    fresh = rows
    while len(fresh):
        keep[fresh] = True
        above = parent[fresh]
        above = np.unique(above[above >= 0])
        fresh = above[~keep[above] & drawn[above]]
    return np.flatnonzero(keep)


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


def events(
    prepared: Prepared,
    caps: Caps,
    window: tuple[int, int] | None = None,
    *,
    rows_told: bool = False,
    lit: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    keep: Mapping[str, Ints] | None = None,
) -> tuple[dict[str, Any], dict[str, Ints]]:
    """Header and columns of the events to draw.

    Parameters
    ----------
    prepared
        The profile.
    caps
        How many events to send at most; what is left out is told in the header's ``shown``.
    window
        First and last nanosecond; None for all.
    rows_told
        Send each event's row in its table, ``row``, by which Python can be asked about it.
    lit
        Table (``op``, ``api``, ``act``) to a bool array, one value a row: sent as ``lit``, 0 or 1.
    keep
        Table to rows that are sent before others, as many as fit.

    Returns
    -------
    header
        ``names`` (one table of strings), ``slices`` (lane, row, first, last + 1 of each table's
        stretch of events in start order) and ``shown`` (events sent, and how many the window has).
    columns
        ``op.*``, ``api.*`` and ``act.*``: ``start``, ``dur`` (ns), ``op`` (position of the op
        among those sent, -1 for none), ``id``, ``kind``, and the tables' own columns under their
        own names, codes into ``names`` for names.
    """
    work, tables, layout = prepared.work, prepared.profile.tables, prepared.layout
    ops = tables["ops"]
    parent = work.tree.parent
    strings = _Strings()
    columns: dict[str, Ints] = {}
    slices: dict[str, list[list[int]]] = {}
    shown: dict[str, list[int]] = {}

    chosen: dict[str, tuple[Table, Placement, Ints]] = {}
    for prefix, label, table, place, limit in (
        ("op", "ops", ops, layout.ops, caps.ops),
        ("api", "API calls", tables["api_calls"], layout.api_calls, caps.api_calls),
        ("act", "activities", tables["activities"], layout.activities, caps.activities),
    ):
        inside = _inside(table, place, window)
        wanted = _NONE if keep is None else keep.get(prefix, _NONE)
        rows = _choose(table, place, inside, limit, wanted)
        if prefix == "op":
            base = limit
            while len(rows := _with_ancestors(rows, parent, place.lane >= 0)) > limit and base > 1:
                base //= 2
                rows = _choose(table, place, inside, base, wanted)
        order = np.lexsort((table["start_ns"][rows], place.row[rows], place.lane[rows]))
        chosen[prefix] = (table, place, rows[order])
        shown[label] = [len(rows), max(len(inside), len(rows))]

    position = np.full(len(ops) + 1, -1, np.int64)
    position[chosen["op"][2]] = np.arange(len(chosen["op"][2]))
    # An op that was thinned out is stood for by the nearest op above it that is drawn.
    sent = position[:-1] >= 0
    stand_in = np.append(work.tree.nearest(sent), -1)
    op_names = ops.names("name")
    for prefix, (table, place, rows) in chosen.items():
        start = table["start_ns"][rows]
        columns[f"{prefix}.start"] = start
        if rows_told:
            columns[f"{prefix}.row"] = rows
        if lit is not None:
            columns[f"{prefix}.lit"] = lit[prefix][rows].astype(np.int64)
        if keep is not None and prefix in keep:
            columns[f"{prefix}.kept"] = np.isin(rows, keep[prefix]).astype(np.int64)
        columns[f"{prefix}.dur"] = np.maximum(table["end_ns"][rows] - start, 0)
        slices[prefix] = _slices(place.lane[rows], place.row[rows])
        if prefix == "op":
            columns["op.op"] = position[stand_in[parent[rows]]]
            columns["op.id"] = ops["op_id"][rows]
            columns["op.kind"] = work.main_kind[rows].astype(np.int64)
            columns["op.device_ns"] = work.device_ns[rows]
            columns["op.launches"] = work.launches[rows]
        else:
            owner = (work.activity_op if prefix == "act" else work.call_op)[rows]
            columns[f"{prefix}.op"] = position[stand_in[owner]]
            columns[f"{prefix}.op_name"] = strings.codes(
                f"{prefix}.op_name", np.append(op_names.codes, MISSING)[owner], op_names.categories
            )
        if prefix == "act":
            columns["act.kind"] = work.kinds[rows].astype(np.int64)
        _fields(prefix, table, rows, strings, columns)
    header = {
        "names": list(strings.index), "texts": strings.columns, "slices": slices, "shown": shown,
    }  # fmt: skip
    return header, columns


def _slices(lane: Ints, row: Ints) -> list[list[int]]:
    """Stretches of equal lane and row as [lane, row, first, last + 1]; row -1 is the foot."""
    if not len(lane):
        return []
    change = np.flatnonzero((np.diff(lane) != 0) | (np.diff(row) != 0)) + 1
    bounds = [0, *change.tolist(), len(lane)]
    return [
        [int(lane[a]), -1 if row[a] == MAX_ROWS else int(row[a]), a, b] for a, b in pairwise(bounds)
    ]
