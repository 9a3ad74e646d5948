"""Processes that tasks use or start: pools of a worker, and forked children."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

import epprof_nb
from epprof_nb.jobs.dask import worker
from epprof_nb.jobs.running.order_to_listen import order_to_listen
from epprof_nb.recording.children.order_to_children import VARIABLE
from tests.helpers.dask_clusters import pids, ranks_of
from tests.helpers.dask_tasks import work

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture
def pool_client():
    """A client of a worker in this process with a pool of forked processes."""
    pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with (
        pool,
        distributed.LocalCluster(
            processes=False, n_workers=1, dashboard_address=":0", executor={"pool": pool}
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def in_pool(client, function, count):
    with dask.annotate(executor="pool"):
        return client.gather(client.map(function, range(count), pure=False))


def test_tasks_of_a_process_pool_are_recorded_where_they_run(pool_client):
    for followed in ("fork", "running"):  # the processes of the first job are there in the second
        with epprof_nb.cluster(pool_client).profile() as job:
            ran_in = in_pool(pool_client, work, 10)
            pool_client.submit(work, 1, key="thread-1", pure=False).result()
        states = ranks_of(job)["state"]  # a process without a task may begin too late
        assert (states[[os.getpid(), *set(ran_in)]] == "complete").all()
        assert set(job.ranks.loc[[*job], "followed"]) == {"cell", followed}
        tasks = job.by_task().set_index("task")
        assert tasks["count"].to_dict() == {"work": 10, "thread": 1}
        assert tasks["kernels"].to_dict() == {"work": 10, "thread": 1}
    assert in_pool(pool_client, abs, 3) == [0, 1, 2]
    assert VARIABLE not in os.environ


def test_pools_are_also_recorded_if_the_notebook_records_children(pool_client):
    order_to_listen.give("the notebook")
    try:
        with epprof_nb.cluster(pool_client).profile() as job:
            in_pool(pool_client, work, 10)
        assert set(job.ranks.loc[[*job], "followed"]) == {"cell", "fork"}
        assert VARIABLE in os.environ
    finally:
        order_to_listen.close()
    assert VARIABLE not in os.environ


def test_a_pool_that_was_there_before_is_listed(pool_client):
    before = {*in_pool(pool_client, work, 10)}
    with epprof_nb.cluster(pool_client).profile() as job:
        in_pool(pool_client, work, 10)
    listed = job.ranks[job.ranks["state"] == "not recorded"]
    assert before <= set(listed["pid"])
    assert set(listed["reason"]) == {"started before"}


def test_a_cluster_in_this_process_is_one_rank(pool_client):
    with epprof_nb.cluster(pool_client).profile() as job:
        pool_client.gather(pool_client.map(work, range(20), pure=False))
    assert len(job) == len(job.ranks) == 1
    assert job.by_task()["kernels"].tolist() == [20]
    assert not worker._own


def test_tasks_may_fork(client):
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work_and_fork, range(4), pure=False))
    states = ranks_of(job)["state"]
    assert (states[[*pids(client)]] == "complete").all()
    assert set(states) <= {"complete", "not recorded"}  # children that end at once
    assert job.by_task().set_index("task").loc["work_and_fork", "kernels"] == 8


def work_and_fork(x):
    work(x)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    work(x)
