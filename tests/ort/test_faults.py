"""Failures around sessions: their end, cancellation, registered names, a million events."""

from __future__ import annotations

import gc
import shutil
import threading

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.onnxruntime import attach
from epprof_nb.recording.onnxruntime import sessions
from tests.ort import models, programs
from tests.ort.long_runs import await_computing
from tests.ort.rows import nested_in_time, nodes, runs


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_run_cancelled_while_it_goes_on_ends_with_its_events(
    installed, x, tmp_path, parallel, whole
):
    options = installed.SessionOptions()
    if parallel:
        options.execution_mode = installed.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 3
    if whole:
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.looping(), options)
    given = installed.RunOptions()
    raised = []

    def work():
        try:
            session.run(None, {"x": x, "times": np.array(10**9)}, given)
        except Exception as error:
            raised.append(str(error))

    with epprof_nb.profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        await_computing(thread, on_pool=parallel)
        assert thread.is_alive()
        given.terminate = True
        thread.join(60)
        assert not thread.is_alive()
    assert "terminate" in raised[0] or "Loop" in raised[0]
    found = nodes(prof)
    assert len(found) > 10
    assert set(found["status"]) - {"failed"} == {"complete"}
    # In a session profiled as a whole a pool thread's last node may be open past its run's end.
    assert found["run_id"].dropna().nunique() == 1
    if not parallel:
        assert nested_in_time(prof)
    given.terminate = False
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x, "times": np.array(2)}, given)
    assert len(nodes(prof)) == 5


def test_a_session_may_go_between_its_runs_and_the_profiles_end(installed, x):
    with epprof_nb.profile() as prof:
        for _ in range(5):
            session = installed.InferenceSession(models.chain())
            session.run(None, {"x": x})
            del session
            gc.collect()
    assert len(nodes(prof)) == 15
    assert nodes(prof)["session"].nunique() == 5
    assert set(prof.info["onnxruntime_sessions"]) == {str(n) for n in nodes(prof)["session"]}


def test_a_session_profiled_as_a_whole_may_go_without_end_profiling(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        del session
        gc.collect()
    assert len(nodes(prof)) == 3
    # No part of it remains that would count runs of other sessions.
    assert not sessions.counts_runs()


def test_exit_with_a_whole_profile_a_file_profile_and_a_run_going_on(tmp_path):
    code = """
import sys, threading, time, epprof_nb, onnxruntime as ort, numpy as np
from tests.ort import models
epprof_nb.onnxruntime.install()
whole = ort.SessionOptions()
whole.enable_profiling, whole.profile_file_prefix = True, sys.argv[1] + "/whole"
options = ort.RunOptions()
epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=sys.argv[1] + "/run")
x = np.ones((1, 4), np.float32)
keep = [ort.InferenceSession(models.looping(), whole), ort.InferenceSession(models.looping())]
prof = epprof_nb.profile()
prof.__enter__()
feed = {"x": x, "times": np.array(3)}
keep[0].run(None, feed)
keep[1].run(None, feed, options)
long = {"x": x, "times": np.array(10**9)}
threading.Thread(target=keep[1].run, args=(None, long), daemon=True).start()
time.sleep(0.1)
print("end", flush=True)
"""
    assert programs.lines(code, str(tmp_path))[0] == "end"
    assert len(list(tmp_path.glob("run*.json"))) == 1


def test_another_library_that_has_the_name_leaves_sessions_as_they_are(tmp_path):
    """The name is registered by a copy of the library, which the loader treats as another one."""
    other = shutil.copy(_native.__file__, tmp_path / "other.so")
    code = f"""
import sys, epprof_nb, onnxruntime as ort, numpy as np
from tests.ort import models
ort.register_execution_provider_library({attach.NAME!r}, sys.argv[1])
epprof_nb.onnxruntime.install()
session = ort.InferenceSession(models.chain())
with epprof_nb.profile() as prof:
    out = session.run(None, {{"x": np.ones((1, 4), np.float32)}})
print(session.get_providers(), out[0].shape)
print(prof.info["notes"])
"""
    state, notes, *_ = programs.lines(code, str(other))
    assert state == "['CPUExecutionProvider'] (1, 4)"
    assert "is not observed" in notes
    assert "did not load the observer" in notes


def test_the_library_registered_by_the_user_under_another_name_is_the_observer_all_the_same():
    code = """
import epprof_nb, onnxruntime as ort, numpy as np
from epprof_nb import _native
from tests.ort import models
ort.register_execution_provider_library("mine", _native.__file__)
epprof_nb.onnxruntime.install()
session = ort.InferenceSession(models.chain())
with epprof_nb.profile() as prof:
    session.run(None, {"x": np.ones((1, 4), np.float32)})
print(session.get_providers(), (prof.ops["category"] == "node").sum())
"""
    assert programs.lines(code)[0] == "['CPUExecutionProvider'] 3"


@pytest.mark.release_independent
def test_a_run_of_more_than_a_million_events_is_whole(installed):
    """ONNX Runtime's own profile ends at a million events; the ops must not."""
    session = installed.InferenceSession(models.looping_after_events(1_000_000))
    times = 1_000
    with epprof_nb.profile() as prof:
        session.run(None, {"x": np.ones((1, 4), np.float32), "times": np.array(times)})
    assert prof.info["recorded"]["ops_lost"] == 0
    assert len(runs(prof)) == 1
    count = prof.by_node().set_index("name")["count"]
    after = {"loop": 1, "body_go": times, "body_sigmoid": times}
    assert count.to_dict() == {"empty": 1, **after}
    assert len(prof.ops) > 1_000_000
