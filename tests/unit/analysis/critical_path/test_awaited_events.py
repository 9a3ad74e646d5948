"""The critical path through events that streams and threads wait for."""

import time

import pytest

import epprof_nb
from epprof_nb import host
from tests.helpers.longer_kernels import with_longer_kernels
from tests.helpers.tiny import activity, call, kernel, op, profile
from tests.unit.analysis.critical_path.test_critical_path import steps, with_wait


def test_a_stream_that_waited_for_an_event_continues_the_other_stream():
    prof = profile(
        ops=[op(1, "cell", 0, 100)],
        activities=[
            kernel(10, 60, 1, correlation_id=1, name="first"),
            activity("synchronization", 12, 13, 1, correlation_id=2, stream_id=8,
                     name="stream_wait_event"),
            kernel(62, 90, 1, correlation_id=3, stream_id=8, name="second"),
        ],
        api_calls=[
            call(5, 8, correlation_id=1, op_id=1),
            call(12, 13, correlation_id=2, op_id=1, name="cuStreamWaitEvent"),
            call(14, 16, correlation_id=3, op_id=1),
        ],
        info={"wall_ns": 100},
    )  # fmt: skip
    found = steps(with_wait(prof, 20, 95))
    assert [row[:2] for row in found] == [
        ("host", "cell"), ("launch_delay", "first"), ("activity", "first"),
        ("event_wait", "second"), ("activity", "second"), ("wait_return", "cuCtxSynchronize"),
        ("host", "cell"),
    ]  # fmt: skip


def two_waits(**event):
    """Stream 7 has two kernels, stream 8 a long one; stream 9 waits for an event of stream 7."""
    return profile(
        ops=[op(1, "cell", 0, 300)],
        activities=[
            kernel(10, 60, 1, correlation_id=1, name="first"),
            kernel(61, 150, 1, correlation_id=3, name="second"),
            kernel(12, 140, 1, correlation_id=2, stream_id=8, name="beside"),
            activity("synchronization", 18, 19, 1, correlation_id=6, stream_id=9,
                     name="stream_wait_event", **event),
            kernel(151, 200, 1, correlation_id=7, stream_id=9, name="third"),
        ],
        api_calls=[
            *(call(4 + 2 * i, 5 + 2 * i, correlation_id=i, op_id=1) for i in (1, 2, 3)),
            call(20, 21, correlation_id=7, op_id=1),
        ],
        info={"wall_ns": 300},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("recorded", "stream", "waited_for"),
    [
        (2, 7, ["first"]),
        (3, 7, ["first"]),
        (4, 7, ["first", "second"]),
        (4, 8, ["beside"]),
        (1, 7, []),
    ],
)
def test_an_event_stands_for_the_work_before_the_call_that_recorded_it(
    recorded, stream, waited_for
):
    prof = two_waits(event_correlation_id=recorded, event_stream_id=stream, event_source="exact")
    found = steps(with_wait(prof, 22, 205))
    assert [name for step, name, *_ in found if step == "activity"] == [*waited_for, "third"]


def test_without_the_call_the_work_that_ended_last_is_assumed():
    found = steps(with_wait(two_waits(), 22, 205))
    assert [name for step, name, *_ in found if step == "activity"] == ["first", "second", "third"]


def test_a_stream_waits_for_all_of_its_events():
    events = [{"event_stream_id": 7, "event_correlation_id": 3},
              {"event_stream_id": 8, "event_correlation_id": 3}]  # fmt: skip

    def prof(first_end, beside_end):
        start = max(first_end, beside_end) + 1
        return profile(
            activities=[
                kernel(10, first_end, correlation_id=1, name="first"),
                kernel(10, beside_end, correlation_id=2, stream_id=8, name="beside"),
                *(activity("synchronization", 8 + i, 9 + i, correlation_id=4 + i, stream_id=9,
                           name="stream_wait_event", **event) for i, event in enumerate(events)),
                kernel(start, start + 50, correlation_id=7, stream_id=9, name="third"),
            ],
            api_calls=[call(3, 4, correlation_id=1), call(5, 6, correlation_id=2),
                       call(8, 9, correlation_id=4), call(9, 10, correlation_id=5),
                       call(10, 11, correlation_id=7)],
            info={"wall_ns": start + 50},
        )  # fmt: skip

    for ends, name, saving in (((90, 50), "first", 40), ((50, 90), "beside", 40)):
        path = [row[1] for row in steps(prof(*ends)) if row[0] == "activity"]
        assert path == [name, "third"]
        found = prof(*ends).what_if({name: 0})["saving_ns"].item()
        assert found == pytest.approx(saving, abs=2)  # the other event is the next limit


