"""Recordings of code whose repeats alternated with repeats of other code, in one session.

Each code gets its own profile. The time of the other code is cut out, so that the repeats follow
each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.graph_table import graph_table
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


@dataclass(frozen=True, slots=True)
class _Cut:
    """The repeats of one side in the time of the session and of its profile.

    Attributes
    ----------
    starts, ends
        Start of each repeat, and the end of its code and device work.
    all_starts, is_own
        Start of each repeat of any side, and whether it belongs to this side.
    """

    starts: IntArray
    ends: IntArray
    all_starts: IntArray
    is_own: BoolArray

    def times(self, times: IntArray) -> IntArray:
        """Convert times of the session to times of the profile; move times cut out to its edge."""
        lengths = self.ends - self.starts
        first = self.all_starts[0]
        begins = first + np.cumsum(lengths) - lengths
        at = np.searchsorted(self.starts, times, side="right") - 1
        inside = np.clip(times - self.starts[at], 0, lengths[at])
        moved: IntArray = np.where(at < 0, np.minimum(times, first), begins[at] + inside)
        return moved

    def keeps(self, times: IntArray) -> BoolArray:
        """Return whether each time precedes all repeats or is in a repeat of this side."""
        at = np.searchsorted(self.all_starts, times, side="right") - 1
        kept: BoolArray = (at < 0) | self.is_own[at]
        return kept

    def table(self, table: Table, rows: BoolArray) -> Table:
        """Return some rows with their times in the profile."""
        part = table.take(rows)
        changed: dict[str, IntArray] = {
            name: self.times(part[name])
            for name in ("start_ns", "end_ns", "time_ns")
            if name in part.schema.names
        }
        if "duration_ns" in part.schema.names and part.schema.name != "ops":
            changed["duration_ns"] = changed["end_ns"] - changed["start_ns"]
        return part.replace(**changed) if changed else part


def split(
    data: ProfileData,
    sides: Sequence[int],
    cells: Sequence[str],
    sources: Sequence[str],
    *,
    recording: str,
) -> list[ProfileData]:
    """Split a session into a profile per side.

    Parameters
    ----------
    data
        The session's data. Each repeat ended with a wait for its device work, and has an op of the
        type ``cell``.
    sides
        The side of each started repeat, from 0.
    cells, sources
        Name and source of the cell of each side.
    recording
        Text that identifies this session, stored in ``info["alternated"]`` of the profiles.

    Returns
    -------
    profiles
        One per side. A side without a repeat is an empty profile.
    """
    of_repeats = np.array(sides[: len(data.info.get("repeats") or ())], np.int64)
    others = {name: text for name, text in data.sources.items() if name not in cells}
    profiles = []
    for side, (cell, source) in enumerate(zip(cells, sources, strict=True)):
        other = ", ".join(name for name in cells if name != cell)
        info = {
            **data.info,
            "cell": cell,
            "alternated": {"recording": recording, "side": side},
            "repeats": [],
            "recording_costs": {},  # those of each side are not known
            "statement_costs": {},
            # The last repeat is the one that raised.
            "error": None if sides and side != sides[-1] else data.info.get("error"),
            "notes": [
                *data.info["notes"],
                f"The repeats alternated with those of {other}, whose time is cut out.",
                *([_NO_MEMORY] if len(data.tables["memory_blocks"]) else []),
            ],
        }
        profiles.append(_side(data, of_repeats == side, info, {cell: source, **others}))
    return profiles


_NOT_SPLIT = ("graphs", "memory_blocks", "memory_segments")
"""Graphs are found anew. What one side allocates can stay while the other runs."""
_NO_MEMORY = (
    "The holders of the memory are unknown: memory of one side can stay while the other side runs. "
    "Profile each side by itself with --detail memory."
)


def _side(
    data: ProfileData, is_own: BoolArray, info: dict[str, Any], sources: dict[str, str]
) -> ProfileData:
    if not is_own.any():
        return ProfileData({}, {**info, "wall_ns": 0, "code_ns": 0}, sources)
    tables = data.tables
    starts, ends = repeat_bounds(data.info)
    done = _done(tables["activities"], starts, ends)
    cut = _Cut(starts[is_own], done[is_own], starts, is_own)
    number = np.full(len(is_own) + 1, MISSING, np.int64)
    number[:-1][is_own] = np.arange(is_own.sum())
    found: dict[str, Table] = {}
    for name, table in tables.items():
        if name in ("ops", "activities"):
            repeat = table["repeat"]
            # Rows outside of repeats, such as longer ops of other threads, belong to all sides.
            rows = (repeat == MISSING) | (number[repeat] != MISSING)
            part = cut.table(table, rows)
            found[name] = part.replace(repeat=number[part["repeat"]])
        elif name == "stacks":
            found[name] = table
        elif name not in _NOT_SPLIT:
            time = "time_ns" if "time_ns" in table.schema.names else "start_ns"
            found[name] = cut.table(table, cut.keeps(table[time]))
    calls, work = found["api_calls"], found["activities"]
    call = IdIndex(calls["correlation_id"]).rows(work["correlation_id"])
    call_ns = calls["end_ns"] - calls["start_ns"]
    found["graphs"] = graph_table(work, found["ops"], call_ns, call, [tables["graphs"]])
    waits = np.array(data.info.get("repeat_waits_ns") or [], np.int64)
    if len(waits) == len(is_own):
        info["repeat_waits_ns"] = waits[is_own].tolist()
    begins = cut.times(starts[is_own])
    own_ends = begins + (ends - starts)[is_own]
    info |= {
        "repeats": np.stack([begins, own_ends], axis=1).tolist(),
        "wall_ns": int(cut.times(np.array([data.wall_ns]))[0]),
        "code_ns": int(own_ends[-1]),
        **_counts(data.info, found["activities"]),
    }
    return ProfileData(found, info, sources)


def _done(activities: Table, starts: IntArray, ends: IntArray) -> IntArray:
    """Return when the code and the device work of each repeat had ended."""
    done = ends.copy()
    launched = activities["repeat"] >= 0
    np.maximum.at(done, activities["repeat"][launched], activities["end_ns"][launched])
    # A device may have worked longer if waiting for it was impossible.
    done[:-1] = np.minimum(done[:-1], starts[1:])
    return done


def _counts(info: Mapping[str, Any], activities: Table) -> dict[str, Any]:
    """Return the entries of ``info`` that count activities."""
    kinds, attribution = activities.names("kind"), activities.names("attribution")
    shown = {kind: int(kinds.equals(kind).sum()) for kind in kinds.compact().categories}
    lost = info["recorded"]["lost"]
    launched = {kind: shown.get(kind, 0) + lost.get(kind, 0) for kind in {**shown, **lost}}
    return {
        "recorded": {**info["recorded"], "shown": shown, "launched": launched},
        "attribution": {how: int(attribution.equals(how).sum()) for how in info["attribution"]},
    }
