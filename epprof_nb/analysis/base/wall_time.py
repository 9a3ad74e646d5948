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


def timed_tables(profile: ProfileData) -> list[Any]:
    """Return the non-empty tables of a profile that have times."""
    tables = (profile.tables[name] for name in ("ops", "activities", "api_calls"))
    return [table for table in tables if len(table)]
