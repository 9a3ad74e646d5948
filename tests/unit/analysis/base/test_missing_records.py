"""Dropped records: time without records is unknown, neither idle nor free."""

import math

import numpy as np
import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.analysis.utilisation.counters import busy_shares, tracks
from tests.helpers.tiny import call, kernel, line, profile

MS = 1_000_000
ROUNDS, KEPT = 20, 5
DEVICE = {"devices": [{"device_id": 0, "name": "GPU", "kind": "gpu"}]}


def rounds(kept, **info):
    """Each round of 10 ms launches a kernel of 8 ms; the records of the later ones are dropped."""
    starts = [i * 10 * MS for i in range(ROUNDS)]
    kernels = [kernel(t + MS, t + 9 * MS, 2, correlation_id=i, thread_id=1, repeat=i)
               for i, t in enumerate(starts)]  # fmt: skip
    calls = [call(t, t + MS // 2, name="cuLaunchKernel", domain="driver", return_value=0,
                  correlation_id=i, op_id=2) for i, t in enumerate(starts)]  # fmt: skip
    lost = ROUNDS - len(kernels[kept])
    recorded = {"launched": {"kernel": ROUNDS}, "shown": {"kernel": ROUNDS - lost},
                "lost": {"kernel": lost} if lost else {}, "dropped": lost}  # fmt: skip
    return profile(
        [line(1, 1, 0, 1), line(2, 2, 0, ROUNDS * 10 * MS)], kernels[kept], calls,
        info={"wall_ns": ROUNDS * 10 * MS, "recorded": recorded, **DEVICE, **info},
        sources={"In[1]": "for x in data:\n    f(x)\n"},
    )  # fmt: skip


FIRST = slice(0, KEPT)
KNOWN_NS = KEPT * 10 * MS - MS
"""The idle time after the last recorded kernel may have had the first kernel that was dropped."""


@pytest.mark.parametrize("limit", [1, 2, 10, 50])
def test_nothing_is_said_of_what_a_limit_left_out(limit):
    with epprof_nb.profile(max_records=limit) as prof:
        for _ in range(100):
            x = host.to_device(np.ones(1000, "f4"))
            with epprof_nb.op("layer"):
                host.launch(np.sqrt, x, x)
            host.to_host(x)
    assert not len(prof.insights())
    assert not len(prof.critical_path())
    assert not len(prof.critical_path(by="op"))
    replayed = prof.what_if({"waits": 0})
    assert not len(replayed)
    assert "Records are missing" in replayed.attrs["note"]
    assert not (prof.gaps(0)["position"] == "after").any()
    assert f"recorded {len(prof.activities)} of " in prof.summary()
    assert "--max-records" in prof.summary()
    assert "saves" not in prof.summary().lower()
    assert "Records are missing" in prof.insights().attrs["note"]


def test_busy_shares_are_those_of_the_time_that_is_known():
    prof = rounds(FIRST)
    text = prof.summary()
    assert "GPU busy 82 % of the 49.0 ms known" in text
    assert "recorded 5 of 20 records" in text
    shares = busy_shares(ProfileIndex(prof), 0, np.arange(ROUNDS + 1) * 10 * MS)
    assert shares[: KEPT - 1] == pytest.approx(0.8)
    assert all(map(math.isnan, shares[KEPT:]))


def test_views_are_told_of_the_time_that_is_not_known():
    index = ProfileIndex(rounds(FIRST))
    end = ROUNDS * 10 * MS
    (busy, *others) = tracks(index)
    assert busy["unknown"] == [[KNOWN_NS, end]]
    assert all("unknown" not in track for track in (*others, *tracks(complete())))
    (device,) = by_range(index, 0, end)["devices"]
    assert (device["busy"], device["unknown"]) == (KEPT * 8 * MS, end - KNOWN_NS)
    (device,) = by_range(index, 0, 10 * MS)["devices"]
    assert device.get("unknown") is None


