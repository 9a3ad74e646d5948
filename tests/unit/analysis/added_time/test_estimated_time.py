"""Time that profiling added, estimated from what recording took of the program's threads."""

import numpy as np
import pytest

from epprof_nb.analysis.added_time import estimated_time as estimated_time_module
from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.added_time.estimated_time import estimated_time, reason_without_estimate
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path import profiler_costs as module
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.data.schema import HOST_SAMPLES, SLEEP, THREAD_WAITS
from tests.helpers.tiny import call, kernel, line, op, profile, table
from tests.helpers.walked_stacks import stack_rows, with_stacks

GPU = {"devices": [{"device_id": 0, "name": "GPU", "kind": "gpu"}]}


@pytest.fixture(autouse=True)
def _plain_costs(monkeypatch):
    """Take costs as they were timed, without what recording costs elsewhere."""
    monkeypatch.setattr(module, "_ELSEWHERE", dict.fromkeys(module._ELSEWHERE, 0.0))
    for name in ("_COLD_NS", "_LAUNCH_NS"):
        monkeypatch.setattr(module, name, {0: 0})
    for name in ("_MODULE_NS", "_PASS_NS", "_HOOK_NS"):
        monkeypatch.setattr(module, name, 0)


def estimated(rows=(), activities=(), calls=(), wall=100_000, info=None, **costs):
    info = {"wall_ns": wall, "thread_id": 1, "recording_costs": costs} | (info or {})
    return estimated_time(ProfileIndex(profile(rows, activities, calls, info=info)))


def test_it_is_what_recording_took_of_the_thread_of_the_cell():
    ops = [line(1, 1, 0, 90_000, count=50), op(2, "a", 1_000, 2_000, 1, thread_id=7)]
    found = estimated(ops, statements=5_000, ops=300)
    assert found.total_ns == 5_000
    assert found.of_threads == {"statements": 5_000, "ops": 300}


def test_costs_of_kinds_are_added_elsewhere(monkeypatch):
    monkeypatch.setattr(module, "_ELSEWHERE", module._ELSEWHERE | {module.BACKWARD: 0.5})
    monkeypatch.setattr(module, "_MODULE_NS", 1_000)
    monkeypatch.setattr(module, "_PASS_NS", 7_000)
    ops = [
        op(1, "model", 0, 30_000, op_type="module", count=2),
        op(2, "backward", 30_000, 60_000, op_type="autograd"),
    ]
    parts = estimated(ops, modules=3_000, backward=4_000).of_threads
    assert parts == {"modules": 5_000, "backward": 13_000}


@pytest.mark.parametrize(
    ("mean_ns", "own_cores", "each_ns"),
    [(100, 1.0, 40), (650, 1.0, 95), (5_000, 1.5, 150), (1_300, 0.5, 95)],
)
def test_statements_cost_more_if_much_ran_between_them(monkeypatch, mean_ns, own_cores, each_ns):
    monkeypatch.setattr(module, "_COLD_NS", {300: 40, 1_000: 150})
    rows = [line(1, 1, 0, 100 * mean_ns, count=100)]
    info = {"load": {"own_cores": own_cores}}
    found = estimated(rows, wall=1_000_000, info=info, statements=3_000)
    assert found.total_ns == 3_000 + 100 * each_ns


def test_what_the_header_of_a_loop_runs_counts_for_its_statements(monkeypatch):
    monkeypatch.setattr(module, "_COLD_NS", {0: 0, 1_000: 100})
    rows = [line(1, 1, 0, 90_000), line(2, 2, 0, 30_000, 1, count=100)]
    assert estimated(rows, statements=3_000).total_ns == 3_000 + 100 * 90 + 100


def test_statements_of_other_threads_take_the_interpreter():
    ops = [line(1, 1, 0, 90_000, count=50), line(2, 2, 1_000, 80_000, count=50, thread_id=7)]
    assert estimated(ops, statements=5_000).total_ns == 5_000


def beside_a_thread():
    """A cell with a statement that costs 100 ns, and another thread whose statements cost 5 us."""
    ops = [line(1, 1, 0, 90_000), line(2, 2, 1_000, 80_000, count=50, thread_id=7)]
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": {"statements": 5_100}}
    return profile(ops, info=info)


@pytest.mark.parametrize(
    ("wait", "of_others"),
    [
        ({"function": SLEEP}, 1_000),
        ({"function": "Event.wait"}, 1_000),  # until a time
        ({"function": "Event.wait", "other_thread_id": 7}, 5_000),
        ({"function": SLEEP, "thread_id": 7}, 5_000),
    ],
)
def test_other_threads_delay_the_cell_while_it_waits_for_none_but_them(wait, of_others):
    found, wait = beside_a_thread(), {"thread_id": 1, "start_ns": 10_000, "end_ns": 90_000} | wait
    found.tables["thread_waits"] = table(THREAD_WAITS, [wait])
    assert estimated_time(ProfileIndex(found)).total_ns == 100 + of_others


