"""by_kernel: device time by kernel name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums
from epprof_nb.analysis.base.breakdown_columns import HIGH_PERCENTILE, mean_delay
from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.op_totals import share
from epprof_nb.analysis.base.result_table import ResultTable, categorical, objects
from epprof_nb.analysis.frameworks.kernel_sources import kernel_sources
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import count_distinct, group_codes, sum_by_group
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray

KernelName = Literal["name", "short_name"]


def kernel_table(index: ProfileIndex, by: KernelName = "name") -> ResultTable:
    """Return the columns of `Profile.by_kernel`.

    Raises
    ------
    ValueError
        If `by` is unknown.
    """
    if by not in get_args(KernelName):
        raise ValueError(f"by must be 'name' or 'short_name', not {by!r}")
    activities = index.profile.tables["activities"]
    names, short_names = (activities.names(of) for of in get_args(KernelName))
    by_codes = names if by == "name" else short_names
    # Kernels without a name form a group; other activities form the last one.
    n = len(by_codes.categories) + 2
    groups = np.where(index.kinds == KERNEL, by_codes.codes, np.int32(n - 1))
    groups[groups == MISSING] = n - 2
    measures = activity_sums(index, groups, n)
    statistics = GroupStatistics(groups, activities["duration_ns"], n)
    first = _first_rows(groups, n)
    order = np.flatnonzero(measures["kernels"])
    order = order[np.lexsort((first[order], -measures["device_ns"][order]))]
    sums = {name: values[order] for name, values in measures.items()}
    axes = [activities[f"{of}_{axis}"] for of in ("grid", "block") for axis in "xyz"]
    typical = _most_frequent(groups, first, axes)[order]
    # A group of one name has this name, unless its kernels have none.
    distinct = (order < n - 2).astype(np.int64)
    if by != "name":
        distinct = count_distinct(groups, names.codes.astype(np.int64), n)[order]
    labels: dict[str, Column] = {
        "name": categorical(names.take(first[order]).to_list()),
        "short_name": categorical(short_names.take(first[order]).to_list()),
        "names": distinct,
    }
    del labels["names" if by == "name" else "name"]
    return ResultTable(
        labels
        | {
            "count": sums["kernels"],
            "device_ns": sums["device_ns"],
            "share": share(sums["device_ns"], int(measures["device_ns"].sum())),
            "mean_device_ns": statistics.mean[order],
            "min_device_ns": statistics.percentile(0)[order],
            f"p{HIGH_PERCENTILE}_device_ns": statistics.percentile(HIGH_PERCENTILE)[order],
            "max_device_ns": statistics.percentile(100)[order],
            "launch_delay_ns": mean_delay(sums["delay_ns"], sums["delays"]),
            "grid": _triples(axes[:3], typical),
            "block": _triples(axes[3:], typical),
            "ops": count_distinct(groups, activities["op_id"], n)[order],
            "source": kernel_sources(index, groups, order, names.take(first[order]), distinct),
        }
    )


def _first_rows(groups: npt.NDArray[np.int32], n: int) -> IntArray:
    """Return the first row of each group; 0 for a group without rows."""
    first = np.zeros(n, np.int64)
    for chunk in reversed(list(chunks(len(groups)))):
        # NumPy keeps the last of several assignments to one element: the first row.
        first[groups[chunk][::-1]] = np.arange(chunk.start, chunk.stop)[::-1]
    return first


def _most_frequent(
    groups: npt.NDArray[np.int32], first: IntArray, columns: Sequence[IntArray]
) -> IntArray:
    """Return a row with each group's most frequent combination of values."""
    # Most columns have one value per group.
    columns = [column for column in columns if not _is_constant(column, groups, first)]
    result = first.copy()
    if not columns:
        return result
    rows, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chunk in chunks(len(groups)):
        codes, of_chunk = group_codes(groups[chunk], *(column[chunk] for column in columns))
        rows.append(of_chunk + chunk.start)
        counts.append(np.bincount(codes))
    row = np.concatenate(rows)
    combinations, of_all = group_codes(groups[row], *(column[row] for column in columns))
    frequency = sum_by_group(combinations, np.concatenate(counts), len(of_all))[:-1]
    # NumPy keeps the last of several assignments to one element: the row of the highest frequency.
    ascending = row[of_all[np.argsort(frequency, kind="stable")]]
    result[groups[ascending]] = ascending
    return result


def _is_constant(column: IntArray, groups: npt.NDArray[np.int32], first: IntArray) -> bool:
    """Return whether a column has one value per group."""
    # A column of equal values may repeat one in memory.
    if not len(column) or not any(column.strides):
        return True
    of_group = column[first]
    for chunk in chunks(len(column)):
        values, group = column[chunk], groups[chunk]
        # Usually, the same kernel follows many times.
        changes = np.flatnonzero((values[1:] != values[:-1]) | (group[1:] != group[:-1])) + 1
        rows = np.append(0, changes)
        if (values[rows] != of_group[group[rows]]).any():
            return False
    return True


def _triples(axes: Sequence[IntArray], rows: IntArray) -> npt.NDArray[Any]:
    """Return ``(x, y, z)`` of each of `rows`; None if one of them is missing."""
    triples = zip(*(axis[rows].tolist() for axis in axes), strict=True)
    return objects(None if MISSING in triple else triple for triple in triples)
