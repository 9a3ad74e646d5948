"""Findings about waits and the idle time after them: planted, and without the cause."""

import pandas as pd
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from tests.helpers.planted import MS, info, of_kind, synchronising
from tests.helpers.simulated.gpu import US, SimulatedGpu
from tests.helpers.tiny import activity, call, kernel, line, op, profile


def test_idle_time_of_another_line_after_a_wait_is_reported_once():
    assert not of_kind(synchronising(), "idle")
    without = of_kind(synchronising(wait=False), "idle")
    # Of the 4 ms from a kernel to the next, one is the launch; the last round has 3 ms, too.
    assert [f.gain_ns for f in without] == [10 * 3 * MS]


def test_a_wait_that_explains_little_of_the_idle_time_refers_to_it():
    """The host prepares for 27 ms, of which 5 ms would overlap with the kernel."""
    found = findings(ProfileIndex(synchronising(prepare=27 * MS)), limit=None)
    idle, wait = (next(f for f in found if f.kind == kind) for kind in ("idle", "wait"))
    # Without the wait, the host is the limit: it prepares for 27 ms of each round.
    assert (idle.gain_ns, wait.gain_ns) == (10 * 27 * MS, 10 * 5.9 * MS)
    assert wait.text.endswith(f" Finding {found.index(idle) + 1} counts this idle time, too.")
    assert "counts this" not in idle.text


