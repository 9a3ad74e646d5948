"""Where the device's time went, by kernel name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.analysis.dataframe import categorical
from epprof_nb.analysis.index import Shared
from epprof_nb.analysis.measures import mean_delay
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


def by_kernel(profile: ProfileData, *, shared: Shared | None = None) -> pd.DataFrame:
    """Return the launches and device time of each kernel name.

    Parameters
    ----------
    profile
        The profile.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a kernel name, the longest device time first.

        ================  ========  ===========================================================
        name              category  the kernel's demangled name
        count             int64     launches
        device_ns         int64     device time of all launches
        share             float64   `device_ns` as a fraction of all device time
        mean_ns, min_ns,  int64     device time of a launch; the 95th percentile is a duration
        p95_ns, max_ns              that occurred
        launch_delay_ns   Int64     mean time from the API call to the kernel's start; missing
                                    where no call was recorded
        grid, block       object    ``(x, y, z)`` of the most frequent launch, None where not
                                    recorded
        ops               int64     number of different ops that launched it
        ================  ========  ===========================================================
    """
    activities = profile.tables["activities"]
    shared = shared or Shared(profile)
    everything = int(np.sum(activities["duration_ns"], where=shared.work))
    kernels = np.flatnonzero(activities.names("kind").equals("kernel"))
    op_ids = activities["op_id"][kernels]
    names = activities.names("name").take(kernels)
    groups, first = group_codes(names.codes)
    n = len(first)
    statistics = GroupStatistics(groups, activities["duration_ns"][kernels], n)
    delays, known = shared.delays
    delays, known = delays[kernels], known[kernels]
    order = np.argsort(-statistics.total, kind="stable")
    shapes = [activities[f"{of}_{axis}"] for of in ("grid", "block") for axis in "xyz"]
    usual = kernels[_most_frequent(groups, n, kernels, shapes)[order]]
    return pd.DataFrame(
        {
            "name": categorical(names.take(first[order]).to_list()),
            "count": statistics.count[order],
            "device_ns": statistics.total[order],
            "share": share(statistics.total[order], everything),
            "mean_ns": statistics.mean[order],
            "min_ns": statistics.percentile(0)[order],
            "p95_ns": statistics.percentile(95)[order],
            "max_ns": statistics.percentile(100)[order],
            "launch_delay_ns": mean_delay(
                sum_by_group(groups[known], delays[known], n)[:-1][order],
                np.bincount(groups[known], minlength=n)[order],
            ),
            "grid": _triples(shapes[:3], usual),
            "block": _triples(shapes[3:], usual),
            "ops": count_distinct(groups, op_ids, n)[order],
        }
    )


def _most_frequent(
    groups: IntArray, n: int, rows: IntArray, columns: Sequence[IntArray]
) -> IntArray:
    """Return, for each group, a place with its most frequent combination of values at `rows`."""
    places, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for piece in chunks(len(rows)):
        codes, first = group_codes(groups[piece], *(column[rows[piece]] for column in columns))
        places.append(first + piece.start)
        times.append(np.bincount(codes))
    place = np.concatenate(places)
    combinations, first = group_codes(groups[place], *(column[rows[place]] for column in columns))
    frequency = sum_by_group(combinations, np.concatenate(times), len(first))[:-1]
    # Of several assignments to one group the last one stays: that of the highest frequency.
    ascending = place[first[np.argsort(frequency, kind="stable")]]
    chosen = np.zeros(n, np.int64)
    chosen[groups[ascending]] = ascending
    return chosen


def _triples(axes: Sequence[IntArray], rows: IntArray) -> pd.Series[Any]:
    """Return ``(x, y, z)`` of each of `rows`; None where one of them is missing."""
    triples = zip(*(axis[rows].tolist() for axis in axes), strict=True)
    return pd.Series([None if MISSING in triple else triple for triple in triples], dtype=object)
