"""by_node and by_op_type: replays of a graph are executions of the nodes that it captured."""

import pytest
from tiny import kernel, op, profile, rows

from epprof_nb.analysis.by_node import by_node, by_op_type

COLUMNS = ("count", "device_ns", "mean_device_ns", "p95_device_ns", "kernels", "recorded")


def node(op_id, name, start, end, parent, **more):
    more = {"op_type": "MatMul", "session": 1, "node_index": op_id} | more
    return op(op_id, name, start, end, parent, category="node", **more)


def replay(node_id, start, end, correlation_id):
    return kernel(
        start, end, 9, capture_op_id=node_id, correlation_id=correlation_id, graph_id=1,
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
    frame = by_node(replayed())
    assert values(frame, "name", "a") == (2, 60, 30, 35, 4, 0)
    assert values(frame, "name", "b") == (2, 8, 4, 4, 2, 0)


def test_replays_of_all_nodes_of_an_operator_are_its_executions():
    assert values(by_op_type(replayed()), "op_type", "MatMul") == (4, 68, 17, 35, 6, 0)


def test_a_capture_without_work_is_no_execution():
    frame = by_node(replayed(status="complete"))
    assert values(frame, "name", "a") == (2, 60, 30, 35, 4, 1)


def test_a_capture_that_works_is_an_execution():
    frame = by_node(replayed(kernel(10, 100, 2), status="complete"))
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
    frame = by_node(made)
    assert values(frame, "name", "if") == (2, 34, 17, 22, 4, 0)
    assert values(frame, "name", "b") == (2, 30, 15, 20, 2, 0)


@pytest.mark.parametrize("status", ["earlier", "complete"])
def test_replays_are_no_executions_where_they_are_launched(status):
    frame = by_node(replayed(status=status), attribution="launch")
    ran = {"a": 1, "b": 1} if status == "complete" else {}
    assert dict(zip(frame["name"], frame["count"], strict=True)) == ran | {"(no node)": 0}
