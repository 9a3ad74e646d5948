"""Time before samples in which their thread did not use a core."""

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.time_off_cores import time_off_cores
from epprof_nb.data.schema import HOST_SAMPLES, THREAD_WAITS
from tests.helpers.tiny import op, profile, table


def off_cores(used, waits=()):
    """Return the time off cores of samples every 100 ns, from the processor time until each."""
    found = profile([op(1, "a", 0, 900)])
    found.tables["host_samples"] = table(HOST_SAMPLES, [
        {"start_ns": 100 * i, "interval_ns": 100, "thread_id": 1, "processor_ns": ns,
         "core_wait_ns": 0}
        for i, ns in enumerate(used)
    ])  # fmt: skip
    columns = ("thread_id", "start_ns", "end_ns")
    rows = [dict(zip(columns, wait, strict=True)) for wait in waits]
    found.tables["thread_waits"] = table(THREAD_WAITS, rows)
    return time_off_cores(ProfileIndex(found))


def test_what_a_thread_did_not_use_it_was_blocked():
    found = off_cores([0, 100, 130, 130])
    assert found.blocked.tolist() == [0, 0, 70, 100]
    assert found.used.tolist() == [0, 100, 30, 0]
    assert not np.any(found.queued)


def test_recorded_waits_of_the_thread_are_known():
    assert off_cores([0, 30, 60], [(1, 20, 60), (1, 110, 180)]).blocked.tolist() == [0, 30, 0]
    assert off_cores([0, 30, 60], [(2, 20, 60)]).blocked.tolist() == [0, 70, 70]
