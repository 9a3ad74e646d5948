"""Impossible numbers in a file, such as times of a thousand years.

Sums over the rows of a table are 64-bit integers. After this check they cannot overflow, so
analyses need not handle it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.table import FILL

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.schema import Column
    from epprof_nb.data.table import Table

LARGEST = 2**53
"""Largest time (ns, about 104 days) or size (bytes, 8 PiB); a float64 holds it exactly."""
_LARGEST_SUM = 2**62
_TIMES = ("start_ns", "end_ns", "time_ns")
_INTERVAL = ("start_ns", "end_ns", "duration_ns")


def with_plausible_numbers(profile: ProfileData) -> ProfileData:
    """Replace impossible times, sizes and counts of a profile that was read from a file.

    Returns
    -------
    profile
        `profile` itself if all numbers are possible. Otherwise a profile in which an event with
        an impossible time has no duration, and other impossible numbers are missing or 0;
        ``info["notes"]`` has the number of the events.

    Raises
    ------
    ValueError
        If the numbers of a column are possible, but their sum exceeds 64 bits.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> data = synthetic_profile(activities=100)
    >>> with_plausible_numbers(data) is data
    True
    """
    tables, notes = {}, []
    for name, table in profile.tables.items():
        wrong = {
            column.name: found
            for column in table.schema.columns
            if _is_bounded(column) and (found := _implausible(table, column)) is not None
        }
        if wrong:
            count = int(np.logical_or.reduce([*wrong.values()]).sum())
            notes.append(
                f"{count:,} of {len(table):,} rows of {name} have impossible numbers "
                f"({', '.join(wrong)}): their times count as 0 ns, and their sizes as missing."
            )
            table = _replaced(table, wrong)  # noqa: PLW2901
        _check_sums(table)
        tables[name] = table
    if not notes:
        return profile
    info = {**profile.info, "notes": [*profile.info.get("notes", ()), *notes]}
    return ProfileData(tables, info, profile.sources)


def _is_bounded(column: Column) -> bool:
    is_size = column.name == "bytes" or column.name.endswith(("_bytes", "_ns"))
    return column.kind == "time" or is_size or column.name == "count"


def _implausible(table: Table, column: Column) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the impossible values of a column; None if all values are possible."""
    values = table[column.name]
    if table.is_absent(column.name) or not len(values):
        return None
    smallest = 0 if _is_amount(column) else -LARGEST
    wrong: npt.NDArray[np.bool_] | None = None
    if values.min() < smallest or values.max() > LARGEST:
        wrong = (values > LARGEST) | (values < smallest)
        wrong &= values != FILL[column.kind]
    if column.name == "end_ns" and not table.is_absent("start_ns"):
        start = table["start_ns"]
        backwards = (values < start) & (start <= LARGEST)
        wrong = backwards if wrong is None else wrong | backwards
    return wrong if wrong is not None and wrong.any() else None


def _is_amount(column: Column) -> bool:
    """Whether a number cannot be negative; times are relative to the start of the profile."""
    if column.kind == "time":
        return column.name not in _TIMES
    return column.kind != "delta" and not column.name.endswith("_ns")


def _replaced(table: Table, wrong: dict[str, npt.NDArray[np.bool_]]) -> Table:
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, mask in wrong.items():
        fill = 1 if name == "count" else FILL[table.schema.column(name).kind]
        columns[name] = np.where(mask, fill, table[name])
    of_interval = [wrong[name] for name in _INTERVAL if name in wrong]
    if of_interval and set(_INTERVAL) <= set(table.schema.names):
        mask = np.logical_or.reduce(of_interval)
        start = columns.get("start_ns", table["start_ns"])
        end = columns.get("end_ns", table["end_ns"])
        duration = columns.get("duration_ns", table["duration_ns"])
        columns["start_ns"] = start
        columns["end_ns"] = np.where(mask, start, end)
        columns["duration_ns"] = np.where(mask, 0, duration)
    return table.replace(**columns)


def _check_sums(table: Table) -> None:
    if len(table) <= _LARGEST_SUM // LARGEST:
        return
    for column in table.schema.columns:
        # Starts and ends are not summed.
        if not _is_bounded(column) or column.name in _TIMES:
            continue
        values = table[column.name]
        largest = max(int(values.max()), -int(values[values != FILL[column.kind]].min(initial=0)))
        if largest * len(values) > _LARGEST_SUM:
            known = values[values != FILL[column.kind]]
            if np.abs(known.astype(np.float64)).sum() > _LARGEST_SUM:
                raise ValueError(f"the sum of {table.schema.name}.{column.name} exceeds 64 bits")
