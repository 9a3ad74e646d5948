"""Counters over time against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.utilisation.counters import busy_ns, bytes_copied, columns, queued, tracks
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile


def _profile(rows, calls=()) -> Profile:
    """Of (kind, device, start, end, correlation, bytes) and calls of (start, correlation)."""
    kinds, device, start, end, correlation, size = zip(*rows, strict=True) if rows else [()] * 6
    begin, ids = zip(*calls, strict=True) if calls else [(), ()]
    activities = {
        "kind": CategoryColumn.of(list(kinds)),
        "device_id": np.array(device, np.int64),
        "start_ns": np.array(start, np.int64),
        "end_ns": np.array(end, np.int64),
        "correlation_id": np.array(correlation, np.int64),
        "bytes": np.array(size, np.int64),
    }
    api = {
        "start_ns": np.array(begin, np.int64),
        "end_ns": np.array(begin, np.int64) + 1,
        "correlation_id": np.array(ids, np.int64),
    }
    tables = {
        "ops": Table(OPS, {}),
        "activities": Table(ACTIVITIES, activities),
        "api_calls": Table(API_CALLS, api),
    }
    return Profile(tables, {"wall_ns": 1000}, {})


def _random(seed: int, count: int) -> Profile:
    rng = np.random.default_rng(seed)
    rows, calls = [], []
    for i in range(count):
        start = int(rng.integers(0, 5_000))
        kind = str(rng.choice(["kernel", "memcpy", "memset", "synchronization"]))
        # Some take no time, some share a call, some have none.
        end = start + int(rng.integers(0, 60))
        correlation = -1 if rng.random() < 0.1 else int(rng.integers(0, count))
        rows.append(
            (kind, int(rng.integers(0, 2)), start, end, correlation, int(rng.integers(1, 99)))
        )
        calls.append((start - int(rng.integers(-2, 80)), i))
    return _profile(rows, calls)


def _intervals(profile: Profile, device: int) -> list[tuple[int, int]]:
    """Each launch's time, found the slow way."""
    activities, calls = profile.tables["activities"], profile.tables["api_calls"]
    call_start = dict(
        zip(calls["correlation_id"].tolist(), calls["start_ns"].tolist(), strict=True)
    )
    of_call: dict[int, int] = {}
    alone = []
    kinds = activities.names("kind").to_list()
    for i, kind in enumerate(kinds):
        if kind == "synchronization" or activities["device_id"][i] != device:
            continue
        start, end = int(activities["start_ns"][i]), int(activities["end_ns"][i])
        correlation = int(activities["correlation_id"][i])
        if correlation in call_start:
            of_call[correlation] = max(of_call.get(correlation, end), end)
        else:
            alone.append((start, end))
    return alone + [(min(call_start[c], end), end) for c, end in of_call.items()]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("points", [16, 100, 10_000])
def test_queued_launches_are_launched_and_not_done(seed, points):
    profile = _random(seed, 300)
    found = queued(ProfileIndex(profile), 0, points=points)
    assert len(found.t) <= max(points, 2)
    times = np.arange(-100, 5_200)
    level = np.zeros(len(times), np.int64)
    for given, done in _intervals(profile, 0):
        level[(times >= given) & (times < done)] += 1
    for i, begin in enumerate(found.t.tolist()):
        end = found.t[i + 1] if i + 1 < len(found.t) else times[-1] + 1
        inside = level[(times >= begin) & (times < end)]
        assert (inside.min(), inside.max()) == (found.low[i], found.high[i])
    assert not level[times < found.t[0]].any()


def test_a_graph_replay_is_one_launch():
    kernels = [("kernel", 0, 10 + 5 * i, 14 + 5 * i, 7, -1) for i in range(4)]
    found = queued(ProfileIndex(_profile(kernels, [(2, 7)])), 0)
    assert found.t.tolist() == [1, 2, 29]
    assert found.high.tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("points", [16, 100, 10_000])
def test_bytes_are_moved_while_their_copies_run(seed, points):
    profile = _random(seed, 300)
    found = bytes_copied(ProfileIndex(profile), 1, points=points)
    assert len(found.t) <= points
    activities = profile.tables["activities"]
    chosen = activities.names("kind").equals("memcpy") & (activities["device_id"] == 1)
    start, size = activities["start_ns"][chosen], activities["bytes"][chosen]
    end = np.maximum(activities["end_ns"][chosen], start + 1)
    for t, value in zip(found.t.tolist(), found.value.tolist(), strict=True):
        moved = np.clip((t - start) / (end - start), 0, 1) * size
        assert value == pytest.approx(moved.sum(), abs=0.51)
    assert found.value[-1] == size.sum()


