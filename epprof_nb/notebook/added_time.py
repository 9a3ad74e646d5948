"""Time that profiling added to a cell, in the info of its profile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.notebook.arguments import Request

_MAX_WAIT = 0.01
"""Maximum device work after the code, as a share of a repeat."""


def add_time(info: dict[str, Any], request: Request, warmups: Sequence[int]) -> None:
    """Add what profiling added to the info of a profile, if its runs show it.

    The times of the repeats are compared with those of the warm-ups, which are not profiled.
    `warmups` has the begins of the warm-ups and the end of the last one, ns; none if their times
    do not match the code.
    """
    import numpy as np

    from epprof_nb.analysis.added_time.measured_time import measured_time

    repeats = np.array(info.get("repeats") or (), np.int64).reshape(-1, 2)
    times = repeats[:, 1] - repeats[:, 0]
    # An error or a limit ended the last repeat early. Device work that the code did not wait for,
    # at its end, counts for no warm-up.
    if (
        warmups
        and len(times) == request.repeat > 1
        and not info.get("error")
        and request.options.time_limit_s is None
        and info["wall_ns"] - info["code_ns"] < _MAX_WAIT * times.min()
    ):
        unprofiled = [end - begin for begin, end in pairwise(warmups)]
        if added := measured_time(unprofiled, times, info["wall_ns"]):
            info["added_ns"] = added
