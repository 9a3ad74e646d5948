"""Jobs of Dask clusters: a session per worker and job, for the time of the block."""

from __future__ import annotations

import os
import time

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.jobs.dask import worker
from epprof_nb.jobs.dask.recording import ClusterRecording
from tests.helpers.dask_clusters import open_sessions, pids, wait_until
from tests.helpers.dask_tasks import sessions, work

distributed = pytest.importorskip("distributed")


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


def test_profiles_of_workers_begin_and_end_with_the_block(client, monkeypatch):
    """Otherwise they have idle time in which one worker waits for the others."""
    times = []
    begin_code, send_end = ClusterRecording._begin_code, ClusterRecording.send_end

    async def begin(recording):
        times.append(_native.now_ns())
        await begin_code(recording)

    def end(recording, ended_ns):
        times.append(ended_ns)
        time.sleep(0.1)
        send_end(recording, ended_ns)

    monkeypatch.setattr(ClusterRecording, "_begin_code", begin)
    monkeypatch.setattr(ClusterRecording, "send_end", end)
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work, range(10), pure=False))
    all_recorded_ns, ended_ns = times[:2]
    for process in job.processes:
        begin_ns = process.manifest.begin_ns
        assert begin_ns > all_recorded_ns
        assert begin_ns + job[process.number].info["code_ns"] <= ended_ns
        assert (job[process.number].ops["start_ns"] >= 0).all()


def test_exceptions_come_through_and_end_the_sessions(client):
    profiling = epprof_nb.cluster(client).profile()
    with pytest.raises(KeyError), profiling as job:
        {}[open_sessions(client)]
    assert len(job) == 3
    assert job[0].info["error"] == "KeyError"
    assert open_sessions(client) == 0


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


def test_a_job_of_another_token_cannot_be_read(client):
    with epprof_nb.cluster(client).profile() as job:
        address = next(iter(client.scheduler_info()["workers"]))
        (job_id,) = client.run(open_jobs, workers=[address])[address]
        with pytest.raises(FileNotFoundError):
            client.run(worker.piece, job_id, "guessed", "part", "file", 0, 9, workers=[address])
        (outcome,) = client.run(worker.outcome, job_id, "guessed", workers=[address]).values()
        assert not outcome["recorded"]
        client.run(worker.forget, job_id, "guessed", workers=[address])
        client.run(worker.add_samples, job_id, "guessed", [(0, 0, 0)], workers=[address])
        assert client.run(sessions, workers=[address]) == {address: 1}
    assert job.is_complete


def open_jobs():
    from epprof_nb.jobs.dask import worker

    # Those that have ended are kept for a while.
    return [job for job, recording in worker._recordings.items() if recording._is_open]


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


def test_other_objects_and_closed_clients_are_refused(cluster):
    with pytest.raises(TypeError, match="a client of Dask is needed, not str"):
        epprof_nb.cluster("tcp://127.0.0.1:8786")
    with distributed.Client(cluster) as closed:
        profiling = epprof_nb.cluster(closed).profile()
    with pytest.raises(CaptureError, match="client of the cluster is closed"), profiling:
        pass


def test_dropped_records_of_workers_are_noted(client):
    with epprof_nb.cluster(client).profile(max_records=4) as job:
        client.gather(client.map(work, range(40), pure=False))
    dropped = job.ranks["dropped"].fillna(0).sum()
    assert dropped > 0
    assert [note for note in job.notes if f"{dropped:,} records were dropped (" in note]
    assert f"{dropped:,} records were dropped (" in job.by_task().attrs["note"]


def test_tasks_that_ran_before_are_noted(client, tmp_path):
    running = client.submit(work_and_wait, tmp_path, key="running-1")
    wait_until((tmp_path / "begun").exists)
    processing = client.processing().items()
    (address,) = [worker for worker, keys in processing if "running-1" in keys]
    with epprof_nb.cluster(client).profile() as job:
        (tmp_path / "end").touch()
        running.result()
        client.gather(client.map(work, range(10), pure=False))
    (note,) = [note for note in job.notes if "ran already" in note]
    assert note == (
        f"1 task of worker {address} ran already when the recording began: it has no op, and its "
        "kernels no task."
    )
    assert note in job.summary()
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work, range(10), pure=False))
    assert not job.notes
