"""Faults around runs in the mode ``"auto"``, whose nodes are recorded in some runs only."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb.recording.onnxruntime import choice_of_runs
from tests.ort import models, programs
from tests.ort.long_runs import Endless
from tests.ort.rows import nested_in_time, nodes, runs


@pytest.fixture
def auto(installed, monkeypatch):
    """The mode, in which few runs are recorded.

    These are the first two with each input shape, and the first one of each profile.
    """
    monkeypatch.setattr(choice_of_runs, "SAMPLED_SHARE", -1.0)
    epprof_nb.onnxruntime.install(nodes="auto")
    return installed


def states(prof):
    return prof.by_run()["node_events"].tolist()


def profiled(session, feed, times):
    with epprof_nb.profile() as prof:
        for _ in range(times):
            session.run(None, feed)
    return prof


@pytest.fixture
def looping(auto, x):
    """A session whose further runs are not recorded."""
    session = auto.InferenceSession(models.looping())
    feed = {"x": x, "times": np.array(2)}
    assert states(profiled(session, feed, 4)) == [*["recorded"] * 2, *["not recorded"] * 2]
    return session


def test_a_cancelled_run_ends_where_it_was_cancelled(auto, looping, x):
    feed = {"x": x, "times": np.array(2)}
    with epprof_nb.profile() as prof:
        looping.run(None, feed)
        with Endless(auto, looping, x) as endless:
            endless.cancel()
            with epprof_nb.op("after"):
                pass
            looping.run(None, feed)
    assert states(prof) == ["recorded", *["not recorded"] * 2]
    assert len(nodes(prof)) == 5
    assert runs(prof)["status"].tolist() == ["complete", "failed", "complete"]
    assert nested_in_time(prof)
    after = prof.ops[prof.ops["name"] == "after"]
    assert after["start_ns"].iloc[0] >= runs(prof)["end_ns"].iloc[1]


def test_a_recorded_run_may_be_cancelled(auto, x):
    session = auto.InferenceSession(models.looping())
    with epprof_nb.profile() as prof:
        with Endless(auto, session, x) as endless:
            endless.cancel()
        for _ in range(4):
            session.run(None, {"x": x, "times": np.array(2)})
    # The cost of recording a failed run says nothing about the others.
    assert states(prof)[0] == "recorded"
    assert states(prof)[-2:] == ["not recorded"] * 2
    assert runs(prof)["status"].tolist() == ["failed", *["complete"] * 4]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_profile_that_begins_inside_a_run_leaves_that_run_out(auto, looping, x, recorded):
    feed = {"x": np.ones((3 if recorded else 2, 4), np.float32), "times": np.array(2)}
    with Endless(auto, looping, x) as endless, epprof_nb.profile() as prof:
        looping.run(None, feed)
        endless.cancel()
        looping.run(None, feed)
    assert states(prof) == ["recorded", "recorded" if recorded else "not recorded"]
    assert len(nodes(prof)) == (10 if recorded else 5)
    assert set(runs(prof)["thread_id"]) == {threading.get_native_id()}
    assert nested_in_time(prof)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_profile_that_ends_inside_a_run_has_it_open(auto, looping, x, recorded):
    if recorded:
        looping = auto.InferenceSession(models.looping())
    feed = {"x": x, "times": np.array(2)}
    with Endless(auto, looping, x) as endless:
        with epprof_nb.profile() as first:
            looping.run(None, feed)
        with epprof_nb.profile() as around:
            if not recorded:
                looping.run(None, feed)  # the first one of a profile is recorded
            inside = Endless(auto, looping, x)
            inside.__enter__()
        with epprof_nb.profile() as later:
            inside.cancel()
            looping.run(None, feed)
        endless.cancel()
    assert len(first.by_run()) == 1
    opened = around.ops[around.ops["thread_id"] == inside.thread.native_id]
    assert "open" in set(opened["status"])
    # The next profile has its own run only. ONNX Runtime reports the other nodes of a recorded run
    # to it, and a note describes them.
    assert len(later.by_run()) == 1
    others = later.ops[later.ops["thread_id"] == inside.thread.native_id]
    assert others["run_id"].isna().all()
    assert len(others) == 0 or recorded
    noted = [note for note in later.info["notes"] if "Their run began before" in note]
    assert len(noted) == int((others["category"] == "node").any())
    assert nested_in_time(later)


def test_a_session_may_be_deleted_while_it_is_known(auto, x):
    feed = {"x": x}
    with epprof_nb.profile() as prof:
        for _ in range(3):
            session = auto.InferenceSession(models.chain())
            for _ in range(4):
                session.run(None, feed)
            del session
            gc.collect()
    assert states(prof) == [*["recorded"] * 2, *["not recorded"] * 2] * 3
    assert len(prof.info["onnxruntime_runs"]) == 3
    # Their numbers and histories are not those of a new one.
    assert states(profiled(auto.InferenceSession(models.chain()), feed, 1)) == ["recorded"]


def test_a_node_that_raises_ends_its_run(auto, x):
    session = auto.InferenceSession(models.failing())
    good, bad = ({"x": x, "i": np.array([i], np.int64)} for i in (0, 99))
    with epprof_nb.profile() as prof:
        for feed in (bad, good, bad, good, bad, good):
            with epprof_nb.op("mine"):
                if feed is good:
                    session.run(None, feed)
                else:
                    with pytest.raises(Exception, match="data bounds"):
                        session.run(None, feed)
    mine = prof.ops[prof.ops["name"] == "mine"]
    assert len(mine) == len(runs(prof)) == 6
    assert runs(prof)["parent_op_id"].tolist() == mine.index.tolist()
    assert runs(prof)["status"].tolist() == ["failed", "complete"] * 3
    assert states(prof)[-1] == "not recorded"
    assert nested_in_time(prof)


def test_a_session_may_be_used_after_a_fork():
    code = """
import os, sys, numpy as np, onnxruntime as ort, epprof_nb
from tests.ort import models
from tests.ort.rows import nodes, runs
epprof_nb.onnxruntime.install()
options = ort.SessionOptions()
options.intra_op_num_threads = 1  # a pool's threads do not exist in the child
session = ort.InferenceSession(models.chain(), options)
feed = {"x": np.ones((2, 4), np.float32)}
def profiled(times):
    with epprof_nb.profile() as prof:
        for _ in range(times): session.run(None, feed)
    return prof
profiled(3)
outer = epprof_nb.profile()
outer.__enter__()
session.run(None, feed)
child = os.fork()
prof = profiled(5) if child == 0 else None
if child == 0:
    found = prof.by_run()
    assert len(found) == 5, found
    assert set(found["node_events"]) <= {"recorded", "not recorded"}, found
    assert len(nodes(prof)) == 3 * (found["node_events"] == "recorded").sum()
    other = ort.InferenceSession(models.chain(), options)
    with epprof_nb.profile() as prof:
        other.run(None, feed)
    assert len(nodes(prof)) == 3
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
session.run(None, feed)
outer.__exit__(None, None, None)
print("end")
"""
    assert programs.lines(code) == ["end"]
