"""Delays at the ends of ONNX nodes, while nothing is recorded."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.experiments.ops_to_delay import Factor, delayed_ops
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.delays_at_op_ends import OpEnds
from epprof_nb.recording.delays.device import HostDelays
from epprof_nb.recording.delays.experiment import Experiment
from epprof_nb.recording.onnxruntime import sessions
from tests.helpers.threads import run_all
from tests.ort import models

US = 1_000
FIRST, THIRD = Factor("first", "host"), Factor("third", "host")


@pytest.fixture
def session(installed):
    return installed.InferenceSession(models.chain())


@pytest.fixture
def delayed():
    """The lengths of delays, with the thread of each."""
    return []


@pytest.fixture
def ends(session, delayed):
    def spin(length_ns, keeps_gil):
        assert not keeps_gil  # ONNX Runtime runs nodes without it
        delayed.append((length_ns, threading.get_ident()))
        return length_ns

    ends = OpEnds([FIRST, THIRD], HostDelays(), spin, {}, has_nodes=True)
    ends.keep_gil(())
    ends.install()
    yield ends
    ends.remove()


def test_delays_are_at_the_chosen_executions_of_nodes(ends, session, delayed, x):
    ends.begin_repeat([{0: 3 * US, 2: 4 * US}, {1: 5 * US}])
    for _ in range(3):
        session.run(None, {"x": x})
    assert ends.executions() == {"first": 3, "third": 3}
    assert [length for length, _ in delayed] == [3 * US, 5 * US, 4 * US]
    assert {thread for _, thread in delayed} == {threading.get_ident()}
    assert ends.end_repeat() == [7 * US, 5 * US]


def test_runs_of_several_threads_are_counted(ends, session, x):
    ends.begin_repeat([{39: 2 * US}, {}])

    def run_ten_times():
        for _ in range(10):
            session.run(None, {"x": x})

    run_all(threading.Thread(target=run_ten_times) for _ in range(4))
    assert ends.executions() == {"first": 40, "third": 40}
    assert ends.end_repeat() == [2 * US, 0]


def test_ranges_with_the_name_of_a_node_are_delayed_too(ends, session, x):
    ends.begin_repeat([{0: US, 1: US}, {}])
    with epprof_nb.op("first"):
        session.run(None, {"x": x})
    assert ends.end_repeat() == [2 * US, 0]


def test_nothing_stays_behind(session, installed, x):
    options = installed.RunOptions()
    ends = OpEnds([FIRST], HostDelays(), lambda ns, _: ns, {}, has_nodes=True)
    ends.install()
    session.run(None, {"x": x}, options)
    assert sessions.is_profiled(options)
    assert ends.executions() == {"first": 1}
    ends.remove()
    assert not sessions.is_profiled(options)
    session.run(None, {"x": x}, options)
    assert ends.executions() == {"first": 1}
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x}, options)
    assert set(prof.by_node()["name"]) == {"first", "second", "third"}


def test_ctrl_c_in_a_delay_reaches_the_code_after_the_run(installed, session, x):
    def interrupted(length_ns, _):
        signal.raise_signal(signal.SIGINT)
        return length_ns

    ends = OpEnds([FIRST], HostDelays(), interrupted, {}, has_nodes=True)
    ends.install()
    try:
        ends.begin_repeat([{0: US}])
        with pytest.raises(KeyboardInterrupt):
            session.run(None, {"x": x})
    finally:
        ends.remove()
    assert session.run(None, {"x": x})[0].shape == x.shape


def test_an_error_in_a_delay_is_reported_and_the_run_goes_on(session, x, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.append(args.exc_value))

    def fail():
        raise ValueError("no delay")

    _native.ort_set_node_hooks({"first": fail})
    sessions.set_delays_nodes(True)
    try:
        assert session.run(None, {"x": x})[0].shape == x.shape
    finally:
        sessions.set_delays_nodes(False)
        _native.ort_set_node_hooks(None)
    assert [str(error) for error in reported] == ["no delay"]
    with pytest.raises(TypeError, match="must be a dict or None"):
        _native.ort_set_node_hooks([])


def test_nodes_are_delayed_if_all_runs_were_recorded_node_by_node(session, x):
    found = {}
    for mode in ("every", "auto"):
        with epprof_nb.profile(ort_nodes=mode) as prof, epprof_nb.op("model"):
            for _ in range(4):
                session.run(None, {"x": x})
        found[mode] = {op.name: op.executions for op in delayed_ops(ProfileIndex(prof), 1)}
    assert found["every"] == {"model": 1, "first": 4, "second": 4, "third": 4}
    assert found["auto"] == {"model": 1}


def test_code_without_named_ops_learns_how_to_delay_its_nodes(session, x):
    with epprof_nb.profile(ort_nodes="auto") as prof:
        session.run(None, {"x": x})
    with pytest.raises(ExperimentError, match="--ort-nodes every"):
        Experiment(10, HostDelays(), print).begin(prof)


def test_an_experiment_has_a_sensitivity_of_each_node(session, x):
    """Time only passes in nodes and delays, so that each sensitivity is 1."""
    now, fixed = [0], {"first": 4, "second": 2, "third": 1}

    def spin(length_ns, _):
        now[0] += length_ns
        return length_ns

    with epprof_nb.profile(ort_nodes="every") as prof:
        session.run(None, {"x": x})
    ops, rows = prof.tables["ops"], prof.ops.reset_index()
    clock = 0
    for at in rows.index[rows["category"] == "node"]:
        ops["start_ns"][at], clock = clock, clock + 1_000_000 * fixed[rows["name"][at]]
        ops["end_ns"][at] = clock
        ops["duration_ns"][at] = ops["end_ns"][at] - ops["start_ns"][at]
    prof.info["wall_ns"] = clock
    experiment = Experiment(60, HostDelays(), print, seed=0, clock=lambda: now[0], spin=spin)
    experiment.begin(prof)
    while experiment.next():
        session.run(None, {"x": x})
        now[0] += clock
    slopes = [
        (factor.op, slope.value)
        for part in experiment.measured.rounds
        for factor, slope in zip(part.factors, part.slopes(), strict=True)
    ]
    assert dict(slopes) == pytest.approx({"first": 1, "second": 1, "third": 1})
