"""Modes of recording nodes: every run, some runs, or none."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb.recording.onnxruntime import choice_of_runs, sessions
from tests.helpers.threads import run_all
from tests.ort import models
from tests.ort.rows import nested_in_time, nodes, runs

NAMES = [f"n{i}" for i in range(24)]


@pytest.fixture
def auto(installed, monkeypatch):
    epprof_nb.onnxruntime.install(nodes="auto")
    add = choice_of_runs.RunHistory.add

    def add_three_times_as_long(history, *, recorded, duration_ns, **run):
        assert duration_ns > 0
        add(history, recorded=recorded, duration_ns=3_000_000 if recorded else 1_000_000, **run)

    # The measured times of these tiny runs depend on what else the machine does.
    monkeypatch.setattr(choice_of_runs.RunHistory, "add", add_three_times_as_long)
    return installed


def profiled(session, feed, times, mode=None, **more):
    with epprof_nb.profile(ort_nodes=mode) as prof:
        for _ in range(times):
            session.run(None, feed, **more)
    return prof


def states(prof):
    return prof.by_run()["node_events"].tolist()


def test_without_device_work_some_runs_are_recorded_and_all_have_an_op(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    prof = profiled(session, {"x": x}, 200)
    assert states(prof)[:2] == ["recorded", "recorded"]
    assert set(states(prof)) == {"recorded", "not recorded"}
    recorded = states(prof).count("recorded")
    assert 2 < recorded < 10  # each takes three times as long as another one
    (entry,) = prof.info["onnxruntime_runs"]
    assert entry["runs"] == len(runs(prof)) == 200
    assert entry["recorded"] == recorded
    assert entry["not_recorded"] == 200 - recorded
    table = prof.by_node()
    assert set(table["count"]) == set(table["recorded"]) == {recorded}
    assert any(f"nodes of {recorded} of 200 runs were recorded" in n for n in prof.info["notes"])
    assert (prof.by_run()["nodes"] == np.where(np.array(states(prof)) == "recorded", 24, 0)).all()
    assert nested_in_time(prof)


def test_what_was_learned_about_a_session_outlives_the_profile(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    profiled(session, {"x": x}, 50)
    assert "not recorded" in states(profiled(session, {"x": x}, 2))
    # Inputs of other shapes or types are new.
    assert states(profiled(session, {"x": np.ones((7, 4), np.float32)}, 1)) == ["recorded"]


def test_a_single_run_is_recorded(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    prof = profiled(session, {"x": x}, 1)
    assert nodes(prof)["name"].tolist() == NAMES
    assert not any("nodes of" in note for note in prof.info["notes"])


def test_off_records_runs_without_nodes(installed, x):
    session = installed.InferenceSession(models.chain(NAMES))
    prof = profiled(session, {"x": x}, 5, "off")
    assert states(prof) == ["not recorded"] * 5
    assert nodes(prof).empty
    assert (runs(prof)["duration_ns"] > 0).all()
    told = "The nodes of 0 of 5 runs were recorded: ort_nodes is 'off'."
    assert told in prof.by_node().attrs["note"]
    assert any(told in note for note in prof.info["notes"])


def test_each_short_profile_has_nodes(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    for times in (3, 3, 1, 2, 3):
        prof = profiled(session, {"x": x}, times)
        assert states(prof)[0] == "recorded"
        assert len(prof.by_node()) == len(NAMES)
    assert states(prof).count("recorded") == 1


def test_the_mode_of_a_profile_goes_before_that_of_install(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    assert states(profiled(session, {"x": x}, 20, "every")) == ["recorded"] * 20
    assert states(profiled(session, {"x": x}, 2, "off")) == ["not recorded"] * 2
    assert "not recorded" in states(profiled(session, {"x": x}, 20))


def test_a_nested_profile_gets_the_nodes_it_asks_for(installed, x):
    session = installed.InferenceSession(models.chain(NAMES))
    with epprof_nb.profile(ort_nodes="off") as outer:
        session.run(None, {"x": x})
        inner = profiled(session, {"x": x}, 3, "every")
    assert states(inner) == ["recorded"] * 3
    assert states(outer) == ["not recorded", *["recorded"] * 3]


def test_an_unknown_mode_is_refused(installed):
    for use in (
        lambda: epprof_nb.onnxruntime.install(nodes="all"),
        lambda: epprof_nb.profile(ort_nodes="all"),
    ):
        with pytest.raises(ValueError, match="choose every, auto or off"):
            use()


def test_run_options_of_the_user_are_switched_per_run(auto, x):
    session = auto.InferenceSession(models.chain(NAMES))
    options = auto.RunOptions()
    prof = profiled(session, {"x": x}, 50, run_options=options)
    assert states(prof)[:2] == ["recorded", "recorded"]
    assert states(prof).count("not recorded") > 30
    assert (runs(prof)["op_type"] == "run").all()
    assert len(runs(prof)) == 50
    assert not sessions.is_profiled(options)


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_refused_and_failed_runs(installed, x, mode, monkeypatch):
    session = installed.InferenceSession(models.failing())
    feed = {"x": x, "i": np.array([0], np.int64)}
    if mode == "auto":
        # The first runs are recorded, and with this share no other one.
        monkeypatch.setattr(choice_of_runs, "SAMPLED_SHARE", -1)
        profiled(session, feed, 5, mode)
    with epprof_nb.profile(ort_nodes=mode) as prof:
        session.run(None, feed)  # recorded in the mode "auto", as the first one of each profile
        with pytest.raises(Exception, match="rank"):
            session.run(None, {"x": x[0], "i": feed["i"]})
        with pytest.raises(Exception, match="data bounds"):
            session.run(None, feed | {"i": np.array([99], np.int64)})
        session.run(None, feed)
    completed = runs(prof).dropna(subset="session")
    # A refused run does not start. It is known if its nodes were to be recorded.
    refused = ["failed"] * (mode == "auto")
    assert completed["status"].tolist() == ["complete", *refused, "failed", "complete"]
    assert states(prof)[-2:] == ["not recorded"] * 2
    assert nested_in_time(prof)


def test_threads_with_own_shapes(auto):
    session = auto.InferenceSession(models.chain(NAMES))

    def work(rows):
        feed = {"x": np.ones((rows, 4), np.float32)}
        for _ in range(50):
            session.run(None, feed)

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work, args=(n,)) for n in (1, 2, 3))
    assert len(runs(prof)) == 150
    assert prof.by_run()["node_events"].eq("recorded").sum() >= 6
    found = nodes(prof)
    recorded = prof.by_run().query("node_events == 'recorded'")["run_id"]
    assert set(found["run_id"]) == set(recorded)
    assert found.groupby("run_id").size().eq(len(NAMES)).all()


def test_a_session_profiled_as_a_whole_records_every_run(auto, x, tmp_path):
    options = auto.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = auto.InferenceSession(models.chain(NAMES), options)
    prof = profiled(session, {"x": x}, 20)
    assert states(prof) == ["recorded"] * 20
    (note,) = (n for n in prof.info["notes"] if "the nodes of all its runs were recorded" in n)
    assert "ONNX Runtime profiles the whole session" in note
    session.end_profiling()
    assert "not recorded" in states(profiled(session, {"x": x}, 20))


def test_a_run_with_a_file_of_its_own_is_recorded(auto, x, tmp_path):
    session = auto.InferenceSession(models.chain(NAMES))
    profiled(session, {"x": x}, 50)
    options = auto.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=str(tmp_path / "run"))
    prof = profiled(session, {"x": x}, 3, run_options=options)
    assert states(prof) == ["recorded"] * 3
    assert len(list(tmp_path.glob("run*.json"))) == 3


def test_a_deleted_session_keeps_its_runs(auto, x):
    with epprof_nb.profile() as prof:
        session = auto.InferenceSession(models.chain(NAMES))
        for _ in range(30):
            session.run(None, {"x": x})
        del session
    assert len(states(prof)) == 30
    assert states(prof)[0] == "recorded"
