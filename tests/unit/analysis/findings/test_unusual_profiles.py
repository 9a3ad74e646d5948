"""Findings of profiles at the edge: few iterations, several devices, changing clocks, nesting."""

import gc
import time

import pytest

import epprof_nb
from epprof_nb import host
from tests.helpers.planted import MS, US, info, of_kind, repeats, steady
from tests.helpers.simulated.gpu import SimulatedGpu
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


def check(prof):
    """The findings, whose gains are within the profile and its bounds."""
    found = prof.insights()
    assert (found["gain_low_ns"] >= 0).all()
    assert (found["gain_low_ns"] <= found["gain_ns"]).all()
    assert (found["gain_ns"] <= found["gain_high_ns"]).all()
    assert (found["gain_high_ns"] <= prof.info["wall_ns"]).all()
    assert not found["text"].str.contains("nan|None").any()
    return found


@pytest.mark.parametrize("function", [None, "run"])
def test_a_loop_of_one_iteration_has_the_causes_of_its_lines(function):
    gpu = SimulatedGpu(function)
    with gpu.line(2):
        gpu.launch(MS)
    with gpu.line(3):
        gpu.copy(2 * US, "DtoH")
    with gpu.line(4):
        gpu.host(3 * MS)
    with gpu.line(5):
        gpu.launch(MS)
        gpu.wait()
    source = "for i in range(1):\n    y = f(x)\n    y.item()\n    x = load()\n    g(x)\n"
    found = check(gpu.profile(source))
    assert set(found["kind"]) <= {"wait", "idle", "hot line"}
    assert found["gain_ns"].max() <= 3 * MS + 100 * US


@pytest.mark.parametrize("walls", [[100 * MS], [100 * MS, 10 * MS]])
def test_repeats_too_few_for_a_steady_state_have_no_warm_up(walls):
    prof = repeats(walls)
    assert not [kind for kind in check(prof)["kind"] if kind in ("warm-up", "outliers", "drift")]


def test_repeats_that_become_faster_until_the_end_are_all_warm_up():
    walls = [(30 - i) * MS for i in range(20)]
    (found,) = of_kind(repeats(walls), "warm-up")
    check(repeats(walls))
    assert found.text.startswith("The repeats become faster until the end, by 6")
    assert found.text.endswith("%: no steady state was reached.")
    # The last three take 12 ms.
    assert found.gain_ns == sum(max(wall - 12 * MS, 0) for wall in walls)
    assert found.low_ns == 0


def test_what_follows_a_warm_up_may_still_become_faster():
    walls = [200 * MS, 100 * MS, *[int((20 - 0.3 * i) * MS) for i in range(30)]]
    (found,) = of_kind(repeats(walls), "warm-up")
    assert "The first" in found.text
    assert "the others still become faster" in found.text
    assert found.text.endswith("no steady state was reached.")
    (settled,) = of_kind(repeats([200 * MS, 100 * MS, *steady(30)]), "warm-up")
    assert "steady state" not in settled.text


@pytest.mark.parametrize("rose", [True, False])
def test_a_clock_that_rose_explains_slow_first_kernels(rose):
    gpus = [{"gpus": [{"sm_clock_mhz": clock}]} for clock in (1200 if rose else 1980, 1980)]
    walls = [16 * MS, 14 * MS, 12 * MS, *steady(20)]
    prof = repeats(walls, gpu=dict(zip(("before", "after"), gpus, strict=True)))
    (found,) = of_kind(prof, "warm-up")
    assert ("; the SM clock rose from 1,200 to 1,980 MHz." in found.text) == rose
    assert ("--lock-gpu-clocks" in found.remedy) == rose
    assert not of_kind(prof, "drift")


