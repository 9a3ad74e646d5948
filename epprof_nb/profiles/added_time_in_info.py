"""Time that profiling added, in the info of a profile that has just ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.format import format_error
from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData


def state_added_time(profile: ProfileData) -> None:
    """Add the estimate of what profiling added to the info, or the reason why it has none."""
    from epprof_nb.analysis.added_time.estimated_time import (
        estimated_time,
        reason_without_estimate,
    )
    from epprof_nb.analysis.base.index import index_of

    index = index_of(profile)
    try:
        estimated = index.cached(estimated_time)
        reason = "" if estimated is not None else reason_without_estimate(index)
    except Exception as failure:  # noqa: BLE001 - the profile is complete without it
        say(f"What profiling added is not known ({format_error(failure)}).")
        return
    profile.info["added_ns"] = {"reason": reason} if estimated is None else estimated.in_info()
