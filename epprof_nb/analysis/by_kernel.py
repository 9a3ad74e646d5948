"""by_kernel: device time by kernel name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from epprof_nb.analysis.dataframe import ResultTable, categorical, objects
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.measures import mean_delay
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.columns import with_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from epprof_nb.analysis.dataframe import Column
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

KernelName = Literal["name", "short_name"]


@with_columns("by_kernel")
def by_kernel(
    profile: ProfileData, by: KernelName = "name", *, index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the launches and device time of each kernel name.

    Parameters
    ----------
    profile
        The profile.
    by
        ``"name"`` for one row per full name, ``"short_name"`` for one row per short name.
    index
        Index of the profile; a new one if None.

    Returns
    -------
    frame
        {columns}

    Raises
    ------
    ValueError
        If `by` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> int(by_kernel(synthetic_profile(activities=100))["count"].sum())
    97
    >>> by_kernel(synthetic_profile(activities=100), by="short_name")["names"].max()
    np.int64(1)
    """
    if by not in get_args(KernelName):
        raise ValueError(f"by must be 'name' or 'short_name', not {by!r}")
    return kernel_table(index or ProfileIndex(profile), by).to_frame()


def kernel_table(index: ProfileIndex, by: KernelName = "name") -> ResultTable:
    """Return the columns of `by_kernel`."""
    activities = index.profile.tables["activities"]
    all_device_ns = int(np.sum(activities["duration_ns"], where=index.is_device_work))
    kernels = np.flatnonzero(activities.names("kind").equals("kernel"))
    names, short_names = (activities.names(of).take(kernels) for of in get_args(KernelName))
    groups, first = group_codes((names if by == "name" else short_names).codes)
    n = len(first)
    statistics = GroupStatistics(groups, activities["duration_ns"][kernels], n)
    delays, is_known = index.delays
    delays, is_known = delays[kernels], is_known[kernels]
    order = np.argsort(-statistics.total, kind="stable")
    axes = [activities[f"{of}_{axis}"] for of in ("grid", "block") for axis in "xyz"]
    typical = kernels[_most_frequent(groups, n, kernels, axes)[order]]
    labels: dict[str, Column] = {
        "name": categorical(names.take(first[order]).to_list()),
        "short_name": categorical(short_names.take(first[order]).to_list()),
        "names": count_distinct(groups, names.codes.astype(np.int64), n)[order],
    }
    del labels["names" if by == "name" else "name"]
    return ResultTable(
        labels
        | {
            "count": statistics.count[order],
            "device_ns": statistics.total[order],
            "share": share(statistics.total[order], all_device_ns),
            "mean_device_ns": statistics.mean[order],
            "min_device_ns": statistics.percentile(0)[order],
            "p95_device_ns": statistics.percentile(95)[order],
            "max_device_ns": statistics.percentile(100)[order],
            "launch_delay_ns": mean_delay(
                sum_by_group(groups[is_known], delays[is_known], n)[:-1][order],
                np.bincount(groups[is_known], minlength=n)[order],
            ),
            "grid": _triples(axes[:3], typical),
            "block": _triples(axes[3:], typical),
            "ops": count_distinct(groups, activities["op_id"][kernels], n)[order],
        }
    )


def _most_frequent(
    groups: IntArray, n: int, rows: IntArray, columns: Sequence[IntArray]
) -> IntArray:
    """Return a position in `rows` with each group's most frequent combination of values."""
    positions, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chunk in chunks(len(rows)):
        codes, first = group_codes(groups[chunk], *(column[rows[chunk]] for column in columns))
        positions.append(first + chunk.start)
        counts.append(np.bincount(codes))
    position = np.concatenate(positions)
    combinations, first = group_codes(
        groups[position], *(column[rows[position]] for column in columns)
    )
    frequency = sum_by_group(combinations, np.concatenate(counts), len(first))[:-1]
    # NumPy keeps the last of several assignments to one element: that of the highest frequency.
    ascending = position[first[np.argsort(frequency, kind="stable")]]
    result = np.zeros(n, np.int64)
    result[groups[ascending]] = ascending
    return result


def _triples(axes: Sequence[IntArray], rows: IntArray) -> npt.NDArray[Any]:
    """Return ``(x, y, z)`` of each of `rows`; None if one of them is missing."""
    triples = zip(*(axis[rows].tolist() for axis in axes), strict=True)
    return objects(None if MISSING in triple else triple for triple in triples)
