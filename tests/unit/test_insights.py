"""Findings: a planted cause is found with its line, gain and evidence; without it there is none."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny import activity, call, kernel, line, op, profile

from epprof_nb.analysis.findings import gain_text
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.insights import findings
from epprof_nb.analysis.overlap_findings import exposed_communication
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile

MS, US = 1_000_000, 1_000
CUDA = {"devices": [{"device_id": 0, "name": "GPU", "kind": "cuda"}]}


def info(wall, **more):
    return {"wall_ns": wall, **CUDA, **more}


def of_kind(prof, kind):
    return [f for f in findings(ProfileIndex(prof), limit=None) if f.kind == kind]


def short_kernels(pitch=20 * US, length=4 * US, count=400, **more):
    """Kernels of 4 us, launched every 20 us: each starts 3 us after its call of 2 us began."""
    starts = [MS + i * pitch for i in range(count)]
    return profile(
        [line(1, 1, 0, MS), line(2, 7, MS, MS + count * pitch)],
        [kernel(t + 3 * US, t + 3 * US + length, 2, correlation_id=i, thread_id=1, **more)
         for i, t in enumerate(starts)],
        [call(t, t + 2 * US, correlation_id=i, op_id=2) for i, t in enumerate(starts)],
        info=info(MS + count * pitch),
        sources={"In[1]": "x = 1\n" * 6 + "y = model(x)\n"},
    )  # fmt: skip


def test_launches_that_keep_the_device_waiting_are_found():
    prof = short_kernels()
    (found,) = of_kind(prof, "launch-bound")
    assert "`y = model(x)`" in found.text
    # Every gap but the 16 us before each kernel would remain.
    assert found.gain_ns == 399 * 16 * US
    assert found.low_ns == 399 * 3 * US
    assert found.high_ns == found.gain_ns
    assert prof.insights().iloc[0][["kind", "line"]].tolist() == ["launch-bound", 7]
    assert len(prof.evidence(1)) == 399
    row = prof.launches().iloc[0]
    assert (row["launches"], row["short_kernels"], row["launch_delay_ns"]) == (400, 0, 3 * US)
    assert (row["launch_idle_ns"], row["graph_saving_ns"]) == (found.gain_ns, found.gain_ns)


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
    assert of_kind(prof, "wait")[0].gain_ns == 299 * 48 * US
    assert not of_kind(prof, "launch-bound")


@pytest.mark.parametrize("how", ["queued", "few", "graph"])
def test_launches_that_do_not_keep_the_device_waiting_are_no_finding(how):
    prof = {
        "queued": lambda: short_kernels(length=17 * US),
        "few": lambda: short_kernels(count=40),
        "graph": lambda: short_kernels(graph_id=3, graph_node_id=1),
    }[how]()
    if how == "queued":
        assert prof.overlap()["idle_ns"].item() == 399 * 3 * US
    assert not [f for f in of_kind(prof, "launch-bound") if f.gain_ns > 0.16 * prof.wall_ns]
    if how != "queued":
        assert not of_kind(prof, "launch-bound")


def synchronising(wait=True, rounds=10, statement="total += y.item()", prepare=3 * MS):
    """Each round launches a kernel of 5 ms, waits for it, and prepares the next one."""
    ops, activities, calls = [], [], []
    for i in range(rounds):
        t = i * (6 * MS + prepare)
        ops += [line(10 * i + 1, 2, t, t + MS // 10), line(10 * i + 2, 3, t + MS // 10, t + 6 * MS),
                line(10 * i + 3, 4, t + 6 * MS, t + 6 * MS + prepare)]  # fmt: skip
        activities.append(kernel(t + MS, t + 6 * MS, 10 * i + 1, correlation_id=i, thread_id=1))
        calls.append(call(t, t + MS // 10, correlation_id=i, op_id=10 * i + 1))
        if wait:
            calls.append(call(t + MS, t + 6 * MS, name="cuStreamSynchronize",
                              correlation_id=1_000 + i, op_id=10 * i + 2))  # fmt: skip
    source = f"for x in data:\n    y = f(x)\n    {statement}\n    x = load()\n"
    wall = rounds * (6 * MS + prepare)
    return profile(ops, activities, calls, info=info(wall), sources={"In[1]": source})


def test_idle_time_of_another_line_after_a_wait_is_reported_once():
    between = [f for f in of_kind(synchronising(), "idle") if "last work" not in f.text]
    assert not between
    without = [f for f in of_kind(synchronising(wait=False), "idle") if "last work" not in f.text]
    assert [f.gain_ns for f in without] == [36 * MS]


def test_a_wait_that_explains_little_of_the_idle_time_refers_to_it():
    """The host prepares for 27 ms, of which 5 ms would overlap with the kernel."""
    found = findings(ProfileIndex(synchronising(prepare=27 * MS)), limit=None)
    idle, wait = (next(f for f in found if f.kind == kind) for kind in ("idle", "wait"))
    assert (idle.gain_ns, wait.gain_ns) == (9 * 28 * MS, 9 * 5 * MS)
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
    # Each gap of 4 ms could have been prepared while the kernel of 5 ms ran.
    assert (found.low_ns, found.gain_ns, found.high_ns) == (32 * MS, 36 * MS, 36 * MS)
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


@pytest.mark.parametrize("pinned", [False, True])
def test_pageable_copies_are_measured_against_pinned_ones(pinned):
    copies = [
        activity("memcpy", i * 2 * MS, (i * 2 + 1) * MS, 1, bytes=10**7, copy_kind="HtoD",
                 src_kind="pageable", dst_kind="device")
        for i in range(10)
    ]  # fmt: skip
    if pinned:
        copies.append(activity("memcpy", 30 * MS, 31 * MS, 1, bytes=4 * 10**7, copy_kind="HtoD",
                               src_kind="pinned", dst_kind="device"))  # fmt: skip
    prof = profile([line(1, 1, 0, 40 * MS)], copies, info=info(40 * MS))
    (found,) = of_kind(prof, "pageable copies")
    assert found.gain_ns == (7.5 * MS if pinned else 5 * MS)
    assert found.low_ns == (found.gain_ns // 2 if pinned else 0)
    assert found.evidence_rows(prof).tolist() == list(range(10))
    row = prof.transfers().iloc[0]
    assert row["bandwidth"] == 1e10
    assert row["peak_bandwidth"] == (4e10 if pinned else 1e10)
    assert row[["copies", "repeated", "exposed_ns"]].tolist() == [10, 9, 10 * MS]


@pytest.mark.parametrize("known", ["measured", "pcie", "other GPU", "damaged", "none"])
def test_pageable_copies_are_measured_against_the_link(known):
    copies = [
        activity("memcpy", i * 2 * MS, (i * 2 + 1) * MS, 1, bytes=10**7, copy_kind="HtoD",
                 src_kind="pageable", dst_kind="device")
        for i in range(10)
    ]  # fmt: skip
    gpu = {"name": "GPU", "pcie_generation": 5, "pcie_lanes": 16}
    peaks = {"flops_per_s": {}, "bytes_per_s": 4e12, "link_bytes_per_s": {"HtoD": 5e10}}
    more = {
        "measured": {"peaks": {"0": peaks}, "gpu": {"before": {"gpus": [gpu]}}},
        "pcie": {"gpu": {"before": {"gpus": [gpu]}}},
        "other GPU": {"gpu": {"before": {"gpus": [gpu | {"name": "another"}]}}},
        "damaged": {"gpu": {"before": {"gpus": [7, gpu | {"pcie_lanes": "x"}]}}},
        "none": {},
    }[known]
    prof = profile([line(1, 1, 0, 40 * MS)], copies, info=info(40 * MS, **more))
    (found,) = of_kind(prof, "pageable copies")
    # 100 MB take 10 ms, 2 ms at 50 GB/s, 1.8 ms at 87 % of 63 GB/s, or half of the time at best.
    saved = {"measured": 8 * MS, "pcie": 10 * MS - round(1e17 / (0.87 * 16 * 3.938e9))}
    assert found.gain_ns == pytest.approx(saved.get(known, 5 * MS), abs=1)
    assert (found.low_ns == 0) == (known not in saved)
    assert prof.transfers()["peak_bandwidth"].item() == pytest.approx(
        {"measured": 5e10, "pcie": 0.87 * 16 * 3.938e9}.get(known, 1e10)
    )


def pipeline(overlapping):
    """Copies of 2 ms and kernels of 3 ms in turn, or each copy beside the kernel before it."""
    rows = []
    for i in range(10):
        t = i * (3 if overlapping else 5) * MS
        rows.append(activity("memcpy", t, t + 2 * MS, 1, stream_id=8, bytes=10**6,
                             copy_kind="HtoD", src_kind="pinned", dst_kind="device"))  # fmt: skip
        start = t + (3 if overlapping else 2) * MS
        rows.append(kernel(start, start + 3 * MS, 2))
    ops = [line(1, 1, 0, 60 * MS), line(2, 2, 0, 60 * MS)]
    return profile(ops, rows, info=info(60 * MS))


def test_copies_that_could_overlap_are_found():
    (found,) = of_kind(pipeline(overlapping=False), "copies that could overlap")
    assert found.gain_ns == 18 * MS
    assert not of_kind(pipeline(overlapping=True), "copies that could overlap")


@pytest.mark.parametrize("is_hidden", [False, True])
def test_communication_that_nothing_hides_is_found(is_hidden):
    rows = []
    for i in range(5):
        t = 10 * i * MS
        rows.append(kernel(t, t + 6 * MS, 1))
        start = t + (1 if is_hidden else 6) * MS
        rows.append(kernel(start, start + 4 * MS, 2, name="ncclDevKernel_AllReduce_Sum_f32",
                           stream_id=9))  # fmt: skip
    source = "loss.backward()\nreduce(gradients)\n"
    prof = profile([line(1, 1, 0, 50 * MS), line(2, 2, 0, 50 * MS)], rows, info=info(50 * MS),
                   sources={"In[1]": source})  # fmt: skip
    found = of_kind(prof, "exposed communication")
    assert len(found) == (not is_hidden)
    if found:
        assert found[0].text == (
            "GPU 0 only communicated for 20.0 ms (40 % of its span), most of all in line 2 "
            "(`reduce(gradients)`)."
        )
        assert (found[0].low_ns, found[0].gain_ns) == (0, 20 * MS)
        assert found[0].evidence_rows(prof).tolist() == [1, 3, 5, 7, 9]


def test_a_range_without_a_name_has_no_finding():
    prof = profile([op(1, None, 0, 10 * MS)], [kernel(0, 9 * MS, 1)], info=info(10 * MS))
    assert not of_kind(prof, "hot op")


def test_communication_that_ends_before_it_starts_is_not_the_longest():
    name = "ncclDevKernel_AllReduce_Sum_f32"
    damaged = kernel(5, 5, 1, name=name) | {"end_ns": -(2**63) + 1}
    ops = [line(1, 1, 0, 50 * MS), line(2, 2, 0, 50 * MS)]
    rows = [damaged, kernel(0, 10 * MS, 2, name=name), kernel(10 * MS, 20 * MS, 1)]
    (found,) = exposed_communication(ProfileIndex(profile(ops, rows)))
    assert found.text.endswith("most of all in line 2.")
    assert not list(exposed_communication(ProfileIndex(profile([], [damaged]))))


@pytest.mark.filterwarnings("error")
def test_times_at_the_end_of_64_bits_are_averaged():
    prof = profile([op(1, "a", 0, 2**63 - 1), op(2, "b", 0, 10, count=2)], [kernel(0, 5, 1)])
    mean_ns = prof.by_op()["mean_host_ns"].tolist()
    assert mean_ns[0] > 2**62
    assert mean_ns[1] == 5
    queued = kernel(2**63 - 9, 2**63 - 1, correlation_id=1)
    late = profile([], [queued], [call(0, 1, correlation_id=1)])
    assert late.by_kernel()["launch_delay_ns"].tolist() == [2**61]


@pytest.mark.parametrize("count", [20, 200])
def test_many_small_copies_are_found(count):
    copies = [
        activity("memcpy", i * 10 * US, i * 10 * US + 5 * US, 1, bytes=4, copy_kind="DtoH",
                 src_kind="device", dst_kind="pageable")
        for i in range(count)
    ]  # fmt: skip
    prof = profile([line(1, 1, 0, 2 * MS)], copies, info=info(2 * MS))
    found = of_kind(prof, "small copies")
    assert [f.gain_ns for f in found] == ([199 * 5 * US] if count == 200 else [])


def repeats(walls, **more):
    ends = np.cumsum(walls)
    rows = [kernel(end - wall, end, 1, repeat=i)
            for i, (wall, end) in enumerate(zip(walls, ends.tolist(), strict=True))]  # fmt: skip
    bounds = [[int(end - wall), int(end)] for wall, end in zip(walls, ends, strict=True)]
    return profile([line(1, 1, 0, int(ends[-1]))], rows,
                   info=info(int(ends[-1]), repeats=bounds, **more))  # fmt: skip


def steady(n=20, seed=0):
    return (np.random.default_rng(seed).normal(10, 0.05, n) * MS).astype(int).tolist()


def test_warm_up_and_outliers_are_told_from_the_steady_state():
    walls = [50 * MS, 20 * MS, *steady()]
    walls[12] = 40 * MS
    prof = repeats(walls)
    phases = prof.steadiness()["phase"].tolist()
    assert phases == ["warm-up"] * 2 + ["steady"] * 10 + ["outlier"] + ["steady"] * 9
    (warm_up,), (outlier,) = of_kind(prof, "warm-up"), of_kind(prof, "outliers")
    assert warm_up.gain_ns == pytest.approx(50 * MS, rel=0.02)
    assert outlier.gain_ns == pytest.approx(30 * MS, rel=0.02)
    assert outlier.text.startswith("1 repeat (12) took 30.")
    assert "mostly while the GPU was busy" in outlier.text
    assert outlier.evidence_rows(prof).tolist() == [12]


@pytest.mark.parametrize(("scale", "count"), [(0.5, 1), (0.001, 0)])
def test_outliers_of_a_few_microseconds_are_no_finding(scale, count):
    walls = steady()
    walls[12] = 15 * MS
    prof = repeats([int(wall * scale) for wall in walls])
    assert (prof.steadiness()["phase"] == "outlier").sum() == 1
    assert len(of_kind(prof, "outliers")) == count


def test_drift_is_explained_by_a_clock_that_fell():
    walls = [wall + i * MS // 10 for i, wall in enumerate(steady(40))]
    before = {"gpus": [{"sm_clock_mhz": 1980}]}
    after = {"gpus": [{"sm_clock_mhz": 1400, "temperature_c": 88,
                       "clock_events": ["gpu idle", "hardware thermal slowdown"]}]}  # fmt: skip
    (found,) = of_kind(repeats(walls, gpu={"before": before, "after": after}), "drift")
    assert "fell from 1,980 to 1,400 MHz (88 °C, hardware thermal slowdown)" in found.text
    # 0 to 3.9 ms more than the first repeat.
    assert found.gain_ns == pytest.approx(39 * 40 / 2 * MS / 10, rel=0.1)
    assert found.low_ns < found.gain_ns < found.high_ns
    (unexplained,) = of_kind(repeats(walls), "drift")
    assert "clock" not in unexplained.text


@pytest.mark.parametrize("of", [{}, {"cell": "train.py", "script": "train.py"}, {"cell": "In[1]"}])
def test_scripts_get_no_advice_for_cells(of):
    prof = repeats([90 * MS, *steady()], **of)
    late = profile([line(1, 1, 0, 9 * MS)], [kernel(5 * MS, 9 * MS, 1)], info=info(9 * MS, **of))
    (warm_up,), (idle,) = of_kind(prof, "warm-up"), of_kind(late, "idle")
    is_cell = of.get("cell") == "In[1]"
    assert ("%%gpuprofile --warmup N" in warm_up.remedy) == is_cell
    assert ("before the cell" in idle.remedy) == is_cell
    for found in (warm_up, idle):
        assert ("`epprof run --steps A:B`; `epprof_nb.step()`" in found.remedy) == (not is_cell)


def test_without_device_work_findings_do_not_speak_of_a_device():
    fell = {
        "before": {"gpus": [{"sm_clock_mhz": 1980}]},
        "after": {"gpus": [{"sm_clock_mhz": 900}]},
    }
    walls = [90 * MS, *(wall + i * MS // 10 for i, wall in enumerate(steady(40)))]
    walls[30] = 60 * MS
    prof = repeats(walls, gpu=fell)
    on_host = Profile(prof.tables | {"activities": profile().tables["activities"]}, prof.info)
    for kind in ("warm-up", "outliers", "drift"):
        (found,), (of_device,) = of_kind(on_host, kind), of_kind(prof, kind)
        told = found.text + found.remedy
        assert not any(word in told for word in ("device", "GPU", "SM clock"))
        assert "GPU" in of_device.text or "SM clock" in of_device.text


@pytest.mark.parametrize("seed", range(5))
def test_steady_repeats_are_no_finding(seed):
    prof = repeats(steady(seed=seed))
    assert set(prof.steadiness()["phase"]) == {"steady"}
    for kind in ("warm-up", "outliers", "drift"):
        assert not of_kind(prof, kind)


def loop(walls, coalesced=0):
    """A loop in line 2 whose body has lines 3 and 4; its last rounds may share a row."""
    ends = (MS + np.cumsum(walls)).tolist()
    ops = [line(1, 1, 0, MS), line(2, 2, MS, ends[-1] + coalesced * MS)]
    for i, (wall, end) in enumerate(zip(walls, ends, strict=True)):
        ops += [line(10 + 2 * i, 3, end - wall, end - wall // 2, 2),
                line(11 + 2 * i, 4, end - wall // 2, end, 2)]  # fmt: skip
    if coalesced:
        ops.append(line(900, 3, ends[-1], ends[-1] + coalesced * MS, 2, count=coalesced))
    work = [kernel(end - wall, end - wall // 2, 10 + 2 * i)
            for i, (wall, end) in enumerate(zip(walls, ends, strict=True))]  # fmt: skip
    source = "x = f()\nfor batch in data:\n    y = g(batch)\n    log(y)\n"
    return profile(ops, work, info=info(ops[1]["end_ns"]), sources={"In[1]": source})


@pytest.mark.parametrize("coalesced", [0, 40])
def test_the_warm_up_of_a_loop_is_found(coalesced):
    prof = loop([100 * MS, *steady(12)], coalesced)
    table = prof.steadiness()
    # How long the last known round took is not known if others follow in its row.
    assert len(table) == (12 if coalesced else 13)
    assert table["phase"].tolist()[:2] == ["warm-up", "steady"]
    (found,) = of_kind(prof, "warm-up")
    assert found.text.startswith("The first iteration of line 2 (`for batch in data:`) took 90.")
    assert found.gain_ns == pytest.approx(90 * MS, rel=0.02)
    assert found.evidence_rows(prof).tolist() == [0]
    rows = prof.insights()
    assert rows.loc[rows["kind"] == "warm-up", "line"].tolist() == [2]


@pytest.mark.parametrize("make", [lambda: loop([100 * MS, *steady(8)]), profile])
def test_without_a_loop_there_are_no_iterations(make):
    assert len(make().steadiness()) == 0


def test_the_setup_of_a_script_is_no_warm_up():
    prof = repeats([90 * MS, *steady()], first_step=0)
    assert prof.steadiness()["number"].tolist() == list(range(1, 21))
    assert not of_kind(prof, "warm-up")
    assert of_kind(repeats([90 * MS, *steady()]), "warm-up")
    assert repeats(steady(), first_step=7).steadiness()["number"].tolist() == list(range(7, 27))


def test_findings_that_save_less_than_2_percent_are_left_out():
    def idle(gap):
        return profile([op(1, "f", 0, 100 * MS)], [kernel(0, 50 * MS, 1),
                       kernel(50 * MS + gap, 100 * MS, 1)], info=info(100 * MS))  # fmt: skip

    assert len(of_kind(idle(2 * MS), "idle")) == 1
    assert not of_kind(idle(2 * MS - 1), "idle")


def test_insights_are_ranked_and_have_bounds():
    rows = synchronising().insights()
    assert rows["rank"].tolist() == list(range(1, len(rows) + 1))
    assert rows["gain_ns"].is_monotonic_decreasing
    assert (rows["gain_low_ns"] <= rows["gain_ns"]).all()
    assert (rows["gain_ns"] <= rows["gain_high_ns"]).all()
    assert (rows["gain_ns"] >= 0.02 * 90 * MS).all()
    assert rows["remedy"].str.endswith(".").all()


def test_each_kind_is_documented():
    root = Path(__file__).parents[2]
    sources = [
        *root.glob("epprof_nb/analysis/*find*.py"),
        root / "epprof_nb/analysis/hot_places.py",
    ]
    text = "".join(path.read_text("utf-8") for path in sources)
    kinds = sorted({*re.findall(r'\bkind="([^"]+)"', text)} - {"stable"})  # a kind of np.argsort
    rows = (root / "docs" / "findings.md").read_text("utf-8").split("| kind |")[1].split("\n\n")[0]
    told = [
        kind for row in rows.splitlines() for kind in re.findall("`([^`]+)`", row.split("|")[1])
    ]
    assert sorted(told) == kinds


@pytest.mark.parametrize("causes", [1, 2])
def test_a_hot_line_follows_the_causes(causes):
    gaps = [0, 8 * MS, 5 * MS][: causes + 1]
    ops, work, end = [], [], 0
    for number, gap in enumerate(gaps, 1):
        length = 70 * MS if number == 1 else 2 * MS
        ops.append(line(number, number, end, end + gap + length))
        work.append(kernel(end + gap, end + gap + length, number, thread_id=1))
        end += gap + length
    prof = profile(ops, work, info=info(end))
    assert prof.insights()["kind"].tolist() == ["idle"] * causes + ["hot line"]
    # What the output of a cell shows.
    assert [f.kind for f in findings(ProfileIndex(prof))] == [
        "idle",
        ["hot line", "idle"][causes - 1],
    ]


@pytest.mark.parametrize("make", [synchronising, short_kernels, lambda: synthetic_profile(3_000)])
def test_evidence_are_rows_that_the_timeline_highlights(make):
    prof = make()
    rows = prof.insights()
    assert len(rows)
    for _, row in rows.iterrows():
        evidence = prof.evidence(row)
        assert len(evidence)
        view = prof.timeline(select=evidence)
        assert sum(map(len, view._selected_rows.values())) == len(evidence)


def test_evidence_of_something_else_is_refused():
    prof = synchronising()
    row = prof.insights().iloc[0]
    other = short_kernels()
    with pytest.raises(ValueError, match="of another profile"):
        other.evidence(row)
    with pytest.raises(ValueError, match="has no findings"):
        profile().evidence(1)
    for wrong in (prof.activities.iloc[0], "idle", None, prof.insights()):
        with pytest.raises(TypeError, match="expects a row"):
            prof.evidence(wrong)
    pd.testing.assert_frame_equal(prof.evidence(row), prof.evidence(np.int64(1)))
    pd.testing.assert_frame_equal(prof.evidence(row.to_dict()), prof.evidence(1))


def test_the_outputs_say_what_to_change_and_what_it_saves():
    prof = synchronising()
    advice = (
        "Read the value later, or less often, so that the next work is launched while the GPU is "
        "busy (saves about 36.0 ms, 32.0 ms to 36.0 ms)."
    )
    bundle = prof._repr_mimebundle_()
    assert advice in bundle["text/plain"]
    assert advice in bundle["text/html"]
    assert "Saves about 36.0 ms, 32.0 ms to 36.0 ms." in prof.summary()
    first = json.loads(prof.summary(format="json"))["findings"][0]
    row = prof.insights().iloc[first["rank"] - 1]
    for name in ("kind", "text", "remedy", "gain_ns", "gain_low_ns", "gain_high_ns"):
        assert first[name] == row[name]


TIMES = st.one_of(st.integers(0, 10**9), st.sampled_from([-(2**63), 2**63 - 1, -1, 2**61]))
ROWS = st.lists(
    st.tuples(st.sampled_from(["kernel", "memcpy", "graph_launch", "synchronization", None]),
              TIMES, TIMES, st.integers(-1, 4), st.integers(-1, 2), st.integers(-1, 9)),
    max_size=30,
)  # fmt: skip
CALLS = st.lists(
    st.tuples(st.sampled_from(["cuLaunchKernel", "cuStreamSynchronize", "cuMemcpy", None]),
              TIMES, TIMES, st.integers(-1, 4), st.integers(-1, 9)),
    max_size=30,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@example([("kernel", 0, 2**63 - 1, 0, 0, 0)], [], 0)
@given(ROWS, CALLS, st.integers(0, 10**9))
def test_damaged_profiles_have_insights_with_bounds(rows, calls, wall):
    prof = profile(
        [line(1, 1, 0, 10**9), op(2, "f", 5, 4, 1), op(3, None, -9, 9)],
        [activity(kind, start, end, op_id, name=kind, device_id=device, correlation_id=number,
                  bytes=start, copy_kind="HtoD", duration_ns=0)
         for kind, start, end, op_id, device, number in rows],
        [call(start, end, op_id=op_id, correlation_id=number, name=name, duration_ns=0)
         for name, start, end, op_id, number in calls],
        info={"wall_ns": wall, "repeats": [[i, i + 1] for i in range(7)], "gpu": {"before": 3}},
    )  # fmt: skip
    with np.errstate(over="ignore"):
        found = prof.insights()
        for name in ("overlap", "launches", "transfers", "waits", "steadiness"):
            getattr(prof, name)()
    assert (found["gain_low_ns"] <= found["gain_ns"]).all()
    assert (found["gain_ns"] <= found["gain_high_ns"]).all()
    for rank in found["rank"]:
        prof.evidence(rank)


def test_without_statements_an_insight_has_the_cell_of_its_op():
    ops = [op(1, "In[5]", 0, 90 * MS, op_type="cell"), op(2, "load", 0, 80 * MS, 1)]
    prof = profile(ops, [kernel(80 * MS, 90 * MS, 2)], info=info(90 * MS))
    row = prof.insights().iloc[0]
    assert row["text"] == "GPU idle 80.0 ms before its first work while the host ran `load`."
    assert (row["op_id"], row["cell"]) == (2, "In[5]")
    assert pd.isna(row["line"])


def test_findings_are_shown_in_full():
    prof = synchronising(statement="total += <b>y.item()  # " + "x" * 200)
    frame = prof.insights()
    gains = [gain_text(r.gain_ns, r.gain_low_ns, r.gain_high_ns) for r in frame.itertuples()]
    for row in frame.itertuples():
        shown = " ".join(str(frame).split())
        assert f"{row.rank}. {row.kind}" in shown
        assert " ".join(row.text.split()) in shown
        assert " ".join(row.remedy.split()) in shown
    html = frame._repr_html_()
    assert "<code>total += &lt;b&gt;y.item()" in html
    assert "<b>" not in html
    assert all(f'min-width: 11em">{gain}<' in html for gain in gains)
    assert all(column in html and column in str(frame) for column in frame.columns)
    with pd.option_context("display.notebook_repr_html", False):
        assert frame._repr_html_() is None


def test_what_is_computed_from_findings_is_a_dataframe():
    frame = synchronising().insights()
    derived = [frame[["kind", "text"]], frame.query("gain_ns > 0"), frame.copy(), frame.head(1)]
    derived.append(pickle.loads(pickle.dumps(frame)))
    assert {type(one) for one in derived} == {pd.DataFrame}
    pd.testing.assert_frame_equal(derived[-1], pd.DataFrame(frame))


def test_control_characters_of_names_do_not_reach_the_terminal():
    prof = synchronising(statement="total += y.item()  # \x1b[31m")
    assert "\x1b" not in str(prof.insights())