def on_devices(count, rounds=20):
    """Each round launches 5 ms on each device, waits for all, and prepares for 3 ms."""
    ops, work, calls, now = [], [], [], 0
    for i in range(rounds):
        begin, ends = now, []
        for device in range(count):
            calls.append(call(now, now + 10 * US, correlation_id=len(calls) + 1, op_id=3 * i + 1))
            now += 10 * US
            ends.append(now + 5 * MS)
            work.append(kernel(now, ends[-1], 3 * i + 1, device_id=device, context_id=device,
                               correlation_id=len(calls), thread_id=1))  # fmt: skip
        ops.append(line(3 * i + 1, 2, begin, now))
        begin = now
        for end in ends:
            calls.append(call(now, max(end, now) + 5 * US, correlation_id=len(calls) + 1,
                              op_id=3 * i + 2, name="cuStreamSynchronize"))  # fmt: skip
            now = max(end, now) + 5 * US
        ops += [line(3 * i + 2, 3, begin, now), line(3 * i + 3, 4, now, now + 3 * MS)]
        now += 3 * MS
    devices = [{"device_id": i, "name": f"GPU {i}", "kind": "gpu"} for i in range(count)]
    return profile(ops, work, calls, info=info(now, devices=devices))


def test_idle_time_of_several_devices_counts_once():
    gains = []
    for count in (1, 2, 4):
        found = check(on_devices(count)).iloc[0]
        assert found["kind"] == "wait"
        gains.append(found["gain_ns"])
    assert gains == pytest.approx([20 * 3 * MS] * 3, rel=0.05)


def test_devices_that_wait_for_launches_together_wait_once():
    ops, work, calls = [], [], []
    for i in range(800):
        calls.append(call(i * 10 * US, i * 10 * US + 5 * US, correlation_id=i, op_id=1))
        work.append(kernel(i * 10 * US + 5 * US, i * 10 * US + 8 * US, 1, device_id=i % 2,
                           context_id=i % 2, correlation_id=i, thread_id=1))  # fmt: skip
    ops.append(line(1, 1, 0, 8 * MS))
    prof = profile(ops, work, calls, info=info(8 * MS))
    check(prof)
    (found,) = of_kind(prof, "launch-bound")
    # Each device idles for 17 of 20 us, of which both idle together for 14.
    assert "waited 7.99 ms for launches" in found.text


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_nested_profiles_have_the_findings_of_their_own_time():
    with epprof_nb.profile() as outer:
        for _ in range(4):
            spin(0.01)
            with epprof_nb.profile() as inner:
                host.launch(spin, 0.02)
                host.synchronize()
    check(inner)
    check(outer)
    assert inner.info["wall_ns"] < outer.info["wall_ns"] / 3
    # The device works for 80 ms, which nothing saves.
    assert all(
        found.gain_ns <= outer.info["wall_ns"] - 80 * MS
        for kind in ("wait", "idle")
        for found in of_kind(outer, kind)
    )


@pytest.mark.parametrize("collects", [False, True])
def test_a_collector_that_is_off_pauses_only_if_it_is_called(collects):
    assert not gc.isenabled()  # as in all tests
    kept = [[number] for number in range(100_000)]
    with epprof_nb.profile() as prof:
        made = [[number] for number in range(len(kept))]
        if collects:
            gc.collect()
            gc.collect()
    assert len(made) == len(kept)
    assert not gc.isenabled()
    assert len(of_kind(prof, "garbage collection")) == collects
    check(prof)


def test_work_between_turns_is_not_of_the_line_that_waits():
    """A function whose only line with calls launches and waits, after 8 ms of work elsewhere."""
    rows, (stack,) = stack_rows("In[2]:1 model.py:run:4")
    work, calls, now = [], [], 0
    for i in range(12):
        now += 8 * MS
        calls.append(call(now, now + 5 * US, correlation_id=2 * i, stack_id=stack))
        work.append(kernel(now + 5 * US, now + 2 * MS, correlation_id=2 * i, thread_id=1,
                           stack_id=stack))  # fmt: skip
        calls.append(call(now + 10 * US, now + 2 * MS + 5 * US, correlation_id=2 * i + 1,
                          name="cuStreamSynchronize", stack_id=stack))  # fmt: skip
        now += 2 * MS + 5 * US
    prof = profile([], work, calls, info=info(now), sources={"model.py": "\n" * 9})
    with_stacks(prof, rows)
    (found,) = of_kind(prof, "wait")
    # The host works for 96 ms anyway, of which up to 0.1 ms a turn may be the line's.
    assert found.gain_ns <= now - 12 * (8 * MS - 100 * US)
