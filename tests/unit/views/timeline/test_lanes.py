"""Lanes: names of devices, one row for a ``with`` statement and its op, and the time shown."""

import pytest

from epprof_nb.views.queries.related import related
from epprof_nb.views.queries.selected_events import select_events
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import full_header
from tests.helpers.tiny import kernel, line, op, profile

WITH = {"name": 'with epprof_nb.op("step"):'}


def rows(prof):
    """Row on the timeline by name of the op; None if it is not drawn."""
    layout = ViewModel(prof).layout.ops
    names = prof.tables["ops"].names("name").to_list()
    places = [layout.lane_and_row(number) for number in range(len(names))]
    return {
        name: None if lane < 0 else row for name, (lane, row) in zip(names, places, strict=True)
    }


@pytest.fixture
def stepped():
    return profile(
        [
            op(1, "In[1]", 0, 100, op_type="cell", category="cell"),
            line(2, 4, 0, 90, parent=1) | WITH,
            op(3, "step", 1, 89, parent=2),
            line(4, 5, 2, 80, parent=3),
            op(5, "inner", 3, 70, parent=4),
        ],
        [kernel(20, 30, op_id=3)],
    )


def test_a_with_statement_and_its_op_are_one_row(stepped):
    assert rows(stepped) == {"In[1]": 0, WITH["name"]: None, "step": 1, "line 5": 2, "inner": 3}


def test_a_with_statement_that_does_more_keeps_its_row():
    ops = [line(1, 4, 0, 90) | WITH, op(2, "a", 1, 40, parent=1), op(3, "b", 50, 80, parent=1)]
    assert rows(profile(ops)) == {WITH["name"]: 0, "a": 1, "b": 1}
    statement = [line(1, 4, 0, 90), op(2, "a", 1, 40, parent=1)]
    assert rows(profile(statement)) == {"line 4": 0, "a": 1}


def test_the_row_stands_for_the_statement(stepped):
    view_model = ViewModel(stepped)
    query = {"what": "where", "prefix": "op", "equals": {"cell": "In[1]", "line": 4}}
    assert select_events(view_model, query).rows["op"].tolist() == [2]
    chain = related(view_model, "act", 0)["chain"]
    assert [event["name"] for event in chain] == ["In[1]", "step"]


def test_threads_of_one_name_are_told_apart_by_their_ids():
    threads = {11: "main", 12: "worker", 13: "worker", 14: "reader"}
    made = profile(
        [op(thread, f"op {thread}", 0, 5, thread_id=thread) for thread in threads],
        info={"threads": [{"thread_id": t, "name": name} for t, name in threads.items()]},
    )
    labels = [lane["label"] for lane in full_header(ViewModel(made))["lanes"]]
    assert labels == ["main thread", "worker · 12", "worker · 13", "reader"]


@pytest.mark.parametrize(("cell", "labels"), [(11, ["main thread", "worker"]),
                                              (12, ["worker", "main thread"])])  # fmt: skip
def test_the_main_thread_has_one_name(cell, labels):
    """A cell can run on another thread; the tooltip has the same names."""
    threads = {11: "MainThread", 12: "worker"}
    made = profile(
        [op(thread, f"op {thread}", 0, 5, thread_id=thread,
            **({"op_type": "cell", "category": "cell"} if thread == cell else {}))
         for thread in threads],
        info={"threads": [{"thread_id": t, "name": name} for t, name in threads.items()]},
    )  # fmt: skip
    header = full_header(ViewModel(made))
    assert [lane["label"] for lane in header["lanes"]] == labels
    assert "MainThread" not in str(header["lanes"])


def test_devices_are_called_by_their_names():
    info = {
        "devices": [
            {"device_id": 0, "name": "NVIDIA H200", "kind": "gpu"},
            {"device_id": 1000, "name": "host device (Xeon, 2 cores)", "kind": "host"},
        ]
    }
    prof = profile(
        activities=[kernel(0, 5), kernel(5, 9) | {"device_id": 1000, "stream_id": 0}], info=info
    )
    header = full_header(ViewModel(prof))
    assert {0: "GPU 0", 1000: "host device"}.items() <= header["devices"].items()
    assert [busy["label"] for busy in header["headline"]["busy"]] == ["GPU 0", "host device"]
    lanes = header["lanes"]
    assert [(lane["label"], lane["device_label"]) for lane in lanes] == [
        ("stream 7", "GPU 0"),
        ("stream 0", "host device"),
    ]
    assert lanes[1]["title"] == "Stream 0 on host device (Xeon, 2 cores)"
    assert prof.by_stream()["stream"].tolist() == ["stream 7, GPU 0", "stream 0, host device"]
    assert "1000" not in repr(prof)


def test_times_of_a_clock_that_jumped_do_not_hide_the_others():
    far = 3 * 10**18
    ops = [op(1, "a", 0, 90), op(2, "far", 10, far), op(3, "open", -(10**9), 100, status="open")]
    prof = profile(ops, [kernel(5, 60), kernel(-far, 5 - far)], info={"wall_ns": 100})
    view_model = ViewModel(prof)
    assert view_model.time_range == [-1000, 1100]
    assert view_model.events_outside == 2
    (note,) = full_header(view_model)["headline"]["notes"]
    assert note.startswith("2 events outside of -1.00 \N{MICRO SIGN}s to 1.10 \N{MICRO SIGN}s")
    near = ViewModel(profile(ops[:1], [kernel(5, 160)], info={"wall_ns": 100}))
    assert (near.time_range, near.events_outside) == ([0, 160], 0)
    assert full_header(near)["headline"]["notes"] == []
