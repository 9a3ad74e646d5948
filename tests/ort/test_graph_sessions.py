"""Sessions with CUDA graphs enabled; the CPU provider ignores the option, so no GPU is needed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import epprof_nb
from epprof_nb.onnxruntime import cuda_graphs as ort_graphs
from epprof_nb.recording.onnxruntime import sessions
from tests.ort import models
from tests.ort.rows import nodes

GRAPHS = [("CPUExecutionProvider", {"enable_cuda_graph": "1"})]


@pytest.mark.parametrize(
    ("providers", "options", "asked"),
    [
        (None, None, False),
        (["CPUExecutionProvider"], None, False),
        (["CUDAExecutionProvider"], [{"enable_cuda_graph": "1"}], True),
        ([("CUDAExecutionProvider", {"enable_cuda_graph": True})], None, True),
        (
            [("CUDAExecutionProvider", {"enable_cuda_graph": 0}), "CPUExecutionProvider"],
            None,
            False,
        ),
        ([("CUDAExecutionProvider", {"enable_cuda_graph": "False"})], None, False),
    ],
)
def test_who_captures(providers, options, asked):
    assert ort_graphs.captures(providers, options) is asked


@pytest.mark.parametrize("own_options", [False, True])
def test_it_is_profiled_as_a_whole_until_the_first_profile_ends(
    installed, x, tmp_path, monkeypatch, own_options
):
    monkeypatch.chdir(tmp_path)
    options = installed.SessionOptions() if own_options else None
    session = installed.InferenceSession(models.chain(), options, providers=GRAPHS)
    if options is not None:
        assert not options.enable_profiling
    assert not session.get_session_options().enable_profiling
    assert sessions.observed(session).session_profile
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        session.run(None, {"x": x})
    assert len(nodes(prof)) == 6
    assert nodes(prof)["run_id"].tolist() == [0, 0, 0, 1, 1, 1]
    assert not sessions.observed(session).session_profile
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert len(nodes(prof)) == 3
    other = installed.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        other.run(None, {"x": x})
    assert len(nodes(prof)) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_profile_stays_the_users(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "mine")
    session = installed.InferenceSession(models.chain(), options, providers=GRAPHS)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert len(nodes(prof)) == 3
    assert sessions.observed(session).session_profile
    assert session.end_profiling().startswith(str(tmp_path / "mine"))


def runs(prof):
    return prof.ops[prof.ops["name"] == "model_run"]


def test_a_run_without_nodes_is_then_recorded_without_a_profiler(installed, monkeypatch):
    # A replay reports no node, like the run of a model without nodes.
    session = installed.InferenceSession(models.no_nodes(), providers=GRAPHS)
    for replayed in (set(), {"0"}, {"0"}):
        with epprof_nb.profile() as prof:
            session.run(None, {})
            session.run(None, {})
        assert runs(prof)["run_id"].tolist() == [0, 1]
        assert runs(prof)["session"].notna().all()
        assert (runs(prof)["status"] == "complete").all()
        assert sessions.observed(session).replayed.graphs == replayed
    monkeypatch.setattr(sessions, "run_options_for", None)  # no longer called
    with epprof_nb.profile() as prof:
        session.run(None, {})
    assert len(runs(prof)) == 1


def test_it_is_learnt_also_beside_a_session_profiled_as_a_whole(installed):
    waiting = installed.InferenceSession(models.no_nodes(), providers=GRAPHS)
    session = installed.InferenceSession(models.no_nodes(), providers=GRAPHS)
    for _ in range(2):
        with epprof_nb.profile():
            session.run(None, {})
    assert sessions.observed(waiting).session_profile
    assert sessions.observed(session).replayed.graphs == {"0"}


def test_each_thread_learns_for_itself(installed):
    # The CUDA provider keeps graphs by thread: another thread's first run captures anew.
    session = installed.InferenceSession(models.no_nodes(), providers=GRAPHS)
    for _ in range(2):
        with epprof_nb.profile():
            session.run(None, {})
    seen = sessions.observed(session).replayed
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: set(seen.graphs)).result() == set()
        with epprof_nb.profile():
            pool.submit(session.run, None, {}).result()
        assert pool.submit(lambda: set(seen.graphs)).result() == {"0"}


def test_each_graph_is_learnt_by_itself(installed):
    session = installed.InferenceSession(models.no_nodes(), providers=GRAPHS)
    with epprof_nb.profile():
        session.run(None, {})
    other = installed.RunOptions()
    other.add_run_config_entry("gpu_graph_id", "7")
    with epprof_nb.profile():
        session.run(None, {}, other)
    assert sessions.observed(session).replayed.graphs == {"7"}
    with epprof_nb.profile() as prof:
        session.run(None, {})
        session.run(None, {}, other)
    assert len(runs(prof)) == 2
    assert sessions.observed(session).replayed.graphs == {"0", "7"}


def test_a_session_with_nodes_is_never_taken_for_a_replay(installed, x):
    session = installed.InferenceSession(models.chain(), providers=GRAPHS)
    for _ in range(3):
        with epprof_nb.profile() as prof:
            session.run(None, {"x": x})
        assert len(nodes(prof)) == 3
    assert sessions.observed(session).replayed.graphs == set()
