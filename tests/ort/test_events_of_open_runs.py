"""Runs that a profile, a fork or the end of a session interrupts, and nodes on pool threads."""

from __future__ import annotations

import threading

import numpy as np

import epprof_nb
from tests.helpers.threads import run_all
from tests.ort import models
from tests.ort.long_runs import Endless, await_computing
from tests.ort.rows import nodes, runs


def test_pool_threads_of_a_whole_profile_join_their_run_where_it_is_certain(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.execution_mode = installed.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 3
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.wide(), options)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        session.run(None, {"x": x})
    assert nodes(prof).groupby("run_id").size().tolist() == [7, 7]

    def work():
        for _ in range(20):
            session.run(None, {"x": x})

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work) for _ in range(3))
    found = nodes(prof)
    missing = found["run_id"].isna().sum()
    sizes = found.groupby("run_id").size()
    assert (sizes <= 7).all()
    assert sizes.sum() + missing == 7 * 60
    if missing:
        assert any(
            f"{missing:,} node events are not assigned to a run" in n for n in prof.info["notes"]
        )


def test_a_session_may_go_inside_a_profile(installed, x):
    with epprof_nb.profile() as prof:
        session = installed.InferenceSession(models.chain())
        session.run(None, {"x": x})
        del session
    assert nodes(prof)["name"].tolist() == ["first", "second", "third"]


def inside_a_run(session, x, times):
    """Profiles around a run and inside of it; None if it was over too soon."""
    many = {"x": x, "times": np.array(times)}
    thread = threading.Thread(target=session.run, args=(None, many))
    with epprof_nb.profile() as outer:
        thread.start()
        await_computing(thread)
        with epprof_nb.profile() as inner:
            await_computing(thread)
        going = thread.is_alive()
        thread.join()
    return (outer, inner, times) if going else None


def test_a_profile_may_begin_and_end_inside_a_run(installed, x):
    session = installed.InferenceSession(models.looping())
    tried = (inside_a_run(session, x, times) for times in (20_000, 100_000, 800_000))
    outer, inner, times = next(found for found in tried if found is not None)
    assert runs(inner)["status"].tolist() == ["open"]
    assert len(nodes(inner)) > 10
    assert set(nodes(inner)["run_id"]) == {0}
    assert len(nodes(outer)) == 2 * times + 1
    assert set(nodes(outer)["run_id"]) == {0}


def test_a_run_that_began_unrecorded_leaves_no_trace(installed, x):
    session = installed.InferenceSession(models.looping())
    with Endless(installed, session, x) as endless, epprof_nb.profile() as prof:
        endless.await_computing()
    assert nodes(prof).empty


def test_the_child_of_a_fork_starts_afresh(installed, x):
    import gc
    import os

    # If the child destroyed sessions of other tests, they would wait for threads it does not have.
    gc.collect()
    gc.freeze()
    with epprof_nb.profile():
        child = os.fork()
        if not child:
            session = installed.InferenceSession(models.chain())
            with epprof_nb.profile() as prof:
                session.run(None, {"x": x})
            os._exit(0 if len(nodes(prof)) == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def beside_a_run_from_before(ort, session, x):
    """A profile of a short run that overlaps an earlier run; None if it did not.

    ONNX Runtime may let the short run wait until the other one is over, which is then cancelled.
    """
    with Endless(ort, session, x, on_pool=True) as endless:
        waited_too_long = threading.Timer(0.5, endless.cancel)
        with epprof_nb.profile() as prof:
            waited_too_long.start()
            session.run(None, {"x": x, "times": np.array(1)})
            waited_too_long.cancel()
            endless.await_computing()  # the other run gets its turn
            going = endless.thread.is_alive()
        waited_too_long.join()
    return prof if going else None


def test_a_run_from_before_the_profile_makes_pool_nodes_uncertain(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.execution_mode = installed.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 3
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.looping(), options)
    try:
        tried = (beside_a_run_from_before(installed, session, x) for _ in range(30))
        prof = next((prof for prof in tried if prof is not None), None)
        assert prof is not None, "the short run never began before the other one was over"
        # The run inside has 3 nodes; the others are of the one from before.
        assert len(nodes(prof)) > 3
        assert nodes(prof)["run_id"].notna().sum() <= 3
        with epprof_nb.profile() as prof:
            session.run(None, {"x": x, "times": np.array(1)})
        assert nodes(prof)["run_id"].tolist() == [0, 0, 0]
    finally:
        session.end_profiling()
