"""Jobs of Dask clusters whose workers are processes of this machine."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import epprof_nb
from epprof_nb.core.errors import CaptureError
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs.dask import limits, recording, worker
from epprof_nb.jobs.dask.messages import Messages
from epprof_nb.jobs.running.standing_order import standing_order
from epprof_nb.recording.children.order import VARIABLE
from tests.helpers.dask_tasks import sessions, work

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

PARAMETERS = {
    "processes": True, "n_workers": 2, "threads_per_worker": 2, "dashboard_address": ":0",
}  # fmt: skip
TIMEOUT_S = 200


@pytest.fixture(autouse=True)
def long_limits(monkeypatch):
    """The machine may be busy: nothing here ends by a limit, unless the test says so."""
    for name in ("ANSWER_S", "PREPARE_S", "END_S"):
        monkeypatch.setattr(limits, name, float(TIMEOUT_S))


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(**PARAMETERS) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=TIMEOUT_S)
        yield client


@pytest.fixture
def own_cluster():
    """A client of a cluster with one worker, which the test may change."""
    parameters = {**PARAMETERS, "n_workers": 1}
    with distributed.LocalCluster(**parameters) as cluster, distributed.Client(cluster) as client:
        yield client


def pids(client):
    return set(client.run(os.getpid, on_error="ignore").values())


def ranks_of(job):
    return job.ranks.set_index("pid")


def open_sessions(client):
    return sum(client.run(sessions).values())


def wait_until(condition):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_each_kernel_is_under_its_task_on_its_worker(client):
    with epprof_nb.cluster(client).profile() as job:
        assert not len(job)
        ran_in = client.gather(client.map(work, range(40), pure=False))
    assert job.ranks["followed"].tolist() == ["cell", "dask", "dask"]
    assert {*job.ranks["address"].dropna()} == {*client.scheduler_info()["workers"]}
    assert "address" in job.summary()
    assert job.redacted("hosts").ranks["address"].isna().all()
    assert "the process of the cell" in job[0].by_kernel().attrs["note"]
    assert "No GPU was found" not in job[0].summary()
    assert set(job.ranks["pid"]) == {os.getpid(), *pids(client)}
    assert job.is_complete, job.ranks
    for rank, prof in job.items():
        kernels = prof.activities[prof.activities["kind"] == "kernel"]
        assert len(kernels) == ran_in.count(job.ranks.loc[rank, "pid"])
        assert (prof.ops.loc[kernels["op_id"], "op_type"] == "task").all()
    (row,) = job.by_task().itertuples()
    assert (row.task, row.count, row.kernels) == ("work", 40, 40)
    assert row.min_device_ns <= row.max_device_ns <= row.device_ns
    assert row.idle_ns <= row.host_ns
    assert open_sessions(client) == 0


def test_exceptions_come_through_and_end_the_sessions(client):
    profiling = epprof_nb.cluster(client).profile()
    with pytest.raises(KeyError), profiling as job:
        {}[open_sessions(client)]
    assert len(job) == 3
    assert job[0].info["error"] == "KeyError"
    assert open_sessions(client) == 0


def test_the_temporary_folder_lives_as_long_as_the_job(client):
    with epprof_nb.cluster(client).profile() as job:
        client.submit(work, 1, pure=False).result()
    folder = job.processes[0].part.parent
    assert folder.is_dir()
    assert not (folder / "order.json").exists()
    del job
    wait_until(lambda: not folder.exists())


def test_parts_in_a_given_folder_stay(client, tmp_path):
    with epprof_nb.cluster(client).profile(folder=tmp_path / "run") as job:
        client.submit(work, 1, pure=False).result()
    del job
    assert len(epprof_nb.load(tmp_path / "run")) == 3
    with (
        pytest.raises(FileExistsError, match="name a new folder"),
        epprof_nb.cluster(client).profile(folder=tmp_path / "run"),
    ):
        pass
    assert open_sessions(client) == 0


def test_workers_without_the_storage_send_their_part(client, monkeypatch):
    monkeypatch.setattr(recording.Order, "write", lambda order, path: None)
    monkeypatch.setattr(limits, "PIECE_BYTES", 1_000)
    with epprof_nb.cluster(client).profile() as job:
        ran_in = client.gather(client.map(work, range(20), pure=False))
    assert job.is_complete, job.ranks
    assert job.by_task()["kernels"].tolist() == [20]
    assert {len(job[r].ops[job[r].ops["op_type"] == "task"]) for r in (1, 2)} == {
        ran_in.count(pid) for pid in pids(client)
    }
    assert not client.run(kept_recordings) or not any(client.run(kept_recordings).values())


def kept_recordings():
    from epprof_nb.jobs.dask import worker

    return len(worker._recordings)


def test_a_job_of_another_token_cannot_be_read(client):
    with epprof_nb.cluster(client).profile() as job:
        address = next(iter(client.scheduler_info()["workers"]))
        (job_id,) = client.run(lambda: [*worker_jobs()], workers=[address])[address]
        with pytest.raises(FileNotFoundError):
            client.run(worker.piece, job_id, "guessed", "part", "file", 0, 9, workers=[address])
        (outcome,) = client.run(worker.outcome, job_id, "guessed", workers=[address]).values()
        assert not outcome["recorded"]
        client.run(worker.forget, job_id, "guessed", workers=[address])
        client.run(worker.add_samples, job_id, "guessed", [(0, 0, 0)], workers=[address])
        assert client.run(sessions, workers=[address]) == {address: 1}
    assert job.is_complete


def worker_jobs():
    from epprof_nb.jobs.dask import worker

    return worker._recordings


def test_messages_of_the_scheduler_do_not_grow_with_the_part(client, monkeypatch):
    sizes, run = [], Messages.run

    async def measured(*args):
        result = await run(*args)
        sizes.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(recording.Order, "write", lambda order, path: None)
    monkeypatch.setattr(Messages, "run", measured)
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work_often, range(4), pure=False))
    assert job.is_complete, job.ranks
    part = sum(file.stat().st_size for file in job.processes[1].part.iterdir())
    assert max(sizes) < 4_000 < part


def work_often(x):
    for _ in range(500):
        work(x)


def test_a_part_whose_storage_fails_is_sent(client):
    """The disk of the job is full when the workers write their parts."""
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work, range(10), pure=False))
        client.run(fail_in_jobs)
    client.run(end_failing)
    assert job.is_complete, job.ranks
    assert job.by_task()["kernels"].tolist() == [10]


def fail_in_jobs():
    import errno

    from epprof_nb.files.dataset import part

    original = part.replacing

    def replacing(path):
        if "epprof-cluster-" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path)

    replacing.original = original
    part.replacing = replacing


def end_failing():
    from epprof_nb.files.dataset import part

    part.replacing = part.replacing.original


def test_a_task_that_does_not_end_is_in_the_job(client, tmp_path):
    with epprof_nb.cluster(client).profile() as job:
        waiting = client.submit(work_and_wait, tmp_path, key="waiting-1")
        wait_until((tmp_path / "begun").exists)
    (tmp_path / "end").touch()
    waiting.result()
    assert job.is_complete, job.ranks
    (task,) = job.by_task().itertuples()
    assert (task.task, task.count, task.kernels) == ("waiting", 1, 1)


def work_and_wait(folder):
    import time

    work(1)
    (folder / "begun").touch()
    while not (folder / "end").exists():
        time.sleep(0.01)


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


def test_workers_that_join_later_record_too(own_cluster):
    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.cluster.scale(2)
        own_cluster.wait_for_workers(2, timeout=TIMEOUT_S)
        own_cluster.run(work, 1)
    assert len(job) == 3
    assert job.is_complete, job.ranks


def test_a_killed_worker_leaves_what_it_had_and_its_successor_records(own_cluster):
    with epprof_nb.cluster(own_cluster).profile() as job:
        (victim,) = pids(own_cluster)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: pids(own_cluster) - {victim})
        own_cluster.run(work, 1)
    states = ranks_of(job)["state"]
    assert states[victim] in ("killed", "unfinished", "not recorded")
    assert (states.drop(victim) == "complete").all()
    assert len(states) == 3


def test_the_end_asks_no_worker_that_the_scheduler_has_removed(own_cluster, monkeypatch):
    """Dask tries for 30 s to reach the address of one that was killed."""
    asked, run = [], Messages.run

    async def noted(self, address, *args):
        asked.append(address)
        return await run(self, address, *args)

    monkeypatch.setattr(limits, "GONE_WORKER_S", 0.5)
    (address,) = own_cluster.scheduler_info()["workers"]
    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.run(work, 1)
        (victim,) = pids(own_cluster)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: {*own_cluster.scheduler_info()["workers"]} - {address})
        monkeypatch.setattr(Messages, "run", noted)
    assert asked
    assert address not in asked
    assert victim in set(job.ranks["pid"])


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


def test_a_retired_worker_has_its_part(own_cluster):
    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.run(work, 1)
        own_cluster.retire_workers([next(iter(own_cluster.scheduler_info()["workers"]))])
        wait_until(lambda: not own_cluster.scheduler_info()["workers"])
    assert len(job) == 2
    assert job.is_complete, job.ranks


def test_a_stopped_worker_is_listed_and_ends_by_itself(own_cluster, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_S", 2.0)
    monkeypatch.setattr(limits, "CHECK_S", 0.1)
    (victim,) = pids(own_cluster)
    os.kill(victim, signal.SIGSTOP)
    try:
        with epprof_nb.cluster(own_cluster).profile() as job:
            pass
    finally:
        os.kill(victim, signal.SIGCONT)
    (listed,) = job.ranks[job.ranks["state"] == "not recorded"].itertuples()
    assert "did not answer within 2 s" in listed.reason
    assert len(job) == 1
    wait_until(lambda: open_sessions(own_cluster) == 0)


def test_the_end_of_the_client_ends_the_sessions(own_cluster, monkeypatch):
    monkeypatch.setattr(limits, "CHECK_S", 0.1)
    monkeypatch.setattr(limits, "GONE_S", 0.3)
    with distributed.Client(own_cluster.cluster) as other:
        with epprof_nb.cluster(other).profile() as job:
            other.run(work, 1)
            other.close()
        wait_until(lambda: open_sessions(own_cluster) == 0)
    assert any("The client was closed" in note for note in job.notes)
    assert set(job.ranks["state"]) <= {"complete", "unfinished"}

    assert not own_cluster.run_on_scheduler(plugins)  # workers that join later do not record


def plugins(dask_scheduler):
    return [name for name in dask_scheduler.worker_plugins if name.startswith("epprof")]


def errors(client):
    logs = [*client.get_worker_logs().values(), client.get_scheduler_logs()]
    return [message for log in logs for level, message in log if level == "ERROR"]


def test_a_worker_may_find_the_plugin_removed_before_it_is_told(own_cluster, tmp_path, monkeypatch):
    scheduler = own_cluster.cluster.scheduler
    broadcast = scheduler.broadcast

    async def late(**message):
        """Reach the workers when they have ended by themselves."""
        while not plugins(scheduler) and not [*tmp_path.glob(f"run/*/{MANIFEST}")]:
            await asyncio.sleep(0.01)
        return await broadcast(**message)

    monkeypatch.setattr(limits, "CHECK_S", 0.05)
    with epprof_nb.cluster(own_cluster).profile(folder=tmp_path / "run") as job:
        monkeypatch.setattr(scheduler, "broadcast", late)
        monkeypatch.setitem(scheduler.handlers, "broadcast", late)
    assert job.is_complete, job.ranks
    assert errors(own_cluster) == []


def test_a_worker_may_lack_the_plugin(own_cluster):
    """It has just joined: the plugin comes with the answer of the scheduler."""

    def lose(dask_worker):
        name = next(name for name in dask_worker.plugins if name.startswith("epprof"))
        del dask_worker.plugins[name]

    with epprof_nb.cluster(own_cluster).profile() as job:
        own_cluster.run(lose)
    assert job.is_complete, job.ranks
    assert errors(own_cluster) == []


def test_another_version_is_listed(client, monkeypatch):
    monkeypatch.setattr(recording, "package_version", lambda: "0.0.1")
    with epprof_nb.cluster(client).profile() as job:
        client.submit(work, 1, pure=False).result()
    listed = job.ranks[job.ranks["state"] == "not recorded"]
    assert set(listed["pid"]) == pids(client)
    assert all("and the notebook 0.0.1" in reason for reason in listed["reason"])
    assert {*listed["address"]} == {*client.scheduler_info()["workers"]}
    lines = [line for line in job.summary().splitlines() if "not recorded" in line]
    titles = next(line for line in job.summary().splitlines() if line.split()[:1] == ["pid"])
    assert len(lines) == 2
    assert all(line[titles.index("reason") :].startswith("it has epprof_nb") for line in lines)
    assert len(job) == 1


def test_workers_without_the_package_run_on_and_are_listed(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent("""
            import sys
            class Hidden:
                def find_spec(self, name, path=None, target=None):
                    if name.startswith(("epprof_nb", "_epprof")):
                        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.meta_path.insert(0, Hidden())
        """)
    )
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    with (
        distributed.LocalCluster(**{**PARAMETERS, "n_workers": 1}) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = pids(client)
        with epprof_nb.cluster(client).profile() as job:
            assert client.submit(abs, -3).result() == 3
            cluster.scale(2)
            client.wait_for_workers(2, timeout=TIMEOUT_S)
            assert client.gather(client.map(abs, range(-9, 0))) == [*range(9, 0, -1)]
        assert before < pids(client)  # it has not been restarted
        listed = job.ranks[job.ranks["state"] == "not recorded"]
        assert set(listed["pid"]) == pids(client)
        assert all("epprof_nb cannot be imported there" in reason for reason in listed["reason"])


def test_two_notebooks_have_a_job_each(client):
    with (
        distributed.Client(client.cluster) as other,
        epprof_nb.cluster(client).profile() as job,
    ):
        client.submit(work, 1, key="first", pure=False).result()
        with epprof_nb.cluster(other).profile() as job_of_other:
            other.submit(work, 1, key="second", pure=False).result()
        client.submit(work, 1, key="third", pure=False).result()
    assert {*job.by_task()["task"]} == {"first", "second", "third"}
    assert {*job_of_other.by_task()["task"]} == {"second"}
    assert job.is_complete
    assert job_of_other.is_complete


def test_a_cluster_in_this_process_is_one_rank():
    parameters = {**PARAMETERS, "processes": False}
    with distributed.LocalCluster(**parameters) as cluster, distributed.Client(cluster) as client:
        with epprof_nb.cluster(client).profile() as job:
            client.gather(client.map(work, range(20), pure=False))
        assert len(job) == len(job.ranks) == 1
        assert job.by_task()["kernels"].tolist() == [20]
        assert not worker._own


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
        assert job.is_complete, job.ranks
        assert set(job.ranks["followed"]) == {"cell", followed}
        tasks = job.by_task().set_index("task")
        assert tasks["count"].to_dict() == {"work": 10, "thread": 1}
        assert tasks["kernels"].to_dict() == {"work": 10, "thread": 1}
        assert set(ran_in) <= set(job.ranks["pid"])
    assert in_pool(pool_client, abs, 3) == [0, 1, 2]
    assert VARIABLE not in os.environ


def test_pools_are_also_recorded_if_the_notebook_records_children(pool_client):
    standing_order.give("the notebook")
    try:
        with epprof_nb.cluster(pool_client).profile() as job:
            in_pool(pool_client, work, 10)
        assert set(job.ranks["followed"]) == {"cell", "fork"}
        assert VARIABLE in os.environ
    finally:
        standing_order.close()
    assert VARIABLE not in os.environ


def test_a_pool_that_was_there_before_is_listed(pool_client):
    before = {*in_pool(pool_client, work, 10)}
    with epprof_nb.cluster(pool_client).profile() as job:
        in_pool(pool_client, work, 10)
    listed = job.ranks[job.ranks["state"] == "not recorded"]
    assert before <= set(listed["pid"])
    assert set(listed["reason"]) == {"started before"}


def test_other_objects_and_closed_clients_are_refused(own_cluster):
    with pytest.raises(TypeError, match="a client of Dask is needed, not str"):
        epprof_nb.cluster("tcp://127.0.0.1:8786")
    other = distributed.Client(own_cluster.cluster)
    profiling = epprof_nb.cluster(other).profile()
    other.close()
    with pytest.raises(CaptureError, match="client of the cluster is closed"), profiling:
        pass
