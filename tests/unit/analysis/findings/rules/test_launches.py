"""Findings about launches: a planted cause is found, and no finding without it."""

import pytest

from tests.helpers.planted import MS, US, info, of_kind, short_kernels
from tests.helpers.tiny import call, kernel, line, profile


def test_launches_that_keep_the_device_waiting_are_found():
    prof = short_kernels()
    (found,) = of_kind(prof, "launch-bound")
    assert "`y = model(x)`" in found.text
    assert "of 4.00 µs, 1.20 ms of it after their API calls had begun; line 7" in found.text
    # Every gap but the 16 us before each kernel would remain.
    assert found.gain_ns == 399 * 16 * US
    assert found.low_ns == 399 * 3 * US
    assert found.high_ns == min(1.5 * found.gain_ns, prof.wall_ns)
    assert prof.insights().iloc[0][["kind", "line"]].tolist() == ["launch-bound", 7]
    assert len(prof.evidence(1)) == 399
    row = prof.launches().iloc[0]
    assert (row["launches"], row["short_kernels"], row["launch_delay_ns"]) == (400, 0, 3 * US)
    assert (row["launch_idle_ns"], row["graph_saving_ns"]) == (found.gain_ns, found.gain_ns)


def test_launches_whose_calls_take_no_time_say_nothing_about_calls():
    """The host device runs a kernel within its call."""
    starts = [MS + i * 20 * US for i in range(400)]
    prof = profile(
        [line(1, 7, 0, 9 * MS)],
        [kernel(t, t + 4 * US, 1, correlation_id=i, thread_id=1) for i, t in enumerate(starts)],
        [call(t, t + 4 * US, correlation_id=i, op_id=1) for i, t in enumerate(starts)],
        info=info(9 * MS),
    )
    (found,) = of_kind(prof, "launch-bound")
    assert "(median) between kernels of 4.00 µs; line 7" in found.text


def test_launches_on_their_way_when_the_device_becomes_idle_keep_it_waiting():
    """Each call of 4 us begins half a microsecond before the kernel of the one before ends."""
    starts = [MS + i * 9 * US for i in range(400)]
    prof = profile(
        [line(1, 7, 0, 6 * MS)],
        [kernel(t + 6 * US, t + 9 * US + US // 2, 1, correlation_id=i, thread_id=1)
         for i, t in enumerate(starts)],
        [call(t, t + 4 * US, correlation_id=i, op_id=1) for i, t in enumerate(starts)],
        info=info(6 * MS),
    )  # fmt: skip
    (found,) = of_kind(prof, "launch-bound")
    assert found.gain_ns == 399 * (5 * US + US // 2)


def test_gaps_after_waits_are_not_due_to_launches():
    """Each round launches a kernel of 50 us, waits for it, and takes 40 us to the next launch."""
    rows, calls = [], []
    for i in range(300):
        t = i * 100 * US
        rows.append(kernel(t + 3 * US, t + 53 * US, 1, correlation_id=i, thread_id=1))
        calls.append(call(t, t + 2 * US, correlation_id=i, op_id=1))
        calls.append(call(t + 5 * US, t + 55 * US, name="cuStreamSynchronize",
                          correlation_id=10_000 + i, op_id=2))  # fmt: skip
    ops = [line(1, 1, 0, 30 * MS), line(2, 2, 0, 30 * MS, 1)]
    prof = profile(ops, rows, calls, info=info(30 * MS))
    # The host takes 50 us of each round, as long as the device.
    assert of_kind(prof, "wait")[0].gain_ns == pytest.approx(300 * 50 * US, rel=0.01)
    assert not of_kind(prof, "launch-bound")


@pytest.mark.parametrize("queued", [20, 60])
def test_late_launches_are_launch_bound_if_most_kernels_are_late(queued):
    """Forty launches keep the device waiting, after some that queue."""
    ops = [line(1, 7, 0, 10 * MS)]
    work = [kernel(MS + i * 10 * US, MS + (i + 1) * 10 * US, 1, correlation_id=i, thread_id=1)
            for i in range(queued)]  # fmt: skip
    calls = [call(i * US, (i + 1) * US, correlation_id=i, op_id=1) for i in range(queued)]
    for i in range(queued, queued + 40):
        start = 2 * MS + i * 20 * US
        calls.append(call(start - 3 * US, start - US, correlation_id=i, op_id=1))
        work.append(kernel(start, start + 4 * US, 1, correlation_id=i, thread_id=1))
    end = work[-1]["end_ns"]
    prof = profile(ops, work, calls, info=info(end), sources={"In[1]": "x = 1\n" * 7})
    assert len(of_kind(prof, "launch-bound")) == (queued < 40)


@pytest.mark.parametrize("how", ["queued", "graph"])
def test_launches_that_do_not_keep_the_device_waiting_are_no_finding(how):
    prof = {
        "queued": lambda: short_kernels(length=17 * US),
        "graph": lambda: short_kernels(graph_id=3, graph_node_id=1),
    }[how]()
    if how == "queued":
        assert prof.overlap()["idle_ns"].item() == 399 * 3 * US
    assert not [f for f in of_kind(prof, "launch-bound") if f.gain_ns > 0.16 * prof.wall_ns]
    if how != "queued":
        assert not of_kind(prof, "launch-bound")


@pytest.mark.parametrize(("length", "short"), [(3, 1), (4, 0)])
def test_a_short_kernel_takes_less_time_than_its_call(length, short):
    prof = profile(
        [line(1, 1, 0, 20)],
        [kernel(10, 10 + length, 1, correlation_id=1)],
        [call(0, 4, correlation_id=1, op_id=1)],
    )
    assert prof.launches()["short_kernels"].tolist() == [short]
