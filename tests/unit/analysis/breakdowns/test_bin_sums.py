"""Sums by time bin add up to the breakdown of each range of whole bins."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.breakdowns.bin_sums import bin_sums
from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, kernel, op, profile


def _added(index, sums, first, last):
    """The breakdown of the bins `first` to `last`, excluding it, from their sums."""
    inside = (sums.bin >= first) & (sums.bin < last)
    at_edge = sums.bin == first
    count = np.where(inside, sums.started, 0) + np.where(at_edge, sums.running, 0)
    size = np.where(inside, sums.started_bytes, 0) + np.where(at_edge, sums.running_bytes, 0)
    kinds = np.array(ACTIVITY_KINDS)[sums.kind[sums.group]]
    tables = index.profile.tables
    by = {}
    for key, codes, names, missing in (
        ("ops", sums.op, tables["ops"].names("name").categories, "(no op)"),
        ("names", sums.name, tables["activities"].names("short_name").categories, "(no name)"),
    ):
        totals = {}
        for code, number, ns in zip(codes[sums.group], count, sums.ns * inside, strict=True):
            total = totals.setdefault(names[code] if code >= 0 else missing, [0, 0])
            total[0] += int(number)
            total[1] += int(ns)
        by[key] = {name: total for name, total in totals.items() if total[0]}
    return {
        "device_ns": int(sums.ns[inside].sum()),
        "kernels": int(count[kinds == "kernel"].sum()),
        "copies": int(count[kinds == "memcpy"].sum()),
        "sets": int(count[kinds == "memset"].sum()),
        "bytes": int(size[kinds == "memcpy"].sum()),
        "busy": [int(busy[last] - busy[first]) for busy in sums.busy.values()],
        **by,
    }


def _expected(index, start, end):
    totals = by_range(index, int(start), int(end), 10_000)
    return {
        key: {name: [count, ns] for name, count, ns in totals[key]["rows"]}
        if key in ("ops", "names")
        else totals[key]
        for key in ("device_ns", "kernels", "copies", "sets", "bytes", "ops", "names")
    } | {"busy": [device["busy"] for device in totals["devices"]]}


def _odd_profile():
    """Work across bins, of no length, at the edges, before and after the range, without names."""
    ops = [op(1, "a", 0, 4000), op(2, "b", 100, 900, 1)]
    return profile(ops, [
        kernel(-50, 4200, 1),
        kernel(0, 1, 2),
        kernel(1024, 1024, 2),
        kernel(1024, 2048, 2, stream_id=9),
        kernel(1000, 1030, name=None),
        activity("memcpy", 2047, 2049, 1, bytes=100),
        activity("memcpy", 3000, 4096, bytes=7, device_id=1),
        activity("memset", 4095, 5000, bytes=50),
        activity("memcpy", 500, 510, bytes=-1),
        kernel(4096, 4100),
        kernel(-100, -50),
        activity("synchronization", 10, 4000),
    ], info={"wall_ns": 4096})  # fmt: skip


@pytest.mark.parametrize("max_entries", [10_000, 300, 40])
@pytest.mark.parametrize("make", [_odd_profile, lambda: synthetic_profile(3_000)])
def test_sums_of_bins_are_the_breakdown_of_their_range(make, max_entries):
    made = make()
    index = ProfileIndex(made)
    sums = bin_sums(index, 0, made.wall_ns, max_entries)
    assert len(sums.bin) <= max_entries
    bins = len(sums.edges) - 1
    for first, last in {(0, bins), (0, 1), (bins // 2, bins), (bins // 3, bins // 2 + 1)}:
        if first < last:
            expected = _expected(index, sums.edges[first], sums.edges[last])
            assert _added(index, sums, first, last) == expected


def test_there_are_fewer_bins_where_they_have_many_names():
    many = profile([], [kernel(i, i + 1, name=f"k{i % 100}") for i in range(0, 100_000, 10)],
                   info={"wall_ns": 100_000})  # fmt: skip
    index = ProfileIndex(many)
    assert len(bin_sums(index, 0, 100_000, 20_000).edges) == 513
    assert len(bin_sums(index, 0, 100_000, 100).edges) - 1 in (1, 2, 4, 8)
    assert bin_sums(index, 0, 100_000, 5) is None
