"""The work that streams and threads wait for by events, on a GPU."""

import pytest

import epprof_nb

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
from tests.gpu.oracle import kernel, launch  # noqa: E402

LONG, SHORT = 40_000_000, 4_000_000  # cycles


@pytest.fixture
def streams():
    for name in ("first", "later", "beside", "after"):
        kernel(name)
        launch(name)
    cupy.cuda.Device().synchronize()
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]


def on(stream, name, cycles):
    with stream, epprof_nb.op(name):
        launch(name, cycles)


def waits(prof, kind):
    rows = prof.activities
    return rows[(rows["kind"] == "synchronization") & (rows["name"] == kind)]


def stream_of(prof, name):
    rows = prof.activities
    return rows.loc[rows["name"].astype(str) == name, "stream_id"].iloc[0]


def test_a_stream_waits_for_the_record_of_the_event_that_precedes_the_wait(streams):
    event = cupy.cuda.Event(disable_timing=True)
    with epprof_nb.profile() as prof:
        on(streams[0], "first", SHORT)
        event.record(streams[0])
        on(streams[1], "beside", LONG)
        streams[2].wait_event(event)
        event.record(streams[1])  # again, elsewhere
        on(streams[2], "after", LONG)
        cupy.cuda.Device().synchronize()
    found = waits(prof, "stream_wait_event")
    assert found["event_source"].tolist() == ["exact"]
    assert found["event_stream_id"].tolist() == [stream_of(prof, "first")]
    launches = prof.activities.set_index(prof.activities["name"].astype(str))["correlation_id"]
    assert launches["first"] < found["event_correlation_id"].iloc[0] < launches["beside"]
    path = prof.critical_path()
    assert path.loc[path["step"] == "activity", "op"].tolist() == ["first", "after"]


def test_a_thread_that_waits_for_an_event_does_not_wait_for_other_streams(streams):
    event = cupy.cuda.Event(disable_timing=True)
    with epprof_nb.profile() as prof:
        on(streams[0], "first", LONG)
        event.record(streams[0])
        on(streams[1], "beside", SHORT)
        with epprof_nb.op("wait"):
            event.synchronize()
    found = waits(prof, "event_synchronize")
    assert found["event_source"].tolist() == ["exact"]
    assert found["event_stream_id"].tolist() == [stream_of(prof, "first")]
    path = prof.critical_path()
    assert path.loc[path["step"] == "activity", "op"].tolist() == ["first"]
    assert prof.what_if({"beside": 0})["saving_ns"].item() < 1_000_000


def test_all_of_many_events_are_known(streams):
    events = [cupy.cuda.Event(disable_timing=True) for _ in range(500)]
    with epprof_nb.profile() as prof:
        for number, event in enumerate(events):
            on(streams[number % 2], "first", 100)
            event.record(streams[number % 2])
            streams[1 - number % 2].wait_event(event)
        cupy.cuda.Device().synchronize()
    found = waits(prof, "stream_wait_event").sort_values("correlation_id")
    assert len(found) == len(events)
    assert set(found["event_source"]) == {"exact"}
    work = prof.activities[prof.activities["kind"] == "kernel"].sort_values("correlation_id")
    assert found["event_stream_id"].tolist() == work["stream_id"].tolist()
    assert (found["event_correlation_id"].to_numpy() > work["correlation_id"].to_numpy()).all()
