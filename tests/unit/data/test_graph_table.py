"""Graphs of a recording: their replays, and what of them is not known."""

import numpy as np

from epprof_nb.data.graph_table import graph_table
from epprof_nb.data.schema import ACTIVITIES, OPS
from tests.helpers.tiny import kernel, table


def replay(start, correlation_id):
    return kernel(start, start + 10, graph_id=3, graph_node_id=1, correlation_id=correlation_id)


def launch_ns(call):
    work = table(ACTIVITIES, [replay(20, 1), replay(40, 2)])
    found = graph_table(work, table(OPS, []), np.array([7, 9]), np.array(call), [])
    return found.to_frame()["launch_ns"].fillna(-1).tolist()


def test_the_time_of_a_launch_is_the_mean_over_recorded_calls():
    assert launch_ns([0, 1]) == [8]
    assert launch_ns([-1, 1]) == [9]
    assert launch_ns([-1, -1]) == [-1]
