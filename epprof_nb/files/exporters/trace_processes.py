"""Processes of a job in a trace, each with its profile on the job's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class TraceProcess(NamedTuple):
    """A process of a trace.

    Attributes
    ----------
    name
        Name of the process, such as ``rank 3``.
    pid
        Its process id; None if not known.
    offset_ns
        Time that is added to the times of its profile, ns.
    load
        Function that returns the profile, or None to leave the process out. A trace is written
        process by process, so that they need not be in memory together.
    """

    name: str
    pid: int | None
    offset_ns: int
    load: Callable[[], ProfileData | None]


def process_ids(processes: Sequence[TraceProcess]) -> list[int]:
    """Return one id per process: the process ids, or numbers from 1 if these are not distinct.

    Examples
    --------
    >>> load = ProfileData
    >>> process_ids([TraceProcess("rank 0", 71, 0, load), TraceProcess("rank 1", 72, 0, load)])
    [71, 72]
    >>> process_ids([TraceProcess("rank 0", 71, 0, load), TraceProcess("rank 1", 71, 0, load)])
    [1, 2]
    """
    pids = [process.pid for process in processes if process.pid is not None and process.pid > 0]
    if len(set(pids)) == len(processes):
        return pids
    return list(range(1, len(processes) + 1))


def placed_profiles(
    processes: Sequence[TraceProcess],
) -> Iterator[tuple[TraceProcess, int, ProfileData]]:
    """Yield the processes with their ids, and their profiles with times on the job's clock."""
    for process, pid in zip(processes, process_ids(processes), strict=True):
        profile = process.load()
        if profile is not None:
            yield process, pid, _moved(profile, process.offset_ns)


def _moved(profile: ProfileData, by_ns: int) -> ProfileData:
    if not by_ns:
        return profile
    tables = dict(profile.tables)
    for name in ("ops", "activities", "api_calls"):
        table = tables[name]
        tables[name] = table.replace(
            start_ns=table["start_ns"] + by_ns, end_ns=table["end_ns"] + by_ns
        )
    info = dict(profile.info)
    if info.get("repeats"):
        info["repeats"] = (np.stack(repeat_bounds(info), axis=1) + by_ns).tolist()
    return ProfileData(tables, info, profile.sources)