def test_a_thread_that_waits_for_an_event_does_not_wait_for_later_work():
    def prof(**event):
        return profile(
            ops=[op(1, "cell", 0, 150)],
            activities=[
                kernel(10, 60, 1, correlation_id=1, name="first"),
                kernel(11, 62, 1, correlation_id=3, stream_id=8, name="beside"),
                activity("synchronization", 12, 65, 1, correlation_id=4, name="event_synchronize",
                         **{"stream_id": -1, **event}),
            ],
            api_calls=[call(6, 7, correlation_id=1, op_id=1), call(8, 9, correlation_id=3, op_id=1),
                       call(12, 65, correlation_id=4, op_id=1, name="cuEventSynchronize")],
            info={"wall_ns": 150},
        )  # fmt: skip

    def waited_for(prof):
        return [name for step, name, *_ in steps(prof) if step == "activity"]

    assert waited_for(prof()) == ["beside"]  # any work of the context
    assert waited_for(prof(event_correlation_id=2, event_stream_id=7)) == ["first"]
    assert waited_for(prof(event_correlation_id=1, event_stream_id=7)) == []


def test_an_event_after_a_graph_stands_for_all_nodes_of_the_replay():
    nodes = [(20, 40, 7), (21, 80, 8), (30, 60, 7)]
    prof = profile(
        ops=[op(1, "cell", 0, 200)],
        activities=[
            *(kernel(start, end, 1, correlation_id=1, graph_id=3, graph_node_id=i,
                     stream_id=stream, name=f"node {i}")
              for i, (start, end, stream) in enumerate(nodes)),
            activity("synchronization", 12, 13, 1, correlation_id=3, stream_id=9,
                     name="stream_wait_event", event_correlation_id=2, event_stream_id=7),
            kernel(82, 130, 1, correlation_id=4, stream_id=9, name="after"),
        ],
        api_calls=[call(5, 8, correlation_id=1, op_id=1, name="cuGraphLaunch"),
                   call(14, 16, correlation_id=4, op_id=1)],
        info={"wall_ns": 200},
    )  # fmt: skip
    found = steps(with_wait(prof, 18, 135))
    assert [name for step, name, *_ in found if step == "activity"] == ["node 1", "after"]


def test_a_stream_of_the_host_device_that_waits_for_an_event():
    first, second, done = host.Stream(), host.Stream(), host.Event()

    def record(busy_ms):
        with epprof_nb.profile() as prof:
            with epprof_nb.op("first"):
                host.launch(time.sleep, busy_ms / 1000, stream=first)
                done.record(first)
            with epprof_nb.op("later"):
                host.launch(time.sleep, busy_ms / 1000, stream=first)
            second.wait_event(done)
            with epprof_nb.op("second"):
                host.launch(time.sleep, 3 * busy_ms / 1000, stream=second)
            with epprof_nb.op("wait"):
                second.synchronize()
        found = prof.joined().groupby("op_name")[["start_ns", "end_ns"]].max()
        first_end, later_end, second_end = found.loc[["first", "later", "second"], "end_ns"]
        waits = prof.ops.set_index("name").loc["wait", "start_ns"] < first_end
        # What of the kernel of the second stream has nothing beside it.
        alone_ns = second_end - max(found.loc["second", "start_ns"], later_end)
        return (prof, alone_ns) if waits and alone_ns > 0 else None

    prof, alone_ns = with_longer_kernels(record)
    events = prof.activities.dropna(subset="event_source")
    assert events["event_source"].unique().tolist() == ["exact"]
    assert set(events["event_stream_id"]) == {first.stream_id}
    found = prof.critical_path()
    assert found.loc[found["step"] == "activity", "op"].tolist() == ["first", "second"]
    frame = prof.critical_path(by="op").set_index("name")
    assert frame.loc["second", "saving_ns"] >= 0.9 * alone_ns