def test_other_threads_do_not_delay_a_cell_that_waits_for_a_process():
    rows, (waits, works) = stack_rows("In[1]:1 lib/subprocess.py:Popen._try_wait:9", "In[1]:1")
    found = with_stacks(beside_a_thread(), rows)
    samples = [(40_000, waits, 1), (60_000, works, 1), (80_000, waits, 1), (90_000, waits, 7)]
    found.tables["host_samples"] = table(HOST_SAMPLES, [
        {"start_ns": at, "stack_id": stack, "interval_ns": 20_000, "thread_id": thread}
        for at, stack, thread in samples
    ])  # fmt: skip
    found.tables["thread_waits"] = table(
        THREAD_WAITS,
        [{"thread_id": 1, "start_ns": 30_000, "end_ns": 50_000, "function": "Condition.wait"}],
    )
    # It waited from 20 to 50 us and from 60 to 80 us.
    assert estimated_time(ProfileIndex(found)).total_ns == 100 + 2_500


def launches(kernel_ns):
    """Ten launches of 1 us each, one after the other, and a wait for their kernels."""
    calls = [call(i * 2_000, i * 2_000 + 1_000, correlation_id=i, op_id=1) for i in range(10)]
    begins = np.arange(10) * max(kernel_ns, 2_000) + 1_500
    activities = [
        kernel(int(begin), int(begin) + kernel_ns, 1, correlation_id=i)
        for i, begin in enumerate(begins)
    ]
    end = activities[-1]["end_ns"] + 100
    calls.append(call(19_000, end, name="cuCtxSynchronize", correlation_id=10, op_id=1))
    wait = {"kind": "synchronization", "name": "context synchronize", "start_ns": 19_000}
    wait |= {"end_ns": end, "duration_ns": end - 19_000, "correlation_id": 10, "device_id": 0}
    return [line(1, 1, 0, end)], [*activities, wait], calls, end


def test_queued_launches_cost_nothing():
    *tables, end = launches(500)
    of_host = estimated(*tables, wall=end, info=GPU, launches=5_000)
    *tables, end = launches(50_000)
    of_device = estimated(*tables, wall=end, info=GPU, launches=5_000)
    assert of_host.total_ns >= 4_000
    assert of_device.total_ns <= 500
    assert of_host.of_threads == of_device.of_threads == {"launches": 5_000}


@pytest.mark.parametrize(("wall_ns", "each_ns"), [(55_000, 100), (165_000, 150)])
def test_calls_of_a_gpu_cost_more_if_much_ran_between_them(monkeypatch, wall_ns, each_ns):
    monkeypatch.setattr(module, "_LAUNCH_NS", {5_000: 100, 25_000: 200})
    rows, activities, calls, _ = launches(500)
    found = estimated(rows, activities, calls, wall_ns, GPU, launches=5_000)
    assert found.of_threads == {"launches": 5_000 + 11 * each_ns}


def test_launches_on_the_host_cost_a_part_elsewhere(monkeypatch):
    monkeypatch.setattr(module, "_ELSEWHERE", module._ELSEWHERE | {module.LAUNCHES: 0.5})
    rows, activities, calls, end = launches(500)
    calls = [one | {"domain": "host"} for one in calls]
    parts = estimated(rows, activities, calls, end, launches=1_000).of_threads
    assert parts == {"launches": 1_500}


@pytest.mark.parametrize(("node_ns", "each_ns"), [(2_000, 400), (5_000, 100)])
def test_nodes_of_graphs_cost_time_of_the_device(monkeypatch, node_ns, each_ns):
    monkeypatch.setattr(module, "_NODE_NS", {1_000: 600, 3_000: 200, 5_000: 100})
    calls = [call(1_000, 2_000, correlation_id=1, name="cuGraphLaunch", op_id=1)]
    begins = [3_000 + i * node_ns for i in range(8)]
    nodes = [
        kernel(begin, begin + node_ns, 1, correlation_id=1, graph_node_id=9 + i)
        for i, begin in enumerate(begins)
    ]
    wall_ns = begins[-1] + node_ns
    found = estimated([line(1, 1, 0, 3_000)], nodes, calls, wall_ns, GPU, statements=1)
    assert found.total_ns == pytest.approx(8 * each_ns, rel=0.1)