def complete():
    return ProfileIndex(rounds(slice(None)))


def test_only_known_time_is_idle():
    prof = rounds(FIRST)
    assert prof.gaps(0)["duration_ns"].sum() == KEPT * 2 * MS - MS
    assert prof.gaps(0)["end_ns"].max() < KNOWN_NS
    assert prof.sql("select max(end_ns) as last from idle")["last"][0] < KNOWN_NS
    complete = rounds(slice(None))
    assert complete.gaps(0)["position"].tolist()[-1] == "after"


def test_a_gap_with_a_launch_whose_record_is_missing_is_unknown():
    assert rounds(slice(None)).overlap()["not_recorded_ns"].tolist() == [0]
    every_second = rounds(slice(0, None, 2))
    row = every_second.overlap().iloc[0]
    parts = ["compute_ns", "copy_ns", "communication_ns", "overlap_ns", "idle_ns",
             "not_recorded_ns"]  # fmt: skip
    assert row[parts].sum() == row["span_ns"]
    assert (row["idle_ns"], row["not_recorded_ns"]) == (0, 9 * 12 * MS)


def test_repeats_with_missing_records_have_no_device_time():
    bounds = [[i * 10 * MS, (i + 1) * 10 * MS] for i in range(ROUNDS)]
    found = rounds(FIRST, repeats=bounds).by_repeat()
    assert found["kernels"].tolist()[:KEPT] == [1] * KEPT
    assert found["idle_ns"].tolist()[: KEPT - 1] == [2 * MS] * (KEPT - 1)
    for column in ("kernels", "device_ns", "busy_ns", "idle_ns", "bytes"):
        assert found[column][KEPT:].isna().all()
    assert (found["wall_ns"] == 10 * MS).all()
    steady = rounds(FIRST, repeats=bounds).steadiness()
    assert steady["idle_ns"][KEPT:].isna().all()
    assert steady["excess_idle_ns"].isna().all()


def test_a_short_time_without_a_record_leaves_the_findings():
    """A copy within host memory has no record, for example."""
    ops = [line(1, 1, 0, MS), line(2, 2, MS, 900 * MS), line(3, 3, 900 * MS, 1000 * MS)]
    copy = call(950 * MS, 951 * MS, name="cuMemcpy", domain="driver", return_value=0,
                correlation_id=9, thread_id=1, op_id=3)  # fmt: skip
    info = {"wall_ns": 1000 * MS, "recorded": {"lost": {"memcpy": 1}}, **DEVICE}
    work = [kernel(100 * MS, 200 * MS, 1, correlation_id=1, thread_id=1),
            kernel(955 * MS, 990 * MS, 3, correlation_id=2, thread_id=1),
            kernel(945 * MS, 949 * MS, 3, correlation_id=3, thread_id=1)]  # fmt: skip
    calls = [copy] + [call(t * MS, t * MS + 9, correlation_id=n, thread_id=1, op_id=op)
                      for t, n, op in ((99, 1, 1), (954, 2, 3), (944, 3, 3))]  # fmt: skip
    prof = profile(ops, work, calls, info=info)
    assert "idle" in prof.insights()["kind"].tolist()
    assert len(prof.critical_path())
    # The work without a record may have run between 950 and 955 ms.
    assert prof.gaps(1)["start_ns"].tolist() == [0, 200 * MS, 990 * MS]
    assert prof.overlap()["not_recorded_ns"].tolist() == [6 * MS]


def test_without_api_calls_the_time_after_the_last_record_is_unknown():
    prof = profile([line(1, 1, 0, 100 * MS)], [kernel(0, 10 * MS, 1)],
                   info={"wall_ns": 100 * MS, "recorded": {"dropped": 4}, **DEVICE})  # fmt: skip
    assert not len(prof.gaps(0))
    assert "busy 100 % of the 10.0 ms known" in prof.summary()