def test_idle_time_after_a_wait_of_the_same_line_is_reported_once():
    ops, activities, calls = [], [], []
    for i in range(10):
        t = i * 9 * MS
        ops += [line(2 * i + 1, 2, t, t + MS // 10), line(2 * i + 2, 3, t + MS // 10, t + 9 * MS)]
        activities.append(kernel(t + MS, t + 6 * MS, 2 * i + 1, correlation_id=i, thread_id=1))
        calls.append(call(t, t + MS // 10, correlation_id=i, op_id=2 * i + 1))
        calls.append(call(t + MS // 5, t + 6 * MS, name="cuStreamSynchronize",
                          correlation_id=100 + i, op_id=2 * i + 2))  # fmt: skip
    prof = profile(ops, activities, calls, info=info(90 * MS))
    assert [f.op_id for f in of_kind(prof, "wait")] == [2]
    assert not [f for f in of_kind(prof, "idle") if "line 3" in f.text]


def test_a_line_that_waits_is_found_with_its_call():
    prof = synchronising()
    (found,) = of_kind(prof, "wait")
    assert found.text.startswith(
        "Line 3 (`total += y.item()`) waits for the GPU in `.item()` 9 times"
    )
    # The kernels of 5 ms remain, and the launch of the first.
    won = 90 * MS - (MS + 10 * 5 * MS)
    assert (found.low_ns, found.gain_ns) == (0.75 * won, won)
    # More than the idle time of another run cannot be won.
    assert found.high_ns == 42 * MS
    rows = prof.insights()
    row = rows[rows["kind"] == "wait"].iloc[0]
    evidence = prof.evidence(row)
    assert evidence["name"].unique().tolist() == ["cuStreamSynchronize"]
    pd.testing.assert_frame_equal(
        evidence, prof.api_calls.loc[evidence.index], check_categorical=False
    )
    waits = prof.waits().iloc[0]
    assert waits[["line", "waited_for", "waits", "wait_ns", "busy_ns"]].tolist() == [
        3, "kernel", 10, 50 * MS, 50 * MS,
    ]  # fmt: skip
    assert waits[["idle_after_ns", "avoidable_ns"]].tolist() == [36 * MS, 36 * MS]


def test_a_wait_is_that_of_its_longest_work_and_of_the_outer_call():
    """A runtime call waits in a call of the driver; the second wait is shorter."""
    work = [
        kernel(start * MS, end * MS, 1, name=name, correlation_id=i, thread_id=1)
        for i, (name, start, end) in enumerate([("gemm", 1, 31), ("add", 40, 45), ("mul", 50, 60)])
    ]
    calls = [call(at * MS, at * MS + 1, correlation_id=i) for i, at in enumerate((0, 38, 48))]
    calls += [
        call(2 * MS, 32 * MS, name="cudaStreamSynchronize"),
        call(3 * MS, 32 * MS - 5, name="cuStreamSynchronize"),
        call(40 * MS, 46 * MS, name="cudaStreamSynchronize"),
    ]
    found = profile([], work, calls, info=info(60 * MS)).waits().set_index("api_name")
    assert found["waited_for"].tolist() == ["gemm", "gemm"]
    assert found.loc["cudaStreamSynchronize", "idle_after_ns"] == 14 * MS
    assert found.loc["cuStreamSynchronize", "idle_after_ns"] == 0


def test_a_wait_of_work_that_the_host_delays_anyway_saves_nothing():
    """Each round launches a short kernel, waits for it, and works on the host for 5 ms."""
    gpu = SimulatedGpu()
    for _ in range(20):
        with gpu.line(2):
            gpu.launch(2 * US)
        with gpu.line(3):
            gpu.wait()
        with gpu.line(4):
            gpu.host(5 * MS)
    prof = gpu.profile("\ny = f(x)\ntotal += y.item()\nx = load()\n")
    assert not of_kind(prof, "wait")
    assert "`x = load()`" in findings(ProfileIndex(prof))[0].text


@pytest.mark.parametrize("function", [None, "train"])
def test_work_launched_in_the_line_that_waits_is_not_won(function):
    """One line copies, launches 20 ms, reads the result, and works on the host for 1 ms."""
    gpu = SimulatedGpu(function)
    for _ in range(10):
        with gpu.line(2):
            gpu.copy(MS)
            gpu.launch(20 * MS)
            gpu.copy(MS, "DtoH")
            gpu.host(MS)
    gpu.wait()
    prof = gpu.profile("for x in data:\n    y = to_device(x); f(y); total += float(y)\n")
    (found,) = of_kind(prof, "wait")
    idle, copies = prof.wall_ns - 10 * 22 * MS, 10 * MS
    assert 19 * MS < found.gain_ns <= idle + copies < 21 * MS
    assert found.gain_ns <= found.high_ns <= 1.05 * (idle + copies)


@pytest.mark.parametrize("prepare", range(1, 40, 3))
def test_no_remedy_vanishes_when_a_wait_explains_idle_time(prepare):
    """The host prepares for some time after each wait; kernels take 5 ms."""
    found = findings(ProfileIndex(synchronising(prepare=prepare * MS)), limit=None)
    told = " ".join(f.remedies for f in found)
    assert "Read the value later" in told
    assert "work while the GPU is busy" in told or "ake this work faster" in told


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_to_pageable_memory_is_a_wait_whatever_its_call_is_named(waits):
    """Each round launches a kernel of 5 ms and copies its result, and prepares for 3 ms."""
    ops, activities, calls = [], [], []
    for i in range(10):
        t = i * 9 * MS
        ops += [line(10 * i + 1, 2, t, t + MS // 10), line(10 * i + 2, 3, t + MS // 10, t + 6 * MS),
                line(10 * i + 3, 4, t + 6 * MS, t + 9 * MS)]  # fmt: skip
        activities += [
            kernel(t + MS, t + 5 * MS, 10 * i + 1, correlation_id=2 * i, thread_id=1),
            activity("memcpy", t + 5 * MS, t + 6 * MS - 100, 10 * i + 2, copy_kind="DtoH",
                     src_kind="device", dst_kind="pageable" if waits else "pinned", bytes=8,
                     correlation_id=2 * i + 1, thread_id=1),
        ]  # fmt: skip
        calls += [
            call(t, t + MS // 10, correlation_id=2 * i, op_id=10 * i + 1),
            call(t + MS, t + 6 * MS, name="cuMemcpyDtoHAsync_v2", correlation_id=2 * i + 1,
                 op_id=10 * i + 2),
        ]  # fmt: skip
    source = "for x in data:\n    y = f(x)\n    z = y.get()\n    x = load()\n"
    prof = profile(ops, activities, calls, info=info(90 * MS), sources={"In[1]": source})
    found = of_kind(prof, "wait")
    assert len(found) == waits
    if waits:
        assert found[0].text.startswith("Line 3 (`z = y.get()`) waits for the GPU in `.get()` 9")
        assert prof.evidence(1)["name"].unique().tolist() == ["cuMemcpyDtoHAsync_v2"]


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("total += float(y.item())", " in `.item()`"), ("rows.append(y.get())", " in `.get()`"),
        ("h = np.sum(host.to_host(y)[0])", " in `to_host(...)`"),
        ("loss = float(y)", " in `float(...)`"), ("f(d.get('key'))", ""), ("y.wait()", ""),
    ],
)  # fmt: skip
def test_the_call_that_waits_is_named(statement, call):
    (found,) = of_kind(synchronising(statement=statement), "wait")
    assert f"waits for the GPU{call} 9 times" in found.text
    # No record shows a copy to the host, and no name a read.
    assert ("Remove this wait" in found.remedy) == (not call)


@pytest.mark.parametrize("reads", [False, True])
def test_a_synchronization_after_a_copy_of_another_line_reads(reads):
    gpu = SimulatedGpu()
    for _ in range(10):
        with gpu.line(2):
            gpu.launch(5 * MS)
            if reads:
                gpu.copy(US, "DtoH", memory="pinned")
        with gpu.line(3):
            gpu.wait()
        with gpu.line(4):
            gpu.host(3 * MS)
    found = of_kind(
        gpu.profile("\nbuffer.copy_(f(x))\ntorch.cuda.synchronize()\nx = load()\n"), "wait"
    )
    assert ["Read the value later" in f.remedy for f in found] == [reads]


@pytest.mark.parametrize("kind", ["HtoD", "DtoH"])
def test_a_wait_for_a_copy_of_inputs_reads_nothing(kind):
    gpu = SimulatedGpu()
    for _ in range(10):
        with gpu.line(2):
            gpu.copy(5 * MS, kind, memory="pinned")
        with gpu.line(3):
            gpu.wait()
        with gpu.line(4):
            gpu.host(3 * MS)
            gpu.launch(MS)
    prof = gpu.profile("\nx.copy_(batch)\ntorch.cuda.synchronize()\nf(prepare(x))\n")
    assert len(of_kind(prof, "wait")) == (kind == "DtoH")


@pytest.mark.parametrize("waiting", [1, 2], ids=["after the run", "in the run"])
def test_the_remedy_for_waits_of_a_session_is_binding(waiting):
    ops, activities, calls = [], [], []
    for i in range(10):
        t = i * 9 * MS
        ops += [line(3 * i + 1, 2, t, t + 6 * MS),
                op(3 * i + 2, "model_run", t, t + 6 * MS, 3 * i + 1, category="session",
                   op_type="run", session=1),
                line(3 * i + 3, 3, t + 6 * MS, t + 9 * MS)]  # fmt: skip
        activities.append(kernel(t + MS, t + 6 * MS, 3 * i + 2, correlation_id=i, thread_id=1))
        calls += [call(t, t + MS // 10, correlation_id=i, op_id=3 * i + 2),
                  call(t + MS, t + 6 * MS, name="cuStreamSynchronize", correlation_id=100 + i,
                       op_id=3 * i + waiting)]  # fmt: skip
    (found,) = of_kind(profile(ops, activities, calls, info=info(90 * MS)), "wait")
    assert "run_with_iobinding" in found.remedy
    (other,) = of_kind(synchronising(), "wait")
    assert "run_with_iobinding" not in other.remedy


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_waits_that_delay_a_launch_are_found_however_few(rounds):
    assert len(of_kind(synchronising(rounds=rounds), "wait")) == (rounds > 1)


def test_a_line_that_does_not_wait_is_no_finding():
    prof = synchronising(wait=False)
    assert not of_kind(prof, "wait")
    assert len(prof.waits()) == 0


@pytest.mark.parametrize("held", [False, True])
def test_work_that_an_event_holds_is_found(held):
    """Line 2 launches at once, or after 40 ms of its own."""
    called = 2 * MS if held else 42 * MS
    prof = profile(
        [line(1, 1, 0, MS), line(2, 2, MS, 60 * MS)],
        [kernel(MS, 3 * MS, 1, correlation_id=1, thread_id=1),
         kernel(43 * MS, 60 * MS, 2, correlation_id=2, thread_id=1)],
        [call(0, MS, correlation_id=1, op_id=1),
         call(called, called + MS, correlation_id=2, op_id=2)],
        info=info(60 * MS), sources={"In[1]": "y = f(x)\nz = g(y)\n"},
    )  # fmt: skip
    found = of_kind(prof, "held work")
    assert len(found) == held
    assert len(of_kind(prof, "idle")) == (not held)
    if held:
        assert found[0].text == (
            "GPU idle 40.0 ms in 1 gap while launched work of line 2 (`z = g(y)`) was held by an "
            "event or other work."
        )
        assert found[0].evidence_rows(prof).tolist() == [1]


@pytest.mark.parametrize("begun", [MS, 12 * MS])
def test_first_work_that_starts_late_is_not_blamed_on_the_line_that_waits_for_it(begun):
    """Line 1 launches at once, but the device begins after 30 ms; for most, line 2 waits."""
    prof = profile(
        [line(1, 1, 0, MS), line(2, 2, MS, 90 * MS)],
        [kernel(31 * MS, 89 * MS, 1, correlation_id=1, thread_id=1)],
        [call(MS // 10, MS // 5, correlation_id=1, op_id=1),
         call(begun, 90 * MS, correlation_id=2, op_id=2, name="hostStreamSynchronize")],
        info=info(90 * MS) | {"devices": [{"device_id": 0, "kind": "host", "name": "host"}]},
        sources={"In[1]": "host.launch(f, x)\ny = host.to_host(x)\n"},
    )  # fmt: skip
    assert not of_kind(prof, "idle")
    (found,) = of_kind(prof, "held work")
    assert found.text == (
        "Device idle 29.8 ms in 1 gap while launched work of line 1 (`host.launch(f, x)`) was held "
        "by an event or other work, by the GIL or by other threads of the CPU; the host waited in "
        "line 2 (`y = host.to_host(x)`)."
    )
    assert prof.gaps()["cause"].tolist()[0] == "held"


@pytest.mark.parametrize("launched", [12, 60])
def test_idle_time_is_not_of_a_wait_after_the_launch_that_ends_it(launched):
    """Work of another stream was held by an event, or is launched after the wait."""
    prof = profile(
        [line(1, 1, 0, 100)],
        [kernel(15, 50, 1, correlation_id=1), kernel(80, 90, 1, correlation_id=2, stream_id=8)],
        [
            call(10, 11, correlation_id=1, op_id=1),
            call(launched, launched + 1, correlation_id=2, op_id=1),
            call(20, 52, correlation_id=3, op_id=1, name="cuStreamSynchronize"),
        ],
        info={"wall_ns": 100},
    )
    (wait,) = prof.waits().to_dict("records")
    assert wait["idle_after_ns"] == (0 if launched < 20 else 30)