def test_bytes_of_copies_that_all_overlap():
    rows = [("memcpy", 0, 10, 30, 1, 8), ("memcpy", 0, 20, 40, 2, 8)]
    found = bytes_copied(ProfileIndex(_profile(rows, [])), 0)
    assert dict(zip(found.t.tolist(), found.value.tolist(), strict=True)) == {
        10: 0, 20: 4, 30: 12, 40: 16,
    }  # fmt: skip


@pytest.mark.parametrize("points", [16, 10_000])
def test_busy_time_counts_what_overlaps_once(points):
    profile = _random(5, 300)
    found = busy_ns(ProfileIndex(profile), 0, points=points)
    activities = profile.tables["activities"]
    work = ~activities.names("kind").equals("synchronization") & (activities["device_id"] == 0)
    times = np.arange(0, 5_200)
    at_work = np.zeros(len(times), np.bool_)
    for i in np.flatnonzero(work):
        at_work[activities["start_ns"][i] : activities["end_ns"][i]] = True
    total = np.concatenate([[0], np.cumsum(at_work)])
    assert len(found.t) <= points
    assert found.value.tolist() == total[found.t].tolist()


def test_negative_durations_and_huge_gaps():
    rows = [("kernel", 0, 50, 20, 1, -1), ("memcpy", 0, 10**15, 10**15, 2, 8)]
    profile = _profile(rows, [(60, 1), (10**15 - 5, 2)])
    found = queued(ProfileIndex(profile), 0)
    assert found.t.tolist() == [49, 50, 10**15 - 5, 10**15]
    assert found.high.tolist() == [0, 0, 1, 0]
    assert bytes_copied(ProfileIndex(profile), 0).value.tolist() == [0, 8]


def test_counters_are_small_and_skip_devices_without_data():
    view_model = ProfileIndex(synthetic_profile(20_000))
    found = columns(view_model, points=500)
    assert [(t["what"], t["device"]) for t in tracks(view_model)] == [
        ("busy", 0), ("launches", 0), ("copied", 0)
    ]  # fmt: skip
    assert 0 < max(len(values) for values in found.values()) <= 500
    empty = ProfileIndex(synthetic_profile(0))
    assert (tracks(empty), columns(empty)) == ([], {})
    only_kernels = ProfileIndex(_profile([("kernel", 3, 0, 5, 1, -1)]))
    assert [(t["what"], t["device"]) for t in tracks(only_kernels)] == [
        ("busy", 3), ("launches", 3)
    ]  # fmt: skip
    assert columns(only_kernels)["counter.0.value"].tolist() == [0, 5]
    only_waits = ProfileIndex(_profile([("synchronization", 3, 0, 5, 1, -1)]))
    assert all(not len(values) for values in columns(only_waits).values())


@pytest.mark.parametrize("points", [16, 10_000])
@pytest.mark.parametrize("window", [(1_000, 1_400), (-50, 60), (4_990, 9_000)])
def test_window_agrees_with_the_whole_profile(points, window):
    index = ProfileIndex(_random(7, 400))
    low, high = window
    for sums in (busy_ns, bytes_copied):
        whole, part = sums(index, 0, points=10_000), sums(index, 0, window, points)
        assert len(part.t) <= points
        expected = np.interp(part.t, whole.t, whole.value) - np.interp(low, whole.t, whole.value)
        assert part.value == pytest.approx(expected, abs=6)
        assert (part.value[-1] if len(part.t) else 0) == pytest.approx(
            np.interp(high, whole.t, whole.value) - np.interp(low, whole.t, whole.value), abs=6
        )
    whole, part = queued(index, 0, points=10_000), queued(index, 0, window, points)
    assert (part.t[0], len(part.t) <= points) == (low, True)
    times = np.arange(low, high)
    at = np.searchsorted(whole.t, times, "right") - 1
    level = np.where(at < 0, 0, whole.low[at])
    for i, begin in enumerate(part.t.tolist()):
        end = part.t[i + 1] if i + 1 < len(part.t) else high
        inside = level[(times >= begin) & (times < end)]
        if len(inside):
            assert (inside.min(), inside.max()) == (part.low[i], part.high[i])
