"""Wall time of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData


def wall_of(profile: ProfileData) -> int:
    """Return the profile's length, ns: as recorded, else from its first to its last event."""
    if profile.wall_ns > 0:
        return profile.wall_ns
    ends = [int(t["end_ns"].max()) for t in timed_tables(profile)]
    starts = [int(t["start_ns"].min()) for t in timed_tables(profile)]
    return max(ends) - min(starts) if ends else 0


def span_of_device(profile: ProfileData, device: int) -> tuple[int, int]:
    """Return from when to when a device could work, ns.

    This is the whole profile. In a window of a job, it is the time in which the device's process
    was recorded: the time before its begin and after its end is not idle.
    """
    return recorded_span(profile, device) or (0, wall_of(profile))


def recorded_span(profile: ProfileData, device: int) -> tuple[int, int] | None:
    """Return from when to when a device's process was recorded, ns; None for the whole profile."""
    wall = wall_of(profile)
    stated = profile.info.get("devices")
    for entry in stated if isinstance(stated, list | tuple) else ():
        match entry:
            case {"device_id": int(number), "begin_ns": int(begin), "end_ns": int(end)}:
                if number == device and 0 <= begin <= end <= wall:
                    return begin, end
    return None


def timed_tables(profile: ProfileData) -> list[Any]:
    """Return the non-empty tables of a profile that have times."""
    tables = (profile.tables[name] for name in ("ops", "activities", "api_calls"))
    return [table for table in tables if len(table)]
