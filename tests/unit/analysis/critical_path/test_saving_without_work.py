"""saving_without: profiles of a simulated program, with and without some of its work."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from tests.helpers.planted import info
from tests.helpers.tiny import call, kernel, op, profile

BACK = 7


def without_time(prof, starts, ends, thread=1):
    """The saving without some time of a thread."""
    starts, ends = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    removed = Removed(thread=np.full(len(starts), thread), start=starts, end=ends)
    return saving_without(ProfileIndex(prof), removed)


def run(program):
    """Execute steps on two clocks, and return the profile and the times of each step on the host.

    A step is ("host", ns), ("launch", ns of the host, ns of the device) or ("wait",).
    """
    now = done = 0
    work, calls, times = [], [], []
    for number, (what, *ns) in enumerate(program, 1):
        start = now
        if what == "host":
            now += ns[0]
        elif what == "launch":
            now += ns[0]
            done = max(done, now)
            work.append(kernel(done, done + ns[1], correlation_id=number))
            done += ns[1]
            calls.append(call(start, now, correlation_id=number))
        else:
            now = max(now, done) + BACK
            calls.append(call(start, now, correlation_id=number, name="cuStreamSynchronize"))
        times.append((start, now))
    return profile([], work, calls, info=info(max(now, done))), np.array(times)


def random_program(seed, steps=200):
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["host", "launch", "wait"], steps, p=[0.3, 0.5, 0.2])
    host, device = rng.integers(1, 2_000, (2, steps)).tolist()
    scale = rng.choice([1, 20])  # bound by the host, or by the device
    made = {
        "host": lambda i: ("host", host[i]),
        "launch": lambda i: ("launch", host[i] // 10 + 1, scale * device[i]),
        "wait": lambda _: ("wait",),
    }
    return [made[kind](i) for i, kind in enumerate(kinds)]


@pytest.mark.parametrize("kind", ["host", "wait"])
@pytest.mark.parametrize("seed", range(12))
def test_the_saving_is_that_of_the_program_without_these_steps(seed, kind):
    program = random_program(seed)
    skipped = [i for i, step in enumerate(program) if step[0] == kind and i % 3]
    prof, times = run(program)
    cured, _ = run([step for i, step in enumerate(program) if i not in skipped])
    saving = without_time(prof, *times[skipped].T)
    true = prof.info["wall_ns"] - cured.info["wall_ns"]
    # Launches right after a wait that ends in idle time may be told apart by a few ns only.
    assert saving == pytest.approx(true, abs=2 * BACK + 0.01 * true)


@pytest.mark.parametrize("seed", range(12))
def test_the_saving_of_shorter_work_is_that_of_the_program_with_it(seed):
    program = [*random_program(seed), ("wait",)]
    launches = [i for i, step in enumerate(program) if step[0] == "launch"]
    shorter = [
        (*step[:2], step[2] // 4) if step[0] == "launch" and i in launches[::2] else step
        for i, step in enumerate(program)
    ]
    prof, _ = run(program)
    rows = np.arange(len(launches))[::2]
    removed = Removed(activities=rows, remains=np.full(len(rows), 0.25))
    saving = saving_without(ProfileIndex(prof), removed)
    true = prof.info["wall_ns"] - run(shorter)[0].info["wall_ns"]
    assert saving == pytest.approx(true, abs=2 * BACK + 0.02 * true)


def test_nothing_skipped_saves_nothing():
    prof, times = run(random_program(1))
    assert without_time(prof, *times[:0].T) == 0
    assert without_time(prof, [10**12], [10**12 + 5]) == 0


def test_a_wait_that_other_work_outlives_keeps_its_length():
    """The host waits for the first of two kernels, and then works beside the second."""
    work = [kernel(10, 100_010, correlation_id=1), kernel(100_010, 300_000, correlation_id=2)]
    calls = [call(0, 10, correlation_id=1), call(10, 20, correlation_id=2),
             call(20, 100_020, correlation_id=3, name="cuEventSynchronize")]  # fmt: skip
    prof = profile([], work, calls, info=info(400_020))
    assert without_time(prof, [20], [100_020]) == pytest.approx(100_000, abs=200)
    assert without_time(prof, [100_020], [400_020]) == pytest.approx(100_020, abs=200)


def test_a_wait_of_no_length_still_waits():
    """The clock of calls may be too coarse for a wait that finds the work done."""
    calls = [call(0, 10, correlation_id=1),
             call(100_010, 100_010, correlation_id=2, name="cuStreamSynchronize")]  # fmt: skip
    prof = profile([], [kernel(10, 100_010, correlation_id=1)], calls, info=info(200_000))
    assert without_time(prof, [10], [100_000]) < 200


def test_a_profile_without_calls_is_the_time_of_the_host():
    prof = profile([op(1, "In[1]", 0, 1_000, op_type="cell")], info=info(1_000))
    assert without_time(prof, [100, 150], [200, 300]) == 200


def backward(caller_thread):
    """A cell whose third op works by launches of another thread, 100 ns each."""
    ops = [
        op(1, "In[1]", 0, 2_000, op_type="cell", thread_id=1),
        op(2, "forward", 0, 500, 1, thread_id=1),
        op(3, "backward", 500, 1_500, 1, thread_id=1),
    ]
    calls = [call(500 + 100 * i, 600 + 100 * i, caller_thread, correlation_id=i, op_id=3)
             for i in range(1, 10)]  # fmt: skip
    work = [kernel(600 + 100 * i, 610 + 100 * i, 3, correlation_id=i) for i in range(1, 10)]
    return profile(ops, work, calls, info=info(2_000))


def test_the_thread_of_the_cell_waits_for_one_that_works_for_its_op():
    prof = backward(caller_thread=2)
    assert without_time(prof, [700], [1_200], thread=2) == 500
    assert saving_without(ProfileIndex(prof), Removed(calls=np.arange(1, 4))) == 300
    # The same work on the thread of the cell saves the same.
    assert without_time(backward(caller_thread=1), [700], [1_200]) == 500


def test_the_thread_of_the_cell_does_not_wait_while_it_works_itself():
    prof = backward(caller_thread=2)
    # While the op of the cell's thread is another one, the two work at the same time.
    assert without_time(prof, [0], [500], thread=2) == 0
