"""Findings on memory, events and streams that are made again and again: planted, and cured."""

import pytest

from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile

SOURCE = "for b in data:\n    y = f(b)\n    g(y)\n    h(y)\n"


def program(*steps, rounds=8, before=(), wait=True):
    """A loop whose round has steps (line, call, ns of the host, ns of its work)."""
    ops, work, calls, now, done = [], [], [], 0, 0
    everything = [(0, before), *((i, steps) for i in range(rounds))]
    for _, of_round in everything:
        for at, name, host, device in of_round:
            number = len(calls) + 1
            ops.append(line(number, at, now, now + host))
            calls.append(call(now, now + host, name=name, correlation_id=number, op_id=number))
            now += host
            if device:
                start = max(now, done)
                done = start + device
                work.append(kernel(start, done, number, correlation_id=number, thread_id=1))
    if wait:
        now = max(now, done)
    return profile(ops, work, calls, info=info(max(now, done)), sources={"In[1]": SOURCE})


LAUNCH = (2, "cuLaunchKernel", 10 * US, 100 * US)


def test_memory_that_is_freed_each_round_is_named_with_both_lines():
    prof = program((2, "cuMemAlloc_v2", 80 * US, 0), LAUNCH, (3, "cuMemFree_v2", 60 * US, 0))
    (found,) = of_kind(prof, "driver allocation")
    assert found.text == (
        "Device memory is allocated by the driver 7 times (560 µs in `cuMemAlloc_v2` of line 2 "
        "(`y = f(b)`)) and freed 8 times (480 µs in `cuMemFree_v2` of line 3 (`g(y)`)), again and "
        "again; 1 earlier call of a first pass not counted."
    )
    assert "empty_cache" in found.remedy
    assert prof.insights().iloc[0]["line"] == 3
    # The device can work during 100 of the 140 us that the host takes for memory.
    assert found.gain_ns == pytest.approx(8 * 40 * US, rel=0.35)


@pytest.mark.parametrize(
    ("made", "freed", "remedy"),
    [
        ("cuMemHostRegister_v2", "cuMemHostUnregister", "pinned memory once"),
        ("cuMemHostAlloc", "cuMemFreeHost", "pinned memory once"),
        ("cuMemAllocHost_v2", "cuMemFreeHost", "pinned memory once"),
        ("cuEventCreate", "cuEventDestroy_v2", "events and streams once"),
        ("cuStreamCreateWithPriority", "cuStreamDestroy_v2", "events and streams once"),
        ("cuMemCreate", "cuMemRelease", "allocate from a pool"),
        ("cuMemMap", "cuMemUnmap", "allocate from a pool"),
        ("cudaMallocHost", "cudaFreeHost", "pinned memory once"),
        ("cudaMalloc", "cudaFree", "allocate from a pool"),
        ("hostMalloc", "hostFree", "it has no pool"),
    ],
)
def test_each_resource_has_its_remedy(made, freed, remedy):
    prof = program((2, made, 300 * US, 0), LAUNCH, (4, freed, 200 * US, 0))
    (found,) = of_kind(prof, "driver allocation")
    assert remedy in found.remedy
    assert prof.evidence(1)["name"].tolist().count(freed) == 8


def test_what_a_first_pass_makes_and_what_the_end_frees_is_no_finding():
    made = [(2, "cuMemAlloc_v2", 500 * US, 0)] * 20
    assert not of_kind(program(LAUNCH, before=made), "driver allocation")
    at_the_end = [*made, LAUNCH, *[(3, "cuMemFree_v2", 500 * US, 0)] * 20]
    assert not of_kind(program(LAUNCH, before=at_the_end), "driver allocation")


def test_events_that_each_iteration_makes_are_a_finding_without_frees():
    prof = steps(lambda i: [("cuEventCreate", 300 * US)])
    (found,) = of_kind(prof, "driver allocation")
    assert "Events and streams are created 10 times" in found.text
    assert found.text.endswith("; 10 earlier calls of a first pass not counted.")
    assert not of_kind(steps(lambda i: [("cuEventCreate", 300 * US)] if i < 5 else []),
                       "driver allocation")  # fmt: skip


def steps(extra, count=20):
    """Repeats of 1 ms with a launch, and other calls before it."""
    work, calls, bounds = [], [], []
    for i in range(count):
        t = i * MS
        bounds.append([t, t + MS])
        now = t
        for name, ns in extra(i):
            calls.append(call(now, now + ns, name=name, correlation_id=len(calls) + 1))
            now += ns
        calls.append(call(now, now + 10 * US, correlation_id=len(calls) + 1))
        work.append(kernel(now + 10 * US, t + MS, correlation_id=len(calls), repeat=i))
    return profile([line(1, 1, 0, count * MS)], work, calls,
                   info=info(count * MS, repeats=bounds))  # fmt: skip


def test_memory_that_is_made_while_the_device_is_busy_saves_nothing():
    """The device has work for the whole round, whatever the host does."""
    busy = (2, "cuLaunchKernel", 10 * US, 1_000 * US)
    prof = program((2, "cuMemAlloc_v2", 80 * US, 0), busy, (3, "cuMemFree_v2", 60 * US, 0))
    assert not of_kind(prof, "driver allocation")


def test_calls_that_only_look_alike_are_no_finding():
    prof = program((2, "cuMemGetInfo_v2", 300 * US, 0), LAUNCH, (3, "cuEventRecord", 200 * US, 0))
    assert not of_kind(prof, "driver allocation")
