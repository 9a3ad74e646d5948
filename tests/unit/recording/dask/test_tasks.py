"""Tasks of Dask as ops, in a cluster of this process."""

from __future__ import annotations

import os
import pickle
import threading

import pandas as pd
import pytest

import epprof_nb
from tests.helpers.dask_tasks import Counter, waiting_work, work

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
from dask.task_spec import Task  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            processes=False, n_workers=2, threads_per_worker=2, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def tasks_of(prof):
    return prof.ops[prof.ops["op_type"] == "task"]


def test_each_task_is_an_op_with_its_key_and_its_kernels(client):
    with epprof_nb.profile() as prof:
        futures = client.map(work, range(50), pure=False)
        assert set(client.gather(futures)) == {os.getpid()}
    tasks = tasks_of(prof)
    assert set(tasks["name"]) == {"work"}
    assert {args["key"] for args in tasks["args"]} == {future.key for future in futures}
    assert set(tasks["source"]) == {"dask"}
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert sorted(kernels["op_id"]) == sorted(tasks.index)


def test_functions_of_dask_are_as_before_when_no_session_is_open(client):
    before = functions()
    with epprof_nb.profile():
        assert distributed.worker._run_task is not before[0]
        assert client.submit(work, 1, pure=False).result() == os.getpid()
    assert functions() == before


def functions():
    names = "_run_task", "_run_task_async", "_run_actor", "_run_task_simple"
    of_class = distributed.Worker.actor_execute
    of_workers = {w.handlers["actor_execute"].__func__ for w in distributed.Worker._instances}
    return [*(getattr(distributed.worker, name) for name in names), of_class, of_workers]


def test_a_coroutine_is_suspended_while_it_waits(client):
    with epprof_nb.profile() as prof:
        client.submit(waiting_work, 1, pure=False).result()
    (task,) = tasks_of(prof).itertuples()
    assert task.name == "waiting_work"
    assert task.suspended_ns >= 15_000_000
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["op_id"].tolist() == [task.Index]


def test_calls_of_actors_are_ops(client):
    actor = client.submit(Counter, actor=True, pure=False).result()
    with epprof_nb.profile() as prof:
        actor.add(1).result()
    (task,) = tasks_of(prof).itertuples()
    assert task.name == "Counter.add"
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["op_id"].tolist() == [task.Index]


@pytest.mark.parametrize(("method", "options"), [("wait", {}), ("add", {"separate_thread": False})])
def test_methods_of_actors_on_the_event_loop_are_ops(client, method, options):
    actor = client.submit(Counter, actor=True, pure=False).result()
    for _ in range(2):
        with epprof_nb.profile() as prof:
            getattr(actor, method)(1, **options).result(timeout=200)
        (task,) = tasks_of(prof).itertuples()
        assert task.name == f"Counter.{method}"
        assert task.suspended_ns >= (15_000_000 if method == "wait" else 0)
        kernels = prof.activities[prof.activities["kind"] == "kernel"]
        assert kernels["op_id"].tolist() == [task.Index]
    getattr(actor, method)(1, **options).result(timeout=200)


def test_methods_of_actors_of_a_worker_that_starts_in_a_session_are_ops(client):
    before = {*client.scheduler_info()["workers"]}
    with epprof_nb.profile() as prof:
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=200)
        (new,) = {*client.scheduler_info()["workers"]} - before
        actor = client.submit(Counter, actor=True, pure=False, workers=[new]).result()
        actor.wait(1).result(timeout=200)
    assert "Counter.wait" in set(tasks_of(prof)["name"])
    actor.wait(1).result(timeout=200)


@pytest.mark.parametrize("key", ['"; drop', "\ud800-1", "x" * 5_000, ("a\n<b>", 3), "\x00"])
def test_keys_may_have_any_text(client, key):
    with epprof_nb.profile() as prof:
        distributed.worker._run_task(
            lambda data: None, {}, {"worker": client}, key, {}, threading.Lock(), 0.0
        )
    (task,) = tasks_of(prof).itertuples()
    assert 0 < len(task.name) <= 200
    assert 0 < len(task.args["key"]) <= 1_000
    prof.to_html(os.devnull)


