"""Time that profiling added, estimated from the costs of recording along the critical path."""

import numpy as np
import pytest

from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.data.recording_costs import KINDS
from tests.helpers.tiny import call, kernel, line, op, profile

COSTS = dict.fromkeys(KINDS, 0.0)


def made(ops=(), activities=(), calls=(), wall=100_000, costs=None, **info):
    costs = COSTS | (costs or {})
    return profile(ops, activities, calls, info={"wall_ns": wall, "recording_costs": costs} | info)


def added(*args, **more):
    return added_time(ProfileIndex(made(*args, **more)))


def test_each_event_costs_what_was_learned_for_its_kind():
    ops = [
        line(1, 1, 0, 90_000),
        op(2, "model", 1_000, 80_000, 1, op_type="module"),
        op(3, "range", 2_000, 70_000, 2),
        op(4, "gc", 3_000, 4_000, 3, op_type="gc"),
    ]
    found = added(ops, costs={"statement": 100, "module": 2_000, "op": 300})
    assert found.parts == {"statements": 100, "modules": 2_000, "ops": 300}
    assert found.total_ns == 2_400
    assert found.share() == pytest.approx(2_400 / 97_600)
    assert not found.is_measured
    assert found.as_info()["estimated"] == 1


def test_executions_of_one_row_cost_as_many_times():
    ops = [line(1, 1, 0, 90_000), line(2, 2, 10, 80_000, 1, count=50)]
    assert added(ops, costs={"statement": 100}).parts == {"statements": 5_100}


def launches(kernel_ns):
    """Ten launches of 1 us each, one after the other, and a wait for their kernels."""
    calls = [call(i * 2_000, i * 2_000 + 1_000, correlation_id=i) for i in range(10)]
    begins = np.arange(10) * max(kernel_ns, 2_000) + 1_500
    activities = [
        kernel(int(begin), int(begin) + kernel_ns, 1, correlation_id=i)
        for i, begin in enumerate(begins)
    ]
    end = activities[-1]["end_ns"] + 100
    calls.append(call(19_000, end, name="cuCtxSynchronize", correlation_id=10))
    wait = {"kind": "synchronization", "name": "context synchronize", "start_ns": 19_000}
    wait |= {"end_ns": end, "duration_ns": end - 19_000, "correlation_id": 10, "device_id": 0}
    return [line(1, 1, 0, end)], [*activities, wait], calls, end


def test_queued_launches_cost_nothing():
    *tables, end = launches(500)
    of_host = added(*tables, wall=end, costs={"launch": 400})
    *tables, end = launches(50_000)
    of_device = added(*tables, wall=end, costs={"launch": 400})
    assert of_host.total_ns >= 9 * 400
    assert of_device.total_ns <= 2 * 400


def test_a_launch_costs_more_with_the_nodes_of_its_graph():
    calls = [call(1_000, 2_000, correlation_id=1, name="cuGraphLaunch")]
    nodes = [
        kernel(3_000 + 10 * i, 3_005 + 10 * i, 1, correlation_id=1, graph_node_id=i, graph_id=1)
        for i in range(8)
    ]
    found = added([line(1, 1, 0, 100_000)], nodes, calls, costs={"launch": 400, "graph_node": 50})
    assert found.parts == {"launches": 400, "graph_nodes": 400}


def test_without_the_costs_of_its_events_a_profile_says_nothing():
    ops = [line(1, 1, 0, 90_000), op(2, "model", 10, 80_000, 1, op_type="module")]
    unknown = made(ops)
    del unknown.info["recording_costs"]["module"]
    assert added_time(ProfileIndex(unknown)) is None
    unknown.info["recording_costs"] = {}
    assert added_time(ProfileIndex(unknown)) is None
    assert headline_of(ProfileIndex(unknown)).added is None


def test_the_headline_says_an_estimate():
    headline = headline_of(ProfileIndex(made([line(1, 1, 0, 90_000)], costs={"statement": 7_400})))
    assert "profiling added about 8 %" in headline.line
    assert "estimated from what recording costs on this machine" in headline.overhead_note


def test_a_measurement_is_divided_as_the_estimate_is():
    ops = [line(1, 1, 0, 90_000), op(2, "a", 1_000, 80_000, 1)]
    stated = {"total": 8_000, "error": 90}
    found = added(ops, costs={"statement": 1_000, "op": 3_000}, added_ns=stated)
    assert (found.total_ns, found.error_ns, found.is_measured) == (8_000, 90, True)
    assert found.parts == {"statements": 2_000, "ops": 6_000}
    assert "estimated" not in found.as_info()


def test_it_is_known_for_intervals():
    ops = [line(1, 1, 0, 100_000), op(2, "a", 10_000, 20_000, 1), op(3, "b", 60_000, 70_000, 1)]
    found = added(ops, costs={"op": 1_000})
    begins, ends = np.array([5_000, 15_000, 30_000]), np.array([25_000, 65_000, 55_000])
    assert found.between(begins, ends).tolist() == [1_000, 1_000, 0]


def test_gains_are_those_of_the_code_without_the_profiler():
    ops = [line(1, 1, 0, 10_000_000), op(2, "a", 2_000_000, 3_000_000, 1)]
    work = [
        kernel(0, 1_000_000, 1, correlation_id=1),
        kernel(9_000_000, 10_000_000, 1, correlation_id=2),
    ]
    calls = [call(10, 20, correlation_id=1), call(8_999_000, 8_999_900, correlation_id=2)]
    gains = [
        made(ops, work, calls, wall=10_000_000, costs={"op": cost}).insights()["gain_ns"]
        for cost in (0, 1_000_000)
    ]
    assert len(gains[0]) > 0
    assert gains[1].iloc[0] == pytest.approx(0.9 * gains[0].iloc[0])
