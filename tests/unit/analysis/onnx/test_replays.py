"""Replays of a graph are executions of the nodes and ops that it captured."""

import pytest

from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import kernel, line, op, profile, rows

COLUMNS = ("count", "device_ns", "mean_device_ns", "p95_device_ns", "kernels", "recorded")


def node(op_id, name, start, end, parent, **more):
    more = {"op_type": "MatMul", "session": 1, "node_index": op_id} | more
    return op(op_id, name, start, end, parent, category="node", **more)


def replay(node_id, start, end, correlation_id, by=9):
    return kernel(
        start, end, by, capture_op_id=node_id, correlation_id=correlation_id, graph_id=1,
        graph_node_id=node_id,
    )  # fmt: skip


def replayed(*activities, status="earlier"):
    """A profile of runs that replay a graph; an earlier profile, or this one, captured it."""
    return profile(
        [
            op(1, "capture", 0, 50, category="session", status=status),
            node(2, "a", 0, 20, 1, status=status),
            node(3, "b", 20, 40, 1, status=status),
            op(9, "run", 100, 900, category="session", op_type="run"),
        ],
        [
            replay(2, 110, 130, 1), replay(2, 130, 135, 1), replay(3, 140, 144, 1),
            replay(2, 210, 240, 2), replay(2, 240, 245, 2), replay(3, 250, 254, 2),
            *activities,
        ],
    )  # fmt: skip


def values(frame, key, name):
    return tuple(rows(frame, key)[name][column] for column in COLUMNS)


def test_a_replay_is_an_execution_whatever_kernels_it_has():
    frame = replayed().by_node()
    assert values(frame, "name", "a") == (2, 60, 30, 35, 4, 0)
    assert values(frame, "name", "b") == (2, 8, 4, 4, 2, 0)


def test_replays_of_all_nodes_of_an_operator_are_its_executions():
    assert values(replayed().by_op_type(), "op_type", "MatMul") == (4, 68, 17, 35, 6, 0)


def test_a_capture_without_work_is_no_execution():
    frame = replayed(status="complete").by_node()
    assert values(frame, "name", "a") == (2, 60, 30, 35, 4, 1)


def test_a_capture_that_works_is_an_execution():
    frame = replayed(kernel(10, 100, 2), status="complete").by_node()
    assert values(frame, "name", "a") == (3, 150, 50, 90, 5, 1)


def test_replays_of_a_node_in_a_subgraph_count_for_the_node_around_it():
    made = profile(
        [
            op(1, "capture", 0, 50, category="session", status="earlier"),
            node(2, "if", 0, 40, 1, op_type="If", status="earlier"),
            node(3, "b", 10, 20, 2, status="earlier"),
            node(4, "c", 20, 30, 2, status="earlier"),
            op(9, "run", 100, 900, category="session", op_type="run"),
        ],
        [
            replay(3, 110, 120, 1), replay(4, 120, 122, 1),
            replay(3, 210, 230, 2), replay(4, 230, 232, 2),
        ],
    )  # fmt: skip
    frame = made.by_node()
    assert values(frame, "name", "if") == (2, 34, 17, 22, 4, 0)
    assert values(frame, "name", "b") == (2, 30, 15, 20, 2, 0)


@pytest.mark.parametrize("status", ["earlier", "complete"])
def test_replays_are_no_executions_where_they_are_launched(status):
    frame = replayed(status=status).by_node(attribution="launch")
    ran = {"a": 1, "b": 1} if status == "complete" else {}
    assert dict(zip(frame["name"], frame["count"], strict=True)) == ran | {"(no node)": 0}


def captured_by_ops(status):
    """Two replays of a graph that was captured in an op, by lines of a cell."""
    return profile(
        [
            line(1, 1, 0, 50, status=status), op(2, "layer", 5, 40, 1, status=status),
            line(3, 2, 100, 200), line(4, 2, 200, 300), op(5, "eager", 250, 260, 4),
        ],
        [
            replay(2, 110, 130, 1, by=3), replay(2, 130, 136, 1, by=3),
            replay(2, 210, 240, 2, by=4), kernel(250, 259, 5),
        ],
    )  # fmt: skip


@pytest.mark.parametrize("status", ["earlier", "complete"])
def test_replays_are_executions_of_the_ops_that_a_graph_captured(status):
    names = ("count", "device_ns", "mean_device_ns", "p95_device_ns")
    found = rows(captured_by_ops(status).by_op(attribution="capture"), "name")
    assert [found["layer"][name] for name in names] == [2, 56, 28, 30]
    assert [found["eager"][name] for name in names] == [1, 9, 9, 9]
    lines = rows(captured_by_ops(status).by_line(attribution="capture"), "line")
    assert [lines[1][name] for name in names] == [2, 56, 28, 30]
    assert lines[2]["count"] == 2
    launched = rows(captured_by_ops(status).by_op(), "name")
    assert launched["eager"]["count"] == 1
    assert launched["layer"]["count"] == 1 if status == "complete" else "layer" not in launched


def test_an_op_that_captured_and_replayed_executed_once():
    prof = profile(
        [line(1, 1, 0, 500), op(2, "layer", 5, 40, 1)],
        [replay(2, 110, 130, 1, by=1), replay(2, 210, 230, 2, by=1)],
    )
    found = rows(prof.by_op(attribution="capture"), "name")
    assert found["layer"]["count"] == 2
    assert found["line 1"]["count"] == 1


def test_the_text_has_a_table_of_what_graphs_captured():
    text = as_text(ViewModel(replayed(kernel(300, 400, 9))))
    table = text[text.index("captured in a graph") :].splitlines()
    assert [line.split() for line in table] == [
        ["captured", "in", "a", "graph", "device", "share", "count", "kernels"],
        ["a", "60", "ns", "36", "%", "2", "4"],
        ["b", "8", "ns", "4.8", "%", "2", "2"],
    ]
    assert "(1 more captured op)" in as_text(ViewModel(replayed()), rows=1)


def test_without_graphs_the_text_has_no_such_table():
    found = profile([op(1, "run", 0, 50)], [kernel(10, 20, 1)])
    assert "captured" not in as_text(ViewModel(found))