def test_a_task_of_a_pool_is_an_op(client):
    """A process of a pool calls this function only; a thread of a worker by way of another one."""
    with epprof_nb.profile() as prof:
        distributed.worker._run_task_simple(Task("pool-1", work, 1), {}, 0.0)
        client.submit(work, 1, key="thread-1", pure=False).result()
    assert tasks_of(prof)["name"].tolist() == ["pool", "thread"]
    assert [args["key"] for args in tasks_of(prof)["args"]] == ["pool-1", "thread-1"]


def test_what_waits_for_a_pool_is_sent_after_the_session(client):
    with epprof_nb.profile():
        function = distributed.worker._run_task_simple
        assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps(function)) is distributed.worker._run_task_simple


def test_tasks_that_a_task_submits_have_its_line(client):
    def submit_two(x):
        own = distributed.get_client()
        return own.gather(own.map(work, range(2), pure=False))

    with epprof_nb.profile() as prof:
        with dask.annotate(epprof_line=["In[2]", 3, 3, "x.compute()"]):
            future = client.submit(submit_two, 1, pure=False)
        future.result(timeout=200)
        client.submit(work, 1, key="alone", pure=False).result()
    tasks = tasks_of(prof)
    assert sorted(tasks["name"]) == ["alone", "submit_two", "work", "work"]
    of_line = tasks[tasks["name"] != "alone"]
    lines = prof.ops.loc[of_line["parent_op_id"]]
    assert lines[["cell", "line", "name"]].drop_duplicates().to_numpy().tolist() == [
        ["In[2]", 3, "x.compute()"]
    ]
    assert tasks[tasks["name"] == "alone"]["parent_op_id"].isna().all()


def test_coroutines_have_the_line_and_so_have_tasks_that_they_submit(client):
    async def submit_and_wait(x):
        own = distributed.get_client()
        work(x)
        await own.gather(own.map(work, range(2), pure=False), asynchronous=True)
        return await waiting_work(x)

    with epprof_nb.profile() as prof:
        futures = []
        for line in (3, 4):  # they run on one event loop at the same time
            with dask.annotate(epprof_line=["In[2]", line, line, f"x{line}.compute()"]):
                futures += client.map(submit_and_wait, [line], pure=False, key=f"of{line}")
        client.gather(futures)
        client.submit(waiting_work, 1, key="alone", pure=False).result()
    tasks = tasks_of(prof)
    names = prof.ops["name"].reindex(tasks["parent_op_id"]).to_list()
    found = sorted(zip(tasks["name"], names, strict=True), key=str)
    assert found[1:] == [
        ("of3", "x3.compute()"), ("of4", "x4.compute()"),
        *[("work", f"x{line}.compute()") for line in (3, 3, 4, 4)],
    ]  # fmt: skip
    assert found[0][0] == "alone"
    assert pd.isna(found[0][1])
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    counts = kernels["op_id"].map(tasks["name"].astype(str)).value_counts().to_dict()
    assert counts == {"of3": 2, "of4": 2, "work": 4, "alone": 1}


def test_exceptions_of_tasks_come_through(client):
    with epprof_nb.profile() as prof:
        future = client.submit(lambda: 1 / 0, pure=False)
        with pytest.raises(ZeroDivisionError):
            future.result()
    assert len(tasks_of(prof)) == 1


def test_another_signature_is_left_alone_and_noted(client, monkeypatch):
    original = distributed.worker._run_task

    def _run_task(task, data, state, key, active_threads, active_threads_lock, time_delay):
        return original(task, data, state, key, active_threads, active_threads_lock, time_delay)

    monkeypatch.setattr(distributed.worker, "_run_task", _run_task)
    with epprof_nb.profile() as prof:
        assert distributed.worker._run_task is _run_task
        client.submit(work, 1, pure=False).result()
    assert tasks_of(prof).empty
    (note,) = [n for n in prof.info["notes"] if n.startswith("Tasks of distributed")]
    assert "_run_task is not as in" in note


def test_tasks_are_no_ops_without_the_framework(client):
    with epprof_nb.profile(frameworks=()) as prof:
        client.submit(work, 1, pure=False).result()
    assert tasks_of(prof).empty
