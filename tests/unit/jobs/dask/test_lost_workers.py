"""Workers that come and go, stop or are killed, and clients that end, while a job records."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

import epprof_nb
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs.dask import limits
from epprof_nb.jobs.dask.messages import Messages
from tests.helpers.dask_clusters import (
    PARAMETERS,
    TIMEOUT_S,
    errors,
    open_sessions,
    pids,
    plugins,
    ranks_of,
    wait_until,
)
from tests.helpers.dask_tasks import work

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def one_worker():
    """A client of a cluster with one worker, and with one again after each test that uses it."""
    with (
        distributed.LocalCluster(**PARAMETERS, n_workers=1) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def own_cluster():
    """The same for one test, which may change the number of workers."""
    with (
        distributed.LocalCluster(**PARAMETERS, n_workers=1) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_that_come_and_go_have_their_part(own_cluster):
    (first,) = own_cluster.scheduler_info()["workers"]
    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.cluster.scale(2)
        own_cluster.wait_for_workers(2, timeout=TIMEOUT_S)
        assert len(own_cluster.run(work, 1)) == 2
        own_cluster.retire_workers([first])
        wait_until(lambda: len(own_cluster.scheduler_info()["workers"]) == 1)
    assert len(job) == 3
    assert job.is_complete, job.ranks


def test_a_worker_that_was_removed_and_runs_on_has_its_part(own_cluster):
    (address,) = own_cluster.scheduler_info()["workers"]

    async def remove(dask_scheduler):
        await dask_scheduler.remove_worker(address, stimulus_id="test", close=False)

    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.run(work, 1)
        (victim,) = pids(own_cluster)
        own_cluster.run_on_scheduler(remove)
    assert ranks_of(job)["state"][victim] == "complete"
    assert ranks_of(job)["busy_ns"][victim] > 0


def test_a_killed_worker_leaves_what_it_had_and_its_successor_records(one_worker, monkeypatch):
    """The end asks no worker that the scheduler has removed: Dask tries that for 30 s."""
    asked, run = [], Messages.run

    async def noted(self, address, *args):
        asked.append(address)
        return await run(self, address, *args)

    monkeypatch.setattr(limits, "GONE_WORKER_S", 0.5)
    (address,) = one_worker.scheduler_info()["workers"]
    with epprof_nb.cluster(one_worker).profile() as job:
        (victim,) = pids(one_worker)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: {*one_worker.scheduler_info()["workers"]} - {address})
        one_worker.run(work, 1)
        monkeypatch.setattr(Messages, "run", noted)
    assert asked
    assert address not in asked
    states = ranks_of(job)["state"]
    assert states[victim] in ("killed", "unfinished", "not recorded")
    assert (states.drop(victim) == "complete").all()
    assert len(states) == 3


def test_a_stopped_worker_is_listed_and_ends_by_itself(one_worker, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_S", 2.0)
    monkeypatch.setattr(limits, "CHECK_S", 0.1)
    (victim,) = pids(one_worker)
    os.kill(victim, signal.SIGSTOP)
    try:
        with epprof_nb.cluster(one_worker).profile() as job:
            pass
    finally:
        os.kill(victim, signal.SIGCONT)
    (listed,) = job.ranks[job.ranks["state"] == "not recorded"].itertuples()
    assert "did not answer within 2 s" in listed.reason
    assert len(job) == 1
    wait_until(lambda: open_sessions(one_worker) == 0)


def test_the_end_of_the_client_ends_the_sessions(one_worker, monkeypatch):
    monkeypatch.setattr(limits, "CHECK_S", 0.1)
    monkeypatch.setattr(limits, "GONE_S", 0.3)
    with distributed.Client(one_worker.cluster) as other:
        with epprof_nb.cluster(other).profile() as job:
            other.run(work, 1)
            other.close()
        wait_until(lambda: open_sessions(one_worker) == 0)
    assert any("The client was closed" in note for note in job.notes)
    assert set(job.ranks["state"]) <= {"complete", "unfinished"}

    scheduler = one_worker.cluster.scheduler
    assert not plugins(scheduler)  # workers that join later do not record


def test_a_worker_may_find_the_plugin_removed_before_it_is_told(one_worker, tmp_path, monkeypatch):
    scheduler = one_worker.cluster.scheduler
    broadcast = scheduler.broadcast

    async def late(**message):
        """Reach the workers when they have ended by themselves."""
        while not plugins(scheduler) and not [*tmp_path.glob(f"run/*/{MANIFEST}")]:
            await asyncio.sleep(0.01)
        return await broadcast(**message)

    monkeypatch.setattr(limits, "CHECK_S", 0.05)
    before = errors(one_worker)
    with epprof_nb.cluster(one_worker).profile(folder=tmp_path / "run") as job:
        monkeypatch.setattr(scheduler, "broadcast", late)
        monkeypatch.setitem(scheduler.handlers, "broadcast", late)
    assert job.is_complete, job.ranks
    assert errors(one_worker) == before


def test_a_worker_may_lack_the_plugin(one_worker):
    """It has just joined: the plugin comes with the answer of the scheduler."""

    def lose(dask_worker):
        name = next(name for name in dask_worker.plugins if name.startswith("epprof"))
        del dask_worker.plugins[name]

    before = errors(one_worker)
    with epprof_nb.cluster(one_worker).profile() as job:
        one_worker.run(lose)
    assert job.is_complete, job.ranks
    assert errors(one_worker) == before
