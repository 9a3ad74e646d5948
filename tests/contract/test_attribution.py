"""Attribution contract: each activity belongs to the op that launched it.

The oracle is the kernel's name: op ``op_17`` launches kernel ``kernel_17`` and nothing else.
"""

from __future__ import annotations

import random
import threading

import pandas as pd

import epprof_nb
from tests.contract.rows import kernels_of, op_names
from tests.helpers.longer_kernels import with_longer_kernels
from tests.helpers.threads import run_all


def expected(kernel: str) -> str:
    return kernel.replace("kernel", "op")


def assert_attributed(profile, names) -> None:
    kernels = kernels_of(profile)
    assert sorted(kernels.index) == sorted(names)
    assert op_names(profile, kernels["op_id"]) == [expected(name) for name in kernels.index]
    assert set(kernels["attribution"].astype(str)) == {"stack"}


def test_each_kernel_belongs_to_the_op_that_launched_it(device, rig):
    names = [f"kernel_{i}" for i in range(30)]
    made = device.kernels(names)
    array, streams = rig.array(1.0), [device.stream() for _ in range(3)]
    with epprof_nb.profile() as profile:
        for i, name in enumerate(names):
            with epprof_nb.op(f"op_{i}"):
                made[name](array, 1.0, 0.0, stream=streams[i % 3])
        device.synchronize()
    assert_attributed(profile, names)


def test_the_innermost_op_owns_the_launch(device, rig):
    names = [f"kernel_{i}" for i in range(40)]
    made = device.kernels(names)
    array, stream = rig.array(1.0), device.stream()
    rest, choose = list(range(len(names))), random.Random(7)

    def nest(depth: int) -> None:
        while rest and choose.random() < 0.9:
            i = rest.pop()
            with epprof_nb.op(f"op_{i}"):
                before = choose.random() < 0.5
                if before:
                    made[names[i]](array, 1.0, 0.0, stream=stream)
                if depth < 6:
                    nest(depth + 1)
                if not before:
                    # After the inner ops have ended, the outer one is on top again.
                    made[names[i]](array, 1.0, 0.0, stream=stream)

    with epprof_nb.profile() as profile:
        while rest:
            nest(0)
        stream.synchronize()
    assert_attributed(profile, names)
    assert profile.ops["parent_op_id"].notna().sum() > 5


def test_ops_of_one_thread_never_own_launches_of_another(device, rig):
    names = [f"kernel_{i}" for i in range(40)]
    made = device.kernels(names)
    array = rig.array(1.0)
    together = threading.Barrier(4)

    def work(first: int) -> None:
        stream = device.stream()
        together.wait()
        for i in range(first, len(names), 4):
            with epprof_nb.op(f"op_{i}"):
                made[names[i]](array, 1.0, 0.0, busy_ms=0.5, stream=stream)
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    with epprof_nb.profile() as profile, epprof_nb.op("op_main"):
        run_all(threads)
    assert_attributed(profile, names)
    kernels = kernels_of(profile)
    threads_of_ops = profile.ops["thread_id"].loc[kernels["op_id"].astype("int64")]
    assert kernels["thread_id"].tolist() == threads_of_ops.tolist()
    assert kernels["thread_id"].nunique() == 4


def test_work_that_outlives_its_op_still_belongs_to_it(device, rig):
    made = device.kernels(["kernel_0", "kernel_1"])
    array, stream = rig.array(1.0), device.stream()

    def record(busy_ms):
        with epprof_nb.profile() as profile:
            with epprof_nb.op("op_0"):
                made["kernel_0"](array, 1.0, 0.0, busy_ms=busy_ms, stream=stream)
            with epprof_nb.op("op_1"):
                made["kernel_1"](array, 1.0, 0.0, stream=stream)
            stream.synchronize()
        assert_attributed(profile, ["kernel_0", "kernel_1"])
        kernel = kernels_of(profile).loc["kernel_0"]
        outlived = profile.ops.loc[kernel["op_id"], "end_ns"] < kernel["end_ns"]
        return True if outlived else None

    assert with_longer_kernels(record)


def test_copies_and_sets_belong_to_their_ops(device, rig):
    array, other = rig.array(1.0), rig.array(2.0)
    stream = device.stream()
    with epprof_nb.profile() as profile:
        with epprof_nb.op("copying"):
            device.copy(other, array, stream)
        with epprof_nb.op("setting"):
            device.memset(other, 0, stream)
        stream.synchronize()
    activities = profile.activities
    for kind, name in (("memcpy", "copying"), ("memset", "setting")):
        rows = activities[activities["kind"] == kind]
        assert op_names(profile, rows["op_id"]) == [name]


def test_a_launch_outside_any_op_has_no_op(device, rig):
    work = device.kernels(["alone"])["alone"]
    array, stream = rig.array(1.0), device.stream()
    with epprof_nb.profile() as profile:
        work(array, 1.0, 0.0, stream=stream)
        stream.synchronize()
    kernel = kernels_of(profile).loc["alone"]
    assert pd.isna(kernel["op_id"])
    assert kernel["attribution"] == "none"


def test_waits_are_recorded_where_they_happened(device, rig):
    work = device.kernels(["work"])["work"]
    array, stream, event = rig.array(1.0), device.stream(), device.event()
    with epprof_nb.profile() as profile:
        with epprof_nb.op("stream wait"):
            work(array, 1.0, 0.0, busy_ms=50, stream=stream)
            stream.synchronize()
        with epprof_nb.op("event wait"):
            work(array, 1.0, 0.0, busy_ms=50, stream=stream)
            device.record(event, stream)
            event.synchronize()
        with epprof_nb.op("device wait"):
            work(array, 1.0, 0.0, busy_ms=50, stream=stream)
            device.synchronize()
    activities = profile.activities
    waits = activities[activities["kind"] == "synchronization"]
    waits = waits.assign(op=op_names(profile, waits["op_id"])).dropna(subset="op")
    # One wait may consist of several calls; the last one ends after the kernel.
    waits = waits.drop_duplicates("op", keep="last")
    assert waits["op"].tolist() == ["stream wait", "event wait", "device wait"]
    kernels = activities[activities["kind"] == "kernel"]
    assert (waits["end_ns"].to_numpy() >= kernels["end_ns"] - device.clock_slack_ns).all()
    calls = profile.api_calls.set_index("correlation_id")
    for wait in waits.itertuples():
        call = calls.loc[wait.correlation_id]
        assert call["start_ns"] <= wait.start_ns + device.clock_slack_ns
        assert wait.end_ns <= call["end_ns"] + device.clock_slack_ns


def test_a_profile_holds_its_own_work_only_and_all_of_it(device, rig):
    made = device.kernels(["before", "first", "between", "second", "after"])
    array, stream = rig.array(1.0), device.stream()

    def run(name: str, **options) -> None:
        made[name](array, 1.0, 0.0, stream=stream, **options)

    run("before")
    stream.synchronize()
    with epprof_nb.profile() as one:
        run("first", busy_ms=100)  # still running at the end: the profile waits for it
    run("between")
    stream.synchronize()
    with epprof_nb.profile() as two:
        run("second")
    run("after")
    stream.synchronize()
    assert kernels_of(one).index.tolist() == ["first"]
    assert kernels_of(one)["duration_ns"].iloc[0] >= 99e6
    assert kernels_of(two).index.tolist() == ["second"]
