"""The check that device work starts after its op and its launch."""

from __future__ import annotations

import numpy as np

import epprof_nb
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.recording.session import clock_check
from epprof_nb.recording.session.clock_check import EPSILON_NS
from tests.helpers.tiny import activity, call, kernel, op, table

BASE = 1_000_000


def check(ops, activities, calls):
    return clock_check.check(
        table(OPS, ops), table(ACTIVITIES, activities), table(API_CALLS, calls)
    )


def launched(at, *, op_id=1, correlation=10, kind="kernel"):
    return activity(kind, at, at + 50, op_id, correlation_id=correlation)


def test_work_after_its_op_and_its_launch_is_plausible():
    found = check(
        [op(1, "a", BASE, BASE + 900)],
        [launched(BASE + 200), launched(BASE + 20, correlation=11)],
        [call(BASE + 100, BASE + 120, correlation_id=10), call(BASE, BASE + 20, correlation_id=11)],
    )
    fine = {"compared": 2, "early": 0, "share": 0.0, "worst_ns": 0, "beyond": 0}
    assert found == {"before_op": fine, "before_launch": fine}
    assert clock_check.notes(found) == []


def test_small_differences_are_counted_without_a_note():
    found = check(
        [op(1, "a", BASE, BASE + 900)],
        [launched(BASE - 300), launched(BASE + 50), launched(BASE + 200, kind="memcpy")],
        [call(BASE + 100, BASE + 120, correlation_id=10)],
    )
    assert found["before_op"] == {
        "compared": 3, "early": 1, "share": 1 / 3, "worst_ns": 300, "beyond": 0,
    }  # fmt: skip
    assert found["before_launch"] == {
        "compared": 3, "early": 2, "share": 2 / 3, "worst_ns": 400, "beyond": 0,
    }  # fmt: skip
    assert clock_check.notes(found) == []


def test_differences_beyond_epsilon_have_a_note():
    found = check(
        [op(1, "a", BASE, BASE + 900)],
        [launched(BASE - EPSILON_NS - 1), launched(BASE - EPSILON_NS)],
        [call(BASE, BASE + 120, correlation_id=10)],
    )
    assert found["before_op"]["beyond"] == found["before_launch"]["beyond"] == 1
    by_op, by_launch = clock_check.notes(found)
    assert by_op.startswith("1 of 2 kernels, copies and memsets seem to start before their op")
    assert "up to 1.0 µs" in by_op
    assert "before their launch" in by_launch


def test_work_without_op_or_launch_in_the_profile_is_not_compared():
    ops = [op(1, "a", BASE, BASE + 900), op(2, "b", BASE, BASE + 1, status="earlier")]
    work = [
        kernel(0, 5), launched(0, op_id=9, correlation=77), launched(0, op_id=2, correlation=78),
        activity("synchronization", 0, 5, 1, correlation_id=10),
    ]  # fmt: skip
    found = check(ops, work, [call(BASE, BASE + 5, correlation_id=10), call(BASE, BASE + 5)])
    assert found["before_op"]["compared"] == found["before_launch"]["compared"] == 0
    assert check([], [], [])["before_op"]["compared"] == 0


def test_a_recorded_profile_has_the_result():
    from epprof_nb import host

    with epprof_nb.profile() as prof, epprof_nb.op("work"):
        host.memset(host.to_device(np.zeros(8)), 1)
        host.synchronize()
    for part in ("before_op", "before_launch"):
        assert prof.info["plausibility"][part]["compared"] == 2
        assert prof.info["plausibility"][part]["early"] == 0