@pytest.mark.parametrize(
    ("more", "reason"),
    [({"category": "node"}, "ONNX Runtime"), ({"category": "operator"}, "frameworks recorded")],
)
def test_it_is_not_known_where_frameworks_record(more, reason):
    ops = [line(1, 1, 0, 90_000), op(2, "MatMul", 10, 80_000, 1, **more)]
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": {"statements": 1_000}}
    assert reason in reason_without_estimate(ProfileIndex(profile(ops, info=info)))
    assert estimated(ops, statements=1_000) is None
    assert estimated(ops[:1], statements=1_000) is not None
    assert estimated(ops[:1]) is None


def test_many_events_are_a_reason(monkeypatch):
    monkeypatch.setattr(estimated_time_module, "_MAX_EVENTS", 1)
    monkeypatch.setattr(estimated_time_module, "_MAX_EVENTS_OF_HOST", 2)
    rows = [line(i, i, 9 * i, 9 * i + 9) for i in range(1, 4)]
    kernels = [kernel(0, 9, 1, correlation_id=1)]
    for count, activities, most in ((2, kernels, 1), (2, [], None), (3, [], 2)):
        info = {"recording_costs": {"ops": 1}} | GPU
        found = profile(rows[:count], activities, info=info)
        reason = f"the profile has more than {most} ops and calls" if most else ""
        assert reason_without_estimate(ProfileIndex(found)) == reason


def test_parts_of_a_total_sum_up_to_it():
    ops = [line(1, 1, 0, 90_000, count=50), op(2, "a", 1_000, 2_000, 1, thread_id=7)]
    found = estimated(ops, statements=5_000, ops=300)
    assert found.parts(530) == {"statements": 500, "ops": 30}


def test_a_statement_of_the_info_comes_first():
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": {"statements": 7_400}}
    for stated, total, is_measured in (
        ({}, 7_400, False),
        ({"added_ns": {"total": 20_000, "error": 9}}, 20_000, True),
        ({"added_ns": {"total": 30_000, "estimated": True}}, 30_000, False),
        ({"added_ns": {"total": 2**62, "estimated": True}}, 100_000, False),
    ):
        found = added_time(ProfileIndex(profile([line(1, 1, 0, 90_000)], info=info | stated)))
        assert (found.total_ns, found.is_measured) == (total, is_measured)
    varies = info | {"added_ns": {"reason": "the runs vary too much"}}
    assert added_time(ProfileIndex(profile([line(1, 1, 0, 90_000)], info=varies))) is None


def test_the_headline_says_that_it_is_an_estimate():
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": {"statements": 7_400}}
    headline = headline_of(ProfileIndex(profile([line(1, 1, 0, 90_000)], info=info)))
    assert "profiling added an estimated 8 %" in headline.line
    assert "--warmup and --repeat measure it" in headline.overhead_note


@pytest.mark.parametrize(
    ("cost_ns", "stated"), [(60_000, "117 %"), (90_000, "426 %"), (500_000, "687 %")]
)
def test_of_a_large_estimate_only_the_least_is_said(cost_ns, stated):
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": {"statements": cost_ns}}
    headline = headline_of(ProfileIndex(profile([line(1, 1, 0, 90_000)], info=info)))
    assert f"profiling added at least {stated}" in headline.line
    assert f"Profiling added at least {stated}" in headline.overhead_note


def runs(*times, **more):
    """A line with runs: each of `times` says how long the call took, and takes unprofiled."""
    ops, at = [line(1, 1, 0, 90_000)], 0
    for number, (call_ns, unprofiled_ns) in enumerate(times, 2):
        nodes = {} if number == 2 else {"nodes": "not recorded"}
        args = {"call_ns": call_ns, "unprofiled_ns": unprofiled_ns, "shapes": 1, **nodes}
        kind = {"op_type": "run", "category": "session", "session": 1, "args": args}
        ops.append(op(number, "run", at, at + call_ns, 1, **(kind | more)))
        at += call_ns
    return [*ops, op(99, "MatMul", 10, 80, 2, category="node", op_type="MatMul", session=1)]


def test_runs_of_onnx_runtime_took_longer_than_unprofiled_ones():
    """The first was recorded node by node; of the others, another process delayed one."""
    times = (5_000, 2_000), (2_500, 2_000), (2_500, 2_000), (40_000, 2_000)
    found = estimated(runs(*times), statements=1_000)
    assert found.of_threads == {"statements": 1_000, "runs": 3_000 + 3 * 500}
    assert estimated(runs((5_000, None)), statements=1_000) is None
    assert estimated(runs(*times), [kernel(9, 10)], info=GPU, statements=1_000) is None
    busy = {"load": {"own_cores": 0.6, "waiting": 0.4, "other_cores": 1.4}}
    assert estimated(runs(*times), info=busy, statements=1_000) is None
