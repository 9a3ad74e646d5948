"""Processes of a profile: a window of a job has the rows of several, each with its own host.

What joins a host to a device, such as the critical path, is computed for each process alone: the
host of one rank does not launch to the device of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.shifted_times import shifted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from epprof_nb.analysis.base.result_table import Column

_P = ParamSpec("_P")
ROWS = "rows"
_SHARED = "stacks"
"""Table that is not divided: other tables name its rows."""
_MAX_PROCESSES = 4_096


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """One process of a profile: its name, the index of its rows, and the first ones by table.

    `recorded` is from when to when it was recorded, nanoseconds; None if that is not stated.
    """

    name: str
    index: ProfileIndex
    first: dict[str, int]
    recorded: tuple[int, int] | None = None

    @property
    def in_own_time(self) -> ProfileIndex:
        """The same rows with times from the start of its recording on, and its own wall time."""
        if self.recorded is None:
            return self.index
        (begin, end), profile = self.recorded, self.index.profile
        tables = {
            name: shifted(table, begin, end - begin) for name, table in profile.tables.items()
        }
        bounds = ("begin_ns", "end_ns")
        devices = [
            {key: value for key, value in device.items() if key not in bounds}
            for device in profile.info.get("devices") or ()
        ]
        info = {**profile.info, "wall_ns": end - begin, "devices": devices}
        return ProfileIndex(ProfileData(tables, info, profile.sources))


def processes(index: ProfileIndex) -> list[ProcessPart]:
    """Return the processes of a window of a job; empty for the profile of one process.

    Ids of ops, devices and so on are the same as in the whole profile.
    """
    stated = index.profile.info.get("processes")
    if not isinstance(stated, list) or len(stated) < 2:
        return []
    found = []
    for entry in stated[:_MAX_PROCESSES]:
        tables, first = {_SHARED: index.profile.tables[_SHARED]}, {_SHARED: 0}
        for name, table in index.profile.tables.items():
            if name == _SHARED:
                continue
            match entry.get(ROWS, {}).get(name):
                case [int(begin), int(end)] if 0 <= begin <= end <= len(table):
                    tables[name], first[name] = table.take(slice(begin, end)), begin
                case _:
                    tables[name], first[name] = table.take(slice(0, 0)), 0
        info = {key: value for key, value in index.profile.info.items() if key != "processes"}
        part = ProfileData(tables, info, index.profile.sources)
        recorded = _recorded(entry, index.profile.wall_ns)
        found.append(ProcessPart(str(entry.get("name")), ProfileIndex(part), first, recorded))
    return found


def _recorded(entry: Mapping[Any, Any], wall_ns: int) -> tuple[int, int] | None:
    match entry:
        case {"begin_ns": int(begin), "end_ns": int(end)} if 0 <= begin < end <= wall_ns:
            return begin, end
    return None


def only_process(index: ProfileIndex) -> ProcessPart | None:
    """Return the process of a window of one process; None for other profiles."""
    match index.profile.info.get("processes"):
        case [dict() as entry]:
            first = dict.fromkeys(index.profile.tables, 0)
            recorded = _recorded(entry, index.profile.wall_ns)
            return ProcessPart(str(entry.get("name")), index, first, recorded)
    return None


def has_several(index: ProfileIndex) -> bool:
    """Return whether a profile has the rows of several processes."""
    return bool(index.cached(processes))


def process_by_process(
    table: Callable[Concatenate[ProfileIndex, _P], ResultTable],
) -> Callable[Concatenate[ProfileIndex, _P], ResultTable]:
    """Decorate a table function: of several processes, it is computed for each of them alone.

    The result then has the rows of all, and a first column ``process`` with their names.
    """

    @wraps(table)
    def joined(index: ProfileIndex, *args: _P.args, **kwargs: _P.kwargs) -> ResultTable:
        parts = index.cached(processes)
        if not parts:
            return table(index, *args, **kwargs)
        tables = [table(part.index, *args, **kwargs) for part in parts]
        names = [
            part.name for part, one in zip(parts, tables, strict=True) for _ in range(len(one))
        ]
        columns: dict[str, Column] = {"process": categorical(names)}
        for name in tables[0].columns:
            columns[name] = _concatenated([one.column(name) for one in tables])
        return ResultTable(columns)

    return joined  # type: ignore[return-value] # it is called as the table is


def _concatenated(columns: Sequence[Column]) -> Column:
    if all(isinstance(column, CategoryColumn) for column in columns):
        names: list[Any] = list(columns)
        return categorical([text for column in names for text in column.to_list()])
    if all(isinstance(column, OptionalColumn) for column in columns):
        parts: list[Any] = list(columns)
        return OptionalColumn(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.is_missing for part in parts]),
        )
    return np.concatenate([np.asarray(column) for column in columns])
