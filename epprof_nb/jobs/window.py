"""Window of a job: a stretch of time of several processes as one profile.

Each process numbers its devices, threads, ops and API calls by itself, so the rows get new numbers,
by which no row of one process meets one of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import device_labels, device_names
from epprof_nb.analysis.base.thread_labels import thread_label, thread_names
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.arrays.ids import contains
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import MISSING_DELTA
from epprof_nb.data.shifted_times import shifted
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

_OPS = ("op_id", "parent_op_id", "capture_op_id", "freed_op_id")
_DEVICES = ("device_id", "src_device_id", "dst_device_id")
_STACKS = ("stack_id", "capture_stack_id", "parent_id")
_NUMBERS = {
    **dict.fromkeys(_OPS, "op"),
    **dict.fromkeys(_DEVICES, "device"),
    **dict.fromkeys(_STACKS, "stack"),
    "thread_id": "thread",
    "other_thread_id": "thread",
    "correlation_id": "correlation",
    "event_correlation_id": "correlation",
    "event_context_id": "context",
    "session": "session",
    "run_id": "run",
    "context_id": "context",
    "graph_id": "graph",
    "graph_node_id": "node",
    "sequence_number": "sequence",
}
"""Columns with numbers of a process, and what each one numbers."""
_COUNTS = ("launched", "shown", "lost")


class Stretch(NamedTuple):
    """The profile of one process with what to take of it.

    ``name`` is the name of the process, such as ``rank 3``; ``begin_ns`` and ``end_ns`` bound the
    stretch on the clock of the profile.
    """

    name: str
    data: ProfileData
    begin_ns: int
    end_ns: int


def window(stretches: Sequence[Stretch], *, begin_ns: int) -> ProfileData:
    """Join the same stretch of several processes.

    Parameters
    ----------
    stretches
        The processes; the stretches have the same length.
    begin_ns
        Begin of the stretch on the clock of the job, for the note.

    Returns
    -------
    data
        The profile. What begins before the stretch, or ends after it, is cut at its bounds.
    """
    firsts = dict.fromkeys(_NUMBERS.values(), 0)
    parts = []
    for stretch in stretches:
        part = _Part(stretch, dict(firsts))
        parts.append(part)
        firsts = {name: part.next[name] for name in firsts}
    tables: dict[str, Table] = {}
    rows: list[dict[str, list[int]]] = [{} for _ in parts]
    for name in parts[0].tables:
        of_parts = [part.tables[name] for part in parts]
        tables[name] = of_parts[0] if len(of_parts) == 1 else concat(of_parts)
        end = 0
        for at, table in enumerate(of_parts):
            rows[at][name] = [end, end + len(table)]
            end += len(table)
    return ProfileData(tables, _info(parts, rows, begin_ns), _sources(parts))


class _Part:
    """The tables of one process in the window, with numbers from `firsts` on."""

    def __init__(self, stretch: Stretch, firsts: dict[str, int]) -> None:
        self.stretch, self.next = stretch, firsts
        self.numbers: dict[str, IntArray] = {}
        self.firsts = dict(firsts)
        cut = _cut(stretch)
        found: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in firsts}
        for table in cut.values():
            for column, what in _NUMBERS.items():
                if column in table.schema.names and what != "stack" and not table.is_absent(column):
                    found[what].append(np.unique(table[column]))
        # A stack is its row, so its numbers have no gaps.
        found["stack"].append(np.arange(len(cut["stacks"])))
        for what, arrays in found.items():
            ids = np.unique(np.concatenate([np.empty(0, np.int64), *arrays]))
            self.numbers[what] = ids = ids[ids != MISSING]
            self.next[what] = firsts[what] + len(ids)
        self.tables = {name: self._renumbered(table) for name, table in cut.items()}

    def number(self, what: str, ids: npt.NDArray[Any]) -> IntArray:
        """Return the new numbers of ids; `MISSING` for unknown ones."""
        known = self.numbers[what]
        at = np.searchsorted(known, ids)
        is_known = np.append(known, MISSING)[at] == ids
        new: IntArray = np.where(is_known & (ids != MISSING), at + self.firsts[what], MISSING)
        return new

    def _renumbered(self, table: Table) -> Table:
        changed = {
            column: self.number(what, table[column])
            for column, what in _NUMBERS.items()
            if column in table.schema.names and not table.is_absent(column)
        }
        # Repeats of different processes are not the same time.
        if "repeat" in table.schema.names:
            changed["repeat"] = np.full(len(table), MISSING)
        return table.replace(**changed)


def _cut(stretch: Stretch) -> dict[str, Table]:
    """Return the rows of a stretch, with times from its begin on."""
    tables = {name: _in_time(table, stretch) for name, table in stretch.data.tables.items()}
    ops = stretch.data.tables["ops"]
    # Ops of an earlier profile captured the graphs that are replayed, and have no place in time.
    kept = tables["ops"]["op_id"]
    named = np.unique(np.concatenate([tables["activities"][n] for n in ("op_id", "capture_op_id")]))
    outside = ops.names("status").equals("earlier") | contains(named, ops["op_id"])
    outside &= ~contains(kept, ops["op_id"])
    if outside.any():
        length = stretch.end_ns - stretch.begin_ns
        earlier = ops.take(outside)
        tables["ops"] = concat([shifted(earlier, stretch.begin_ns, length), tables["ops"]])
    graphs = stretch.data.tables["graphs"]
    replayed = contains(np.unique(tables["activities"]["graph_id"]), graphs["graph_id"])
    return tables | {"graphs": graphs.take(replayed)}


def _in_time(table: Table, stretch: Stretch) -> Table:
    begin, end = stretch.begin_ns, stretch.end_ns
    inside = rows_between(table, begin, end)
    return table if inside is None else shifted(table.take(inside), begin, end - begin)


def rows_between(table: Table, begin: int, end: int) -> BoolArray | None:
    """Return which rows have a part in a stretch of time; None for a table without times."""
    names = table.schema.names
    inside: BoolArray | None = None
    moment = next((name for name in ("start_ns", "time_ns") if name in names), None)
    if "end_ns" in names:
        start = table["start_ns"]
        inside = (start < end) & ((table["end_ns"] > begin) | (start >= begin))
    elif moment is not None:
        inside = (table[moment] >= begin) & (table[moment] < end)
    elif "allocated_ns" in names:
        born = table["allocated_ns"]  # the value for "missing" is the smallest
        is_in_use = (table["freed_ns"] == MISSING_DELTA) | (table["freed_ns"] > begin)
        inside = (born < end) & is_in_use
    return inside


def _info(
    parts: Sequence[_Part], rows: Sequence[dict[str, list[int]]], begin_ns: int
) -> dict[str, Any]:
    infos = [part.stretch.data.info for part in parts]
    first, stretch = infos[0], parts[0].stretch
    length = stretch.end_ns - stretch.begin_ns
    started = first.get("started_at_epoch_ns")
    counts: dict[str, Any] = {}
    for name in _COUNTS:
        of_parts = [(info.get("recorded") or {}).get(name) or {} for info in infos]
        counts[name] = _summed(of_parts)
    for name in ("dropped", "ops_lost", "calls_lost", "statements_lost"):
        counts[name] = sum(int((info.get("recorded") or {}).get(name) or 0) for info in infos)
    attribution = [part.tables["activities"].names("attribution") for part in parts]
    hows = ("stack", "cell", "learned", "none")
    return {
        "format": 1,
        **({"started_at_epoch_ns": started + stretch.begin_ns} if isinstance(started, int) else {}),
        "wall_ns": length,
        **_same(infos, "cell", "script", "detail", "recording", "versions", "machine", "redacted"),
        "devices": [device for part in parts for device in _devices(part)],
        "threads": [thread for part in parts for thread in _threads(part)],
        "processes": [
            {"name": part.stretch.name, "rows": of_part, **_recorded(part.stretch)}
            for part, of_part in zip(parts, rows, strict=True)
        ],
        "recorded": counts,
        "attribution": {
            how: sum(int(names.equals(how).sum()) for names in attribution) for how in hows
        },
        **_merged(infos, "op_places", "class_places", "kernel_places"),
        **_sessions(parts),
        **_samples(infos),
        "notes": [_note(parts, begin_ns, length), *_notes(parts)],
    }


def _note(parts: Sequence[_Part], begin_ns: int, length: int) -> str:
    return (
        f"Window of a job: {length / 1e9:.6g} s from {begin_ns / 1e9:.6g} s on, of "
        f"{', '.join(part.stretch.name for part in parts)}. Numbers of devices, threads, ops and "
        "API calls are from this window."
    )


def _notes(parts: Sequence[_Part]) -> list[str]:
    return [
        f"{part.stretch.name}: {note}"
        for part in parts
        for note in part.stretch.data.info.get("notes") or ()
    ]


def _same(infos: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
    """Return the entries that are the same for all processes."""
    return {
        name: infos[0][name]
        for name in names
        if name in infos[0] and all(info.get(name) == infos[0][name] for info in infos)
    }


def _merged(infos: Sequence[dict[str, Any]], *names: str) -> dict[str, Any]:
    found = {
        name: {key: value for info in infos for key, value in (info.get(name) or {}).items()}
        for name in names
    }
    return {name: entries for name, entries in found.items() if entries}


def _summed(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {
        key: sum(int(of_part.get(key, 0)) for of_part in counts)
        for key in dict.fromkeys(key for of_part in counts for key in of_part)
    }


def _samples(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [info["samples"] for info in infos if isinstance(info.get("samples"), dict)]
    return {"samples": _summed(found)} if len(found) == len(infos) else {}


def _recorded(stretch: Stretch) -> dict[str, int]:
    """Return from when to when of the window a process was recorded."""
    # The process was recorded from 0 on, in its own time.
    length, wall = stretch.end_ns - stretch.begin_ns, wall_of(stretch.data)
    begin, end = (min(max(at - stretch.begin_ns, 0), length) for at in (0, wall))
    return {"begin_ns": begin, "end_ns": end}


def _devices(part: _Part) -> list[dict[str, Any]]:
    """Return the devices that a process used, with names that say whose they are."""
    info, ids = part.stretch.data.info, part.numbers["device"].tolist()
    labels, names = device_labels(info, ids), device_names(info)
    stated = {d["device_id"]: d for d in info.get("devices") or () if "device_id" in d}
    stretch, found = part.stretch, []
    for number, device in enumerate(ids, part.firsts["device"]):
        label = f"{part.stretch.name}, {labels[device]}"
        model = names.get(device)
        entry = {
            "device_id": number,
            "label": label,
            **_recorded(stretch),
            "name": f"{label} ({model})" if model else label,
        }
        found.append({**stated.get(device, {}), **entry})
    return found


def _threads(part: _Part) -> list[dict[str, Any]]:
    names, ids = thread_names(part.stretch.data.info), part.numbers["thread"].tolist()
    main = _main_thread(part)
    return [
        {
            "thread_id": number,
            "name": f"{part.stretch.name}, {thread_label(names, thread, is_main=thread == main)}",
        }
        for number, thread in enumerate(ids, part.firsts["thread"])
    ]


def _main_thread(part: _Part) -> int:
    """Return the thread of the cell, else the thread of the first op; `MISSING` without ops."""
    ops = part.stretch.data.tables["ops"]
    cells = np.flatnonzero(ops.names("op_type").equals("cell"))
    if len(cells):
        return int(ops["thread_id"][cells[0]])
    return int(ops["thread_id"][int(ops["start_ns"].argmin())]) if len(ops) else MISSING


def _sessions(part_list: Sequence[_Part]) -> dict[str, Any]:
    """Return the entries on sessions of ONNX Runtime under their new numbers."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("onnxruntime_sessions", "onnxruntime_providers", "onnxruntime_selected"):
        for part in part_list:
            for key, value in (part.stretch.data.info.get(name) or {}).items():
                if not str(key).isdecimal():
                    continue
                number = int(part.number("session", np.array([int(key)]))[0])
                if number == MISSING:
                    continue
                is_title = isinstance(value, str)
                shown = f"{part.stretch.name}, {value}" if is_title else value
                found.setdefault(name, {})[str(number)] = shown
    return dict(found)


def _sources(parts: Sequence[_Part]) -> dict[str, str]:
    """Return the sources of all processes; of those with the same name, the first one's."""
    found: dict[str, str] = {}
    for part in parts:
        for name, text in part.stretch.data.sources.items():
            found.setdefault(name, text)
    return found
