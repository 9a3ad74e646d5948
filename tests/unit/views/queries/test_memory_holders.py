"""Holders of memory for the viewer, against `Profile.memory_at`."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.views.queries import memory_holders
from epprof_nb.views.queries.memory_holders import LABELS, holders_at, holders_over_time
from tests.helpers.memory_blocks import MB, block, profile_of, random_profile


def sums(header, columns, time):
    """Bytes and blocks by holder at a time that the columns have."""
    labels = header["holders"]
    seen = columns["holders.step"] <= np.searchsorted(columns["holders.t"], time)
    found = {}
    for holder, size, count in zip(
        *(columns[f"holders.{name}"][seen].tolist() for name in ("holder", "bytes", "blocks")),
        strict=True,
    ):
        key = tuple(labels[name][holder] for name in LABELS)
        old = found.get(key, (0, 0))
        found[key] = old[0] + size, old[1] + count
    return {key: value for key, value in found.items() if value != (0, 0)}


def expected(prof, time):
    table = prof.memory_at(time).astype(object)
    table = table.where(table.notna(), None)
    keys = map(tuple, table[list(LABELS)].to_numpy().tolist())
    return dict(zip(keys, zip(table["bytes"], table["blocks"], strict=True), strict=True))


@pytest.mark.parametrize("limit", [1_000_000, 500])
def test_holders_at_each_kept_time(limit):
    prof = random_profile()
    index = ProfileIndex(prof)
    header, columns = holders_over_time(index, limit)
    assert header["holders"]["exact"] == (limit > 500)
    assert len(columns["holders.step"]) <= limit
    assert index.cached(InUse).peak_ns in columns["holders.t"]
    for time in columns["holders.t"][:: max(len(columns["holders.t"]) // 20, 1)].tolist():
        assert sums(header, columns, time) == expected(prof, time)


def test_the_smallest_holders_are_one(monkeypatch):
    monkeypatch.setattr(memory_holders, "_MAX_HOLDERS", 3)
    prof = profile_of([block(10 * n * MB, 10, None, pool=f"pool {n}") for n in range(1, 6)])
    index = ProfileIndex(prof)
    told = holders_at(index, 20)
    assert told["pool"] == ["pool 5", "pool 4", "pool 3", None]
    assert told["name"][-1] == "(smaller holders)"
    assert told["bytes"] == [50 * MB, 40 * MB, 30 * MB, 30 * MB]
    header, columns = holders_over_time(index, 100)
    assert sorted(columns["holders.bytes"].tolist()) == [30 * MB, 30 * MB, 40 * MB, 50 * MB]
    assert header["holders"]["pool"][-1] is None
