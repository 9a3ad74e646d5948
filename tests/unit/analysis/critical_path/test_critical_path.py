"""The critical path: its steps, its length, and the time that an op could save."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.analysis.critical_path.changed_durations import Owners, Removed
from epprof_nb.analysis.findings.rules.device_work.hidden_work import critical_work
from epprof_nb.data.table import concat
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.longer_kernels import with_longer_kernels
from tests.helpers.planted import info
from tests.helpers.tiny import activity, call, kernel, line, op, profile


def steps(prof, **options):
    path = prof.critical_path(**options)
    return list(
        zip(path["step"], path["name"].astype(object), path["start_ns"], path["end_ns"],
            strict=True)
    )  # fmt: skip


def savings(prof, **options):
    frame = prof.critical_path(by="op", **options)
    return dict(zip(frame["name"], frame["saving_ns"].tolist(), strict=True))


def waiting(*, kernel_end=90, wait=(30, 100), name="context_synchronize"):
    """A cell that launches a kernel, does something else, and waits."""
    return profile(
        ops=[
            op(1, "In[1]", 0, 120, op_type="cell"),
            line(2, 1, 0, 20, 1),
            line(3, 2, 20, 110, 1),
        ],
        activities=[
            kernel(15, kernel_end, 2, correlation_id=1),
            activity("synchronization", *wait, 3, correlation_id=2, name=name),
        ],
        api_calls=[
            call(10, 14, correlation_id=1, op_id=2),
            call(*wait, correlation_id=2, op_id=3, name="cuCtxSynchronize"),
        ],
        info={"wall_ns": 120},
    )


@pytest.mark.parametrize("name", ["context_synchronize", "stream_synchronize", "event_synchronize"])
def test_a_wait_leads_back_to_what_it_waited_for(name):
    assert steps(waiting(name=name)) == [
        ("host", "line 1", 0, 10),
        ("launch_delay", "kernel", 10, 15),
        ("activity", "kernel", 15, 90),
        ("wait_return", "cuCtxSynchronize", 90, 100),
        ("host", "line 2", 100, 110),
        ("host", "In[1]", 110, 120),
    ]


def test_a_wait_for_work_that_had_ended_is_a_call():
    path = steps(waiting(kernel_end=25))
    assert ("api_call", "cuCtxSynchronize", 30, 100) in path
    assert "activity" not in [step for step, *_ in path]


def test_the_saving_is_that_of_the_path_without_the_op():
    # Without line 1, the kernel included, line 2 returns from its wait at once.
    assert savings(waiting()) == {"In[1]": 120, "line 1": 90 - 10, "line 2": 30}


def test_a_saving_is_less_where_another_chain_takes_over():
    prof = profile(
        ops=[line(1, 1, 0, 10), line(2, 2, 10, 20), line(3, 3, 20, 100)],
        activities=[
            kernel(5, 95, 1, correlation_id=1),
            kernel(15, 85, 2, correlation_id=2, stream_id=8),
            activity("synchronization", 20, 100, correlation_id=3, name="context_synchronize"),
        ],
        api_calls=[
            call(2, 4, correlation_id=1, op_id=1),
            call(12, 14, correlation_id=2, op_id=2),
            call(20, 100, correlation_id=3, op_id=3, name="cuCtxSynchronize"),
        ],
        info={"wall_ns": 100},
    )
    frame = prof.critical_path(by="op").set_index("name")
    assert frame.loc["line 1", "path_ns"] == 95
    # The kernel of line 2 then starts 10 ns earlier, and ends at 75; the wait returns in 5.
    assert frame.loc["line 1", "saving_ns"] == 100 - (75 + 5)


def test_nodes_of_a_replay_are_on_the_path_in_their_order():
    nodes = [(20, 40, 7), (30, 50, 8), (55, 70, 9), (72, 90, 7)]
    prof = profile(
        ops=[op(1, "capture", 0, 5), op(2, "replay", 5, 100)],
        activities=[
            kernel(start, end, 2, correlation_id=1, graph_id=3, graph_node_id=i, stream_id=stream,
                   name=f"node {i}", capture_op_id=1)
            for i, (start, end, stream) in enumerate(nodes)
        ],
        api_calls=[call(10, 15, correlation_id=1, op_id=2, name="cuGraphLaunch")],
        info={"wall_ns": 100},
    )  # fmt: skip
    found = steps(with_wait(prof, 16, 95))
    assert [name for step, name, *_ in found if step == "activity"] == [
        "node 1",
        "node 2",
        "node 3",
    ]
    owners = with_wait(prof, 16, 95).critical_path(attribution="capture")
    assert set(owners[owners["step"] == "activity"]["op"]) == {"capture"}


def with_wait(prof, start, end):
    """The profile with a call that waits for all devices."""
    wait = profile(api_calls=[call(start, end, name="cuCtxSynchronize")]).tables["api_calls"]
    tables = {**prof.tables, "api_calls": concat([prof.tables["api_calls"], wait])}
    return Profile(tables, prof.info, prof.sources)


def test_a_worker_without_ops_starts_from_the_thread_of_the_cell():
    prof = profile(
        ops=[op(1, "In[1]", 0, 100, op_type="cell"), line(2, 1, 0, 30, 1), line(3, 2, 30, 90, 1)],
        activities=[
            kernel(45, 80, 3, correlation_id=1, attribution="cell"),
            activity("synchronization", 50, 85, correlation_id=2, name="context_synchronize"),
        ],
        api_calls=[
            call(40, 43, thread_id=2, correlation_id=1),
            call(50, 85, correlation_id=2, op_id=3, name="cuCtxSynchronize"),
        ],
        info={"wall_ns": 100},
    )
    assert [row[:2] for row in steps(prof)][:4] == [
        ("host", "line 1"), ("host", "line 2"), ("launch_delay", "kernel"), ("activity", "kernel"),
    ]  # fmt: skip
    assert savings(prof)["line 2"] == 60


@pytest.mark.parametrize("own_end", [510, 580])
def test_a_thread_waits_for_one_that_works_for_its_op(own_end):
    """The worker is busy in 830 of the 1,000 ns of an op, whose thread prepares before."""
    ops = [
        op(1, "In[1]", 0, 1_200, op_type="cell", thread_id=1),
        op(2, "backward", 100, 1_100, 1, thread_id=1),
        op(3, "prepare", 110, own_end, 2, thread_id=1),
        op(4, "node", 260, 1_090, 2, thread_id=2),
    ]
    path = profile(ops, [], [], info=info(1_200)).critical_path(by="op").set_index("name")
    beside = own_end - 260  # of the worker's time, while the thread of the cell works itself
    assert path["saving_ns"]["node"] == 830 - beside
    assert path["saving_ns"]["backward"] == 1_000
    assert path["path_ns"]["node"] + path["path_ns"]["prepare"] >= 830


def test_a_blocking_copy_is_a_wait_for_itself():
    prof = profile(
        ops=[op(1, "copy", 0, 100)],
        activities=[activity("memcpy", 20, 70, 1, correlation_id=1, dst_kind="pageable")],
        api_calls=[call(10, 80, correlation_id=1, op_id=1, name="cuMemcpyDtoHAsync_v2")],
        info={"wall_ns": 100},
    )
    assert [row[0] for row in steps(prof)] == [
        "host", "launch_delay", "activity", "wait_return", "host",
    ]  # fmt: skip


def test_a_copy_that_ends_after_its_call_is_no_wait():
    """The call returns at 30, between the kernel and the copy of its stream."""
    prof = profile(
        ops=[op(1, "copy", 0, 100)],
        activities=[
            kernel(5, 25, 1, correlation_id=4),
            activity("memcpy", 26, 70, 1, correlation_id=1, dst_kind="pageable"),
            kernel(72, 90, 1, correlation_id=2, stream_id=8),
        ],
        api_calls=[
            call(1, 3, correlation_id=4, op_id=1),
            call(10, 30, correlation_id=1, op_id=1, name="cuMemcpyDtoHAsync_v2"),
            call(60, 65, correlation_id=2, op_id=1),
            call(66, 95, correlation_id=3, op_id=1, name="cuCtxSynchronize"),
        ],
        info={"wall_ns": 100},
    )
    assert ("api_call", "cuMemcpyDtoHAsync_v2", 10, 30) in steps(prof)


def test_profiles_without_calls_ops_or_activities_have_a_path():
    assert steps(profile()) == []
    only_host = profile(info={"wall_ns": 50}).critical_path()
    assert only_host[["step", "start_ns", "end_ns"]].to_numpy().tolist() == [["host", 0, 50]]
    assert only_host["name"].isna().all()
    alone = profile(activities=[kernel(10, 30), kernel(30, 60)])
    assert CriticalPath(ProfileIndex(alone)).length_ns == 60


def test_an_op_that_ends_with_its_child_takes_no_time_after_it():
    ops = [op(1, "f", 0, 900, op_type="cell"), op(2, "g", 100, 500, 1), op(3, "h", 200, 500, 2)]
    assert steps(profile(ops, info={"wall_ns": 900})) == [
        ("host", "f", 0, 100), ("host", "g", 100, 200), ("host", "h", 200, 500),
        ("host", "f", 500, 900),
    ]  # fmt: skip


def test_an_op_that_ends_after_the_profile_has_the_same_length_without_steps():
    prof = profile([op(1, "f", 0, 900, op_type="cell")], info={"wall_ns": 500})
    path = CriticalPath(ProfileIndex(prof))
    assert path.length_ns == path.duration_ns.sum() == 900


def test_damaged_times_and_trees_give_a_path_within_the_span():
    most = 2**62
    prof = profile(
        ops=[op(1, "a", 0, most, 2), op(2, "b", 5, 3, 1), op(3, "c", -most, 9, 3)],
        activities=[kernel(50, 20, correlation_id=1), kernel(-most, most - 1, correlation_id=1)],
        api_calls=[call(60, 10, correlation_id=1), call(most, most, correlation_id=9)],
    )
    path = CriticalPath(ProfileIndex(prof))
    assert 0 <= path.length_ns <= path.span_ns


@pytest.mark.parametrize("by", ["step", "op", "line"])
def test_unknown_arguments_are_refused(by):
    with pytest.raises(ValueError, match="attribution must be"):
        profile().critical_path(by, attribution="both")
    with pytest.raises(ValueError, match="by must be"):
        profile().critical_path("kernel")


def test_the_core_refuses_columns_of_different_length():
    columns = [np.zeros(2, np.int64)] + [np.zeros(0, np.int32)] * 36
    options = {"threads": 1, "home": 0, "start_ns": 0, "end_ns": 1, "latency_ns": 1}
    options |= {"variants": 1, "rows": True, "follow_home": True, "ends_with_home": False}
    with pytest.raises(ValueError, match="differ in length"):
        _native.critical_path(tuple(columns), **options)
    with pytest.raises(ValueError, match="number of columns"):
        _native.critical_path((), **options)


ROLES = (
    "kernel", "memcpy", "graph", "no call", "stream_synchronize", "context_synchronize",
    "stream_wait_event",
)  # fmt: skip


@st.composite
def recordings(draw):
    """Calls of two threads with activities, waits and events on three streams of two devices."""
    ops = [op(1, "In[1]", 0, 200, op_type="cell")]
    for i in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, 180))
        ops.append(line(i + 2, i, start, draw(st.integers(start, 200)), 1, thread_id=1 + i % 2))
    calls, activities = [], []
    for i in range(draw(st.integers(0, 14))):
        start = draw(st.integers(0, 190))
        end = draw(st.integers(start, 200))
        thread, owner = draw(st.integers(1, 2)), draw(st.integers(1, len(ops)))
        where = {"stream_id": draw(st.integers(7, 9)), "device_id": draw(st.integers(0, 1))}
        calls.append(call(start, end, thread, correlation_id=i, op_id=owner))
        role = draw(st.sampled_from(ROLES))
        if role.startswith(("stream_", "context_")):
            where |= {"name": role, "correlation_id": i}
            activities.append(activity("synchronization", start, end, owner, **where))
            continue
        begin = draw(st.integers(start, 200))
        where["correlation_id"] = -1 if role == "no call" else i
        where |= {"graph_id": 5} if role == "graph" else {}
        kind = role if role == "memcpy" else "kernel"
        activities.append(activity(kind, begin, draw(st.integers(begin, 200)), owner, **where))
    return profile(ops, activities, calls, info={"wall_ns": 200})


def longest_chain(prof):
    """Most time of activities of one stream that follow each other."""
    frame = prof.activities
    work = frame[frame["kind"] != "synchronization"]
    best = 0
    for _, on_stream in work.groupby(["device_id", "stream_id"]):
        rows = sorted(zip(on_stream["end_ns"], on_stream["start_ns"], strict=True))
        until = []
        for i, (end, start) in enumerate(rows):
            before = max((until[j] for j in range(i) if rows[j][0] <= start), default=0)
            until.append(before + end - start)
        best = max([best, *until])
    return best


@settings(deadline=None)
@given(recordings())
def test_the_path_is_between_the_longest_chain_and_the_wall_time(prof):
    path = CriticalPath(ProfileIndex(prof))
    in_replays = bool((prof.activities["graph_id"] == 5).any())
    if not in_replays:  # the nodes of a replay are ordered across streams
        assert longest_chain(prof) <= path.length_ns
    assert path.length_ns <= path.span_ns == 200
    nothing = np.zeros(len(prof.ops) + 1, np.uint8)
    assert (path.input.lengths(nothing) == path.length_ns).all()
    assert path.length_ns == path.duration_ns.sum()
    # The steps follow each other in time, and every one is within the profile.
    assert (path.start_ns[1:] >= path.end_ns[:-1]).all()
    assert (path.duration_ns > 0).all()
    assert (path.start_ns >= 0).all()
    assert (path.end_ns <= 200).all()
    # The length was found without the steps.
    assert path.length_ns == path.duration_ns.sum()


@settings(deadline=None)
@given(recordings(), st.data())
def test_removed_work_is_work_of_an_owner_that_takes_no_time(prof, data):
    path = CriticalPath(ProfileIndex(prof))
    calls, activities = (
        np.array(data.draw(st.lists(st.booleans(), min_size=len(of), max_size=len(of))), np.bool_)
        for of in (prof.api_calls, prof.activities)
    )
    of_calls = np.where(calls, len(prof.ops), path.input.call_op).astype(np.int32)
    of_activities = np.where(activities, len(prof.ops), path.input.activity_op).astype(np.int32)
    free = np.zeros(len(prof.ops) + len(prof.ops) + 2, np.uint8)
    free[-2] = 1
    owners = Owners(of_activities, of_calls, len(prof.ops) + 1)
    removed = Removed(np.flatnonzero(calls), np.flatnonzero(activities))
    assert path.input.lengths_without([removed])[0] == path.input.lengths(free, owners)[0]


@st.composite
def removals(draw, prof):
    """Some calls, activities and time of one of two threads."""
    calls, activities = (
        np.array(draw(st.lists(st.integers(0, len(of) - 1))) if len(of) else [], np.int64)
        for of in (prof.api_calls, prof.activities)
    )
    times = draw(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 200), st.integers(0, 60))))
    thread, start, length = np.array(times, np.int64).reshape(-1, 3).T
    return Removed(calls, activities, thread, start, start + length)


@settings(deadline=None)
@given(recordings(), st.data())
def test_several_lengths_are_those_of_each_removal_alone(prof, data):
    removed = [data.draw(removals(prof)) for _ in range(data.draw(st.integers(2, 6)))]
    path = CriticalPath(ProfileIndex(prof)).input
    alone = [path.lengths_without([one])[0] for one in removed]
    assert path.lengths_without(removed) == alone


@settings(deadline=None)
@given(recordings())
def test_an_op_saves_at_most_the_wall_time(prof):
    frame = prof.critical_path(by="op")
    assert (frame["saving_ns"] >= 0).all()
    assert (frame["saving_ns"] <= 200).all()
    assert (frame["self_path_ns"] <= frame["path_ns"]).all()
    assert (frame["host_path_ns"] + frame["device_path_ns"] == frame["path_ns"]).all()


@settings(deadline=None)
@given(recordings())
def test_the_lines_of_statements_have_the_times_of_their_ops(prof):
    ops, lines = prof.critical_path(by="op"), prof.critical_path(by="line")
    ops, lines = ops[ops["op_type"] == "line"], lines[lines["line"].notna()]
    columns = ["line", "path_ns", "saving_ns", "self_path_ns", "device_path_ns", "host_path_ns"]
    found = [frame.sort_values("line")[columns].to_numpy().tolist() for frame in (lines, ops)]
    assert found[0] == found[1]


def test_work_without_an_op_is_on_the_device_or_the_host():
    prof = profile(
        ops=[line(1, 1, 0, 20)],
        activities=[kernel(60, 100, correlation_id=1, thread_id=1),
                    activity("synchronization", 60, 105, correlation_id=2, thread_id=1)],
        api_calls=[call(40, 50, correlation_id=1),
                   call(55, 105, correlation_id=2, name="cuCtxSynchronize")],
        info={"wall_ns": 110},
    )  # fmt: skip
    row = prof.critical_path(by="op").set_index("name").loc["(no op)"]
    # The launch delay, the kernel and the return from the wait; before and after that, the host.
    assert (row["path_ns"], row["device_path_ns"], row["host_path_ns"]) == (90, 65, 25)


def test_the_path_of_a_loop_is_as_long_as_the_loop():
    prof = synthetic_profile(activities=3_000)
    path = CriticalPath(ProfileIndex(prof))
    assert path.length_ns == path.span_ns == prof.info["wall_ns"]
    frame = prof.critical_path(by="op")
    assert frame["self_path_ns"].sum() == path.length_ns
    assert {"loss.backward()", "attention"} <= set(frame["name"])


def test_work_beside_the_critical_path_saves_nothing():
    slow, fast = host.Stream(), host.Stream()

    def record(busy_ms):
        with epprof_nb.profile() as prof:
            with epprof_nb.op("slow"):
                host.launch(time.sleep, busy_ms / 1000, stream=slow)
            with epprof_nb.op("fast"):
                host.launch(time.sleep, 0.01, stream=fast)
            with epprof_nb.op("wait"):
                host.synchronize()
        ends = prof.joined().set_index("op_name")["end_ns"]
        waiting = prof.ops.set_index("name").loc["wait", "start_ns"]
        return prof if ends["slow"] > max(ends["fast"], waiting + 10_000_000) else None

    prof = with_longer_kernels(record)
    frame = prof.critical_path(by="op").set_index("name")
    found = prof.critical_path()
    assert found.loc[found["step"] == "activity", "op"].tolist() == ["slow"]
    assert frame.columns[0] == "saving_ns"  # the answer is what is read first
    # Without it, the other kernel remains.
    assert 0 < frame.loc["slow", "saving_ns"] < frame.loc["slow", "path_ns"]
    device_ns = frame["device_path_ns"]
    assert device_ns["slow"] >= 0.05e9
    assert "fast" not in frame.index or device_ns["fast"] == 0


def side_by_side(streams):
    """Line 1 launches four kernels of 30 us, line 2 one of 100 us, and line 3 waits for all."""
    us = 1_000
    starts = [10 * us + 30 * us * (i if streams == 1 else 0) for i in range(4)]
    free = starts[-1] + 30 * us if streams == 1 else 10 * us
    kernels = [
        kernel(t, t + 30 * us, 1, correlation_id=i, stream_id=8 + i % streams)
        for i, t in enumerate(starts)
    ]
    last = kernel(free, free + 100 * us, 2, correlation_id=4, stream_id=8 if streams == 1 else 7)
    end = free + 102 * us
    launches = [call(i * us, i * us + 500, correlation_id=i, op_id=1 + i // 4) for i in range(5)]
    wait = call(6 * us, end, op_id=3, name="cuCtxSynchronize")
    return profile(
        ops=[
            line(1, 1, 0, 4 * us),
            line(2, 2, 4 * us, 5 * us),
            line(3, 3, 5 * us, end),
        ],
        activities=[*kernels, last],
        api_calls=[*launches, wait],
        info={"wall_ns": end},
    )


def test_work_that_hides_more_work_is_found():
    prof = side_by_side(streams=4)
    (found,) = critical_work(ProfileIndex(prof))
    assert "ine 2" in found.text.split(" is on")[0]
    assert (found.kind, found.op_id) == ("critical path", 2)
    assert found.evidence_rows(prof).tolist() == [4]
    # Without line 2, the wait ends after the four kernels.
    assert found.gain_ns == pytest.approx(70_000, abs=2_000)


def test_work_that_hides_nothing_is_not_found():
    assert not list(critical_work(ProfileIndex(side_by_side(streams=1))))
    assert not list(critical_work(ProfileIndex(profile())))
